"""Closed systems in two parts: a primary that stays, a secondary that changes, closures between (Rodriguez 1989 §2.3).

Both hang on the base and share nothing else, so that 𝓜 = diag(𝓜_P, 𝓜_S), J = diag(J_P, J_S), Λ = diag(Λ_P, Λ_S) and
A = [A_P A_S]. Steps A, B, C, E and F of Rodriguez 1989 §3 are two columns that know nothing of each other; closures
enter step D only, Rodriguez 1989 eq. 3.11:

    [A_PΛ_PA_P* + A_SΛ_SA_S*] f = A_Pα_P + A_Sα_S - U,

or, where A_PΛ_PA_P* can be inverted and the secondary is small, its alternative, a system of the secondary's size:

    [𝓜_S + J_S*A_S*(A_PΛ_PA_P*)⁻¹A_SJ_S] β'_S = T_S - J_S*A_S*(A_PΛ_PA_P*)⁻¹(A_Pα_P - U).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linkwise.algorithms.factors import factorize
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.operators.atoms import ClosureAdmittance, PickOff, WrittenOut
from linkwise.operators.blocks import Space
from linkwise.operators.operator import Operator
from linkwise.spatial.scalar import Flat, Scalar, dot

if TYPE_CHECKING:
    from linkwise.operators.state import Operators

Matrix = Sequence[Sequence[Scalar]]


class SystemPart:
    """Primary or secondary: its operators at its own c_p points of closure, and its N_p freedoms among all N."""

    def __init__(self, ops: Operators, name: str, links: Sequence[int]) -> None:
        self.ops, self.name = ops, name
        self.links = tuple(links)
        closing = ops.closing
        self._points = [k for k, place in enumerate(closing.places) if place.link and place.link.index in self.links]
        if not self._points:
            raise InputError(
                f"the {name} part has no point of closure",
                got=f"links {self.links}",
                allowed="two parts that closures join",
                do="name other roots, or simulate the two apart",
            )
        self._space = Space(f"points of the {name}", (6,) * len(self._points), of_points=True)

    @cached_property
    def freedoms(self) -> list[int]:
        """Places of its freedoms in v."""
        space = self.ops.H.rows
        return [i for k in self.links for i in range(space.size)[space.slice(k)]]

    @cached_property
    def B(self) -> Operator:
        """B_P or B_S, 6n × 6c_p."""
        return PickOff(self.ops.engine, [self.ops.closing.places[k] for k in self._points], self._space)

    @cached_property
    def J(self) -> Operator:
        """J_P = B_P*φ*H*, 6c_p × N; zero in the other part's columns."""
        return self.B.T @ self.ops.phi.T @ self.ops.H.T

    @cached_property
    def A(self) -> Operator:
        """A_P or A_S, m × 6c_p: the columns of A at its points (Rodriguez 1989 eq. 2.16)."""
        rows = [[x for k in self._points for x in row[6 * k : 6 * k + 6]] for row in self.ops.closing.A]
        matrix = self.ops.engine.blocks.written(rows)
        return WrittenOut(self.ops.engine, "A", matrix, self.ops.closing.constraints, self._space)

    @cached_property
    def Lambda(self) -> Operator:
        """Λ_P = J_P𝓜⁻¹J_P*, 6c_p × 6c_p: the part's admittance at its points (Rodriguez 1989 eq. 2.17)."""
        return ClosureAdmittance(self.ops.Omega, self.B)


@dataclass(frozen=True)
class Partition:
    """Primary and secondary of one state."""

    primary: SystemPart
    secondary: SystemPart


def partition(ops: Operators, secondary: Sequence[str]) -> Partition:
    """The system in two parts: ``secondary`` names bodies on the base; all that hangs on them goes with them."""
    parents, names = ops.engine.parents, ops.closing.names
    unknown = [name for name in secondary if name not in names or parents[names.index(name)] >= 0]
    if unknown or not secondary:
        roots = [name for name, parent in zip(names, parents, strict=True) if parent < 0]
        raise InputError(
            "a secondary part begins at bodies on the base",
            got=repr(unknown or list(secondary)),
            allowed=f"some of {', '.join(map(repr, roots))}, not all",
        )
    root = list(range(len(parents)))
    for k, parent in enumerate(parents):
        root[k] = k if parent < 0 else root[parent]
    chosen = {names.index(name) for name in secondary}
    parts = [[k for k in range(len(parents)) if (root[k] in chosen) == is_secondary] for is_secondary in (False, True)]
    return Partition(SystemPart(ops, "primary", parts[0]), SystemPart(ops, "secondary", parts[1]))


def step_D(
    A_P: Matrix, Lambda_P: Matrix, A_S: Matrix, Lambda_S: Matrix, alpha_P: Flat, alpha_S: Flat, U: Flat
) -> list[Scalar]:
    """f (m), over any scalar: all that a change of closures touches (Rodriguez 1989 eq. 3.11)."""
    both = [
        [x + y for x, y in zip(p, s, strict=True)]
        for p, s in zip(_seen(A_P, Lambda_P), _seen(A_S, Lambda_S), strict=True)
    ]
    asked = [p + s - u for p, s, u in zip(_times(A_P, alpha_P), _times(A_S, alpha_S), U, strict=True)]
    return factorize(both).solve(asked)


def alternative_step_D(
    A_P: Matrix, Lambda_P: Matrix, J_c_S: Matrix, M_S: Matrix, alpha_P: Flat, T_S: Flat, U: Flat
) -> tuple[list[Scalar], list[Scalar]]:
    """f (m) and β'_S (N_S), by a system of the secondary's size; ``J_c_S`` is A_SJ_S, m × N_S.

    Rodriguez 1989 §3, step D. A_PΛ_PA_P* must have full rank: closures inside the secondary alone have none.
    """
    inner = factorize(_seen(A_P, Lambda_P))
    short = [a - u for a, u in zip(_times(A_P, alpha_P), U, strict=True)]
    columns = [list(column) for column in zip(*J_c_S, strict=True)]
    solved = [inner.solve(column) for column in columns]
    n = range(len(columns))
    whole = [[M_S[i][j] + dot(columns[i], solved[j]) for j in n] for i in n]
    eased = inner.solve(short)
    beta = factorize(whole).solve([t - dot(column, eased) for t, column in zip(T_S, columns, strict=True)])
    return inner.solve([a + b for a, b in zip(short, _times(J_c_S, beta), strict=True)]), beta


def _seen(A: Matrix, Lambda: Matrix) -> list[list[Scalar]]:
    """AΛA*, symmetric: each entry computed once."""
    half = [_times(Lambda, row) for row in A]
    n = range(len(A))
    upper = {(i, j): dot(A[i], half[j]) for i in n for j in n if i <= j}
    return [[upper[min(i, j), max(i, j)] for j in n] for i in n]


def _times(matrix: Matrix, x: Flat) -> list[Scalar]:
    return [dot(row, x) for row in matrix]
