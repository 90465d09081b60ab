"""Dense systems in groups of rows, of which a state uses some: products W = A*B, sweeps, and (I - L W) x = s.

Groups have a few rows each and come from several sources; L is block-diagonal, W symmetric. Where numbers are traced,
groups that no state uses beside others are passed over, see :mod:`linkwise.trace.grouped_programs`; the texts here say
what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.array_types import handled
from linkwise.spatial.scalar import Items, Scalar, dot

Flat = Sequence[Scalar]
Swept = Callable[..., tuple[list[Scalar], list[Scalar]]]


class GroupedRows(NamedTuple):
    """Rows in groups.

    Args:
        size: rows of a group.
        sources: of each source how many groups it has.
        together: groups that are passed over together.
    """

    size: int
    sources: tuple[int, ...]
    together: int

    @property
    def groups(self) -> int:
        """Number of groups."""
        return sum(self.sources)

    def block(self, i: int, j: int) -> int:
        """The beginning of the block of W for two groups."""
        return (i * self.groups + j) * self.size**2


def grouped_products(
    rows: GroupedRows, used: Flat, left: Sequence[Flat], right: Sequence[Flat], widths: Sequence[int]
) -> list[Scalar]:
    """W = A*B, of each two groups a block; zeros, or anything, for groups that are not used.

    Args:
        rows: the groups.
        used: one for each group that is used, zero for others.
        left: of each source the rows a, perhaps of more groups.
        right: of each source the rows b.
        widths: of each source the numbers of a row; what a shorter one leaves out is zero.
    """
    traced = handled("grouped_products", rows, used, left, right, widths)
    if traced is not None:
        return list(traced)
    n, count, found = rows.size, rows.groups, list[Scalar]()
    a, b = (
        [
            list(own[k * width : (k + 1) * width])
            for own, groups, width in zip(side, rows.sources, widths, strict=True)
            for k in range(groups * n)
        ]
        for side in (left, right)
    )
    for i in range(count):
        for j in range(count):
            found += [dot(*_alike(a[i * n + r], b[j * n + c])) for r in range(n) for c in range(n)]
    return found


def grouped_sweeps(
    rows: GroupedRows,
    used: Flat,
    state: tuple[Flat, Flat],
    W: Flat,
    columns: Sequence[Sequence[Items]],
    steps: Sequence[Swept],
    passes: int,
) -> tuple[list[Scalar], list[Scalar]]:
    """The v and x after passes over the groups, each of which changes its own x by ``step(v, x, *items)``, then all v.

    Args:
        rows: the groups.
        used: as of :func:`grouped_products`.
        state: v and x of all rows.
        W: v changes by W times the change of x.
        columns: of each source its items, one for each group.
        steps: of each source, the next x of a group and its change.
        passes: how many.
    """
    traced = handled("grouped_sweeps", rows, used, state, W, columns, steps, passes)
    if traced is not None:
        v, x = traced
        return list(v), list(x)
    n, (v, x) = rows.size, (list(part) for part in state)
    for _ in range(passes):
        group = 0
        for own, step in zip(columns, steps, strict=True):
            for place in range(len(own[0].starts) if own else 0):
                here = slice(group * n, (group + 1) * n)
                x[here], change = step(v[here], x[here], *(column.of(place) for column in own))
                for k in range(rows.groups):
                    block = W[rows.block(k, group) :]
                    for r in range(n):
                        v[k * n + r] = v[k * n + r] + dot(block[r * n : (r + 1) * n], change)
                group += 1
    return v, x


def grouped_solution(
    rows: GroupedRows, used: Flat, active: Flat, lines: Flat, shift: Flat, W: Flat
) -> tuple[list[Scalar], list[Scalar]]:
    """The x of (I - L W) x = s, zero where groups are not used, and W x.

    Args:
        rows: the groups.
        used: as of :func:`grouped_products`; elsewhere L and s are zero.
        active: one for each group that is used and whose L is not zero, else zero.
        lines: the blocks of L.
        shift: s.
        W: as of :func:`grouped_products`.
    """
    traced = handled("grouped_solution", rows, used, active, lines, shift, W)
    if traced is not None:
        x, moved = traced
        return list(x), list(moved)
    n, count = rows.size, rows.groups
    total = n * count
    dense = [[W[rows.block(i // n, j // n) + i % n * n + j % n] for j in range(total)] for i in range(total)]
    system = []
    for i in range(total):
        own, first = lines[i * n : (i + 1) * n], i // n * n
        row = [(1.0 if i == j else 0.0) - dot(own, [dense[first + k][j] for k in range(n)]) for j in range(total)]
        system.append([*row, shift[i]])
    for k in range(total):
        inverse = 1.0 / system[k][k]
        system[k] = [x * inverse for x in system[k]]
        for i in range(total):
            if i != k:
                factor = system[i][k]
                system[i] = [a - factor * b for a, b in zip(system[i], system[k], strict=True)]
    found = [row[-1] for row in system]
    return found, [dot(row, found) for row in dense]


def _alike(a: Flat, b: Flat) -> tuple[Flat, Flat]:
    """Both without what one of them leaves out."""
    return a[: len(b)], b[: len(a)]
