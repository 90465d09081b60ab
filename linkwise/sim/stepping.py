"""From a method and the equations of motion to a routine: the loop that a kernel runs.

A *step* is a short list of calls that leads from ``y, t, h, p`` to ``y_new`` (and ``err``, the size of the error in
units of the tolerance). Two loops are put around it: :func:`fixed_loop` and :func:`adaptive_loop`. All arithmetic,
that of the step-size control too, is traced; the routine only says what comes after what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from linkwise.codegen.routine import Buffer, Call, Copy, Host, IfAny, Lookup, Record, Routine, Statement, WhileAny
from linkwise.sim.motion import Flat, Motion
from linkwise.sim.tableaux import Row, Tableau
from linkwise.spatial.scalar import Scalar, exp, log, sqrt, where
from linkwise.tracing.program import Program
from linkwise.tracing.tracer import trace

# Status of one state of a batch.
RUNNING, DONE, EVENT, FAILED = 0.0, 1.0, 2.0, 3.0

# Rows of the adaptive loop's own state, and of what it is given.
CONTROL = ("t", "h", "status", "next", "accepted", "rejected", "left", "held")
SPAN = ("end", "rtol", "atol", "h_max")
# Rows of the fixed loop's own state.
CLOCK = ("step", "stop", "countdown", "every", "next", "status")


def program(name: str, function: Callable[..., dict[str, Any]], inputs: dict[str, int]) -> Program:
    """Trace a function of flat vectors; it returns named scalars and flat vectors."""

    def text(*arguments: Any) -> list[tuple[str, tuple[int, ...], Any]]:
        outputs = function(*arguments)
        return [(key, (len(list_of(value)),), list_of(value)) for key, value in outputs.items()]

    return trace(name, text, [(key, (size,)) for key, size in inputs.items()])


def list_of(value: Any) -> list[Scalar]:
    """A scalar or a vector as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def flag(condition: Any) -> Scalar:
    """1.0 where true, else 0.0."""
    return where(condition, 1.0, 0.0)


@dataclass
class Work:
    """A routine while it is written."""

    motion: Motion
    buffers: dict[str, Buffer] = field(default_factory=dict)
    host: Callable[..., Any] | None = None
    """Joint forces by a Python function of (t, y, p) rows, where the control could not be traced."""

    def buffer(self, name: str, size: int, *, load: bool = False, store: bool = False) -> str:
        """Declare a buffer, or say more of it."""
        known = self.buffers.get(name, Buffer(name, size))
        if known.size != size:
            raise ValueError(f"buffer {name!r} has two sizes, {known.size} and {size}")
        self.buffers[name] = Buffer(name, size, known.load or load, known.store or store)
        return name

    def call(self, traced: Program, renamed: dict[str, str] | None = None) -> Call:
        """Call a program on the buffers of its arrays' names, or others."""
        names = renamed or {}
        for spec in (*traced.inputs, *traced.outputs):
            self.buffer(names.get(spec.name, spec.name), spec.size)
        return Call(
            traced,
            tuple(names.get(spec.name, spec.name) for spec in traced.inputs),
            tuple(names.get(spec.name, spec.name) for spec in traced.outputs),
        )

    @cached_property
    def rates(self) -> Callable[[str, str, str, str], list[Statement]]:
        """Statements for k = ż(y, z, t), by names of buffers."""
        m = self.motion
        sizes = {"y": m.ny, "z": m.nz, "t": 1, "p": m.np}
        if self.host is None:
            traced = program("rates", lambda y, z, t, p: {"k": m.rates(y, z, t[0], p)}, sizes)
            return lambda y, z, t, k: [self.call(traced, {"y": y, "z": z, "t": t, "k": k})]
        place = program("place", lambda y, z: {"y_at": m.from_chart(y, z)}, {"y": m.ny, "z": m.nz})
        traced = program(
            "rates", lambda y, z, t, p, tau: {"k": m.rates(y, z, t[0], p, tau)}, {**sizes, "tau_host": m.nv}
        )
        host = self.host
        self.buffer("tau_host", m.nv)

        def hosted(y: str, z: str, t: str, k: str) -> list[Statement]:
            return [
                self.call(place, {"y": y, "z": z}),
                Host(host, (t, "y_at", "p"), ("tau_host",)),
                self.call(traced, {"y": y, "z": z, "t": t, "k": k}),
            ]

        return hosted


