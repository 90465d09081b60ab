"""Derivatives beside Pinocchio's and CasADi's: ``python -m bench.derivatives``.

Prints a table for each robot and writes the numbers to ``bench/results/``. All times are the best of many rounds in
which the libraries take turns, in nanoseconds per state. Pinocchio has no batches of derivatives: its batch is a loop
of single calls, each less the 0.2 µs that a call through its bindings takes for itself. CasADi differentiates the
inverse and forward dynamics that linkwise hands it as expressions, and runs the results on its virtual machine.
"""

from __future__ import annotations

import os

# Before NumPy is loaded: its BLAS must not start threads that disturb what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import report
from bench.peers import Array, Pinocchio, Sample
from bench.robots import ROBOTS
from bench.timing import Call, best_ns

BATCH = 4096
BINDING_NS = 200.0
QUANTITIES = ("linearize_inverse", "linearize_forward", "mass_matrix_inverse")
TARGETS = {("panda", "batch"): 25.0, ("g1", "batch"): 12.0, ("panda", "one state"): 2.0}
"""Ratios to reach for the first two quantities."""


class Derivatives:
    """One robot in all three libraries, the joints in Pinocchio's order."""

    def __init__(self, robot: str) -> None:
        import linkwise as lw

        self.peer = Pinocchio(ROBOTS[robot])
        self.model: Any = lw.load(ROBOTS[robot].path, locked=list(ROBOTS[robot].locked))
        self.joints = tuple(joint.name for joint in self.model.joints if joint.v_slice.stop > joint.v_slice.start)

    def linkwise(self, quantity: str, sample: Sample, out: bool = False) -> Call:
        """Of one state, or of a batch into arrays that are there."""
        arrays = self._arrays(quantity, sample.ordered(self.joints))
        if not out:
            return Call(getattr(self.model, quantity), arrays)
        shape, n = sample.q.shape[:-1], self.model.nv
        targets: Any = np.empty((*shape, n, n))
        if quantity != "mass_matrix_inverse":
            targets = (np.empty((*shape, n)), *(np.empty((*shape, n, n)) for _ in range(3)))
        return Call(getattr(self.model, quantity), arrays, {"out": targets}, states=len(sample.q))

    def pinocchio(self, quantity: str, sample: Sample) -> Call:
        """Of one state."""
        pin, model, data = self.peer.pin, self.peer.model, self.peer.data
        function = {
            "linearize_inverse": pin.computeRNEADerivatives,
            "linearize_forward": pin.computeABADerivatives,
            "mass_matrix_inverse": pin.computeMinverse,
        }[quantity]
        return Call(function, (model, data, *self._arrays(quantity, sample.ordered(self.peer.joints))))

    def casadi(self, quantity: str, sample: Sample) -> Call | None:
        """Of one state; None where CasADi has nothing to differentiate."""
        import casadi as ca

        if quantity == "mass_matrix_inverse":
            return None
        n = self.model.nv
        q, v, x = (ca.SX.sym(name, n) for name in ("q", "v", "x"))
        method = "inverse_dynamics" if quantity == "linearize_inverse" else "forward_dynamics"
        y = getattr(self.model, method)(q, v, x)
        f = ca.Function("f", [q, v, x], [y, ca.jacobian(y, q), ca.jacobian(y, v), ca.jacobian(y, x)])
        return Call(f, self._arrays(quantity, sample.ordered(self.joints)))

    def disagreement(self, quantity: str, sample: Sample) -> float:
        """The largest difference from Pinocchio, relative to the largest entry."""
        ours, data = self.linkwise(quantity, sample)(), self.peer.data
        self.pinocchio(quantity, sample)()
        upper = np.triu(data.M if quantity == "linearize_inverse" else data.Minv)
        symmetric = upper + np.triu(upper, 1).T
        if quantity == "linearize_inverse":
            pairs = [(ours.dq, data.dtau_dq), (ours.dv, data.dtau_dv), (ours.dvdot, symmetric)]
        elif quantity == "linearize_forward":
            pairs = [(ours.dq, data.ddq_dq), (ours.dv, data.ddq_dv), (ours.dtau, symmetric)]
        else:
            pairs = [(ours, symmetric)]
        order = [self.joints.index(name) for name in self.peer.joints]
        place = np.ix_(order, order)
        return max(float(np.abs(a[place] - b).max() / np.abs(b).max()) for a, b in pairs)

    @staticmethod
    def _arrays(quantity: str, sample: Sample) -> tuple[Array, ...]:
        return (sample.q,) if quantity == "mass_matrix_inverse" else (sample.q, sample.v, sample.w)


