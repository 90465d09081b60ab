"""Craft in orbit: ``python -m bench.space``, with ``--basilisk PYTHON`` beside Basilisk, ``--gpu`` on a CUDA device.

A hub with two hinged panels and three balanced wheels, steps of 0.05 s by RK4, as field comparisons have it: with the
central pull alone; with 8 x 8 harmonics, drag and sunlight on one area each, as Basilisk's "cannonball"; and with
drag and sunlight on ten facets, with shadow, which is more than Basilisk does here. A station with flexible arrays
flies 24 h with the same environment, by steps that its vibrations do not limit.

Times are those of the processor that this process had, so that other work on the machine counts for little; on a
device they are those of the clock. ``products`` are multiplications and divisions of one step: eight lanes of doubles
at one multiplication a cycle would take ``at best`` so many cycles.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from bench import report
from linkwise import space
from linkwise.trace.readable import count

STEP, FEW = 0.05, 16
LOW = space.Orbit(a=6778137.0, i=np.radians(51.6))


def craft() -> lw.Model:
    """A hub with two hinged panels."""
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=750.0, inertia=np.diag([900.0, 800.0, 600.0]))
    for k, x in enumerate((0.5, -0.5)):
        place = lw.transform(xyz=(x, 0, 1.0))
        com, inertia = (3.0 * x, 0.0, 0.0), np.diag([100.0, 50.0, 50.0])
        b.add_body(f"panel{k}", "hub", lw.Revolute((0, 1, 0)), place, 100.0, com, inertia, stiffness=100.0)
    return b.build()


def station(arrays: int = 2) -> lw.Model:
    """A station with flexible arrays."""
    b = lw.ModelBuilder("station", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=20e3, inertia=np.diag([8e4, 2e5, 2e5]))
    for k in range(arrays):
        beam = lw.FlexibleBody.beam(
            length=20.0, EA=1e7, EI=(2e5, 4e5), GJ=1e5, mass_per_length=20.0, elements=10, modes=4, damping=0.01
        )
        side = lw.transform(xyz=(0, 2.0 * (-1) ** k, 0), rpy=(0, 0, np.pi / 2 * (-1) ** k))
        b.add_body(f"array{k}", "hub", lw.Fixed(), side, flexible=beam)
    return b.build()


def environment(model: lw.Model, facets: Sequence[space.Facet]) -> list[lw.Element]:
    """Gravity of degree 8, drag and sunlight."""
    air = space.Exponential(1e-11, 400e3, 58e3)
    return [space.Gravity(model, 8, each_link=False), space.Drag(model, facets, air), space.Sunlight(model, facets)]


def wheels(model: lw.Model) -> list[lw.Element]:
    """Three balanced wheels."""
    return [lw.space.BalancedWheel(model, "hub", np.eye(3)[k], 0.01, start=5.0) for k in range(3)]


def cases(model: lw.Model) -> dict[str, list[lw.Element]]:
    """Elements that act, by name."""
    facets = [*space.Facet.box("hub", (1.5, 1.5, 2.0))]
    for k, x in enumerate((1.5, -1.5)):
        facets += space.Facet.plate(f"panel{k}", 4.0, (0, 0, 1), place=(x, 0, 0), specular=0.2)
    ball, air = space.Facet("hub", 2.0, None), space.Exponential(1e-11, 400e3, 58e3)
    gravity = space.Gravity(model, 8, each_link=False, tidal_degree=0)
    simple = [gravity, space.Drag(model, ball, air, turning=False), space.Sunlight(model, ball, shadow=False)]
    return {
        "central pull": [space.Gravity(model, each_link=False), *wheels(model)],
        "8x8, drag, sunlight": [*simple, *wheels(model)],
        "8x8, drag, sunlight on facets": [*environment(model, facets), *wheels(model)],
    }


def states(model: lw.Model, count: int, dtype: Any) -> tuple[Any, Any]:
    """Different starts beside the orbit."""
    rng = np.random.default_rng(0)
    q, v = np.tile(model.neutral(), (count, 1)), 0.01 * rng.normal(size=(count, model.nv))
    q[:, 4:7] = 10.0 * rng.normal(size=(count, 3))
    return q.astype(dtype), v.astype(dtype)


def products(model: lw.Model, elements: Sequence[lw.Element]) -> int:
    """Multiplications and divisions of one step."""
    plan = lw.Simulation(model, control=list(elements), method="rk4", dt=STEP, frame=LOW)._plan
    assert plan is not None
    return count(plan.routine).M


def batch_rows(gpu: bool, craft_count: int, steps: int, rounds: int) -> list[dict[str, Any]]:
    """Nanoseconds for each step of each craft."""
    clock = time.perf_counter if gpu else time.process_time
    model, rows = craft(), []
    for name, elements in cases(model).items():
        for dtype in (np.float64, np.float32):
            q, v = given = states(model, craft_count, dtype)
            options: dict[str, Any] = {"method": "rk4", "dt": STEP, "save_every": steps, "threads": 1, "frame": LOW}
            options |= {"duration": STEP * steps, "control": elements}
            if gpu:
                import cupy

                q, v = cupy.asarray(q), cupy.asarray(v)
            taken = []
            for _ in range(rounds + 1):
                before = clock()
                motion = lw.simulate(model, q, v, **options)
                end = motion.q[:FEW, -1]
                end = end.get() if gpu else end  # a device is waited for
                taken.append(clock() - before)
            first, best = taken[0], min(taken[1:])
            row = {
                "what": name,
                "precision": np.dtype(dtype).name,
                "craft": craft_count,
                "first call s": first,
                "ns/step": 1e9 * best / (craft_count * steps),
                "M steps/s": craft_count * steps / best / 1e6,
                "products": products(model, elements),
            }
            if gpu:
                there = lw.simulate(model, *(x[:FEW].astype(float) for x in given), **options)
                row["error m"] = float(np.abs(end - there.q[:, -1]).max())
            elif dtype is np.float64:
                row["at best cycles"] = row["products"] / 8
            rows.append(row)
    return rows


def station_row() -> dict[str, Any]:
    """Times real time of a flexible station."""
    model = station()
    facets = [*space.Facet.box("hub", (10.0, 4.0, 4.0))]
    for k in range(2):
        facets += space.Facet.plate(f"array{k}", 120.0, (0, 0, 1), node="tip")
    control = environment(model, facets)
    v0 = np.zeros(model.nv)
    v0[:3] = LOW.local_rate(0.0)
    options: dict[str, Any] = {
        "control": control,
        "frame": LOW,
        "method": "rodas4",
        "rtol": 1e-7,
        "output_times": [86400.0],
        "threads": 1,
    }
    lw.simulate(model, None, v0, 60.0, **{**options, "output_times": [60.0]})
    before = time.process_time()
    motion = lw.simulate(model, None, v0, 86400.0, **options)
    taken = time.process_time() - before
    return {
        "what": f"flexible station, nv {model.nv}",
        "status": motion.status,
        "s": taken,
        "x real time": 86400 / taken,
    }


def basilisk(python: str) -> dict[str, float]:
    """Microseconds a step, by what flies."""
    script = Path(__file__).with_name("space_basilisk.py")
    said = subprocess.run([python, str(script), "speed"], capture_output=True, text=True, check=True).stdout
    return {name: float(value) for name, value in re.findall(r"(.+): ([\d.]+) µs a step", said)}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.space", description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="on a CUDA device, by CuPy")
    parser.add_argument("--basilisk", help="a Python that has bsk")
    parser.add_argument("--craft", type=int, default=None, help="in a batch (default 1024, with --gpu 10000)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(argv)
    craft_count, steps = options.craft or (10_000 if options.gpu else 1024), 2000 if options.gpu else 200
    rows = batch_rows(options.gpu, craft_count, steps, options.rounds)
    peer = basilisk(options.basilisk) if options.basilisk else {}
    for row in rows:
        theirs = peer.get("hub, 2 panels, 3 wheels" + ("" if "central" in row["what"] else ", 8x8, drag, sunlight"))
        row["times Basilisk"] = None if theirs is None else 1e3 * theirs / row["ns/step"]
    header = ("what", "precision", "craft", "first call s", "ns/step", "M steps/s", "products")
    header += ("error m",) if options.gpu else ("at best cycles", "times Basilisk")
    print(report.table(header, [[row.get(key) for key in header] for row in rows]))
    found: dict[str, Any] = {"rows": rows, "basilisk": peer}
    if not options.gpu:
        found["station"] = station_row()
        print(found["station"])
    report.write("space_gpu" if options.gpu else "space", found)


if __name__ == "__main__":
    main()
