"""Impulses of many points at once, found as velocities of the freedoms: Newton steps on smoothed laws.

The laws are those of :mod:`linkwise.contact.cones`, smoothed as in :mod:`linkwise.contact.smoothed`, and so is the way
to their solution. What differs is where Newton's step is solved. With A δ + D J δv/ℓ = -F for the impulses of a point,
δ = -(T δv + s), and 𝓜δv = J*δ,

    (𝓜 + Σ J*T) δv = -Σ J*s,

a system no larger than the freedoms, however many points there are. All sums are loops over the points, of one text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.contact.cones import UNSOLVED, UNSOLVED_SINGLE, Cone
from linkwise.contact.elimination import eliminated, eliminated_in_loops
from linkwise.contact.point_laws import Laws, Made, off_the_disk, over_used
from linkwise.contact.smoothed import PROXIMAL, SmoothedSlope, followed
from linkwise.dataclass import dataclass, field, replace
from linkwise.mechanism.contacts import ContactRules
from linkwise.spatial.scalar import (
    Items,
    Scalar,
    by_digits,
    hold,
    is_zero,
    looped_over,
    maximum,
    minimum,
    repeated,
    repeated_while,
    where,
)

Flat = Sequence[Scalar]

WRITTEN_OUT = 12
"""Freedoms up to which elimination is written out."""

TOGETHER = 6
"""Equations of Newton's system that are summed up in one pass over the points."""


@dataclass(frozen=True)
class Along:
    """A cone of one row along joints: ends of a range, dry friction.

    Args:
        row: what each freedom counts for.
        push: 𝓜⁻¹ times the row.
        cone: with its ends, without rows.
        slope: ℓ.
    """

    row: dict[int, Scalar]
    push: Flat
    cone: Cone
    slope: Scalar

    def of(self, v: Flat) -> Scalar:
        """The velocity along it."""
        total: Scalar = 0.0
        for j, c in self.row.items():
            total = total + c * v[j]
        return total

    def nearest(self, x: Scalar, w: Scalar) -> list[Scalar]:
        """The proj(λ - w/ℓ)."""
        inverse = 1.0 / self.slope
        return self.cone.nearest([x - w * inverse], 1.0, inverse)


NOTHING = Items((), (), 0)


