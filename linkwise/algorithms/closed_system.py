"""Constraints of a closed system, and the forces that hold them: the texts over :class:`Constrained`.

Which way the multipliers are found is the model's choice (:mod:`linkwise.algorithms.closure_solvers`); everything here
is the same for all of them.

Constraints can be released and attached without another program: each has a number, 1 in force and 0 released. The
number multiplies the residuals, so everything that follows from them (rates, rows of J_c, bias) carries it too. A
released constraint has rows of zeros, and rows of zeros have multipliers of zero
(:mod:`linkwise.algorithms.factors`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from linkwise.algorithms.configuration import integrate
from linkwise.algorithms.constrained import ClosureSolver
from linkwise.algorithms.equations import Between, Constraint, Equations, equations, joints_of
from linkwise.algorithms.inverse_dynamics import Forces, external_force, needed_forces
from linkwise.algorithms.kinematics import placed
from linkwise.algorithms.sweeps import each, elementwise, generalized, only_at
from linkwise.dataclass import replace
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.constraint import Closure, Relation
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot
from linkwise.spatial.vectors import Force, weighted_sum


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
            a, b = constraint.a.within(frames, q), constraint.b.within(frames, q)
            errors += constraint.type.residual(RelativePose(b.R, b.p).seen_from(RelativePose(a.R, a.p)), t)
        else:
            own = [x for _, joint in joints_of(tree, constraint) for x in joint.coordinates(q)]
            errors += constraint.type.residual(own, t)
    return errors


def closure_rate(tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar) -> list[Scalar]:
    """ė, and the residuals of equations between rates. O(n)."""
    return [x for e in equations(tree, q, v, constraints, t)[0] for x in e.rate]


def constraint_bias(tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar) -> list[Scalar]:
    """Bias of the constraints: J_c v̇ is its opposite. O(n)."""
    return [x for e in equations(tree, q, v, constraints, t)[0] for x in e.bias]


def constraint_jacobian(tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar) -> Matrix:
    """J_c, m × nv. O(n) for each row."""
    return equations(tree, q, v, constraints, t)[1].generalized(tree, q)


def constraint_efforts(
    tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar, multipliers: Flat
) -> list[Scalar]:
    """J_c*λ (nv) without the matrix. O(n)."""
    forces: dict[int, Force] = {}
    efforts: dict[int, list[Scalar]] = {}
    closures = equations(tree, q, v, constraints, t)[0]
    most = max((len(axes) for e in closures for _, axes in e.efforts), default=0)
    start = 0
    for e in closures:
        own = multipliers[start : start + e.count]
        for link, units in e.forces:
            force = weighted_sum(units, own, Force.zero())
            forces[link.index] = forces[link.index] + force if link.index in forces else force
        for link, axes in e.efforts:
            total = efforts.setdefault(link.index, [0.0] * most)
            total[: len(axes)] = [a + dot(axis, own) for a, axis in zip(total, axes, strict=False)]
        start += e.count
    on_links = only_at(tree, [(tree.links[index], force) for index, force in forces.items()], Force.zero())
    pulled = external_force(tree, q, on_links)
    if not efforts:
        return pulled
    on_axes = only_at(tree, [(tree.links[index], total) for index, total in efforts.items()], [0.0] * most)
    along = each(tree, lambda link: [*on_axes[link], *[0.0] * link.joint.nv][: link.joint.nv])
    return elementwise(tree, lambda a, b: a + b, pulled, generalized(tree, along))


def constrained_accelerations(
    by: ClosureSolver, tree: Tree, q: Flat, v: Flat, tau: Flat, f_ext: Forces, closing_rate: float = 0.0
) -> list[Scalar]:
    """v̇ under the constraints; with a ``closing_rate`` a (1/s), ë = -2a ė - a²e instead of zero (Baumgarte 1972).

    For rates, their first derivative is -a times their residual.
    """
    if closing_rate:
        by.push(_closing(by.equations, closing_rate))
    return by.accelerations(tau, needed_forces(tree, q, v, None, f_ext))


def _closing(closures: Sequence[Equations], rate: float) -> list[Scalar]:
    """Terms added to J_c v̇."""
    pushed: list[Scalar] = []
    for e in closures:
        places = len(e.residual)
        pushed += [-(x_dot * (2.0 * rate)) - x * rate**2 for x, x_dot in zip(e.residual, e.rate, strict=False)]
        pushed += [-(x * rate) for x in e.rate[places:]]
    return pushed


def constraint_forces(by: ClosureSolver, tree: Tree, q: Flat, v: Flat, tau: Flat, f_ext: Forces) -> ConstraintForces:
    """λ of least norm, and the wrenches that it amounts to."""
    _, multipliers = by.solve(tau, needed_forces(tree, q, v, None, f_ext))
    return ConstraintForces(multipliers, wrenches(by.equations, multipliers))


def wrenches(closures: Sequence[Equations], multipliers: Flat) -> Matrix:
    """[moment, force] on frame b of each constraint, at its origin and in its axes; zero for relations of joints."""
    found, start = [], 0
    for e in closures:
        found.append(list(weighted_sum(e.wrenches, multipliers[start : start + e.count], Force.zero())))
        start += e.count
    return found


def impulse(by: ClosureSolver, tree: Tree, v: Flat) -> Impulse:
    """v + 𝓜⁻¹J_c*P with the least impulses P for which J_c v and its like vanish."""
    change, impulses = by.held([-x for e in by.equations for x in e.rate])
    return Impulse(elementwise(tree, lambda a, b: a + b, v, change), impulses)


def tangent_part(by: ClosureSolver, still: ClosureSolver, tree: Tree, x: Flat) -> list[Scalar]:
    """x - 𝓜⁻¹J_c*Λ⁺J_c x: of a small change of velocity or place, what the constraints leave.

    ``by`` is the system moving with x and ``still`` at rest: equations that depend on time have a rate there too.
    """
    moving = [
        a - b for e, f in zip(by.equations, still.equations, strict=True) for a, b in zip(e.rate, f.rate, strict=True)
    ]
    change = by.project([-a for a in moving])
    return elementwise(tree, lambda a, b: a + b, x, change)


def closing_step(by: ClosureSolver, tree: Tree, q: Flat) -> list[Scalar]:
    """q ⊕ -𝓜⁻¹J_c*Λ⁺e: one step of Newton's method towards closure, the shortest in the norm of kinetic energy."""
    change = by.project([-x for e in by.equations for x in e.residual])
    return integrate(tree, q, change)


