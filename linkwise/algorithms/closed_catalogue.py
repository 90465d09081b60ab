"""The public functions of models with closures, as texts over any scalar; see :mod:`linkwise.algorithms.catalogue`.

Among them are the freedoms that closures leave: coordinates, velocities, and joint forces along them. A joint that
closes a loop has its freedoms like any other, though no place in q and v: its coordinates are those at which the joint
has the pose of frame b in frame a, its velocities u those of V = S u, and a force along them is the τ_a of Featherstone
2000 eq. 19: a wrench W on b and -W on a with S*W = τ_a, which the tree feels as J*W. O(n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms import closed_system
from linkwise.algorithms.catalogue import CATALOGUE, Columns, Text, Trees, instant
from linkwise.algorithms.equations import Between, Constraint, equations
from linkwise.algorithms.inverse_dynamics import external_force
from linkwise.algorithms.kinematics import Place, placed, velocities
from linkwise.algorithms.sweeps import only_at
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.from_joint import JointClosure
from linkwise.mechanism.closures.instances import ClosureFreedoms, freedoms_of_closures
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Rotation, Shift
from linkwise.spatial.vectors import Force, Motion

Freedoms = Sequence[ClosureFreedoms]


def closure_coordinates(tree: Tree, q: Flat, constraints: Sequence[Constraint], freedoms: Freedoms) -> list[Scalar]:
    """The coordinates of all closures that leave freedoms, one after the other."""
    return [x for _, _, _, _, own in _seen(tree, q, constraints, freedoms) for x in own]


def closure_velocities(
    tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], freedoms: Freedoms
) -> list[Scalar]:
    """Their velocities: u of V = S u, where V is the twist of b relative to a."""
    V = velocities(tree, q, v)

    def twist(place: Place) -> Motion:
        return Motion.zero() if place.link is None else place.phi(q).T @ V[place.link]

    found: list[Scalar] = []
    for a, b, kind, X, own in _seen(tree, q, constraints, freedoms):
        of_a, of_b = twist(a), twist(b)
        lin = X.R.transpose_times(of_a.lin + of_a.ang.cross(X.p))
        relative = of_b - Motion(X.R.transpose_times(of_a.ang), lin)
        found += [relative.dot(W) for W in kind.pushes(own)]
    return found


def closure_efforts(
    tree: Tree, q: Flat, forces: Flat, constraints: Sequence[Constraint], freedoms: Freedoms
) -> list[Scalar]:
    """The joint forces (nv) that forces along their freedoms amount to."""
    on: dict[int, tuple[Link, Force]] = {}

    def act(place: Place, f: Force) -> None:
        if place.link is not None:
            on_link = place.phi(q) @ f
            known = on.get(place.link.index)
            on[place.link.index] = place.link, on_link if known is None else known[1] + on_link

    given = iter(forces)
    for a, b, kind, X, own in _seen(tree, q, constraints, freedoms):
        W = Force.zero()
        for push in kind.pushes(own):
            W = W + push * next(given)
        act(b, W)
        act(a, -Shift(X.p).force_in(Rotation(X.R).force_in(W)))
    if not on:
        return [0.0] * tree.nv
    return external_force(tree, q, only_at(tree, list(on.values()), Force.zero()))


def _seen(
    tree: Tree, q: Flat, constraints: Sequence[Constraint], freedoms: Freedoms
) -> Iterator[tuple[Place, Place, JointClosure, RelativePose, list[Scalar]]]:
    """For each closure with freedoms its two places, its type, the pose of b in a, and its coordinates."""
    frames = placed(tree, q)
    for each in freedoms:
        constraint = constraints[each.number]
        assert isinstance(constraint, Between)
        assert isinstance(constraint.type, JointClosure)
        a, b = (place.within(frames, q) for place in (constraint.a, constraint.b))
        X = RelativePose(b.R, b.p).seen_from(RelativePose(a.R, a.p))
        yield constraint.a, constraint.b, constraint.type, X, constraint.type.coordinates(X, each.closure.centre)


def _still(t: Trees, v: Flat | None) -> Flat:
    return [0.0] * t.fast.nv if v is None else v


def _said(function: Callable[..., object], arrays: int) -> Callable[..., object]:
    """The text of a function of so many arrays, of all constraints, and of the time."""

    def text(t: Trees, *given: Any) -> object:
        time, *active = given[arrays:]
        return function(t.fast, *given[:arrays], t.constraints(t.fast, *active), instant(time))

    return text


def _left_free(function: Callable[..., object]) -> Callable[..., object]:
    """The text of a function of the freedoms that closures leave."""

    def text(t: Trees, *arrays: Flat) -> object:
        return function(t.fast, *arrays, t.constraints(t.fast), freedoms_of_closures(t.mechanism.closures))

    return text


def _jacobian(t: Trees, q: Flat, time: Flat | None, v: Flat | None) -> object:
    rows = closed_system.constraint_jacobian(t.fast, q, _still(t, v), t.constraints(t.fast), instant(time))
    return rows or np.empty((0, t.fast.nv), object)


def _efforts(t: Trees, q: Flat, time: Flat | None, v: Flat | None, multipliers: Flat) -> object:
    constraints = t.constraints(t.fast)
    return closed_system.constraint_efforts(t.fast, q, _still(t, v), constraints, instant(time), multipliers)


def _forces(
    t: Trees, q: Flat, v: Flat, tau: Flat, f_ext: Flat | None, time: Flat | None, active: Flat | None
) -> object:
    forces = t.link_forces(f_ext, t.fast)
    by = t.closed(q, v, time, active=active, closed=True)
    found = closed_system.constraint_forces(by, t.fast, q, v, tau, forces)
    return found if found.wrenches else found._replace(wrenches=np.empty((0, 6), object))


def _impulse(t: Trees, q: Flat, v: Flat, time: Flat | None, active: Flat | None) -> closed_system.Impulse:
    return closed_system.impulse(t.closed(q, v, time, active=active), t.fast, v)


def _closing_step(t: Trees, q: Flat, time: Flat | None, active: Flat | None) -> object:
    places = [closed_system.places_only(constraint) for constraint in t.constraints(t.fast, active)]
    return closed_system.closing_step(t.closed(q, _still(t, None), time, places), t.fast, q)


def _tangent_part(t: Trees, q: Flat, x: Flat, time: Flat | None, active: Flat | None) -> object:
    by, still = (t.closed(q, v, time, active=active) for v in (x, _still(t, None)))
    return closed_system.tangent_part(by, still, t.fast, x)


def _constraint_push(t: Trees, q: Flat, multipliers: Flat, time: Flat | None, active: Flat | None) -> object:
    constraints = t.constraints(t.fast, active)
    return closed_system.constraint_efforts(t.fast, q, _still(t, None), constraints, instant(time), multipliers)


def _wrenches(t: Trees, q: Flat, v: Flat, multipliers: Flat, time: Flat | None) -> object:
    closures, _ = equations(t.fast, q, v, t.constraints(t.fast), instant(time))
    return closed_system.wrenches(closures, multipliers)


CLOSED: dict[str, Text] = {
    "closure_error": Text(("q",), _said(closed_system.closure_error, 1), ("t", "active")),
    "closure_rate": Text(("q", "v"), _said(closed_system.closure_rate, 2), ("t", "active"), method="constraints.rate"),
    "constraint_bias": Text(("q", "v"), _said(closed_system.constraint_bias, 2), ("t",), method="constraints.bias"),
    "constraint_jacobian": Text(
        ("q",), _jacobian, ("t", "v"), Columns(("multipliers",), _efforts, rows=True), method="constraints.jacobian"
    ),
    "constraint_forces": Text(
        ("q", "v", "tau"), _forces, ("f_ext", "t", "active"), result=closed_system.ConstraintForces
    ),
    "project_velocity": Text(
        ("q", "v"),
        lambda t, q, v, time, active: _impulse(t, q, v, time, active).v,
        ("t", "active"),
        method="constraints.project_velocity",
    ),
    "project_configuration": Text(("q",), _closing_step, ("t", "active"), method="constraints.project_configuration"),
    "impulse": Text(("q", "v"), _impulse, ("t", "active"), result=closed_system.Impulse, method="constraints.impulse"),
    # Of the freedoms of all closures that have some, one after the other.
    "closure_coordinates": Text(("q",), _left_free(closure_coordinates), method="constraints.coordinates"),
    "closure_velocities": Text(("q", "v"), _left_free(closure_velocities), method="constraints.velocities"),
    "closure_efforts": Text(("q", "along_closures"), _left_free(closure_efforts), method="constraints.efforts"),
    # Parts of others, not public.
    "tangent_part": Text(("q", "x"), _tangent_part, ("t", "active")),
    "constraint_push": Text(("q", "multipliers"), _constraint_push, ("t", "active")),
    "correction": Text(
        ("q", "multipliers"),
        lambda t, q, x, time, active: t.closed(q, _still(t, None), time, active=active).held(x)[1],
        ("t", "active"),
    ),
    "held": Text(("q", "v", "vdot", "multipliers"), _said(closed_system.held, 4), ("t",), result=closed_system.Held),
    "closure_wrenches": Text(("q", "v", "multipliers"), _wrenches, ("t",)),
}
"""Functions of models that have closures."""

EVERY = {**CATALOGUE, **CLOSED}
"""All functions."""
