"""What MuJoCo makes of our MJCF and Pinocchio of our URDF: the same poses, inertias, forces, limits and losses.

Coordinates that a format changes (and the list of losses says so) are converted here, from the definitions of the
joints: `their q` from ours, and the matrix T with `their v` = T `our v`, so that M = Tᵀ M' T and τ = Tᵀ τ'.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.files.writing.mjcf import mjcf_text
from linkwise.files.writing.urdf import urdf_text
from linkwise.sim.chart import Instant
from linkwise.sim.motion import EquationsOfMotion
from tests.oracles.eager import Eager, relative_error
from tests.random_trees import Rng, random_state, random_tree

EXPORTED = ("revolute", "prismatic", "helical", "cylindrical", "universal", "planar", "spherical", "free", "fixed")
"""Joint types that the formats can say; programs they cannot."""


def random_export(rng: Rng, largest: int = 6) -> lw.Model:
    """A mechanism with everything that a joint can have: turned frames, limits on one side or none, losses, springs."""
    types = EXPORTED if rng.random() < 0.5 else (str(rng.choice([t for t in EXPORTED if t != "fixed"])), "revolute")
    model = random_tree(
        rng,
        int(rng.integers(1, largest + 1)),
        types,
        branching=float(rng.choice([0.0, 0.5])),
        mimic=float(rng.choice([0.0, 0.3])),
        floating=bool(rng.random() < 0.2),
        joint_frames=float(rng.choice([0.0, 0.7])),
        almost=0.2,
        name=str(rng.choice(["random", 'a "b" & <c>', "é"])),
    )
    joints = tuple(_equipped(joint, rng) for joint in model.joints)
    return _driven(replace(model, joints=joints), rng)


def _driven(model: lw.Model, rng: Rng) -> lw.Model:
    """With actuators and springs along joints, at a frame and through space."""

    def pair(low: float, high: float) -> tuple[float, float]:
        a, b = (float(x) for x in np.sort(rng.uniform(low, high, 2)))
        return [(a, b), (-math.inf, b), (a, math.inf)][rng.integers(3)]

    names = [joint.name for joint in model.joints if joint.nq == joint.nv and type(joint.type) is not lw.Planar]
    gears = {name: rng.normal(size=model.joints[name].nv).tolist() for name in names}
    ways: list[Any] = [lw.equipment.JointTransmission({name: gear}) for name, gear in gears.items()]
    ways += [lw.equipment.JointTransmission({joint.name: rng.normal(size=3).tolist()})
             for joint in model.joints if type(joint.type) is lw.Spherical]  # fmt: skip
    ways += [lw.equipment.JointTransmission(gears)] if len(gears) > 1 else []
    ways.append(lw.equipment.FrameTransmission("tool", tuple(rng.normal(size=6).tolist())))
    through = lw.equipment.PathTransmission(((("tool", model.bodies[0].name), float(rng.uniform(0.5, 2.0))),))
    ways += [through] * (len(model.bodies) > 1)
    drives = [
        lw.equipment.Actuator(f"drive{k}", way, gain=tuple(rng.normal(size=3).tolist()),
            bias=tuple(rng.normal(size=3).tolist()),
                    control_range=pair(-2, 2), force_range=pair(-9, 9))
        for k, way in enumerate(ways) if rng.random() < 0.5
    ]  # fmt: skip
    alike = [way for way in ways if not isinstance(way, lw.equipment.FrameTransmission)]
    springs = [
        lw.equipment.Spring(f"drive{k}", way, float(rng.uniform(1, 9)), float(rng.uniform(0, 1)), pair(-1, 1))
        for k, way in enumerate(alike) if rng.random() < 0.3
    ]  # fmt: skip
    return model.with_equipment(actuators=drives).with_equipment(springs=springs)


def _equipped(joint: Any, rng: Rng) -> Any:
    def some(chance: float, low: float, high: float) -> tuple[float, ...]:
        one = float(rng.uniform(low, high))
        return tuple(
            (one if joint.nq != joint.nv else float(rng.uniform(low, high))) if rng.random() < chance else 0.0
            for _ in range(joint.nv)
        )

    def limit() -> lw.JointLimits:
        low, high = (float(x) for x in np.sort(rng.uniform(-2.0, 2.0, 2)))
        ends = [(low, high), (low, math.inf), (-math.inf, high), (-math.inf, math.inf)]
        own = ends[3 if joint.nq != joint.nv else int(rng.integers(4))]
        return lw.JointLimits(*own, *(float(x) if rng.random() < 0.5 else math.inf for x in rng.uniform(1.0, 9.0, 2)))

    springs = some(0.3, 1.0, 5.0) if joint.nq == joint.nv else (0.0,) * joint.nv
    return replace(
        joint,
        damping=some(0.5, 0.0, 1.0),
        friction=some(0.3, 0.0, 1.0),
        stiffness=springs,
        rest=tuple(float(rng.uniform(-1, 1)) if k else 0.0 for k in springs),
        limits=tuple(limit() for _ in range(joint.nv)) if rng.random() < 0.5 else (),
    )


@dataclass
class Theirs:
    """A state of the other program: q and T, filled joint by joint."""

    q: Any
    T: Any
    turns: bool = field(default=False)
    """Whether T changes along a motion, so that forces at speed cannot be compared by it."""


def _value(joint: Any, q: Any, v_rows: Any) -> tuple[float, Any]:
    """The coordinate of a joint of one freedom, be it a follower, and its row of T."""
    m, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
    return m * float(q[joint.q_slice][0]) + offset, m * v_rows[joint.v_slice][0]


def _rotation(quat_wxyz: Any) -> Any:
    w, x, y, z = np.asarray(quat_wxyz, float) / np.linalg.norm(quat_wxyz)
    vector = np.array([x, y, z])
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (w * w - vector @ vector) * np.eye(3) + 2 * np.outer(vector, vector) + 2 * w * cross


def _quaternion(R: Any) -> Any:
    """By the eigenvector of the largest eigenvalue: another way than the package's."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R.reshape(-1)
    K = np.array([
        [xx + yy + zz, zy - yz, xz - zx, yx - xy], [zy - yz, xx - yy - zz, xy + yx, xz + zx],
        [xz - zx, xy + yx, yy - xx - zz, yz + zy], [yx - xy, xz + zx, yz + zy, zz - xx - yy],
    ])  # fmt: skip
    return np.linalg.eigh(K)[1][:, -1]


