"""Models at rest: what holds them, whether they stand, where they reach and how well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.mechanism.actuation import JointTransmission
from linkwise.model.closed_dynamics import ClosedDynamics
from linkwise.model.configuration_space import ConfigurationSpace
from linkwise.model.support import support_margin
from linkwise.model.transmissions import names_closures

_ROWS = {"all": slice(0, 6), "rotation": slice(0, 3), "position": slice(3, 6)}


class Workspace(NamedTuple):
    """Places that a body can reach."""

    q: Array
    """Configurations (size, nq), evenly spread over the limits."""
    poses: Array
    """The body's poses (size, 4, 4) there."""


class Statics(ConfigurationSpace, ClosedDynamics):
    """Joint forces at rest, actuation, workspace."""

    def static_force(
        self, q: ArrayLike, loads: Mapping[str, ArrayLike] | None = None, *, p: ArrayLike | None = None
    ) -> Array:
        """Joint forces (..., nv) that hold the model still against gravity, its springs and loads.

        τ = g(q) - passive_force(q, 0) - Σ J*f. Without springs and loads it is :meth:`gravity_force`: gravity
        compensation. What is needed at a joint without a motor, the
        six of a floating base say, must come from elsewhere.

        Args:
            q: configuration (..., nq).
            loads: for the name of a body or frame, what pulls there: a force F (..., 3) in N, or [N; F] (..., 6) with a
                moment in N m first. World axes, at the frame's origin.
            p: run-time parameters (..., np).

        Example:
            >>> from linkwise.samples import planar_arm
            >>> arm = planar_arm(1, length=0.5, mass=0.2)
            >>> tau = arm.static_force([0.0], {"link1": (0, 0, 0, 0, -2.0, 0)})  # at the joint itself: no lever
            >>> bool(abs(tau - arm.gravity_force([0.0])).max() < 1e-12)
            True
        """
        weight = self._run("gravity_force", q, p=p)
        tau: Array = weight - self.passive_force(q, weight * 0.0, p=p)  # at rest, in the precision and place of q
        for body, load in (loads or {}).items():
            f = np.asarray(load, float)
            if f.shape[-1:] not in ((3,), (6,)):
                raise InputError(
                    f"the load on {body!r} has the wrong shape", got=str(f.shape), allowed="(..., 3) or (..., 6)"
                )
            J = self._run("jacobian", q, p=p, **self._at(body, None))[..., -f.shape[-1] :, :]
            tau = tau - np.einsum("...ij,...i->...j", J, f)
        return tau

    def support_margin(self, q: ArrayLike, points: ArrayLike) -> Array:
        """How far (..., m) the mass centre, seen along gravity, is inside the polygon around ground points.

        Positive: the model stands. Negative: it tips, and this is how far the mass centre is outside.

        Args:
            q: configuration (..., nq).
            points: (..., n, 3), where it touches the ground, world axes; n is 3 or more.
        """
        gravity = np.asarray(self.gravity, float)
        if not np.linalg.norm(gravity) > 0.0:
            raise InputError("nothing tips without gravity", got=f"gravity {self.gravity}", do="model.with_gravity(…)")
        return support_margin(self._run("center_of_mass", q), points, gravity)

    def manipulability(
        self,
        q: ArrayLike,
        body: str,
        rows: Literal["all", "position", "rotation"] = "all",
        *,
        p: ArrayLike | None = None,
    ) -> Array:
        """√det(J J*) (...) of a body or frame: how freely it moves (Yoshikawa 1985); 0 at singular configurations.

        Args:
            q: configuration (..., nq).
            body: name of a body or frame.
            rows: of all six motions, or of velocities (``"position"``) or rates of turn (``"rotation"``) alone.
            p: run-time parameters (..., np).
        """
        if rows not in _ROWS:
            raise InputError("no such rows", got=repr(rows), allowed='"all", "position" or "rotation"')
        J = self._run("jacobian", q, p=p, **self._at(body, None))[..., _ROWS[rows], :]
        size: Array = (
            np.prod(np.linalg.svd(J, compute_uv=False), axis=-1)
            if J.shape[-1] >= J.shape[-2]
            else np.zeros(J.shape[:-2])
        )
        return size

    def workspace(
        self,
        body: str,
        size: int = 1000,
        rng: np.random.Generator | int | None = None,
        *,
        node: str | int | None = None,
    ) -> Workspace:
        """Poses that a body or frame can reach, at random configurations within the limits.

        Args:
            body: name of a body or frame.
            size: how many configurations.
            rng: a generator, or a seed.
            node: of a flexible body, by name or number.

        Example:
            >>> from linkwise.samples import planar_arm
            >>> places = planar_arm(2, length=0.5).workspace("link2", 100, 0)
            >>> bool((abs(places.poses[:, :2, 3]) <= 0.5 + 1e-12).all())
            True
        """
        at = self._at(body, node)
        q = self.random_configuration(rng, size)
        if self.closures:
            q = self.assemble(q)
        return Workspace(q, self._run("pose", q, **at))

    def actuation_matrix(self, actuated: Sequence[str] | None = None) -> Array:
        """B (nv, m): joint forces τ = B f of motors' forces f; a one at the freedom that a motor moves.

        Args:
            actuated: names of the joints with motors. If left out, the model's ``actuators``, a column of gears for
                each; of a model without any, all joints but floating bases (joints of six freedoms on the world).

        ``inverse_dynamics`` and ``state_space`` take the same names as ``actuated=``.

        Example:
            >>> from linkwise.samples import planar_arm
            >>> planar_arm(2).actuation_matrix(["joint2"]).tolist()
            [[0.0], [1.0]]
        """
        if actuated is None and self.actuators:
            return self._gears()
        if actuated is None:
            free = {j.name for j in self.joints if j.nv == 6 and self.bodies[j.index].parent < 0}
            actuated = [j.name for j in self.joints if j.mimic is None and j.name not in free]
        places = self._places_in_v(actuated)
        B = np.zeros((self.nv, len(places)))
        B[places, range(len(places))] = 1.0
        return B

    def _gears(self) -> Array:
        """What each actuator does to each freedom."""
        B = np.zeros((self.nv, len(self.actuators)))
        for k, actuator in enumerate(self.actuators):
            if not isinstance(actuator.transmission, JointTransmission) or names_closures(self, actuator.transmission):
                raise InputError(
                    f"what actuator {actuator.name!r} does to the joints depends on the configuration",
                    got=type(actuator.transmission).__name__,
                    allowed="actuators of joints",
                    do='name the joints that have motors: actuated=["joint1", …]',
                )
            for name, gear in actuator.transmission.gears:
                joint = self.joint(name)
                share = 1.0 if joint.mimic is None else joint.mimic.multiplier
                B[joint.v_slice, k] += share * np.asarray(gear)
        return B
