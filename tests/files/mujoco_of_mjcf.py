"""A model as MuJoCo reads it, beside ours: the same quantities in our coordinates."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import linkwise as lw
from linkwise.algorithms.catalogue import Trees
from linkwise.files.mjcf import to_mujoco
from linkwise.model.transmissions import MovingFrames, length
from linkwise.sim.chart import Instant
from linkwise.sim.motion import EquationsOfMotion
from tests.oracles.eager import Eager, relative_error

mujoco: Any = __import__("pytest").importorskip("mujoco")

Array = NDArray[np.float64]


@dataclass
class Beside:
    """MuJoCo's model with all that is no part of the ideal mechanism switched off, unless asked for."""

    model: lw.Model
    m: Any

    def __post_init__(self) -> None:
        self.m.actuator_actearly[:] = 0  # about steps of time, not about forces

    @classmethod
    def of_file(cls, model: lw.Model, path: Path) -> Beside:
        return cls(model, mujoco.MjModel.from_xml_path(str(path)))

    @classmethod
    def of_text(cls, model: lw.Model, text: str) -> Beside:
        return cls(model, mujoco.MjModel.from_xml_string(text))

    def at(self, q: Array, v: Array, *, passive: bool = False) -> Any:
        """MuJoCo's data at our state, up to smooth forces."""
        off = mujoco.mjtDisableBit
        keep = int(self.m.opt.disableflags)
        flags = keep | int(off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT)
        if not passive:
            flags |= int(off.mjDSBL_SPRING | off.mjDSBL_DAMPER)
        self.m.opt.disableflags = flags
        data = mujoco.MjData(self.m)
        data.qpos[:], data.qvel[:] = to_mujoco(self.model, q, v)
        mujoco.mj_forward(self.m, data)
        self.m.opt.disableflags = keep
        return data

    def T(self, q: Array) -> Array:
        """Our v from MuJoCo's qvel."""
        inverse = np.array([to_mujoco(self.model, q, e).v for e in np.eye(self.model.nv)]).T
        return np.linalg.inv(inverse) if self.model.nv else inverse

    def T_rate(self, q: Array, v: Array) -> Array:
        """How T changes: the velocity of a free joint turns with its body."""
        rate = np.zeros((self.model.nv, self.model.nv))
        T = self.T(q)
        for joint in self.model.joints:
            if isinstance(joint.type, lw.Free):
                b = joint.v_slice.start
                omega = v[b : b + 3]
                cross = np.array([[0, -omega[2], omega[1]], [omega[2], 0, -omega[0]], [-omega[1], omega[0], 0]])
                rate[b + 3 : b + 6, b : b + 3] = -cross @ T[b + 3 : b + 6, b : b + 3]
        return rate

    def mass_matrix(self, q: Array) -> Array:
        data = self.at(q, np.zeros(self.model.nv))
        M = np.zeros((self.m.nv, self.m.nv))
        mujoco.mj_fullM(self.m, data, M)
        back = np.linalg.inv(self.T(q))
        return back.T @ M @ back

    def bias_force(self, q: Array, v: Array) -> Array:
        data = self.at(q, v)
        T = self.T(q)
        back = np.linalg.inv(T)
        qvel = to_mujoco(self.model, q, v).v
        extra = back @ (self.T_rate(q, v) @ qvel)  # qacc = T⁻¹(v̇ - Ṫ qvel)
        return back.T @ data.qfrc_bias - self.mass_matrix(q) @ (T @ extra)

    def acceleration(self, q: Array, v: Array, tau: Array, *, passive: bool = False, data: Any = None) -> Array:
        """V̇ from joint forces, in our coordinates."""
        data = self.at(q, v, passive=passive) if data is None else data
        T = self.T(q)
        forces = T.T @ tau + data.qfrc_passive - data.qfrc_bias
        qacc = np.zeros((1, self.m.nv))
        mujoco.mj_solveM(self.m, data, qacc, forces.reshape(1, -1))
        return T @ qacc[0] + self.T_rate(q, v) @ to_mujoco(self.model, q, v).v