def mujoco_problem(model: lw.Model, rng: Rng) -> str:
    """What is wrong with our MJCF by MuJoCo's account, or ""."""
    import mujoco

    q, v, _ = random_state(model, rng)
    model = replace(model, configurations=model.configurations.with_configuration("here", q))
    text, lost = mjcf_text(model)
    try:
        m = mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        return f"MuJoCo refuses it: {error}"
    m.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(m)
    them = _mujoco_state(model, m, q)
    data.qpos[:] = them.q
    mujoco.mj_forward(m, data)
    poses = {body.name: _pose(data.body(body.name).xpos, data.body(body.name).xmat) for body in model.bodies}
    for (
        frame
    ) in model.frames:  # by what MuJoCo read: as it runs, it takes a site that is turned by 1e-7 for one that is not
        site = m.site(frame.name)
        on = m.site_bodyid[site.id]
        poses[frame.name] = _pose(data.xpos[on], data.xmat[on]) @ _pose(site.pos, _rotation(site.quat))
    places = data.xpos.copy()
    M = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, data, M)
    still = data.qfrc_bias.copy()
    data.qvel[:] = them.T @ v
    mujoco.mj_forward(m, data)
    turning = {joint.name for joint in model.joints if type(joint.type) in (lw.Planar, lw.Free)}
    own = not any("turn with the body" in each or "armature of joint" in each for each in lost)
    problem = _compared(model, q, v, them, poses, M if own else None, still, data.qfrc_bias)
    if problem:
        return problem
    data.qpos[:] = m.key_qpos[0]
    mujoco.mj_kinematics(m, data)
    if not np.allclose(data.xpos, places, atol=1e-9):
        return "a configuration is another one there"
    if not turning and any("coordinates" in each for each in lost):
        return f"the coordinates are said to be lost: {lost}"
    return _mujoco_details(model, m) or _drive_problem(model, m, q, v, them, lost, rng)


