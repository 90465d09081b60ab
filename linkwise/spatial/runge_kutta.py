"""Explicit Runge–Kutta methods as data, and a step of any of them.

Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.spatial.scalar import Scalar

Row = dict[int, float]
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Tableau:
    """An explicit Runge–Kutta method: k_i = f(t + c_i h, y + h Σ a_ij k_j), y₁ = y + h Σ b_i k_i.

    Args:
        name: what it is called in ``simulate(method=...)``.
        order: order of the step.
        nodes: c, one for each stage.
        rows: a, sparse, one row for each stage; a last row equal to the weights makes it first-same-as-last.
        weights: b, sparse.
        error: rows whose combination h Σ e_i k_i estimates the error; empty for a fixed step. Two rows are blended as
            in DOP853: the first is the fifth-order estimate, the second the third-order one.
        error_order: order of the estimate; step sizes go with err^(-1/(error_order + 1)).
        dense: the interpolant y(θ) = y + h Σ_i k_i Σ_j P[i][j] θ^(j+1); None: steps end on output times instead.
        nested: DOP853's interpolant, with its extra stages and rows of D.
    """

    name: str
    order: int
    nodes: tuple[float, ...]
    rows: tuple[Row, ...]
    weights: Row
    error: tuple[Row, ...] = ()
    error_order: int = 0
    dense: dict[int, tuple[float, ...]] | None = None
    nested: tuple[Row, ...] = ()
    extra_nodes: tuple[float, ...] = ()
    extra_rows: tuple[Row, ...] = ()

    def __post_init__(self) -> None:
        """Slips of the pen, as far as they show in sums."""
        if len(self.rows) != len(self.nodes):
            raise self._slip(f"{len(self.nodes)} nodes and {len(self.rows)} rows", "a row for each node")
        for i, (node, row) in enumerate(zip(self.nodes, self.rows, strict=True)):
            if any(not 0 <= j < i for j in row) or abs(sum(row.values()) - node) > _ROUNDING:
                raise self._slip(f"stage {i} at {node} with {row}", "stages before it, weights that add up to its node")
        if any(not 0 <= j < self.stages for j in self.weights) or abs(sum(self.weights.values()) - 1.0) > _ROUNDING:
            raise self._slip(f"weights {self.weights}", "weights of its stages that add up to 1")
        for row in self.error:
            if any(not 0 <= j < self.stages for j in row) or abs(sum(row.values())) > _ROUNDING:
                raise self._slip(f"error {row}", "the difference of two sets of weights, which adds up to 0")
        if self.error and self.error_order < 1:
            raise self._slip(f"error_order {self.error_order}", "the order of the error estimate, at least 1")

    def _slip(self, got: str, allowed: str) -> InputError:
        return InputError(f"the method {self.name!r} does not add up: {got}", allowed=allowed)

    def step(self, rates: Callable[[Scalar], Scalar], start: Scalar, h: float) -> Scalar:
        """One step of ż = rates(z) from ``start``, for whatever can be added and multiplied by numbers."""
        k: list[Scalar] = []
        for row in self.rows:
            k.append(rates(_ahead(start, h, row, k)))
        return _ahead(start, h, self.weights, k)

    @property
    def stages(self) -> int:
        """Number of evaluations of the equations of motion in one step, the reused first stage included."""
        return len(self.nodes)

    @property
    def adaptive(self) -> bool:
        """Whether the method estimates its error."""
        return bool(self.error)

    @property
    def first_same_as_last(self) -> bool:
        """Whether the last stage is the derivative at the end of the step."""
        return self.nodes[-1] == 1.0 and self.rows[-1] == self.weights


def _ahead(start: Scalar, h: float, row: Row, k: Sequence[Scalar]) -> Scalar:
    """z + h Σ a_j k_j."""
    for j, weight in row.items():
        start = start + (h * weight) * k[j]
    return start


RK4 = Tableau(
    "rk4",
    order=4,
    nodes=(0.0, 0.5, 0.5, 1.0),
    rows=({}, {0: 0.5}, {1: 0.5}, {2: 1.0}),
    weights={0: 1 / 6, 1: 1 / 3, 2: 1 / 3, 3: 1 / 6},
)
