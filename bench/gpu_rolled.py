"""Large mechanisms on a GPU, for :mod:`bench.gpu`: batches of chains as loops, and one very long chain by segments.

Beside the rate stand the two limits of the device: how much of what a plain copy moves goes between the loops and
memory, and how many of the instructions that could be issued were (arithmetic alone; loads, stores and addresses come
on top).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import linkwise as lw
from bench.scale import from_arrays
from linkwise import targets
from linkwise.functions.rolled.rolled_function import RolledFunction
from linkwise.targets.cuda.instructions import instructions
from linkwise.targets.cuda.row_loops import LinkLoop, LoopPlans
from linkwise.trace.block import Block
from linkwise.trace.program import Program, Stretch

CHECKED = 64  # states compared with the CPU
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")


def moved_and_issued(program: Program) -> tuple[int, int]:
    """Numbers that one state's loops move between registers and memory, and the instructions of its arithmetic."""
    arrays = (*program.inputs, *program.outputs)
    moved, issued = 2 * sum(array.size for array in arrays), 0  # from rows to lanes, or back
    for plan in (loop for loop in LoopPlans(program).loops.values() if isinstance(loop, LinkLoop)):
        first, count = program.range_of[str(plan.loop.over)]
        rows, (column,) = program.rows[first : first + count], plan.columns
        members = np.bincount(rows[:, column], minlength=len(plan.calls)) if column >= 0 else [count]
        carried = {Stretch(each.buffer, each.target) for each in plan.carried}
        for kind, call in plan.calls.items():
            outputs = zip(call.outputs, call.code.outputs, strict=True)
            stored = sum(spec.size for place, spec in outputs if place not in carried)
            stored *= 1 if plan.angles is None else 2  # a sine and a cosine
            moved += int(members[kind]) * (len(plan.early[kind]) + stored)
            assert isinstance(call.code, Block)
            issued += int(members[kind]) * len(instructions(call.code))
    return moved, issued


def measure(model: lw.Model, name: str, dtype: np.dtype[Any], count: int) -> dict[str, Any]:
    """One function of a chain for a batch."""
    import cupy as cp

    from bench.gpu import seconds

    function = model.function(name)
    assert isinstance(function, RolledFunction)
    program = function.rolled_for(targets.target("cuda"))
    rng = np.random.default_rng(1)
    few = [rng.uniform(-0.5, 0.5, (CHECKED, spec.size)).astype(dtype) for spec in program.inputs]
    expected = function(*(x.astype(float) for x in few))
    generator = cp.random.default_rng(2)
    arrays = [generator.random((count, spec.size), dtype=dtype) for spec in program.inputs]
    for array, each in zip(arrays, few, strict=True):
        array -= dtype.type(0.5)
        array[:CHECKED] = array[-CHECKED:] = cp.asarray(each)
    out = cp.full((count, program.outputs[0].size), cp.nan, dtype)
    began = time.perf_counter()
    function(*arrays, out=out)
    cp.cuda.Device().synchronize()
    first = time.perf_counter() - began
    taken = seconds(lambda: function(*arrays, out=out), 5)
    ends = [cp.asnumpy(part) for part in (out[:CHECKED], out[-CHECKED:])]
    error = max(float(np.abs(part - expected).max() / np.abs(expected).max()) for part in ends)
    moved, issued = moved_and_issued(program)
    return {
        "what": f"chain of {len(model.bodies)} links, {count} states, {name} {dtype.name}",
        "rate": count / taken, "seconds": taken, "bytes": count / taken * moved * dtype.itemsize,
        "issued": count / taken * issued / _most_issued(dtype), "error": error, "first_call": first,
        "missing": int(cp.isnan(out).sum()),
    }  # fmt: skip


def _most_issued(dtype: np.dtype[Any]) -> float:
    """Instructions of all threads a second: four warps a clock on each multiprocessor, two of double precision."""
    import cupy as cp

    attributes = cp.cuda.Device().attributes
    warps = 4 if dtype.itemsize == 4 else 2
    return float(attributes["MultiProcessorCount"] * attributes.get("ClockRate", 1_980_000) * 1e3 * warps * 32)


def show(row: dict[str, Any], copy: float) -> None:
    print(
        f"{row['what']:62} {row['rate'] / 1e6:7.2f} M states/s, {1e3 * row['seconds']:.2f} ms, "
        f"{row['bytes'] / copy:.0%} of copy, {row['issued']:.0%} of issue, error {row['error']:.1e}, "
        f"unwritten {row['missing']}, first call {row['first_call']:.1f} s",
        flush=True,
    )


def long_chain(links: int) -> dict[str, Any]:
    """One state of a very long chain: here by segments, on the CPU from link to link and by segments on two threads."""
    import cupy as cp

    from bench.gpu import seconds

    model = from_arrays(links, branched=False)
    rng = np.random.default_rng(1)
    state = [rng.normal(size=links) * 0.3 for _ in range(3)]
    on_cpu = [_best(lambda k=k: model.forward_dynamics(*state, threads=k)) for k in (1, 2)]
    expected = model.forward_dynamics(*state)
    arrays = [cp.asarray(x) for x in state]
    began = time.perf_counter()
    got = model.forward_dynamics(*arrays)
    cp.cuda.Device().synchronize()
    first = time.perf_counter() - began
    queued = seconds(lambda: model.forward_dynamics(*arrays), 9)

    def waited() -> None:
        model.forward_dynamics(*arrays)
        cp.cuda.Device().synchronize()

    vdot = cp.asnumpy(got)
    missed = model.inverse_dynamics(state[0], state[1], vdot) - state[2]
    return {
        "what": f"chain of {links} links, one state, forward_dynamics float64", "seconds": queued,
        "rate": 1.0 / queued, "waited": _best(waited), "cpu": on_cpu[0], "cpu_2": on_cpu[1], "first_call": first,
        "error": float(np.abs(vdot - expected).max() / np.abs(expected).max()),
        "missed": float(np.abs(missed).max() / np.abs(model.bias_force(*state[:2])).max()),
    }  # fmt: skip


def _best(call: Any, repeats: int = 7) -> float:
    call()
    best = np.inf
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return float(best)


def show_long(row: dict[str, Any]) -> None:
    print(
        f"{row['what']:62} {1e3 * row['seconds']:.3f} ms queued, {1e3 * row['waited']:.3f} ms waited for; CPU "
        f"{1e3 * row['cpu']:.1f} ms, on two threads {1e3 * row['cpu_2']:.1f} ms; error {row['error']:.1e}, "
        f"forces missed by {row['missed']:.1e}, first call {row['first_call']:.1f} s",
        flush=True,
    )
