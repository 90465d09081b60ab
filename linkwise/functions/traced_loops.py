"""Loops inside compiled functions: ``lw.loop`` so many times, ``lw.while_loop`` while a condition holds.

Where the scalars are traced, the body is traced once and becomes a loop of the program: compiling takes no longer for a
million passes than for one. On plain numbers, and on the symbols of other libraries, Python itself loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.spatial.dual import Dual
from linkwise.spatial.flattening import flatten, lifted
from linkwise.spatial.scalar import Flat, Items, RowTable, Scalar, either, plainly_looped_over, sqrt, where
from linkwise.trace import state_loops
from linkwise.trace.block import Block
from linkwise.trace.calls import CallingTracer, Captured
from linkwise.trace.program import Program
from linkwise.trace.tracer import Traced, TracedBool

State = Any
Rebuild = Callable[[Flat], State]


def loop(count: int, body: Callable[[Scalar, State], State], state: State) -> State:
    """The state after ``count`` passes of ``state = body(i, state)``, i = 0, 1, ….

    Inside a function that ``lw.compile`` compiles it is a loop of machine code, with derivatives in forward and reverse
    mode; anywhere else it is a loop of Python's.

    Args:
        count: number of passes, a whole number that is known beforehand.
        body: gives the next state from the number of the pass and the state; it may use whatever it sees, and must not
            branch on values (use ``lw.math.where``).
        state: a number, an array, or a list, tuple or dict of these; the body returns the same shapes.

    Example:
        >>> import linkwise as lw
        >>> lw.loop(5, lambda i, x: x + i * i, 0.0)  # 0 + 1 + 4 + 9 + 16
        30.0
    """
    if not _is_whole(count) or count < 0:
        raise InputError(
            "a loop needs a number of passes that is known beforehand",
            got=repr(count),
            allowed="0, 1, 2, …",
            do="lw.while_loop for a number that depends on values",
        )
    passes = int(count)
    if passes == 0:
        return state
    first = body(0.0, state)
    tracer = _tracer_of(state) or _tracer_of(first)
    if tracer is None:  # numbers, symbols, or a trace that has no loops: one pass after the other
        for i in range(1, passes):
            first = _alike(body(float(i), first), first)
        return first
    leaves, rebuild = _taken_apart((0.0, state))

    def on(held: Flat) -> list[Scalar]:
        number, now = rebuild(held)
        return _leaves_of((number + 1.0, _alike(body(number, now), now)))

    made = _RecordedBody(tracer, leaves, on)
    code, captured = tracer.part("pass", made.inputs, [("next", made.outputs)])
    program = state_loops.counted_loop("loop", code, passes)
    return rebuild(made.results(tracer.call(program, [made.begin, *tracer.given(captured)])[0]))[1]


def while_loop(
    condition: Callable[[State], Scalar],
    body: Callable[[State], State],
    state: State,
    limit: int = 1_000_000,
) -> State:
    """The state after passes of ``state = body(state)`` as long as ``condition(state)`` holds.

    The states of a batch go on until the last of them is done; those that are done stay as they are. There are
    derivatives in forward mode: those of the passes that were made.

    Args:
        condition: whether there is another pass; of plain numbers, or to be used by ``lw.math.where``.
        body: gives the next state.
        state: a number, an array, or a list, tuple or dict of these; the body returns the same shapes.
        limit: the most passes. A state that is not done by then is NaN, so that no call goes on for ever.

    Example:
        >>> import linkwise as lw
        >>> lw.while_loop(lambda x: x > 1.0, lambda x: x / 2.0, 48.0)
        0.75
    """
    if not _is_whole(limit) or limit < 1:
        raise InputError("limit is not a number of passes", got=repr(limit), allowed="1, 2, 3, …")
    goes_on = condition(state)
    tracer = _tracer_of(state) or _tracer_of(goes_on) or _tracer_of(body(state))
    if tracer is None:
        return _plain_while(condition, body, state, int(limit), goes_on)
    leaves, rebuild = _taken_apart((0.0, state))

    def on(held: Flat) -> list[Scalar]:
        number, now = rebuild(held)
        going = _both(condition(now), number < float(limit))
        following = _leaves_of((number + 1.0, _alike(body(now), now)))
        return either(going, following, held)

    made = _RecordedBody(tracer, leaves, on)

    def flag(numbers: Flat) -> list[Scalar]:
        number, now = rebuild(made.held(numbers))
        return [where(_both(condition(now), number < float(limit)), 1.0, 0.0)]

    code, captured, begin = _with_flag(tracer, made, flag)
    program = state_loops.while_loop("while_loop", begin, code)
    number, found = rebuild(made.results(tracer.call(program, [made.begin, *tracer.given(captured)])[0]))
    late = _both(number >= float(limit), condition(found))
    parts, again = _taken_apart(found)
    nan = sqrt(-1.0 - number)  # as a constant it would be taken for a mistake
    return again([where(late, nan, x) for x in parts])


def loop_over_items(
    columns: Sequence[Items],
    step: Callable[..., tuple[list[Scalar], list[Scalar]]],
    state: list[Scalar],
    asks: Sequence[Callable[..., Scalar]] = (),
    first_ones: bool = False,
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """A loop over items: :func:`linkwise.spatial.scalar.looped_over`."""
    known = [all(isinstance(x, (int, float)) for x in column.numbers) for column in columns]
    numbers = [
        *state,
        *(x for column, is_known in zip(columns, known, strict=True) if not is_known for x in column.numbers),
    ]
    tracer = tracer_in(numbers)
    if tracer is None or any(isinstance(x, Dual) for x in numbers):
        return plainly_looped_over(columns, step, state, asks)
    held = tracer.loop_input("state", max(1, len(state)))
    items = [tracer.loop_input("item", column.width) for column in columns]
    now = held[: len(state)]
    following, made = step(now, *items)
    outputs = [("next", following if state else held)]
    if made:
        outputs.append(("made", made))
    flags = [("flag", [where(ask(now, *items), 1.0, 0.0)]) for ask in asks]
    _, captured = tracer.part("pass", held, [*outputs, *flags], items=items)
    code = tracer.part("pass", held, outputs, captured, items)[0]
    conditions = [tracer.part("condition", held, [flag], captured, items)[0] for flag in flags]
    program = state_loops.loop_over_items(
        "items", code, [_column(*both) for both in zip(columns, known, strict=True)], conditions, first_ones
    )
    given = [list(column.numbers) for column, is_known in zip(columns, known, strict=True) if not is_known]
    results = tracer.call(program, [state or [0.0], *tracer.given(captured), *given])
    of_passes = results[1] if len(results) > 1 else []
    width = len(made) if of_passes else 0
    passes = len(columns[0].starts)
    return results[0][: len(state)], [of_passes[k * width : (k + 1) * width] for k in range(passes)]


def row_of_table(table: RowTable, place: Scalar) -> list[Scalar] | None:
    """The number of a row of a table and the row: :meth:`linkwise.spatial.scalar.RowTable.at`; None if not traced."""
    tracer = tracer_in([place])
    if tracer is None or isinstance(place, Dual):
        return None
    return list(tracer.call(_program_of(table), [[place]])[0])


@lru_cache(maxsize=64)
def _program_of(table: RowTable) -> Program:
    return state_loops.table_row(np.array(table.numbers, float), table.count, table.stride, table.width)


def _column(column: Items, is_known: bool) -> state_loops.ItemColumn:
    constants = np.array(column.numbers, float) if is_known else None
    return state_loops.ItemColumn(tuple(column.starts), column.width, len(column.numbers), constants)


def _is_whole(number: object) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def _plain_while(
    condition: Callable[[State], Scalar], body: Callable[[State], State], state: State, limit: int, goes_on: Scalar
) -> State:
    passes = 0
    while _known(goes_on):
        if passes == limit:
            leaves, rebuild = _taken_apart(state)
            return rebuild([x * float("nan") for x in leaves])
        state, passes = _alike(body(state), state), passes + 1
        goes_on = condition(state)
    return state


def _known(truth: Scalar) -> bool:
    try:
        return bool(truth)
    except Exception as error:  # every library of symbols has an error of its own for this
        raise InputError(
            "lw.while_loop does not know its condition here",
            got=repr(truth),
            allowed="numbers, or a function that lw.compile compiles",
            do="lw.loop with a fixed number of passes, and lw.math.where in its body",
        ) from error


def _both(a: Scalar, b: Scalar) -> Scalar:
    return a & b if not isinstance(a, bool) else (b if a else False)


class _RecordedBody:
    """A body run once on numbers that stand for the state, and what those are.

    A number of the state that the body makes a dual number (of what it sees around) is one from the beginning on.
    """

    def __init__(self, tracer: CallingTracer, leaves: Flat, body: Callable[[Flat], list[Scalar]]) -> None:
        kinds = [_levels(x) for x in leaves]
        while True:
            self.begin = flatten(list(map(lifted, leaves, kinds)))[0]
            self._rebuilt = flatten([lifted(0.0, levels) for levels in kinds])[1]
            self.inputs = tracer.loop_input("state", len(self.begin))
            following = body(self.held(self.inputs))
            found = [tuple(sorted({*k, *_levels(x)}, reverse=True)) for k, x in zip(kinds, following, strict=True)]
            if found == kinds:
                break
            kinds = found
        self.outputs = flatten(list(map(lifted, following, kinds)))[0]
        for number in self.outputs:
            if isinstance(number, TracedBool):
                raise InputError("the state of a loop holds a truth value", do="lw.math.where(condition, 1.0, 0.0)")

    def held(self, numbers: Flat) -> list[Scalar]:
        """The leaves of a state whose parts these are."""
        state: list[Scalar] = self._rebuilt(numbers)
        return state

    results = held


def _with_flag(
    tracer: CallingTracer, made: _RecordedBody, flag: Callable[[Flat], list[Scalar]]
) -> tuple[Block | Program, Captured, Block | Program]:
    """The body with the flag of its result, and what raises the first flag, both of the same captured values."""
    following = [x if isinstance(x, Traced) else Traced(tracer, tracer.number(x)) for x in made.outputs]
    outputs = [("next", made.outputs), ("flag_next", flag(following))]
    everything = [*outputs, ("flag", flag(made.inputs))]
    _, captured = tracer.part("pass", made.inputs, everything)
    code = tracer.part("pass", made.inputs, outputs, captured)[0]
    return code, captured, tracer.part("condition", made.inputs, everything[2:], captured)[0]


# Numbers in nested sequences.
def _taken_apart(value: State) -> tuple[list[Scalar], Rebuild]:
    """The numbers of a state, and a function that puts others in their places."""
    if isinstance(value, np.ndarray):
        shape, plain = value.shape, value.dtype != object
        flat = [float(x) for x in value.reshape(-1)] if plain else list(value.reshape(-1))
        return flat, lambda numbers: _array(numbers, shape)
    if isinstance(value, Mapping):
        keys = list(value)
        leaves, build = _taken_apart([value[key] for key in keys])
        return leaves, lambda numbers: dict(zip(keys, build(numbers), strict=True))
    if isinstance(value, (list, tuple)):
        pieces = [_taken_apart(x) for x in value]
        sizes, kind = [len(leaves) for leaves, _ in pieces], type(value)

        def rebuild(numbers: Flat) -> State:
            rest = iter(numbers)
            made = [build([next(rest) for _ in range(n)]) for n, (_, build) in zip(sizes, pieces, strict=True)]
            return kind(*made) if hasattr(kind, "_fields") else kind(made)

        return [x for leaves, _ in pieces for x in leaves], rebuild
    if isinstance(value, (bool, str, bytes)) or value is None or isinstance(value, TracedBool):
        raise InputError("the state of a loop holds something that is not a number", got=repr(value))
    return [float(value) if isinstance(value, (int, np.number)) else value], lambda numbers: numbers[0]


def _array(numbers: Flat, shape: tuple[int, ...]) -> State:
    if all(isinstance(x, float) for x in numbers):
        return np.array(numbers).reshape(shape)
    return scalar_array(numbers, shape)


def _leaves_of(value: State) -> list[Scalar]:
    return _taken_apart(value)[0]


def _alike(following: State, state: State) -> State:
    """The next state, if it has the shapes of the one before."""
    sizes = [len(_leaves_of(x)) for x in (following, state)]
    if sizes[0] != sizes[1] or _form(following) != _form(state):
        raise InputError(
            "the body of a loop returns another shape than it was given",
            got=f"{_form(following)}",
            allowed=f"{_form(state)}",
            do="return the state in the order and shapes in which the body takes it",
        )
    return following


def _form(value: State) -> object:
    """Nesting of a state, to be shown and compared."""
    if isinstance(value, np.ndarray):
        return f"array {value.shape}" if value.shape else "number"
    if isinstance(value, Mapping):
        return {key: _form(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_form(x) for x in value)
    return "number"


def _tracer_of(value: State) -> CallingTracer | None:
    """The tracer of a state's scalars, if its trace can have loops."""
    if isinstance(value, (bool, TracedBool)):
        tracer = getattr(value, "tracer", None)
        return tracer if isinstance(tracer, CallingTracer) else None
    return tracer_in(_leaves_of(value))


def tracer_in(numbers: Sequence[Any]) -> CallingTracer | None:
    """The tracer of some numbers."""
    for x in numbers:
        todo = [x]
        while todo:
            one = todo.pop()
            if isinstance(one, Dual):
                todo += [one.value, one.tangent]
            elif isinstance(one, Traced) and isinstance(one.tracer, CallingTracer):
                return one.tracer
    return None


def _levels(x: Scalar) -> tuple[int, ...]:
    """The levels of differentiation of a number, the highest first."""
    if not isinstance(x, Dual):
        return ()
    return tuple(sorted({x.level, *_levels(x.value), *_levels(x.tangent)}, reverse=True))
