"""Steps with contact beside MuJoCo's: ``python -m bench.contact go2.xml g1.xml``.

Takes MJCF files of robots with a floating base whose feet have the class ``foot``, as MuJoCo Menagerie's have
(``unitree_go2/go2.xml``, ``unitree_g1/g1.xml``). Of their shapes only the feet are kept, on a floor; drives, joint
friction, dampers and limits are left out, so that both libraries have the same mechanism before them; meshes are not
needed. Both start from the file's first key frame and are pushed by the same random joint forces, new after every
``--hold`` steps: MuJoCo by ``mujoco.rollout`` on one thread with elliptic cones and its default solver, linkwise by
``contact_step`` on a batch, on one thread. Counted is the time of the thread, of all steps of a rollout, best of many.
What the laws are missed by is printed beside, since a faster answer can be a worse one.

``--gpu`` measures steps on arrays of a CUDA device (:mod:`bench.contact_gpu`): feet, whole robots, hills, environments
with resets, in both precisions, in less than eight minutes. Where MuJoCo is not installed it takes native files, which
``--save FOLDER`` writes where it is: ``python -m bench.contact go2.xml g1.xml --save robots``, then, on the machine
with the device, ``python -m bench.contact robots/*.lw.json --gpu``.

``--standing 60`` lets robots stand for so many seconds, held by springs and dampers at their joints, put on the ground
or dropped from 5 cm: how deep surfaces overlap in any step, and how far feet creep in the second half.

``--derivatives`` times derivatives of a step by q, v and joint forces, each call by itself.

``--whole`` keeps all shapes that are no meshes, which may all touch each other, and the limits of joints: robots that
stand, held by springs at their joints, and robots under random joint forces, each held for 50 steps. From states
reached so, every 25 steps, both libraries make one step.
"""

from __future__ import annotations

import argparse
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from bench import report

STEP = 0.002
STEPS = 200
BATCH = 2048
WAYS = {
    "fixed work": lw.ContactRules(sweeps=10, polish=0, rounds=1, passes=1),
    "polished": lw.ContactRules(sweeps=6, polish=1, rounds=1, passes=1),
    "default": lw.ContactRules(),
}
QUANTILES = {"median m/s": 0.5, "99 %": 0.99, "99.9 %": 0.999}
"""Of what Signorini's law is missed by."""


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.contact", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robots", nargs="+", type=Path, help="MJCF files")
    parser.add_argument("--gpu", action="store_true", help="on a CUDA device, by CuPy; files may be native ones")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write native files of the robots, for --gpu")
    parser.add_argument("--whole", action="store_true", help="whole robots, which touch themselves")
    parser.add_argument("--standing", type=float, metavar="SECONDS", help="standing robots, for so long")
    parser.add_argument("--derivatives", action="store_true", help="derivatives of a step, in both modes")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each call (default 7)")
    parser.add_argument("--hold", type=int, default=1, help="steps after which joint forces change (default 1)")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS), help="of solving (default: all)")
    options = parser.parse_args(argv)
    if options.save or options.gpu:
        from bench import contact_gpu

        if options.save:
            contact_gpu.save(options.robots, options.save)
        if options.gpu:
            contact_gpu.main(options.robots)
        return
    if options.standing:
        for path in options.robots:
            for dt in (0.002, 0.005):
                for height in (0.0, 0.05):
                    print(path.stem, f"{1e3 * dt:g} ms, from {height:g} m:", stand(path, options.standing, dt, height))
        return
    if options.derivatives:
        rows = [row for path in options.robots for row in derivatives(path, options.rounds)]
        print(report.table(list(rows[0]), [list(row.values()) for row in rows]))
        report.write("contact_derivatives", {"rows": rows})
        return
    if options.whole:
        whole_robots(options.robots, options.rounds)
        return
    rows = []
    for path in options.robots:
        rows += beside_mujoco(path, options.rounds, options.ways, options.hold)
    header = ("robot", "way", "compile s", "ns/step", "times MuJoCo", *QUANTILES, "worst", "dissipation J")
    print(report.table(header, [[row.get(key) for key in header] for row in rows]))
    report.write("contact", {"rows": rows})