@dataclass(frozen=True)
class Step:
    """What leads from y, t, h, p to y_new; for adaptive loops also to err, and from k0 to k_next."""

    begin: tuple[Statement, ...]
    """Before the first step: k0 at y, t."""
    advance: tuple[Statement, ...]
    judge: tuple[Statement, ...] = ()
    carry: tuple[Statement, ...] = ()
    """After an accepted step: k_next at y_new; ``carry_always`` when it comes for nothing."""
    dense: tuple[Statement, ...] | None = None
    """Before the first look into a step: what the interpolant needs."""
    look: tuple[Statement, ...] = ()
    """y_at from theta."""
    error_order: int = 1


def _combination(row: Row, k: Sequence[Flat], i: int) -> Scalar:
    total: Scalar = 0.0
    for stage, weight in row.items():
        total = total + k[stage][i] * weight
    return total


def _advanced(motion: Motion, y: Flat, h: Scalar, row: Row, k: Sequence[Flat]) -> list[Scalar]:
    """Z + h Σ a_j k_j in the chart around y."""
    start = motion.chart_origin(y)
    return [start[i] + h * _combination(row, k, i) for i in range(motion.nz)]


def runge_kutta(work: Work, tableau: Tableau) -> Step:
    """One step of an explicit method, given the first stage k0."""
    m = work.motion
    rates = work.rates
    names = [f"k{i}" for i in range(tableau.stages + len(tableau.extra_nodes))]
    work.buffer("h", 1)
    origin = program("origin", lambda y: {"z": m.chart_origin(y)}, {"y": m.ny})
    begin: list[Statement] = [work.call(origin), *rates("y", "z", "t", "k0")]

    def stage(i: int, node: float, row: Row) -> list[Statement]:
        used = sorted(row)

        def text(y: Flat, t: Flat, h: Flat, *k: Flat) -> dict[str, Any]:
            by_stage = dict(zip(used, k, strict=True))
            z = _advanced(m, y, h[0], row, [by_stage.get(j, ()) for j in range(i)])
            return {"z": z, "t_stage": t[0] + h[0] * node}

        sizes = {"y": m.ny, "t": 1, "h": 1, **{names[j]: m.nz for j in used}}
        return [work.call(program(f"stage{i}", text, sizes)), *rates("y", "z", "t_stage", names[i])]

    advance: list[Statement] = []
    for i in range(1, tableau.stages):
        advance += stage(i, tableau.nodes[i], tableau.rows[i])
    used = sorted(tableau.weights)

    def finish(y: Flat, h: Flat, *k: Flat) -> dict[str, Any]:
        by_stage = dict(zip(used, k, strict=True))
        z = _advanced(m, y, h[0], tableau.weights, [by_stage.get(j, ()) for j in range(tableau.stages)])
        return {"y_new": m.from_chart(y, z)}

    advance.append(work.call(program("finish", finish, {"y": m.ny, "h": 1, **{names[j]: m.nz for j in used}})))
    if not tableau.adaptive:
        return Step(tuple(begin), tuple(advance))

    rows = tableau.error
    judged = sorted({j for row in rows for j in row})

    def judge(y: Flat, y_new: Flat, h: Flat, span: Flat, *k: Flat) -> dict[str, Any]:
        by_stage = dict(zip(judged, k, strict=True))
        every = [by_stage.get(j, ()) for j in range(tableau.stages)]
        squares = [
            _weighted_square(m, y, y_new, span, [_combination(row, every, i) for i in range(m.nz)]) for row in rows
        ]
        if len(squares) == 1:
            return {"err": h[0] * sqrt(squares[0] * (1.0 / m.nz))}
        blend = (squares[0] + squares[1] * 0.01) * float(m.nz)
        # Nothing moves: no error, instead of 0/0.
        return {"err": h[0] * squares[0] / sqrt(where(blend > 0.0, blend, 1.0))}

    sizes = {"y": m.ny, "y_new": m.ny, "h": 1, "span": len(SPAN), **{names[j]: m.nz for j in judged}}
    judgement = (work.call(program("judge", judge, sizes)),)

    if tableau.first_same_as_last:

        def carry_text(y_new: Flat, k: Flat) -> dict[str, Any]:
            return {"k_next": [*m.parts(y_new)[1], *k[m.nv :]]}  # in the chart around y_new, u̇ = v

        last = names[tableau.stages - 1]
        carry: tuple[Statement, ...] = (work.call(program("carry", carry_text, {"y_new": m.ny, last: m.nz})),)
    else:
        fresh = program("origin", lambda y_new: {"z": m.chart_origin(y_new)}, {"y_new": m.ny})
        carry = (work.call(fresh), *rates("y_new", "z", "t_new", "k_next"))
    dense, look = _interpolant(work, tableau, names, stage)
    return Step(tuple(begin), tuple(advance), judgement, carry, dense, look, tableau.error_order)


