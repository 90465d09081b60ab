"""Models at rest: what holds them, whether they stand, where they reach and how well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_choice
from linkwise.errors import InputError, LinkwiseError
from linkwise.mechanism.actuation import JointTransmission
from linkwise.model.compiled_methods import Group
from linkwise.model.null_space import RANK
from linkwise.model.roots import nearest_root
from linkwise.model.transmissions import closures_along

if TYPE_CHECKING:
    from linkwise.sim.joint_rules import JointRules


_ROWS = {"all": slice(0, 6), "rotation": slice(0, 3), "position": slice(3, 6)}


class Workspace(NamedTuple):
    """Places that a body can reach."""

    q: Array
    """Configurations (size, nq), evenly spread over the limits."""
    poses: Array
    """The body's poses (size, 4, 4) there."""


class Equilibrium(NamedTuple):
    """A configuration q (..., nq) that stays at rest, and the multipliers (..., m) of the closures there."""

    q: Array
    multipliers: Array


class Statics(Group):
    """A model at rest: joint forces that hold it, where it rests and stands, its actuation and workspace."""

    attribute = "statics"

    def equilibrium(
        self,
        q: ArrayLike,
        tau: ArrayLike | None = None,
        f_ext: ArrayLike | None = None,
        *,
        t: ArrayLike | None = None,
        tol: float = 1e-10,
        p: ArrayLike | None = None,
        control: object = None,
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
        model = self.model
        x = model._one(q)
        acting, p = model._acting(control, rules, t, p), model._own(control, p)
        if acting is not None and acting.nx:
            acting.refuse_memory("statics.equilibrium")
        n, m = model.nv, len(model._labels)
        force = np.zeros(n) if tau is None else np.asarray(tau, float)
        if force.shape != (n,):
            raise InputError("tau of statics.equilibrium has the wrong shape", got=str(force.shape), allowed=f"({n},)")
        rows = model._place_rows
        still = np.zeros(n)
        if model.closures:
            x = model.assemble(x, t=t, limits="ignore", p=p)

        def lacking(at: Array) -> Array:
            """The joint forces that are missing for rest, before the closures'."""
            needed: Array = model._run("bias_force", at, still, f_ext=f_ext, p=p) - force
            return needed if acting is None else needed - np.asarray(acting.force(at, still))

        scale = max(1.0, float(np.abs(model._run("bias_force", x, still, f_ext=f_ext, p=p)).max(initial=0.0)))

        def parts(state: Array) -> tuple[Array, Array]:
            multipliers = np.zeros(m)
            multipliers[rows] = state[model.nq :] * scale
            return state[: model.nq], multipliers

        def residual(states: Array, _: Array) -> Array:
            at, multipliers = parts(states[0])
            e = lacking(at)
            if not m:
                return e[None] / scale
            J_c = model.constraints.jacobian(at, t=t, p=p)
            return np.concatenate([(e - J_c.T @ multipliers) / scale, model.closure_error(at, t=t, p=p)])[None]

        def jacobian(states: Array, _: Array) -> Array:
            at, multipliers = parts(states[0])
            by_q: Array = model.linearize_inverse(at, still, still, f_ext, p=p).dq
            if acting is not None:
                by_q = by_q - acting.by("q", at, still)[0]
            if not m:
                return by_q[None] / scale
            J_c = model.constraints.jacobian(at, t=t, p=p)
            by_q = by_q - model._derivative("held", "q", at, still, still, multipliers, t=t, p=p).efforts
            upper = np.concatenate([by_q / scale, -J_c[rows].T], axis=1)
            lower = np.concatenate([J_c[rows], np.zeros((len(rows), len(rows)))], axis=1)
            return np.concatenate([upper, lower])[None]

        def moved(states: Array, step: Array, _: Array) -> Array:
            return np.concatenate(
                [model._run("integrate", states[0, : model.nq], step[0, :n]), states[0, model.nq :] + step[0, n:]]
            )[None]

        # The multipliers that come nearest to balance begin the search.
        balance: Array = np.zeros(0)
        if m:
            J_c = model.constraints.jacobian(x, t=t, p=p)[rows]
            balance = np.linalg.lstsq(J_c.T, lacking(x) / scale, rcond=RANK)[0]
        states, errors = nearest_root(residual, jacobian, moved, np.concatenate([x, balance])[None], tol)
        at, multipliers = parts(states[0])
        if np.abs(errors).max(initial=0.0) > tol:
            worst = int(np.argmax(np.abs(errors[0, :n])))
            raise LinkwiseError(
                "no equilibrium was found from this guess",
                got=f"{errors[0, worst] * scale:.3g} N m (or N) left at {model.freedom_names[worst]!r}",
                allowed=f"{tol * scale:.3g}",
                do="give a guess that is nearer, or other joint forces",
            )
        return Equilibrium(at, multipliers)

    def force(self, q: ArrayLike, loads: Mapping[str, ArrayLike] | None = None, *, p: ArrayLike | None = None) -> Array:
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
            >>> tau = arm.statics.force([0.0], {"link1": (0, 0, 0, 0, -2.0, 0)})  # at the joint itself: no lever
            >>> bool(abs(tau - arm.gravity_force([0.0])).max() < 1e-12)
            True
        """
        weight = self.model._run("gravity_force", q, p=p)
        tau: Array = weight - self.model.passive_force(q, weight * 0.0, p=p)  # at rest, in the precision and place of q
        for body, load in (loads or {}).items():
            f = np.asarray(load, float)
            if f.shape[-1:] not in ((3,), (6,)):
                raise InputError(
                    f"the load on {body!r} has the wrong shape", got=str(f.shape), allowed="(..., 3) or (..., 6)"
                )
            J = self.model._run("jacobian", q, p=p, **self.model._at(body, None))[..., -f.shape[-1] :, :]
            tau = tau - np.einsum("...ij,...i->...j", J, f)
        return tau

    def support_margin(self, q: ArrayLike, points: ArrayLike) -> Array:
        """Distance (..., m) of the mass centre, seen along gravity, from the edge of the polygon around ground points.

        Positive: the model stands. Negative: it tips, and this is how far the mass centre is outside.

        Args:
            q: configuration (..., nq).
            points: (..., n, 3), where it touches the ground, world axes; n is 3 or more.
        """
        gravity = np.asarray(self.model.gravity, float)
        if not np.linalg.norm(gravity) > 0.0:
            raise InputError("nothing tips without gravity", got=f"gravity {gravity}", do="model.with_gravity(…)")
        return support_margin(self.model._run("center_of_mass", q), points, gravity)

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
        check_choice("rows", rows, tuple(_ROWS))
        J = self.model._run("jacobian", q, p=p, **self.model._at(body, None))[..., _ROWS[rows], :]
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
            >>> places = planar_arm(2, length=0.5).statics.workspace("link2", 100, 0)
            >>> bool((abs(places.poses[:, :2, 3]) <= 0.5 + 1e-12).all())
            True
        """
        at = self.model._at(body, node)
        q = self.model.random_configuration(rng, size)
        if self.model.closures:
            q = self.model.assemble(q)
        return Workspace(q, self.model._run("pose", q, **at))

    def actuation_matrix(self, actuated: Sequence[str] | None = None) -> Array:
        """B (nv, m): joint forces τ = B f of motors' forces f; a one at the freedom that a motor moves.

        Args:
            actuated: names of the joints with motors. If left out, the model's ``actuators``, a column of gears for
                each; of a model without any, all joints but floating bases (joints of six freedoms on the world).

        ``inverse_dynamics`` and ``state_space`` take the same names as ``actuated=``.

        Example:
            >>> from linkwise.samples import planar_arm
            >>> planar_arm(2).statics.actuation_matrix(["joint2"]).tolist()
            [[0.0], [1.0]]
        """
        if actuated is None and self.model.actuators:
            return self._gears()
        if actuated is None:
            free = {j.name for j in self.model.joints if j.nv == 6 and self.model.bodies[j.index].parent < 0}
            actuated = [j.name for j in self.model.joints if j.mimic is None and j.name not in free]
        places = self.model._places_in_v(actuated)
        B = np.zeros((self.model.nv, len(places)))
        B[places, range(len(places))] = 1.0
        return B

    def _gears(self) -> Array:
        """Gears: the force on each freedom for a unit of each actuator."""
        B = np.zeros((self.model.nv, len(self.model.actuators)))
        for k, actuator in enumerate(self.model.actuators):
            way = actuator.transmission
            if not isinstance(way, JointTransmission) or closures_along(self.model, way):
                raise InputError(
                    f"what actuator {actuator.name!r} does to the joints depends on the configuration",
                    got=type(way).__name__,
                    allowed="actuators of joints",
                    do='name the joints that have motors: actuated=["joint1", …]',
                )
            for name, gear in way.gears:
                joint = self.model.joints[name]
                share = 1.0 if joint.mimic is None else joint.mimic.multiplier
                B[joint.v_slice, k] += share * np.asarray(gear)
        return B


def support_margin(centre: Array, points: ArrayLike, gravity: Array) -> Array:
    """Distances (...) of mass centres (..., 3), seen along gravity, from the edges of hulls of points (..., n, 3)."""
    ground = np.asarray(points, float)
    if ground.ndim < 2 or ground.shape[-1] != 3 or ground.shape[-2] < 3:
        raise InputError("points have the wrong shape", got=str(ground.shape), allowed="(..., n, 3), n of 3 or more")
    down = gravity / np.linalg.norm(gravity)
    plane = np.linalg.svd(down[None])[2][1:]  # two directions across
    batch = np.broadcast_shapes(centre.shape[:-1], ground.shape[:-2])
    seen = np.broadcast_to(centre @ plane.T, (*batch, 2)).reshape(-1, 2)
    corners = np.broadcast_to(ground @ plane.T, (*batch, *ground.shape[-2:-1], 2)).reshape(len(seen), -1, 2)
    margins = np.array([_margin(c, hull) for c, hull in zip(seen, corners, strict=True)])
    return margins.reshape(batch)[()]


def _margin(c: Array, points: Array) -> float:
    """Distance to the hull's boundary, positive inside."""
    if not (np.isfinite(c).all() and np.isfinite(points).all()):
        return float("nan")
    hull = _hull(points)
    ends = np.roll(hull, -1, axis=0)
    way, to = ends - hull, c - hull
    square = (way**2).sum(1)
    share = np.clip((way * to).sum(1) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
    distance = float(np.linalg.norm(to - share[:, None] * way, axis=1).min())
    sides = way[:, 0] * to[:, 1] - way[:, 1] * to[:, 0]
    return distance if len(hull) > 2 and bool((sides >= 0.0).all()) else -distance


def _hull(points: Array) -> Array:
    """Corners counterclockwise (Andrew's monotone chain); points in a line give its two ends."""
    ordered = sorted(map(tuple, points.tolist()))

    def half(line: list[Any]) -> list[Any]:
        kept: list[Any] = []
        for p in line:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], p) <= 0.0:
                kept.pop()
            kept.append(p)
        return kept

    lower, upper = half(ordered), half(ordered[::-1])
    return np.array(lower[:-1] + upper[:-1] or ordered[:1])


def _turn(a: Any, b: Any, c: Any) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