def _drive_problem(model: lw.Model, m: Any, q: Any, v: Any, them: Theirs, lost: list[str], rng: Rng) -> str:
    """Accelerations with drives and springs, where coordinates are the same but for order and nothing was lost."""
    import mujoco

    said = [each for each in lost if "order" not in each and "velocity" not in each and "run-time" not in each]
    if said or them.turns or m.nv != model.nv:
        return ""
    data = mujoco.MjData(m)
    u = rng.uniform(-3.0, 3.0, len(model.actuators))
    data.qpos[:], data.qvel[:] = them.q, them.T @ v
    for actuator, control in zip(model.actuators, u, strict=True):
        data.ctrl[m.actuator(actuator.name).id] = control
    mujoco.mj_forward(m, data)
    motion = EquationsOfMotion(model, (), lw.JointRules(limits="ignore", friction=False), 0)
    tau = np.array(motion.joint_losses(Instant(0.0, q, v, (), ())), float)
    outside = motion.body_forces(Instant(0.0, q, v, (), ()))
    f_ext = np.zeros((len(model.bodies), 6)) if outside is None else np.array(outside, float)
    if model.actuators:
        drives = lw.Drives(model, u)
        tau += np.clip(np.array(drives.force(0.0, q, v, (), ()), float), -model.limits.effort, model.limits.effort)
        for body, wrench in (drives.wrench(0.0, q, v, (), ()) or {}).items():
            f_ext[model.bodies[body].index] += np.array(wrench, float)
    ours = them.T @ Eager(model).forward_dynamics(q, v, tau, f_ext=f_ext)
    error = relative_error(data.qacc, ours)
    return "" if error < 1e-8 else f"the acceleration with drives and springs is off by {error:.1e}"


def _mujoco_state(model: lw.Model, m: Any, q: Any) -> Theirs:
    rows = np.eye(model.nv)
    them = Theirs(np.array(m.qpos0, float), np.zeros((m.nv, model.nv)))

    def put(name: str, values: Any, v_rows: Any) -> None:
        joint = m.joint(name)
        them.q[joint.qposadr[0] : joint.qposadr[0] + len(values)] = values
        them.T[joint.dofadr[0] : joint.dofadr[0] + len(v_rows)] = v_rows

    for joint, body in zip(model.joints, model.bodies, strict=True):
        kind, own, at = type(joint.type), q[joint.q_slice], rows[joint.v_slice]
        if joint.nq == 1:
            x, row = _value(joint, q, rows)
            put(joint.name, [x], [row])
            if kind is lw.Helical:
                put(f"{joint.name}/slide", [joint.type.pitch * x], [joint.type.pitch * row])
        elif kind in (lw.Universal, lw.Cylindrical):
            put(joint.name, own[:1], at[:1])
            put(f"{joint.name}/2", own[1:], at[1:])
        elif kind is lw.Spherical:
            put(joint.name, own / np.linalg.norm(own), at)
        elif kind is lw.Planar:
            c, s = math.cos(own[0]), math.sin(own[0])
            put(joint.name, own[1:2], [c * at[1] - s * at[2]])
            put(f"{joint.name}/2", own[2:3], [s * at[1] + c * at[2]])
            put(f"{joint.name}/3", own[:1], at[:1])
            them.turns = True
        elif body.parent < 0:  # a free joint in the world
            P, R = np.array(body.placement), _rotation(own[:4])
            put(joint.name, [*(P[:3, :3] @ own[4:] + P[:3, 3]), *_quaternion(P[:3, :3] @ R)],
                [*(P[:3, :3] @ R @ at[3:]), *at[:3]])  # fmt: skip
            them.turns = True
        else:
            along = _rotation(own[:4]) @ at[3:]
            for k, name in enumerate((joint.name, f"{joint.name}/2", f"{joint.name}/3")):
                put(name, own[4 + k : 5 + k], along[k : k + 1])
            put(f"{joint.name}/4", own[:4] / np.linalg.norm(own[:4]), at[:3])
            them.turns = True
    return them


