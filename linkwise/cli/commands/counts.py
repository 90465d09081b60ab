"""``linkwise counts``: operations of a model's functions, or of the classical algorithms."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from linkwise.cli.arguments import chosen_function, load_model
from linkwise.cli.printing import print_json, table
from linkwise.errors import InputError
from linkwise.trace.counts import Counts

USUAL = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse", "bias_force", "gravity_force",
    "coriolis_matrix", "poses", "jacobian",
)  # fmt: skip

MOST_LINKS = 200


def run(options: Namespace) -> None:
    """Count and print."""
    found = _of_chain(options) if options.chain is not None else _of_model(options)
    if options.json:
        print_json({name: _facts(counts) for name, counts in found.items()})
        return
    rows = [
        [name, str(c.M), str(c.A), str(c.trig), ", ".join(f"{n} {op}" for op, n in sorted(c.other.items()))]
        for name, c in found.items()
    ]
    print(table(["function", "M", "A", "sin/cos", "other"], rows))
    print("M: multiplications and divisions, A: additions and subtractions")


def _of_model(options: Namespace) -> dict[str, Counts]:
    if not options.names:
        raise InputError("counts needs a model, or --chain N", do="see linkwise counts --help")
    options.model, *names = options.names
    model = load_model(options)
    return {name: chosen_function(model, name, options.body).counts for name in names or USUAL}


def _of_chain(options: Namespace) -> dict[str, Counts]:
    from linkwise.classics.registry import ALGORITHMS
    from linkwise.functions.counting import OWN, check_name, count

    for name in options.names:
        check_name(name)
    if options.chain > MOST_LINKS:
        raise InputError(
            "--chain is too long to count",
            got=str(options.chain),
            allowed=f"1 to {MOST_LINKS}",
            do="count two or three shorter chains: the counts are polynomials in the number of links",
        )
    names = options.names or [*OWN, *(name for name in ALGORITHMS if name != "armstrong")]
    return {name: count(name, options.chain, options.frames) for name in names}


def _facts(counts: Counts) -> dict[str, Any]:
    return {"M": counts.M, "A": counts.A, "mul": counts.mul, "div": counts.div, "trig": counts.trig, **counts.other}
