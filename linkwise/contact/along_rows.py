"""Impulses of the points of a crowd, found along their own rows, in groups: those of a point, and ends of ranges.

Many points are kept, of which a state mostly uses few. Their impulses change velocities along the rows by W = J𝓜⁻¹J*;
with 𝓜⁻¹ = [I - HψK]*D⁻¹[I - HψK] and a = D^(-½)[I - HψK]J* of each row, half of a solve, W is a*a. Sweeps and Newton
steps on smoothed laws (:mod:`linkwise.contact.smoothed`) go over the groups that are used
(:mod:`linkwise.spatial.grouped_systems`). Nearly all states use no more than some, ``FEW``, and are solved first; the
rest, and those without a solution, are solved beside each other with all points there are, and with those ends that
come near or were reached, as long as others are reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from linkwise.contact.cones import UNSOLVED, UNSOLVED_SINGLE, Cone
from linkwise.contact.near_ends import Ends, Factors, NearEnds
from linkwise.contact.point_laws import Laws, over_used
from linkwise.contact.smoothed import FIRMNESS, SmoothedSlope, followed, is_missed
from linkwise.mechanism.contacts import ContactRules
from linkwise.spatial.grouped_systems import GroupedRows, grouped_products, grouped_solution, grouped_sweeps
from linkwise.spatial.scalar import Items, Scalar, maximum, minimum, repeated_while, where

if TYPE_CHECKING:
    from linkwise.contact.crowd_step import Begun, MiddleOfCrowd

Flat = Sequence[Scalar]

FEW = 8, 6
"""Groups of points, and of ends of ranges, that nearly all states have room in."""

TOGETHER, MORE_TOGETHER = 4, 8
"""Groups that are passed over together where no state uses them: where points are few, and where they are many."""

SWEEPS_AGAIN, SWEEPS_AT_A_TIME = 800, 20
"""The most sweeps for states that Newton steps do not solve, and how many of them between two looks at the laws."""

NOTHING = 1e-8
"""Of 1/ℓ, below which an impulse does not answer to a velocity."""

_TINY = 1e-30


class Grouped:
    """Rows of points and of ends of ranges with their laws, and how velocities V along them answer to impulses.

    Args:
        rows: groups of points, and of ends.
        used: of each group one where it is used, else zero.
        W: blocks of W.
        laws: of each point the numbers of its :class:`~linkwise.contact.point_laws.Laws`.
        disks: rows of each disk of a point.
        ends: of each group of ends the lower ones, the upper ones, the radii (negative for ranges, of friction h times
            its force), which are used, and the signs of the ends that smoothed laws speak of.
    """

    def __init__(
        self, rows: GroupedRows, used: Flat, W: Flat, laws: Items, disks: Sequence[int], ends: Items | None
    ) -> None:
        self.rows, self.used, self.W, self.laws, self.disks, self.ends = rows, used, W, laws, disks, ends
        self.points = rows.groups
        """Number of normals, or somewhat less."""
        count = rows.sources[0]
        self.size = rows.size
        diagonal = [rows.block(k, k) for k in range(rows.groups)]
        self._columns = [[Items(used, range(count), 1), laws, Items(W, diagonal[:count], rows.size**2)]]
        if ends is not None:
            own = Items(used, range(count, rows.groups), 1)
            self._columns.append([own, ends, Items(W, diagonal[count:], rows.size**2)])
        texts: list[_OfPoint | _OfEnds] = [_OfPoint(disks, rows.size), _OfEnds(rows.size)]
        self._texts = texts[: len(self._columns)]

    def eased(self, eased: Scalar) -> Grouped:
        """The same, where the number is one without surfaces that have to part."""

        def point(_: Flat, numbers: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return [], [where(eased > 0.5, Laws.of(numbers, self.disks).eased, numbers[0]), *numbers[1:]]

        def end(_: Flat, numbers: Flat) -> tuple[list[Scalar], list[Scalar]]:
            both = 2 * self.size
            return [], [*(where(eased > 0.5, maximum(x, 0.0), x) for x in numbers[:both]), *numbers[both:]]

        used = [column[0] for column in self._columns]
        laws = Items.rows(over_used(used[0], [self.laws], point, [])[1])
        ends = None if self.ends is None else Items.rows(over_used(used[1], [self.ends], end, [])[1])
        return Grouped(self.rows, self.used, self.W, laws, self.disks, ends)

    def with_ends_chosen(self, V: Flat) -> Grouped:
        """The same, whose smoothed laws speak of the ends of ranges alone that velocities lead to."""
        if self.ends is None:
            return self
        size, (count, _) = self.size, self.rows.sources
        text = _OfEnds(size)

        def chosen(_: Flat, numbers: Flat, V: Flat) -> tuple[list[Scalar], list[Scalar]]:
            rows = text.rows(V, V, numbers, [0.0] * size**2)
            return [], [*numbers[: 4 * size], *(row.cones[0].nearer_end(row.w)[0] for row in rows)]

        of_ends = Items(V, range(count * size, self.rows.groups * size, size), size)
        ends = Items.rows(over_used(self._columns[1][0], [self.ends, of_ends], chosen, [])[1])
        return Grouped(self.rows, self.used, self.W, self.laws, self.disks, ends)

    def swept(self, V: Flat, impulses: Flat, count: int) -> tuple[list[Scalar], list[Scalar]]:
        """Several passes over the groups, each with the velocities that the ones before it left."""
        steps = [text.swept for text in self._texts]
        return grouped_sweeps(self.rows, self.used, (V, impulses), self.W, self._columns, steps, count)

    def missed(self, V: Flat, impulses: Flat) -> Scalar:
        """The sum of (λ - proj(λ - w/ℓ))², what the laws are missed by."""
        total: list[Scalar] = [0.0]
        for text, columns in zip(self._texts, self._of_groups(V, impulses), strict=True):

            def step(now: Flat, *items: Flat, text: _OfPoint | _OfEnds = text) -> tuple[list[Scalar], list[Scalar]]:
                return [now[0] + where(items[0][0] > 0.0, text.missing(*items[1:]), 0.0)], []

            total = over_used(columns[0], columns, step, total)[0]
        return total[0]

    def signorini(self, V: Flat, impulses: Flat) -> Scalar:
        """The largest residual of Signorini's condition, m/s."""
        worst: list[Scalar] = [0.0]
        for text, columns in zip(self._texts, self._of_groups(V, impulses), strict=True):

            def step(now: Flat, *items: Flat, text: _OfPoint | _OfEnds = text) -> tuple[list[Scalar], list[Scalar]]:
                return [maximum(now[0], where(items[0][0] > 0.0, text.signorini(*items[1:]), 0.0))], []

            worst = over_used(columns[0], columns, step, worst)[0]
        return worst[0]

    def newton_step(self, V: Flat, impulses: Flat, width: Scalar, proximal: Scalar) -> list[Scalar]:
        """The changes of V and of λ that laws ask for which are smoothed over a width.

        With δ = L δV + s of every group, and δV = W δ, (I - L W) δ = s.
        """
        size, square = self.size, width * width
        lines: list[Scalar] = []
        shift: list[Scalar] = []
        active: list[Scalar] = []
        for text, columns in zip(self._texts, self._of_groups(V, impulses), strict=True):

            def step(_: Flat, *items: Flat, text: _OfPoint | _OfEnds = text) -> tuple[list[Scalar], list[Scalar]]:
                used, V, own, laws, W = items
                K, shift = text.answer(V, own, laws, W, square, proximal)
                asked = (used[0] > 0.0) & text.is_active(K, laws, W)
                lines = (where(asked, -x, 0.0) for line in K for x in line)
                return [], [*lines, *(-x for x in shift), where(asked, 1.0, 0.0)]

            for k, row in enumerate(over_used(columns[0], columns, step, [])[1]):
                is_used = columns[0].of(k)[0] > 0.0
                lines += row[: size * size]
                shift += [where(is_used, x, 0.0) for x in row[size * size : -1]]
                active.append(where(is_used, row[-1], 0.0))
        change, moved = grouped_solution(self.rows, self.used, active, lines, shift, self.W)
        return [*moved, *change]

    def _of_groups(self, V: Flat, impulses: Flat) -> list[list[Items]]:
        """Columns with V and impulses of each group."""
        found, first = [], 0
        for columns, count in zip(self._columns, self.rows.sources, strict=True):
            starts = range(first * self.size, (first + count) * self.size, self.size)
            found.append([columns[0], *(Items(x, starts, self.size) for x in (V, impulses)), *columns[1:]])
            first += count
        return found


