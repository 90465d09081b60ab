"""The closure solver of a model, chosen by name; for "embedding", where its independent freedoms are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from linkwise.algorithms.closure_solvers import BY_NUMBERS, TRACED
from linkwise.array_types import Array, MaybeArray
from linkwise.errors import ClosureError, InputError, UnknownNameError
from linkwise.mechanism.closures.instances import Reference
from linkwise.model.null_space import independent_rows

if TYPE_CHECKING:
    from linkwise.model.model import Model


ModelT = TypeVar("ModelT", bound="Model")


def with_solver(
    model: ModelT, solver: str, independent: Sequence[str] | None, at: MaybeArray, t: float | None
) -> ModelT:
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


_GUESSES = 4
"""Configurations around the neutral one that are looked at, lest that be singular."""


def reference(model: Model, independent: Sequence[str] | None, at: MaybeArray, t: float | None) -> Reference:
    """A closed configuration, the one given or a generic one, and the places in v of the freedoms that are named."""
    if not model.closures:
        raise InputError(
            'the closure solver "embedding" needs something that closes the model',
            got="a model without closures",
            do="add the closures first",
        )
    guesses = list(_around_neutral(model)) if at is None else [np.asarray(at, float)]
    found = [model.assemble(guesses[0], t=t)]
    for guess in guesses[1:]:
        try:
            found.append(model.assemble(guess, t=t))
        except ClosureError:
            continue
    ranks = [len(independent_rows(model.constraints.jacobian(q, t=t))) for q in found]
    q, count = found[ranks.index(max(ranks))], model.nv - max(ranks)
    places = () if independent is None else tuple(model._places_in_v(independent))
    if independent is not None and len(places) != count:
        raise InputError(
            "the joints named have another number of freedoms than the closed mechanism",
            got=f"{len(places)} of {', '.join(map(repr, independent))}",
            allowed=f"{count}, as those of {', '.join(map(repr, model.freedoms(q, t=t).names)) or 'none'}",
        )
    return Reference(tuple(q.tolist()), 0.0 if t is None else float(t), places)


def _around_neutral(model: Model) -> Iterator[Array]:
    rng = np.random.default_rng(0)
    yield model.neutral()
    for _ in range(_GUESSES):
        yield model.integrate(model.neutral(), 0.3 * rng.normal(size=model.nv))
