"""Integration methods as data.

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
from linkwise.spatial.runge_kutta import RK4, Row, Tableau

__all__ = ["RODAS4", "TABLEAUX", "GeneralizedAlpha", "Rosenbrock", "Row", "Tableau"]


def _numbers(text: str) -> list[Fraction]:
    return [Fraction(word) for word in text.split()]


def _floats(text: str) -> tuple[float, ...]:
    return tuple(map(float, _numbers(text)))


def _row(values: Iterable[Fraction]) -> Row:
    return {j: float(value) for j, value in enumerate(values) if value}


def _rows(*texts: str) -> tuple[Row, ...]:
    return tuple(_row(_numbers(text)) for text in texts)


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
    b = _numbers(weights)
    error = _row(x - y for x, y in zip(b, _numbers(lower), strict=True))
    powers = None if dense is None else {i: _floats(row) for i, row in dense.items()}
    return Tableau(name, order, _floats(nodes), _rows(*rows), _row(b), (error,), order - 1, powers)


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

# Dormand and Prince's 8(5,3) method, after Hairer, Nørsett and Wanner (Solving ODEs I, II.5 and II.6). Stages 0 to 11
# give the step, 12 is the derivative at its end, 13 to 15 are needed for dense output only.
_DOP853_NODES = _floats(
    "0 0.05260015195876773 0.0789002279381516 0.1183503419072274 0.2816496580927726 0.3333333333333333 0.25 "
    "0.3076923076923077 0.6512820512820513 0.6 0.8571428571428571 1 1 0.1 0.2 0.7777777777777778"
)
_DOP853_ROWS = _rows(
    "",
    "0.05260015195876773",
    "0.0197250569845379 0.0591751709536137",
    "0.02958758547680685 0 0.08876275643042054",
    "0.2413651341592667 0 -0.8845494793282861 0.924834003261792",
    "0.037037037037037035 0 0 0.17082860872947386 0.12546768756682242",
    "0.037109375 0 0 0.17025221101954405 0.06021653898045596 -0.017578125",
    "0.03709200011850479 0 0 0.17038392571223998 0.10726203044637328 -0.015319437748624402 0.008273789163814023",
    "0.6241109587160757 0 0 -3.3608926294469414 -0.868219346841726 27.59209969944671 20.154067550477894 "
    "-43.48988418106996",
    "0.47766253643826434 0 0 -2.4881146199716677 -0.590290826836843 21.230051448181193 15.279233632882423 "
    "-33.28821096898486 -0.020331201708508627",
    "-0.9371424300859873 0 0 5.186372428844064 1.0914373489967295 -8.149787010746927 -18.52006565999696 "
    "22.739487099350505 2.4936055526796523 -3.0467644718982196",
    "2.273310147516538 0 0 -10.53449546673725 -2.0008720582248625 -17.9589318631188 27.94888452941996 "
    "-2.8589982771350235 -8.87285693353063 12.360567175794303 0.6433927460157636",
    "0.054293734116568765 0 0 0 0 4.450312892752409 1.8915178993145003 -5.801203960010585 0.3111643669578199 "
    "-0.1521609496625161 0.20136540080403034 0.04471061572777259",
    "0.056167502283047954 0 0 0 0 0 0.25350021021662483 -0.2462390374708025 -0.12419142326381637 "
    "0.15329179827876568 0.00820105229563469 0.007567897660545699 -0.008298",
    "0.03183464816350214 0 0 0 0 0.028300909672366776 0.053541988307438566 -0.05492374857139099 0 0 "
    "-0.00010834732869724932 0.0003825710908356584 -0.00034046500868740456 0.1413124436746325",
    "-0.42889630158379194 0 0 0 0 -4.697621415361164 7.683421196062599 4.06898981839711 0.3567271874552811 0 0 "
    "0 -0.0013990241651590145 2.9475147891527724 -9.15095847217987",
)
_THIRD_ORDER = {0: 0.2440944881889764, 8: 0.7338466882816118, 11: 0.022058823529411766}
_DOP853_ERRORS = (
    *_rows(
        "0.01312004499419488 0 0 0 0 -1.2251564463762044 -0.4957589496572502 1.6643771824549864 "
        "-0.35032884874997366 0.3341791187130175 0.08192320648511571 -0.022355307863886294",
    ),
    {stage: weight - _THIRD_ORDER.get(stage, 0.0) for stage, weight in _DOP853_ROWS[12].items()},
)
# Rows 3 to 6 of the interpolant; the first three follow from the ends of the step.
_DOP853_DENSE = _rows(
    "-8.428938276109013 0 0 0 0 0.5667149535193777 -3.0689499459498917 2.38466765651207 2.117034582445028 "
    "-0.871391583777973 2.2404374302607883 0.6315787787694688 -0.08899033645133331 18.148505520854727 "
    "-9.194632392478356 -4.436036387594894",
    "10.427508642579134 0 0 0 0 242.28349177525817 165.20045171727028 -374.5467547226902 -22.113666853125306 "
    "7.733432668472264 -30.674084731089398 -9.332130526430229 15.697238121770845 -31.139403219565178 "
    "-9.35292435884448 35.81684148639408",
    "19.985053242002433 0 0 0 0 -387.0373087493518 -189.17813819516758 527.8081592054236 -11.57390253995963 "
    "6.8812326946963 -1.0006050966910838 0.7777137798053443 -2.778205752353508 -60.19669523126412 "
    "84.32040550667716 11.99229113618279",
    "-25.69393346270375 0 0 0 0 -154.18974869023643 -231.5293791760455 357.6391179106141 93.40532418362432 "
    "-37.45832313645163 104.0996495089623 29.8402934266605 -43.53345659001114 96.32455395918828 "
    "-39.17726167561544 -149.72683625798564",
)
_DOP853 = Tableau(
    "dop853",
    order=8,
    nodes=_DOP853_NODES[:13],
    rows=_DOP853_ROWS[:13],
    weights=_DOP853_ROWS[12],  # the derivative at the step's end is a stage of its own
    error=_DOP853_ERRORS,
    error_order=7,
    nested=_DOP853_DENSE,
    extra_nodes=_DOP853_NODES[13:],
    extra_rows=_DOP853_ROWS[13:],
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
