"""Derivatives of a solved step: from the equations that its solution obeys, not through what has solved them.

The velocity v⁺ and the impulses λ of a step obey

    r = h(τ - c) + J*λ - 𝓜(v⁺ - v) = 0,    F(λ, Jv⁺) = 0,

with F the cones of :mod:`linkwise.contact.cones`. However they were found, they are held here, and one Newton step is
added to them: its value is zero, and its derivative that of the solution. What is differentiated is r, an inverse
dynamics, and J v⁺, velocities; articulated inertias, Λ, the matrix of the small system and its factors are held values.
So a derivative in reverse mode costs about an inverse dynamics more, and loops of the solver are never gone back
through. At the kinks of F, contacts that are about to part, stick or slip, derivatives are those of one side.

Jacobians are multiplied together at waypoints: r, its innovations, velocities along the pulls, impulses, velocities.
There ∂r is written with the matrices of the linearised inverse dynamics, which take a third of the multiplications that
directions take which are carried through r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from linkwise.algorithms.articulated import Axis, accelerate, innovate
from linkwise.algorithms.configuration import carry_rates, difference
from linkwise.algorithms.factors import Multipliers
from linkwise.algorithms.inverse_dynamics import Forces, external_force, needed_forces
from linkwise.algorithms.linearized_inverse import linearized_inverse
from linkwise.algorithms.pulls import of_freedoms, own_efforts, without_rotors
from linkwise.algorithms.sweeps import Field, each, inward
from linkwise.contact.cones import Response, changed
from linkwise.mechanism.tree import Link
from linkwise.spatial.scalar import Scalar, has_waypoints, hold, is_zero, waypoint
from linkwise.spatial.vectors import Force

if TYPE_CHECKING:
    from linkwise.contact.step import MiddleOfStep

Flat = Sequence[Scalar]


class Solution:
    """Equations of a step about its middle, with all held that solves them.

    Args:
        middle: of the step.
        tau: joint forces.
        f_ext: forces on links.
        is_known: whether the constants of the mechanism are numbers, by which nothing is differentiated.
    """

    def __init__(self, middle: MiddleOfStep, tau: Flat, f_ext: Forces, is_known: bool = False) -> None:
        self.middle, self.tau, self.f_ext = middle, tau, f_ext
        self.tree = middle.tree
        at_once = is_zero(middle.h)
        self.span = 1.0 if at_once else middle.h  # s; of an impact anything
        self.pulling = self.tree.without_gravity() if at_once else self.tree
        self.q = [hold(x) for x in middle.q]
        self.axes = each(self.tree, lambda link: [_held_axis(axis) for axis in middle.axes[link]])
        self.eps = each(self.tree, lambda link: [[hold(e) for e in own] for own in middle.eps[link]])
        if middle.holding.pulls.count:
            self.across = [[hold(x) for x in row] for row in middle.holding.across]
            block = [[hold(x) for x in row] for row in middle.holding.block]
            self.factored = Multipliers(block, sure=not middle.holding.closes)
        simple = is_known and not (self.tree.has_mimics or self.tree.has_modes)
        self.of_matrices = simple and any(has_waypoints(x) for x in middle.q)
        """Whether derivatives of r are written with the matrices of the linearised inverse dynamics."""
        bare = (replace(link, armature=(0.0,) * len(link.armature)) for link in self.pulling.links)
        self.bare = replace(self.pulling, links=tuple(bare))

    def velocity(self, found: Flat, mean: Flat, pushed: Flat, part: float) -> list[Scalar]:
        """A velocity reached with impulses P along all pulls after a part of the step, with its derivative.

        Args:
            found: the velocity.
            mean: at which the bias force is taken.
            pushed: P; those that hold are unknowns, and held.
            part: of the change in the whole step.
        """
        nu, missing = self._free(found, mean, pushed, part)
        _, along = self._along_pulls(nu)
        held = self._held_back(missing, along, None)
        return waypoint([hold(v) + part * dv for v, dv in zip(found, self._moved(nu, None, held), strict=True)])

    def of_cones(
        self, v: Flat, mean: Flat, pushed: Flat, response: Response, V: Flat, impulses: Flat, smoothing: float
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """The velocity, the velocities along the pulls and the impulses of a solution, with their derivatives.

        Args:
            v: at the end of the step, in the axes of the middle.
            mean: at which the bias force is taken.
            pushed: impulses along all pulls: rows of the cones times held impulses, and those that hold, held.
            response: the cones.
            V: velocities along the pulls.
            impulses: of all rows.
            smoothing: see :class:`~linkwise.mechanism.contacts.ContactRules`.
        """
        nu, missing = self._free(v, mean, pushed, 1.0)
        gained, along = self._along_pulls(nu)
        turned = [changed(a + b) for a, b in zip(self.carried, self.middle.before, strict=False)]
        total = waypoint([a + b for a, b in zip(turned, gained, strict=True)])
        for row, x in zip(self.across, self._held_back(missing, along, None), strict=True) if missing else ():
            total = [a + c * x for a, c in zip(total, row, strict=True)]
        held_V, held_impulses = [hold(x) for x in V], [hold(x) for x in impulses]
        change, V_change, y = response.changes(held_V, held_impulses, total, smoothing)
        held = self._held_back(missing, along, y)
        return (
            waypoint([hold(a) + b for a, b in zip(v, self._moved(nu, y, held), strict=True)]),
            [a + b for a, b in zip(held_V, V_change, strict=True)],
            [a + b for a, b in zip(held_impulses, change, strict=True)],
        )

    def _free(self, found: Flat, mean: Flat, pushed: Flat, part: float) -> tuple[Field[list[Scalar]], list[Scalar]]:
        """The innovations of the changes of r, at held velocity, and the changes of what closures miss."""
        m = self.middle
        x = [(hold(a) - b) * (1.0 / part) for a, b in zip(found, m.v, strict=True)]
        r = self._by_matrices(mean, x, pushed) if self.of_matrices else self._imbalance(mean, x, pushed)
        change = self._passed(each(self.tree, lambda link: [changed(a) for a in r[link]]))
        nu = self._passed(innovate(self.tree, self.q, self.axes, lambda link: change[link], None))
        self.carried = m.pulls.rates(self.tree, m.q, x)
        count = len(m.before)
        return nu, [changed(a - b) for a, b in zip(m.holding.missing, self.carried[count:], strict=True)]

    def _passed(self, field: Field[Any]) -> Field[list[Scalar]]:
        """Numbers of all links as a waypoint."""
        numbers = iter(waypoint([x for link in self.tree for x in field[link]]))
        return each(self.tree, lambda link: [next(numbers) for _ in field[link]])

    def _acting(self, pushed: Flat) -> Field[Force]:
        """Forces on links: those from outside, and impulses along the pulls as forces."""
        pulls, h = self.middle.pulls, self.span

        def on_link(link: Link) -> Force:
            total = Force.zero() if self.f_ext is None else self.f_ext[link]
            for force, p in zip(pulls.on_link(link), pushed, strict=True):
                total = total + force * (p / h)
            return total

        return each(self.tree, on_link)

    def _imbalance(self, mean: Flat, x: Flat, pushed: Flat) -> Field[list[Scalar]]:
        """The h(τ - c) + J*P - 𝓜x of each axis, N s or N m s."""
        m, h = self.middle, self.span
        turning = carry_rates(m.tree, mean)
        vdot = [a + b / h for a, b in zip(turning, x, strict=True)]
        efforts = without_rotors(m.bare, self.tau, turning)
        needed = needed_forces(self.pulling, m.q, mean, vdot, self._acting(pushed))

        def balance(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
            f = outboard + needed[link]
            own = [tau - s.dot(f) for s, tau in zip(link.S(m.q), own_efforts(link, efforts), strict=True)]
            return link.phi(m.q) @ f, self._pushed(link, own, x, pushed)

        return inward(self.tree, balance, Force.zero())

    def _pushed(self, link: Link, efforts: Flat, x: Flat, pushed: Flat) -> list[Scalar]:
        """The h times efforts of a link's axes, less what their own inertia takes, and what is pushed along them."""
        left = []
        columns = zip(efforts, link.armature, link.rates(x), self.middle.pulls.on_axes(link), strict=True)
        for own, armature, speed, along in columns:
            push: Scalar = self.span * own - armature * speed
            for effort, p in zip(along, pushed, strict=True):
                push = push + effort * p
            left.append(push)
        return left

    def _by_matrices(self, mean: Flat, x: Flat, pushed: Flat) -> Field[list[Scalar]]:
        """The same, with its derivative by the matrices of the linearised inverse dynamics, which are held."""
        m, h = self.middle, self.span
        turning = carry_rates(m.tree, mean)
        vdot = [a + b / h for a, b in zip(turning, x, strict=True)]
        forces = self._acting(pushed)
        held = each(self.tree, lambda link: Force.of([hold(a) for a in forces[link]]))
        at = (self.q, [hold(a) for a in mean], [hold(a) for a in vdot])
        lin = linearized_inverse(self.bare, *at, held)
        moved = (difference(self.tree, self.q, m.q), [changed(a) for a in mean], [changed(a) for a in vdot])
        change = self._passed(each(self.tree, lambda link: [changed(a) for a in forces[link]]))
        outside = external_force(self.tree, self.q, each(self.tree, lambda link: Force.of(change[link])))
        efforts = []
        for i, tau in enumerate(without_rotors(m.bare, self.tau, turning)):
            needed = hold(lin.tau[i]) - outside[i]
            for matrix, numbers in zip((lin.dq, lin.dv, lin.dvdot), moved, strict=True):
                for entry, change in zip(matrix[i], numbers, strict=True):
                    needed = needed + hold(entry) * change
            efforts.append(tau - needed)
        return each(self.tree, lambda link: self._pushed(link, own_efforts(link, efforts), x, pushed))

    def _along_pulls(self, nu: Field[list[Scalar]]) -> tuple[list[Scalar], list[Scalar]]:
        """ε*ν along the pulls of contacts and joints, and along those that hold."""
        total: list[Scalar] = [0.0] * self.middle.pulls.count
        for link in self.tree:
            for own, x in zip(self.eps[link], nu[link], strict=True):
                total = [a + e * x for a, e in zip(total, own, strict=True)]
        count = len(self.middle.before)
        return total[:count], total[count:]

    def _held_back(self, missing: Flat, along: Flat, y: Flat | None) -> list[Scalar]:
        """Changes of the impulses that hold, for changes y along the other pulls."""
        if not missing:
            return []
        right = [a - b for a, b in zip(missing, along, strict=True)]
        if y is not None:
            for k, row in enumerate(self.across):
                for c, x in zip(row, y, strict=True):
                    right[k] = right[k] - c * x
        return self.factored.solve(right)

    def _moved(self, nu: Field[list[Scalar]], y: Flat | None, held: Flat) -> list[Scalar]:
        """[I - HψK]*(ν + D⁻¹εy)."""
        pushed = [*([0.0] * len(self.middle.before) if y is None else y), *held]

        def both(link: Link) -> list[Scalar]:
            found = []
            for axis, own, x in zip(self.axes[link], self.eps[link], nu[link], strict=True):
                push: Scalar = 0.0
                for e, p in zip(own, pushed, strict=True):
                    push = push + e * p
                found.append(x + axis.d_inverse * push)
            return found

        return of_freedoms(self.tree, accelerate(self.tree, self.q, self.axes, each(self.tree, both)))


def _held_axis(axis: Axis) -> Axis:
    s, g = type(axis.s).of([hold(a) for a in axis.s]), type(axis.g).of([hold(a) for a in axis.g])
    return Axis(s, hold(axis.d_inverse), g)
