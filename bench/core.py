"""The core algorithms beside Pinocchio and MuJoCo: ``python -m bench.core`` (or ``make bench``).

Prints a table for each robot and writes the numbers to ``bench/results/``. All times are the best of many rounds in
which the libraries take turns, in nanoseconds per state; a ratio above 1 says how many times faster linkwise is.
"""

from __future__ import annotations

import os

# Before NumPy is loaded: its BLAS must not start threads that disturb what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench import report, startup
from bench.peers import PEERS, QUANTITIES, Array, Peer, Sample, in_order
from bench.robots import ROBOTS
from bench.timing import Call, best_ns

REFERENCE = "pinocchio"
BATCH = 8192
LARGE_BATCH = 262_144  # where waking a thread no longer counts
BATCHED = ("inverse_dynamics", "forward_dynamics")


def measure(robot: str, libraries: Sequence[str], rounds: int) -> dict[str, Any]:
    """All numbers of one robot: how far the libraries disagree, and the rows of the table."""
    peers: dict[str, Peer] = {name: PEERS[name](ROBOTS[robot]) for name in libraries}
    joints = peers.get(REFERENCE, next(iter(peers.values()))).joints
    one = Sample.random(joints)
    many = Sample.random(joints, BATCH)

    rows = [
        _row(f"{quantity}, one state", {name: peer.single(quantity, one) for name, peer in peers.items()}, rounds)
        for quantity in QUANTITIES
    ]
    for quantity in BATCHED:
        for threads in (1, 2):
            label = f"{quantity}, batch, {threads} thread" + "s" * (threads > 1)
            rows.append(_row(label, _batch_calls(peers, quantity, many, threads)[0], rounds))
    if "linkwise" in peers:
        large = Sample.random(joints, LARGE_BATCH)
        for quantity in BATCHED:
            for threads in (1, 2):
                calls, _ = _batch_calls({"linkwise": peers["linkwise"]}, quantity, large, threads)
                rows.append(_row(f"{quantity}, batch of {LARGE_BATCH}, {threads} threads", calls, rounds))
        narrow = Sample.random(joints, BATCH, np.float32)
        for quantity in BATCHED:
            calls, _ = _batch_calls(peers, quantity, many, 1)  # the others have double precision only
            calls |= _batch_calls({"linkwise": peers["linkwise"]}, quantity, narrow, 1)[0]
            rows.append(_row(f"{quantity}, batch, 1 thread, float32", calls, rounds))
    return {"dof": len(joints), "disagreement": _disagreement(peers, one, many), "rows": rows}


def _batch_calls(
    peers: dict[str, Peer], quantity: str, sample: Sample, threads: int
) -> tuple[dict[str, Call], dict[str, Array]]:
    """The calls of the libraries that have one, and the arrays that they fill."""
    outs = {name: np.empty_like(sample.q) for name in peers}
    calls = {name: peer.batch(quantity, sample, threads, outs[name]) for name, peer in peers.items()}
    return {name: call for name, call in calls.items() if call is not None}, outs


def _row(label: str, calls: dict[str, Call], rounds: int) -> dict[str, Any]:
    times = dict(zip(calls, best_ns(list(calls.values()), rounds=rounds), strict=True))
    ratios = {name: ns / times["linkwise"] for name, ns in times.items()} if "linkwise" in times else {}
    return {"what": label, "ns": times, "ratio": ratios}


def _disagreement(peers: dict[str, Peer], one: Sample, many: Sample) -> dict[str, dict[str, float]]:
    """The largest difference from the reference, relative to the largest entry: no use timing wrong results."""
    found: dict[str, dict[str, float]] = {name: {} for name in peers if name != REFERENCE}

    def compare(what: str, values: dict[str, Array]) -> None:
        for name in found:
            if name in values and REFERENCE in values:
                right = values[REFERENCE]
                found[name][what] = float(np.abs(values[name] - right).max() / np.abs(right).max())

    for quantity in QUANTITIES:
        values = {name: peer.single(quantity, one)() for name, peer in peers.items()}
        compare(quantity, {name: in_order(peers[name], quantity, value, one) for name, value in values.items()})
    for quantity in BATCHED:
        calls, outs = _batch_calls(peers, quantity, many, 1)
        for call in calls.values():
            call()
        compare(f"{quantity}, batch", {name: in_order(peers[name], quantity, outs[name], many) for name in calls})
    return found


def _print_measured(robot: str, measured: dict[str, Any], libraries: Sequence[str]) -> None:
    print(f"\n{robot}, {measured['dof']} degrees of freedom; nanoseconds per state")
    others = [name for name in libraries if name != "linkwise"]
    header = ["", *libraries, *(f"{name} / linkwise" for name in others)]
    rows = [
        [row["what"], *(row["ns"].get(name) for name in libraries), *(row["ratio"].get(name) for name in others)]
        for row in measured["rows"]
    ]
    print(report.table(header, rows))
    for name, differences in measured["disagreement"].items():
        if differences:
            print(f"{name} differs from {REFERENCE} by at most {max(differences.values()):.1e}")


def _print_startup(robot: str, times: dict[str, dict[str, float]]) -> None:
    print(f"\n{robot}, first results of a fresh process; milliseconds")
    steps = [[step, *(1e3 * times[kind][step] for kind in ("cold", "warm"))] for step in times["cold"]]
    print(report.table(["", "empty cache", "filled cache"], steps))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.core", description=__doc__)
    parser.add_argument("--robots", nargs="+", choices=list(ROBOTS), default=list(ROBOTS))
    parser.add_argument("--libraries", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=30, help="turns that each call takes (default 30)")
    parser.add_argument("--no-startup", action="store_true", help="leave out the times of fresh processes")
    arguments = parser.parse_args(argv)

    results: dict[str, Any] = {"batch": BATCH, "rounds": arguments.rounds, "robots": {}}
    for robot in arguments.robots:
        measured = measure(robot, arguments.libraries, arguments.rounds)
        _print_measured(robot, measured, arguments.libraries)
        if "linkwise" in arguments.libraries and not arguments.no_startup:
            measured["startup"] = startup.cold_and_warm(robot)
            _print_startup(robot, measured["startup"])
        results["robots"][robot] = measured
    print(f"\nwritten to {report.write('core', results)}")


if __name__ == "__main__":
    main()