class ConstraintInPart(Closure, Relation):
    """A closure or relation whose residuals are multiplied by a number, or without its equations between rates."""

    equations: tuple[str, ...] = ()
    rate_equations: tuple[str, ...] = ()
    joins_origins = False
    time_dependent = False

    def __init__(self, whole: Closure | Relation, active: Scalar = None, *, rates: bool = True) -> None:
        self.whole, self.active = whole, active
        self.equations, self.rate_equations = whole.equations, whole.rate_equations if rates else ()
        self.joins_origins = rates and isinstance(whole, Closure) and whole.joins_origins

    def residual(self, *at: Any) -> list[Scalar]:
        """Those of the whole, each times the number."""
        found = self.whole.residual(*at)
        return found if self.active is None else [e * self.active for e in found]

    def rate_residual(self, *at: Any) -> list[Scalar]:
        """Those of the whole, each times the number."""
        found = self.whole.rate_residual(*at) if self.rate_equations else []
        return found if self.active is None else [g * self.active for g in found]


def places_only(constraint: Constraint) -> Constraint:
    """A constraint without its equations between rates."""
    part: Any = ConstraintInPart(constraint.type, rates=False)
    return replace(constraint, type=part) if constraint.type.rate_equations else constraint


def switched(constraint: Constraint, active: Scalar) -> Constraint:
    """A constraint that holds where ``active`` is one, and asks for nothing where it is zero."""
    part: Any = ConstraintInPart(constraint.type, active)
    return replace(constraint, type=part)


def held(
    tree: Tree,
    q: Flat,
    v: Flat,
    vdot: Flat,
    multipliers: Flat,
    constraints: Sequence[Constraint],
    t: Scalar,
) -> Held:
    """Terms of constraints in the equations of motion: J_c*λ, and J_c v̇ + bias."""
    closures, pulls = equations(tree, q, v, constraints, t)
    J_c = pulls.generalized(tree, q)
    bias = [x for e in closures for x in e.bias]
    efforts = [dot(column, multipliers) for column in zip(*J_c, strict=True)]
    return Held(efforts, [x + dot(row, vdot) for x, row in zip(bias, J_c, strict=True)])
