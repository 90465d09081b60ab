"""Muscles: the force along a tendon from an activation, the length and its rate, over any scalar.

Each is the law of force of an :class:`~linkwise.equipment.Actuator`; a force that pulls is negative, as all forces
along tendons.
"""

from __future__ import annotations

import math

from linkwise.checks import set_finite
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError
from linkwise.spatial.scalar import Flat, Scalar, exp, log, sinh, sqrt, where, within


@dataclass(frozen=True, slots=True)
class Muscle:
    """MuJoCo's muscle: f = -F (a · FL(L) · FV(V) + FP(L)), curves made of parabolas, no tendon that stretches.

    L and V are the length and its rate by the optimal length l₀, V also by ``v_max``. L goes from ``range[0]`` at
    ``lengths[0]`` to ``range[1]`` at ``lengths[1]``.

    Args:
        force: F, the peak active force at rest, N.
        lengths: shortest and longest length of the transmission, m.
        range: L at these.
        l_min: L below which nothing is exerted actively.
        l_max: L above which nothing is exerted actively.
        v_max: optimal lengths a second: shortening so fast, it exerts nothing.
        passive: passive force at ``l_max``, by F.
        lengthening: active force when lengthening fast, by F.
    """

    force: float
    lengths: tuple[float, float]
    range: tuple[float, float] = (0.75, 1.05)
    l_min: float = 0.5
    l_max: float = 1.6
    v_max: float = 1.5
    passive: float = 1.3
    lengthening: float = 1.2

    states = 0

    def __post_init__(self) -> None:
        set_finite(self, "force passive", "a muscle", least=0.0)
        set_finite(self, "l_min l_max v_max lengthening", "a muscle")
        set_finite(self, "lengths range", "a muscle", 2)
        for what in ("lengths", "range"):
            low, high = getattr(self, what)
            if not low < high:
                raise InputError(f"the {what} of a muscle leaves no room", got=(low, high), allowed="low < high")
        if not self.l_min < 1.0 < self.l_max:
            raise InputError(
                "a muscle is strongest at L = 1", got=(self.l_min, self.l_max), allowed="l_min < 1 < l_max"
            )
        if not (self.v_max > 0.0 and self.lengthening >= 1.0):
            raise InputError(
                "a muscle's curve over the speed is not possible",
                got=f"v_max={self.v_max}, lengthening={self.lengthening}",
                allowed="v_max > 0, lengthening >= 1",
            )

    def shortened(self, length: float) -> Muscle:
        """The same along a transmission that is so much shorter."""
        low, high = self.lengths
        return replace(self, lengths=(low - length, high - length))

    @property
    def optimal_length(self) -> float:
        """l₀, m."""
        return (self.lengths[1] - self.lengths[0]) / (self.range[1] - self.range[0])

    def initial(self) -> tuple[float, ...]:
        """It has no states."""
        return ()

    def rate(self, a: Scalar, l: Scalar, l_dot: Scalar, x: Flat) -> list[Scalar]:
        """It has no states."""
        return []

    def pull(self, a: Scalar, l: Scalar, l_dot: Scalar, x: Flat = ()) -> Scalar:
        """The force along the transmission, N."""
        L = self.range[0] + (l - self.lengths[0]) * (1.0 / self.optimal_length)
        V = l_dot * (1.0 / (self.optimal_length * self.v_max))
        return -self.force * (a * self._at_length(L) * self._at_speed(V) + self._passive(L))

    def _at_length(self, L: Scalar) -> Scalar:
        """FL: four parabolas, from nothing at l_min over one at L = 1 to nothing at l_max."""
        low, high = 0.5 * (self.l_min + 1.0), 0.5 * (1.0 + self.l_max)
        rising, falling = (L - self.l_min) * (1.0 / (low - self.l_min)), (self.l_max - L) * (1.0 / (self.l_max - high))
        below, above = (1.0 - L) * (1.0 / (1.0 - low)), (L - 1.0) * (1.0 / (high - 1.0))
        left = where(low >= L, 0.5 * rising * rising, 1.0 - 0.5 * below * below)
        right = where(high >= L, 1.0 - 0.5 * above * above, 0.5 * falling * falling)
        return where((self.l_min <= L) & (self.l_max >= L), where(L <= 1.0, left, right), 0.0)

    def _at_speed(self, V: Scalar) -> Scalar:
        """FV: nothing when shortening at full speed, one at rest, ``lengthening`` when lengthening fast."""
        y = self.lengthening - 1.0
        slower, faster = (V + 1.0) * (V + 1.0), self.lengthening - (y - V) * (y - V) * (1.0 / max(y, 1e-15))
        return where(V <= -1.0, 0.0, where(V <= 0.0, slower, where(y >= V, faster, self.lengthening)))

    def _passive(self, L: Scalar) -> Scalar:
        """FP: a parabola from L = 1, then a line."""
        width = 0.5 * (self.l_max - 1.0)
        x = (L - 1.0) * (1.0 / width)
        stretched = where(x <= 1.0, 0.5 * x * x, x - 0.5)
        return where(L <= 1.0, 0.0, stretched) * self.passive


