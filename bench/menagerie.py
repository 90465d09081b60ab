"""Scenes of MuJoCo Menagerie with all their contacts: ``python -m bench.menagerie FOLDER [--only NAME] [--limit 240]``.

FOLDER is a checkout of ``mujoco_menagerie``. Each of its scene files is a process of its own with a time limit: it is
loaded, all distances are taken, and it is simulated for 100 steps, of 2 ms or the file's own if those are less, from
where the file has its bodies, nothing driving it. A line says what each of these took (CPU s, first calls, empty
cache), how many points are kept and how many found no room, by how much laws were missed at most (m/s), the deepest
overlap (mm) at the start and at the end, by how much energy rose in a step at most (relative to the largest kinetic
energy), and how far bodies are from MuJoCo's after 25 steps (mm, median and largest), whose surfaces and limits are
soft.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

STEPS, COMPARED, STEP = 100, 25, 0.002
NO_CONTACT = "can touch"  # as the error of a model says without shapes: there is nothing to measure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each scene."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="scenes whose paths contain this")
    parser.add_argument("--limit", type=float, default=240.0, help="s, for each scene")
    parser.add_argument("--one", action="store_true", help="the scene FOLDER alone, in this process; prints JSON")
    args = parser.parse_args(arguments)
    if args.one:
        print(json.dumps(one(args.folder)))
        return
    print(HEAD)
    failed = 0
    for scene in sorted(args.folder.glob("*/scene*.xml")):
        name = str(scene.relative_to(args.folder))
        if args.only not in name:
            continue
        try:
            told, error = _in_a_process(scene, args.limit)
        except subprocess.TimeoutExpired:
            told, error = None, f"not done after {args.limit:g} s"
        failed += told is None and NO_CONTACT not in error
        print(f"{name:48s} {_line(told) if told else error}", flush=True)
    print(f"{failed} failed")


HEAD = f"{'scene':48s}  nv pairs  load hulls  dist   sim  points   residual overlap (mm)   energy  beside (mm)"


def _line(told: dict[str, Any]) -> str:
    times = " ".join(f"{told[k]:5.1f}" for k in ("load", "hulls", "distances", "simulated"))
    overlaps = f"{told['overlap'][0]:6.2f} {told['overlap'][1]:6.2f}"
    beside = "" if told["beside"] is None else "{:.2f} {:.2f}".format(*told["beside"])
    points = f"{told['points']:3d} {told['overflow']:4d}"
    return (
        f"{told['nv']:3d} {told['pairs']:5d} {times} {points}  {told['residual']:9.1e} "
        f"{overlaps} {told['rise']:9.1e}  {beside} {told['said']}"
    )


def _in_a_process(scene: Path, limit: float) -> tuple[dict[str, Any] | None, str]:
    command = [sys.executable, "-m", "bench.menagerie", str(scene), "--one"]
    fresh = {**os.environ, "LINKWISE_CACHE": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, env=fresh)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line and not line.startswith(" ")]
        return None, f"exit {done.returncode}: {lines[-1] if lines else ''}"
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told, ""


def one(scene: Path) -> dict[str, Any]:
    """Measure one scene."""
    times: list[float] = [time.process_time()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = lw.load(scene)
        times.append(time.process_time())
        model = model if model.contacts.scene else model.with_contacts()
        times.append(time.process_time())
        start = model.distances(model.start)
        times.append(time.process_time())
        step = min(STEP, _step(scene))
        motion = lw.simulate(model, duration=STEPS * step, dt=step, method="moreau")
        touched = motion.contacts
        times.append(time.process_time())
    end = model.distances(motion.q[-1])
    kinetic = model.kinetic_energy(motion.q, motion.v)
    energy = motion.energy
    scale = max(float(kinetic.max()), 1e-6)
    load, hulls, distances, simulated = np.diff(times).tolist()
    said = sorted(
        {str(w.message).splitlines()[0][:60] for w in caught if issubclass(w.category, lw.errors.IntegrationWarning)}
    )
    return {
        "nv": model.nv,
        "pairs": len(model.contacts.pairs),
        "load": load,
        "hulls": hulls,
        "distances": distances,
        "simulated": simulated,
        "points": int(touched.gap.shape[-1]),
        "overflow": int(touched.overflow.max()),
        "residual": float(touched.residual[..., 0].max()),
        "overlap": [max(0.0, -1e3 * float(d.min())) for d in (start, end)],
        "rise": float(np.diff(energy).max()) / scale,
        "beside": _beside(scene, model, motion),
        "said": "; ".join(said),
    }


def _step(scene: Path) -> float:
    """The file's own step, s."""
    import mujoco

    return float(mujoco.MjModel.from_xml_path(str(scene)).opt.timestep)


def _beside(scene: Path, model: lw.Model, motion: Any) -> list[float] | None:
    """Distances of bodies from where MuJoCo has them, mm: median and largest."""
    import mujoco

    m = mujoco.MjModel.from_xml_path(str(scene))
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    d = mujoco.MjData(m)
    if m.nkey:
        named = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_KEY, "start")
        mujoco.mj_resetDataKeyframe(m, d, max(named, 0))
    d.qvel[:] = 0.0
    m.opt.timestep = 0.1 * min(STEP, m.opt.timestep)
    for _ in range(10 * COMPARED):
        mujoco.mj_step(m, d)
    poses = model.poses(motion.q[COMPARED])
    away = []
    for body, pose in zip(model.bodies, poses, strict=True):
        number = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, body.name)
        if number >= 0:
            away.append(1e3 * float(np.linalg.norm(pose[:3, 3] - d.xpos[number])))
    return [float(np.median(away)), float(np.max(away))] if away else None


if __name__ == "__main__":
    main()
