"""Forces, accelerations, energies and momenta of a model; its inertia felt at a place; and its regressor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.model.compiled_methods import ByName, Group, Methods
from linkwise.targets import check_on_host


class Dynamics(Methods):
    """Inverse and forward dynamics, the matrices between them, energies and momenta."""

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        vdot: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        actuated: Sequence[str] | None = None,
        t: ArrayLike | None = None,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Joint forces τ (..., nv) for a motion, in N m and N: τ = 𝓜(q) v̇ + c(q, v) - Σ J* f_ext.

        These are the forces of the tree, as if closures were open. With ``actuated``, forces at those joints alone,
        which together with the closures cause the same motion; of least norm where there are more than needed.

        Args:
            actuated: names of the joints that have motors; those of the tree if not given.
            t: time (...), for closures that depend on it, which count with ``actuated`` only: refused without.
        """
        if actuated is None:
            if t is not None and any(closure.type.time_dependent for closure in self.closures):
                raise InputError(
                    "inverse_dynamics was given t, which counts for closures, and without actuated these count as open",
                    got=f"t={t!r}",
                    do='name the joints that have motors, actuated=["joint1", …], or leave t out',
                )
            return self._run("inverse_dynamics", q, v, vdot, f_ext=f_ext, t=t, p=p, out=out, threads=threads)
        check_on_host("inverse_dynamics with actuated= runs", q, v, vdot, f_ext, t, p)
        forces = self._run("inverse_dynamics", q, v, vdot, f_ext=f_ext, t=t, p=p, threads=threads)
        chosen: Array = self._actuated_forces(forces, np.asarray(q), np.asarray(v), np.asarray(vdot), actuated, t, p)
        if out is None:
            return chosen
        out[...] = chosen
        return out

    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        *,
        t: ArrayLike | None = None,
        **others: Unpack[ByName],
    ) -> Array:
        """Accelerations v̇ (..., nv) that joint forces cause, in rad/s² and m/s²: 𝓜(q) v̇ = τ - c(q, v) + Σ J* f_ext.

        Of a model with closures, the accelerations that these allow: unique also where constraints are redundant or
        the configuration is singular.

        With ``threads``, one state of a serial chain of ten thousand links and more, all of one joint type, is cut into
        segments that run side by side.

        A joint that moves no inertia in any configuration has none, which is an error; where that happens in some
        configurations only (or among very many links), the result is not finite there.

        Args:
            tau: all joint forces (..., nv), N m and N: springs, dampers and friction of the model, which ``simulate``
                adds, are not added here; :meth:`passive_force` has them.
        """
        return self._run("forward_dynamics", q, v, tau, f_ext=f_ext, t=t, others=others)

    def mass_matrix(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """𝓜(q), (..., nv, nv), symmetric, armature on its diagonal; kg m² between turns, kg between slides."""
        return self._run("mass_matrix", q, others=others)

    def mass_product(self, q: ArrayLike, x: ArrayLike, **others: Unpack[ByName]) -> Array:
        """𝓜(q) x (..., nv) for x (..., nv), in O(n), without the matrix."""
        return self._run("mass_product", q, x, others=others)

    def mass_solve(self, q: ArrayLike, x: ArrayLike, **others: Unpack[ByName]) -> Array:
        """𝓜(q)⁻¹ x (..., nv) for x (..., nv), in O(n), without a matrix."""
        return self._run("mass_solve", q, x, others=others)

    def external_force(self, q: ArrayLike, f_ext: ArrayLike, **others: Unpack[ByName]) -> Array:
        """J*f (..., nv): the joint forces that external forces (..., n_bodies, 6), in body frames, amount to."""
        return self._run("external_force", q, f_ext, others=others)

    def force_at(
        self, q: ArrayLike, force: ArrayLike, body: str, *, node: str | int | None = None, **others: Unpack[ByName]
    ) -> Array:
        """J*f (..., nv): what a force [moment, force] (..., 6) at a body, frame or node amounts to at the freedoms.

        It acts at the place's origin and is given in the place's own axes, which for a node of a flexible body move and
        turn with the deformation. Add it to ``tau``, or take it from the result of the inverse dynamics.
        """
        return self._run_at("force_at", body, q, force, node=node, others=others)

    def joint_wrenches(
        self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike, f_ext: ArrayLike | None = None, **others: Unpack[ByName]
    ) -> Array:
        """[moment, force] (..., n_bodies, 6) that goes through each joint on its body, at its origin, in its axes.

        In N m and N. All six components, of which the joint forces τ are those along the joint's own axes (less what
        its rotor takes). The arguments are those of :meth:`inverse_dynamics`.
        """
        return self._run("joint_wrenches", q, v, vdot, f_ext=f_ext, others=others)

    def mass_matrix_inverse(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """𝓜(q)⁻¹, (..., nv, nv), without inverting a matrix."""
        return self._run("mass_matrix_inverse", q, others=others)

    def bias_force(self, q: ArrayLike, v: ArrayLike, f_ext: ArrayLike | None = None, **others: Unpack[ByName]) -> Array:
        """c(q, v), (..., nv): velocity-dependent and gravity forces, less external ones; what v̇ = 0 takes."""
        return self._run("bias_force", q, v, f_ext=f_ext, others=others)

    def gravity_force(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """g(q) = ∂U/∂q, (..., nv): the joint forces that hold the mechanism still."""
        return self._run("gravity_force", q, others=others)

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Array:
        """C(q, v), (..., nv, nv), with C v the velocity-dependent force and 𝓜̇ - 2C skew-symmetric."""
        return self._run("coriolis_matrix", q, v, others=others)

    def regressor(self, q: ArrayLike, v: ArrayLike, vdot: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Y (..., nv, 10 n_bodies): inverse dynamics is Y π with π = :attr:`inertial_parameters` (armature aside)."""
        return self._run("regressor", q, v, vdot, others=others)

    # Energy, momentum, mass centre.
    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Any:
        """½ v*𝓜v (...), in J."""
        return self._run("kinetic_energy", q, v, others=others)

    def potential_energy(self, q: ArrayLike, **others: Unpack[ByName]) -> Any:
        """Energy of the moving bodies in the field of gravity (...), in J; zero with all mass at the world's origin."""
        return self._run("potential_energy", q, others=others)

    def center_of_mass(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Mass centre of the moving bodies (..., 3) in the world, m; NaN where none has mass."""
        return self._run("center_of_mass", q, others=others)

    def momentum(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Total momentum (..., 6) = [angular about the world's origin; linear], world axes."""
        return self._run("momentum", q, v, others=others)

    # What the rest of the model gives.
    if TYPE_CHECKING:
        _actuated_forces: Callable[..., Array]


class Operational(Group):
    """Inertia felt at a place: dynamics in operational space."""

    attribute = "operational"

    def inertia(self, q: ArrayLike, body: str, *, node: str | int | None = None, **others: Unpack[ByName]) -> Array:
        """Λ = (J𝓜⁻¹J*)⁻¹ (..., 6, 6): the inertia felt at the origin of a body or frame, in world axes.

        Rows and columns: rotations, then translations, so kg m², kg m and kg. Not finite where some direction cannot be
        moved (fewer than six freedoms, singular configurations): :meth:`admittance` always exists.
        """
        return self.model._run_at("operational_inertia", body, q, node=node, others=others)

    def admittance(self, q: ArrayLike, body: str, *, node: str | int | None = None, **others: Unpack[ByName]) -> Array:
        """Λ⁻¹ = J𝓜⁻¹J* (..., 6, 6): how a unit force at a place accelerates it; see :meth:`inertia`."""
        return self.model._run_at("operational_admittance", body, q, node=node, others=others)


class Centroidal(Group):
    """Momentum and inertia of the whole about its mass centre, in world axes."""

    attribute = "centroidal"

    def momentum(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Total momentum (..., 6) = [angular about the mass centre; linear], world axes; NaN where nothing has mass."""
        return self.model._run("centroidal_momentum", q, v, others=others)

    def momentum_matrix(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """A(q) (..., 6, nv): the centroidal momentum is A v; NaN where nothing has mass."""
        return self.model._run("centroidal_momentum_matrix", q, others=others)

    def inertia(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Inertia of the whole, frozen in this configuration (..., 6, 6), about the mass centre, world axes.

        NaN where nothing has mass.
        """
        return self.model._run("centroidal_inertia", q, others=others)