def on_feet(path: Path) -> str:
    """The text of a robot whose feet alone touch a floor, with nothing at its joints but their rotors."""
    return on_a_floor(path, lambda geom: geom.get("class") == "foot", limited=False)


def on_a_floor(path: Path, touches: Callable[[ET.Element], bool], *, limited: bool, floor: bool = True) -> str:
    """The text of a robot of which some shapes touch, on a floor or without one."""
    root = ET.parse(path).getroot()
    drives = ("actuator", "position", "motor", "general")
    for parent in list(root.iter()):
        for child in list(parent):
            shape = child.tag == "geom" and parent.tag != "default" and not touches(child)
            if (
                shape
                or child.tag in ("mesh", "texture", "material", "sensor", *drives)
                or (child.tag == "contact" and not limited)
            ):
                parent.remove(child)
    for kind, names in (
        ("geom", ("material",)),
        ("joint", ("damping", "frictionloss", *(() if limited else ("range", "limited")))),
        ("key", ("ctrl",)),
    ):
        for element in root.iter(kind):
            for name in names:
                element.attrib.pop(name, None)
    world = root.find("worldbody")
    assert world is not None
    if floor:
        ET.SubElement(world, "geom", name="floor", type="plane", size="0 0 .05")
    return ET.tostring(root, encoding="unicode")


def touching(model: lw.Model, rules: lw.ContactRules) -> lw.Model:
    """The model with its feet on the ground."""
    feet = [body.name for body in model.bodies if body.collisions]
    return model.with_contacts(only=feet, material=lw.Material(friction=0.8), rules=rules)


