"""``linkwise convert``: a model in another format."""

from __future__ import annotations

from argparse import Namespace

from linkwise.cli.arguments import load_model
from linkwise.cli.printing import print_json
from linkwise.errors import InputError


def run(options: Namespace) -> None:
    """Write the file, and print what is not in it."""
    output = str(options.output)
    if not output.lower().endswith((".lw.json", ".urdf", ".xml", ".mjcf")):
        raise InputError("the format of the output is not known", got=output, allowed=".lw.json, .urdf, .xml or .mjcf")
    model = load_model(options)
    lost = model.save(output)
    if options.json:
        print_json({"output": output, "lost": lost})
        return
    print(f"{output}: {len(model.bodies)} moving bodies, nv = {model.nv}")
    for each in lost:
        print(f"  not as it was: {each}")