class _OfPoint:
    """Texts of a group that is a point: its V, impulses, numbers of laws, and block of W."""

    def __init__(self, disks: Sequence[int], size: int) -> None:
        self.disks, self.size = disks, size

    def swept(self, V: Flat, own: Flat, used: Flat, laws: Flat, W: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """Impulses after a pass, and their changes."""
        now = list(V)

        def changed(j: int, change: Scalar) -> None:
            for i in range(self.size):
                now[i] = now[i] + W[i * self.size + j] * change

        found = Laws.of(laws, self.disks).swept(own, lambda j: now[j], changed)
        found = [where(used[0] > 0.0, a, b) for a, b in zip(found, own, strict=True)]
        return found, [a - b for a, b in zip(found, own, strict=True)]

    def _of(self, V: Flat, laws: Flat) -> tuple[Laws, list[Scalar]]:
        known = Laws.of(laws, self.disks)
        return known, [a + b for a, b in zip(V, known.bias, strict=True)]

    def missing(self, V: Flat, own: Flat, laws: Flat, _: Flat) -> Scalar:
        """The square of the distance by which laws are missed."""
        known, w = self._of(V, laws)
        return known.missing(own, w)

    def signorini(self, V: Flat, own: Flat, laws: Flat, _: Flat) -> Scalar:
        """Residual of Signorini's condition."""
        known, w = self._of(V, laws)
        return known.residuals(own, w)[0]

    def answer(
        self, V: Flat, own: Flat, laws: Flat, _: Flat, square: Scalar, proximal: Scalar
    ) -> tuple[list[list[Scalar]], list[Scalar]]:
        """-δ as K δV + shift."""
        known, w = self._of(V, laws)
        return known.answer(own, w, square, proximal, FIRMNESS)

    def is_active(self, K: Sequence[Flat], laws: Flat, _: Flat) -> Any:
        """Whether impulses answer to velocities at all: where a point is open they do not."""
        return K[0][0] * Laws.of(laws, self.disks).slopes[0] > NOTHING


class _EndRow(NamedTuple):
    """A row along joints: a range, or dry friction.

    Args:
        ends: of a range, as of :class:`~linkwise.contact.cones.Cone`.
        radius: of friction; negative of a range.
        used: positive where it is used.
        side: as of :class:`~linkwise.contact.cones.Cone`.
        w: velocity.
        x: impulse.
        ell: ℓ.
    """

    ends: tuple[Scalar, Scalar]
    radius: Scalar
    used: Scalar
    side: Scalar
    w: Scalar
    x: Scalar
    ell: Scalar

    @property
    def is_range(self) -> Any:
        """Whether it is a range."""
        return self.radius < 0.0

    @property
    def cones(self) -> tuple[Cone, Cone]:
        """The cone of a range, and that of friction."""
        return Cone((), (), "range", ends=self.ends, side=self.side), Cone((), (), "disk", self.radius)

    def nearest(self) -> Scalar:
        """The proj(λ - w/ℓ)."""
        inverse = 1.0 / self.ell
        both = (cone.nearest([self.x - self.w * inverse], 1.0, inverse)[0] for cone in self.cones)
        return where(self.is_range, *both)


class _OfEnds:
    """The same of a group of rows along joints, each with a cone of its own."""

    def __init__(self, size: int) -> None:
        self.size = size

    def rows(self, V: Flat, own: Flat, ends: Flat, W: Flat) -> list[_EndRow]:
        """All rows."""
        n, parts = self.size, zip(*(ends[k * self.size : (k + 1) * self.size] for k in range(5)), strict=True)
        given = zip(parts, V, own, (maximum(W[j * n + j], _TINY) for j in range(n)), strict=True)
        return [
            _EndRow((low, high), radius, used, side, w, x, ell) for (low, high, radius, used, side), w, x, ell in given
        ]

    def swept(self, V: Flat, own: Flat, used: Flat, ends: Flat, W: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """Impulses after a pass, and their changes."""
        now, found, size = list(V), list(own), self.size
        for j, row in enumerate(self.rows(V, own, ends, W)):
            found[j] = where((used[0] > 0.0) & (row.used > 0.0), row._replace(w=now[j]).nearest(), row.x)
            for i in range(size):
                now[i] = now[i] + W[i * size + j] * (found[j] - row.x)
        return found, [a - b for a, b in zip(found, own, strict=True)]

    def missing(self, V: Flat, own: Flat, ends: Flat, W: Flat) -> Scalar:
        """The square of the distance by which laws are missed."""
        total: Scalar = 0.0
        for row in self.rows(V, own, ends, W):
            off = row.x - row.nearest()
            total = total + where(row.used > 0.0, off * off, 0.0)
        return total

    def signorini(self, V: Flat, own: Flat, ends: Flat, W: Flat) -> Scalar:
        """Residual of Signorini's condition."""
        worst: Scalar = 0.0
        for row in self.rows(V, own, ends, W):
            asked = (row.used > 0.0) & row.is_range
            sign, left = row.cones[0].nearer_end(row.w)
            worst = maximum(worst, where(asked, abs(minimum(sign * row.x * row.ell, left)), 0.0))
        return worst

    def answer(
        self, V: Flat, own: Flat, ends: Flat, W: Flat, square: Scalar, proximal: Scalar
    ) -> tuple[list[list[Scalar]], list[Scalar]]:
        """-δ as K δV + shift."""
        K: list[list[Scalar]] = [[0.0] * self.size for _ in range(self.size)]
        shift: list[Scalar] = []
        for j, row in enumerate(self.rows(V, own, ends, W)):
            both = []
            for cone, firmness in zip(row.cones, (FIRMNESS, 1.0), strict=True):
                inverse = firmness / row.ell
                slope = SmoothedSlope.of(cone, [row.x - row.w * inverse], 1.0, square, inverse)
                (factor,) = slope.divided(slope.times_D([inverse]), 0.0, proximal)
                both.append((factor, slope.divided([row.x - slope.value[0]], 0.0, proximal)[0]))
            found = [where(row.used > 0.0, where(row.is_range, a, b), 0.0) for a, b in zip(*both, strict=True)]
            K[j][j] = found[0]
            shift.append(found[1])
        return K, shift

    def is_active(self, K: Sequence[Flat], _: Flat, W: Flat) -> Any:
        """Whether any impulse answers to its velocity."""
        found = K[0][0] * W[0] > NOTHING
        for j in range(1, self.size):
            found = found | (K[j][j] * W[j * self.size + j] > NOTHING)
        return found


class Solution(NamedTuple):
    """Velocities and impulses of all rows, and 1 where laws are eased, else 0."""

    v: list[Scalar]
    impulses: list[Scalar]
    eased: Scalar


class AlongRows:
    """Solver of the middle of a step along rows.

    Args:
        middle: of the step.
        free: velocities without impulses.
        begin: impulses to begin with, and what they do.
    """

    def __init__(self, middle: MiddleOfCrowd, free: Flat, begin: Begun) -> None:
        self.middle, self.free, self.begin = middle, free, begin
        self.primal, self.size, self.kept = middle.primal, middle.rows, middle.crowd.kept
        self.present = [where(middle.used.of(k)[0] > 0.0, 1.0, 0.0) for k in range(self.kept)]
        self.limit = where(middle.h + 1e-10 * middle.h > middle.h, UNSOLVED, UNSOLVED_SINGLE)
        self.speeds = free, [a + b for a, b in zip(free, begin.push, strict=True)]
        """Velocities without impulses, and with those to begin with."""

    def solved(self) -> Solution:
        """The solution of all laws."""
        v, found, missed, failed = self._few()
        first = [where(place > -0.5, 1.0, 0.0) for (place,) in self.middle.near.places]
        ways = len(v), len(found), 2, len(first)

        def reached(v: Flat) -> list[Scalar]:
            """Of each end of a range how fast it is passed by, m/s."""
            ends = ((one.cone, one.of(v)) for one in self.primal.along)
            return [-cone.nearer_end(w)[1] if cone.kind == "range" else 0.0 for cone, w in ends]

        def every(state: list[Scalar]) -> list[Scalar]:
            # From the state: whatever does not depend on it is computed whether it is needed or not.
            v, _, (_, asked), near, free = _parted(state, ways)
            of_ends = zip(near, reached(v), strict=True)
            near = [where((flag > 0.5) | (rate > self.limit), 1.0, 0.0) for flag, rate in of_ends]
            ends = NearEnds(self.middle, [(asked > 0.0) & (flag > 0.5) for flag in near])
            solution = AlongRows(self.middle, free, self.begin)._every(ends, where(asked > 0.0, 1.0, 0.0), asked - 1.0)
            beyond: Scalar = 0.0
            for flag, rate in zip(near, reached(solution.v), strict=True):
                beyond = maximum(beyond, where(flag > 0.5, 0.0, rate))
            again = where(beyond > self.limit, 1.0, 0.0)
            # Some that have no solution have one with all ends, though the others are not reached.
            more = (solution.eased > 0.5) & (sum(near, 0.0) < len(near) - 0.5)
            near = [where(more, 1.0, flag) for flag in near]
            return [*solution.v, *solution.impulses, solution.eased, where(more, 2.0, again), *near, *free]

        # Those that had no room come for the first time, and those that reach ends which were not near.
        for rate in reached(v):
            missed = maximum(missed, rate)
        asked = where(missed > self.limit, where(failed > self.limit, 2.0, 1.0), 0.0)
        state = [*v, *found, 0.0, asked, *first, *self.free]
        state = repeated_while(lambda state: _parted(state, ways)[2][1] > 0.0, every, state)
        v, found, (eased, _), *_ = _parted(state, ways)
        return Solution(v, found, eased)

    def _few(self) -> tuple[list[Scalar], list[Scalar], Scalar, Scalar]:
        """Velocities and impulses of states that have room among few groups, and what they are missed by, m/s.

        Of states that have none, that is much; the last of all is zero then.
        """
        points, rules, near = min(FEW[0], self.kept), self.middle.rules, self.middle.near
        ends = near.gathered(self.speeds, self.begin.impulses[self.primal.count :], self.size, FEW[1])
        count = sum(self.present, 0.0)
        fits = (count < points + 0.5) & (near.count < len(ends.used) * self.size + 0.5)
        grouped, V, impulses = self._grouped(points, self.middle.points, ends, where(fits, 1.0, 0.0))
        V, impulses = grouped.swept(V[1], [where(fits, x, 0.0) for x in impulses], rules.sweeps)
        V, impulses = followed(grouped, V, impulses, rules)
        failed = where(fits, grouped.signorini(V, impulses), 0.0)
        own, of_ends = impulses[: points * self.size], impulses[points * self.size :]
        found = [*own, *[0.0] * (self.primal.count - len(own)), *near.spread(of_ends)]
        return self._v(found), found, where(fits, failed, 1.0), failed

    def _every(self, near: NearEnds, asked: Scalar, failed: Scalar) -> Solution:
        """The solution with all points that are present, and some ends, of states that ask for it.

        ``failed``: one for those that Newton steps do not solve.
        """
        middle, size, count = self.middle, self.size, self.primal.count
        used = [asked * x for x in self.present]
        points = middle.halves(middle.lines, Items(used, [k for k in range(self.kept) for _ in range(size)], 1))
        ends = near.gathered(self.speeds, self.begin.impulses[count:], size)
        grouped, V, impulses = self._grouped(self.kept, points, ends, asked)
        impulses, eased = _attempted(grouped, (V[0], V[1]), impulses, failed, middle.rules, self.limit)
        found = [*impulses[:count], *near.spread(impulses[count:])]
        return Solution(self._v(found), found, eased)

    def _v(self, impulses: Flat) -> list[Scalar]:
        """Velocities with some impulses."""
        push = self.middle.answered(self.primal.effort(impulses))
        return [a + b for a, b in zip(self.free, push, strict=True)]

    def _grouped(
        self, points: int, factors: Factors, ends: Ends, asked: Scalar
    ) -> tuple[Grouped, list[list[Scalar]], list[Scalar]]:
        """So many groups of points and those of ends; V without impulses and to begin with, and these impulses."""
        size, sources = self.size, [(points, factors), (len(ends.used), ends.factors)][: 2 if ends.used else 1]
        rows = GroupedRows(size, tuple(count for count, _ in sources), TOGETHER if points <= 16 else MORE_TOGETHER)
        used = [asked * x for x in (*self.present[:points], *ends.used)]
        left, right = [factors.left for _, factors in sources], [factors.right for _, factors in sources]
        W = grouped_products(rows, used, left, right, [factors.width for _, factors in sources])
        laws = self.primal.laws._replace(starts=self.primal.laws.starts[:points])
        grouped = Grouped(rows, used, W, laws, self.primal.disks, ends.laws if ends.used else None)
        of_points = (*(self.primal.along_points(v) for v in self.speeds), self.begin.impulses)
        *V, impulses = ([*a[: points * size], *b] for a, b in zip(of_points, ends.numbers, strict=True))
        return grouped, V, impulses


def _parted(numbers: list[Scalar], counts: Sequence[int]) -> list[list[Scalar]]:
    """Parts of a list, so many numbers each, and the rest."""
    starts = [0, *accumulate(counts)]
    return [numbers[a:b] for a, b in zip(starts, [*starts[1:], len(numbers)], strict=True)]


def _attempted(
    grouped: Grouped, starts: tuple[Flat, Flat], begin: Flat, failed: Scalar, rules: ContactRules, limit: Scalar
) -> tuple[list[Scalar], Scalar]:
    """Impulses, and 1 where laws are eased.

    Points that jam, pressed together by their own friction, need impulses far larger than those which Newton steps
    begin with, and are not found by them; sweeps go there, slowly. Surfaces that overlap may not all be able to part at
    once, as of a body that is stuck between two others: where no solution is found, none of them has to, and what is
    begun with is forgotten. Where there is still none, sweeps have to do, which take energy away.

    Args:
        grouped: all groups.
        starts: V without impulses, and with those to begin with.
        begin: impulses to begin with.
        failed: one where Newton steps from there on are known to have failed.
        rules: how it is solved.
        limit: m/s, of Signorini's condition, beyond which there is no solution.
    """
    free, V = starts
    n = len(V)

    def attempt(state: list[Scalar]) -> list[Scalar]:
        stage = state[-2]
        laws = grouped.eased(where(stage > 1.5, 1.0, 0.0))
        swept = laws.swept(state[:n], state[n:-2], rules.sweeps)
        swept = _swept_on(laws, *swept, (stage > 0.5) & (stage < 1.5), rules)
        found = followed(laws, *swept, rules)
        before, after = laws.signorini(*swept), laws.signorini(*found)
        worse = (after > limit) & (after > before)
        both = zip([*swept[0], *swept[1]], [*found[0], *found[1]], strict=True)
        kept = [where(worse, a, b) for a, b in both]
        again = (minimum(after, before) > limit) & (stage < 1.5)
        anew = [where(stage > 0.5, a, b) for a, b in zip([*free, *(0.0 for _ in begin)], [*V, *begin], strict=True)]
        following = [where(again, a, b) for a, b in zip(anew, kept, strict=True)]
        return [*following, where(again, stage + 1.0, stage), where(again, 0.0, 1.0)]

    *found, stage, _ = repeated_while(lambda state: state[-1] < 0.5, attempt, [*V, *begin, failed, 0.0])
    return found[n:], where(stage > 1.5, 1.0, 0.0)


def _swept_on(
    laws: Grouped, V: Flat, impulses: Flat, asked: Any, rules: ContactRules
) -> tuple[list[Scalar], list[Scalar]]:
    """V and impulses after many sweeps more, where these are asked for, until the laws hold."""
    n = len(V)

    def goes_on(state: list[Scalar]) -> Scalar:
        return is_missed(state[-2], state[n:-2], rules.tolerance) & (state[-1] < float(SWEEPS_AGAIN))

    def more(state: list[Scalar]) -> list[Scalar]:
        V, impulses = laws.swept(state[:n], state[n:-2], SWEEPS_AT_A_TIME)
        return [*V, *impulses, laws.missed(V, impulses), state[-1] + SWEEPS_AT_A_TIME]

    begin = [*V, *impulses, laws.missed(V, impulses), where(asked, 0.0, float(SWEEPS_AGAIN))]
    found = repeated_while(goes_on, more, begin)
    return found[:n], found[n:-2]