def _weighted_square(m: Motion, y: Flat, y_new: Flat, span: Flat, error: Flat) -> Scalar:
    """Σ (e_i / (atol + rtol max(|y|, |y_new|)))²; chart coordinates are measured by those of their joint."""
    scale = _scales(m, y, y_new, span)
    total: Scalar = 0.0
    for e, s in zip(error, scale, strict=True):
        ratio = e / s
        total = total + ratio * ratio
    return total


def _scales(m: Motion, y: Flat, y_new: Flat, span: Flat) -> list[Scalar]:
    """Tolerances, one for each number of z; a turn or a shift in a quaternion joint counts against 1 rad or 1 m."""
    from linkwise.sim.motion import is_linear

    def of(a: Scalar, b: Scalar) -> Scalar:
        a, b = abs(a), abs(b)
        return span[2] + span[1] * where(a < b, b, a)

    q, v, x = m.parts(y)
    q_new, v_new, x_new = m.parts(y_new)
    scales: list[Scalar] = [0.0] * m.nv
    for joint in m._own_joints:
        for k in range(joint.nv):
            i, j = joint.q_slice.start + k, joint.v_slice.start + k
            scales[j] = of(q[i], q_new[i]) if is_linear(joint.type) else span[2] + span[1]
    return [*scales, *(of(a, b) for a, b in zip([*v, *x], [*v_new, *x_new], strict=True))]


def _interpolant(
    work: Work, tableau: Tableau, names: list[str], stage: Callable[[int, float, Row], list[Statement]]
) -> tuple[tuple[Statement, ...] | None, tuple[Statement, ...]]:
    m = work.motion
    if tableau.dense is not None:
        table = tableau.dense
        used = sorted(table)

        def by_powers(y: Flat, h: Flat, theta: Flat, *k: Flat) -> dict[str, Any]:
            weights: Row = {}
            for n, j in enumerate(used):
                total: Scalar = 0.0
                for coefficient in reversed(table[j]):
                    total = (total + coefficient) * theta[0]
                weights[n] = total
            return {"y_at": m.from_chart(y, _advanced(m, y, h[0], weights, k))}

        sizes = {"y": m.ny, "h": 1, "theta": 1, **{names[j]: m.nz for j in used}}
        return (), (work.call(program("look", by_powers, sizes)),)
    if not tableau.nested:
        return None, ()
    first = tableau.stages
    extra: list[Statement] = []
    for n, (node, row) in enumerate(zip(tableau.extra_nodes, tableau.extra_rows, strict=True)):
        extra += stage(first + n, node, row)
    used = sorted({0, first - 1, *tableau.weights, *(j for row in tableau.nested for j in row)})

    def nested(y: Flat, h: Flat, *k: Flat) -> dict[str, Any]:
        by_stage = dict(zip(used, k, strict=True))
        every = [by_stage.get(j, ()) for j in range(max(used) + 1)]
        columns = []
        for i in range(m.nz):
            delta = h[0] * _combination(tableau.weights, every, i)
            f_0, f_1 = h[0] * every[0][i], h[0] * every[first - 1][i]
            higher = [h[0] * _combination(row, every, i) for row in tableau.nested]
            columns.append([delta, f_0 - delta, 2.0 * delta - (f_1 + f_0), *higher])
        return {"bends": [column[j] for j in range(len(columns[0])) for column in columns]}

    powers = 3 + len(tableau.nested)
    sizes = {"y": m.ny, "h": 1, **{names[j]: m.nz for j in used}}
    extra.append(work.call(program("bends", nested, sizes)))

    def look(y: Flat, theta: Flat, bends: Flat) -> dict[str, Any]:
        z = []
        for i, start in enumerate(m.chart_origin(y)):
            total: Scalar = 0.0
            for j in reversed(range(powers)):
                total = (total + bends[j * m.nz + i]) * (theta[0] if j % 2 == 0 else 1.0 - theta[0])
            z.append(start + total)
        return {"y_at": m.from_chart(y, z)}

    sizes = {"y": m.ny, "theta": 1, "bends": powers * m.nz}
    return tuple(extra), (work.call(program("look", look, sizes)),)