def _mujoco_details(model: lw.Model, m: Any) -> str:
    """Limits, losses and springs of joints that are one joint there."""
    for joint in model.joints:
        if joint.nv != 1:
            continue
        there = m.joint(joint.name)
        limit = joint.limits[0] if joint.limits else lw.JointLimits()
        dof = there.dofadr[0]
        found = (
            tuple(m.jnt_range[there.id]) if m.jnt_limited[there.id] else (-math.inf, math.inf),
            m.jnt_actfrcrange[there.id, 1] if m.jnt_actfrclimited[there.id] else math.inf,
            m.dof_damping[dof], m.dof_frictionloss[dof], m.dof_armature[dof], m.jnt_stiffness[there.id],
            m.qpos_spring[there.qposadr[0]] if joint.stiffness[0] else 0.0,
        )  # fmt: skip
        wanted = (
            (limit.lower, limit.upper), limit.effort, joint.damping[0], joint.friction[0], joint.armature[0],
            joint.stiffness[0], joint.rest[0] if joint.stiffness[0] else 0.0,
        )  # fmt: skip
        if not all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True)):
            return f"joint {joint.name!r} has {found} there, {wanted} here"
    return ""


def pinocchio_problem(model: lw.Model, rng: Rng) -> str:
    """What is wrong with our URDF by Pinocchio's account, or ""."""
    import pinocchio as pin

    joints = tuple(replace(joint, armature=(0.0,) * joint.nv) for joint in model.joints)  # URDF has none, and says so
    model = replace(model, joints=joints)
    text, _, _ = urdf_text(model)
    try:
        m = pin.buildModelFromXML(text)
    except (ValueError, RuntimeError) as error:
        return f"Pinocchio refuses it: {error}"
    m.gravity.linear = np.array(model.gravity)
    data = m.createData()
    q, v, _ = random_state(model, rng)
    them = _pinocchio_state(model, m, q)
    pin.framesForwardKinematics(m, data, them.q)
    names = [body.name for body in model.bodies] + [frame.name for frame in model.frames]
    poses = {name: data.oMf[m.getFrameId(name)].homogeneous.copy() for name in names}
    M = pin.crba(m, data, them.q)
    M = np.triu(M) + np.triu(M, 1).T
    still = pin.rnea(m, data, them.q, np.zeros(m.nv), np.zeros(m.nv)).copy()
    moving = pin.rnea(m, data, them.q, them.T @ v, np.zeros(m.nv))
    problem = _compared(model, q, v, them, poses, M, still, moving) or _pinocchio_details(model, m)
    if problem:
        return problem
    return _read_again(model, text)


def _pinocchio_state(model: lw.Model, m: Any, q: Any) -> Theirs:
    rows = np.eye(model.nv)
    them = Theirs(np.zeros(m.nq), np.zeros((m.nv, model.nv)))

    def put(name: str, values: Any, v_rows: Any) -> None:
        joint = m.joints[m.getJointId(name)]
        if joint.nq == 2 and joint.nv == 1:  # no limits: a cosine and a sine
            values = [math.cos(values[0]), math.sin(values[0])]
        them.q[joint.idx_q : joint.idx_q + len(values)] = values
        them.T[joint.idx_v : joint.idx_v + len(v_rows)] = v_rows

    for joint in model.joints:
        kind, own, at = type(joint.type), q[joint.q_slice], rows[joint.v_slice]
        if joint.nq == 1:
            x, row = _value(joint, q, rows)
            put(joint.name, [x], [row])
            if kind is lw.Helical:
                put(f"{joint.name}_2", [joint.type.pitch * x], [joint.type.pitch * row])
        elif kind in (lw.Universal, lw.Cylindrical):
            put(joint.name, own[:1], at[:1])
            put(f"{joint.name}_2", own[1:], at[1:])
        elif kind is lw.Planar:
            put(joint.name, [own[1], own[2], math.cos(own[0]), math.sin(own[0])], [at[1], at[2], at[0]])
        elif kind is lw.Free:
            w, x, y, z = own[:4] / np.linalg.norm(own[:4])
            put(joint.name, [*own[4:], x, y, z, w], [*at[3:], *at[:3]])
        else:  # a ball as turns about x, y, z: R = Rx Ry Rz
            R = _rotation(own)
            a, b, c = math.atan2(-R[1, 2], R[2, 2]), math.asin(np.clip(R[0, 2], -1, 1)), math.atan2(-R[0, 1], R[0, 0])
            Rz = np.array([[math.cos(c), -math.sin(c), 0], [math.sin(c), math.cos(c), 0], [0, 0, 1]])
            Ry = np.array([[math.cos(b), 0, math.sin(b)], [0, 1, 0], [-math.sin(b), 0, math.cos(b)]])
            E = np.stack([Rz.T @ Ry.T @ [1, 0, 0], Rz.T @ [0, 1, 0], [0, 0, 1]], axis=1)
            rates = np.linalg.solve(E, at)
            for k, (name, angle) in enumerate(
                zip((joint.name, f"{joint.name}_2", f"{joint.name}_3"), (a, b, c), strict=True)
            ):
                put(name, [angle], rates[k : k + 1])
            them.turns = True
    return them