def random_state(model: lw.Model, rng: np.random.Generator) -> tuple[Array, Array]:
    """A configuration within a turn and a few metres of the initial one, and a velocity."""
    q = Eager(model).integrate(model.configurations["initial"], rng.uniform(-1.0, 1.0, model.nv))
    return q, rng.uniform(-1.0, 1.0, model.nv)


class Errors(NamedTuple):
    """The largest differences between MuJoCo's numbers and ours, each relative to the largest of its kind."""

    mass_matrix: float
    bias_force: float
    inverse_dynamics: float
    forward_dynamics: float
    driven: float
    """Accelerations with armature, damping, springs, fluid, compensation of gravity, tendons, muscles and actuators."""


def errors(beside: Beside, rng: np.random.Generator, states: int = 3) -> Errors:
    """At random states; loops are open, since MuJoCo's equalities are soft."""
    model = beside.model
    for closure in model.closures:
        model = model.without(closure.name)
    worst = np.zeros(5)
    for _ in range(states):
        q, v = random_state(model, rng)
        vdot = rng.uniform(-1.0, 1.0, model.nv)
        M, h = beside.mass_matrix(q), beside.bias_force(q, v)
        tau = model.inverse_dynamics(q, v, vdot)
        here = [
            _relative(model.mass_matrix(q), M),
            _relative(model.bias_force(q, v), h),
            _relative(tau, M @ vdot + h),
            _relative(model.forward_dynamics(q, v, tau), beside.acceleration(q, v, tau)),
            driven(beside, model, q, v, rng),
        ]
        worst = np.maximum(worst, here)
    return Errors(*worst.tolist())


def driven(beside: Beside, model: lw.Model, q: Array, v: Array, rng: np.random.Generator) -> float:
    """With everything that acts, but limits and dry friction, which MuJoCo has among its constraints."""
    m = beside.m
    motion = EquationsOfMotion(model, (), lw.JointRules(limits="ignore", friction=False), 0)
    tau = np.array(motion.joint_losses(Instant(0.0, q, v, (), ())), float)
    outside = motion.body_forces(Instant(0.0, q, v, (), ()))
    f_ext = np.zeros((len(model.bodies), 6)) if outside is None else np.array(outside, float)
    data = beside.at(q, v, passive=True)
    data.qacc_warmstart[:] = 0.0
    named = {mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_ACTUATOR, i) or f"actuator{i}": i for i in range(m.nu)}
    assert all(actuator.name in named for actuator in model.actuators)
    if model.actuators:
        u = rng.uniform(-2.0, 2.0, len(model.actuators))
        drives = lw.Drives(model, u)
        x = rng.uniform(-0.5, 0.5, drives.nx)
        state = 0
        for actuator, control in zip(model.actuators, u, strict=True):
            i = named[actuator.name]
            data.ctrl[m.actuator_ctrladr[i]] = control
            if actuator.activation is not None:
                low, high = actuator.activation.range
                x[state] = np.clip(abs(x[state]) if actuator.muscle else x[state], low, high)
                data.act[m.actuator_actadr[i]] = x[state]
                state += 1
        active = np.array(drives.force(0.0, q, v, x, ()), float)
        tau += np.clip(active, -model.limits.effort, model.limits.effort)
        for body, wrench in (drives.wrench(0.0, q, v, x, ()) or {}).items():
            f_ext[model.bodies[body].index] += np.array(wrench, float)
    # MuJoCo's forces of these actuators, without those that we leave out.
    mujoco.mj_fwdActuation(m, data)
    moment = np.zeros((m.nout, m.nv))
    mujoco.mju_sparse2dense(moment, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind)
    ours = [named[actuator.name] for actuator in model.actuators]
    driven = moment[ours].T @ data.actuator_force[ours]
    limited = np.flatnonzero(m.jnt_actfrclimited)
    for joint in limited:
        driven[m.jnt_dofadr[joint]] = np.clip(driven[m.jnt_dofadr[joint]], *m.jnt_actfrcrange[joint])
    by_drives = m.jnt_actgravcomp[m.dof_jntid].astype(bool)  # compensation that is not among the passive forces
    driven[by_drives] += data.qfrc_gravcomp[by_drives]
    T = beside.T(q)
    theirs = beside.acceleration(q, v, np.linalg.inv(T).T @ driven, data=data)
    return _relative(model.forward_dynamics(q, v, tau, f_ext), theirs)