def semi_implicit_euler(work: Work) -> Step:
    """V first, then q with the new v: first order, and symplectic where the mass matrix is constant."""
    m = work.motion
    rates = work.rates
    origin = program("origin", lambda y: {"z": m.chart_origin(y)}, {"y": m.ny})

    def text(y: Flat, h: Flat, k0: Flat) -> dict[str, Any]:
        q, v, x = m.parts(y)
        v_new = [a + h[0] * b for a, b in zip(v, k0[m.nv : 2 * m.nv], strict=True)]
        x_new = [a + h[0] * b for a, b in zip(x, k0[2 * m.nv :], strict=True)]
        return {"y_new": [*m.moved(q, [h[0] * b for b in v_new]), *v_new, *x_new]}

    step = work.call(program("step", text, {"y": m.ny, "h": 1, "k0": m.nz}))
    return Step((work.call(origin), *rates("y", "z", "t", "k0")), (step,))


# Loops.
def one_step(work: Work, step: Step, events: Program) -> Routine:
    """A single step, to look into it: rows y, p, t, h; y_new and the event functions g_new at its end are stored."""
    m = work.motion
    for name, size in (("y", m.ny), ("p", m.np), ("t", 1), ("h", 1)):
        work.buffer(name, size, load=True)
    work.buffer("y_new", m.ny, store=True)
    work.buffer("g_new", events.outputs[0].size, store=True)
    later = program("later", lambda t, h: {"t_new": t[0] + h[0]}, {"t": 1, "h": 1})
    statements = (
        *step.begin,
        *step.advance,
        work.call(later),
        work.call(events, {"t": "t_new", "y": "y_new", "g": "g_new"}),
    )
    return Routine("one_step", tuple(work.buffers.values()), statements)


def fixed_loop(work: Work, step: Step, events: Program | None = None) -> Routine:
    """Steps of equal size; every so many of them the state is recorded.

    Rows: y; p; start = [t0, h]; clock (see :data:`CLOCK`): steps done and to do, steps until the next record and
    between records, the next record's place, the status.
    """
    m = work.motion
    work.buffer("y", m.ny, load=True, store=True)
    work.buffer("p", m.np, load=True)
    work.buffer("start", 2, load=True)
    work.buffer("clock", len(CLOCK), load=True, store=True)

    def begin(clock: Flat, start: Flat) -> dict[str, Any]:
        running = (clock[0] < clock[1]) & (clock[5] <= RUNNING)
        return {"t": start[0] + clock[0] * start[1], "h": start[1], "running": flag(running)}

    def tick(clock: Flat, start: Flat, y: Flat, y_new: Flat, *hit: Flat) -> dict[str, Any]:
        number, stop, countdown, every, place, status = clock
        goes = (status <= RUNNING) & (number < stop)
        if hit:
            status = where(goes & (hit[0][0] > 0.0), EVENT, status)
            goes = goes & (hit[0][0] <= 0.0)
        number = where(goes, number + 1.0, number)
        countdown = where(goes, countdown - 1.0, countdown)
        save = goes & (countdown < 0.5)
        after = where(save, place + 1.0, place)
        return {
            "clock_new": [number, stop, where(save, every, countdown), every, after, status],
            "place": place,
            "save": flag(save),
            "t": start[0] + number * start[1],
            "running": flag((number < stop) & (status <= RUNNING)),
            "y_next": [where(goes, a, b) for a, b in zip(y_new, y, strict=True)],
        }

    sizes = {"clock": len(CLOCK), "start": 2, "y": m.ny, "y_new": m.ny, **({"hit": 1} if events is not None else {})}
    ticking = work.call(program("tick", tick, sizes))
    body: list[Statement] = [*step.begin, *step.advance]
    if events is not None:
        later = program("later", lambda t, h: {"t_new": t[0] + h[0]}, {"t": 1, "h": 1})
        body += [work.call(later), work.call(events, {"t": "t_new", "y": "y_new", "g": "g_new"})]
        body.append(work.call(_crossing(events), {}))
    body += [ticking, Copy("clock_new", "clock"), Copy("y_next", "y")]
    if events is not None:
        body.append(Copy("g_kept", "g"))
    body.append(IfAny("save", (Record("saved", "y", "place", "save"),)))
    opening: list[Statement] = [work.call(program("begin", begin, {"clock": len(CLOCK), "start": 2}))]
    if events is not None:
        opening.append(work.call(events))
    return Routine(
        "fixed_steps",
        tuple(work.buffers.values()),
        (*opening, WhileAny("running", tuple(body))),
        records=(("saved", m.ny),),
    )


