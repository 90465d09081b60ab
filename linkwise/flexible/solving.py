"""Sparse factors and eigenmodes of a stiffness and a mass matrix."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from linkwise.array_types import Array, FloatArray
from linkwise.dataclass import dataclass
from linkwise.errors import ModelError
from linkwise.flexible.structure import Matrix, MatrixLike
from linkwise.memoized import cached_property

_MOST_MODES = 500
_DENSE = 400
"""Below this many dofs a dense solution is as quick, and finds everything."""


@dataclass(frozen=True)
class Eigenmodes:
    """Eigenmodes: ω² (k,) ascending and shapes (N, k) with φ*Mφ = 1."""

    squared: FloatArray
    shapes: FloatArray

    @property
    def hertz(self) -> FloatArray:
        """Frequencies; a tiny negative ω² of a rigid motion counts as zero."""
        return np.sqrt(np.maximum(self.squared, 0.0)) / (2 * np.pi)

    def __getitem__(self, chosen: Sequence[int] | NDArray[np.intp]) -> Eigenmodes:
        return Eigenmodes(self.squared[chosen], self.shapes[:, chosen])


class SymmetricFactor:
    """A symmetric matrix factored for solving, and its number of negative eigenvalues (Sylvester's inertia)."""

    def __init__(self, matrix: MatrixLike, what: str, explain: Callable[[int], str] | None = None) -> None:
        matrix = sparse.csc_array(matrix)
        self._scale = 1.0 / np.sqrt(np.maximum(np.abs(matrix.diagonal()), np.finfo(float).tiny))
        scaled = matrix.multiply(self._scale[:, None]).multiply(self._scale).tocsc()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Diagonal pivots in an order that suits symmetric matrices: half the fill, and U's signs are D's.
                self._lu = sparse_linalg.splu(
                    scaled, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
                )
        except RuntimeError:
            raise ModelError(what, got="a matrix without an inverse", do=_FIND_MECHANISM) from None
        # A solution that is known tells a singular matrix at the price of one solution; pivots cost much more.
        known = np.random.default_rng(0).standard_normal(len(self._scale))
        wrong = np.abs(self._lu.solve(scaled @ known) - known)
        if len(known) and not wrong.max() < _TRUSTED:
            pivots = np.abs(self._pivots)
            weakest = int(np.argsort(self._lu.perm_c)[int(pivots.argmin())])
            where = "" if explain is None else f", at {explain(weakest)}"
            raise ModelError(what, got=f"a pivot of {pivots.min():.0e} of its diagonal{where}", do=_FIND_MECHANISM)

    @cached_property
    def _pivots(self) -> FloatArray:
        pivots: FloatArray = self._lu.U.diagonal()
        return pivots

    @property
    def negative(self) -> int:
        """Number of negative eigenvalues."""
        return int((self._pivots < 0).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """The solution, for one right-hand side or several as columns."""
        if right.ndim == 1:
            return np.asarray(self._scale * self._lu.solve(self._scale * right))
        # One after the other: the solver is slower with several at a time.
        solution = np.empty(right.shape)
        for k in range(right.shape[1]):
            solution[:, k] = self._scale * self._lu.solve(self._scale * right[:, k])
        return solution


_TRUSTED = 1e-4
"""Error of a known solution beyond which a matrix counts as singular: condition 1e12."""
_FIND_MECHANISM = (
    "look for nodes that nothing holds: a part joined by fewer than three nodes, a missing element, "
    "a dof without stiffness"
)


def blocks(*matrices: MatrixLike) -> list[NDArray[np.intp]]:
    """The sets of dofs that act on each other, through any of the matrices; a straight beam has four families."""
    pattern = sum(abs(sparse.csr_array(matrix)) for matrix in matrices)
    count, label = csgraph.connected_components(pattern, directed=False)
    order = np.argsort(label, kind="stable")
    return np.split(order, np.searchsorted(label[order], np.arange(1, count)))


def lowest_modes(
    K: Matrix,
    M: Matrix,
    count: int,
    *,
    free: bool = False,
    of_each_family: bool = False,
    factor: Callable[[], SymmetricFactor] | None = None,
) -> Eigenmodes:
    """The modes of lowest frequency, found family by family, so that equal frequencies of families do not mix.

    Args:
        K: stiffness; positive definite, or positive semidefinite with `free`.
        M: mass, positive semidefinite.
        count: how many are wanted; fewer come where there are fewer.
        free: whether K has rigid motions.
        of_each_family: whether `count` is meant for each family.
        factor: that of K, where it serves others too.
    """
    families = blocks(K, M)
    whole = factor if len(families) == 1 and not free else None
    found = [(family, _family_modes(K, M, family, count, free, whole)) for family in families]
    return _merged(K.shape[0], found, None if of_each_family else count)


def modes_below(
    K: Matrix,
    M: Matrix,
    hertz: float,
    *,
    free: bool = False,
    factor: Callable[[], SymmetricFactor] | None = None,
) -> Eigenmodes:
    """All modes below a frequency, and a few above; counted by Sylvester's theorem, so that none is missed."""
    found = []
    limit = (2 * np.pi * hertz) ** 2
    families = blocks(K, M)
    whole = factor if len(families) == 1 and not free else None
    for family in families:
        K_f, M_f = K[family][:, family], M[family][:, family]
        count = SymmetricFactor(K_f - limit * M_f, "the frequency limit is an eigenfrequency to rounding").negative
        if count > _MOST_MODES:
            raise ModelError(
                "too many modes lie below the frequency limit",
                got=f"{count} below {hertz:g} Hz",
                allowed=f"at most {_MOST_MODES}",
                do="lower up_to_hz, or check the units: frequencies may be wrong by a factor",
            )
        found.append((family, _family_modes(K, M, family, count + 2, free, whole)))
    return _merged(K.shape[0], found, None)


def _merged(size: int, found: list[tuple[NDArray[np.intp], Eigenmodes]], count: int | None) -> Eigenmodes:
    total = sum(len(modes.squared) for _, modes in found)
    squared, shapes, at = np.empty(total), np.zeros((size, total)), 0
    for family, modes in found:
        k = len(modes.squared)
        squared[at : at + k] = modes.squared
        shapes[family, at : at + k] = modes.shapes
        at += k
    order = np.argsort(squared, kind="stable")[:count]
    return Eigenmodes(squared[order], shapes[:, order])


def _family_modes(
    K: Matrix, M: Matrix, family: NDArray[np.intp], count: int, free: bool, whole: Callable[[], SymmetricFactor] | None
) -> Eigenmodes:
    K, M = sparse.csc_array(K[family][:, family]), sparse.csc_array(M[family][:, family])
    size = K.shape[0]
    if not M.diagonal().any():
        return Eigenmodes(np.empty(0), np.empty((size, 0)))
    # A free structure is held by a weak spring on every mass, far below the elements' own, which is taken off again.
    heavy = M.diagonal() > 0
    shift = 1e-7 * float(np.median(K.diagonal()[heavy] / M.diagonal()[heavy])) if free else 0.0
    held = K + shift * M
    if size <= _DENSE or count >= size // 3:
        squared, shapes = _dense(held.toarray(), M.toarray(), min(count, size))
    else:
        factor = SymmetricFactor(held, "the stiffness matrix is singular") if whole is None else whole()
        inverse = sparse_linalg.LinearOperator(K.shape, matvec=factor.solve, dtype=float)
        start = np.random.default_rng(0).standard_normal(size)
        squared, shapes = sparse_linalg.eigsh(held, count, M, sigma=0.0, OPinv=inverse, v0=start, tol=0)
        order = np.argsort(squared)
        squared, shapes = squared[order], shapes[:, order]
        # One step of subspace iteration removes what the iteration left of the neighbours.
        shapes = factor.solve(M @ shapes)
        small, turn = linalg.eigh(shapes.T @ (held @ shapes), shapes.T @ (M @ shapes))
        squared, shapes = small, shapes @ turn
    return Eigenmodes(squared - shift, _signed(shapes))


def _dense(K: FloatArray, M: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """M x = μ K x with μ = 1/ω²: accurate for the low modes, and indifferent to dofs without mass."""
    scale = 1.0 / np.sqrt(np.diag(K))
    try:
        mu, shapes = linalg.eigh(scale[:, None] * M * scale, scale[:, None] * K * scale)
    except linalg.LinAlgError:
        raise ModelError("the stiffness matrix is not positive definite", do=_FIND_MECHANISM) from None
    mu, shapes = mu[::-1][:count], shapes[:, ::-1][:, :count]
    has_mass = mu > 1e-15 * mu[0]
    mu, shapes = mu[has_mass], shapes[:, has_mass]
    return 1.0 / mu, scale[:, None] * shapes / np.sqrt(mu)


def _signed(shapes: Array) -> Array:
    """Shapes, each with its largest component positive, so that results do not depend on the solver's mood."""
    largest = np.abs(shapes).argmax(axis=0)
    return shapes * np.where(shapes[largest, np.arange(shapes.shape[1])] < 0, -1.0, 1.0)
