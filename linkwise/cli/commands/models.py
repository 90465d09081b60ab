"""``linkwise models``: the models that come with the library."""

from __future__ import annotations

from argparse import Namespace

from linkwise.cli.arguments import BUILT_IN
from linkwise.cli.printing import number, print_json, table


def run(options: Namespace) -> None:
    """Print a line for each: its name, its freedoms, its mass, and what it is."""
    from linkwise import samples

    found = []
    for name in BUILT_IN:
        make = getattr(samples, name)
        model = make()
        about = (make.__doc__ or "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
        found.append({"name": name, "nv": model.nv, "mass": model.mass, "about": " ".join(about.split())})
    if options.json:
        print_json(found)
        return
    rows = [
        (each["name"], str(each["nv"]), number(each["mass"], 3), _short(each["about"].partition(";")[0]))
        for each in found
    ]
    print(table(("name", "nv", "kg", "what it is"), rows))
    print("\nlinkwise view NAME shows one; in Python it is lw.samples.NAME()")


def _short(text: str, most: int = 84) -> str:
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + " …"
