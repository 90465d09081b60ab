"""One step in time with contacts: Moreau's midpoint rule, with exact Coulomb friction.

Everything is evaluated in the middle of the step, q_m = q ⊕ (h/2)v, and the velocity jumps there (Moreau 1988):

    𝓜(q_m)(v⁺ - v) = h(τ - c(q_m, v̄)) + J*λ,    q⁺ = q_m ⊕ (h/2)v⁺,

with impulses λ that obey Signorini's condition and Coulomb's law for the velocities w⁺ at the step's end: a contact
whose gap would be g₀ at the start (the gap in the middle less h/2 of its rate) lets its surfaces approach by no more
than it, w⁺ + g₀/h ≥ 0, with one slope on both sides of g₀ = 0. Sliding straight on (friction is against the slip at
the end, of first order where that turns) and rolling are of second order, and so is pivoting: where a point stands
still while its body turns, rows of the middle see it moving. By how much its velocity has changed since the start, a =
w_m - w, is known from the points at the start; the gap there is g₀ + (h/4)a, the one at the end is closed and stays so
for w⁺ = -g₀/h - (5/4)a. Where surfaces *meet* within a step, the mean of v and v⁺ would carry them into each other;
there the step goes on with v⁺ as far as needed, q⁺ = q_m ⊕ h((1 - s/2)v⁺ - (1 - s)v/2), s = 1 elsewhere, so that gaps
stay closed. What flies is shifted out of overlaps that are left at the end (:mod:`linkwise.contact.lifting`).

Velocities of a joint without constraint are written in its own turning axes. They are carried along, v → R*v, instead
of being integrated, so that what spins does not gain speed (:meth:`linkwise.joints.base.Joint.carried`). The bias force
c is taken at a mean velocity v̄, found with the last impulses: ``passes`` of it. Steps of bodies that nothing but
contact couples create no energy: :mod:`linkwise.contact.passivity`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from linkwise.algorithms.articulated import Axis, accelerate, articulate, innovate, pull
from linkwise.algorithms.configuration import carried, carry, carry_rates
from linkwise.algorithms.equations import Constraint
from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.kinematics import Placed, placed, velocities
from linkwise.algorithms.pulls import joined, of_freedoms, own_efforts, without_rotors
from linkwise.algorithms.sweeps import Field, each
from linkwise.contact import lifting
from linkwise.contact.cones import Cone, Response, Row
from linkwise.contact.elimination import squared
from linkwise.contact.holding import Holding
from linkwise.contact.implicit import Solution
from linkwise.contact.joint_rows import FrictionOf, JointCones, JointRow
from linkwise.contact.lifting import can_be_lifted, least_responses, lifted_out, overlaps_of
from linkwise.contact.passivity import (
    Acting,
    Parting,
    Works,
    balanced,
    balanced_where_needed,
    part_of_mean_that_is_paid,
    work_in_step,
)
from linkwise.contact.results import ContactStep
from linkwise.contact.touching import (
    PlacedPoint,
    Pulled,
    Touch,
    frames_passed,
    placed_points,
    pulled,
    twists_passed,
)
from linkwise.mechanism.contacts import USUAL, ContactRules
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Scalar, by_digits, hold, is_zero, maximum, minimum, sqrt, waypoint, where
from linkwise.spatial.vectors import Motion, Vec

Flat = Sequence[Scalar]

WEDGED = 1e-7
"""Of its answer, by how much a normal gives way to what joints hold: one that friction wedges has some impulse then."""

FREELY = 10.0
"""Of what friction leaves of the answer of a normal, how many times counts for whole."""

CLOSE, STEADY, STEADY_FOR_NOTHING = 1e-9, 0.25, 0.015
"""m, by which surfaces may overlap where they meet, if they are not shifted out of overlaps; and with closures, m/s²,
with the square of the step: else each step on a table that is shaken would count as a little blow, and forces chatter.