def beside_mujoco(path: Path, rounds: int, ways: Sequence[str], hold: int) -> list[dict[str, Any]]:
    """Rows of one robot."""
    import mujoco
    from mujoco import rollout

    text = on_feet(path)
    peer = mujoco.MjModel.from_xml_string(text)
    peer.opt.cone, peer.opt.timestep = mujoco.mjtCone.mjCONE_ELLIPTIC, STEP
    data = mujoco.MjData(peer)
    mujoco.mj_resetDataKeyframe(peer, data, 0)
    rng = np.random.default_rng(0)
    forces = np.repeat(5.0 * rng.normal(size=(-(-STEPS // hold), BATCH, peer.nv)), hold, axis=0)[:STEPS]
    forces[..., :6] = 0.0
    start = np.concatenate([data.qpos[3:7], data.qpos[:3], data.qpos[7:]])
    given = np.tile(mujoco_state(mujoco, peer, data), (4, 1)), np.ascontiguousarray(forces[:, :4].swapaxes(0, 1))
    applied = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)

    def theirs() -> float:
        begin = time.thread_time()
        rollout.rollout(peer, [data], *given, control_spec=applied)
        return 1e9 * (time.thread_time() - begin) / (4 * STEPS)

    model = lw.loads(text)
    rows = []
    for way in ways:
        robot = touching(model, WAYS[way])
        started = time.process_time()
        step = robot.function("contact_step")
        dt = np.full(BATCH, STEP)

        def ours(step: Any = step, dt: Any = dt, nv: int = robot.nv) -> tuple[float, list[Any]]:
            q, v, impulses = np.tile(start, (BATCH, 1)), np.zeros((BATCH, nv)), np.zeros((BATCH, *step.inputs[3][1]))
            missed, total = [], 0.0
            for tau in forces:
                begin = time.thread_time()
                made = step(q, v, tau, impulses, dt)
                total += time.thread_time() - begin
                q, v, impulses = made.q, made.v, made.impulses
                missed.append(made.residuals)
            return 1e9 * total / (BATCH * STEPS), missed

        step(
            np.tile(start, (BATCH, 1)), *(np.zeros((BATCH, n)) for n in (robot.nv, robot.nv, step.inputs[3][1][0])), dt
        )
        compiled = time.process_time() - started
        turns = [(ours(), theirs()) for _ in range(rounds)]
        mine, peers = min(turn[0][0] for turn in turns), min(turn[1] for turn in turns)
        residuals = np.concatenate(turns[-1][0][1])
        rows.append(
            {
                "robot": path.stem,
                "way": way,
                "compile s": round(compiled, 1),
                "ns/step": round(mine),
                "times MuJoCo": round(peers / mine, 1),
                **{name: f"{np.quantile(residuals[:, 0], part):.1e}" for name, part in QUANTILES.items()},
                "worst": f"{residuals[:, 0].max():.1e}",
                "dissipation J": f"{np.quantile(residuals[:, 2], 0.999):.1e}",
                "mujoco ns/step": round(peers),
            }
        )
        print(rows[-1], flush=True)
    return rows


def derivatives(path: Path, rounds: int, count: int = 256) -> list[dict[str, Any]]:
    """Rows of one robot: a step, its derivative in reverse mode, its Jacobians; from states that stand and slide."""
    robot = touching(lw.loads(on_feet(path)), lw.ContactRules())
    step, rng = robot.function("contact_step"), np.random.default_rng(0)
    q, dt = np.tile(key_posture(path), (count, 1)), np.full(count, STEP)
    q[:, 6] -= robot.contacts.points(q[0]).gap.min()
    v, impulses = np.zeros((count, robot.nv)), np.zeros((count, *step.inputs[3][1]))
    for _ in range(20):
        tau = 5.0 * rng.normal(size=v.shape)
        tau[:, :6] = 0.0
        given = (q, v, tau, impulses, dt)
        made = step(*given)
        q, v, impulses = made.q, made.v, made.impulses
    weights = [rng.normal(size=np.shape(x)) for x in made]
    calls: dict[str, tuple[Callable[[], Any], Sequence[Any]]] = {
        "step": (lambda: step, given),
        "reverse": (lambda: step.vjp("q", "v", "tau"), (*given, *weights)),
        "Jacobians by q, v, tau": (lambda: robot.contacts.linearize_step, given),
    }
    rows = []
    for what, (make, arguments) in calls.items():
        began = time.process_time()
        call = make()
        call(*arguments)
        first, best = time.process_time() - began, float("inf")
        time.sleep(1.0)  # until the optimised code is there
        for _ in range(4 * rounds):
            began = time.thread_time()
            call(*arguments)
            best = min(best, time.thread_time() - began)
        rows.append(
            {"robot": path.stem, "of": what, "us": round(1e6 * best / count, 2), "first call s": round(first, 1)}
        )
        print(rows[-1], flush=True)
    return rows


def key_posture(path: Path) -> Any:
    """The q of a robot's first key frame."""
    key = ET.parse(path).getroot().find("keyframe/key")
    assert key is not None
    posture = np.array(key.attrib["qpos"].split(), float)
    return np.concatenate([posture[3:7], posture[:3], posture[7:]])


def stand(path: Path, duration: float, dt: float, height: float) -> str:
    """Report of a robot that is held in the posture of its first key frame, let go above the ground."""
    robot, q = touching(lw.loads(on_feet(path)), lw.ContactRules()), key_posture(path)
    q[6] += height - float(robot.contacts.points(q).gap.min())
    hold = lw.PD(robot, q, kp=300.0, kd=10.0)
    motion = lw.simulate(robot, q, duration=duration, dt=dt, method="moreau", control=hold)
    points = robot.contacts.points(motion.q)
    late = len(motion.t) // 2
    touches = points.gap[late:].max() < 1e-6
    creep = np.abs(points.point[late:] - points.point[late])[..., :2].max()
    return (
        f"overlap at most {-points.gap.min():.1e} m, in the second half {-points.gap[late:].min():.1e} m, "
        f"creep {creep:.1e} m, all feet on the ground: {touches}, speed at the end {np.abs(motion.v[-1]).max():.0e}"
    )


def mujoco_state(mujoco: Any, model: Any, data: Any) -> Any:
    """The whole physics state of one MuJoCo simulation."""
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


def whole_robots(paths: Sequence[Path], rounds: int) -> None:
    """Print a row for each robot and each way in which it is moved."""
    rows = []
    for path in paths:
        text = on_a_floor(path, lambda geom: geom.get("class") != "visual" and geom.get("mesh") is None, limited=True)
        for moved in ("standing", "random"):
            rows.append({"robot": path.stem, "moved": moved, **whole_robot(text, moved, rounds)})
            print(rows[-1], flush=True)
    print(report.table(list(rows[0]), [list(row.values()) for row in rows]))
    report.write("contact_whole", {"rows": rows})


def whole_robot(text: str, moved: str, rounds: int, count: int = 256, beside: int = 16) -> dict[str, Any]:
    """The time of a step of a robot that may touch itself, beside MuJoCo's, and what the laws are missed by."""
    import mujoco

    peer = mujoco.MjModel.from_xml_string(text)
    peer.opt.cone, peer.opt.timestep = mujoco.mjtCone.mjCONE_ELLIPTIC, STEP
    data = mujoco.MjData(peer)
    mujoco.mj_resetDataKeyframe(peer, data, 0)
    robot = lw.loads(text).with_contacts(
        material=lw.Material(friction=0.8), rules=lw.ContactRules(joint_limits=moved == "random")
    )
    step, dt, rng = robot.function("contact_step"), np.full(count, STEP), np.random.default_rng(0)
    start = np.concatenate([data.qpos[3:7], data.qpos[:3], data.qpos[7:]])
    q, v = np.tile(start, (count, 1)), 0.1 * rng.normal(size=(count, robot.nv))
    q[:, 7:] += 0.1 * rng.normal(size=(count, robot.nq - 7))
    tau, impulses = np.zeros_like(v), np.zeros((count, *step.inputs[3][1]))
    missed, batches = [], []
    for k in range(300):
        if moved == "standing":
            tau[:, 6:] = 100.0 * (start[7:] - q[:, 7:]) - 4.0 * v[:, 6:]
        elif k % 50 == 0:
            tau[:, 6:] = 5.0 * rng.normal(size=(count, robot.nv - 6))
        made = step(q, v, tau, impulses, dt)
        if k % 25 == 24 and k > 100:  # a single batch can have a state that takes as long as all others
            batches.append((q, v, tau.copy(), impulses, dt))
        q, v, impulses = made.q, made.v, made.impulses
        missed.append(made.residuals[:, 0])
    states = [
        mujoco_at(mujoco, peer, *(x[k] for x in batch[:3])) for batch in batches for k in range(beside // len(batches))
    ]

    def theirs() -> None:
        for one, *before in states:
            one.qpos[:], one.qvel[:], one.qacc_warmstart[:] = before
            mujoco.mj_step(peer, one)

    def ours() -> None:
        for batch in batches:
            step(*batch)

    best = [float("inf")] * 2
    for _ in range(max(rounds, 2)):
        for k, (call, states_each) in enumerate(((ours, count * len(batches)), (theirs, len(states)))):
            began = time.thread_time_ns()
            call()
            best[k] = min(best[k], (time.thread_time_ns() - began) / states_each)
    late = np.array(missed[100:])
    return {
        "pairs": len(robot.contacts.pairs),
        "points": round(float((made.gaps < 1.0).sum(axis=1).mean()), 1),
        "mujoco points": float(np.mean([one.ncon for one, *_ in states])),
        "us/step": round(best[0] / 1e3, 2),
        "mujoco us": round(best[1] / 1e3, 1),
        "times": round(best[1] / best[0], 1),
        **{f"missed {part:g}": f"{np.quantile(late, part):.0e}" for part in (0.5, 0.99, 0.999, 1.0)},
    }


def mujoco_at(mujoco: Any, model: Any, q: Any, v: Any, tau: Any) -> tuple[Any, ...]:
    """A MuJoCo simulation two steps after a state, so that it has warm starts, and what a step from there needs."""
    data = mujoco.MjData(model)
    data.qpos[:] = np.concatenate([q[4:7], q[:4], q[7:]])
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, data.qpos[3:7])
    data.qvel[:] = np.concatenate([R.reshape(3, 3) @ v[3:6], v[:3], v[6:]])
    data.qfrc_applied[6:] = tau[6:]
    for _ in range(2):
        mujoco.mj_step(model, data)
    return data, data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()


if __name__ == "__main__":
    main()
