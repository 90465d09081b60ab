"""Reduction of a finite-element model to a few modes: basis, orthonormal coordinates, account of the rest."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse

from linkwise.array_types import Array, FloatArray
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelError, ModelWarning, UnknownNameError
from linkwise.flexible.mode_choice import Choice, Component
from linkwise.flexible.root_support import KeptNode, Support, kept_nodes
from linkwise.flexible.solving import Eigenmodes, SymmetricFactor, blocks, lowest_modes, modes_below
from linkwise.flexible.structure import COMPONENTS, Matrix, NodeKey, Structure

_MARGIN = 6
"""Modes found beyond those kept, so that the report can name what was dropped."""
_POOL = 40
"""Candidates when modes are chosen by their contribution, at least."""
_LARGEST_NODAL = 300
_DEPENDENT = 1e-8
"""A residual vector whose part outside the basis is smaller than this holds nothing new."""

_WATCHED = 8
"""Nodes whose static error is reported, at most."""


@dataclass(frozen=True)
class ByKind:
    """Number of modes of each kind: y, z, axial, twist."""

    counts: Mapping[str, int]
    kinds: Callable[[FloatArray], Sequence[str]]
    """The kind of each of some shapes, given in all dofs."""


@dataclass(frozen=True)
class Reduction:
    """Account of a reduction: modes kept, modes dropped, and the error that this leaves.

    Args:
        boundary: the kind of modes.
        dofs: of the full model, with the root held.
        kept_hz: frequencies of the kept modes (with static shapes among them, the pseudo-frequencies of the basis).
        dropped_hz: frequencies of the modes that were found and dropped; there are more above them.
        effective_mass: the share of the body's inertia that the modes carry when the root is shaken, along each of
            rx, ry, rz, tx, ty, tz.
        static_error: node -> relative error of its deflection under unit forces there, the rest held at the root.
        gain_error: relative error of the static gain from inputs to outputs; None where none were given.
        contributions: for modes ranked by contribution: (Hz, share of the largest, kept) in that order.
    """

    boundary: str
    dofs: int
    kept_hz: tuple[float, ...]
    dropped_hz: tuple[float, ...]
    effective_mass: tuple[float, ...]
    static_error: tuple[tuple[NodeKey, float], ...]
    gain_error: float | None = None
    contributions: tuple[tuple[float, float, bool], ...] = ()

    def report(self) -> str:
        """All of this to be read."""
        lines = [f"{len(self.kept_hz)} modes of {self.dofs} dofs ({self.boundary})"]
        lines.append("  kept:    " + (_listed(self.kept_hz) if self.kept_hz else "none"))
        lines.append("  dropped: " + (_listed(self.dropped_hz) + ", and all above" if self.dropped_hz else "none"))
        shares = (
            f"{name} {share:.1%}"
            for name, share in zip(("rx", "ry", "rz", "tx", "ty", "tz"), self.effective_mass, strict=True)
        )
        lines.append("  inertia carried by the modes when the root is shaken: " + ", ".join(shares))
        for key, error in self.static_error:
            lines.append(f"  deflection of {key!r} under forces there: wrong by {error:.2e} of it")
        if self.gain_error is not None:
            lines.append(f"  static gain from inputs to outputs: wrong by {self.gain_error:.2e} of it")
        last = max((k for k, (_, _, kept) in enumerate(self.contributions) if kept), default=-1)
        for hertz, share, kept in self.contributions[: last + 6]:
            lines.append(
                f"    {hertz:12.4g} Hz  {share:9.2e} of the largest contribution  {'kept' if kept else 'dropped'}"
            )
        return "\n".join(lines)


def _listed(hertz: Sequence[float]) -> str:
    shown = ", ".join(f"{each:.4g}" for each in hertz[:12])
    return (f"{shown}, … {hertz[-1]:.4g}" if len(hertz) > 12 else shown) + " Hz"


@dataclass(frozen=True)
class ReducedBasis:
    """A basis of shapes in the body's frame: Φ (N, m), with its K and D, and the account of it."""

    support: Support
    shapes: FloatArray
    stiffness: FloatArray
    damping: FloatArray
    reduction: Reduction


