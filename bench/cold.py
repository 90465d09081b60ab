"""Batches whose arrays no cache holds: ``python -m bench.cold``.

For each robot and quantity the time of a state in a batch that was computed a moment ago (warm) and in the same batch
after other work has filled the caches (cold), for a small batch and for one larger than the caches; beside each a copy
in NumPy that moves as many bytes. The best of many rounds counts, of the large batch in processor time: beside other
work, nothing that takes milliseconds is left alone for as long. The last column is the cold time over what it could be:
the warm time or that of the copy, whichever is larger.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from bench import report
from bench.core import BATCHED
from bench.peers import PEERS, Sample
from bench.robots import ROBOTS

BATCH, LARGE_BATCH = 8192, 131_072
OTHER_WORK_BYTES = 256 * 2**20


class OtherWork:
    """Something that leaves nothing of others in the caches."""

    def __init__(self) -> None:
        self.numbers = np.zeros(OTHER_WORK_BYTES // 8)

    def __call__(self) -> None:
        self.numbers += 1.0


def best_once(
    calls: Sequence[Callable[[], Any]], before: Callable[[], Any], rounds: int, clock: Callable[[], float]
) -> list[float]:
    """The best time of each call in nanoseconds, each time made once after something else."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            before()
            start = clock()
            call()
            best[k] = min(best[k], clock() - start)
    return [1e9 * seconds for seconds in best]


def rows(robot: str, rounds: int) -> list[list[Any]]:
    """The rows of one robot."""
    peer = PEERS["linkwise"](ROBOTS[robot])
    found = []
    other_work = OtherWork()
    for quantity in BATCHED:
        for count, clock in ((BATCH, time.perf_counter), (LARGE_BATCH, time.thread_time)):
            sample = Sample.random(peer.joints, count)
            out = np.empty_like(sample.q)
            call = peer.batch(quantity, sample, 1, out)
            assert call is not None
            half = (
                3 * sample.q.nbytes + out.nbytes
            ) // 2  # a copy reads one half of what it moves and writes the other
            source, target = np.ones(half // 8), np.empty(half // 8)
            calls: list[Callable[[], Any]] = [call, partial(np.copyto, target, source)]
            [warm, copy_warm] = [min(best_once([c], c, rounds, clock)) for c in calls]
            [cold, copy] = best_once(calls, other_work, rounds, clock)
            least = max(warm, copy)
            times = [ns / count for ns in (warm, cold, copy_warm, copy)]
            found.append([f"{robot} {quantity}, {count}", *times, cold / least])
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold", description=__doc__)
    parser.add_argument("--robots", nargs="+", choices=list(ROBOTS), default=["panda", "g1"])
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args(argv)
    header = ["ns per state", "warm", "cold", "copy, warm", "copy, cold", "cold / larger of warm and copy"]
    print(report.table(header, [row for robot in arguments.robots for row in rows(robot, arguments.rounds)]))


if __name__ == "__main__":
    main()
