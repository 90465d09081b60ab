"""A routine while it is written: its buffers, its calls, and the step that loops are put around.

A *step* is a short list of calls that leads from ``y, t, h, p`` to ``y_new`` (and ``err``, the size of the error in
units of the tolerance). :func:`linkwise.sim.loop.loop` is put around it. All arithmetic, that of the step-size control
too, is traced; the routine only says what comes after what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, field, replace
from linkwise.memoized import cached_property
from linkwise.sim.motion import EquationsOfMotion
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, where
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR
from linkwise.trace.block import Block
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Buffer, Call, Copy, Host, Place, Program, Seek, Statement, buffer_of
from linkwise.trace.reroll import rerolled

# Status of one state of a batch.
RUNNING, DONE, EVENT, FAILED, EXHAUSTED, WAITING = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0


class Clock:
    """Places in ``clock``, a loop's own state: how far a state of a batch is.

    Time; the size of the steps, or of the next one to be tried (0: it is to be chosen); status; place of the next
    record; steps accepted, rejected, and left to this call of the loop. With a tolerance the last is 1 right after a
    rejected step, which is no time to grow, and -1 where what acts has changed; of equal steps, those until the next
    record.
    """

    SIZE = 8
    T, H, STATUS, PLACE, ACCEPTED, REJECTED, LEFT, HELD = range(SIZE)
    COUNTDOWN = HELD


class Span:
    """Places in ``span``, what a loop is given; equal steps need no tolerance, and others no grid.

    The end; what times may differ by that are one; tolerances; the longest and the smallest step; where the grid begins
    and how many steps lie between records.
    """

    SIZE = 8
    END, SLACK, RTOL, ATOL, H_MAX, H_MIN, T0, EVERY = range(SIZE)


Traceable = Block | Program


def flag(condition: Scalar) -> Scalar:
    """1.0 where true, else 0.0."""
    return where(condition, 1.0, 0.0)


@dataclass
class Work:
    """A routine while it is written."""

    motion: EquationsOfMotion
    buffers: dict[str, Buffer] = field(default_factory=dict)
    host: Callable[..., tuple[Array]] | None = None
    """Joint forces by a Python function of (t, y, p) rows, where the control could not be traced."""
    _origins: dict[str, Traceable] = field(default_factory=dict)
    _looped: dict[int, tuple[Block, Block | Program]] = field(default_factory=dict)

    def buffer(self, name: str, size: int, *, load: bool = False, store: bool = False) -> str:
        """Declare a buffer, or say more of it."""
        known = self.buffers.get(name, Buffer(name, size))
        if known.size != size:
            raise ValueError(f"buffer {name!r} has two sizes, {known.size} and {size}")
        self.buffers[name] = Buffer(name, size, known.load or load, known.store or store)
        return name

    def call(self, traced: Traceable, renamed: dict[str, str] | None = None) -> tuple[Call, ...]:
        """Call what was traced on the buffers of its arrays' names, or others."""
        names = dict(renamed or {})
        for spec in (*traced.inputs, *traced.outputs):
            self.buffer(names.setdefault(spec.name, spec.name), spec.size)
        if isinstance(traced, Block) or len(traced.rows):
            inputs, outputs = (tuple(names[spec.name] for spec in side) for side in (traced.inputs, traced.outputs))
            return (Call(self._with_loops(traced), inputs, outputs),)
        own = [buffer for buffer in traced.buffers if not (buffer.load or buffer.store)]
        for number, buffer in enumerate(own):  # nobody else looks at them, so all programs of calls share them
            names[buffer.name] = self.buffer(f"own{number}:{buffer.size}", buffer.size)

        def there(places: Sequence[Place]) -> tuple[Place, ...]:
            return tuple(names[buffer_of(place)] for place in places)

        calls = [statement for statement in traced.statements if isinstance(statement, Call)]
        return tuple(Call(self._with_loops(call.code), there(call.inputs), there(call.outputs)) for call in calls)

    def _with_loops(self, straight: Block | Program) -> Block | Program:
        """The same program; what large models repeat for each joint as a loop."""
        if isinstance(straight, Program) or not self.motion.model._rolls:
            return straight
        if id(straight) not in self._looped:
            self._looped[id(straight)] = straight, rerolled(straight)
        return self._looped[id(straight)][1]

    @property
    def curves(self) -> tuple[tuple[str, int], ...]:
        """The tables that a routine of this motion reads."""
        return tuple((curve.name, curve.width) for curve in self.motion.curves)

    def routine(self, traced: Traceable) -> Program:
        """One pass over rows of its inputs, which stores its outputs."""
        statements = self.call(traced)
        for spec in traced.inputs:
            self.buffer(spec.name, spec.size, load=True)
        for spec in traced.outputs:
            self.buffer(spec.name, spec.size, store=True)
        return Program(traced.name, tuple(self.buffers.values()), statements)

    @cached_property
    def rates(self) -> Callable[[str, str, str, str], list[Statement]]:
        """Statements for k = ż(y, z, t), by names of buffers."""
        m = self.motion
        sizes = {"y": m.ny, "z": m.nz, "t": 1, "p": m.np}
        passed = [curve for curve in m.curves if m.passes(curve)]
        if self.host is None:
            traced = program("rates", lambda y, z, t, p: {"k": m.rates(y, z, t[0], p)}, sizes)
            return lambda y, z, t, k: [
                *(Seek(curve.name, t, "p", curve.offset) for curve in passed),
                *self.call(traced, {"y": y, "z": z, "t": t, "k": k}),
            ]
        place = program("place", lambda y, z: {"y_at": m.from_chart(y, z)}, {"y": m.ny, "z": m.nz})
        traced = program(
            "rates", lambda y, z, t, p, tau: {"k": m.rates(y, z, t[0], p, tau)}, {**sizes, "tau_host": m.nv}
        )
        host = self.host
        self.buffer("tau_host", m.nv)

        def hosted(y: str, z: str, t: str, k: str) -> list[Statement]:
            return [
                *(Seek(curve.name, t, "p", curve.offset) for curve in passed),
                *self.call(place, {"y": y, "z": z}),
                Host(host, (t, "y_at", "p"), ("tau_host",)),
                *self.call(traced, {"y": y, "z": z, "t": t, "k": k}),
            ]

        return hosted

    def rates_at(self, y: str, t: str, k: str) -> tuple[Statement, ...]:
        """Statements for k = ż at the centre of the chart around y, by names of buffers."""
        m = self.motion
        origin = self._origins.setdefault(y, program("origin", lambda y: {"z": m.chart_origin(y)}, {"y": m.ny}))
        return (*self.call(origin, {"y": y}), *self.rates(y, "z", t, k))


