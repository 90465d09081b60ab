"""What the constraints of a closed system ask of a state, and what holds them: the texts over :class:`Constrained`.

Which way the multipliers are found is the model's choice (:mod:`linkwise.algorithms.closure_solvers`); everything here
is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from linkwise.algorithms.closure_solvers import ClosureSolver
from linkwise.algorithms.equations import Between, Constraint, Equations, equations
from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.kinematics import placed
from linkwise.algorithms.sweeps import elementwise
from linkwise.model.closures.base import RelativePose
from linkwise.model.tree import Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force

Flat = Sequence[Scalar]


class ConstraintForces(NamedTuple):
    """The multipliers λ (m) of all equations, and the wrench (n_closures, 6) that each closure puts on its frame b."""

    multipliers: Any
    wrenches: Any


class Impulse(NamedTuple):
    """The velocity v (nv) after closures have taken hold, and the impulses (m) of their equations."""

    v: Any
    impulses: Any


class Held(NamedTuple):
    """J_c*λ (nv), and ë of all equations (of those between rates, their first derivative) for a given v̇ (m)."""

    efforts: Any
    accelerations: Any


def closure_error(tree: Tree, q: Flat, constraints: Sequence[Constraint], t: Scalar) -> list[Scalar]:
    """e(q, t) of all equations between places. O(n)."""
    frames = placed(tree, q)
    errors: list[Scalar] = []
    for constraint in constraints:
        if isinstance(constraint, Between):
            a, b = constraint.a.within(frames), constraint.b.within(frames)
            errors += constraint.type.residual(RelativePose(b.R, b.p).seen_from(RelativePose(a.R, a.p)), t)
        else:
            errors += constraint.type.residual(constraint.coordinates(tree.links, q), t)
    return errors


def closure_rate(tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar) -> list[Scalar]:
    """ė, and the residuals of equations between rates. O(n)."""
    return [x for e in equations(tree, q, v, constraints, t)[0] for x in e.rate]


def constraint_bias(tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar) -> list[Scalar]:
    """What J_c v̇ is the opposite of. O(n)."""
    return [x for e in equations(tree, q, v, constraints, t)[0] for x in e.bias]


def constraint_jacobian(
    tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar
) -> list[list[Scalar]]:
    """J_c, m × nv. O(n) for each row."""
    return equations(tree, q, v, constraints, t)[1].generalized(tree, q)


def constrained_accelerations(by: ClosureSolver, tree: Tree, q: Flat, v: Flat, tau: Flat, f_ext: Forces) -> list[Scalar]:
    """v̇ under the constraints."""
    return by.solve(tau, needed_forces(tree, q, v, None, f_ext))[0]


def constraint_forces(
    by: ClosureSolver, tree: Tree, q: Flat, v: Flat, tau: Flat, f_ext: Forces
) -> ConstraintForces:
    """λ of least norm, and the wrenches that it amounts to."""
    _, multipliers = by.solve(tau, needed_forces(tree, q, v, None, f_ext))
    return ConstraintForces(multipliers, wrenches(by.equations, multipliers))


def wrenches(each: Sequence[Equations], multipliers: Flat) -> list[list[Scalar]]:
    """[moment, force] on frame b of each constraint, at its origin and in its axes; zero for relations of joints."""
    found, start = [], 0
    for e in each:
        whole = Force.zero()
        for unit, multiplier in zip(e.wrenches, multipliers[start : start + e.count], strict=True):
            whole = whole + unit * multiplier
        start += e.count
        found.append(list(whole))
    return found


def impulse(by: ClosureSolver, tree: Tree, v: Flat) -> Impulse:
    """v + 𝓜⁻¹J_c*P with the least impulses P for which J_c v and its like vanish."""
    change, impulses = by.held([-x for e in by.equations for x in e.rate])
    return Impulse(elementwise(tree, lambda a, b: a + b, v, change), impulses)


def held(
    tree: Tree,
    q: Flat,
    v: Flat,
    vdot: Flat,
    multipliers: Flat,
    constraints: Sequence[Constraint],
    t: Scalar,
) -> Held:
    """What enters the equations of motion from constraints: J_c*λ, and J_c v̇ + bias."""
    each, pulls = equations(tree, q, v, constraints, t)
    J_c = pulls.generalized(tree, q)
    efforts: list[Scalar] = [0.0] * tree.nv
    accelerations = [x for e in each for x in e.bias]
    for r, row in enumerate(J_c):
        for k, entry in enumerate(row):
            efforts[k] = efforts[k] + entry * multipliers[r]
            accelerations[r] = accelerations[r] + entry * vdot[k]
    return Held(efforts, accelerations)
