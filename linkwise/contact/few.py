"""Impulses of few points, found along their own rows: what most steps of a crowd need.

Many points are kept, of which a state mostly uses few. Where these few, with the ends of ranges that are near, fit one
of some sizes, W = J𝓜⁻¹J* of their rows is small, and they are solved as written-out contacts are
(:class:`linkwise.contact.cones.Response`), each row with a pull of its own. 𝓜⁻¹ = [I - HψK]*D⁻¹[I - HψK] has two
halves: with a = D^(-½)[I - HψK]J* of each row, half of a solve, W is a*a.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.contact.cones import Cone, Response, Row
from linkwise.contact.elimination import eliminated_in_loops
from linkwise.contact.primal import Laws, over_used
from linkwise.contact.smoothed import SmoothedLaws, followed
from linkwise.dataclass import dataclass
from linkwise.mechanism.contacts import ContactRules
from linkwise.spatial.scalar import Items, Scalar, looped_over, maximum, minimum, where

Flat = Sequence[Scalar]

SIZES = {False: ((4, 0), (8, 0)), True: ((8, 16),)}
"""How many points, and how many ends of ranges: without joints that have ends, and with them."""

TOGETHER = 4
"""Ends of ranges whose rows are multiplied together."""

LEAST = 12
"""Freedoms up to which Newton's method on their velocities takes less, however few points there are."""


@dataclass(frozen=True)
class Groups:
    """Some rows each of points, or of ends of ranges, one after the other.

    Args:
        left: of each group its rows a, one after the other.
        right: rows b, W = a*b: the same, or 𝓜⁻¹J* where a is J.
        used: of each group a number, positive where it is used.
        size: rows of a group.
    """

    left: Items
    right: Items
    used: Items
    size: int

    def first(self, count: int) -> Groups:
        """So many of them."""
        left, right, used = (x._replace(starts=x.starts[:count]) for x in (self.left, self.right, self.used))
        return Groups(left, right, used, self.size)

    def across(self, other: Groups) -> dict[tuple[int, int], list[list[Scalar]]]:
        """Blocks of W between these and others, or those on and above the diagonal between these themselves."""
        pairs = [
            (i, j)
            for i in range(len(self.used.starts))
            for j in range(len(other.used.starts))
            if self is not other or i <= j
        ]
        if not pairs:
            return {}
        width = self.left.width // self.size

        def asks(_: Flat, first: Flat, second: Flat, *__: Flat) -> Any:
            return (first[0] > 0.0) & (second[0] > 0.0)

        def block(_: Flat, first: Flat, second: Flat, a: Flat, b: Flat) -> tuple[list[Scalar], list[Scalar]]:
            found = []
            for i in range(self.size):
                for j in range(other.size):
                    total: Scalar = 0.0
                    for x, y in zip(a[i * width : (i + 1) * width], b[j * width : (j + 1) * width], strict=True):
                        total = total + x * y
                    found.append(total)
            return [], found

        columns = [
            Items(items.numbers, [items.starts[pair[k]] for pair in pairs], items.width)
            for k, items in ((0, self.used), (1, other.used), (0, self.left), (1, other.right))
        ]
        made = looped_over(columns, block, [], (asks,))[1]
        size = other.size
        return {
            pair: [list(row[k : k + size]) for k in range(0, size * self.size, size)]
            for pair, row in zip(pairs, made, strict=True)
        }


WRITTEN_OUT = 16
"""Most rows whose Newton's matrix is written out: numbers of a larger one do not stay near."""


