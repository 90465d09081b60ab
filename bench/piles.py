"""Boxes that fall into a heap: ``python -m bench.piles [--boxes 1000] [--duration 1.0] [--dt 0.004]``.

Prints, at some times, how long steps take, how many contacts press, and what the laws are missed by.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import linkwise as lw
from linkwise.sim.piles.run import Pile

EDGE = 0.1
"""m."""


def heap(count: int) -> tuple[lw.Model, np.ndarray]:
    """Boxes in the air, turned at random, and where they are."""
    b = lw.ModelBuilder("heap")
    for k in range(count):
        b.add_body(f"box {k}", joint=lw.Free(), shape=lw.shapes.box((EDGE,) * 3, density=1000))
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    side = max(1, round(count ** (1 / 3)))
    k = np.arange(count)
    places = np.stack([k % side, k // side % side, 0.6 + k // side**2], axis=1) * 1.8 * EDGE
    turns = np.random.default_rng(0).normal(size=(count, 4))
    return model, np.hstack([turns / np.linalg.norm(turns, axis=1, keepdims=True), places]).ravel()


def main() -> None:
    """Print a line for each twentieth of the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boxes", type=int, default=1000)
    parser.add_argument("--duration", type=float, default=1.0)
    parser.add_argument("--dt", type=float, default=0.004)
    args = parser.parse_args()
    began = time.perf_counter()
    model, q0 = heap(args.boxes)
    pile = Pile(model, q0, np.zeros(model.nv))
    print(f"made in {time.perf_counter() - began:.1f} s")
    steps = round(args.duration / args.dt)
    print(
        f"{'t [s]':>7} {'ms a step':>10} {'contacts':>9} {'missed [m/s]':>13} {'least gap [m]':>14} {'energy [J]':>11}"
    )
    since, last = time.perf_counter(), 0
    for k in range(1, steps + 1):
        pile.advance(args.dt)
        if k % max(1, steps // 20) == 0 or k == steps:
            touched, now = pile.touched, time.perf_counter()
            assert touched is not None
            missed, gap = touched.missed.max(initial=0.0), touched.contacts.gap.min(initial=np.inf)
            took = 1e3 * (now - since) / (k - last)
            print(
                f"{k * args.dt:7.3f} {took:10.1f} {len(touched.missed):9d} {missed:13.1e} {gap:14.1e} {pile.energy:11.3f}"
            )
            since, last = time.perf_counter(), k


if __name__ == "__main__":
    main()
