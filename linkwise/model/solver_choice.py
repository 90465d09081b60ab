"""The closure solver of a model, chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from linkwise.algorithms.closure_solvers import BY_NUMBERS, TRACED
from linkwise.errors import InputError, UnknownNameError
from linkwise.model.embedding import reference

if TYPE_CHECKING:
    from linkwise.model.model import Model

ModelT = TypeVar("ModelT", bound="Model")


def with_solver(model: ModelT, solver: str, independent: Sequence[str] | None, at: Any, t: float | None) -> ModelT:
    """A copy with another closure solver, which is tried at once; see :meth:`Model.with_closure_solver`."""
    if solver not in (*TRACED, *BY_NUMBERS):
        raise UnknownNameError("closure solver", solver, (*TRACED, *BY_NUMBERS))
    if solver == "embedding":
        chosen = replace(model, _closure_solver=solver, _closure_reference=reference(model, independent, at, t))
        chosen._trees.pivots()  # says so now if those named are not independent
        return chosen
    given = [name for name, x in (("independent", independent), ("at", at), ("t", t)) if x is not None]
    if given:
        raise InputError(
            f"the closure solver {solver!r} chooses no freedoms",
            got=", ".join(given),
            allowed='these are for "embedding"',
        )
    named = replace(model, _closure_solver=solver, _closure_reference=None)
    if solver == "branches":
        named._trees.closed(named.neutral().tolist(), [0.0] * model.nv, None)  # says so now if it cannot be
    return named
