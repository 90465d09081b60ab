"""Operator expressions beside the algorithms that they spell out: ``python -m bench.operators``.

Forward dynamics written with operators and compiled, against ``model.forward_dynamics`` in the same process, in turns;
and the eager operators on chains of up to 10 000 links, whose time must be linear in the number of links.
"""

from __future__ import annotations

import os

# Before NumPy is loaded: its BLAS must not start threads that disturb what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import linkwise as lw
from bench import report
from bench.robots import ROBOTS
from bench.timing import Call, best_ns

BATCH = 8192
LENGTHS = (1000, 2000, 5000, 10000)


def articulated(ops: Any, tau: Any) -> Any:
    """[I-HψK]*D⁻¹[T - Hψ(KT + f)], f = Mφ*a + b."""
    T, white = ops.vector(tau), ops.I - ops.H @ ops.psi @ ops.K
    return white.T @ ops.D.inv() @ (T - ops.H @ ops.psi @ (ops.K @ T + ops.f))


def by_inverse(ops: Any, tau: Any) -> Any:
    """𝓜⁻¹(T - 𝓒), the inverse of HφMφ*H* by rule."""
    return ops.mass_matrix.inv() @ (ops.vector(tau) - ops.C)


def by_lemma(ops: Any, tau: Any) -> Any:
    """Jain 1991 lemma 6.5: [I-HψK]*D⁻¹[T - Hψ(KT + b + Pa)] - K*ψ*a."""
    T, white = ops.vector(tau), ops.I - ops.H @ ops.psi @ ops.K
    forces = T - ops.H @ ops.psi @ (ops.K @ T + ops.b + ops.P @ ops.a)
    return white.T @ ops.D.inv() @ forces - ops.K.T @ ops.psi.T @ ops.a


EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "[I-HψK]*D⁻¹[T-Hψ(KT+f)]": articulated,
    "𝓜⁻¹(T-𝓒)": by_inverse,
    "lemma 6.5": by_lemma,
}


def compiled(expression: Callable[[Any, Any], Any], model: lw.Model, frames: Any) -> lw.CompiledFunction:
    """One expression for one robot."""

    def fn(model: lw.Model, q: Any, v: Any, tau: Any) -> Any:
        return expression(model.operators(q, v, frames=frames), tau)

    return lw.compile(fn, model, inputs={"q": "q", "v": "v", "tau": "v"}, name=expression.__name__)


def measure(robot: str, rounds: int) -> list[dict[str, Any]]:
    """Counts and times of every expression in both frames, beside forward dynamics itself."""
    model = lw.load(ROBOTS[robot].path, locked=list(ROBOTS[robot].locked))
    rng = np.random.default_rng(0)
    q = np.stack([model.random_configuration(rng) for _ in range(BATCH)])
    v, tau = rng.normal(size=(2, BATCH, model.nv))
    out = np.empty_like(v)
    own = model.function("forward_dynamics")
    functions = {("forward_dynamics", ""): own}
    for name, expression in EXPRESSIONS.items():
        for frames in ("link", "body"):
            functions[name, frames] = compiled(expression, model, frames)
    calls = [Call(f.general, (q, v, tau), {"out": out}, BATCH) for f in functions.values()]
    times = best_ns(calls, rounds=rounds)
    expected = own.general(q, v, tau)
    rows = []
    for ((name, frames), function), ns in zip(functions.items(), times, strict=True):
        error = np.abs(function.general(q, v, tau) - expected).max() / np.abs(expected).max()
        rows.append(
            {
                "expression": name,
                "frames": frames,
                "mul": function.counts.mul,
                "add": function.counts.add,
                "ns": ns,
                "ratio": ns / times[0],
                "error": float(error),
            }
        )
    return rows


def chain(n: int) -> lw.Model:
    """A snake of n hinges."""
    builder = lw.ModelBuilder("chain")
    for k in range(n):
        builder.add_body(
            f"link{k}",
            f"link{k - 1}" if k else "world",
            lw.Revolute(axis=np.eye(3)[k % 3].tolist()),
            lw.transform(xyz=(0.1, 0.0, 0.0)),
            mass=1.0,
            com=(0.05, 0.0, 0.0),
            inertia=0.01 * np.eye(3),
        )
    return builder.build()


def measure_chain(n: int, rounds: int) -> dict[str, float]:
    """Milliseconds of one application on a chain of n links."""
    model = chain(n)
    q = np.full(n, 0.1)
    ops = model.operators(q)
    x, T, inverse = np.ones(6 * n), np.ones(n), ops.mass_matrix.inv()
    what = {
        "operators(q).phi @ x": Call(lambda: model.operators(q).phi @ x),
        "phi @ x": Call(lambda: ops.phi @ x),
        "phi.T @ x": Call(lambda: ops.phi.T @ x),
        "mass_matrix.inv() @ T": Call(lambda: inverse @ T),
    }
    times = best_ns(list(what.values()), rounds=rounds)
    return {name: ns * 1e-6 for name, ns in zip(what, times, strict=True)}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.operators", description=__doc__)
    parser.add_argument("--robots", nargs="+", choices=list(ROBOTS), default=["panda", "g1"])
    parser.add_argument("--rounds", type=int, default=30, help="turns that each call takes (default 30)")
    arguments = parser.parse_args(argv)
    results: dict[str, Any] = {"batch": BATCH, "rounds": arguments.rounds, "robots": {}, "chains": {}}
    for robot in arguments.robots:
        rows = results["robots"][robot] = measure(robot, arguments.rounds)
        print(f"\n{robot}: forward dynamics, batch of {BATCH}, one thread; nanoseconds per state")
        print(report.table(list(rows[0]), [list(row.values()) for row in rows]))
    for n in LENGTHS:
        results["chains"][n] = measure_chain(n, 5)
    print("\nchains of hinges, eager; milliseconds")
    header = ["links", *results["chains"][LENGTHS[0]]]
    print(report.table(header, [[str(n), *times.values()] for n, times in results["chains"].items()]))
    print(f"\nwritten to {report.write('operators', results)}")


if __name__ == "__main__":
    main()
