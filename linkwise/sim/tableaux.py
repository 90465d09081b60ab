"""Methods as data.

A :class:`~linkwise.spatial.runge_kutta.Tableau` is all there is to an explicit method: the steps of
:mod:`linkwise.sim.explicit` are any of them. Add a method by adding its numbers to :data:`TABLEAUX`: ``simulate`` and
the command line then know its name, it adapts its steps if it estimates its error, and ``tests/sim/test_orders.py``
measures its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Real

from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.sim import dop853
from linkwise.spatial.runge_kutta import RK4, Row, Tableau

__all__ = ["RODAS4", "TABLEAUX", "GeneralizedAlpha", "Rosenbrock", "Row", "Tableau"]


def _numbers(text: str) -> list[Fraction]:
    return [Fraction(word) for word in text.split()]


def _row(values: Iterable[Fraction]) -> Row:
    return {j: float(value) for j, value in enumerate(values) if value}


def _pair(
    name: str,
    order: int,
    nodes: str,
    rows: Sequence[str],
    weights: str,
    lower: str,
    dense: dict[int, str] | None = None,
) -> Tableau:
    """A method with another of the order before it, whose weights are ``lower``, by which it judges its errors."""
    c, a, b = map(float, _numbers(nodes)), (_row(_numbers(row)) for row in rows), _numbers(weights)
    error = _row(x - y for x, y in zip(b, _numbers(lower), strict=True))
    powers = None if dense is None else {i: tuple(map(float, _numbers(row))) for i, row in dense.items()}
    return Tableau(name, order, tuple(c), tuple(a), _row(b), (error,), order - 1, powers)


# Dormand and Prince (1980); the interpolant is Shampine's, as in SciPy.
_DOPRI5 = _pair(
    "dopri5",
    order=5,
    nodes="0 1/5 3/10 4/5 8/9 1 1",
    rows=(
        "",
        "1/5",
        "3/40 9/40",
        "44/45 -56/15 32/9",
        "19372/6561 -25360/2187 64448/6561 -212/729",
        "9017/3168 -355/33 46732/5247 49/176 -5103/18656",
        "35/384 0 500/1113 125/192 -2187/6784 11/84 0",
    ),
    weights="35/384 0 500/1113 125/192 -2187/6784 11/84 0",
    lower="5179/57600 0 7571/16695 393/640 -92097/339200 187/2100 1/40",
    dense={
        0: "1 -8048581381/2820520608 8663915743/2820520608 -12715105075/11282082432",
        2: "0 131558114200/32700410799 -68118460800/10900136933 87487479700/32700410799",
        3: "0 -1754552775/470086768 14199869525/1410260304 -10690763975/1880347072",
        4: "0 127303824393/49829197408 -318862633887/49829197408 701980252875/199316789632",
        5: "0 -282668133/205662961 2019193451/616988883 -1453857185/822651844",
        6: "0 40617522/29380423 -110615467/29380423 69997945/29380423",
    },
)

# Verner's pair of orders 6 and 5 (the subroutine DVERK); steps go with the sixth-order result.
_RK56 = _pair(
    "rk56",
    order=6,
    nodes="0 1/6 4/15 2/3 5/6 1 1/15 1",
    rows=(
        "",
        "1/6",
        "4/75 16/75",
        "5/6 -8/3 5/2",
        "-165/64 55/6 -425/64 85/96",
        "12/5 -8 4015/612 -11/36 88/255",
        "-8263/15000 124/75 -643/680 -81/250 2484/10625 0",
        "3501/1720 -300/43 297275/52632 -319/2322 24068/84065 0 3850/26703",
    ),
    weights="3/40 0 875/2244 23/72 264/1955 0 125/11592 43/616",
    lower="13/160 0 2375/5984 5/16 12/85 3/44 0 0",
)

# Cash and Karp's pair of orders 5 and 4, the method of Press et al., Numerical Recipes.
_CASH_KARP = _pair(
    "cash_karp",
    order=5,
    nodes="0 1/5 3/10 3/5 1 7/8",
    rows=(
        "",
        "1/5",
        "3/40 9/40",
        "3/10 -9/10 6/5",
        "-11/54 5/2 -70/27 35/27",
        "1631/55296 175/512 575/13824 44275/110592 253/4096",
    ),
    weights="37/378 0 250/621 125/594 0 512/1771",
    lower="2825/27648 0 18575/48384 13525/55296 277/14336 1/4",
)

_DOP853 = Tableau(
    "dop853",
    order=8,
    nodes=dop853.NODES[:13],
    rows=dop853.ROWS[:13],
    weights=dop853.WEIGHTS,
    error=(dop853.ERROR_5, dop853.ERROR_3),
    error_order=7,
    nested=dop853.DENSE,
    extra_nodes=dop853.NODES[13:],
    extra_rows=dop853.ROWS[13:],
)

TABLEAUX: dict[str, Tableau] = {t.name: t for t in (RK4, _DOP853, _DOPRI5, _RK56, _CASH_KARP)}


@dataclass(frozen=True)
class Rosenbrock:
    """A linearly implicit method: (I/(hγ) - J) u_i = f(t + α_i h, y + Σ a_ij u_j) + Σ (c_ij/h) u_j + γ_i h ∂f/∂t.

    No iteration: the exact Jacobian J enters the method itself. The last two stages are stiffly accurate: each adds its
    u to the state, and the last u is the error estimate.
    """

    name: str
    order: int
    gamma: float
    alpha: tuple[float, ...]
    gammas: tuple[float, ...]
    a: tuple[Row, ...]
    c: tuple[Row, ...]
    error_order: int


# Hairer and Wanner's RODAS, order 4(3), L-stable (Solving ODEs II, IV.7 and the code of the same name).
_RODAS_A5 = {0: 1.221224509226641, 1: 6.019134481288629, 2: 12.53708332932087, 3: -0.6878860361058950}
RODAS4 = Rosenbrock(
    "rodas4",
    order=4,
    gamma=0.25,
    alpha=(0.0, 0.386, 0.21, 0.63, 1.0, 1.0),
    gammas=(0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0),
    a=(
        {},
        {0: 1.544},
        {0: 0.9466785280815826, 1: 0.2557011698983284},
        {0: 3.314825187068521, 1: 2.896124015972201, 2: 0.9986419139977817},
        _RODAS_A5,
        {**_RODAS_A5, 4: 1.0},
    ),
    c=(
        {},
        {0: -5.6688},
        {0: -2.430093356833875, 1: -0.2063599157091915},
        {0: -0.1073529058151375, 1: -9.594562251023355, 2: -20.47028614809616},
        {0: 7.496443313967647, 1: -10.24680431464352, 2: -33.99990352819905, 3: 11.70890893206160},
        {
            0: 8.083246795921522,
            1: -7.981132988064893,
            2: -31.52159432874371,
            3: 16.31930543123136,
            4: -6.058818238834054,
        },
    ),
    error_order=3,
)


@dataclass(frozen=True)
class GeneralizedAlpha:
    """The generalized-α method with a chosen numerical damping, for ``simulate(..., method=...)``.

    Args:
        spectral_radius: ρ, 0 to 1: the factor by which a step changes motions much faster than itself. 1 keeps them
            (and the energy of linear structures), 0 removes them in one step.

    >>> from linkwise import samples, simulate
    >>> damped = GeneralizedAlpha(spectral_radius=0.6)
    >>> damped.gamma, damped.beta
    (0.75, 0.390625)
    >>> simulate(samples.planar_arm(), [0.5, 0.0, 0.0], duration=0.1, dt=1e-3, method=damped).steps
    100
    """

    spectral_radius: float = 0.9

    def __post_init__(self) -> None:
        rho: object = self.spectral_radius
        if isinstance(rho, bool) or not (isinstance(rho, Real) and 0.0 <= float(rho) <= 1.0):
            raise InputError(
                "the spectral radius is not a factor of damping", got=repr(rho), allowed="a number, 0 to 1"
            )
        object.__setattr__(self, "spectral_radius", float(rho))

    @property
    def alpha_m(self) -> float:
        """α_m."""
        return (2.0 * self.spectral_radius - 1.0) / (self.spectral_radius + 1.0)

    @property
    def alpha_f(self) -> float:
        """α_f."""
        return self.spectral_radius / (self.spectral_radius + 1.0)

    @property
    def beta(self) -> float:
        """β."""
        return 0.25 * (1.0 - self.alpha_m + self.alpha_f) ** 2

    @property
    def gamma(self) -> float:
        """γ."""
        return 0.5 - self.alpha_m + self.alpha_f
