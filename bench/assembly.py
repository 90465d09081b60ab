"""How many starts of parallel robots are closed: ``python -m bench.assembly ROBOTS [--starts 1000] [--reference 20]``.

ROBOTS is the folder ``robots`` of a checkout of ``example-parallel-robots`` (Gepetto): each folder in it with a URDF
and a ``robot.yaml`` is one robot. It is assembled from the file's zero, and from random starts of which each freedom is
within 0.25 rad (or m) of that; with ``--reference``, SciPy's trust region runs on the same residuals from as many of
the same starts. Of a robot that stays open, each loop is tried alone, by SciPy and from all over: what that leaves is a
distance that no choice of starts takes away. ``--pinocchio`` tries the same without a line of linkwise: Pinocchio's
model of the URDF, its ``log6``, SciPy, so many starts; and it looks for a direction along which the two ends of a loop
are equally far from each other in all positions, which proves that it never closes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw

AROUND = 0.25
ALL_OVER = 30


def main() -> None:
    """Print a line for each robot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", type=Path)
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--reference", type=int, default=0, help="starts from which SciPy's trust region runs too")
    parser.add_argument("--pinocchio", type=int, default=0, help="starts of each loop alone, by Pinocchio and SciPy")
    parser.add_argument("--only", default="", help="robots whose names contain this")
    args = parser.parse_args()
    warnings.simplefilter("ignore", lw.errors.ModelWarning)
    print(f"{'robot':24s} nv  eqs  zero      starts closed   s    SciPy closed")
    closed_from_zero, robots = 0, 0
    for folder in sorted({file.parent for file in args.robots.rglob("*.urdf")}):
        side, name = folder / "robot.yaml", str(folder.relative_to(args.robots))
        if not side.exists() or args.only not in name:
            continue
        try:
            model = lw.load(next(folder.glob("*.urdf")), loops=side)
        except lw.LinkwiseError as error:
            print(f"{name:24s} cannot be loaded: {str(error).splitlines()[0]}")
            continue
        if args.pinocchio:
            print(name)
            by_pinocchio(folder, args.pinocchio)
            continue
        robots += 1
        closed_from_zero += one(name, model, args.starts, args.reference)
    if robots:
        print(f"{closed_from_zero} of {robots} assembled from zero")


def one(name: str, model: lw.Model, starts: int, reference: int) -> bool:
    """Measure one robot; whether it is assembled from its zero."""
    equations = sum(len(c.equations) for c in model.closures)
    line = f"{name:24s} {model.nv:3d} {equations:4d}"
    why = ""
    try:
        left = float(np.abs(model.closure_error(model.assemble(model.neutral()))).max())
        line += f"  {left:.1e}"
    except lw.errors.ClosureError as error:
        line, why = line + "  open   ", str(error)
    q = around(model, starts)
    began = time.perf_counter()
    limits = "ignore" if "within the joint limits" in why else "respect"
    told, why = why, "" if limits == "ignore" else why
    ours = 0 if why else closed(model, q, limits)
    line += f"  {ours:5d} of {0 if why else starts:5d}  {time.perf_counter() - began:6.1f}"
    if reference:
        line += f"  {sum(np.abs(by_scipy(model, start).fun).max() < 1e-9 for start in q[:reference]):4d} of {reference}"
    print(line + ("  limits ignored" if limits == "ignore" else ""), flush=True)
    if told:
        print("    " + told.replace("\n", "\n    "))
    if why:
        alone(model)
    return not told


def around(model: lw.Model, starts: int) -> np.ndarray:
    """Random configurations (starts, nq) near the zero position."""
    away = np.random.default_rng(0).uniform(-AROUND, AROUND, (starts, model.nv))
    return np.asarray(model.integrate(model.neutral(), away))


