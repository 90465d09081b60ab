"""One step in time of a crowd: Moreau's midpoint rule as in :mod:`linkwise.contact.step`, with loops over points.

The nearest points of all pairs are found in the middle of the step (:mod:`linkwise.contact.crowd`), their rows are
gathered (:mod:`linkwise.contact.crowd_rows`), and their impulses are found along the rows of those that are used
(:mod:`linkwise.contact.along_rows`), or as velocities of the freedoms (:mod:`linkwise.contact.primal`).
Impulses of a step are those of the kept points, of the rows along joints, and then the numbers of the points: a point
that was there in the step before begins with the impulse it had, in whatever place it stands now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from linkwise.algorithms.articulated import articulate, innovate
from linkwise.algorithms.configuration import carried, carry, carry_rates
from linkwise.algorithms.equations import Constraint
from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.kinematics import at_rest, next_motion, placed, velocities
from linkwise.algorithms.mass_matrix import mass_matrix
from linkwise.algorithms.pulls import own_efforts, without_rotors
from linkwise.algorithms.sweeps import Field, each, outward
from linkwise.contact.along_rows import AlongRows
from linkwise.contact.crowd import MOVING, Crowd, KeptPoint, Moving, is_held, long
from linkwise.contact.crowd_rows import Folded, arm_of, columns_of, grips_of, remembered, same_number, used_of, ways
from linkwise.contact.elimination import squared
from linkwise.contact.geometry.points import UNUSED_GAP, tangents
from linkwise.contact.holding import Held, Holding
from linkwise.contact.joint_rows import FrictionOf, JointCones, JointRow, slopes_of
from linkwise.contact.near_ends import Factors, NearEnds
from linkwise.contact.passivity import Parting, Works, balanced, balanced_where_needed, work_in_step
from linkwise.contact.point_laws import Laws, over_used
from linkwise.contact.primal import Along, Primal
from linkwise.contact.results import ContactStep
from linkwise.contact.smoothed import NARROW
from linkwise.contact.step import CLOSE, STEADY, WEDGED, AccountedStep, part_of_mean, parting, stiffened, within
from linkwise.dataclass import replace
from linkwise.mechanism.contacts import ContactRules
from linkwise.spatial.scalar import Items, Scalar, hold, is_zero, looped_over, maximum, minimum, sqrt, where
from linkwise.spatial.vectors import Motion, Vec

Flat = Sequence[Scalar]

STUCK = 1e-3
"""Of the mobility of the whole mass: points that joints let part less than this give way by as much, so that what no
joint can part is not pressed apart without bounds."""

TURN = 7
"""Numbers of what turning does to a point: its links, its gap ahead, the part that is allowed, and the turning."""

ALL = 2.0
"""Of slip, beyond any part of what turning accounts for."""


def crowd_step(
    crowd: Crowd,
    q: Flat,
    v: Flat,
    tau: Flat,
    h: Scalar,
    impulses: Flat,
    f_ext: Forces = None,
    implicit: Flat | None = None,
    rules: ContactRules | None = None,
    joints: Sequence[JointRow] = (),
    constraints: Sequence[Constraint] = (),
    t: Scalar = 0.0,
    along_freedoms: bool = False,
) -> AccountedStep:
    """The end of a step of size h, with an account of energy; arguments as of :func:`~linkwise.contact.step`'s.

    Newton steps are along rows, or on velocities of the freedoms.
    """
    rules = ContactRules() if rules is None else rules
    differentiated = any(hold(x) is not x for x in (*q, *v, *tau, *impulses))
    along_freedoms = along_freedoms or differentiated
    middle = MiddleOfCrowd(crowd, q, v, h, implicit, joints, rules, constraints, t, along_freedoms)
    begin = middle.begun(impulses)
    free, mean = middle.free_velocity(tau, begin, f_ext, rules.passes)
    if differentiated:
        held = [[hold(x) for x in numbers] for numbers in (free, begin.impulses)]
        primal = middle.complete()
        v_new, found, eased = primal.held().solved(held[0], held[1], rules)
        middle.primal = primal.eased(eased)
        width = rules.smoothing if rules.backward == "smooth" else NARROW * sqrt(maximum(squared(found), 1e-30))
        v_new, found = middle.primal.differentiated(free, v_new, found, middle.answered, width)
    else:
        v_new, found, eased = middle.solved(free, begin)
        middle.primal = middle.primal.eased(eased)
    end = middle.end(v_new, found)
    if middle.parting is None:
        if not rules.bounds_energy or crowd.tree.has_modes:
            return end
        gain = sum(end.work, 0.0) - middle.driven(found)[0] if crowd.features.bounces else 0.0
        v_end = balanced_where_needed(crowd.tree, (q, v), end.step[:2], (v_new, mean), h, gain)
        return end._replace(step=end.step._replace(v=v_end))
    done = work_in_step(crowd.tree, middle.q, h, tau, f_ext, implicit, (end.mean, end.change, end.shift))
    works = middle.works(middle.parting, found, end, done)
    q_end, v_end = balanced(crowd.tree, (q, v), (end.step.q, end.step.v), works)
    return end._replace(step=end.step._replace(q=q_end, v=v_end))


class Begun(NamedTuple):
    """Impulses to begin with, their efforts J*λ, and the change of velocity 𝓜⁻¹J*λ that is due to them."""

    impulses: list[Scalar]
    effort: list[Scalar]
    push: list[Scalar]

    def foreseen(self, free: Flat) -> list[Scalar]:
        """The velocity at the end with those impulses of the step before, or that part of them, which take most energy.

        It is all of them where contact goes on as it was, and little after an impact.
        """
        along, square = (sum((a * b for a, b in zip(self.effort, x, strict=True)), 0.0) for x in (free, self.push))
        part = minimum(maximum(-along / maximum(square, 1e-30), 0.0), 1.0)
        return [a + part * b for a, b in zip(free, self.push, strict=True)]


class MiddleOfCrowd:
    """A mechanism in the middle of a step, with the nearest points of its shapes."""

    def __init__(
        self,
        crowd: Crowd,
        q: Flat,
        v: Flat,
        h: Scalar,
        implicit: Flat | None,
        joints: Sequence[JointRow],
        rules: ContactRules,
        constraints: Sequence[Constraint] = (),
        t: Scalar = 0.0,
        along_freedoms: bool = False,
    ) -> None:
        self.crowd, self.h, self.rules, tree = crowd, h, rules, crowd.tree
        self.along_freedoms = along_freedoms
        """Whether Newton steps are on velocities of the freedoms; then all that they read is zero of unused points."""
        self.tree = tree if implicit is None else stiffened(tree, implicit)
        half = [0.5 * h * x for x in v]
        self.q, self.v = carry(tree, q, half), carried(tree, v, half)
        self.frames = placed(tree, self.q)
        turning = carry_rates(tree, self.v)
        motions = outward(tree, lambda k, up: next_motion(k, up, self.q, self.v, turning), at_rest(Vec.zero()))
        self.slots, self.overflow = crowd.nearest(self.frames, self._moving(motions))
        self.used, self.grips = used_of(self.slots), grips_of(crowd, self.slots)
        self.axes = articulate(self.tree, self.q)
        self.closures = constraints, (q, v), t
        self.held = self._held()
        # What closures that are driven do is not known here: with them, steps are as they are.
        self.parting = Parting.of(tree, q, v) if rules.passive and not self.held.closes else None
        self.n, self.rows = len(self.v), crowd.features.rows
        carriers = [link for link in tree.links if link.index in crowd.carriers]
        self.moved = sorted({link.v_start + i for link in carriers for i in range(link.joint.nv)})
        """Freedoms that move shapes: rows of points are zero along the others."""
        self.joints = JointCones(tree, joints, self.q, self.v, h)
        self.near = NearEnds.at_first(self)
        self._gather()

    def _held(self) -> Held:
        constraints, start, t = self.closures
        holding = Holding(self.crowd.tree, constraints, start, (self.q, self.v), t, self.h)
        return Held(self.tree, self.q, self.axes, holding)

    def _moving(self, motions: Field[Any]) -> Moving:
        """Links as they move."""
        fastest: Scalar = 0.0
        numbers: list[Scalar] = []
        twists = velocities(self.tree, self.q, self.v)
        for link in self.tree.links:
            frame, twist, motion = self.frames[link], twists[link], motions[link]
            turned = (twist.ang, twist.lin, motion.omega_dot, motion.a)
            numbers += [*frame.p, *(x for vector in turned for x in frame.R @ vector)]
            if link.index in self.crowd.reaches:
                speed = long(twist.lin) + self.crowd.reaches[link.index] * long(twist.ang)
                fastest = maximum(fastest, speed)
        return Moving([*numbers, *[0.0] * MOVING], self.h, hold(fastest))

    def begun(self, impulses: Flat) -> Begun:
        """Impulses to begin with, from those of the step before."""
        found, count = remembered(self.slots, self.rows, impulses), self.primal.count
        found = [*found[:count], *self.near.of_near(found[count:])]
        effort = self.primal.effort(found)
        return Begun(found, effort, self.answered(effort))

    def free_velocity(
        self, tau: Flat, begin: Begun, f_ext: Forces, passes: int
    ) -> tuple[list[Scalar], Sequence[Scalar]]:
        """The velocity at the end without impulses, and the mean one that bias forces are taken at."""
        mean, free = self.v, self.v
        for left in reversed(range(passes)):
            turning = carry_rates(self.tree, mean)
            b = needed_forces(self.tree, self.q, mean, turning, f_ext)
            own = each(self.tree, partial(own_efforts, tau=without_rotors(self.crowd.tree, tau, turning)))
            nu = innovate(self.tree, self.q, self.axes, own.__getitem__, b)
            free = [a + x for a, x in zip(self.v, self.held.gained(nu, self.h), strict=True)]
            if left:
                mean = [0.5 * (a + b) for a, b in zip(self.v, begin.foreseen(free), strict=True)]
        return free, mean

    # Rows of points.
    def _gather(self) -> None:
        """Rows of points, the velocities along them, and their laws."""
        columns, v, features = columns_of(self.tree, self.frames, self.q), self.v, self.crowd.features
        folded, still = Folded(self.tree), Motion(Vec.zero(), Vec.zero())
        carried = [link.index in self.crowd.carriers for link in self.tree.links for _ in range(link.joint.nv)]
        disks = (2, *[1] * features.torsion, *[2] * features.rolling)
        radii = (*["torsion"] * features.torsion, *["rolling"] * features.rolling)
        names, friction = self.crowd.names, self.crowd.friction

        def one(state: Flat, slot: Flat, grip: Flat) -> tuple[list[Scalar], list[Scalar]]:
            point = KeptPoint.of(slot, names)
            own = zip(columns, carried, strict=True)
            arms = [arm_of(column, point, Vec.of(grip)) if moves else still for column, moves in own]
            J = [
                folded([moment.dot(arm.ang) + force.dot(arm.lin) for arm in arms])
                for moment, force in ways(self.crowd.features, point)
            ]
            before = [sum((a * x for a, x in zip(line, v, strict=True)), 0.0) for line in J]
            return [], [*(x for line in J for x in line), *before, *self._turned(point, before)]

        slots, used = self.slots, self.used
        made = over_used(used, [slots, self.grips], one, [], self.along_freedoms)[1]
        everything, size = [x for row in made for x in row], len(made[0])
        width, count = self.rows * self.n, self.crowd.kept
        starts = [k * size for k in range(count)]
        self.before = Items(everything, [s + width for s in starts], self.rows)
        turns = Items(everything, [s + width + self.rows for s in starts], TURN)

        def biased(state: Flat, slot: Flat, before: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
            # All points between two links are allowed the slip of one of them, that comes nearest: see the written-out
            # step's :func:`linkwise.contact.step._turned`.
            def compared(now: Flat, other: Flat) -> tuple[list[Scalar], list[Scalar]]:
                same = same_number(own[0], other[0]) & same_number(own[1], other[1]) & (other[2] < now[0])
                return [where(same, a, b) for a, b in zip(other[2:], now, strict=True)], []

            shared = over_used(used, [turns], compared, own[2:])[0]
            bias, give, gap, drift = self._laws(KeptPoint.of(slot, names), before, shared[1:])
            return [], [*bias, give, gap, drift]

        made = over_used(used, [slots, self.before, turns], biased, [])[1]
        laws_of_points, each = [x for row in made for x in row], len(made[0])
        biases = Items(laws_of_points, range(0, each * count, each), self.rows)
        self.others = Items(laws_of_points, range(self.rows, each * count, each), 3)
        """Of each point the compliance, what its gap is counted from, and the normal's drift."""
        J = Items(everything, starts, width)
        self.lines = Items(everything, [s + j * self.n for s in starts for j in range(self.rows)], self.n)
        """Rows of all points, each by itself."""
        self.by_line = Items(used.numbers, [k for k in used.starts for _ in range(self.rows)], 1)
        self.points = self.halves(self.lines, self.by_line, of_points=True)
        step = self.rows * self.points.width
        left, right = (Items(x, range(0, count * step, step), step) for x in (self.points.left, self.points.right))

        def laws(
            state: Flat, slot: Flat, a: Flat, b: Flat, bias: Flat, other: Flat
        ) -> tuple[list[Scalar], list[Scalar]]:
            used, more, start, give = slot[10] > 0.0, KeptPoint.of(slot, names).more, 0, other[0]
            ells: list[Scalar] = []
            coefficients = [more["friction"] * friction, *(more[name] for name in radii)]
            asked, taken = bias[0] + other[2], 0.0
            for rows in (1, *disks):
                own = range(start, start + rows)
                ell = _largest([[_dot(a, i, b, j, len(a) // self.rows) for j in own] for i in own])
                if start == 0:
                    response = ell
                    give = maximum(give, maximum(stuck - ell, WEDGED * ell))
                    ell = ell + give
                else:
                    across = [_dot(a, 0, b, j, len(a) // self.rows) for j in own]
                    taken = taken + coefficients[len(ells) - 1] * sqrt(squared(across))
                ells.append(where(used, maximum(ell, 1e-30), 1.0))
                start += rows
            possible = parting(asked, response, maximum(response, stuck), taken)
            asked = where(is_held(self.crowd.tree, more["first"], more["second"]), possible, asked)
            eased = maximum(asked, 0.0) - other[2]
            return [], Laws([asked - other[2], *bias[1:]], eased, give, coefficients, ells).numbers

        # Not the tree's masses: regrouped, those of an arm on the ground are all its base's, which does not move.
        stuck = STUCK / max(self.crowd.mass, 1e-30)
        found = Items.rows(over_used(used, [slots, left, right, biases, self.others], laws, [], self.along_freedoms)[1])
        self.primal = Primal(J, found, disks, self._along(), used, self.moved)

    def halves(self, rows: Items, used: Items, zeros: bool = False, of_points: bool = False) -> Factors:
        """Of rows both factors of W, see :mod:`linkwise.contact.along_rows`; each is passed over unless it is used.

        Those are zeros where that is asked for, else anything. What moves no shapes comes last; rows of points leave it
        out.
        """
        if self.held.holding.pulls.count:
            places = [*self.moved, *(k for k in range(self.n) if not (of_points or k in self.moved))]

            def side(of: Callable[[Flat], Flat]) -> list[Scalar]:
                def chosen(_: Flat, row: Flat) -> tuple[list[Scalar], list[Scalar]]:
                    found = of(row)
                    return [], [found[k] for k in places]

                return [x for row in over_used(used, [rows], chosen, [], zeros)[1] for x in row]

            return Factors(side(list), side(self.answered), len(places))
        # No joint follows another here: that would be pulls.
        links = sorted(self.tree.links, key=lambda link: link.index not in self.crowd.carriers)
        links = links[: len(self.crowd.carriers)] if of_points else links
        roots = [sqrt(1.0 / axis.d_inverse) for link in links for axis in self.axes[link]]

        def half(_: Flat, row: Flat) -> tuple[list[Scalar], list[Scalar]]:
            known = [x if k in self.moved or not of_points else 0.0 for k, x in enumerate(row)]
            nu = innovate(self.tree, self.q, self.axes, lambda link: own_efforts(link, known), None)
            own = (x for link in links for x in nu[link])
            return [], [x * root for x, root in zip(own, roots, strict=True)]

        both = [x for row in over_used(used, [rows], half, [], zeros)[1] for x in row]
        return Factors(both, both, len(roots))

    def complete(self) -> Primal:
        """All that Newton's method on velocities of the freedoms needs."""
        columns, features, names = columns_of(self.tree, self.frames, self.q), self.crowd.features, self.crowd.names
        slots, primal, width = self.slots, self.primal, self.rows * self.n

        def column(state: Flat, axis: Flat) -> tuple[list[Scalar], list[Scalar]]:
            def of_point(state: Flat, slot: Flat, grip: Flat) -> tuple[list[Scalar], list[Scalar]]:
                point = KeptPoint.of(slot, names)
                arm = arm_of(axis, point, Vec.of(grip))
                return [], [moment.dot(arm.ang) + force.dot(arm.lin) for moment, force in ways(features, point)]

            made = over_used(primal.used, [slots, self.grips], of_point, [], zeros=True)[1]
            return [], [x for row in made for x in row]

        by_freedom = Items.rows(Folded(self.tree).rows(looped_over([Items.rows(columns)], column, [])[1]))
        pushes = over_used(self.by_line, [self.lines], lambda _, row: ([], self.answered(row)), [], zeros=True)[1]
        U = Items([x for row in pushes for x in row], range(0, len(slots.starts) * width, width), width)
        M = self.held.heavier(mass_matrix(self.tree, self.q), self.h)
        return replace(primal, M=M, U=U, by_freedom=by_freedom, along=self._pushed_along())

    def solved(self, free: list[Scalar], begin: Begun) -> tuple[list[Scalar], list[Scalar], Scalar]:
        """Velocities and impulses that obey all laws; and 1 where these are eased, else 0."""
        if self.along_freedoms:
            return self.complete().solved(free, begin.impulses, self.rules)
        found = AlongRows(self, free, begin).solved()
        return found.v, found.impulses, found.eased

    def answered(self, effort: Flat) -> list[Scalar]:
        """𝓜⁻¹ times an effort, with closures held."""
        nu = innovate(self.tree, self.q, self.axes, lambda link: own_efforts(link, effort), None)
        return self.held.changed(nu)

    def _turned(self, point: KeptPoint, before: Flat) -> list[Scalar]:
        """Of one point both links, the gap at the end if nothing acted, and the slip that turning accounts for.

        That is given as a part, and how much turning changes the slip; all of the slip where the part is ``ALL``.
        """
        spin, slide = point.drift
        slip = [x - (a.dot(spin) + b.dot(slide)) for x, (a, b) in zip(before, self._ways(point), strict=False)]
        along = [t.dot(point.turning) for t in tangents(point.normal)]
        both, square = (sum((a * b for a, b in zip(along, x, strict=True)), 0.0) for x in (slip[1:3], along))
        apart = sum(((a - b) * (a - b) for a, b in zip(along, slip[1:3], strict=True)), 0.0)
        part = minimum(maximum(both / maximum(square, 1e-30), 0.0), 1.0)
        links = (point.more["first"], point.more["second"])
        ahead = point.gap + 0.5 * self.h * slip[0]
        return [*links, ahead, where(apart < 0.0625 * square, ALL, part), *point.turning]

    def _ways(self, point: KeptPoint) -> list[tuple[Vec, Vec]]:
        return ways(self.crowd.features, point)

    def _laws(self, point: KeptPoint, before: Flat, turned: Flat) -> tuple[list[Scalar], Scalar, Scalar, Scalar]:
        """Of one point the bias of each row, the compliance, what its gap is counted from, and the normal's drift."""
        h, more, features = self.h, point.more, self.crowd.features
        spin, slide = point.drift
        drifts = [moment.dot(spin) + force.dot(slide) for moment, force in self._ways(point)]
        approach = before[0] - drifts[0]
        gap = point.gap - 0.5 * h * approach
        meets = gap + h * approach < 0.0
        pivots = within(point.turning.dot(point.normal), approach)
        wanted = gap if self.parting is None else self.parting.wanted(gap)
        bias, give = maximum(wanted / h + 1.25 * pivots, -self.rules.recovery), 0.0
        if features.gives:
            rigid = more["stiffness"] < 1e-30
            deepens = where(more["deepens"] > 0.5, maximum(-point.gap, 0.0), where(meets, 1.0, 0.0))
            lasting = h + more["damping"] * deepens
            bias = where(rigid, bias, gap / lasting)
            give = where(rigid, 0.0, 1.0 / (h * where(rigid, 1.0, more["stiffness"]) * lasting))
        if features.bounces:
            bounces = meets & (approach < -more["threshold"]) & (more["restitution"] > 0.0)
            bias = where(bounces, minimum(bias, more["restitution"] * approach), bias)
        part, turning = turned[0], Vec.of(turned[1:])
        allowed = [
            where(part > 1.0, before[k] - drifts[k], part * t.dot(turning))
            for k, t in enumerate(tangents(point.normal), 1)
        ]
        rest = [-x for x in drifts[3:]]
        return (
            [bias - drifts[0], *(t - d for t, d in zip(allowed, drifts[1:3], strict=True)), *rest],
            give,
            gap + 0.25 * h * pivots,
            drifts[0],
        )

    # Rows along joints.
    def _along(self) -> list[Along]:
        """Cones along joints, of which nothing is known yet but where they act."""
        found = []
        for row, cone in zip(self.joints.rows, self.joints.cones(0, self.rules.recovery), strict=True):
            link = self.tree.links[row.joint.index]
            scale = link.multiplier if link.is_mimic else 1.0
            slopes = enumerate(slopes_of(row, self.tree, self.q), link.v_start)
            own = {i: scale * x for i, x in slopes if not is_zero(x)}
            found.append(Along(own, (), replace(cone, rows=()), 1.0))
        return found

    def _pushed_along(self) -> list[Along]:
        """The same, with what impulses along them do."""
        used = sorted({j for one in self.primal.along for j in one.row})
        if not used:
            return []
        units = [[1.0 if i == j else 0.0 for i in range(self.n)] for j in used]

        def pushed(state: Flat, row: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return [0.0 * state[0]], self.answered(row)

        made = dict(zip(used, looped_over([Items.rows(units)], pushed, [self.q[0]])[1], strict=True))
        found = []
        for one in self.primal.along:
            push: list[Scalar] = [0.0] * self.n
            for j, slope in one.row.items():
                push = [a + slope * b for a, b in zip(push, made[j], strict=True)]
            found.append(replace(one, push=push, slope=1e-30 + one.of(push)))
        return found

    def works(self, parting: Parting, impulses: Flat, end: AccountedStep, of_forces: Scalar) -> Works:
        """Works of all that acts, where those of all rows and of forces are known."""
        driven, lifting = self.driven(impulses, parting)
        work = end.work
        return Works(of_forces + driven + lifting, work[0] + work[1] + work[2] - driven)

    def driven(self, impulses: Flat, parting: Parting | None = None) -> list[Scalar]:
        """Works that surfaces drive, which move by themselves or give way, and of lifting what overlaps deeply, J."""
        features = self.crowd.features

        def of_point(now: Flat, slot: Flat, other: Flat, rates: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
            driven, lifting = now
            (_, gap, drift), (before, after), point = other, rates, KeptPoint.of(slot, self.crowd.names)
            is_used = point.more["number"] > 0.0
            soft: Scalar = 0.0
            if features.drifts:
                spin, slide = point.drift
                for (moment, force), x in zip(ways(features, point), own, strict=True):
                    soft = soft + x * (moment.dot(spin) + force.dot(slide))
            pressed: Scalar = 0.0
            if parting is not None:
                pressed = where(parting.is_granted(gap), maximum(own[0] * (after + drift), 0.0), 0.0)
            if features.gives:
                gives = point.more["stiffness"] > 0.0
                soft = soft + where(gives, 0.5 * own[0] * (before + after), 0.0)
                pressed = where(gives, 0.0, pressed)
            return [driven + where(is_used, soft, 0.0), lifting + where(is_used, pressed, 0.0)], []

        if parting is None and not (features.drifts or features.gives):
            return [0.0, 0.0]
        columns = [self.slots, self.others, self.rates, self.primal.of_points(impulses)]
        return over_used(self.used, columns, of_point, [0.0, 0.0])[0]

    # The end.
    def end(self, v_new: list[Scalar], impulses: list[Scalar]) -> AccountedStep:
        """The q⁺, v⁺, gaps, and where energy came from and went."""
        h, count, gives, primal = self.h, self.crowd.kept, self.crowd.features.gives, self.primal
        near = maximum(CLOSE, STEADY * h * h) if self.held.closes else CLOSE

        def row(
            now: Flat, slot: Flat, J: Flat, laws: Flat, before: Flat, other: Flat, own: Flat
        ) -> tuple[list[Scalar], list[Scalar]]:
            (total, s, *worst), (_, start, drift), more = now, other, KeptPoint.of(slot, self.crowd.names).more
            after = [primal.rate(J, j, v_new) for j in range(self.rows)]
            work = sum((0.5 * x * (a + b) for x, a, b in zip(own, before, after, strict=True)), 0.0)
            rates = [before[0] - drift, after[0] - drift]
            part = part_of_mean(start, h, rates[0], rates[1], near)
            part = where(more["stiffness"] > 0.0, 1.0, part) if gives else part
            is_used = more["number"] > 0.0
            missed = self.primal.missed_by_point(laws, own, after)
            worst = [where(is_used, maximum(a, hold(b)), a) for a, b in zip(worst, missed, strict=True)]
            return [total + where(is_used, work, 0.0), where(is_used, minimum(s, part), s), *worst], rates

        columns = [self.slots, primal.J, primal.laws, self.before, self.others, primal.of_points(impulses)]
        (work, s, *worst), made = over_used(self.used, columns, row, [0.0, 1.0, 0.0, 0.0, 0.0])
        self.rates = Items([x for two in made for x in two], range(0, 2 * count, 2), 2)
        """Of each point how fast its gap grows before and after."""
        works: list[Scalar] = [work, 0.0, 0.0]
        after = [one.of(v_new) for one in self.primal.along]
        joints = zip(self.joints.rows, self.joints.before, after, impulses[count * self.rows :], strict=True)
        for kind, a, b, x in joints:
            place = 2 if isinstance(kind, FrictionOf) else 1
            works[place] = works[place] + 0.5 * x * (a + b)
        for gap, rates in self.joints.gaps((self.joints.before, after)):
            s = minimum(s, part_of_mean(gap, h, *rates))

        def at_end(_: Flat, other: Flat, rates: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return [], [other[1] + h * ((1.0 - 0.5 * s) * rates[1] + 0.5 * s * rates[0])]

        numbers = [self.used.of(k)[0] for k in range(count)]
        made = over_used(self.used, [self.others, self.rates], at_end, [])[1]
        gaps = [where(number > 0.0, gap, UNUSED_GAP) for number, (gap,) in zip(numbers, made, strict=True)]
        moved = [h * ((1.0 - 0.5 * s) * b - 0.5 * (1.0 - s) * a) for a, b in zip(self.v, v_new, strict=True)]
        residuals = [hold(x) for x in primal.missed_along(worst, v_new, impulses)]
        q_end, v_end = carry(self.tree, self.q, moved), carried(self.tree, v_new, moved)
        last = ContactStep(q_end, v_end, [*impulses, *numbers], gaps, residuals, self.overflow)
        both = list(zip(self.v, v_new, strict=True))
        shift = [x - 0.5 * h * b for x, (_, b) in zip(moved, both, strict=True)]
        return AccountedStep(last, works, [0.5 * (a + b) for a, b in both], [b - a for a, b in both], shift)


def _dot(a: Flat, i: int, b: Flat, j: int, n: int) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a[i * n : (i + 1) * n], b[j * n : (j + 1) * n], strict=True):
        total = total + x * y
    return total


def _largest(W: Sequence[Flat]) -> Scalar:
    """The largest eigenvalue of a matrix of one or two rows."""
    if len(W) == 1:
        return W[0][0]
    (a, b), (_, c) = W
    half = 0.5 * (a - c)
    return 0.5 * (a + c) + sqrt(half * half + b * b)