Arrays = Mapping[str, Array]


class CompiledLoop(Protocol):
    """A loop over time, compiled; stepped through where it asks Python."""

    def run(self, rows: Arrays, tables: Arrays, records: Arrays, count: int, threads: int = 1) -> None:
        """Run on these arrays, for so many states."""

    def bound(self, rows: Arrays, tables: Arrays, records: Arrays, count: int, threads: int = 1) -> Callable[[], None]:
        """The same, as often as it is called; of a loop that is compiled."""


class EvaluationRoutine:
    """A routine of one pass, compiled in double precision for many states.

    Args:
        routine: see :meth:`Work.routine`; what it stores are the results.
        home: where it runs, and where its rows are.
    """

    def __init__(self, routine: Program, home: Device = PROCESSOR) -> None:
        self._home, self._kernel = home, home.kernel(routine, np.dtype(np.float64))
        self._results = {buffer.name: buffer.size for buffer in routine.buffers if buffer.store}

    def __call__(self, rows: Arrays, tables: Arrays | None = None, threads: int = 1) -> dict[str, Array]:
        """Results (n, size) by name for rows (n, size) by name."""
        count, as_rows = len(rows["y"]), self._home.xp.ascontiguousarray
        given = {name: as_rows(values, dtype=np.float64) for name, values in rows.items()}
        made = {name: self._home.empty((count, size), np.float64) for name, size in self._results.items()}
        self._kernel.run({**given, **made}, tables or {}, {}, count, threads)
        return made