def reduced(
    structure: Structure,
    root: KeptNode,
    choice: Choice,
    keep: Sequence[KeptNode] = (),
    by_kind: ByKind | None = None,
    shapes: Array | None = None,
) -> ReducedBasis:
    """The reduction that a choice asks for.

    Args:
        structure: the free model.
        root: where the body is held.
        choice: which modes to keep.
        keep: further nodes of the body, for the account of static errors.
        by_kind: how many modes of which kind (a beam's), instead of the lowest of all.
        shapes: modes found elsewhere, (N, m), instead of our own.
    """
    tied = kept_nodes(structure, choice.interfaces, "interfaces")
    support = Support(structure, root, tied, keep, held=choice.held)
    support.factor  # noqa: B018  # a mechanism is found here, before anything else is
    if choice.up_to_hz is not None or len(choice.inputs) or choice.boundary == "nodal":
        by_kind = None
    found = _given(support, shapes) if shapes is not None else _found(support, choice, by_kind)
    chosen, contributions = _chosen(support, found, choice, by_kind, everything=shapes is not None)
    left_out = np.setdiff1d(np.arange(len(found.squared)), chosen)
    basis = _basis(support, found[chosen], choice)
    loads = [choice.residuals] if isinstance(choice.residuals, (str, int)) else list(choice.residuals)
    if loads:
        basis = np.hstack([basis, _residuals(support, basis, [support.place(key) for key in loads])])
    kept, squared = _orthonormal(support, basis, choice)
    stiffness = np.diag(squared) if choice.boundary != "nodal" else kept.T @ (structure.K @ kept)
    away = [place for place in (*tied, *keep) if not np.isin(place.nodes, root.nodes).any()]
    watched = ([place for place in away if isinstance(place.key, str)] or away)[:_WATCHED]
    reduction = Reduction(
        boundary=choice.boundary,
        dofs=support.size,
        kept_hz=tuple((np.sqrt(np.maximum(squared, 0.0)) / (2 * np.pi)).tolist()),
        dropped_hz=tuple(found[left_out].hertz.tolist()),
        effective_mass=_effective_mass(support, kept),
        static_error=tuple((place.key, _static_error(support, kept, place)) for place in watched),
        gain_error=_gain_error(support, kept, choice),
        contributions=contributions,
    )
    damping = _damping(choice.damping, squared, kept, structure, nodal=choice.boundary == "nodal")
    return ReducedBasis(support, kept, stiffness, damping, reduction)


# --------------------------------------------------------------------------------------------------------------- modes


def _found(support: Support, choice: Choice, by_kind: ByKind | None) -> Eigenmodes:
    """The candidates, in dofs c."""
    if choice.boundary == "nodal":
        if support.size > _LARGEST_NODAL:
            raise ModelError(
                "the model is too large to keep every dof",
                got=f"{support.size} dofs",
                allowed=f"at most {_LARGEST_NODAL}",
                do='reduce it: boundary="cantilever" or "craig-bampton"',
            )
        return Eigenmodes(np.zeros(0), np.zeros((support.size, 0)))
    free = choice.boundary == "free"
    held = Support(support.structure, support.root, support.tied, held=choice.held, free=True) if free else support
    K, M = held.K, held.M
    inner = held.interior if choice.boundary == "craig-bampton" else np.arange(held.size)
    if choice.boundary == "craig-bampton":
        K, M = K[inner][:, inner], M[inner][:, inner]
    factor = (lambda: support.factor) if choice.boundary == "cantilever" else None
    if choice.up_to_hz is not None:
        found = modes_below(K, M, choice.up_to_hz, free=free, factor=factor)
    elif by_kind is not None:
        most = max(by_kind.counts.values(), default=0)
        found = lowest_modes(K, M, most + 2 + (2 if free else 0), free=free, of_each_family=True, factor=factor)
    else:
        count = choice.count or 0
        wanted = max(count + _MARGIN, _POOL if len(choice.inputs) else 0) + (6 if free else 0)
        found = lowest_modes(K, M, min(wanted, K.shape[0]), free=free, factor=factor)
    if not free:
        shapes = np.zeros((held.size, found.shapes.shape[1]))
        shapes[inner] = found.shapes
        return Eigenmodes(found.squared, shapes)
    elastic = _without_rigid(held, found)
    return Eigenmodes(elastic.squared, support.coordinates(support.in_frame(held.T @ elastic.shapes)))


