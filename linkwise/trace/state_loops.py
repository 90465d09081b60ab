"""Loops over a state of a few numbers, as programs: so many times, or while a condition holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from linkwise.trace.block import Block
from linkwise.trace.program import Buffer, Call, Copy, For, Program, Statement, WhileAny

STATE, CAPTURED, RESULT = "in:state", "in:captured", "out:state"


@dataclass(frozen=True, eq=False)
class CountedLoop(Program):
    """``state = code(state, captured)``, so many times; what is captured stays as it is."""

    code: Block | Program = field(kw_only=True)
    passes: int = field(kw_only=True)


def counted_loop(name: str, code: Block | Program, passes: int) -> CountedLoop:
    """The program of a body that takes ``state`` and ``captured`` and makes the next state."""
    state, captured = code.inputs
    body = (Call(code, (RESULT, CAPTURED), ("next",)), Copy("next", RESULT))
    return CountedLoop(
        name,
        (*_arrays(state.size, captured.size), Buffer("next", state.size)),
        (Copy(STATE, RESULT), For(passes, body)),
        code=code,
        passes=passes,
    )


def while_loop(name: str, begin: Block | Program, code: Block | Program) -> Program:
    """The program of a body that makes the next state and a flag, with what raises the first flag.

    States whose flag is down must be left as they are by the body: those beside them may go on.
    """
    state, captured = code.inputs
    statements: tuple[Statement, ...] = (
        Copy(STATE, RESULT),
        Call(begin, (RESULT, CAPTURED), ("flag",)),
        WhileAny("flag", (Call(code, (RESULT, CAPTURED), ("next", "flag_next")), *_moved("next", "flag_next"))),
    )
    own = (Buffer("next", state.size), Buffer("flag", 1), Buffer("flag_next", 1))
    return Program(name, (*_arrays(state.size, captured.size), *own), statements)


def _moved(state: str, flag: str) -> tuple[Copy, Copy]:
    return Copy(state, RESULT), Copy(flag, "flag")


def _arrays(state: int, captured: int) -> tuple[Buffer, ...]:
    inputs = Buffer(STATE, state, load=True), Buffer(CAPTURED, captured, load=True)
    return (*inputs, Buffer(RESULT, state, store=True))