def _crossing(events: Program) -> Program:
    """Whether any event function has changed its sign; ``g_kept`` are the values to compare with next."""
    size = events.outputs[0].size
    direction = events.outputs[1].size
    if direction != size:
        raise ValueError("an event program has values g and directions")

    def text(g: Flat, g_new: Flat, directions: Flat) -> dict[str, Any]:
        hit: Any = False
        for a, b, d in zip(g, g_new, directions, strict=True):
            up = (a < 0.0) & (b >= 0.0) & (d >= 0.0)
            down = (a > 0.0) & (b <= 0.0) & (d <= 0.0)
            hit = (up | down) if hit is False else hit | up | down
        hit = flag(hit)
        return {"hit": hit, "g_kept": [where(hit > 0.0, a, b) for a, b in zip(g, g_new, strict=True)]}

    return program("crossing", text, {"g": size, "g_new": size, "directions": size})


def adaptive_loop(work: Work, step: Step, *, every_step: bool, events: Program | None = None) -> Routine:
    """Steps as long as the tolerance allows, each state with its own.

    Rows: y; p; control (see :data:`CONTROL`); span (see :data:`SPAN`). With ``every_step`` each accepted step is
    recorded, otherwise the states at the times of the table ``times`` (infinity at its end).
    """
    m = work.motion
    nc = len(CONTROL)
    work.buffer("y", m.ny, load=True, store=True)
    work.buffer("p", m.np, load=True)
    work.buffer("control", nc, load=True, store=True)
    work.buffer("span", len(SPAN), load=True)
    work.buffer("next_time", 1)
    clip = not every_step and step.dense is None
    exponent = -1.0 / (step.error_order + 1)

    def begin(control: Flat) -> dict[str, Any]:
        t, h, status, place, _, _, left, _ = control
        return {
            "t": t,
            "first": flag(h <= 0.0),
            "place": place,
            "running": flag((status <= RUNNING) & (left > 0.0)),
        }

    def trim(t: Flat, control: Flat, span: Flat, next_time: Flat) -> dict[str, Any]:
        wanted = control[1]
        limited = where(wanted > span[3], span[3], wanted)
        goal = where(next_time[0] < span[0], next_time[0], span[0]) if clip else span[0]
        # A step that ends just before the goal would leave a crumb: stretch it, or halve what is left.
        room = goal - t[0]
        lands = limited * (1.0 + 1e-12) >= room
        return {"h": where(lands, room, limited), "t_new": where(lands, goal, t[0] + limited)}

    def decide(control: Flat, t: Flat, t_new: Flat, h: Flat, err: Flat, span: Flat, *hit: Flat) -> dict[str, Any]:
        _, wanted, status, place, accepted, rejected, left, held = control
        running = (status <= RUNNING) & (left > 0.0)
        good = err[0] <= 1.0
        accept, reject = running & good, running & ~good
        hits = accept & (hit[0][0] > 0.0) if hit else False
        accept = accept & (hit[0][0] <= 0.0) if hit else accept
        size = where(err[0] > 1e-30, err[0], 1e-30)
        factor = 0.9 * exp(log(size) * exponent)
        grow = where(factor < 10.0, factor, 10.0)
        grow = where((held > 0.0) & (grow > 1.0), 1.0, grow)
        shrink = where((err[0] > 1.0) & (factor > 0.2), factor, 0.2)  # NaN fails the comparison and shrinks
        after_accept = h[0] * where(grow > 0.2, grow, 0.2)
        after_accept = where((h[0] < wanted) & (after_accept < wanted) & (grow >= 1.0), wanted, after_accept)
        next_h = where(accept, after_accept, where(reject, h[0] * shrink, wanted))
        next_h = where(hits, h[0], next_h)  # the step to look into
        smallest = 1e-15 * where(abs(t[0]) > 1.0, abs(t[0]), 1.0)
        fails = reject & (next_h < smallest)
        ends = accept & (t_new[0] >= span[0])
        status = where(ends, DONE, status)
        status = where(hits, EVENT, status)
        status = where(fails, FAILED, status)
        next_t = where(accept, t_new[0], t[0])
        left = where(running, left - 1.0, left)
        control_new = [
            next_t,
            next_h,
            status,
            place,
            where(accept, accepted + 1.0, accepted),
            where(reject, rejected + 1.0, rejected),
            left,
            where(accept, 0.0, where(reject, 1.0, held)),
        ]
        return {"control_new": control_new, "accept": flag(accept)}

    def blend(
        control_new: Flat, accept: Flat, y: Flat, y_new: Flat, k0: Flat, k_next: Flat, place: Flat
    ) -> dict[str, Any]:
        yes = accept[0] > 0.0
        t, h, status, _, accepted, rejected, left, held = control_new
        return {
            "control_next": [t, h, status, place[0], accepted, rejected, left, held],
            "y_next": [where(yes, a, b) for a, b in zip(y_new, y, strict=True)],
            "k0_next": [where(yes, a, b) for a, b in zip(k_next, k0, strict=True)],
            "t": t,
            "running": flag((status <= RUNNING) & (left > 0.0)),
        }

    nz, ny, one = m.nz, m.ny, 1
    body: list[Statement] = [
        work.call(program("trim", trim, {"t": 1, "control": nc, "span": len(SPAN), "next_time": 1})),
        *step.advance,
        *step.judge,
    ]
    if events is not None:
        body.append(work.call(events, {"t": "t_new", "y": "y_new", "g": "g_new"}))
        body.append(work.call(_crossing(events)))
    sizes = {"control": nc, "t": one, "t_new": one, "h": one, "err": one, "span": len(SPAN)}
    body.append(work.call(program("decide", decide, {**sizes, **({"hit": one} if events is not None else {})})))
    if every_step:
        advance_place = program(
            "advance", lambda place, accept: {"place_next": place[0] + accept[0]}, {"place": 1, "accept": 1}
        )
        body.append(
            IfAny(
                "accept",
                (
                    Record("saved", "y_new", "place", "accept"),
                    Record("saved_t", "t_new", "place", "accept"),
                    work.call(advance_place),
                    Copy("place_next", "place"),
                ),
            )
        )
    else:
        body += _samples(work, step, clip)
    body += [
        *step.carry,
        work.call(
            program(
                "blend",
                blend,
                {"control_new": nc, "accept": one, "y": ny, "y_new": ny, "k0": nz, "k_next": nz, "place": one},
            )
        ),
        Copy("control_next", "control"),
        Copy("y_next", "y"),
        Copy("k0_next", "k0"),
    ]
    if events is not None:
        keep = program(
            "keep",
            lambda g, g_kept, accept: {
                "g_next": [where(accept[0] > 0.0, a, b) for a, b in zip(g_kept, g, strict=True)]
            },
            {"g": events.outputs[0].size, "g_kept": events.outputs[0].size, "accept": 1},
        )
        body += [work.call(keep), Copy("g_next", "g")]
    opening: list[Statement] = [work.call(program("begin", begin, {"control": nc})), *step.begin]
    opening += _first_step(work, step)
    if events is not None:
        opening.append(work.call(events))
    if not every_step:
        opening.append(Lookup("times", "place", "next_time"))
    records = (("saved", ny), ("saved_t", 1)) if every_step else (("saved", ny),)
    return Routine(
        "adaptive_steps",
        tuple(work.buffers.values()),
        (*opening, WhileAny("running", tuple(body))),
        tables=() if every_step else ("times",),
        records=records,
    )


