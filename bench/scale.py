"""Cost against the number of links, the batch and the threads: ``python -m bench.scale``.

Serial chains and random trees with hinges in random places; Pinocchio beside them as far as it goes. Prints tables,
writes the numbers to ``bench/results/`` and, with ``--plot``, a picture beside them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw
from bench import report
from bench.robots import ROBOTS
from bench.timing import Call, best_ns
from linkwise.functions.rolled.rolled_function import RolledFunction

SIZES = (100, 1000, 10_000, 100_000)
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
PINOCCHIO_UP_TO = 500  # its Data takes memory in n³

Array = Any


def mechanism(n: int, branched: bool, seed: int = 0) -> lw.Model:
    """A chain, or a tree whose links hang a few places back, of n hinges."""
    rng = np.random.default_rng(seed)
    builder = lw.ModelBuilder("tree" if branched else "chain")
    for i in range(n):
        back = int(rng.geometric(0.3)) if branched else 1
        builder.add_body(
            f"link{i}",
            "world" if i == 0 else f"link{max(0, i - back)}",
            lw.Revolute(rng.normal(size=3)),
            placement=lw.transform(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)),
            mass=1.0 + rng.random(),
            com=rng.normal(size=3) * 0.1,
            inertia=np.diag((0.1, 0.12, 0.05)),
        )
    return builder.build()


def from_arrays(n: int, branched: bool, seed: int = 0) -> lw.Model:
    """A mechanism of the same sort, from arrays."""
    rng = np.random.default_rng(seed)
    back = rng.geometric(0.3, n) if branched else np.ones(n, int)
    placements = np.tile(np.eye(4), (n, 1, 1))
    placements[:, :3, :3] = Rotation.from_rotvec(rng.normal(size=(n, 3))).as_matrix()
    placements[:, :3, 3] = rng.normal(size=(n, 3)) * 0.3
    parents = np.maximum(np.arange(n) - back, np.minimum(np.arange(n) - 1, 0))
    axes, masses, coms = rng.normal(size=(n, 3)), 1.0 + rng.random(n), rng.normal(size=(n, 3)) * 0.1
    builder = lw.ModelBuilder("tree" if branched else "chain")
    inertia = np.diag((0.1, 0.12, 0.05))
    builder.add_bodies("link", parents, lw.Revolute, placements, masses, coms, inertia, axes=axes)
    return builder.build()


def lay_out(model: lw.Model) -> None:
    """Lay out the links, as the first use of a program with loops over them does."""
    function = model.function("inverse_dynamics")
    assert isinstance(function, RolledFunction)
    assert function.rolled_program is not None


def to_the_first_result(rounds: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """CPU seconds from arrays, or body by body, to a model, to its tables, to a first result; best of several."""
    rows = []
    for n in (*sizes[:-1], min(20_000, sizes[-1]), sizes[-1]):
        for how, make in (("arrays", from_arrays), ("body by body", mechanism)):
            for shape in ("chain", "tree"):
                best = [np.inf] * 3
                for _ in range(max(2, rounds // 4)):
                    moments = [time.process_time()]
                    model = make(n, shape == "tree").with_sweeps("rolled")
                    moments.append(time.process_time())
                    lay_out(model)
                    moments.append(time.process_time())
                    model.inverse_dynamics(*state(n, 1))
                    moments.append(time.process_time())
                    best = [min(b, x) for b, x in zip(best, np.diff(moments), strict=True)]
                rows.append({"n": n, "from": how, "shape": shape})
                rows[-1] |= dict(zip(("build s", "lay out s", "first call s"), best, strict=True))
                rows[-1]["together s"] = sum(best)
    return rows


def mass_matrices(rounds: int) -> list[dict[str, Any]]:
    """One half by inward sweeps against products with unit vectors, in turn; CPU time, best of many."""
    rows = []
    for n in (100, 300, 1000, 3000):
        for branched in (False, True):
            model = from_arrays(n, branched).with_sweeps("rolled")
            q, _, x = state(n, 1)
            units, out, product = np.eye(n), np.empty((n, n)), np.empty((n, n))
            calls = {
                "by products ms": partial(model.mass_product, q, units, out=product),
                "mass_matrix ms": partial(model.mass_matrix, q, out=out),
                "mass_matrix, fresh ms": partial(model.mass_matrix, q),
                "mass_solve ms": partial(model.mass_solve, q, x),
            }
            best = dict.fromkeys(calls, np.inf)
            for _ in range(max(4, rounds)):
                for name, call in calls.items():
                    begun = time.process_time()
                    call()
                    best[name] = min(best[name], 1e3 * (time.process_time() - begun))
            scale = np.sqrt(np.outer(np.diag(out), np.diag(out)))
            difference = float((np.abs(out - product) / scale).max())
            rows.append({"n": n, "shape": "tree" if branched else "chain", **best, "difference": difference})
    return rows


def state(n: int, count: int) -> tuple[Array, ...]:
    """Random coordinates, velocities and forces."""
    rng = np.random.default_rng(1)
    shape = (n,) if count == 1 else (count, n)
    return tuple(rng.normal(size=shape) * 0.3 for _ in range(3))


def against_n(branched: bool, sizes: tuple[int, ...], rounds: int) -> list[dict[str, Any]]:
    """Building, compiling and running, for each size."""
    rows = []
    for n in sizes:
        started = time.perf_counter()
        model = from_arrays(n, branched).with_sweeps("rolled")
        built = time.perf_counter()
        lay_out(model)
        laid_out = time.perf_counter()
        row: dict[str, Any] = {"n": n, "build_s": built - started, "layout_s": laid_out - built}
        batch = max(16, min(512, 2_000_000 // n))
        for name in FUNCTIONS:
            function = getattr(model, name)
            begun = time.perf_counter()
            function(*state(n, 1))
            function(*state(n, batch))
            row[f"{name} compile_s"] = time.perf_counter() - begun
            one, many = state(n, 1), state(n, batch)
            out_one, out_many = np.empty(n), np.empty((batch, n))
            calls = [
                Call(function, one, {"out": out_one}),
                Call(function, many, {"out": out_many}, states=batch),
            ]
            turns = rounds if n < 50_000 else max(3, rounds // 4)
            single, batched = best_ns(calls, rounds=turns, seconds_each=0.02)
            row[f"{name} one ns/link"], row[f"{name} batch ns/link"] = single / n, batched / n
        rows.append(row)
    return rows


def pinocchio_chain(model: lw.Model) -> Any:
    """The same chain in Pinocchio."""
    import pinocchio as pin

    theirs = pin.Model()
    for body, joint in zip(model.bodies, model.joints, strict=True):
        pose = np.array(body.placement)
        where = theirs.addJoint(
            body.index, pin.JointModelRevoluteUnaligned(np.array(joint.type.axis)), pin.SE3(pose), joint.name
        )
        part = body.parts[0]
        xx, yy, zz, xy, xz, yz = part.inertia
        inertia = np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
        theirs.appendBodyToJoint(where, pin.Inertia(part.mass, np.array(part.com), inertia), pin.SE3.Identity())
    return theirs


def against_pinocchio(rounds: int) -> list[dict[str, Any]]:
    """One state of a chain, forward dynamics, side by side."""
    import pinocchio as pin

    rows = []
    for n in (100, 300, PINOCCHIO_UP_TO):
        model = from_arrays(n, branched=False).with_sweeps("rolled")
        theirs = pinocchio_chain(model)
        data = theirs.createData()
        q, v, tau = state(n, 1)
        ours, reference = model.forward_dynamics(q, v, tau), pin.aba(theirs, data, q, v, tau)
        times = best_ns(
            [Call(model.forward_dynamics, (q, v, tau)), Call(pin.aba, (theirs, data, q, v, tau))], rounds=rounds
        )
        rows.append(
            {
                "n": n,
                "linkwise ns/link": times[0] / n,
                "pinocchio ns/link": times[1] / n,
                "ratio": times[1] / times[0],
                "disagreement": float(np.abs(ours - reference).max() / np.abs(reference).max()),
            }
        )
    return rows


def against_unrolled(rounds: int) -> list[dict[str, Any]]:
    """Rolled against unrolled on robots, batch of 4096."""
    rows = []
    for robot in ("panda", "g1"):
        spec = ROBOTS[robot]
        unrolled = lw.load(spec.path, locked=spec.locked).with_sweeps("unrolled")
        rolled = unrolled.with_sweeps("rolled")
        rng = np.random.default_rng(0)
        q, v, x = (rng.normal(size=(4096, unrolled.nv)) for _ in range(3))
        for name in FUNCTIONS:
            out = np.empty_like(v)
            expected, got = getattr(unrolled, name)(q, v, x), getattr(rolled, name)(q, v, x)
            calls = [Call(getattr(m, name), (q, v, x), {"out": out}, states=len(q)) for m in (unrolled, rolled)]
            times = best_ns(calls, rounds=rounds)
            rows.append(
                {
                    "robot": robot,
                    "function": name,
                    "unrolled ns": times[0],
                    "rolled ns": times[1],
                    "slower by": times[1] / times[0],
                    "disagreement": float(np.abs(got - expected).max() / np.abs(expected).max()),
                }
            )
    return rows


def segments(rounds: int, n: int = 100_000) -> list[dict[str, Any]]:
    """One state of a very long chain, link after link and in segments side by side."""
    model = from_arrays(n, branched=False).with_sweeps("rolled")
    q, v, tau = state(n, 1)
    expected = model.forward_dynamics(q, v, tau)
    calls = [Call(model.forward_dynamics, (q, v, tau))]
    calls += [Call(model.forward_dynamics, (q, v, tau), {"threads": 2})]
    times = best_ns(calls, rounds=rounds, seconds_each=0.05)
    scale = np.abs(model.bias_force(q, v)).max()
    rows = []
    for label, call, ns in zip(("link after link", "segments, 2 threads"), calls, times, strict=True):
        vdot = call()
        rows.append(
            {
                "how": label,
                "ms": ns * 1e-6,
                "faster by": times[0] / ns,
                "difference in v̇": float(np.abs(vdot - expected).max() / np.abs(expected).max()),
                "residual in τ": float(np.abs(model.inverse_dynamics(q, v, vdot) - tau).max() / scale),
            }
        )
    return rows


def against_batch_and_threads(rounds: int, n: int = 1000) -> list[dict[str, Any]]:
    """Forward dynamics of a chain for growing batches, on one thread and on two."""
    model = from_arrays(n, branched=False).with_sweeps("rolled")
    rows = []
    for batch in (1, 8, 64, 512):
        states = state(n, batch)
        calls = [Call(model.forward_dynamics, states, {"threads": t}, states=batch) for t in (1, 2)]
        one, two = best_ns(calls, rounds=rounds)
        rows.append({"batch": batch, "1 thread ns/link": one / n, "2 threads ns/link": two / n, "ratio": one / two})
    return rows


def plot(results: dict[str, Any], path: Any) -> None:
    """Time per link against the number of links."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for shape in ("chains", "trees"):
        rows = results[shape]
        for name in FUNCTIONS:
            for how in ("one", "batch"):
                times = [row[f"{name} {how} ns/link"] for row in rows]
                axes.loglog(
                    [row["n"] for row in rows], times, "o-" if how == "one" else "s--", label=f"{shape}, {name}, {how}"
                )
    axes.set_xlabel("links")
    axes.set_ylabel("ns per link and state")
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--plot", action="store_true", help="also draw time per link against links")
    arguments = parser.parse_args()
    sizes = tuple(n for n in SIZES if n <= arguments.largest)
    results: dict[str, Any] = {}
    for title, made in (
        ("to the first result", lambda: to_the_first_result(arguments.rounds, sizes)),
        ("mass matrices", lambda: mass_matrices(arguments.rounds)),
        ("rolled against unrolled", lambda: against_unrolled(arguments.rounds)),
        ("chains beside Pinocchio", lambda: against_pinocchio(arguments.rounds)),
        ("batches and threads", lambda: against_batch_and_threads(arguments.rounds)),
        ("segments", lambda: segments(arguments.rounds, sizes[-1])),
        ("chains", lambda: against_n(False, sizes, arguments.rounds)),
        ("trees", lambda: against_n(True, sizes, arguments.rounds)),
    ):
        print(f"\n{title}", flush=True)
        rows = results[title] = made()
        print(report.table(list(rows[0]), [list(row.values()) for row in rows]), flush=True)
    path = report.write("scale", results)
    if arguments.plot:
        plot(results, path.with_suffix(".png"))
    print(f"\n{path}")


if __name__ == "__main__":
    main()
