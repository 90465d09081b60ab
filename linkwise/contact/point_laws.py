"""Laws of one point of a crowd: its normal and the disks that follow it, as numbers that loops go through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwise.contact.cones import Cone
from linkwise.contact.smoothed import SmoothedSlope
from linkwise.dataclass import dataclass
from linkwise.spatial.scalar import Items, Scalar, looped_over, maximum, minimum, sqrt, where

Flat = Sequence[Scalar]
Made = tuple[list[Scalar], list[Scalar]]


@dataclass(frozen=True)
class Laws:
    """The cones of one point: its normal, and disks whose radii follow it.

    Args:
        bias: w + bias is what the laws speak of, a number a row.
        eased: that of the normal where surfaces that overlap need not part.
        give: compliance of the normal, m/s for each N s.
        radii: coefficients of the disks: of friction, torsion, rolling.
        slopes: ℓ of the normal and of each disk.
        parts: rows of the normal, and of each disk.
    """

    bias: Flat
    eased: Scalar
    give: Scalar
    radii: Flat
    slopes: Flat
    parts: tuple[range, ...] = ()

    @classmethod
    def of(cls, numbers: Flat, sizes: Sequence[int]) -> Laws:
        """From their numbers, for disks of some sizes."""
        parts = [range(1)]
        for size in sizes:
            parts.append(range(parts[-1].stop, parts[-1].stop + size))
        rows, disks = parts[-1].stop, len(sizes)
        eased, give, *rest = numbers[rows:]
        # Nothing but zeros where no state of a block has the point: one that goes on beside others may be asked for it.
        slopes = [where(x > 0.0, x, 1.0) for x in rest[disks:]]
        first = where(rest[disks] > 0.0, numbers[0], 1.0)
        return cls([first, *numbers[1:rows]], eased, give, rest[:disks], slopes, tuple(parts))

    @property
    def numbers(self) -> list[Scalar]:
        """All of them."""
        return [*self.bias, self.eased, self.give, *self.radii, *self.slopes]

    @property
    def cones(self) -> list[Cone]:
        """The normal's, then those of the disks."""
        disks = (Cone((), (), "disk", radius, 0) for radius in self.radii)
        return [Cone((), (), "half_line", compliance=self.give), *disks]

    def missing(self, own: Flat, w: Flat) -> Scalar:
        """The sum of (λ - proj(λ - w/ℓ))², for w with bias but without what gives way."""
        total: Scalar = 0.0
        for cone, slope, rows in zip(self.cones, self.slopes, self.parts, strict=True):
            x = [own[j] - (w[j] + cone.compliance * own[j]) / slope for j in rows]
            for j, y in zip(rows, cone.nearest(x, own[0]), strict=True):
                total = total + (own[j] - y) * (own[j] - y)
        return total

    def swept(self, own: Flat, along: Callable[[int], Scalar], changed: Callable[[int, Scalar], None]) -> list[Scalar]:
        """Impulses after one pass over the cones, each with the velocities that the ones before it left.

        Args:
            own: impulses.
            along: velocity along a row, as it is now.
            changed: is told of each row's change.
        """
        found = list(own)
        for cone, slope, rows in zip(self.cones, self.slopes, self.parts, strict=True):
            w = [along(j) + self.bias[j] + cone.compliance * found[j] for j in rows]
            wanted = cone.nearest([found[j] - a / slope for j, a in zip(rows, w, strict=True)], found[0])
            for j, x in zip(rows, wanted, strict=True):
                change, found[j] = x - found[j], x
                changed(j, change)
        return found

    def answer(
        self,
        own: Flat,
        w: Flat,
        square: Scalar,
        proximal: Scalar,
        firmness: float = 1.0,
        widened: Flat | None = None,
    ) -> tuple[list[list[Scalar]], list[Scalar]]:
        """-δ of smoothed laws as K δw + shift: K and shift.

        Args:
            own: impulses.
            w: velocities with bias but without what gives way.
            square: the width squared.
            proximal: on the diagonal, beside one.
            firmness: of the normal's 1/ℓ, how much of it is taken.
            widened: changes of the radii of disks, if laws hold but for these; then the shift is what they ask for.
        """
        ells = [self.slopes[0] / firmness, *self.slopes[1:]]
        K: list[list[Scalar]] = [[0.0] * len(own) for _ in own]
        shift: list[Scalar] = []
        normal: Scalar = 1.0
        missed: Scalar = 0.0
        for k, (cone, ell, rows) in enumerate(zip(self.cones, ells, self.parts, strict=True)):
            x = [own[j] - (w[j] + cone.compliance * own[j]) / ell for j in rows]
            slope = SmoothedSlope.of(cone, x, normal, square)
            F = [own[j] - y for j, y in zip(rows, slope.value, strict=True)]
            if widened is not None:
                F = [0.0] if slope.rim is None else [-(normal * widened[k - 1]) * y for y in slope.rim]
            give = self.give / ell if k == 0 else 0.0
            if k == 0:
                normal, missed = slope.value[0], F[0]
            if slope.follow is not None:
                moved = (1.0 + proximal) * shift[0] - missed
                F = [a + b * moved for a, b in zip(F, slope.follow, strict=True)]
                column = [b * ((1.0 + proximal) * K[0][0]) for b in slope.follow]
                for j, y in zip(rows, slope.divided(column, give, proximal), strict=True):
                    K[j][0] = y
            for i in rows:
                unit = [(1.0 if i == j else 0.0) / ell for j in rows]
                for j, y in zip(rows, slope.divided(slope.times_D(unit), give, proximal), strict=True):
                    K[j][i] = y
            shift += slope.divided(F, give, proximal)
        return K, shift

    def residuals(self, own: Flat, w: Flat) -> tuple[Scalar, Scalar, Scalar]:
        """Residuals of Signorini's condition (m/s), of the cones (N s) and of maximal dissipation (J)."""
        signorini = abs(minimum(own[0] * self.slopes[0], w[0] + self.give * own[0]))
        beyond: Scalar = 0.0
        lost: Scalar = 0.0
        for radius, rows in zip(self.radii, self.parts[1:], strict=True):
            one = off_the_disk(radius * own[0], [own[j] for j in rows], [w[j] for j in rows])
            beyond, lost = maximum(beyond, one[0]), maximum(lost, one[1])
        return signorini, beyond, lost


def off_the_disk(reach: Scalar, own: Flat, w: Flat) -> tuple[Scalar, Scalar]:
    """How far impulses are beyond a disk, and how much less they dissipate than they could."""
    length, speed = (sqrt(sum((x * x for x in values), 0.0)) for values in (own, w))
    power = sum((x * y for x, y in zip(own, w, strict=True)), 0.0)
    return length - reach, abs(power + reach * speed)


def over_used(
    used: Items, columns: Sequence[Items], step: Callable[..., Made], state: Flat, zeros: bool = False
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """As of :func:`looped_over`, without the passes of which a number, of ``used``, is zero: the last ones.

    These make zeros where that is asked for, else anything.
    """

    def asks(state: Flat, used: Flat, *_: Flat) -> Any:
        return used[0] > 0.0

    return looped_over([used, *columns], lambda state, _, *items: step(state, *items), state, (asks,), not zeros)
