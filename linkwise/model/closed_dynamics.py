"""Dynamics in the freedoms that closures leave: which they are, forces at chosen joints, equilibria.

On numbers, with rank tests (singular values), so that over-constrained and singular mechanisms are no special case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError, LinkwiseError, UnknownNameError
from linkwise.model.linearization import Linearization
from linkwise.model.null_space import RANK
from linkwise.model.passive_forces import Passive
from linkwise.model.rank import basis_of, independent_rows
from linkwise.model.roots import nearest_root
from linkwise.targets import check_on_host

if TYPE_CHECKING:
    from linkwise.sim.motion import JointRules


@dataclass(frozen=True, eq=False)
class Freedoms:
    """What closures leave free at a configuration."""

    count: int
    """Independent freedoms f: nv less the rank of J_c."""
    basis: Any
    """N, nv × f; the velocities that obey are v = N u (beside those that time prescribes), and u = v[independent]."""
    independent: tuple[int, ...]
    """Places in v whose numbers can be chosen freely; the others follow."""
    names: tuple[str, ...]
    """The same by name of the joint, with an index where it has several freedoms."""
    redundant: dict[str, tuple[str, ...]]
    """For each closure that has some, its equations that follow from those before them."""
    gruebler: int
    """Grübler's count: nv less the number of equations, whether they are independent or not."""
    last: str | None
    """The closure that removes the last freedom, where none is left."""


class Equilibrium(NamedTuple):
    """A configuration q (..., nq) that stays at rest, and the multipliers (..., m) of the closures there."""

    q: Any
    multipliers: Any


