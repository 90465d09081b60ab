"""Dense systems in groups of rows inside compiled functions: calls of :mod:`linkwise.trace.grouped_programs`."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.functions.traced_loops import tracer_in
from linkwise.spatial.dual import Dual
from linkwise.spatial.grouped_systems import GroupedRows, Swept
from linkwise.spatial.scalar import Flat, Items, Scalar
from linkwise.trace import grouped_programs
from linkwise.trace.block import Block
from linkwise.trace.calls import CallingTracer
from linkwise.trace.grouped_programs import Tiles
from linkwise.trace.state_loops import ItemColumn


def grouped_products(
    rows: GroupedRows, used: Flat, left: Sequence[Flat], right: Sequence[Flat], widths: Sequence[int]
) -> Sequence[Scalar] | None:
    """:func:`linkwise.spatial.grouped_systems.grouped_products` where numbers are traced, else None."""
    tracer = _tracer(used, *left, *right)
    if tracer is None:
        return None
    is_square = all(a is b for a, b in zip(left, right, strict=True))
    program = grouped_programs.products(Tiles(*rows), tuple(widths), tuple(map(len, left)), is_square)
    return tracer.call(program, [used, *left, *(() if is_square else right)])[0]


def grouped_sweeps(
    rows: GroupedRows,
    used: Flat,
    state: tuple[Flat, Flat],
    W: Flat,
    columns: Sequence[Sequence[Items]],
    steps: Sequence[Swept],
    passes: int,
) -> Sequence[Sequence[Scalar]] | None:
    """:func:`linkwise.spatial.grouped_systems.grouped_sweeps` where numbers are traced, else None."""
    tracer = _tracer(used, *state, W)
    if tracer is None:
        return None
    codes = []
    for own, step in zip(columns, steps, strict=True):
        v, x = (tracer.loop_input(name, rows.size) for name in ("v", "x"))
        items = [tracer.loop_input("item", column.width) for column in own]
        following, change = step(v, x, *items)
        code, captured = tracer.part("sweep", v, [("next", following), ("change", change)], items=[x, *items])
        assert isinstance(code, Block) and not captured.numbers and not captured.arrays
        codes.append(code)
    known = [[ItemColumn(tuple(c.starts), c.width, len(c.numbers)) for c in own] for own in columns]
    program = grouped_programs.sweeps(Tiles(*rows), codes, known, passes)
    given = [list(column.numbers) for own in columns for column in own]
    return tracer.call(program, [used, *state, W, *given])


def grouped_solution(
    rows: GroupedRows, used: Flat, active: Flat, lines: Flat, shift: Flat, W: Flat
) -> Sequence[Sequence[Scalar]] | None:
    """:func:`linkwise.spatial.grouped_systems.grouped_solution` where numbers are traced, else None."""
    tracer = _tracer(used, lines, shift, W)
    if tracer is None:
        return None
    return tracer.call(grouped_programs.solution(Tiles(*rows)), [used, active, lines, shift, W])


def _tracer(*arrays: Flat) -> CallingTracer | None:
    """The tracer of some numbers; None where they have none, or are dual."""
    numbers = [x for array in arrays for x in array]
    return None if any(isinstance(x, Dual) for x in numbers) else tracer_in(numbers)
