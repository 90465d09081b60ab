"""Constrained equations by a rank test, on numbers: [𝓜, J_c*; J_c, 0][x; -λ] = [f; γ] (Featherstone 2000 eq. 22).

With 𝓜 = LL*, rows made equal by W = diag(J_c𝓜⁻¹J_c*) (and a floor), and the singular values of W^{-1/2}J_cL⁻* = USV*,
those that are zero left out, y = L*x splits into a part in the null space, which forces move, and one across it, which
the constraints prescribe:

    y = (I - VV*)L⁻¹f + VS⁻¹U*W^{-1/2}γ,    λ = W^{-1/2}US⁻¹V*(y - L⁻¹f).

x is unique at any rank; λ is the solution of least λ*Wλ; a γ that contradicts itself is met in the sense of least
squares. A batch at a time, where the arrays are; nothing of it is shared with the compiled solvers.

Functions of closed models that a solver answers in this way run outside the compiled code: the pieces (𝓜, c, J_c, bias,
ė) are compiled, the solution is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from linkwise.algorithms.closed_system import ConstraintForces, Impulse
from linkwise.algorithms.closure_solvers import BY_NUMBERS, TRACED
from linkwise.algorithms.factors import FLOOR
from linkwise.array_types import Array, MaybeArray
from linkwise.errors import ClosureError, InputError, UnknownNameError
from linkwise.functions.function import CompiledFunction
from linkwise.mechanism.closures.instances import Reference
from linkwise.targets import check_on_host
from linkwise.targets.batch import HostBatch
from linkwise.targets.device import Device
from linkwise.trace.block import ArraySpec

if TYPE_CHECKING:
    from linkwise.model.model import Model


RANK = 1e-9
"""Singular values below this part of the largest are zero."""

_TINY = float(np.finfo(float).tiny)


def in_double(device: Device, *arrays: Any) -> tuple[type[np.floating[Any]], list[Any]]:
    """The precision of results, single where all that is given is, and the arrays on a device, in double precision.

    The rank of J_c is not to be seen in single precision.
    """
    there = [None if a is None else device.to_device(a) for a in arrays]
    single = all(getattr(a, "dtype", None) == np.float32 for a in there if a is not None)
    given = [a.astype(float) if single and a is not None else a for a in there]
    return np.float32 if single else np.float64, given


class NullSpace:
    """The system for 𝓜 (..., nv, nv) and J_c (..., m, nv), arrays of the library ``xp``."""

    def __init__(self, mass_matrix: Array, J_c: Array, xp: ModuleType = np) -> None:
        self._xp = xp
        # A state that is not a number must not stop the others: a harmless system takes its place.
        finite = [xp.isfinite(matrix).all(axis=(-1, -2), keepdims=True) for matrix in (mass_matrix, J_c)]
        self.known = finite[0] & finite[1]
        mass_matrix = xp.where(self.known, mass_matrix, xp.eye(mass_matrix.shape[-1], dtype=mass_matrix.dtype))
        J_c = xp.where(self.known, J_c, 0.0)
        self.L = xp.linalg.cholesky(mass_matrix)
        rows = xp.swapaxes(self._inward(xp.swapaxes(J_c, -1, -2)), -1, -2)
        W = (rows**2).sum(-1, keepdims=True)
        W = W + FLOOR * W.sum(-2, keepdims=True) / max(W.shape[-2], 1)
        self.scale = 1.0 / xp.sqrt(xp.maximum(W, _TINY))
        U, s, V = xp.linalg.svd(rows * self.scale, full_matrices=False)
        largest = xp.concatenate([s, xp.full((*s.shape[:-1], 1), _TINY)], axis=-1).max(-1, keepdims=True)
        self.kept = s > RANK * largest
        self.inverse = xp.where(self.kept, 1.0 / xp.where(self.kept, s, 1.0), 0.0)[..., None]
        self.U, self.V = U, V * self.kept[..., None]

    def solve(self, f: Array, gamma: Array) -> tuple[Array, Array]:
        """x (..., nv, k) and λ (..., m, k) for columns f (..., nv, k) and γ (..., m, k); NaN where 𝓜 or J_c has one."""
        xp, free = self._xp, self._inward(f)
        V = xp.swapaxes(self.V, -1, -2)
        across = self.inverse * (xp.swapaxes(self.U, -1, -2) @ (self.scale * gamma)) - self.V @ free
        x = xp.linalg.solve(xp.swapaxes(self.L, -1, -2), free + V @ across)
        multipliers = self.scale * (self.U @ (self.inverse * across))
        return xp.where(self.known, x, xp.nan), xp.where(self.known, multipliers, xp.nan)

    def _inward(self, columns: Array) -> Array:
        solved: Array = self._xp.linalg.solve(self.L, columns)
        return solved


def _unit_rows(J_c: Array) -> Array:
    """Rows of length one, so that no equation counts less for its units; those without effect stay zero."""
    size = np.linalg.norm(J_c, axis=1, keepdims=True)
    return J_c / np.where(size > 1e-12, size, np.inf)


def independent_rows(J_c: Array) -> set[int]:
    """Rows that do not follow from those before them; as many as the rank."""
    from scipy.linalg import qr

    rows = _unit_rows(J_c)
    rank = int((np.linalg.svd(rows, compute_uv=False) > RANK * max(1, len(rows))).sum()) if rows.size else 0
    found: list[Array] = []
    kept: set[int] = set()
    for k, row in enumerate(rows):
        rest = row.copy()
        for _ in range(2):  # once more, for what rounding left
            for known in found:
                rest -= known * (known @ rest)
        if np.linalg.norm(rest) > 1e-7 and len(kept) < rank:
            found.append(rest / np.linalg.norm(rest))
            kept.add(k)
    if len(kept) < rank:  # rows that are nearly dependent on those before: the most independent ones instead
        kept = set(qr(rows.T, mode="r", pivoting=True)[1][:rank].tolist())
    return kept


def basis_of(J_c: Array) -> tuple[Array, list[int]]:
    """N with J_cN = 0 and identity rows at the freedoms that are chosen as independent, and which these are."""
    from scipy.linalg import qr

    n = J_c.shape[1]
    rows = _unit_rows(J_c)
    if not rows.size:
        return np.eye(n), list(range(n))
    _, s, V = np.linalg.svd(rows)
    null = V[int((s > RANK * max(1, len(rows))).sum()) :].T
    if not null.shape[1]:
        return null, []
    # Of freedoms that would do equally well, the one nearer to the base.
    preference = np.linspace(1.0, 0.7, n)
    chosen = sorted(qr(null.T * preference, mode="r", pivoting=True)[1][: null.shape[1]].tolist())
    basis = null @ np.linalg.inv(null[chosen])
    basis[chosen] = np.eye(len(chosen))
    return basis, chosen


class SolvedByNumbers(CompiledFunction):
    """A function of a closed model whose solver tests ranks; on symbols, and for derivatives, its text."""

    def __init__(self, *arguments: Any, model: Model) -> None:
        super().__init__(*arguments)
        self.model = model

    def builtin(self, *_: object, **__: object) -> None:
        """None: there is no program to call."""
        return

    def _evaluate(self, device: Device, arrays: Sequence[Any], out: Any, threads: int) -> list[Any]:
        """A batch at a time."""
        check_on_host(f"{self.name} with a solver that tests ranks runs", *arrays)
        batch = HostBatch(self.name, self.inputs, arrays)
        given = {
            name: np.broadcast_to(array, (*batch.shape, *shape))
            for (name, shape), array in zip(self.inputs, batch.arrays, strict=True)
        }
        result = self._solved(given, threads)
        values = result if isinstance(result, tuple) else (result,)
        specs = [ArraySpec("out", value.shape[len(batch.shape) :]) for value in values]
        results = batch.outputs(specs, out)
        for (_, target), value in zip(results, values, strict=True):
            target[...] = value
        return batch.finish(results)

    @property
    def result_type(self) -> type[Any] | None:
        """The kind of named tuple that is returned; None for a single array."""
        return {"constraint_forces": ConstraintForces, "impulse": Impulse}.get(self.name)

    def _solved(self, given: Mapping[str, Array], threads: int) -> Array | ConstraintForces | Impulse:
        model, q, v = self.model, given["q"], given["v"]
        p, t = given.get("p"), given.get("t")
        system = NullSpace(
            model.mass_matrix(q, p=p, threads=threads),
            model.constraints.jacobian(q, t=t, v=v, p=p, threads=threads),
        )
        if self.name in ("forward_dynamics", "constraint_forces"):
            f = given["tau"] - model.bias_force(q, v, given.get("f_ext"), p=p, threads=threads)
            gamma = -model.constraints.bias(q, v, t=t, p=p, threads=threads)
            vdot, multipliers = (x[..., 0] for x in system.solve(f[..., None], gamma[..., None]))
            if self.name == "forward_dynamics":
                return vdot
            return ConstraintForces(multipliers, model._run("closure_wrenches", q, v, multipliers, t=t, p=p))
        rates = model.constraints.rate(q, v, t=t, p=p, threads=threads)
        change, impulses = (x[..., 0] for x in system.solve(np.zeros_like(v)[..., None], -rates[..., None]))
        return v + change if self.name == "project_velocity" else Impulse(v + change, impulses)


ModelT = TypeVar("ModelT", bound="Model")


def with_solver(
    model: ModelT, solver: str, independent: Sequence[str] | None, at: MaybeArray, t: float | None
) -> ModelT:
    """A copy with another closure solver, which is tried at once; see :meth:`Model.with_closure_solver`."""
    if solver not in (*TRACED, *BY_NUMBERS):
        raise UnknownNameError("closure solver", solver, (*TRACED, *BY_NUMBERS))
    if solver == "embedding":
        chosen = replace(model, _closure_solver=solver, _closure_reference=reference(model, independent, at, t))
        chosen._trees.pivots()  # says so now if those named are not independent
        return chosen
    given = [name for name, x in (("independent", independent), ("at", at), ("t", t)) if x is not None]
    if given:
        raise InputError(
            f"the closure solver {solver!r} chooses no freedoms",
            got=", ".join(given),
            allowed='these are for "embedding"',
        )
    named = replace(model, _closure_solver=solver, _closure_reference=None)
    if solver == "branches":
        named._trees.closed(named.neutral().tolist(), [0.0] * model.nv, None)  # says so now if it cannot be
    return named


_GUESSES = 4
"""Configurations around the neutral one that are looked at, lest that be singular."""


def reference(model: Model, independent: Sequence[str] | None, at: MaybeArray, t: float | None) -> Reference:
    """A closed configuration, the one given or a generic one, and the places in v of the freedoms that are named."""
    if not model.closures:
        raise InputError(
            'the closure solver "embedding" needs something that closes the model',
            got="a model without closures",
            do="add the closures first",
        )
    guesses = list(_around_neutral(model)) if at is None else [np.asarray(at, float)]
    found = [model.assemble(guesses[0], t=t)]
    for guess in guesses[1:]:
        try:
            found.append(model.assemble(guess, t=t))
        except ClosureError:
            continue
    ranks = [len(independent_rows(model.constraints.jacobian(q, t=t))) for q in found]
    q, count = found[ranks.index(max(ranks))], model.nv - max(ranks)
    places = () if independent is None else tuple(model._places_in_v(independent))
    if independent is not None and len(places) != count:
        raise InputError(
            "the joints named have another number of freedoms than the closed mechanism",
            got=f"{len(places)} of {', '.join(map(repr, independent))}",
            allowed=f"{count}, as those of {', '.join(map(repr, model.freedoms(q, t=t).names)) or 'none'}",
        )
    return Reference(tuple(q.tolist()), 0.0 if t is None else float(t), places)


def _around_neutral(model: Model) -> Iterator[Array]:
    rng = np.random.default_rng(0)
    yield model.neutral()
    for _ in range(_GUESSES):
        yield model.integrate(model.neutral(), 0.3 * rng.normal(size=model.nv))