def _samples(work: Work, step: Step, clip: bool) -> list[Statement]:
    """Record the states at all output times inside the step just accepted."""
    due = program(
        "due",
        lambda accept, next_time, t_new: {"pending": flag((accept[0] > 0.0) & (next_time[0] <= t_new[0]))},
        {"accept": 1, "next_time": 1, "t_new": 1},
    )
    onward = program("onward", lambda place, pending: {"place_next": place[0] + pending[0]}, {"place": 1, "pending": 1})
    again: list[Statement] = [
        work.call(onward),
        Copy("place_next", "place"),
        Lookup("times", "place", "next_time"),
        work.call(due),
    ]
    if clip:  # the step ends on the output time
        inside: list[Statement] = [WhileAny("pending", (Record("saved", "y_new", "place", "pending"), *again))]
    else:
        theta = program(
            "theta",
            lambda next_time, t, h, pending: {"theta": where(pending[0] > 0.0, (next_time[0] - t[0]) / h[0], 0.0)},
            {"next_time": 1, "t": 1, "h": 1, "pending": 1},
        )
        looking = (work.call(theta), *step.look, Record("saved", "y_at", "place", "pending"), *again)
        inside = [*(step.dense or ()), WhileAny("pending", looking)]
    return [work.call(due), IfAny("pending", tuple(inside))]


