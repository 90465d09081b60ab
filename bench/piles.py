"""Boxes that fall into a heap: ``python -m bench.piles [--boxes 1000] [--duration 1.0] [--dt 0.004]``.

Prints, at some times, how long steps take, how many contacts press, and what the laws are missed by.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import linkwise as lw
from linkwise.sim.piles.pile_run import Pile

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
    heads = ("t [s]", "ms a step", "contacts", "missed [m/s]", "gap [m]", "energy [J]")
    print(" ".join(f"{head:>12}" for head in heads))
    since, last = time.perf_counter(), 0
    for k in range(1, steps + 1):
        pile.advance(args.dt)
        if k % max(1, steps // 20) == 0 or k == steps:
            touched, now = pile.touched, time.perf_counter()
            assert touched is not None
            missed, gap = touched.missed.max(initial=0.0), touched.contacts.gap.min(initial=np.inf)
            took = 1e3 * (now - since) / (k - last)
            numbers = (k * args.dt, took, len(touched.missed), missed, gap, pile.energy)
            print(" ".join(f"{number:12.5g}" for number in numbers), flush=True)
            since, last = time.perf_counter(), k


if __name__ == "__main__":
    main()
