"""Dynamics in the freedoms that closures leave: which they are, forces at chosen joints, equilibria.

On numbers, with rank tests (singular values), so that over-constrained and singular mechanisms are no special case.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array, MaybeArray
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, UnknownNameError
from linkwise.model.linearization import Linearization
from linkwise.model.null_space import RANK, basis_of, independent_rows
from linkwise.model.passive_forces import Passive
from linkwise.targets import check_on_host


@dataclass(frozen=True, eq=False)
class Freedoms:
    """Freedoms that closures leave at a configuration."""

    count: int
    """Independent freedoms f: nv less the rank of J_c."""
    basis: Array
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


class ClosedDynamics(Linearization, Passive):
    """Dynamics in the independent freedoms of a closed model, as methods."""

    def freedoms(
        self,
        q: ArrayLike,
        *,
        t: ArrayLike | None = None,
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
        self.constraints.check(x, t=t, tol=tol, p=p)
        J_c = self.constraints.jacobian(x, t=t, p=p) if self.closures else np.zeros((0, self.nv))
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

    # Forces at chosen joints.
    def _actuated_forces(
        self, tree_forces: Array, q: Array, v: Array, vdot: Array, actuated: Sequence[str], t: MaybeArray, p: MaybeArray
    ) -> Array:
        """The joint forces at chosen joints that do what forces at all joints would do, of least norm."""
        n = self.nv
        chosen = self._places_in_v(actuated)
        batch = tree_forces.shape[:-1]
        flat = tree_forces.reshape(-1, n)
        projector = np.broadcast_to(np.eye(n), (len(flat), n, n))
        if self.closures:
            J_c = self.constraints.jacobian(q, t=t, v=v, p=p)
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