# Curves of De Groote, Kinney, Rao and Fregly, "Evaluation of direct collocation optimal control problem formulations
# for solving the muscle redundancy problem", 2016: smooth, and that over the speed has an inverse in closed form.
_GAUSSIANS = ((0.815, 1.055, 0.162, 0.063), (0.433, 0.717, -0.030, 0.200), (0.1, 1.0, 0.5 * math.sqrt(0.5), 0.0))
_SPEED = (-0.318, -8.149, -0.374, 0.886)
_TENDON = (0.2, 0.995, 0.25)


@dataclass(frozen=True, slots=True)
class HillMuscle:
    """Hill's muscle: a fibre that contracts, a spring beside it and a tendon behind both, at an angle.

    f = -F (a · FL(l) · FV(l̇) + FP(l) + d l̇) cos α, of the fibre's length l by the optimal one and its rate by
    ``v_max`` optimal lengths a second; curves of De Groote 2016. The fibre keeps its height: l sin α stays. With a
    stiff tendon the fibre has what the tendon leaves of the length. With one that stretches the fibre's length is a
    state, whose rate follows from the balance of forces between fibre and tendon; that needs a > 0, and an activation
    below ``least`` counts as that.

    Args:
        force: F, the peak isometric force, N.
        optimal_length: of the fibre, m.
        slack_length: of the tendon, m.
        pennation: α at the optimal length, rad.
        v_max: optimal lengths a second.
        passive_strain: strain of the fibre at which its spring exerts F.
        damping: d, beside the fibre, for stiff tendons.
        tendon_stiffness: k of the curve of the tendon's force, ``0.2 exp(k (l - 0.995)) - 0.25``; None for a stiff one.
        least: activation at least, where the tendon stretches.
        start: of the fibre, optimal lengths, where it is a state.

    Example:
        >>> import linkwise as lw
        >>> soleus = lw.equipment.HillMuscle(force=3549.0, optimal_length=0.05, slack_length=0.25, pennation=0.436)
        >>> round(soleus.pull(1.0, 0.25 + 0.05 * 0.906, 0.0), 0)  # N
        -3222.0
    """

    force: float
    optimal_length: float
    slack_length: float
    pennation: float = 0.0
    v_max: float = 10.0
    passive_strain: float = 0.6
    damping: float = 0.0
    tendon_stiffness: float | None = None
    least: float = 0.01
    start: float = 1.0

    def __post_init__(self) -> None:
        set_finite(self, "force slack_length damping tendon_stiffness", "a muscle", least=0.0)
        set_finite(self, "optimal_length v_max passive_strain least start", "a muscle", above=0.0)
        set_finite(self, "pennation", "a muscle")
        if self.tendon_stiffness is not None and not self.slack_length > 0.0:
            raise InputError("a tendon that stretches has a length", got=self.slack_length, allowed="slack_length > 0")
        if not 0.0 <= self.pennation < 0.5 * math.pi:
            raise InputError("a fibre cannot stand so", got=f"{self.pennation} rad", allowed="0 <= pennation < π/2")

    def shortened(self, length: float) -> HillMuscle:
        """The same along a transmission that is so much shorter."""
        return replace(self, slack_length=self.slack_length - length)

    @property
    def states(self) -> int:
        """One where the tendon stretches: the fibre's length by the optimal one."""
        return 0 if self.tendon_stiffness is None else 1

    def initial(self) -> tuple[float, ...]:
        """Its states at the start."""
        return () if self.tendon_stiffness is None else (self.start,)

    def pull(self, a: Scalar, l: Scalar, l_dot: Scalar, x: Flat = ()) -> Scalar:
        """The force along the transmission, N: of the tendon where it stretches, else of the fibre."""
        if self.tendon_stiffness is not None:
            return -self.force * self._tendon(l, x[0])
        fibre, cosine = self._fibre(l)
        rate = l_dot * cosine * (1.0 / (self.optimal_length * self.v_max))
        law = a * active_at_length(fibre) * active_at_speed(rate) + self._passive(fibre) + self.damping * rate
        return -self.force * law * cosine

    def rate(self, a: Scalar, l: Scalar, l_dot: Scalar, x: Flat) -> list[Scalar]:
        """Rate of the fibre's length, 1/s: so fast that fibre and tendon pull alike, but no faster than v_max."""
        if self.tendon_stiffness is None:
            return []
        a = where(a > self.least, a, self.least)
        at_speed = (self._tendon(l, x[0]) / self._cosine(x[0]) - self._passive(x[0])) / (a * active_at_length(x[0]))
        return [self.v_max * speed_of(within(at_speed, active_at_speed(-1.0), active_at_speed(1.0)))]

    def _fibre(self, l: Scalar) -> tuple[Scalar, Scalar]:
        """Its length by the optimal one, and cos α, behind a stiff tendon."""
        height, along = math.sin(self.pennation), (l - self.slack_length) * (1.0 / self.optimal_length)
        if height == 0.0:
            return along, 1.0
        fibre = sqrt(along * along + height * height)
        return fibre, along / fibre

    def _cosine(self, fibre: Scalar) -> Scalar:
        """Cos α of a fibre so long; one that lies across does not pull."""
        if self.pennation == 0.0:
            return 1.0
        square = 1.0 - math.sin(self.pennation) ** 2 / (fibre * fibre)
        return sqrt(where(square > 1e-4, square, 1e-4))

    def _tendon(self, l: Scalar, fibre: Scalar) -> Scalar:
        """The tendon's force by F; it does not push."""
        c1, c2, c3 = _TENDON
        assert self.tendon_stiffness is not None
        stretched = (l - fibre * self._cosine(fibre) * self.optimal_length) * (1.0 / self.slack_length)
        pull = c1 * exp(self.tendon_stiffness * (stretched - c2)) - c3
        return where(pull > 0.0, pull, 0.0)

    def _passive(self, fibre: Scalar) -> Scalar:
        """FP; the spring does not push."""
        pull = (exp((4.0 / self.passive_strain) * (fibre - 1.0)) - 1.0) * (1.0 / (math.exp(4.0) - 1.0))
        return where(fibre > 1.0, pull, 0.0)


def active_at_length(l: Scalar) -> Scalar:
    """FL: the active force of a fibre at rest by its largest, from its length by the optimal one."""
    total: Scalar = 0.0
    for height, centre, width, slope in _GAUSSIANS:
        x = (l - centre) / (width + slope * l)
        total = total + height * exp(-0.5 * x * x)
    return total


def active_at_speed(v: Scalar) -> Scalar:
    """FV: the active force by that at rest, from the rate of the fibre by its largest; negative when shortening."""
    d1, d2, d3, d4 = _SPEED
    u = d2 * v + d3
    # The area hyperbolic sine; of a negative number by that of the positive, lest digits be lost.
    size = where(u < 0.0, -u, u)
    return d4 + d1 * where(u < 0.0, -1.0, 1.0) * log(size + sqrt(size * size + 1.0))


def speed_of(at_speed: Scalar) -> Scalar:
    """The rate at which a fibre exerts this: the inverse of :func:`active_at_speed`."""
    d1, d2, d3, d4 = _SPEED
    return (sinh((at_speed - d4) * (1.0 / d1)) - d3) * (1.0 / d2)