class ClosedDynamics(Linearization, Passive):
    """What a model does in its independent freedoms, as methods."""

    def freedoms(
        self,
        q: ArrayLike,
        t: ArrayLike | None = None,
        *,
        tol: float = 1e-6,
        p: ArrayLike | None = None,
    ) -> Freedoms:
        """Independent freedoms at a configuration, a basis of them, and the constraints that are redundant, by name.

        Counted from the rank of J_c, not from the number of equations, so over-constrained mechanisms (planar loops,
        Bennett, Bricard) and singular configurations come out as they are. An equation is called redundant if it
        follows from those before it, in the order in which closures were added.

        Args:
            q: one configuration (nq) that closes.
            t: time.
            tol: the largest residual of a configuration that counts as closed.
            p: run-time parameters (np).
        """
        x = self._one(q)
        self.check_closures(x, t=t, tol=tol, p=p)
        J_c = self.constraint_jacobian(x, t, p=p) if self.closures else np.zeros((0, self.nv))
        kept = independent_rows(J_c)
        N, independent = basis_of(J_c)
        redundant: dict[str, list[str]] = {}
        labels = self._labels
        for row, (closure, equation) in enumerate(labels):
            if row not in kept:
                redundant.setdefault(closure, []).append(equation)
        count = self.nv - len(kept)
        names = self.freedom_names
        found = Freedoms(
            count,
            N,
            tuple(independent),
            tuple(names[i] for i in independent),
            {closure: tuple(equations) for closure, equations in redundant.items()},
            self.nv - len(labels),
            labels[max(kept)][0] if count == 0 and kept else None,
        )
        if count == 0 and self.nv and not any(c.type.time_dependent for c in self.closures):
            self._say_rigid(found)
        return found

    def independent_mass_matrix(self, q: ArrayLike, t: ArrayLike | None = None, *, p: ArrayLike | None = None) -> Array:
        """N*𝓜N (f, f): the inertia that the independent freedoms feel, with N of :meth:`freedoms`."""
        N = self.freedoms(q, t, p=p).basis
        M: Array = N.T @ self._run("mass_matrix", self._one(q), p=p) @ N
        return M

    def static_equilibrium(
        self,
        q: ArrayLike,
        tau: ArrayLike | None = None,
        f_ext: ArrayLike | None = None,
        t: ArrayLike | None = None,
        *,
        tol: float = 1e-10,
        p: ArrayLike | None = None,
        control: Any = None,
        rules: JointRules | None = None,
    ) -> Equilibrium:
        """A configuration near the guess q at which joint forces ``tau`` (zero if left out) hold the mechanism at rest.

        c(q, 0) = τ + passive_force(q, 0) + J_c*λ with all closures closed, by a trust region: the springs of the
        model pull as they do in ``simulate``, and so does ``control``. Dry friction is smooth and holds nothing at
        rest; joint limits are not looked at. Whether it is stable is not asked. External forces keep their components
        in body frames.

        Args:
            q: the guess (nq).
            tau: joint forces (nv).
            f_ext: external forces (n_bodies, 6) in body frames.
            t: time.
            tol: the largest force (relative to the largest of gravity's) and residual that may be left.
            p: run-time parameters (np).
            control: what acts besides, as for ``simulate``, without states of its own; p has the model's parameters
                first.
            rules: which of the model's passive forces act, as for ``simulate``.
        """
        x = self._one(q)
        acting, p = self._acting(control, rules, t, p), self._own(control, p)
        if acting is not None and acting.nx:
            acting.refuse_memory("static_equilibrium")
        n, m = self.nv, len(self._labels)
        force = np.zeros(n) if tau is None else np.asarray(tau, float)
        if force.shape != (n,):
            raise InputError("tau of static_equilibrium has the wrong shape", got=str(force.shape), allowed=f"({n},)")
        rows = self._place_rows
        still = np.zeros(n)
        if self.closures:
            x = self.assemble(x, t, limits="ignore", p=p)

        def lacking(at: Array) -> Array:
            """The joint forces that are missing for rest, before the closures'."""
            needed: Array = self._run("bias_force", at, still, f_ext=f_ext, p=p) - force
            return needed if acting is None else needed - np.asarray(acting.force(at, still))

        scale = max(1.0, float(np.abs(self._run("bias_force", x, still, f_ext=f_ext, p=p)).max(initial=0.0)))

        def parts(state: Array) -> tuple[Array, Array]:
            multipliers = np.zeros(m)
            multipliers[rows] = state[self.nq :] * scale
            return state[: self.nq], multipliers

        def residual(states: Array, _: Array) -> Array:
            at, multipliers = parts(states[0])
            e = lacking(at)
            if not m:
                return e[None] / scale
            J_c = self.constraint_jacobian(at, t, p=p)
            return np.concatenate([(e - J_c.T @ multipliers) / scale, self.closure_error(at, t, p=p)])[None]

        def jacobian(states: Array, _: Array) -> Array:
            at, multipliers = parts(states[0])
            by_q: Array = self.linearize_inverse(at, still, still, f_ext, p=p).dq
            if acting is not None:
                by_q = by_q - acting.by("q", at, still)[0]
            if not m:
                return by_q[None] / scale
            J_c = self.constraint_jacobian(at, t, p=p)
            by_q = by_q - self._derivative("held", "q", at, still, still, multipliers, t=t, p=p).efforts
            upper = np.concatenate([by_q / scale, -J_c[rows].T], axis=1)
            lower = np.concatenate([J_c[rows], np.zeros((len(rows), len(rows)))], axis=1)
            return np.concatenate([upper, lower])[None]

        def moved(states: Array, step: Array, _: Array) -> Array:
            return np.concatenate(
                [self._run("integrate", states[0, : self.nq], step[0, :n]), states[0, self.nq :] + step[0, n:]]
            )[None]

        # The multipliers that come nearest to balance begin the search.
        balance: Array = np.zeros(0)
        if m:
            J_c = self.constraint_jacobian(x, t, p=p)[rows]
            balance = np.linalg.lstsq(J_c.T, lacking(x) / scale, rcond=RANK)[0]
        states, errors = nearest_root(residual, jacobian, moved, np.concatenate([x, balance])[None], tol)
        at, multipliers = parts(states[0])
        if np.abs(errors).max(initial=0.0) > tol:
            worst = int(np.argmax(np.abs(errors[0, :n])))
            raise LinkwiseError(
                "no equilibrium was found from this guess",
                got=f"{errors[0, worst] * scale:.3g} N m (or N) left at {self.freedom_names[worst]!r}",
                allowed=f"{tol * scale:.3g}",
                do="give a guess that is nearer, or other joint forces",
            )
        return Equilibrium(at, multipliers)

    # Forces at chosen joints.
    def _actuated_forces(
        self, tree_forces: Array, q: Array, v: Array, vdot: Array, actuated: Sequence[str], t: Any, p: Any
    ) -> Array:
        """The joint forces at chosen joints that do what forces at all joints would do, of least norm."""
        n = self.nv
        chosen = self._places_in_v(actuated)
        batch = tree_forces.shape[:-1]
        flat = tree_forces.reshape(-1, n)
        projector = np.broadcast_to(np.eye(n), (len(flat), n, n))
        if self.closures:
            J_c = self.constraint_jacobian(q, t, v=v, p=p)
            bias = self._run("constraint_bias", q, v, t=t, p=p)
            off = np.einsum("...ij,...j->...i", J_c, vdot) + bias
            scale = 1.0 + np.abs(bias).max(-1, keepdims=True) + np.abs(vdot).max(-1, keepdims=True)
            self._refuse(
                "would be opened by these accelerations",
                off / scale,
                self._labels,
                1e-7,
                "project them: vdot = model.forward_dynamics(q, v, model.inverse_dynamics(q, v, vdot))",
            )
            J_c = np.broadcast_to(J_c, (*batch, *J_c.shape[-2:])).reshape(len(flat), -1, n)
            projector = projector - np.linalg.pinv(J_c, rcond=RANK) @ J_c
        reach = projector[:, :, chosen]
        needed = np.einsum("kij,kj->ki", projector, flat)
        forces = np.zeros_like(flat)
        forces[:, chosen] = np.einsum("kij,kj->ki", np.linalg.pinv(reach, rcond=RANK), needed)
        left = needed - np.einsum("kij,kj->ki", reach, forces[:, chosen])
        tolerance = 1e-9 * np.maximum(1.0, np.abs(flat).max(-1, initial=0.0, keepdims=True))
        if (np.abs(left) > tolerance).any():
            state, worst = np.unravel_index(int(np.argmax(np.abs(left) / tolerance)), left.shape)
            raise InputError(
                f"the actuated joints cannot balance what is needed at joint {self.freedom_names[worst]!r}",
                got=f"{left[state, worst]:.3g} N m (or N) left over with actuated={list(actuated)}",
                allowed="motions that the actuated joints can cause",
                do="name more joints, or change vdot",
            )
        return forces.reshape(*batch, n)

    # What is behind it.
    def _one(self, q: ArrayLike) -> Array:
        """One configuration, checked."""
        check_on_host("freedoms and equilibria are found", q)
        x = np.asarray(self._run("integrate", q, np.zeros(self.nv)), float)
        if x.ndim != 1:
            raise InputError(
                "freedoms are counted at one configuration",
                got=f"batch {x.shape[:-1]}",
                allowed=f"({self.nq},)",
                do="call it for each",
            )
        return x

    def _places_in_v(self, names: Sequence[str]) -> list[int]:
        if isinstance(names, str):
            names = [names]
        known = {j.name: j for j in self.joints if j.mimic is None}
        places: list[int] = []
        for name in names:
            if name not in known:
                raise UnknownNameError("joint with freedoms of its own", name, known)
            places += range(known[name].v_slice.start, known[name].v_slice.stop)
        return sorted(set(places))
