"""``linkwise diff``: do two files describe the same mechanism?"""

from __future__ import annotations

from argparse import Namespace

from linkwise.cli.arguments import load_model
from linkwise.cli.printing import print_json
from linkwise.errors import InputError
from linkwise.files.compare import compare


def run(options: Namespace) -> int:
    """Print what differs; the status is 1 where something does."""
    if options.states < 1 or not options.tolerance > 0.0:
        raise InputError("--states and --tolerance must be positive", got=f"{options.states}, {options.tolerance}")
    a = load_model(options)
    # What is said about reading is about both; a file that is finished takes none of it.
    finished = str(options.other).endswith(".lw.json")
    other = {"model": options.other} | (
        {"floating": False, "lock": [], "loops": None, "no_mimic": False} if finished else {}
    )
    b = load_model(Namespace(**{**vars(options), **other}))
    found = compare(a, b, states=options.states, tolerance=options.tolerance)
    if options.json:
        print_json(
            {"same": found.same, "differences": found.differences, "renamed": found.renamed, "largest": found.largest}
        )
        return int(not found.same)
    for each in found.differences:
        print(each)
    if found.renamed:
        pairs = [f"{old} is {new}" for old, new in found.renamed.items()]
        print(f"joints with other names: {', '.join(pairs[:10])}{', …' if len(pairs) > 10 else ''}")
    if found.same:
        print(
            "the same mechanism"
            + (f"; equations of motion within {found.largest:.1g}" if found.largest is not None else "")
        )
    return int(not found.same)
