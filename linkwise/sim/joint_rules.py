"""Rules of a simulation: what acts at joints and at their limits, and how closures are kept closed."""

from __future__ import annotations

from linkwise.checks import check_choice, check_not_negative, check_positive
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.model.passive_forces import FRICTION_SPEED


@dataclass(frozen=True)
class JointRules:
    """Treatment in simulations of what a model says of its joints.

    Args:
        damping: whether the joints' damping acts: -d v, with the joint's own v where it follows another.
        friction: whether the joints' friction acts: -f tanh(v / friction_speed), dry friction made smooth; with
            ``method="moreau"`` as dry as it is: joints stand still until more than f acts.
        friction_speed: rad/s or m/s at which friction reaches three quarters of its full value.
        springs: whether the joints' springs act: -k (q - rest), with the joint's own q where it follows another.
        fields: whether compensation of gravity and the forces of a fluid act.
        effort: whether actuators stop at ``model.limits.effort``.
        limits: ``"spring"``, ``"stop"`` or ``"ignore"``; with ``method="moreau"`` also ``"rigid"``: a range ends like a
            contact without restitution, which costs a row for each limited coordinate.
        limit_time: s; a limit's spring has stiffness (inertia at the joint) / limit_time².
        limit_loss: s/rad or s/m; a limit pushes with k δ (1 + limit_loss δ̇) at depth δ, and never pulls.
    """

    damping: bool = True
    friction: bool = True
    friction_speed: float = FRICTION_SPEED
    effort: bool = True
    limits: str = "spring"
    limit_time: float = 0.02
    limit_loss: float = 2.0
    springs: bool = True
    fields: bool = True

    def __post_init__(self) -> None:
        check_choice("limits", self.limits, ("spring", "rigid", "stop", "ignore"))
        check_positive(friction_speed=self.friction_speed, limit_time=self.limit_time)
        check_not_negative(limit_loss=self.limit_loss)


@dataclass(frozen=True)
class Stabilization:
    """Stabilisation: the measures besides asking for accelerations that obey."""

    projects: bool
    """Whether places and velocities are put back after each step."""
    rate: float = 0.0
    """1/s, of Baumgarte's feedback; zero for none."""


@dataclass(frozen=True)
class Baumgarte:
    """Feedback that closes what has opened: ë + 2a ė + a²e = 0, critically damped (Baumgarte 1972).

    Errors are not removed but kept small, about as large as those of a few times 1/a; the motion pays for it with a
    force that does work. A small a lets the mechanism drift, a large one makes the equations of motion stiff (steps of
    explicit methods stay below some 2/a).

    Args:
        rate: a, in 1/s.
    """

    rate: float = 20.0

    def __post_init__(self) -> None:
        check_positive(rate=self.rate)


def as_closing(stabilization: object) -> Stabilization:
    """Stabilisation that a user wants, by a word or an object."""
    if stabilization is None:
        return Stabilization(False)
    if stabilization == "projection":
        return Stabilization(True)
    if stabilization == "baumgarte":
        stabilization = Baumgarte()
    if isinstance(stabilization, Baumgarte):
        return Stabilization(False, float(stabilization.rate))
    raise InputError(
        "no such stabilization",
        got=repr(stabilization),
        allowed='"projection", "baumgarte" or lw.Baumgarte(rate=…), or None',
    )