def motion_problem(model: lw.Model, text: str, rng: np.random.Generator, states: int = 1) -> str:
    """What MuJoCo, under the flags and options of the file, has otherwise than we do, or "".

    Accelerations without constraints; which kinds of constraints act; and where none do, accelerations under our usual
    rules, with dry friction and limits.
    """
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.disableflags = int(m.opt.disableflags) | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)  # not simulated here
    beside, data = Beside(model, m), mujoco.MjData(m)
    open_model = model
    for closure in model.closures:
        open_model = open_model.without(closure.name)
    trees = Trees(open_model, None)
    for _ in range(states):
        q, v = random_state(model, rng)
        data.qpos[:], data.qvel[:] = to_mujoco(model, q, v)
        data.ctrl[:] = rng.uniform(-4.0, 4.0, m.nu)
        mujoco.mj_forward(m, data)
        T, extra = beside.T(q), beside.T_rate(q, v) @ data.qvel
        u = {mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_ACTUATOR, i): float(data.ctrl[i]) for i in range(m.nu)}
        smooth = lw.JointRules(limits="ignore", friction=False)
        error = relative_error(_all_acting(open_model, trees, q, v, u, smooth), T @ data.qacc_smooth + extra)
        if not error < 1e-8:
            return f"the acceleration is off by {error:.1e}"
        there = {mujoco.mjtConstraint(int(kind)).name.split("_")[1] for kind in data.efc_type[: data.nefc]}
        beyond = (
            (q < model.limits.lower) | (q > model.limits.upper)
            if model.limits.lower.shape == q.shape
            else np.zeros(1, bool)
        )
        own = {
            "EQUALITY": bool(model.closures),
            "FRICTION": any(any(joint.friction) for joint in model.joints) or any(s.friction for s in model.springs),
            "LIMIT": bool(beyond.any()) or bool(beyond_tendons(model, q)),
        }
        if there != {kind for kind, acts in own.items() if acts}:
            return f"constraints there: {there}; here: {own}"
        if there:
            continue
        error = relative_error(_all_acting(open_model, trees, q, v, u, lw.JointRules()), T @ data.qacc + extra)
        if not error < 1e-8:
            return f"the acceleration under our usual rules is off by {error:.1e}"
    return ""


def _all_acting(model: lw.Model, trees: Trees, q: Array, v: Array, u: dict[str, float], rules: lw.JointRules) -> Array:
    """V̇ with losses, springs and drives."""
    motion = EquationsOfMotion(model, (), rules, 0)
    tau = np.array(motion.joint_losses(Instant(0.0, q, v, (), ())), float)
    if model.actuators:
        drives = lw.Drives(model, [u[actuator.name] for actuator in model.actuators])
        tau = tau + np.array(drives.force(0.0, q, v, (), ()), float)
    f_ext = motion.body_forces(Instant(0.0, q, v, (), ()))
    found: Array = Eager(model, trees=trees).forward_dynamics(q, v, tau, f_ext=f_ext)
    return found


def beyond_tendons(model: lw.Model, q: Array) -> list[str]:
    """The names of the tendons that are beyond their limits."""
    lengths = {s.name: float(length(MovingFrames(model, q), s.transmission)) for s in model.springs}
    return [s.name for s in model.springs if not s.limits[0] <= lengths[s.name] <= s.limits[1]]


def _relative(ours: Array, theirs: Array) -> float:
    return float(np.abs(ours - theirs).max() / max(float(np.abs(theirs).max()), 1e-300)) if ours.size else 0.0


def model_files() -> dict[str, tuple[Path, Path]]:
    """All MJCF files in installed packages: a short name, the file, and the folder of its package."""
    found = {}
    for package in ("dm_control", "gymnasium", "gymnasium_robotics", "mujoco"):
        spec = importlib.util.find_spec(package)
        folder = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
        for file in sorted(folder.rglob("*.xml")) if folder else ():
            if b"<mujoco" in file.read_bytes():
                found[f"{package}/{file.relative_to(folder)}"] = file, folder
    return found