def measure(robot: str, rounds: int) -> dict[str, Any]:
    """All numbers of one robot."""
    libraries = Derivatives(robot)
    one, many = Sample.random(libraries.peer.joints), Sample.random(libraries.peer.joints, BATCH)
    rows = []
    for quantity in QUANTITIES:
        calls = {
            "linkwise, batch": libraries.linkwise(quantity, many, out=True),
            "linkwise": libraries.linkwise(quantity, one),
            "pinocchio": libraries.pinocchio(quantity, one),
            "casadi": libraries.casadi(quantity, one),
        }
        libraries.linkwise(quantity, one)()  # puts the single-state function in place
        calls["linkwise"] = libraries.linkwise(quantity, one)
        there = {name: call for name, call in calls.items() if call is not None}
        ns = dict(zip(there, best_ns(list(there.values()), rounds=rounds), strict=True))
        looped = ns["pinocchio"] - BINDING_NS
        rows.append(
            {
                "what": quantity,
                "ns": ns,
                "batch ratio": looped / ns["linkwise, batch"],
                "single ratio": ns["pinocchio"] / ns["linkwise"],
                "casadi ratio": ns["casadi"] / ns["linkwise"] if "casadi" in ns else None,
                "operations": str(libraries.model.function(quantity).counts),
                "disagreement": libraries.disagreement(quantity, one),
            }
        )
    return {"dof": len(libraries.joints), "rows": rows, "startup": startup(robot)}


def startup(robot: str) -> dict[str, dict[str, float]]:
    """Seconds to the first derivatives of a fresh process, with an empty cache and with the one it leaves."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "LINKWISE_CACHE_DIR": cache}
        command = [sys.executable, "-m", "bench.derivatives", "--first", robot]
        found = []
        for _ in range(3):
            done = subprocess.run(
                command,
                cwd=Path(__file__).parent.parent,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            found.append(json.loads(done.stdout))
    warm = {step: min(run[step] for run in found[1:]) for step in found[0]}
    return {"cold": found[0], "warm": warm}


def first_results(robot: str) -> dict[str, float]:
    """Seconds for the first call of each quantity, a batch, in this process, which must be fresh."""
    import linkwise as lw

    model = lw.load(ROBOTS[robot].path, locked=list(ROBOTS[robot].locked))
    state = np.zeros((8, model.nv))
    model.inverse_dynamics(state, state, state)  # the compiler itself is loaded
    seconds = {}
    for quantity in QUANTITIES[:2]:
        begin = time.perf_counter()
        model.function(quantity).general(state, state, state)
        seconds[quantity] = time.perf_counter() - begin
    return seconds


def _print(robot: str, measured: dict[str, Any]) -> None:
    print(f"\n{robot}, {measured['dof']} degrees of freedom; nanoseconds per state, batches of {BATCH}")
    names = ("linkwise, batch", "linkwise", "pinocchio", "casadi")
    header = ["", *names, "batch ratio", "single ratio", "casadi / linkwise", "differs by"]
    rows = [
        [
            row["what"],
            *(row["ns"].get(name) for name in names),
            row["batch ratio"],
            row["single ratio"],
            row["casadi ratio"],
            f"{row['disagreement']:.1e}",
        ]
        for row in measured["rows"]
    ]
    print(report.table(header, rows))
    for row in measured["rows"]:
        print(f"{row['what']}: {row['operations']}")
    steps = measured["startup"]
    print(
        report.table(
            ["first call, s", "cold", "warm"], [[s, steps["cold"][s], steps["warm"][s]] for s in steps["cold"]]
        )
    )
    for (name, kind), wanted in TARGETS.items():
        if name == robot:
            key = "batch ratio" if kind == "batch" else "single ratio"
            reached = [row[key] for row in measured["rows"][:2]]
            print(f"{kind}: {', '.join(f'{r:.1f}' for r in reached)} of {wanted:g}")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.derivatives", description=__doc__)
    parser.add_argument("--robots", nargs="+", choices=list(ROBOTS), default=["panda", "g1"])
    parser.add_argument("--rounds", type=int, default=30, help="turns that each call takes (default 30)")
    parser.add_argument("--first", choices=list(ROBOTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.first:
        print(json.dumps(first_results(arguments.first)))
        return
    results: dict[str, Any] = {"batch": BATCH, "rounds": arguments.rounds, "robots": {}}
    for robot in arguments.robots:
        results["robots"][robot] = measure(robot, arguments.rounds)
        _print(robot, results["robots"][robot])
    print(f"\nwritten to {report.write('derivatives', results)}")


if __name__ == "__main__":
    main()