def _without_rigid(held: Support, found: Eigenmodes) -> Eigenmodes:
    """The elastic modes of a free body: all but six (five for a line without thickness, whose spin weighs nothing)."""
    rigid = held.structure.rigid(held.root.position)
    inertia = rigid.T @ (held.structure.M @ rigid)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(inertia), np.finfo(float).tiny))
    heavy = int((np.diag(inertia) > 1e-14 * np.diag(inertia).max()).sum())
    expected = min(heavy, int(np.linalg.matrix_rank(scale[:, None] * inertia * scale, tol=1e-10)))
    elastic = found[np.arange(expected, len(found.squared))]
    rigid_hz = found.hertz[:expected]
    if len(rigid_hz) < expected or (len(elastic.squared) and rigid_hz.max() > 1e-2 * elastic.hertz[0]):
        raise ModelError(
            "the free body does not have its rigid motions",
            got="lowest frequencies " + ", ".join(f"{each:.3g}" for each in found.hertz[:8]) + " Hz",
            allowed=f"{expected} near zero, then the elastic ones",
            do="look for nodes that are held to the ground, or for loose parts",
        )
    return elastic


def _given(support: Support, shapes: Array) -> Eigenmodes:
    """Modes found elsewhere, made relative to the body's frame, in the dofs c; not orthogonal ones are warned about."""
    structure = support.structure
    if shapes.ndim != 2 or len(shapes) != structure.size or not np.isfinite(shapes).all():
        raise InputError(
            "the mode shapes do not fit the model", got=str(shapes.shape), allowed=f"({structure.size}, m), finite"
        )
    for name, matrix in (("M", structure.M), ("K", structure.K)):
        product = shapes.T @ (matrix @ shapes)
        scale = np.sqrt(np.abs(np.diag(product)))
        off = np.abs(product - np.diag(np.diag(product))) / np.maximum(np.outer(scale, scale), np.finfo(float).tiny)
        if off.max(initial=0.0) > 1e-4:
            i, j = np.unravel_index(off.argmax(), off.shape)
            warnings.warn(
                ModelWarning(
                    f"the mode shapes are not orthogonal with respect to {name}",
                    got=f"modes {i} and {j} (from 0): {off[i, j]:.2g} of their size",
                    do="they span a space that is made orthogonal; check that shapes and matrices belong together",
                ),
                stacklevel=4,
            )
    c = support.coordinates(support.in_frame(shapes))
    squared = np.einsum("ni,ni->i", c, support.K @ c) / np.einsum("ni,ni->i", c, support.M @ c)
    return Eigenmodes(squared, c)


def _chosen(
    support: Support, found: Eigenmodes, choice: Choice, by_kind: ByKind | None, *, everything: bool
) -> tuple[list[int], tuple[tuple[float, float, bool], ...]]:
    """The modes to keep, and for those ranked by contribution the ranking."""
    within = list(range(len(found.squared)))
    if everything:
        return within, ()
    if by_kind is not None:
        return _chosen_by_kind(support, found, by_kind), ()
    if choice.up_to_hz is not None:
        within = [k for k in within if found.hertz[k] < choice.up_to_hz]
    count = len(within) if choice.modes is None and choice.up_to_hz is not None else choice.count or 0
    if not len(choice.inputs):
        return within[:count], ()
    shapes = support.T @ found.shapes
    b = np.linalg.norm(_signals(support, choice.inputs, "inputs") @ shapes, axis=0)
    c = np.linalg.norm(_signals(support, choice.outputs, "outputs") @ shapes, axis=0)
    gain = b * c / found.squared
    if choice.rank_by == "peak":
        zeta = np.asarray(choice.damping, dtype=float)
        if zeta.shape not in ((), gain.shape) or not (zeta > 0).all():
            raise InputError(
                "the height of a resonance needs a damping ratio", got=repr(choice.damping), allowed="a number > 0"
            )
        gain = gain / (2 * zeta)
    order = sorted(within, key=lambda k: -gain[k])
    chosen = sorted(order[:count])
    largest = max(gain.max(initial=0.0), np.finfo(float).tiny)
    return chosen, tuple((float(found.hertz[k]), float(gain[k] / largest), k in chosen) for k in order)


def _chosen_by_kind(support: Support, found: Eigenmodes, by_kind: ByKind) -> list[int]:
    kinds = np.array(by_kind.kinds(support.T @ found.shapes))
    chosen: list[int] = []
    for kind, count in by_kind.counts.items():
        of_kind = np.flatnonzero(kinds == kind)
        if len(of_kind) < count:
            raise InputError(
                f"there are not so many modes of the kind {kind!r}",
                got=f"{count} asked for, {len(of_kind)} found",
                do="use more elements"
                if kind != "twist"
                else "give the section a rotary_inertia, or use more elements",
            )
        chosen += of_kind[:count].tolist()
    return sorted(chosen)