@dataclass
class Primal:
    """Cones of points and joints, and what they do to the freedoms.

    Args:
        J: of each point its rows, one after the other.
        laws: numbers of the :class:`Laws` of each point.
        disks: rows of each disk of a point.
        along: cones along joints.
        used: of each point a number that is zero where there is none; then it is passed over.
        moved: freedoms that move shapes; rows of points are zero along the others.
        M: rows of the mass matrix (n × n); this and the next two only where it is solved.
        U: of each point the 𝓜⁻¹J* of its rows, likewise.
        by_freedom: of each freedom its column of all rows of all points.
        easing: one where no surfaces have to part, else zero.
    """

    J: Items
    laws: Items
    disks: tuple[int, ...]
    along: Sequence[Along]
    used: Items
    moved: Sequence[int]
    M: Items = NOTHING
    U: Items = NOTHING
    by_freedom: Items = NOTHING
    easing: Scalar = 0.0
    n: int = field(init=False)
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = 1 + sum(self.disks)
        self.n = self.J.width // self.rows
        self.count = len(self.J.starts) * self.rows
        """Impulses of all points."""

    def solved(self, free: Flat, impulses: Flat, rules: ContactRules) -> tuple[list[Scalar], list[Scalar], Scalar]:
        """Velocities and impulses that obey all laws; and 1 where these are eased, else 0.

        Surfaces that overlap may not all be able to part at once, as of a body that is stuck between two others. Where
        no solution is found, none of them has to, and what is begun with is forgotten; where there is still none,
        sweeps have to do, which take energy away.

        Args:
            free: velocities without impulses.
            impulses: to begin with.
            rules: how it is solved.
        """
        n = self.n
        limit = by_digits(self.M.of(0)[0], UNSOLVED, UNSOLVED_SINGLE)

        def attempt(state: list[Scalar]) -> list[Scalar]:
            begin, eased = state[n:-2], state[-2]
            laws = self.eased(eased)
            swept = laws.swept(self.pushed(free, begin), begin, rules.sweeps)
            found = followed(laws, *swept, rules)
            before, after = laws.residuals(*swept)[0], laws.residuals(*found)[0]
            worse = (after > limit) & (after > before)
            both = zip([*swept[0], *swept[1]], [*found[0], *found[1]], strict=True)
            kept = [where(worse, a, b) for a, b in both]
            again = (after > limit) & (eased < 0.5)
            restart = [*free, *(0.0 for _ in begin)]
            following = [where(again, a, b) for a, b in zip(restart, kept, strict=True)]
            return [*following, where(again, 1.0, eased), where(again, 0.0, 1.0)]

        begin = [*free, *impulses, 0.0, 0.0]
        *found, eased, _ = repeated_while(lambda state: state[-1] < 0.5, attempt, begin)
        return found[:n], found[n:], eased

    def held(self) -> Primal:
        """The same, whose derivatives count as zero."""

        def of(items: Items) -> Items:
            return items._replace(numbers=[hold(x) for x in items.numbers])

        def along(one: Along) -> Along:
            row = {j: hold(x) for j, x in one.row.items()}
            return Along(row, [hold(x) for x in one.push], one.cone.held(), hold(one.slope))

        M, J, U, by_freedom, laws, used = map(of, (self.M, self.J, self.U, self.by_freedom, self.laws, self.used))
        own = [along(one) for one in self.along]
        return Primal(J, laws, self.disks, own, used, self.moved, M, U, by_freedom, hold(self.easing))

    def differentiated(
        self, free: Flat, v: Flat, impulses: Flat, answered: Callable[[Flat], list[Scalar]], width: Scalar
    ) -> tuple[list[Scalar], list[Scalar]]:
        """A solution, held, with its derivatives: those of one Newton step more, whose value is zero.

        Args:
            free: velocities without impulses.
            v: velocities at the end.
            impulses: of all cones.
            answered: 𝓜⁻¹ times an effort.
            width: over which corners of laws are rounded, N s.
        """
        pushed = [hold(x) for x in impulses]
        missing = [_changed(a + b) for a, b in zip(free, answered(self.effort(pushed)), strict=True)]

        def turned(state: Flat, J: Flat, laws: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
            known = self._known(laws)
            w = [self.rate(J, j, held) + b for j, b in enumerate(known.bias)]
            w[0] = w[0] + known.give * own[0]
            return [], [*w, *known.radii]

        held = [hold(x) for x in v]
        rows = self._gone_over([self.J, self.laws, self.of_points(pushed)], turned, [], zeros=True)[1]
        along = []
        for one in self.along:
            sign, w = one.cone.nearer_end(one.of(held)) if one.cone.kind == "range" else (1.0, one.of(held))
            along.append(sign * _changed(w))
        changes = [[_changed(x) for x in row] for row in rows]
        dw = [*(x for row in changes for x in row[: self.rows]), *along]
        radii = [x for row in changes for x in row[self.rows :]]
        off = missing, dw, radii
        change = self.held().with_ends_chosen(held).newton_step(held, pushed, hold(width), PROXIMAL, off)
        found = [a + b for a, b in zip([*held, *pushed], change, strict=True)]
        return found[: self.n], found[self.n :]

    def eased(self, eased: Scalar) -> Primal:
        """The same, where the number is one without surfaces that have to part."""

        def along(one: Along) -> Along:
            low, high = (None if x is None else where(eased > 0.5, maximum(x, 0.0), x) for x in one.cone.ends)
            return replace(one, cone=replace(one.cone, ends=(low, high)))

        return replace(self, easing=eased, along=[along(one) for one in self.along])

    def with_ends_chosen(self, v: Flat) -> Primal:
        """The same, whose smoothed laws speak of the ends of ranges alone that velocities lead to."""
        return replace(self, along=[replace(one, cone=one.cone.with_end_chosen(one.of(v))) for one in self.along])

    def _known(self, numbers: Flat) -> Laws:
        """Laws of one point from their numbers."""
        known = Laws.of(numbers, self.disks)
        if is_zero(self.easing):
            return known
        return replace(known, bias=[where(self.easing > 0.5, known.eased, known.bias[0]), *known.bias[1:]])

    def effort(self, impulses: Flat) -> list[Scalar]:
        """J*λ."""

        def step(total: Flat, J: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
            found = list(total)
            for j, x in enumerate(own):
                for k in self.moved:
                    found[k] = found[k] + J[j * self.n + k] * x
            return found, []

        whole = self._gone_over([self.J, self.of_points(impulses)], step, [0.0] * self.n)[0]
        for one, x in zip(self.along, impulses[self.count :], strict=True):
            for j, c in one.row.items():
                whole[j] = whole[j] + c * x
        return whole

    def along_points(self, v: Flat) -> list[Scalar]:
        """J v of all points."""

        def step(_: Flat, J: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return [], [self.rate(J, j, v) for j in range(self.rows)]

        return [x for row in self._gone_over([self.J], step, [])[1] for x in row]

    def pushed(self, v: Flat, impulses: Flat) -> list[Scalar]:
        """v + 𝓜⁻¹J*λ."""

        def step(now: Flat, U: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return self._moved(now, U, own), []

        found = self._gone_over([self.U, self.of_points(impulses)], step, v)[0]
        for one, x in zip(self.along, impulses[self.count :], strict=True):
            found = [a + u * x for a, u in zip(found, one.push, strict=True)]
        return found

    def swept(self, v: Flat, impulses: Flat, count: int) -> tuple[list[Scalar], list[Scalar]]:
        """Several passes over the cones, each with the velocities that the ones before it left."""

        def once(state: list[Scalar]) -> list[Scalar]:
            own = state[self.n :]
            columns = [self.J, self.U, self.laws, self.of_points(own)]
            now, made = self._gone_over(columns, self._swept_point, state[: self.n], zeros=True)
            found = [x for row in made for x in row]
            for one, x in zip(self.along, own[self.count :], strict=True):
                (new,) = one.nearest(x, one.of(now))
                now = [a + u * (new - x) for a, u in zip(now, one.push, strict=True)]
                found.append(new)
            return [*now, *found]

        found = repeated(count, once, [*v, *impulses])
        return found[: self.n], found[self.n :]

    def _swept_point(self, v: Flat, J: Flat, U: Flat, laws: Flat, impulses: Flat) -> Made:
        now = [list(v)]

        def changed(j: int, change: Scalar) -> None:
            now.append([a + u * change for a, u in zip(now[-1], U[j * self.n : (j + 1) * self.n], strict=True)])

        found = self._known(laws).swept(impulses, lambda j: self.rate(J, j, now[-1]), changed)
        return now[-1], found

    def _gone_over(
        self, columns: Sequence[Items], step: Callable[..., Made], state: Flat, zeros: bool = False
    ) -> tuple[list[Scalar], list[list[Scalar]]]:
        """As of :func:`over_used`, for all points that are used."""
        return over_used(self.used, columns, step, state, zeros)

    def of_points(self, impulses: Flat) -> Items:
        """Impulses of each point."""
        return Items(impulses[: self.count], range(0, self.count, self.rows), self.rows)

    def rate(self, J: Flat, row: int, v: Flat) -> Scalar:
        """The velocity along one row of a point."""
        total: Scalar = 0.0
        for j in self.moved:
            total = total + J[row * self.n + j] * v[j]
        return total

    def _moved(self, v: Flat, U: Flat, impulses: Flat) -> list[Scalar]:
        now = list(v)
        for j, x in enumerate(impulses):
            now = [a + u * x for a, u in zip(now, U[j * self.n : (j + 1) * self.n], strict=True)]
        return now

    # Newton steps on smoothed laws.
    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.J.starts)

    def missed(self, v: Flat, impulses: Flat) -> Scalar:
        """The sum of (λ - proj(λ - w/ℓ))², what the laws are missed by."""

        def step(total: Flat, used: Flat, J: Flat, laws: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
            known = self._known(laws)
            w = [self.rate(J, j, v) + b for j, b in enumerate(known.bias)]
            return [total[0] + where(used[0] > 0.0, known.missing(own, w), 0.0)], []

        ((total,), _) = self._gone_over([self.used, self.J, self.laws, self.of_points(impulses)], step, [0.0])
        for one, x in zip(self.along, impulses[self.count :], strict=True):
            (near,) = one.nearest(x, one.of(v))
            total = total + (x - near) * (x - near)
        return total

    def newton_step(
        self, v: Flat, impulses: Flat, width: Scalar, proximal: Scalar, off: tuple[Flat, Flat, Flat] | None = None
    ) -> list[Scalar]:
        """The changes of v and of λ that laws ask for which are smoothed over a width.

        Args:
            v: velocities.
            impulses: of all cones.
            width: N s.
            proximal: on the diagonal, beside one.
            off: where laws hold, changes of v, of w and all else that laws speak of, and of radii of disks, by which
                they will not.
        """
        n, own, square = self.n, self.of_points(impulses), width * width
        moved, turned, radii = ([0.0] * n, [0.0] * len(impulses), ()) if off is None else off
        disks = len(self.disks)
        widened = [Items(radii, range(0, len(radii), disks), disks)] if radii else []

        def answer(
            _: Flat, used: Flat, J: Flat, laws: Flat, own: Flat, turned: Flat, *widened: Flat
        ) -> tuple[list[Scalar], list[Scalar]]:
            known = self._known(laws)
            w = [self.rate(J, j, v) + b for j, b in enumerate(known.bias)]
            K, shift = known.answer(own, w, square, proximal, widened=widened[0] if widened else None)
            if off is not None:
                shift = [
                    sum((a * b for a, b in zip(line, turned, strict=True)), x) for line, x in zip(K, shift, strict=True)
                ]
            T = [_combined(line, J, n) for line in K]
            return [], [where(used[0] > 0.0, x, 0.0) for x in (*(x for line in T for x in line), *shift)]

        columns = [self.used, self.J, self.laws, own, self.of_points(turned), *widened]
        _, made = self._gone_over(columns, answer, [])
        answers = [x for row in made for x in row]
        starts = [k * self.rows * (n + 1) for k in range(len(made))]
        T, shift = Items(answers, starts, self.rows * n), Items(answers, [s + self.rows * n for s in starts], self.rows)

        def equations(state: Flat, columns: Flat, lines: Flat) -> tuple[list[Scalar], list[Scalar]]:
            def gathered(total: Flat, T: Flat, shift: Flat, *columns: Flat) -> tuple[list[Scalar], list[Scalar]]:
                found = list(total)
                for i, column in enumerate(columns):
                    for j, c in enumerate(column):
                        line = found[i * (n + 1) : (i + 1) * (n + 1)]
                        found[i * (n + 1) : (i + 1) * (n + 1)] = [
                            a + c * b for a, b in zip(line, [*T[j * n : (j + 1) * n], -shift[j]], strict=True)
                        ]
                return found, []

            own = [self.of_points(columns[i * self.count : (i + 1) * self.count]) for i in range(together)]
            begin: list[Scalar] = []
            for i in range(together):
                line = lines[i * n : (i + 1) * n]
                begin += [*line, 0.0 if off is None else sum((a * b for a, b in zip(line, moved, strict=True)), 0.0)]
            return [], self._gone_over([T, shift, *own], gathered, begin)[0]

        # Several equations at a time, so that what all need of a point is read less often.
        together = min(TOGETHER, n)
        firsts = [min(k, n - together) for k in range(0, n, together)]
        both = [
            Items(items.numbers, [items.starts[k] for k in firsts], items.width * together)
            for items in (self.by_freedom, self.M)
        ]
        _, made = looped_over(both, equations, [])
        system: list[list[Scalar]] = [[] for _ in range(n)]
        for first, rows in zip(firsts, made, strict=True):
            for i in range(together):
                system[first + i] = list(rows[i * (n + 1) : (i + 1) * (n + 1)])
        parts = []
        for one, x, dx in zip(self.along, impulses[self.count :], turned[self.count :], strict=True):
            inverse = 1.0 / one.slope
            slope = SmoothedSlope.of(one.cone, [x - one.of(v) * inverse], 1.0, square, inverse)
            (factor,) = slope.divided(slope.times_D([inverse]), 0.0, proximal)
            rest = factor * dx if off else slope.divided([x - slope.value[0]], 0.0, proximal)[0]
            parts.append((factor, rest))
            for i, a in one.row.items():
                system[i][n] = system[i][n] - a * rest
                for j, b in one.row.items():
                    system[i][j] = system[i][j] + a * b * factor
        solve = eliminated if n <= WRITTEN_OUT else eliminated_in_loops
        dv = solve([row[:n] for row in system], [row[n] for row in system])

        def change(moved: Flat, T: Flat, shift: Flat, U: Flat) -> tuple[list[Scalar], list[Scalar]]:
            found = [-(self.rate(T, j, dv) + s) for j, s in enumerate(shift)]
            return self._moved(moved, U, found), found

        moved, changes = self._gone_over([T, shift, self.U], change, moved, zeros=True)
        joints: list[Scalar] = []
        for one, (factor, rest) in zip(self.along, parts, strict=True):
            joints.append(-(factor * one.of(dv) + rest))
            moved = [a + u * joints[-1] for a, u in zip(moved, one.push, strict=True)]
        return [*moved, *(x for row in changes for x in row), *joints]

    def residuals(self, v: Flat, impulses: Flat) -> list[Scalar]:
        """Largest residuals of Signorini's condition (m/s), the cones (N s) and maximal dissipation (J)."""

        def step(worst: Flat, J: Flat, laws: Flat, own: Flat) -> tuple[list[Scalar], list[Scalar]]:
            missed = self.missed_by_point(laws, own, [self.rate(J, j, v) for j in range(self.rows)])
            return [maximum(a, b) for a, b in zip(worst, missed, strict=True)], []

        worst = self._gone_over([self.J, self.laws, self.of_points(impulses)], step, [0.0, 0.0, 0.0])[0]
        return self.missed_along(worst, v, impulses)

    def missed_by_point(self, laws: Flat, own: Flat, along: Flat) -> tuple[Scalar, Scalar, Scalar]:
        """Residuals of one point, from velocities along its rows."""
        known = self._known(laws)
        return known.residuals(own, [a + b for a, b in zip(along, known.bias, strict=True)])

    def missed_along(self, worst: list[Scalar], v: Flat, impulses: Flat) -> list[Scalar]:
        """The largest of some residuals and those of rows along joints."""
        for one, x in zip(self.along, impulses[self.count :], strict=True):
            w = one.of(v)
            if one.cone.kind == "range":
                sign, left = one.cone.nearer_end(w)
                worst[0] = maximum(worst[0], abs(minimum(sign * x * one.slope, left)))
            else:
                beyond, lost = off_the_disk(one.cone.radius, [x], [w])
                worst[1:] = [maximum(worst[1], beyond), maximum(worst[2], lost)]
        return worst


def _changed(x: Scalar) -> Scalar:
    """The change of a number: its value is zero, its derivative that of the number."""
    return x - hold(x)


def _combined(line: Flat, J: Flat, n: int) -> list[Scalar]:
    found: list[Scalar] = [0.0] * n
    for j, c in enumerate(line):
        found = [a + c * b for a, b in zip(found, J[j * n : (j + 1) * n], strict=True)]
    return found