def _first_step(work: Work, step: Step) -> list[Statement]:
    """A first step size from the sizes of y, ẏ and ÿ, for the states that were given none (Hairer et al., II.4)."""
    m = work.motion
    nz, nc = m.nz, len(CONTROL)
    rates = work.rates

    def norm(values: Flat, scale: Flat) -> Scalar:
        total: Scalar = 0.0
        for a, s in zip(values, scale, strict=True):
            total = total + (a / s) * (a / s)
        return sqrt(total * (1.0 / nz))

    def guess(y: Flat, k0: Flat, t: Flat, span: Flat) -> dict[str, Any]:
        scale = _scales(m, y, y, span)
        d0, d1 = norm(m.chart_origin(y), scale), norm(k0, scale)
        h0 = where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / where(d1 > 0.0, d1, 1.0))
        h0 = where(h0 > span[0] - t[0], span[0] - t[0], h0)
        start = m.chart_origin(y)
        return {"z": [a + h0 * b for a, b in zip(start, k0, strict=True)], "t_stage": t[0] + h0, "h_guess": h0}

    def settle(y: Flat, k0: Flat, k1: Flat, h_guess: Flat, control: Flat, span: Flat) -> dict[str, Any]:
        scale = _scales(m, y, y, span)
        h0 = h_guess[0]
        d1 = norm(k0, scale)
        d2 = norm([b - a for a, b in zip(k0, k1, strict=True)], scale) / h0
        largest = where(d1 > d2, d1, d2)
        small = largest <= 1e-15
        h1 = where(
            small,
            where(h0 * 1e-3 > 1e-6, h0 * 1e-3, 1e-6),
            exp(log(0.01 / where(small, 1.0, largest)) * (1.0 / (step.error_order + 1))),
        )
        chosen = where(100.0 * h0 < h1, 100.0 * h0, h1)
        chosen = where(chosen > 0.0, chosen, 1e-6)  # NaN: try anything, and fail in the loop
        return {"control_new": [control[0], where(control[1] <= 0.0, chosen, control[1]), *control[2:]]}

    guessing = work.call(program("guess", guess, {"y": m.ny, "k0": nz, "t": 1, "span": len(SPAN)}))
    settling = program(
        "settle",
        settle,
        {"y": m.ny, "k0": nz, "k1": nz, "h_guess": 1, "control": nc, "span": len(SPAN)},
    )
    work.buffer("k1", nz)
    return [
        IfAny(
            "first",
            (guessing, *rates("y", "z", "t_stage", "k1"), work.call(settling), Copy("control_new", "control")),
        )
    ]
