"""One step in time of a crowd: Moreau's midpoint rule as in :mod:`linkwise.contact.step`, with loops over points.

The nearest points of all pairs are found in the middle of the step (:mod:`linkwise.contact.crowd`), their rows are
gathered, and their impulses are found as velocities of the freedoms (:mod:`linkwise.contact.primal`). Impulses of a
step are those of the kept points, of the rows along joints, and then the numbers of the points: a point that was there
in the step before begins with the impulse it had, in whatever place it stands now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.algorithms.articulated import articulate, innovate
from linkwise.algorithms.configuration import carried, carry, carry_rates
from linkwise.algorithms.equations import Constraint
from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.kinematics import Placed, at_rest, next_motion, placed, velocities
from linkwise.algorithms.mass_matrix import mass_matrix
from linkwise.algorithms.pulls import own_efforts
from linkwise.algorithms.sweeps import Field, outward
from linkwise.contact.cones import Cone
from linkwise.contact.crowd import MOVING, Crowd, KeptPoint, Moving, long, outboard
from linkwise.contact.elimination import squared
from linkwise.contact.features import Features
from linkwise.contact.geometry.points import UNUSED_GAP, tangents
from linkwise.contact.holding import Held, Holding
from linkwise.contact.joint_rows import FrictionOf, JointCones, JointRow, slopes_of
from linkwise.contact.passivity import Parting, Works, balanced, work_in_step
from linkwise.contact.primal import Along, Laws, Primal, over_used
from linkwise.contact.results import ContactStep
from linkwise.contact.smoothed import NARROW
from linkwise.contact.step import AccountedStep, part_of_mean, stiffened
from linkwise.mechanism.contacts import ContactRules
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Items, Scalar, hold, looped_over, maximum, minimum, sqrt, where
from linkwise.spatial.vectors import Motion, Vec

Flat = Sequence[Scalar]

STUCK = 1e-3
"""Of the mobility of the whole mass: points that joints let part less than this give way by as much, so that what no
joint can part is not pressed apart without bounds."""

FIRM = 1e-7
"""Of a point's own mobility, by which its normal gives way: one that friction alone wedges has some impulse then."""


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
) -> AccountedStep:
    """The end of a step of size h, with an account of energy; arguments as of :func:`~linkwise.contact.step`'s."""
    rules = ContactRules() if rules is None else rules
    middle = MiddleOfCrowd(crowd, q, v, h, implicit, joints, rules, constraints, t)
    begin = remembered(middle.slots, middle.rows, impulses)
    free = middle.free_velocity(tau, begin, f_ext, rules.passes)
    is_differentiated = any(hold(x) is not x for x in (*q, *v, *tau, *impulses))
    if is_differentiated:
        held = [[hold(x) for x in numbers] for numbers in (free, begin)]
        v_new, found, eased = middle.primal.held().solved(held[0], held[1], rules)
        middle.primal = middle.primal.eased(eased)
        width = rules.smoothing if rules.backward == "smooth" else NARROW * sqrt(maximum(squared(found), 1e-30))
        v_new, found = middle.primal.differentiated(free, v_new, found, middle.answered, width)
    else:
        v_new, found, eased = middle.primal.solved(free, begin, rules)
        middle.primal = middle.primal.eased(eased)
    end = middle.end(v_new, found)
    if middle.parting is None:
        return end
    done = work_in_step(crowd.tree, middle.q, h, tau, f_ext, implicit, (end.mean, end.change, end.shift))
    works = middle.works(middle.parting, found, end, done)
    q_end, v_end = balanced(crowd.tree, (q, v), (end.step.q, end.step.v), works)
    return end._replace(step=end.step._replace(q=q_end, v=v_end))


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
    ) -> None:
        self.crowd, self.h, self.rules, tree = crowd, h, rules, crowd.tree
        self.tree = tree if implicit is None else stiffened(tree, implicit)
        half = [0.5 * h * x for x in v]
        self.q, self.v = carry(tree, q, half), carried(tree, v, half)
        self.frames = placed(tree, self.q)
        turning = carry_rates(tree, self.v)
        motions = outward(tree, lambda k, up: next_motion(k, up, self.q, self.v, turning), at_rest(Vec.zero()))
        self.slots, self.overflow = crowd.nearest(self.frames, self._moving(motions))
        self.axes = articulate(self.tree, self.q)
        self.held = Held(self.tree, self.q, self.axes, Holding(tree, constraints, (q, v), (self.q, self.v), t, h))
        # What closures that are driven do is not known here: with them, steps are as they are.
        self.parting = Parting.of(tree, q, v) if rules.passive and not self.held.closes else None
        self.n, self.rows = len(self.v), crowd.features.rows
        self.joints = JointCones(tree, joints, self.q, self.v, h)
        self.primal = self._primal()

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

    def free_velocity(self, tau: Flat, impulses: Flat, f_ext: Forces, passes: int) -> list[Scalar]:
        """The velocity at the end without impulses."""
        mean, free = self.v, self.v
        for left in reversed(range(passes)):
            b = needed_forces(self.tree, self.q, mean, carry_rates(self.tree, mean), f_ext)
            nu = innovate(self.tree, self.q, self.axes, lambda link: own_efforts(link, tau), b)
            free = [a + x for a, x in zip(self.v, self.held.gained(nu, self.h), strict=True)]
            if left:
                mean = [0.5 * (a + b) for a, b in zip(self.v, self._foreseen(free, impulses), strict=True)]
        return free

    def _foreseen(self, free: list[Scalar], impulses: Flat) -> list[Scalar]:
        """The velocity at the end with those impulses of the step before, or that part of them, which take most energy.

        It is all of them where contact goes on as it was, and little after an impact.
        """
        push = [b - a for a, b in zip(free, self.primal.pushed(free, impulses), strict=True)]

        def row(sums: Flat, line: Flat, both: Flat) -> tuple[list[Scalar], list[Scalar]]:
            y = sum((a * x for a, x in zip(line, push, strict=True)), 0.0)
            return [sums[0] + y * both[0], sums[1] + y * both[1]], []

        both = Items.rows(list(zip(free, push, strict=True)))
        (along, square), _ = looped_over([self.primal.M, both], row, [0.0, 0.0])
        part = minimum(maximum(-along / maximum(square, 1e-30), 0.0), 1.0)
        return [a + part * b for a, b in zip(free, push, strict=True)]

    # Rows of points.
    def _primal(self) -> Primal:
        columns, v, features = columns_of(self.tree, self.frames, self.q), self.v, self.crowd.features
        folded = Folded(self.tree)
        disks = (2, *[1] * features.torsion, *[2] * features.rolling)
        radii = ("friction", *["torsion"] * features.torsion, *["rolling"] * features.rolling)
        names = self.crowd.names

        def one(state: Flat, slot: Flat) -> tuple[list[Scalar], list[Scalar]]:
            point = KeptPoint.of(slot, names)
            arms = [_arm(column, point) for column in columns]
            J = [
                folded([moment.dot(arm.ang) + force.dot(arm.lin) for arm in arms])
                for moment, force in ways(self.crowd.features, point)
            ]
            before = [sum((a * x for a, x in zip(line, v, strict=True)), 0.0) for line in J]
            bias, give, gap, drift = self._laws(point, before)
            return [], [*(x for line in J for x in line), *before, *bias, give, gap, drift]

        slots, used = Items.rows(self.slots), Items.rows([[slot[10]] for slot in self.slots])
        made = over_used(used, [slots], one, [])[1]
        everything, size = [x for row in made for x in row], len(made[0])
        width, count = self.rows * self.n, len(self.slots)
        starts = [k * size for k in range(count)]
        parts = [Items(everything, [s + width + k * self.rows for s in starts], self.rows) for k in (0, 1)]
        others = Items(everything, [s + width + 2 * self.rows for s in starts], 3)
        self.before, self.others = parts[0], [others.of(k) for k in range(count)]
        J = Items(everything, starts, width)

        def column(state: Flat, axis: Flat) -> tuple[list[Scalar], list[Scalar]]:
            def of_point(state: Flat, slot: Flat) -> tuple[list[Scalar], list[Scalar]]:
                point = KeptPoint.of(slot, names)
                arm = _arm(axis, point)
                return [], [moment.dot(arm.ang) + force.dot(arm.lin) for moment, force in ways(features, point)]

            return [], [x for row in over_used(used, [slots], of_point, [])[1] for x in row]

        by_freedom = Items.rows(folded.rows(looped_over([Items.rows(columns)], column, [])[1]))

        def pushed(state: Flat, row: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return [], self.answered(row)

        rows = Items(everything, [s + j * self.n for s in starts for j in range(self.rows)], self.n)
        by_row = Items(used.numbers, [k for k in used.starts for _ in range(self.rows)], 1)
        pushes = [x for row in over_used(by_row, [rows], pushed, [])[1] for x in row]
        U = Items(pushes, [k * width for k in range(count)], width)

        def laws(
            state: Flat, slot: Flat, J: Flat, U: Flat, bias: Flat, other: Flat
        ) -> tuple[list[Scalar], list[Scalar]]:
            used, more, ells, start, give = slot[10] > 0.0, KeptPoint.of(slot, names).more, [], 0, other[0]
            for rows in (1, *disks):
                own = range(start, start + rows)
                ell = _largest([[_dot(J, i, U, j, self.n) for j in own] for i in own])
                if start == 0:
                    give = maximum(give, maximum(stuck - ell, FIRM * ell))
                    ell = ell + give
                ells.append(where(used, maximum(ell, 1e-30), 1.0))
                start += rows
            eased = maximum(bias[0] + other[2], 0.0) - other[2]
            return [], Laws(bias, eased, give, [more[name] for name in radii], ells).numbers

        # Not the tree's masses: regrouped, those of an arm on the ground are all its base's, which does not move.
        stuck = STUCK / max(self.crowd.mass, 1e-30)
        found = Items.rows(over_used(used, [slots, J, U, parts[1], others], laws, [])[1])
        M = self.held.heavier(mass_matrix(self.tree, self.q), self.h)
        return Primal(M, J, U, by_freedom, found, disks, self._along(), used)

    def answered(self, effort: Flat) -> list[Scalar]:
        """𝓜⁻¹ times an effort, with closures held."""
        nu = innovate(self.tree, self.q, self.axes, lambda link: own_efforts(link, effort), None)
        return self.held.changed(nu)

    def _laws(self, point: KeptPoint, before: Flat) -> tuple[list[Scalar], Scalar, Scalar, Scalar]:
        """Of one point the bias of each row, the compliance, what its gap is counted from, and the normal's drift."""
        h, more, features = self.h, point.more, self.crowd.features
        spin, slide = point.drift
        drifts = [moment.dot(spin) + force.dot(slide) for moment, force in ways(self.crowd.features, point)]
        approach = before[0] - drifts[0]
        gap = point.gap - 0.5 * h * approach
        meets = gap + h * approach < 0.0
        pivots = maximum(minimum(approach, point.turning.dot(point.normal)), 0.0)
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
        first, second = tangents(point.normal)
        slip = [before[k] - drifts[k] for k in (1, 2)]
        along = [first.dot(point.turning), second.dot(point.turning)]
        both, square = (sum((a * b for a, b in zip(along, x, strict=True)), 0.0) for x in (slip, along))
        part = minimum(maximum(both / maximum(square, 1e-30), 0.0), 1.0)
        apart = sum(((a - b) * (a - b) for a, b in zip(along, slip, strict=True)), 0.0)
        turned = [where(apart < 0.0625 * square, x, part * a) for x, a in zip(slip, along, strict=True)]
        rest = [-x for x in drifts[3:]]
        return (
            [bias - drifts[0], *(t - d for t, d in zip(turned, drifts[1:3], strict=True)), *rest],
            give,
            gap + 0.25 * h * pivots,
            drifts[0],
        )

    # Rows along joints.
    def _along(self) -> list[Along]:
        rows = []
        for row in self.joints.rows:
            link = self.tree.links[row.joint.index]
            slopes = slopes_of(row, self.tree, self.q)
            scale = link.multiplier if link.is_mimic else 1.0
            rows.append({link.v_start + i: scale * x for i, x in enumerate(slopes) if not _is_nothing(x)})
        used = sorted({j for row in rows for j in row})
        if not used:
            return []
        units = [[1.0 if i == j else 0.0 for i in range(self.n)] for j in used]

        def pushed(state: Flat, row: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return [0.0 * state[0]], self.answered(row)

        made = dict(zip(used, looped_over([Items.rows(units)], pushed, [self.q[0]])[1], strict=True))
        found = []
        for own, cone in zip(rows, self.joints.cones(0, self.rules.recovery), strict=True):
            push: list[Scalar] = [0.0] * self.n
            for j, slope in own.items():
                push = [a + slope * b for a, b in zip(push, made[j], strict=True)]
            ell: Scalar = 1e-30
            for j, slope in own.items():
                ell = ell + slope * push[j]
            bare = Cone((), cone.bias, cone.kind, cone.radius)
            found.append(Along(own, push, bare, ell))
        return found

    def works(self, parting: Parting, impulses: Flat, end: AccountedStep, of_forces: Scalar) -> Works:
        """Works of all that acts, where those of all rows and of forces are known."""
        driven: Scalar = 0.0  # by surfaces that move by themselves, and by those that give way
        lifting: Scalar = 0.0  # of what overlaps deeply
        features = self.crowd.features
        for k, (slot, (_, gap, drift), (before, after)) in enumerate(
            zip(self.slots, self.others, self.rates, strict=True)
        ):
            own, point = impulses[k * self.rows : (k + 1) * self.rows], KeptPoint.of(slot, self.crowd.names)
            soft: Scalar = 0.0
            if features.drifts:
                spin, slide = point.drift
                for (moment, force), x in zip(ways(features, point), own, strict=True):
                    driven = driven + x * (moment.dot(spin) + force.dot(slide))
            pressed = where(parting.is_granted(gap), maximum(own[0] * (after + drift), 0.0), 0.0)
            if features.gives:
                gives = point.more["stiffness"] > 0.0
                soft = where(gives, 0.5 * own[0] * (before + after), 0.0)
                pressed = where(gives, 0.0, pressed)
            driven, lifting = driven + soft, lifting + pressed
        work = end.work
        return Works(of_forces + driven + lifting, work[0] + work[1] + work[2] - driven)

    # The end.
    def end(self, v_new: list[Scalar], impulses: list[Scalar]) -> AccountedStep:
        """The q⁺, v⁺, gaps, and where energy came from and went."""
        h, count = self.h, len(self.slots)

        def row(total: Flat, J: Flat, before: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
            after = [
                sum((a * x for a, x in zip(J[j * self.n : (j + 1) * self.n], v_new, strict=True)), 0.0)
                for j in range(self.rows)
            ]
            work = sum((0.5 * x * (a + b) for x, a, b in zip(own, before, after, strict=True)), 0.0)
            return [total[0] + work], [after[0]]

        own = Items(impulses[: count * self.rows], range(0, count * self.rows, self.rows), self.rows)
        (work,), afters = looped_over([self.primal.J, self.before, own], row, [0.0])
        s: Scalar = 1.0
        self.rates: list[tuple[Scalar, Scalar]] = []
        """Of each point how fast its gap grows before and after."""
        for k, (slot, (_, start, drift), after) in enumerate(zip(self.slots, self.others, afters, strict=True)):
            two = self.before.of(k)[0] - drift, after[0] - drift
            self.rates.append(two)
            rigid = KeptPoint.of(slot, self.crowd.names).more.get("stiffness", 0.0)
            whole = part_of_mean(start, h, *two)
            s = minimum(s, whole if not self.crowd.features.gives else where(rigid > 0.0, 1.0, whole))
        works: list[Scalar] = [work, 0.0, 0.0]
        joints = zip(self.joints.rows, self.joints.gaps, self.joints.before, self.primal.along, strict=True)
        for (kind, gap, before, one), x in zip(joints, impulses[count * self.rows :], strict=True):
            after = one.of(v_new)
            place = 2 if isinstance(kind, FrictionOf) else 1
            works[place] = works[place] + 0.5 * x * (before + after)
            if gap is not None:
                s = minimum(s, part_of_mean(gap, h, before, after))
        gaps = [
            where(slot[10] > 0.0, gap + h * ((1.0 - 0.5 * s) * b + 0.5 * s * a), UNUSED_GAP)
            for slot, (_, gap, _), (a, b) in zip(self.slots, self.others, self.rates, strict=True)
        ]
        moved = [h * ((1.0 - 0.5 * s) * b - 0.5 * (1.0 - s) * a) for a, b in zip(self.v, v_new, strict=True)]
        numbers = [slot[10] for slot in self.slots]
        residuals = [hold(x) for x in self.primal.residuals(v_new, impulses)]
        q_end, v_end = carry(self.tree, self.q, moved), carried(self.tree, v_new, moved)
        last = ContactStep(q_end, v_end, [*impulses, *numbers], gaps, residuals, self.overflow)
        both = list(zip(self.v, v_new, strict=True))
        shift = [x - 0.5 * h * b for x, (_, b) in zip(moved, both, strict=True)]
        return AccountedStep(last, works, [0.5 * (a + b) for a, b in both], [b - a for a, b in both], shift)


def crowd_push(crowd: Crowd, q: Flat, impulses: Flat) -> list[Scalar]:
    """Joint impulses J*λ of the kept points, from impulses of a step."""
    frames = placed(crowd.tree, q)
    slots, _ = crowd.nearest(frames)
    columns, folded = columns_of(crowd.tree, frames, q), Folded(crowd.tree)
    own = remembered(slots, crowd.features.rows, impulses)

    def step(total: Flat, slot: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
        point = KeptPoint.of(slot, crowd.names)
        arms, found = [_arm(column, point) for column in columns], list(total)
        for (moment, force), x in zip(ways(crowd.features, point), own, strict=True):
            along = folded([moment.dot(arm.ang) + force.dot(arm.lin) for arm in arms])
            found = [a + x * b for a, b in zip(found, along, strict=True)]
        return found, []

    rows = [own[k : k + crowd.features.rows] for k in range(0, len(own), crowd.features.rows)]
    return looped_over([Items.rows(slots), Items.rows(rows)], step, [0.0] * folded.count)[0]


def remembered(slots: Sequence[Flat], rows: int, impulses: Flat) -> list[Scalar]:
    """Impulses of the step before, each where its point is now."""
    count = len(slots)
    of_joints, numbers = impulses[count * rows : len(impulses) - count], impulses[len(impulses) - count :]

    def step(state: Flat, slot: Flat) -> tuple[list[Scalar], list[Scalar]]:
        found: list[Scalar] = [0.0] * rows
        for k, number in enumerate(numbers):
            same = _same(slot[0], number)
            found = [where(same, a, b) for a, b in zip(impulses[k * rows : (k + 1) * rows], found, strict=True)]
        return [], found

    made = looped_over([Items.rows([[slot[10]] for slot in slots])], step, [])[1]
    return [*(x for row in made for x in row), *of_joints]


class Folded:
    """Numbers of freedoms from those of joint axes: those of joints that follow others count for these."""

    def __init__(self, tree: Tree) -> None:
        self.axes = [
            (link.v_start + i, link.multiplier if link.is_mimic else None)
            for link in tree.links
            for i in range(link.joint.nv)
        ]
        self.count = sum(scale is None for _, scale in self.axes)

    def __call__(self, of_axes: Flat) -> list[Scalar]:
        """Of a number for each axis."""
        return [x for (x,) in self.rows([[x] for x in of_axes])]

    def rows(self, of_axes: Sequence[Flat]) -> list[list[Scalar]]:
        """Of several numbers for each axis."""
        found: list[list[Scalar]] = [[] for _ in range(self.count)]
        for (place, scale), row in zip(self.axes, of_axes, strict=True):
            if scale is None:
                found[place] = list(row)
        for (place, scale), row in zip(self.axes, of_axes, strict=True):
            if scale is not None:
                found[place] = [a + scale * b for a, b in zip(found[place], row, strict=True)]
        return found


def columns_of(tree: Tree, frames: Field[Placed], q: Flat) -> list[list[Scalar]]:
    """Of each joint axis the axis in the world, [ω; v] at its origin, and the links that move with it."""
    found = []
    ranges = outboard(tree)
    for link in tree.links:
        frame = frames[link]
        for axis in link.S(q):
            omega = frame.R @ axis.ang
            found.append([*omega, *(frame.R @ axis.lin + frame.p.cross(omega)), *ranges[link.index]])
    return found


def ways(features: Features, point: KeptPoint) -> list[tuple[Vec, Vec]]:
    """Of each row of a point the moment and the force, unit vectors or zero, in the world's axes."""
    none, along = Vec.zero(), tangents(point.normal)
    found = [(none, point.normal), *((none, t) for t in along)]
    if features.torsion:
        found.append((point.normal, none))
    if features.rolling:
        found += [(t, none) for t in along]
    return found


def _same(a: Scalar, b: Scalar) -> Scalar:
    """Whether two whole numbers are the same."""
    return (a - b > -0.5) & (a - b < 0.5)


def _is_nothing(x: Scalar) -> bool:
    return isinstance(x, float) and x == 0.0


def _arm(column: Flat, point: KeptPoint) -> Motion:
    """How the first surface moves against the second at a point, in the world's axes, for one freedom's motion."""
    omega, v, (first, last) = Vec.of(column[:3]), Vec.of(column[3:6]), column[6:]
    sides = []
    for name in ("first", "second"):
        number = point.more[name]
        sides.append(where((number > first - 0.5) & (number < last + 0.5), 1.0, 0.0))
    sign = sides[0] - sides[1]
    return Motion(omega * sign, (v + omega.cross(point.grip)) * sign)


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