def _pinocchio_details(model: lw.Model, m: Any) -> str:
    """Limits and losses of joints that are one joint there; 1e30 is written for what has none."""
    for joint in model.joints:
        if type(joint.type) not in (lw.Revolute, lw.Prismatic):
            continue
        there = m.joints[m.getJointId(joint.name)]
        limit = joint.limits[0] if joint.limits else lw.JointLimits()
        found = [m.effortLimit[there.idx_v], m.velocityLimit[there.idx_v], m.damping[there.idx_v]]
        wanted = [limit.effort, limit.velocity, joint.damping[0]]
        if there.nq == 1:
            found += [m.lowerPositionLimit[there.idx_q], m.upperPositionLimit[there.idx_q]]
            wanted += [limit.lower, limit.upper]
        elif math.isfinite(limit.lower) or math.isfinite(limit.upper):
            return f"joint {joint.name!r} has lost its limits"
        if not np.array_equal(np.clip(found, -1e30, 1e30), np.clip(wanted, -1e30, 1e30)):
            return f"joint {joint.name!r} has {found} there, {wanted} here"
    return ""


def _read_again(model: lw.Model, text: str) -> str:
    """What we read of our own file has the same limits."""
    import warnings

    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", lw.errors.ModelWarning)
        path = Path(folder) / "m.urdf"
        path.write_text(text, encoding="utf-8")
        again = lw.load(path, allow_unphysical=True)
    for joint in model.joints:
        if type(joint.type) in (lw.Revolute, lw.Prismatic):
            ours, theirs = joint.limits or (lw.JointLimits(),), again.joints[joint.name].limits or (lw.JointLimits(),)
            if ours != theirs:
                return f"joint {joint.name!r} has the limits {ours}, and {theirs} when read again"
    return ""


def _pose(place: Any, turn: Any) -> Any:
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = np.reshape(turn, (3, 3)), place
    return X


def _compared(
    model: lw.Model, q: Any, v: Any, them: Theirs, poses: dict[str, Any], M: Any, still: Any, moving: Any
) -> str:
    """Poses of bodies and frames; inertias; forces at rest, and in motion where T stays what it is."""
    eager = Eager(model)
    own = eager.poses(q)
    at = {body.name: own[body.index] for body in model.bodies}
    at |= {
        frame.name: (own[frame.body] if frame.body >= 0 else np.eye(4)) @ np.array(frame.placement)
        for frame in model.frames
    }
    checks = [(f"the pose of {name!r}", X, poses[name], 1e-9) for name, X in at.items()]
    T = them.T
    if M is not None:
        checks.append(("the mass matrix", eager.mass_matrix(q), T.T @ M @ T, 1e-8))
    zero = np.zeros(model.nv)
    checks.append(("the force at rest", eager.inverse_dynamics(q, zero, zero), T.T @ still, 1e-8))
    if not them.turns:
        checks.append(("the force in motion", eager.inverse_dynamics(q, v, zero), T.T @ moving, 1e-8))
    for what, ours, theirs, allowed in checks:
        error = relative_error(theirs, ours)
        if not error < allowed:
            return f"{what} is off by {error:.1e}"
    return ""
