"""The classical algorithms of one paper, run and counted: a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache

import numpy as np

from linkwise.classics.registry import ALGORITHMS, Algorithm, run
from linkwise.functions.counting import chain, count
from linkwise.joints import Joint, Revolute, Spherical
from linkwise.mechanism.mechanism import Mechanism
from linkwise.model.model import Model
from linkwise.papers.report_page import ReportPage, power

NAMES = {"inverse": "inverse_dynamics", "forward": "forward_dynamics", "mass matrix": "mass_matrix"}
HINGE = Revolute(axis=(0.0, 0.0, 1.0))


@cache
def chain_model(n: int, joint: Joint = HINGE) -> Model:
    """The generic chain that operations are counted on, as a model that computes."""
    mechanism: Mechanism = chain(n, joint)
    return Model(**{field.name: getattr(mechanism, field.name) for field in fields(mechanism) if field.init})


def error_of(algorithm: Algorithm) -> float:
    """Relative error of an algorithm against the model's compiled function on a chain of six links."""
    model = chain_model(6, Spherical() if algorithm.name == "armstrong" else HINGE)
    rng = np.random.default_rng(0)
    q, v, x = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    arguments = (q,) if algorithm.kind == "mass matrix" else (q, v, x)
    found = np.asarray(run(algorithm.name, model, *arguments), float)
    expected = np.asarray(getattr(model, NAMES[algorithm.kind])(*arguments))
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def algorithm_table(page: ReportPage, paper: str, others: Sequence[str] = ()) -> None:
    """All algorithms of a paper that the library has, each run and counted just now.

    Args:
        page: to write on.
        paper: its number.
        others: names of algorithms of other papers that this one treats too.
    """
    chosen = [a for a in ALGORITHMS.values() if a.paper == paper or a.name in others]
    rows: list[list[str | bool]] = []
    for a in chosen:
        error = error_of(a)
        counts = count(a.name, 6)
        where = a.equations if a.equations[0] in "§lt" else f"eq. {a.equations}"
        rows.append(
            [
                a.name,
                f"{a.paper} {where}",
                a.kind,
                f"O({a.order})",
                f"{counts.M} / {counts.A}",
                power(error),
                error < 1e-8,
            ]
        )
    page.table(
        ["algorithm", "printed at", "gives", "grows as", "M / A, n = 6", "error", ""],
        rows,
        "Each written as it is printed, run on a generic chain of six links (Armstrong's: ball joints, the others: "
        "hinges) and compared with the library's compiled function; operations counted in Denavit–Hartenberg frames. "
        "M: multiplications and divisions, A: additions and subtractions.",
    )
