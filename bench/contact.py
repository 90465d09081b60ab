"""Steps with contact beside MuJoCo's: ``python -m bench.contact go2.xml g1.xml``.

Takes MJCF files of robots with a floating base whose feet have the class ``foot``, as MuJoCo Menagerie's have
(``unitree_go2/go2.xml``, ``unitree_g1/g1.xml``). Of their shapes only the feet are kept, on a floor;
meshes are not needed. Both libraries start from the same standing states, are pushed by the same random joint forces,
new for each step, and make the same number of steps: MuJoCo by ``mujoco.rollout`` on one thread with elliptic cones and
its default solver, linkwise by ``contact_step`` on a batch, on one thread. Times are by turns, best of many. What the
laws are missed by is printed beside, since a faster answer can be a worse one.

``--gpu`` measures the same step on arrays of a CUDA device.
"""

from __future__ import annotations

import argparse
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from bench import report
from bench.timing import Call, best_ns

STEP = 0.002
BATCH = 1024
WAYS = {
    "fixed work": lw.ContactRules(sweeps=10, polish=0, rounds=1, passes=1),
    "polished": lw.ContactRules(sweeps=6, polish=1, rounds=1, passes=1),
    "default": lw.ContactRules(),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.contact", description=__doc__)
    parser.add_argument("robots", nargs="+", type=Path, help="MJCF files, or native ones where MuJoCo is not installed")
    parser.add_argument("--gpu", action="store_true", help="on a CUDA device, by CuPy")
    parser.add_argument("--rounds", type=int, default=30, help="turns of each call (default 30)")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS), help="of solving (default: all)")
    options = parser.parse_args(argv)
    measure = on_gpu if options.gpu else beside_mujoco
    rows = [row for path in options.robots for row in measure(path, options.rounds, options.ways)]
    header = ("robot", "way", "compile s", "ns/step", "times MuJoCo", "Signorini m/s", "dissipation J")
    print(report.table(header, [[row.get(key) for key in header] for row in rows]))
    report.write("contact", {"rows": rows})


def on_feet(path: Path) -> str:
    """The text of a robot whose feet alone touch a floor."""
    root = ET.parse(path).getroot()
    for parent in list(root.iter()):
        for child in list(parent):
            shape = child.tag == "geom" and parent.tag != "default" and child.get("class") != "foot"
            if shape or child.tag in ("mesh", "texture", "material", "sensor", "contact"):
                parent.remove(child)
    for geom in root.iter("geom"):
        geom.attrib.pop("material", None)
    world = root.find("worldbody")
    assert world is not None
    ET.SubElement(world, "geom", name="floor", type="plane", size="0 0 .05")
    return ET.tostring(root, encoding="unicode")


def standing(model: lw.Model, height: float, count: int) -> dict[str, Any]:
    """States near the neutral one, and joint forces."""
    rng = np.random.default_rng(0)
    q = np.tile(model.neutral(), (count, 1))
    q[:, 6] = height
    q[:, 7:] += 0.1 * rng.normal(size=(count, model.nq - 7))
    tau = 5.0 * rng.normal(size=(count, model.nv))
    tau[:, :6] = 0.0
    return {"q": q, "v": 0.1 * rng.normal(size=(count, model.nv)), "tau": tau}


def touching(model: lw.Model, rules: lw.ContactRules) -> lw.Model:
    """The model with its feet on the ground."""
    feet = [body.name for body in model.bodies if body.collisions]
    return model.with_contacts(only=feet, material=lw.Material(friction=0.8), rules=rules)


def beside_mujoco(path: Path, rounds: int, ways: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of one robot."""
    import mujoco
    from mujoco import rollout

    text = on_feet(path)
    peer = mujoco.MjModel.from_xml_string(text)
    peer.opt.cone, peer.opt.timestep = mujoco.mjtCone.mjCONE_ELLIPTIC, STEP
    data = mujoco.MjData(peer)
    mujoco.mj_resetDataKeyframe(peer, data, 0)
    steps = 200
    states = np.tile(mujoco_state(mujoco, peer, data), (4, 1))
    control = data.ctrl + 0.1 * np.random.default_rng(0).normal(size=(4, steps, peer.nu))
    model = lw.loads(text)
    rows = []
    for way in ways:
        robot = touching(model, WAYS[way])
        given = standing(robot, float(data.qpos[2]), BATCH)
        started = time.perf_counter()
        step = robot.function("contact_step")
        impulses = np.zeros((BATCH, *step.inputs[3][1]))
        q, v = given["q"], given["v"]
        for _ in range(100):  # until most feet stand
            made = step(q, v, given["tau"], impulses, np.full(BATCH, STEP))
            q, v, impulses = made.q, made.v, made.impulses
            if "compiled" not in given:
                given["compiled"] = time.perf_counter() - started
        calls = [
            Call(step, (q, v, given["tau"], impulses, np.full(BATCH, STEP)), states=BATCH),
            Call(rollout.rollout, (peer, [data], states, control), states=4 * steps),
        ]
        ours, theirs = best_ns(calls, rounds=rounds)
        missed = made.residuals.max(axis=0)
        rows.append(
            {
                "robot": path.stem,
                "way": way,
                "compile s": round(given["compiled"], 1),
                "ns/step": round(ours),
                "times MuJoCo": round(theirs / ours, 1),
                "Signorini m/s": f"{missed[0]:.1e}",
                "dissipation J": f"{missed[2]:.1e}",
                "mujoco ns/step": round(theirs),
            }
        )
        print(rows[-1], flush=True)
    return rows


def mujoco_state(mujoco: Any, model: Any, data: Any) -> Any:
    """The whole physics state of one MuJoCo simulation."""
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


def on_gpu(path: Path, rounds: int, ways: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of one robot on a CUDA device, in single and in double precision."""
    import cupy as cp

    model = lw.load(path) if path.suffix == ".json" else lw.loads(on_feet(path))
    rows = []
    for way in ways:
        robot = touching(model, WAYS[way])
        step = robot.function("contact_step")
        for dtype, count in ((np.float32, 262_144), (np.float64, 131_072)):
            given = standing(robot, 0.3 if robot.nv < 20 else 0.8, count)
            arrays = [given["q"], given["v"], given["tau"], np.zeros((count, *step.inputs[3][1])), np.full(count, STEP)]
            q, v, tau, impulses, dt = (cp.asarray(array.astype(dtype)) for array in arrays)
            started = time.perf_counter()
            made = step(q, v, tau, impulses, dt)
            cp.cuda.Device().synchronize()
            first = time.perf_counter() - started
            for _ in range(100):
                made = step(made.q, made.v, tau, made.impulses, dt)
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            best = float("inf")
            for _ in range(rounds):
                begin.record()
                step(made.q, made.v, tau, made.impulses, dt)
                end.record()
                end.synchronize()
                best = min(best, 1e6 * cp.cuda.get_elapsed_time(begin, end) / count)
            missed = cp.asnumpy(made.residuals.max(axis=0))
            rows.append(
                {
                    "robot": path.stem,
                    "way": f"{way}, {np.dtype(dtype).name}",
                    "compile s": round(first, 1),
                    "ns/step": round(best, 2),
                    "Signorini m/s": f"{missed[0]:.1e}",
                    "dissipation J": f"{missed[2]:.1e}",
                }
            )
            print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    main()