Closures that are driven are put where the clock wants them after each step, a twelfth of the change of acceleration
in a step times its square from where what lies on them is: g/40 serves tables that shake at g and 0.3 rad a step. The
last is where nothing pays for the parting of overlaps, so that they stay.
"""

_TOLD, _TOLD_SINGLE = 1e-10, 1e-6
"""m, lengths that more than rounding decides: with sixteen digits, and with seven."""

BLOW = 2e-8
"""m: the change of a velocity in a step, times the step, from which on surfaces count as striking each other."""

AS_NEAR = 6.7e-5
"""Of the size of what touches, a gap at the end of a step: points that come farther count for less than half."""


class AccountedStep(NamedTuple):
    """The end of a step, and where its energy came from and went.

    Args:
        step: its end.
        work: J, of contact points, of the ends of ranges, and of dry friction at joints.
        mean: the mean of the velocities before and after (nv), in the axes of the middle: an impulse along a freedom
            does so much work on it.
        change: of velocities (nv), likewise.
        shift: how much farther than the mean the step went (nv), rad or m, where surfaces met within it.
    """

    step: ContactStep
    work: list[Scalar]
    mean: list[Scalar]
    change: list[Scalar]
    shift: list[Scalar]


def accounted_step(
    tree: Tree,
    touches: Sequence[Touch],
    q: Flat,
    v: Flat,
    tau: Flat,
    h: Scalar,
    impulses: Flat,
    f_ext: Forces = None,
    implicit: Flat | None = None,
    rules: ContactRules = USUAL,
    joints: Sequence[JointRow] = (),
    constraints: Sequence[Constraint] = (),
    t: Scalar = 0.0,
    is_known: bool = False,
) -> AccountedStep:
    """The end of a step of size h, with an account of energy: what of that nobody asks for is not computed.

    Args:
        tree: of links.
        touches: what may touch.
        q: configuration at the start.
        v: velocity at the start.
        tau: joint forces (nv) in the middle of the step, at v.
        h: s.
        impulses: of the step before, to begin with; zeros if there was none.
        f_ext: forces on links.
        implicit: what a freedom's velocity costs in impulse (nv), N m s²: h times a damper, h²/4 times a spring.
        rules: how it is solved.
        joints: rows along joints: ends of ranges, dry friction. Their impulses follow those of contacts.
        constraints: what closes the mechanism.
        t: time at the start, for closures that change with it.
        is_known: whether the constants of the tree are numbers, by which nothing is differentiated.
    """
    middle = MiddleOfStep(tree, touches, q, v, h, implicit, joints, constraints, t)
    middle.is_passive = rules.passive or middle.are_alone
    middle.lifts = not middle.holding.closes and can_be_lifted(tree, touches)
    if rules.passive and not middle.lifts:
        middle.parting = Parting.of(tree, q, v)
    if any(hold(x) is not x for x in (*q, *v, *tau, *impulses)):  # what is differentiated
        middle.solution = Solution(middle, tau, f_ext, is_known)
    response = Response(middle.cones(rules.recovery), middle.Lambda)
    push = response.pushed([0.0] * len(middle.before), impulses)
    V0, nu, mean = middle.free_motion(tau, impulses, response, f_ext, rules.passes)
    end = middle.solved(response, [a + b for a, b in zip(V0, push, strict=True)], impulses, nu, mean, rules)
    acting = Acting(tau, f_ext)
    if middle.expanding:
        response = Response(middle.expansion(end.impulses, V0), middle.Lambda)
        end = middle.solved(response, end.V, end.impulses, nu, mean, rules)
    q_new, v_new, gaps = middle.end(response, end, acting)
    work, ways = middle.work(response, end.V, end.impulses), middle.ways()
    if middle.is_passive:
        done = work_in_step(tree, middle.q, h, tau, f_ext, implicit, ways)
        works = middle.works(response, end, work, done, ways[0])
        stays = middle.lifts or middle.parting is not None
        q_new, v_new = balanced(tree, (q, v), (q_new, v_new), works, stays)
    elif rules.bounds_energy and not tree.has_modes:
        gain = middle.gain_of_bounces(response, end, work)
        v_new = balanced_where_needed(tree, (q, v), (q_new, v_new), (end.v, mean), h, gain)
    residuals = [hold(x) for x in middle.residuals(response, end.V, end.impulses)]
    last = ContactStep(q_new, v_new, end.impulses, gaps, residuals, middle.overflow)
    return AccountedStep(last, work, *ways)


class Velocities(NamedTuple):
    """Velocities in the axes of the middle, those along the pulls, and the impulses that lead to them."""

    v: list[Scalar]
    V: list[Scalar]
    impulses: list[Scalar]


class MiddleOfStep:
    """A mechanism in the middle of a step: its articulated inertias, its contact points, and their pulls."""

    is_passive: bool = False
    """Whether no energy is created."""

    lifts: bool = False
    """Whether no overlap is left, of all that touches."""

    parting: Parting | None = None
    """How surfaces that overlap part, where no energy is created and overlaps are left."""

    overlaps: Flat = ()
    """Of each point, the overlap of its surfaces at the start, m, that no step has left."""

    solution: Solution | None = None
    """How solutions depend on what they are solutions of; only where that is asked for."""

    def __init__(
        self,
        tree: Tree,
        touches: Sequence[Touch],
        q: Flat,
        v: Flat,
        h: Scalar,
        implicit: Flat | None,
        joints: Sequence[JointRow] = (),
        constraints: Sequence[Constraint] = (),
        t: Scalar = 0.0,
    ) -> None:
        self.h, self.touches, self.bare = h, touches, tree
        self.tree = tree if implicit is None else stiffened(tree, implicit)
        half = [0.5 * h * x for x in v]
        self.q = waypoint(carry(tree, q, half))
        self.v = waypoint(carried(tree, v, half))
        self.frames = frames_passed(tree, touches, placed(tree, self.q))
        self.twists = twists_passed(tree, touches, velocities(tree, self.q, self.v))
        self.points, self.overflow = placed_points(touches, self.frames, self.q)
        self.turns = self._turns(tree, q, v)
        """How velocities at each point have changed since the start."""
        self.axes: Field[list[Axis]] = articulate(self.tree, self.q)
        self.pulled: Pulled = pulled(tree, touches, self.points, self.frames, self.q)
        self.joints = JointCones(tree, joints, self.q, self.v, h)
        self.holding = Holding(tree, constraints, (q, v), (self.q, self.v), t, h)
        free = joined(self.pulled.pulls, self.joints.pulls)
        self.pulls = joined(free, self.holding.pulls)
        """Of contacts, then along joints, then those that hold."""
        self.eps, Lambda = pull(self.tree, self.q, self.axes, self.pulls)
        self.Lambda = self.holding.eliminate(Lambda)
        self.before = [*self.pulled.velocities(self.twists), *self.joints.before]
        """J v at the start, along each pull of contacts and joints."""

    def free_motion(
        self, tau: Flat, impulses: Flat, response: Response, f_ext: Forces, passes: int
    ) -> tuple[list[Scalar], Field[Any], list[Scalar]]:
        """Velocities along the pulls without impulses, the innovations ν that they come from, and v̄.

        For v̄ the impulses of the step before are taken at points where contact goes on as it was, and none after an
        impact.
        """
        mean = self.v
        for left in reversed(range(passes)):
            V0, nu = self.free_velocities(mean, tau, f_ext)
            if left:
                pushed = self.pushed(nu, going_on(response, V0, impulses))
                found = [a + b for a, b in zip(self.v, self.moved(nu, pushed, 0.5), strict=True)]
                mean = found if self.solution is None else self.solution.velocity(found, mean, pushed, 0.5)
        return V0, nu, mean

    def free_velocities(self, mean: Flat, tau: Flat, f_ext: Forces) -> tuple[list[Scalar], Field[Any]]:
        """Velocities along the pulls without impulses, where bias forces are those of a mean velocity, and ν."""
        turning = carry_rates(self.tree, mean)
        b, efforts = needed_forces(self.tree, self.q, mean, turning, f_ext), without_rotors(self.bare, tau, turning)
        nu = innovate(self.tree, self.q, self.axes, lambda link: own_efforts(link, efforts), b)
        gained, held = self._gained(nu)
        felt = self.holding.felt(self.holding.impulses(held, [0.0] * len(gained)))
        return [a + b + c for a, b, c in zip(self.before, gained, felt, strict=True)], nu

    @property
    def are_alone(self) -> bool:
        """Whether nothing but contact couples the bodies."""
        free = all(link.parent < 0 and not link.modes and not link.is_mimic for link in self.tree)
        return free and not self.holding.pulls.count

    def solved(
        self, response: Response, V: Flat, impulses: Flat, nu: Field[Any], mean: Flat, rules: ContactRules
    ) -> Velocities:
        """The solution of all cones, found from some V and impulses."""
        V, found = response.solved(V, impulses, rules, self.eased(response))
        pushed = self.pushed(nu, found)
        self.held = pushed[len(self.before) :]
        v = [a + b for a, b in zip(self.v, self.moved(nu, pushed), strict=True)]
        if self.solution is None:
            return Velocities(v, V, found)
        kept = self.pushed(nu, [hold(x) for x in found])
        width = rules.width_of_derivatives
        return Velocities(*self.solution.of_cones(v, mean, kept, response, V, found, width))

    def eased(self, response: Response) -> Response | None:
        """The same cones where surfaces need not part, for states in which friction wedges several points; None: none.

        There normals give way a little, too: what is wedged has some impulse then, and not any.
        """
        if len(self.held_normals) < 2:  # one alone has an impulse that obeys
            return None
        cones = list(response.cones)
        for k, drift in self.held_normals.items():
            bias = maximum(cones[k].bias[0] + drift, 0.0) - drift
            cones[k] = replace(cones[k], bias=(bias,), compliance=cones[k].compliance + WEDGED * response.slopes[k])
        return Response(cones, self.Lambda)

    def _gained(self, nu: Field[Any]) -> tuple[list[Scalar], list[Scalar]]:
        """The hJ𝓜⁻¹(τ - c) = hε*ν along the pulls of contacts and joints, and along those that hold."""
        total: list[Scalar] = [0.0] * self.pulls.count
        for link in self.tree:
            for own, x in zip(self.eps[link], nu[link], strict=True):
                total = [a + e * x for a, e in zip(total, own, strict=True)]
        gained = [self.h * x for x in total]
        return gained[: len(self.before)], gained[len(self.before) :]

    def pushed(self, nu: Field[Any], impulses: Flat) -> list[Scalar]:
        """Impulses along all pulls: C*λ, and those that hold."""
        pushed: list[Scalar] = [0.0] * self.pulled.pulls.count
        of_contacts = len(self.pulled.rows)
        for row, x in zip(self.pulled.rows, impulses[:of_contacts], strict=True):
            for k, c in zip(row.pulls, row.factors, strict=True):
                pushed[k] = pushed[k] + c * x
        pushed = [*pushed, *impulses[of_contacts:]]
        if self.holding.pulls.count:
            pushed += [hold(x) for x in self.holding.impulses(self._gained(nu)[1], pushed)]
        return pushed

    def moved(self, nu: Field[Any], pushed: Flat, fraction: float = 1.0) -> list[Scalar]:
        """The change of v for impulses P along all pulls, [I - HψK]*(hν + D⁻¹εP), or a fraction of it."""

        def both(link: Link) -> list[Scalar]:
            found = []
            for axis, own, x in zip(self.axes[link], self.eps[link], nu[link], strict=True):
                push: Scalar = 0.0
                for e, y in zip(own, pushed, strict=True):
                    push = push + e * y
                found.append((self.h * x + axis.d_inverse * push) * fraction)
            return found

        return of_freedoms(self.tree, accelerate(self.tree, self.q, self.axes, each(self.tree, both)))

    def cones(self, recovery: float) -> list[Cone]:
        """The cones of all points, and of all rows along joints."""
        found: list[Cone] = []
        rows = iter(self.pulled.rows)
        self.recovery = recovery
        self.start_gaps: list[Scalar] = []
        """Offsets from which gaps at the end are counted, along rows of the middle."""
        self.normals: list[int] = []
        self.approaches: list[Scalar] = []
        """Of normals, how fast surfaces part before the step, along pulls."""
        self.slips: dict[int, list[Scalar]] = {}
        """Of tangents, by the place of their cone: the slip before the step, with a belt's velocity."""
        self.held_normals: dict[int, Scalar] = {}
        """Of normals against what joints hold, by the place of their cone: the velocity of a belt along it."""
        self.expanding: dict[int, Scalar] = {}
        """Of normals that bounce by Poisson's law, which part of their impulse of compression they get once more."""
        sliding: dict[Any, list[_Sliding]] = {}
        least = least_responses(self.tree, self.touches, self.q)
        for point, turn, pivots in zip(self.points, self.turns, self._pivots(), strict=True):
            m = point.touch.material
            drifts = iter(point.drifts())
            normal, drift = next(rows), next(drifts)
            approach = normal.of(self.before) - drift
            way = 0.5 * self.h * approach
            gap = point.gap - way
            self.approaches.append(approach - drift)
            self.start_gaps.append(gap + 0.25 * self.h * pivots)
            bias, R, meets = self._normal(point, approach, gap, pivots, recovery)
            if m.restitution > 0.0:
                bounces = meets & (approach < -m.threshold)
                if m.impact == "newton":
                    bias = where(bounces, minimum(bias, m.restitution * approach), bias)
                else:
                    bias = where(bounces, minimum(bias, 0.0), bias)
                    self.expanding[len(found)] = where(bounces, m.restitution, 0.0)
            has_friction = max(m.coefficients) > 0.0
            mu = (m.coefficients[0] if m.is_isotropic else 1.0) * point.touch.friction
            given = ((mu, 2 * has_friction), (m.torsion, 1 * (m.torsion > 0.0)), (m.rolling, 2 * (m.rolling > 0.0)))
            disks = [(radius, tuple(next(rows) for _ in range(count))) for radius, count in given if count]
            if m.is_rigid and id(point.touch) in least:
                answers = [normal.of(line) for line in self.Lambda]
                response, across = hold(normal.of(answers)), [[row.of(answers) for row in own] for _, own in disks]
                taken = sum((radius * sqrt(squared(own)) for (radius, _), own in zip(disks, across, strict=True)), 0.0)
                answer = maximum(hold(least[id(point.touch)]), response)
                bias, R = parting(bias, response, answer, hold(taken)), R + (answer - response)
                self.held_normals[len(found)] = drift
            place, links = len(found), tuple(link.index for link in point.touch.links)
            self.normals.append(place)
            found.append(Cone((normal,), (bias - drift,), "half_line", compliance=R, links=links))
            for k, (radius, own) in enumerate(disks):
                bare = [-next(drifts) for _ in own]
                if k == 0 and has_friction:
                    forces = [force for _, force in list(point.directions())[1:3]]
                    slip = [row.of(self.before) + b for row, b in zip(own, bare, strict=True)]
                    sliding.setdefault(_shared_by(point, own[0], len(found)), []).append(
                        _Sliding(len(found), slip, forces, turn.slip, self._ahead(len(self.normals) - 1, approach))
                    )
                    self.slips[len(found)] = [a + b for a, b in zip(slip, bare, strict=True)]
                found.append(Cone(own, tuple(bare), "disk", radius, place, links=links))
        for points in sliding.values():
            for place, turned in _turned(points):
                bias = tuple(a + b for a, b in zip(found[place].bias, turned, strict=True))
                found[place] = replace(found[place], bias=bias)
        found += self.joints.cones(self.pulled.pulls.count, recovery)
        self.all_cones = found
        return found

    def _ahead(self, k: int, approach: Scalar) -> Scalar:
        """Of a point the gap at the end of the step, if nothing acted, over the size of what touches."""
        point = self.points[k]
        return (point.gap + 0.5 * self.h * approach) * (1.0 / point.touch.size)

    def _pivots(self) -> list[Scalar]:
        """Of each point how much of its approach in the middle turning alone accounts for.

        Of points between the same two links it is the same part of their turning, as in :func:`_turned`: else corners
        in one plane would be asked for gaps in none, and few of them bear.
        """
        groups: dict[Any, list[int]] = {}
        approaches, rows = [], iter(self.pulled.rows)
        for k, point in enumerate(self.points):
            normal, *_ = (next(rows) for _ in range(point.touch.rows))
            approaches.append(normal.of(self.before) - point.drifts()[0])
            groups.setdefault(_shared_by(point, normal, k), []).append(k)
        found: list[Scalar] = [0.0] * len(self.points)
        for places in groups.values():
            if len(places) == 1:
                (k,) = places
                turn = self.turns[k].along_normal
                found[k] = within(where(self.turns[k].off <= _SAME * turn * turn, turn, 0.0), approaches[k])
                continue
            both, square, off = 0.0, 0.0, 0.0
            for k in places:
                turn, near = self.turns[k].along_normal, nearness(self._ahead(k, approaches[k]))
                weighted = near * turn
                both, square = both + weighted * approaches[k], square + weighted * turn
                off = off + near * self.turns[k].off
            part = minimum(maximum(both / maximum(square, 1e-30), 0.0), 1.0)
            part = where(off <= _SAME * square, part, 0.0)
            for k in places:
                found[k] = part * self.turns[k].along_normal
        return found

    def _normal(
        self, point: PlacedPoint, approach: Scalar, gap: Scalar, pivots: Scalar, recovery: float
    ) -> tuple[Scalar, Scalar, Any]:
        """Of a point's normal the bias and the compliance, and whether its surfaces meet within the step."""
        m, h = point.touch.material, self.h
        meets = gap + h * approach < 0.0
        if m.is_rigid:
            wanted = gap if self.parting is None else self.parting.wanted(gap)
            return maximum(wanted / h + 1.25 * pivots, -recovery), 0.0, meets
        # Only what overlaps is damped: else surfaces would push before they touch.
        deep = maximum(-point.gap, 0.0) if m.law == "hunt_crossley" else where(meets, 1.0, 0.0)
        lasting = h + m.damping * deep
        return gap / lasting, 1.0 / (h * m.stiffness * lasting), meets

    def _turns(self, tree: Tree, q: Flat, v: Flat) -> list[_Turn]:
        """How the velocity of one surface against the other at each point changes in half a step because bodies turn.

        A corner that stands still while its body turns about it: in the middle it moves, and as much has to come back
        until the end. At the start, a place in the list of points is taken by the same point if its rate explains how
        its gap changes, and is not looked at otherwise.
        """
        if is_zero(self.h):
            return [_Turn(Vec.zero(), 0.0, 0.0)] * len(self.points)
        frames, quarter = frames_passed(tree, self.touches, placed(tree, q)), 0.25 * self.h
        points, _ = placed_points(self.touches, frames, q)
        self.overlaps = overlaps_of(points, self.h)
        before = _slips(frames, points, twists_passed(tree, self.touches, velocities(tree, q, v)))
        slips = _slips(self.frames, self.points, self.twists)
        found = []
        of_points = zip(points, self.points, before, slips, strict=True)
        numbers = iter(waypoint([x for a, b, slip, now in of_points for x in (a.gap, b.gap, *slip, *now)]))
        for start, now in zip(points, self.points, strict=True):
            gap, gap_now = next(numbers), next(numbers)
            slip, slip_now = (Vec.of([next(numbers) for _ in range(3)]) for _ in range(2))
            rate, rate_now = slip.dot(start.normal), slip_now.dot(now.normal)
            turn, off = rate_now - rate, gap_now - gap - quarter * (rate_now + rate)
            turned = slip_now - slip
            square = (off / quarter) * (off / quarter)
            is_same = square <= _SAME * turned.dot(turned)
            # No more than makes it another point: in a far place of the list a gap may change by any length.
            off = minimum(square, rate * rate + rate_now * rate_now)
            found.append(_Turn(Vec.of([where(is_same, x, 0.0) for x in turned]), turn, off))
        return found

    def expansion(self, compression: Flat, free: Flat | None = None) -> list[Cone]:
        """The cones once surfaces that meet have been compressed: what was stored comes back (Poisson's law).

        A normal gets at least e times the impulse of its compression once more, and more only where surfaces would
        otherwise not part (Glocker and Pfeiffer 1995). Forces that press on surfaces throughout the step store nothing:
        of its impulse only that part counts which stops the approach, so that what lies stays where it is.

        Args:
            compression: impulses of all rows.
            free: velocities along pulls that forces alone lead to; those of before if not given.
        """
        starts = []
        start = 0
        for cone in self.all_cones:
            starts.append(start)
            start += len(cone.rows)
        for k, part in self.expanding.items():
            cone = self.all_cones[k]
            struck: Scalar = part
            if free is not None:
                (row,) = cone.rows
                before, pressed = row.of(self.before), row.of(free)
                falls = (before < 0.0) & (pressed < before)
                struck = part * where(falls, before / where(falls, pressed, 1.0), 1.0)
            least = where(part > 0.0, (1.0 + struck) * compression[starts[k]], 0.0)
            self.all_cones[k] = replace(cone, least=least)
        return self.all_cones

    def end(
        self, response: Response, end: Velocities, acting: Acting
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """The q⁺, v⁺ and gaps that velocities lead to."""
        h, (v_new, V, impulses) = self.h, end
        s: Scalar = 1.0
        close = by_digits(h, lifting.CLOSE, lifting.CLOSE_SINGLE) if self.lifts else CLOSE
        steady = STEADY if self.parting is None else STEADY_FOR_NOTHING
        near = steady * h * h if self.holding.closes else 0.0
        rates = []
        for point, place, gap in zip(self.points, self.normals, self.start_gaps, strict=True):
            (row,), drift = self.all_cones[place].rows, point.drifts()[0]
            before, after = row.of(self.before) - drift, row.of(V) - drift
            rates.append((before, after))
            if point.touch.material.is_rigid:
                least = close if self.lifts else maximum(left_by_a_blow(h, before, after), near)
                s = minimum(s, part_of_mean(gap, h, before, after, least))
        first = self.pulled.pulls.count
        for gap, (before, after) in self.joints.gaps((self.joints.before, V[first:])):
            s = minimum(s, part_of_mean(gap, h, before, after, close))
        if self.are_alone:
            shift = [0.5 * h * (b - a) for a, b in zip(self.v, v_new, strict=True)]
            work = sum(self.work(response, V, impulses), 0.0) - self.driven(impulses)
            pressed = sum((impulses[response.starts[k]] for k in self.normals), 0.0)
            paid = part_of_mean_that_is_paid(self.tree, self.q, shift, s, work, pressed, h, acting)
            s = where(self.overlaps_at_start, s, paid)
        (s,) = waypoint([s])
        moved = [h * ((1.0 - 0.5 * s) * b - 0.5 * (1.0 - s) * a) for a, b in zip(self.v, v_new, strict=True)]
        if self.lifts:
            q_new = carry(self.tree, self.q, moved)
            left = [maximum(x - self.recovery * h, 0.0) for x in self.overlaps]
            self.lifted = lifted_out(self.tree, self.touches, q_new, left, close)
            moved, gaps = self.lifted.added_to(moved, self.tree, self.frames), self.lifted.gaps
        else:
            gaps = [
                gap + h * ((1.0 - 0.5 * s) * after + 0.5 * s * before)
                for gap, (before, after) in zip(self.start_gaps, rates, strict=True)
            ]
        self.v_new, self.moved_on = v_new, moved
        return carry(self.tree, self.q, moved), carried(self.tree, v_new, moved), gaps

    @property
    def overlaps_at_start(self) -> Scalar:
        """Whether there are overlaps that no step has left."""
        return sum(self.overlaps, 0.0) > 0.0

    def driven(self, impulses: Flat) -> Scalar:
        """Work of belts and turntables, J."""
        total: Scalar = 0.0
        rows = iter(impulses)
        for point in self.points:
            for drift, x in zip(point.drifts(), rows, strict=False):
                total = total + drift * x
        return total

    def work(self, response: Response, V: Flat, impulses: Flat) -> list[Scalar]:
        """Of contact points, ends of ranges and dry friction of joints, Σ λ (w + w⁺)/2 each, J."""
        total: list[Scalar] = [0.0, 0.0, 0.0]
        first = len(response.cones) - len(self.joints.rows)
        for k, (cone, start) in enumerate(zip(response.cones, response.starts, strict=True)):
            kind = 0 if k < first else 2 if isinstance(self.joints.rows[k - first], FrictionOf) else 1
            for row, x in zip(cone.rows, impulses[start:], strict=False):
                total[kind] = total[kind] + 0.5 * x * (row.of(self.before) + row.of(V))
        return total

    def stored(self, response: Response, end: Velocities) -> Scalar:
        """Work of the normals of surfaces that give way, J."""
        total: Scalar = 0.0
        for point, place in zip(self.points, self.normals, strict=True):
            if not point.touch.material.is_rigid:
                (row,), x = response.cones[place].rows, end.impulses[response.starts[place]]
                total = total + 0.5 * x * (row.of(self.before) + row.of(end.V))
        return total

    def gain_of_bounces(self, response: Response, end: Velocities, work: Flat) -> Scalar:
        """Work of all rigid contacts where some bounce by Newton's law, J: positive where that creates energy."""
        materials = [point.touch.material for point in self.points]
        if not any(m.restitution > 0.0 and m.impact == "newton" for m in materials):
            return 0.0
        return sum(work, 0.0) - self.driven(end.impulses) - self.stored(response, end)

    def works(self, response: Response, end: Velocities, work: Flat, of_forces: Scalar, mean: Flat) -> Works:
        """Works of all that acts, where those of all rows and of forces are known."""
        impulses = end.impulses
        driven, granted = self.driven(impulses) + self.stored(response, end), 0.0
        for k, (point, place, gap) in enumerate(zip(self.points, self.normals, self.start_gaps, strict=True)):
            (row,), x = response.cones[place].rows, impulses[response.starts[place]]
            if point.touch.material.is_rigid:
                after = row.of(end.V)
                parts = self.overlaps[k] > 0.0 if self.parting is None else self.parting.is_granted(gap)
                granted = granted + where(parts, maximum(x * after, 0.0), 0.0)
        if self.lifts:
            granted = granted + where(self.overlaps_at_start, self.lifted.most_work(self.tree), 0.0)
        total = work[0] + work[1] + work[2]
        for x, rate in zip(self.held, self.holding.pulls.rates(self.tree, self.q, mean), strict=True):
            of_forces = of_forces + x * rate
        return Works(of_forces + driven + granted, total - driven, 0.0 if self.parting else granted)

    def ways(self) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """The mean velocity, its change, and the shift beyond h times the mean."""
        both = list(zip(self.v, self.v_new, strict=True))
        shift = [x - 0.5 * self.h * b for x, (_, b) in zip(self.moved_on, both, strict=True)]
        return [0.5 * (a + b) for a, b in both], [b - a for a, b in both], shift

    def residuals(self, response: Response, V: Flat, impulses: Flat) -> list[Scalar]:
        """Largest residuals of Signorini's condition (m/s), the cones (N s) and maximal dissipation (J)."""
        beyond: Scalar = 0.0
        lost: Scalar = 0.0
        for k, (cone, start) in enumerate(zip(response.cones, response.starts, strict=True)):
            if cone.kind == "disk":
                w = response.velocities(k, V, impulses)
                own = impulses[start : start + len(w)]
                reach = cone.radius * (impulses[response.starts[cone.follows]] if cone.follows is not None else 1.0)
                length, speed = (sqrt(sum((x * x for x in xs), 0.0)) for xs in (own, w))
                beyond = maximum(beyond, length - reach)
                power: Scalar = 0.0
                for x, y in zip(own, w, strict=True):
                    power = power + x * y
                lost = maximum(lost, abs(power + reach * speed))
        return [response.signorini(V, impulses), beyond, lost]


class _Turn(NamedTuple):
    """Change of the velocity of one surface against the other at a point, in half a step.

    Args:
        slip: as a vector in the world's axes; zero where the place in the list is another point's.
        along_normal: of the rate of the gap.
        off: by how much, squared, it does not explain how the gap has changed.
    """

    slip: Vec
    along_normal: Scalar
    off: Scalar


def _slips(frames: Field[Placed], points: Sequence[PlacedPoint], twists: Field[Motion]) -> list[Vec]:
    """Velocity of the first surface against the second at each point, in the world's axes, without deformation."""
    found = []
    for point in points:
        total = Vec.zero() - point.drift.lin
        for place, sign in ((point.touch.a, 1.0), (point.touch.b, -1.0)):
            if place.link is not None and not place.link.modes:
                frame, twist = frames[place.link], twists[place.link]
                speed = frame.R @ twist.lin + (frame.R @ twist.ang).cross(point.point - frame.p)
                total = total + speed * sign
        found.append(total)
    return found


class _Sliding(NamedTuple):
    """A point's tangents.

    Args:
        place: of their cone.
        slip: along them in the middle, at the velocity of the start.
        forces: their directions.
        turning: of slip, what turning alone accounts for.
        ahead: the gap at the end, if nothing acted, over the size of what touches.
    """

    place: int
    slip: list[Scalar]
    forces: list[Vec]
    turning: Vec
    ahead: Scalar


def _shared_by(point: PlacedPoint, row: Row, place: int) -> Any:
    """The links that a point shares its turning with others between; its place, if its rows are its own."""
    return place if row.is_pull else tuple(link.index for link in point.touch.links)


def _turned(points: Sequence[_Sliding]) -> Iterator[tuple[int, list[Scalar]]]:
    """The part of slip in the middle that turning alone accounts for, along tangents: none to all of it.

    It is the same for all points between two links, a mean of those that come near: what is allowed for must be a slip
    of rigid bodies, as slip is. Else points of a foot could not all stand still, and would press against each other
    until they slip. Of one point alone, that it is nearest of several that are as near would turn with rounding.
    """
    turning, total, both, square, other = Vec.zero(), 0.0, 0.0, 0.0, 0.0
    for point in points:
        weight = nearness(point.ahead) if len(points) > 1 else 1.0
        along = [force.dot(point.turning) for force in point.forces]
        turning, total = turning + point.turning * weight, total + weight
        for x, slip in zip(along, point.slip, strict=True):
            both, square = both + weight * (x * slip), square + weight * (x * x)
            other = other + weight * ((x - slip) * (x - slip))
    # All of the slip where turning accounts for nearly all of it: then friction does no work.
    is_whole = other < 0.0625 * square
    part = minimum(maximum(both / maximum(square, 1e-30), 0.0), 1.0) * (1.0 / total)
    for point in points:
        slips = zip(point.slip, point.forces, strict=True)
        yield point.place, [where(is_whole, x, part * force.dot(turning)) for x, force in slips]


def nearness(ahead: Scalar) -> Scalar:
    """How much a point counts among others, by :meth:`MiddleOfStep._ahead`: one where its surfaces close."""
    apart = maximum(ahead, 0.0) * (1.0 / AS_NEAR)
    return 1.0 / (1.0 + (apart * apart) * (apart * apart))


_SAME = 0.01  # of a quarter of a step's change of rate, squared: how well it explains a gap
_MUCH = 0.3  # of an impulse: less than what several points share, more than what gravity needs after an impact


def going_on(response: Response, V: Flat, impulses: Flat) -> list[Scalar]:
    """Impulses of the step before, without those of points at which a third of them would be too much now.

    So much would stop the approach V of a point by itself. After an impact, next to nothing is needed where surfaces
    stay together, and nothing where they part.
    """
    found = list(impulses)
    none = [0.0] * response.count
    goes_on: dict[int | None, Scalar] = {}
    for k, (cone, start) in enumerate(zip(response.cones, response.starts, strict=True)):
        if cone.kind == "half_line":
            needed = -response.velocities(k, V, none)[0] * response.inverses[k]
            goes_on[k] = hold(needed) > _MUCH * hold(impulses[start])
        elif cone.kind == "range":
            x = hold(impulses[start])
            goes_on[k] = hold(response.wanted(k, V, none)[0]) * x > _MUCH * x * x
        place = k if cone.kind in ("half_line", "range") else cone.follows
        if place in goes_on:
            for i in range(start, start + len(cone.rows)):
                found[i] = where(goes_on[place], found[i], 0.0)
    return found


def parting(bias: Scalar, response: Scalar, answer: Scalar, taken: Scalar) -> Scalar:
    """The bias of a normal, of which that part counts that surfaces can do to part.

    Where nothing moves along the normal (the hub of a wheel, the face of a turntable) that is none of it, and where
    friction takes away what a normal impulse gives, W_nn ≤ μ|W_tn|, neither: the more impulse, the firmer surfaces are
    wedged.

    Args:
        bias: what the law of the normal speaks of, m/s, is w + bias.
        response: W_nn.
        answer: the same with compliance, positive.
        taken: the most that friction of all kinds takes of it, μ|W_tn|.
    """
    part = minimum(maximum((response - taken) * FREELY, 0.0), answer) / answer
    return where(bias < 0.0, part * bias, bias)


def within(x: Scalar, most: Scalar) -> Scalar:
    """The part of x that lies between zero and another number."""
    return where(x > 0.0, maximum(minimum(x, most), 0.0), minimum(maximum(x, most), 0.0))


def part_of_mean(gap: Scalar, h: Scalar, before: Scalar, after: Scalar, close: Scalar = CLOSE) -> Scalar:
    """How far a step may go with the mean velocity, 0 to 1, so that a gap does not close beyond zero.

    Where that is about lengths that rounding decides, at feet that stand still, its derivative counts as zero; and
    where nothing moves along a gap, rounding does not count as closing it.
    """
    overshoot, room = 0.5 * h * (after - before), maximum(gap + h * after + close, 1e-3 * close)
    part = room / maximum(overshoot, close * close)
    return where(overshoot > room, where(overshoot > by_digits(h, _TOLD, _TOLD_SINGLE), part, hold(part)), 1.0)


def left_by_a_blow(h: Scalar, before: Scalar, after: Scalar) -> Scalar:
    """The overlap that a blow may leave, m: the harder it is, the less.

    What friction wedges (the tip of an arm that points down steeply) cannot part again. Forces that try to have no
    bounds: 0.7 nm asked a rod of 2 kg for 300 kN in all steps that followed.
    """
    blow = h * (after - before) * (1.0 / BLOW)
    return CLOSE / (1.0 + blow * blow)


def stiffened(tree: Tree, implicit: Flat) -> Tree:
    """The tree with more inertia at its joints."""

    def more(link: Link) -> Link:
        if link.is_mimic:  # what damps it is counted where it follows
            return link
        own = (implicit[link.v_start + i] for i in range(len(link.armature)))
        return replace(link, armature=tuple(a + b for a, b in zip(link.armature, own, strict=True)))

    return replace(tree, links=tuple(more(link) for link in tree.links))
