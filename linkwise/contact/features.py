"""Features of a scene: what its materials and grounds ask for, and so how many numbers a contact point has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.dataclass import dataclass

if TYPE_CHECKING:
    from linkwise.contact.scene import Meeting


@dataclass(frozen=True)
class Features:
    """Features that the materials and grounds of a scene ask for beside rigid contact with friction."""

    torsion: bool
    rolling: bool
    bounces: bool
    gives: bool
    drifts: bool

    @classmethod
    def of(cls, meetings: Sequence[Meeting]) -> Features:
        """Of all pairs of a scene."""
        materials = [meeting.material for meeting in meetings]
        return cls(
            any(m.torsion > 0.0 for m in materials),
            any(m.rolling > 0.0 for m in materials),
            any(m.restitution > 0.0 for m in materials),
            any(not m.is_rigid for m in materials),
            any(meeting.ground is not None and any(_surface(meeting)) for meeting in meetings),
        )

    @property
    def rows(self) -> int:
        """Rows of a point: normal, two tangents, spin, two of rolling."""
        return 3 + self.torsion + 2 * self.rolling

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers of a kept point, those after its gap, normal, place and turning."""
        found = ["number", "first", "second", "friction"]
        found += ["torsion"] * self.torsion + ["rolling"] * self.rolling
        found += ["restitution", "threshold"] * self.bounces + ["stiffness", "damping", "deepens"] * self.gives
        return (*found, *(f"drift{k}" for k in range(6 * self.drifts)))

    def of_pair(self, meeting: Meeting) -> list[float]:
        """The numbers of a pair's material, in the order of :attr:`names`, from friction on."""
        m = meeting.material
        found = [m.coefficients[0]] + [m.torsion] * self.torsion + [m.rolling] * self.rolling
        found += [m.restitution, m.threshold] if self.bounces else []
        if self.gives:
            found += [0.0 if m.is_rigid else m.stiffness, m.damping, float(m.law == "hunt_crossley")]
        return [*found, *(_surface(meeting) if self.drifts else ())]


def _surface(meeting: Meeting) -> tuple[float, ...]:
    return (0.0,) * 6 if meeting.ground is None else (*meeting.ground.spin, *meeting.ground.velocity)
