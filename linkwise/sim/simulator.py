"""A simulation as one program that goes on from call to call, for targets that run by themselves.

Around the loop of a plan stand two blocks. The first makes the loop's own state from what is kept (time, configuration,
velocities, states of actuators, the size of the next step) and from the duration of the piece; the second takes apart
what the loop left. So a caller gives numbers and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.sim.loop import loop, rows_from, waits_for_python
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.plans import SimulationPlan
from linkwise.sim.work import DONE, RUNNING, Clock, Span, StepStatements, Work
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, where
from linkwise.targets.c.stand_alone import Simulator
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Buffer, Copy, Program, Statement

STATUSES = (
    ("done", "the end of the piece is reached"),
    ("failed", "a value is not a number, or steps have become too small; it stands where this was found"),
    ("max_steps", "no more steps are allowed in one piece; it stands where they led"),
)
_FINE, _LOST, _SPENT = 0.0, 1.0, 2.0  # their numbers

WORDS = {
    "t": "time, s",
    "q": "configuration, rad or m; quaternions of length one",
    "v": "velocities, rad/s or m/s",
    "x": "states of actuators and controllers",
    "contacts": "impulses, gaps, residuals and overflow of contacts",
    "active": "for each closure, 1 if it is in force",
    "p": "run-time parameters",
    "dt": "the longest step, s",
    "h": "the step to be tried next, s; 0: it is chosen anew",
    "rtol": "relative tolerance",
    "atol": "absolute tolerance, SI units",
    "max_step": "the longest step, s",
    "min_step": "the shortest step, s; 0: where rounding makes steps useless",
    "max_steps": "steps that may be tried in one piece",
    "memory": "accelerations of the last step; where the first number is 0 they are found anew",
    "p_before": "the parameters of the last piece",
    "duration": "by so many seconds",
}
"""On each number and array of :func:`simulator_program`, for people."""

_DIGITS = 31  # of a number of steps, binary
_NEVER = 1e15  # steps until a record is made
_SMALLEST = 1e-15  # s, a step of a piece of a second or more

Text = Callable[[dict[str, Flat]], NamedNumbers]


def simulator_of(plan: SimulationPlan, start: Mapping[str, Any], curves: Mapping[str, Array], bits: int) -> Simulator:
    """Simulation as one program, as targets write it.

    Args:
        plan: of a simulation of one state.
        start: y, and single numbers by the names of :data:`WORDS`.
        curves: the numbers of its tables.
        bits: 64, or 32 with a fixed step.
    """
    _check(plan, bits)
    m = plan.motion
    written = simulator_program(plan, m.model.name, np.float64 if bits == 64 else np.float32)
    numbers: dict[str, Any] = {each: [value] for each, value in start.items() if each not in ("y", "p")}
    first = 0
    for each, size in state_sizes(m).items():
        numbers[each], first = start["y"][first : first + size], first + size
    numbers["p"] = numbers["p_before"] = start["p"]
    numbers["memory"] = [0.0] * written.sizes.get("in:memory", 0)
    # The test goes on for some steps; for few where Python, which finds what is expected, would take long.
    some = max(1, min(10, 200_000 // max(1, written.length)))
    duration = 0.01 if plan.is_adaptive else some * start["dt"]
    return Simulator(
        written,
        start={b.label: np.array(numbers[b.label], float) for b in written.buffers if b.load and b.label != "duration"},
        argument="duration",
        words=WORDS,
        statuses=STATUSES,
        tables={**curves, **({"times": np.array([np.inf])} if written.tables else {})},
        calls=[duration] * (3 if some > 1 else 1),
    )


def _check(plan: SimulationPlan, bits: int) -> None:
    """Refuse what needs Python."""
    if plan.events:
        raise InputError(
            "a simulator that runs by itself has no events: they are located, and their actions run, in Python",
            got=", ".join(repr(event.name) for event in plan.events),
            do='leave them out, with limits="spring" instead of "stop"; look at the state after each piece',
        )
    if plan.hosted or waits_for_python(plan.motion):
        raise InputError(
            "a control that runs in Python cannot be part of a simulator that runs by itself",
            got=plan.why_hosted or "samples by a Python function",
            do="write it so that it can be traced (lw.math.where, lw.math.sin); or bring its forces as parameters "
            "from outside: control=lambda t, q, v, p: p",
        )
    if plan.is_adaptive and bits != 64:
        raise InputError(
            "adaptive steps are made in double precision",
            got=f"{plan.method} with {bits} bits",
            do='bits=64, or a fixed step: method="rk4"',
        )


def simulator_program(plan: SimulationPlan, name: str, dtype: DTypeLike) -> Program:
    """The program of one piece, in a precision.

    Kept from call to call: t, q, v, x and ``active``, where there are such; ``h`` of an adaptive method; ``memory`` and
    ``p_before`` of a method that remembers. Given: p, ``duration``, and the numbers that steer the steps (``dt``, or
    ``rtol``, ``atol``, ``max_step``, ``min_step``, ``max_steps``). Made: ``status``, see :data:`STATUSES`.
    """
    work, step = plan.work()
    steps = loop(work, replace(step, dense=None, look=()), plan.sizes, plan.records)
    piece = _LoopBlocks(work, step, np.dtype(dtype), plan.is_adaptive)
    statements = (*piece.depart(), *steps.statements, *piece.arrive())
    own = (replace(buffer, load=False, store=False) for buffer in work.buffers.values())
    public = piece.public()
    names = {buffer.name for buffer in public}
    buffers = (*public, *(buffer for buffer in own if buffer.name not in names))
    return replace(steps, name=name, buffers=buffers, statements=statements)


class _LoopBlocks:
    """The blocks before and behind a loop: of equal steps, or of those that a tolerance allows."""

    def __init__(self, work: Work, step: StepStatements, dtype: np.dtype[Any], tolerated: bool) -> None:
        self.tolerated = tolerated
        # Single numbers that are kept, beside the state, and those that are given.
        self.kept = ("t", "h") if tolerated else ("t",)
        self.steering = ("rtol", "atol", "max_step", "min_step", "max_steps") if tolerated else ("dt",)
        self.work, self.step, self.motion = work, step, work.motion
        self.rounding, self.largest = float(np.finfo(dtype).eps), float(np.finfo(dtype).max)
        self.state = state_sizes(self.motion)
        self.given = {"p": self.motion.n_given} if self.motion.n_given else {}
        self.memory = {"memory": step.memory} if step.memory else {}
        if step.memory and self.given:
            self.memory["p_before"] = self.motion.n_given

    def public(self) -> tuple[Buffer, ...]:
        """The buffers of the caller."""
        sizes = {**dict.fromkeys(self.kept, 1), **self.state, **self.memory}
        found = [
            Buffer(f"in:{each}", size, load=True, store=True, shape=self._shape(each)) for each, size in sizes.items()
        ]
        sizes = {**self.given, **dict.fromkeys((*self.steering, "duration"), 1)}
        found += [Buffer(f"in:{each}", size, load=True, shape=self._shape(each)) for each, size in sizes.items()]
        return (*found, Buffer("out:status", 1, store=True, shape=()))

    def _shape(self, name: str) -> tuple[int, ...] | None:
        return () if name in (*self.kept, *self.steering, "duration") else None

    def depart(self) -> list[Statement]:
        """The loop's rows from what is kept and given, and the samples that are due."""
        m = self.motion
        numbers = dict.fromkeys((*self.kept, *self.steering, "duration"), 1)
        statements = self._call("depart", self.departure, numbers)
        statements += self._call("unite", self._united, {**self.state, **self.given, **self.memory})
        if m.samplers:

            def settle(t: Flat, y: Flat, p: Flat, span: Flat) -> NamedNumbers:
                return {"y_sampled": m.sampled(t[0], y, p, span[Span.SLACK], in_python=False)}

            sizes = {"t": 1, "y": m.ny, "p": m.np, "span": Span.SIZE}
            statements += rows_from(self.work, "in:t")
            statements += self.work.call(program("sample", settle, sizes), {"t": "in:t"})
            statements.append(Copy("y_sampled", "y"))
        return statements

    def arrive(self) -> list[Statement]:
        """Statements that take what is kept from the loop's rows."""
        rows = ("y", "clock", "span", *(("memory",) if self.memory else ()))
        sizes = {each: self.work.buffers[each].size for each in rows}
        traced = program("arrive", lambda *rows: self._taken_apart(dict(zip(sizes, rows, strict=True))), sizes)
        renamed = {spec.name: f"in:{spec.name}" for spec in traced.outputs} | {"status": "out:status"}
        renamed |= {"memory_kept": "in:memory"}
        ending: list[Statement] = [*self.work.call(traced, renamed)]
        if "p_before" in self.memory:
            ending.append(Copy("in:p", "in:p_before"))
        return ending

    def _call(self, name: str, text: Text, sizes: dict[str, int]) -> list[Statement]:
        """A text on what is kept and given."""
        traced = program(name, lambda *given: text(dict(zip(sizes, given, strict=True))), sizes)
        return list(
            self.work.call(traced, {each: f"in:{each}" for each in sizes} | {"memory_own": "memory", "p_own": "p"})
        )

    def _united(self, given: dict[str, Flat]) -> NamedNumbers:
        """The state in one row, the parameters with room for the rows of tables, what is still known of the past."""
        m = self.motion
        found: dict[str, Scalar | Flat] = {"y": [x for each in self.state for x in given[each]]}
        if m.np:
            found["p_own"] = [*given.get("p", ()), *[0.0] * (m.np - m.n_given)]
        if self.memory:
            first, *others = given["memory"]
            for a, b in zip(given.get("p", ()), given.get("p_before", ()), strict=True):
                first = where(a == b, first, 0.0)
            found["memory_own"] = [first, *others]
        return found

    def _taken_apart(self, rows: dict[str, Flat]) -> NamedNumbers:
        y, clock = list(rows["y"]), rows["clock"]
        found: dict[str, Scalar | Flat] = {"t": rows["span"][Span.END]}
        status: Scalar = _FINE
        if self.tolerated:
            found, code = {"t": clock[Clock.T], "h": clock[Clock.H]}, clock[Clock.STATUS]
            status = where(code == DONE, _FINE, where(code == RUNNING, _SPENT, _LOST))
        for x in y:
            status = where(abs(x) <= self.largest, status, _LOST)
        for each, size in self.state.items():
            found[each], y = y[:size], y[size:]
        if self.memory:
            found["memory_kept"] = list(rows["memory"])
        return found | {"status": status}

    def departure(self, given: dict[str, Flat]) -> NamedNumbers:
        """The loop's own rows."""
        numbers = {each: row[0] for each, row in given.items()}
        t, duration = numbers["t"], numbers["duration"]
        end = t + where(duration > 0.0, duration, 0.0)
        largest = where(abs(t) < abs(end), abs(end), abs(t))
        clock: dict[int, Scalar] = {Clock.T: t, Clock.STATUS: RUNNING}
        span: dict[int, Scalar] = {Span.END: end, Span.SLACK: 8.0 * self.rounding * largest}
        (self._tolerated if self.tolerated else self._equal)(numbers, clock, span)
        found = {"clock": [clock.get(k, 0.0) for k in range(Clock.SIZE)]}
        found["span"] = [span.get(k, 0.0) for k in range(Span.SIZE)]
        return found | ({"k0": [0.0] * self.motion.nz} if self.tolerated else {})

    def _equal(self, given: dict[str, Scalar], clock: dict[int, Scalar], span: dict[int, Scalar]) -> None:
        """Equal steps, of at most dt."""
        duration = given["duration"]
        # The least whole number that is not below duration/dt, digit by digit.
        wanted, below = duration / given["dt"] * (1.0 - 4.0 * self.rounding) - 1e-9, 0.0
        for digit in reversed(range(_DIGITS)):
            below = where(below + 2.0**digit < wanted, below + 2.0**digit, below)
        h, slack = duration / (below + 1.0), span[Span.SLACK]
        clock |= {Clock.H: h, Clock.LEFT: where(duration > 0.0, below + 1.0, 0.0), Clock.COUNTDOWN: _NEVER}
        span |= {Span.SLACK: where(slack < 1e-9 * h, 1e-9 * h, slack), Span.T0: given["t"], Span.EVERY: _NEVER}

    def _tolerated(self, given: dict[str, Scalar], clock: dict[int, Scalar], span: dict[int, Scalar]) -> None:
        """Steps as long as the tolerance allows."""
        h, duration, atol, floor = (given[each] for each in ("h", "duration", "atol", "min_step"))
        clock |= {Clock.H: where(h > 0.0, h, 0.0), Clock.LEFT: given["max_steps"]}
        clock[Clock.STATUS] = where(duration > 0.0, RUNNING, DONE)
        floor = where(floor > 0.0, floor, _SMALLEST * where(duration < 1.0, duration, 1.0))
        span |= {Span.RTOL: given["rtol"], Span.ATOL: where(atol > 1e-300, atol, 1e-300)}
        span |= {Span.H_MAX: given["max_step"], Span.H_MIN: floor}


def state_sizes(m: EquationsOfMotion) -> dict[str, int]:
    """The parts of a state y in their order, and how many numbers each has; those with any."""
    sizes = {"q": m.nq, "v": m.nv, "x": m.ny - m.nq - m.nv - m.touching - m.switches}
    sizes |= {"contacts": m.touching, "active": m.switches}
    return {each: size for each, size in sizes.items() if size}