def _signals(support: Support, signals: Sequence[Component], what: str) -> Matrix:
    """Rows (k×N, sparse) that read the signals from the dofs, or, transposed, apply them."""
    rows = []
    for signal in signals:
        try:
            node, component = signal
        except (TypeError, ValueError):
            raise InputError(
                f"{what} are not pairs", got=repr(signal), allowed='(node, component), e.g. ("tip", "tz")'
            ) from None
        if component not in COMPONENTS:
            raise UnknownNameError("component", component, COMPONENTS)
        rows.append(_rows(support.structure, support.place(node))[[(COMPONENTS.index(component) + 3) % 6]])
    return sparse.vstack(rows, format="csr")


def _rows(structure: Structure, place: KeptNode) -> Matrix:
    return structure.motion_rows(place.nodes, place.position)


# --------------------------------------------------------------------------------------------------------------- basis


def _basis(support: Support, kept: Eigenmodes, choice: Choice) -> Array:
    """The shapes in dofs c."""
    if choice.boundary == "nodal":
        return np.eye(support.size)
    if choice.boundary != "craig-bampton":
        return kept.shapes
    inner, boundary = support.interior, support.boundary
    K = support.K
    static = np.zeros((support.size, len(boundary)))
    static[boundary, np.arange(len(boundary))] = 1.0
    coupling = K[inner][:, boundary].toarray()
    held = SymmetricFactor(K[inner][:, inner], "held at its root and interfaces the body is still a mechanism")
    static[inner] = held.solve(-coupling)
    return np.hstack([static, kept.shapes])


def _residuals(support: Support, basis: Array, loads: Sequence[KeptNode]) -> Array:
    """Static shapes under unit forces and moments at nodes, less what the basis holds of them."""
    rows = np.vstack([(_rows(support.structure, place) @ support.T).toarray() for place in loads])
    static = support.factor.solve(rows.T)
    static = static / np.sqrt(np.maximum(np.einsum("nk,nk->k", static, support.M @ static), np.finfo(float).tiny))
    added = np.zeros((support.size, 0))
    for column in static.T:
        known = np.hstack([basis, added])
        left = column
        for _ in range(2):  # twice, for orthogonality to rounding
            mixing = known.T @ (support.M @ known)
            left = (
                left - known @ np.linalg.lstsq(mixing, known.T @ (support.M @ left), rcond=1e-13)[0]
                if known.size
                else left
            )
        norm = np.sqrt(left @ (support.M @ left))
        if norm > _DEPENDENT:
            added = np.hstack([added, (left / norm)[:, None]])
    return added


def _orthonormal(support: Support, basis: FloatArray, choice: Choice) -> tuple[FloatArray, FloatArray]:
    """The basis in coordinates that diagonalise K and the mass that its boundary sees, in all N dofs; ω².

    With the root held that mass is Φ*MΦ. With the root free it is what is left when the rigid motions follow freely.
    Families that do not couple stay apart, so that zeros stay zeros.
    """
    K = basis.T @ (support.K @ basis)
    M = basis.T @ (support.M @ basis)
    if choice.boundary == "free":
        rigid = support.structure.rigid(support.root.position)
        coupling = rigid.T @ (support.structure.M @ (support.T @ basis))
        M = M - coupling.T @ np.linalg.lstsq(rigid.T @ (support.structure.M @ rigid), coupling, rcond=1e-13)[0]
    if choice.boundary == "nodal":
        scale = 1.0 / np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
        if np.linalg.eigvalsh(scale[:, None] * M * scale)[0] < 1e-12:
            raise ModelError(
                "not every dof has mass, as the nodal form needs it",
                got="a singular mass matrix",
                do="give the sections a rotary_inertia, or reduce to modes",
            )
        return support.T @ basis, linalg.eigh(K, M, eigvals_only=True)
    squared, turn = np.zeros(len(K)), np.zeros_like(K)
    at = 0
    for family in blocks(_coupled(K), _coupled(M)) if len(K) else []:
        try:
            mu, vectors = linalg.eigh(M[np.ix_(family, family)], K[np.ix_(family, family)])
        except linalg.LinAlgError:
            raise ModelError(
                "the shapes of the basis are not independent", got=f"{len(family)} shapes", do="drop some"
            ) from None
        if not mu[0] > 0:
            raise ModelError(
                "a static shape of the basis carries no mass",
                got="a motion of an interface or residual that moves nothing, as the twist of a line without thickness",
                do="give a beam's section a rotary_inertia, or the interface's node a mass",
            )
        squared[at : at + len(mu)] = 1.0 / mu[::-1]
        turn[np.ix_(family, np.arange(at, at + len(mu)))] = (vectors / np.sqrt(mu))[:, ::-1]
        at += len(mu)
    order = np.argsort(squared, kind="stable")
    shapes = basis @ turn[:, order]
    largest = np.abs(shapes).argmax(axis=0) if len(shapes) else np.zeros(0, dtype=int)
    shapes = shapes * np.where(shapes[largest, np.arange(shapes.shape[1])] < 0, -1.0, 1.0)
    return support.T @ shapes, squared[order]