@dataclass(frozen=True)
class StepStatements:
    """Statements that lead from y, t, h, p to y_new; where steps are judged also to err, and from k0 to k_next."""

    begin: tuple[Statement, ...]
    """Before the first step: k0 at y, t."""
    advance: tuple[Statement, ...]
    judge: tuple[Statement, ...] = ()
    carry: tuple[Statement, ...] = ()
    """After an accepted step: k_next at y_new."""
    dense: tuple[Statement, ...] | None = None
    """Before the first look into a step: what the interpolant needs."""
    look: tuple[Statement, ...] = ()
    """y_at from theta."""
    error_order: int = 1
    memory: int = 0
    """Numbers in ``memory``, which a loop keeps from step to step; the step leaves ``memory_new``.

    Where the first of them is zero, nothing is known of the past: at the start, and after a jump of what acts.
    """


def settled(work: Work, step: StepStatements) -> StepStatements:
    """The step with :attr:`EquationsOfMotion.after_step` behind it, and behind every look into it."""
    m, after_step = work.motion, work.motion.after_step
    if after_step is None:
        return step

    def settling(name: str, y: str, *fraction: str) -> tuple[Statement, ...]:
        def text(y: Flat, t: Flat, h: Flat, p: Flat, *theta: Flat) -> NamedNumbers:
            q, v, x = m.parts(y)
            q_after, v_after = after_step(q, v, t[0] + (h[0] * theta[0][0] if theta else h[0]), p)
            return {"y_settled": [*q_after, *v_after, *x]}

        sizes = {y: m.ny, "t": 1, "h": 1, "p": m.np, **dict.fromkeys(fraction, 1)}
        return (*work.call(program(name, text, sizes)), Copy("y_settled", y))

    return replace(
        step,
        advance=(*step.advance, *settling("settle", "y_new")),
        carry=work.rates_at("y_new", "t_new", "k_next") if step.carry else (),
        look=(*step.look, *settling("settle_inside", "y_at", "theta")) if step.look else (),
    )


def watching(work: Work, events: Traceable) -> list[Statement]:
    """Before the first step: ``g``, the event functions to compare with.

    Its signs are the sides that they were on last, kept from call to call; zero where nothing is known of a side, and
    then what the function is now counts.
    """
    size = events.outputs[0].size
    work.buffer("g", size, load=True, store=True)

    def text(g: Flat, g_now: Flat) -> NamedNumbers:
        return {"g_seen": [where((a < 0.0) | (a > 0.0), a, b) for a, b in zip(g, g_now, strict=True)]}

    seen = program("seen", text, {"g": size, "g_now": size})
    return [*work.call(events, {"g": "g_now"}), *work.call(seen), Copy("g_seen", "g")]


def crossing(events: Traceable) -> Traceable:
    """Whether any event function has changed its sign; ``g_kept`` are the values to compare with next.

    Leaving zero counts, where nothing is known of a side before; a zero on the way is no side.
    """
    size = events.outputs[0].size
    direction = events.outputs[1].size
    if direction != size:
        raise ValueError("an event program has values g and directions")

    def text(g: Flat, g_new: Flat, directions: Flat) -> NamedNumbers:
        hit: Scalar = False
        for a, b, d in zip(g, g_new, directions, strict=True):
            up = (a <= 0.0) & (b >= 0.0) & (a < b) & (d >= 0.0)
            down = (a >= 0.0) & (b <= 0.0) & (a > b) & (d <= 0.0)
            hit = (up | down) if hit is False else hit | up | down
        kept = [where((b < 0.0) | (b > 0.0), b, a) for a, b in zip(g, g_new, strict=True)]
        return {"hit": flag(hit), "g_kept": kept}

    return program("crossing", text, {"g": size, "g_new": size, "directions": size})