def closed(model: lw.Model, q: np.ndarray, limits: str, size: int = 100) -> int:
    """How many of some starts are closed; a batch that is refused is split."""
    if len(q) > size:
        return sum(closed(model, q[k : k + size], limits) for k in range(0, len(q), size))
    try:
        return int((np.abs(model.closure_error(model.assemble(q, limits=limits))).max(-1) <= 1e-12).sum())
    except lw.errors.ClosureError:
        half = len(q) // 2
        return 0 if len(q) == 1 else closed(model, q[:half], limits) + closed(model, q[half:], limits)


def by_scipy(model: lw.Model, start: np.ndarray, rows: Any = slice(None)) -> Any:
    """SciPy's trust region from a start, in the tangent space there."""
    from scipy.optimize import least_squares

    return least_squares(
        lambda d: model.closure_error(model.integrate(start, d))[rows],
        np.zeros(model.nv),
        jac="2-point" if model.nq != model.nv else lambda d: model.constraints.jacobian(start + d)[rows],
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=500,
    )


def alone(model: lw.Model) -> None:
    """Print the loops that SciPy cannot close by themselves either, from zero and from all over."""
    rng, first = np.random.default_rng(0), 0
    for closure in model.closures:
        rows = slice(first, first + len(closure.type.equations))
        first = rows.stop
        least = np.inf
        for k in range(ALL_OVER):
            start = model.integrate(model.neutral(), rng.uniform(-np.pi, np.pi, model.nv) * (k > 0))
            found = by_scipy(model, np.asarray(start), rows).fun
            if np.linalg.norm(found) < least:
                least, kept = float(np.linalg.norm(found)), found
            if least < 1e-9:
                break
        if least >= 1e-9:
            print(f"    alone, {closure.name!r} is never nearer than {least:.8f}: {np.round(kept, 6).tolist()}")


def by_pinocchio(folder: Path, starts: int) -> None:
    """Print the loops of a robot that Pinocchio and SciPy cannot close by themselves, and why."""
    import pinocchio as pin
    import yaml
    from scipy.optimize import least_squares

    model = pin.buildModelFromUrdf(str(next(folder.glob("*.urdf"))))
    data, q0, rng = model.createData(), pin.neutral(model), np.random.default_rng(0)
    side = yaml.safe_load((folder / "robot.yaml").read_text())
    for names, kind in zip(side["closed_loop"], side["type"], strict=True):
        ends = [model.getFrameId(name) for name in names]
        ways = [set(model.supports[model.frames[end].parentJoint]) for end in ends]
        joints = [model.joints[joint] for joint in ways[0] ^ ways[1]]
        own = [joint.idx_v + k for joint in joints for k in range(joint.nv)]

        def placed(moved: np.ndarray, own: list[int] = own, ends: list[int] = ends) -> Any:
            v = np.zeros(model.nv)
            v[own] = moved
            pin.framesForwardKinematics(model, data, pin.integrate(model, q0, v))
            return [data.oMf[end].copy() for end in ends]

        def left(moved: np.ndarray, kind: str = kind, placed: Any = placed) -> np.ndarray:
            a, b = placed(moved)
            between = a.actInv(b)
            return np.asarray(pin.log6(between).vector if kind.upper() == "6D" else between.translation)

        least = np.inf
        for k in range(starts):
            start = rng.uniform(-np.pi, np.pi, len(own)) * (k > 0)
            found = least_squares(left, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
            least = min(least, float(np.linalg.norm(found.fun)))
            if least < 1e-9:
                break
        if least < 1e-9:
            continue
        pairs = [placed(rng.uniform(-np.pi, np.pi, len(own))) for _ in range(60)]
        gaps = np.array([b.translation - a.translation for a, b in pairs])
        _, spread, directions = np.linalg.svd(gaps - gaps.mean(axis=0))
        always = f"; {abs(gaps.mean(axis=0) @ directions[2]):.6f} m apart along one direction in 60 random positions"
        print(f"    {names[0]} - {names[1]}: never nearer than {least:.8f}" + (always if spread[2] < 1e-11 else ""))


if __name__ == "__main__":
    main()