def _coupled(matrix: FloatArray) -> FloatArray:
    scale = np.sqrt(np.abs(np.diag(matrix)))
    return np.where(np.abs(matrix) > 1e-10 * np.outer(scale, scale), matrix, 0.0)


def _damping(
    given: ArrayLike, squared: FloatArray, shapes: FloatArray, structure: Structure, *, nodal: bool
) -> FloatArray:
    """D in the coordinates of the shapes; ratios belong to the modes that these make, in the order of frequency."""
    m = len(squared)
    try:
        value = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        value = np.full(1, np.nan)
    allowed = f"a ratio >= 0, one for each of the {m} modes, or a {m}x{m} matrix"
    if value.shape not in ((), (m,), (m, m)) or not np.isfinite(value).all():
        raise InputError("the damping is not what the modes need", got=f"{given!r}"[:60], allowed=allowed)
    if value.ndim == 2:
        if np.abs(value - value.T).max(initial=0.0) > 1e-9 * np.abs(value).max(initial=0.0):
            raise InputError("the damping matrix is not symmetric", got=repr(given)[:60], allowed=allowed)
        if m and np.linalg.eigvalsh(value)[0] < -1e-9 * np.abs(value).max(initial=0.0):
            raise ModelError("the damping matrix feeds energy in", got="a negative eigenvalue", allowed="all >= 0")
        return value
    if (value < 0).any():
        raise ModelError("a damping ratio is negative", got=repr(given), allowed=allowed)
    diagonal = 2 * np.broadcast_to(value, (m,)) * np.sqrt(np.maximum(squared, 0.0))
    if not diagonal.any() or not nodal:
        return np.diag(diagonal)
    M = shapes.T @ (structure.M @ shapes)
    weighted: FloatArray = M @ linalg.eigh(shapes.T @ (structure.K @ shapes), M)[1]
    damping: FloatArray = (weighted * diagonal) @ weighted.T
    return damping


# ------------------------------------------------------------------------------------------------------------- account


def _effective_mass(support: Support, shapes: FloatArray) -> tuple[float, ...]:
    """Effective modal masses as shares of the inertia about the root: diag(L*L) / diag(R*MR), L = Φ*MR.

    All modes together miss what sits at the root itself.
    """
    structure = support.structure
    rigid = structure.rigid(support.root.position)
    total = np.einsum("na,na->a", rigid, structure.M @ rigid)
    coupling = shapes.T @ (structure.M @ rigid)
    modal = shapes.T @ (structure.M @ shapes)
    carried = np.einsum("ka,ka->a", coupling, np.linalg.solve(modal, coupling)) if len(modal) else np.zeros(6)
    weightless = total <= 1e-12 * total.max()
    return tuple(np.where(weightless, 1.0, carried / np.where(weightless, 1.0, total)).tolist())


def _static_error(support: Support, shapes: Array, place: KeptNode) -> float:
    forces = _rows(support.structure, place)[3:]
    return _compliance_error(support, shapes, forces, forces)


def _gain_error(support: Support, shapes: FloatArray, choice: Choice) -> float | None:
    if not len(choice.inputs):
        return None
    outputs, inputs = _signals(support, choice.outputs, "outputs"), _signals(support, choice.inputs, "inputs")
    return _compliance_error(support, shapes, outputs, inputs)


def _compliance_error(support: Support, shapes: FloatArray, outputs: Matrix, inputs: Matrix) -> float:
    """‖exact - reduced‖ / ‖exact‖ of the static way from forces to displacements, the root held."""
    exact = (outputs @ support.T) @ support.factor.solve((inputs @ support.T).toarray().T)
    K = shapes.T @ (support.structure.K @ shapes)
    approximate = (outputs @ shapes) @ np.linalg.solve(K, (inputs @ shapes).T) if len(K) else np.zeros_like(exact)
    return float(np.linalg.norm(exact - approximate) / max(np.linalg.norm(exact), np.finfo(float).tiny))