class Wide(Response):
    """Cones of many rows, each with a pull of its own, whose Newton steps are loops over the rows.

    Args:
        cones: of points, then of ends.
        Lambda: W.
        used: of each row a number that is zero where it is not used.
        size: rows of a point; all others have one.
        points: how many.
    """

    def __init__(
        self, cones: Sequence[Cone], Lambda: Sequence[Flat], used: Sequence[Scalar], size: int, points: int
    ) -> None:
        super().__init__(cones, Lambda)
        self.used, self.parts = used, ((size, 0, size * points), (1, size * points, len(Lambda)))
        numbers = [x for line in Lambda for x in line]
        rows = Items(numbers, range(0, len(numbers), self.size), self.size)
        self.numbers = [x for row in looped_over([rows], lambda _, x: ([], list(x)), [])[1] for x in row]
        """W, in one array."""

    def newton_step(self, V: Flat, impulses: Flat, width: Scalar, proximal: Scalar) -> list[Scalar]:
        """The changes of V and of λ that laws ask for which are smoothed over a width.

        With δ = L δV + s of every row, and V of the rows themselves, (I - L W) δ = s.
        """
        n = self.size
        lines, shift = SmoothedLaws(self, V, impulses, width).answers(proximal)
        matrix: list[list[Scalar]] = []
        for size, first, end in self.parts:

            def rows(_: Flat, own: Flat, line: Flat, size: int = size) -> tuple[list[Scalar], list[Scalar]]:
                found: list[Scalar] = []
                for k in range(size):
                    total: list[Scalar] = [0.0] * n
                    for m in range(size):
                        W, c = line[m * n : (m + 1) * n], own[k * size + m]
                        total = [a - c * b for a, b in zip(total, W, strict=True)]
                    found += total
                return [], found

            starts = range(first, end, size)
            if starts:
                factors = [[lines[i + k].get(i + m, 0.0) for k in range(size) for m in range(size)] for i in starts]
                columns = [Items.rows(factors), Items(self.numbers, [n * i for i in starts], n * size)]
                made = over_used(Items(self.used, starts, 1), columns, rows, [])[1]
                matrix += [list(row[k * n : (k + 1) * n]) for row in made for k in range(size)]
        for i, row in enumerate(matrix):
            row[i] = row[i] + 1.0
        change = eliminated_in_loops(matrix, shift, used=self.used)

        def moved(_: Flat, line: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return [], [sum((a * b for a, b in zip(line, change, strict=True)), 0.0)]

        made = over_used(Items(self.used, range(n), 1), [Items(self.numbers, range(0, n * n, n), n)], moved, [])[1]
        return [*(x for (x,) in made), *change]


class Few:
    """Rows of few points and of few ends of ranges.

    Args:
        points: their rows.
        laws: of each point the numbers of its :class:`~linkwise.contact.primal.Laws`.
        disks: rows of each disk of a point.
        ends: rows of ends of ranges.
        biases: of each end.
        used: of each end a number, positive where it is used.
    """

    def __init__(
        self, points: Groups, laws: Items, disks: Sequence[int], ends: Groups, biases: Flat, used: Flat
    ) -> None:
        self.points, self.laws, self.disks = points, laws, disks
        self.ends, self.biases, self.ends_used = ends, biases, used
        self.blocks = points.across(points), points.across(ends), ends.across(ends)

    def solved(
        self,
        free: Flat,
        impulses: Flat,
        of_ends: tuple[Flat, Flat],
        fits: Scalar,
        counts: tuple[int, int],
        rules: ContactRules,
        aside: bool,
    ) -> tuple[list[Scalar], list[Scalar], Scalar]:
        """Impulses of so many points, of so many ends; and what Signorini's condition is missed by, m/s.

        Args:
            free: J v of all points' rows without impulses.
            impulses: of them, to begin with.
            of_ends: both likewise, of ends.
            fits: whether these are all that a state uses; for others nothing is sought.
            counts: of points, and of ends.
            rules: how it is solved.
            aside: whether all of it is passed over where no state of a block fits. Else states go through the Newton
                steps beside those of other blocks that do (:mod:`linkwise.targets.llvm.pool`).
        """
        size, (points, ends) = self.points.size, counts
        rows = size * points + ends
        used = [self._used(self.points, k, fits) for k in range(points) for _ in range(size)]
        used += [fits & (x > 0.0) for x in self.ends_used[:ends]]
        own = [*impulses[: size * points], *of_ends[1][:ends]]
        begin = [where(u, x, 0.0) for u, x in zip(used, own, strict=True)]
        V = [where(u, x, 0.0) for u, x in zip(used, [*free[: size * points], *of_ends[0][:ends]], strict=True)]
        W, cones = self._matrix(points, ends, used), self._cones(points, ends, used)
        if rows <= WRITTEN_OUT:
            response = Response(cones, W)
        else:
            response = Wide(cones, W, [where(u, 1.0, 0.0) for u in used], size, points)

        def swept(state: Flat) -> tuple[list[Scalar], list[Scalar]]:
            return response.swept(response.pushed(state[:rows], state[rows:]), state[rows:], rules.sweeps)

        def whole(state: Flat, _: Flat) -> tuple[list[Scalar], list[Scalar]]:
            V, found = swept(state)
            if aside:
                V, found = followed(response, V, found, rules)
            return [where(fits, a, b) for a, b in zip([*V, *found], state, strict=True)], []

        state, _ = looped_over([Items([1.0], [0], 1)], whole, [*V, *begin], (lambda *_: fits,))
        V, found = state[:rows], state[rows:]
        if not aside:
            V, found = followed(response, V, found, rules)
        return found[: size * points], found[size * points :], _signorini(response, V, found)

    def _used(self, groups: Groups, k: int, fits: Scalar) -> Scalar:
        (number,) = groups.used.of(k)
        used: Scalar = fits & (number > 0.0)
        return used

    def _matrix(self, points: int, ends: int, used: Sequence[Any]) -> list[list[Scalar]]:
        """W of so many, with a one on the diagonal of those that are not used and nothing else."""
        rows = self.points.size * points
        W: list[list[Scalar]] = [[0.0] * (rows + ends) for _ in range(rows + ends)]
        sides = ((self.points, 0), (self.ends, rows))
        for (first, start), (second, other), blocks in zip(
            (sides[0], sides[0], sides[1]), (sides[0], sides[1], sides[1]), self.blocks, strict=True
        ):
            for (i, j), block in blocks.items():
                for k, row in enumerate(block, start + i * first.size):
                    for m, x in enumerate(row, other + j * second.size):
                        if k < (rows if start == 0 else rows + ends) and m < (rows if other == 0 else rows + ends):
                            W[k][m] = W[m][k] = where(used[k] & used[m], x, 1.0 if k == m else 0.0)
        return W

    def _cones(self, points: int, ends: int, used: Sequence[Any]) -> list[Cone]:
        """Cones of points, then of ends; of those that are not used what is open."""
        found: list[Cone] = []
        row = 0
        for k in range(points):
            laws, is_used, normal = Laws.of(self.laws.of(k), self.disks), used[row], len(found)
            first = (where(is_used, laws.bias[0], 1.0),)
            found.append(Cone((_pull(row),), first, "half_line", compliance=where(is_used, laws.give, 0.0)))
            row += 1
            for radius, count in zip(laws.radii, self.disks, strict=True):
                bias = tuple(where(is_used, x, 0.0) for x in laws.bias[row % self.points.size :][:count])
                own = tuple(_pull(row + j) for j in range(count))
                found.append(Cone(own, bias, "disk", where(is_used, radius, 1.0), normal))
                row += count
        for k in range(ends):
            found.append(Cone((_pull(row + k),), (where(used[row + k], self.biases[k], 1.0),), "half_line"))
        return found


def _pull(number: int) -> Row:
    return Row((number,), (1.0,))


def _signorini(response: Response, V: Flat, impulses: Flat) -> Scalar:
    worst: Scalar = 0.0
    for k, (cone, start) in enumerate(zip(response.cones, response.starts, strict=True)):
        if cone.kind == "half_line":
            (w,) = response.velocities(k, V, impulses)
            free = minimum(impulses[start] * response.slopes[k], w)
            worst = maximum(worst, maximum(free, -free))
    return worst
