"""Loops that wait for a flag: brought to the top of a program, and the numbers that a state takes along in one.

States beside each other in lanes wait for the slowest of them. A target that lets a state go through a loop beside
other states than those it came with must know what such a state needs there, and what it brings back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkwise.dataclass import dataclass, replace
from linkwise.trace.block import Block
from linkwise.trace.program import (
    PARAMETERS,
    Angles,
    Buffer,
    Call,
    Copy,
    Host,
    IfAny,
    Program,
    Read,
    Record,
    Seek,
    Statement,
    WhileAny,
    buffer_of,
    copied,
    inside,
    places_of,
    rewritten,
    with_statements,
)

MOVED = 8
"""Operations of a pass for each number that moves with a state, from which on a loop is worth it."""


@dataclass(frozen=True)
class WaitingLoop:
    """The first loop of a program that waits for a flag, and what stands around it.

    Args:
        before: statements.
        flag: raised by states that are not done.
        body: of the loop.
        after: statements.
        taken: buffers whose numbers a state takes along into the loop.
        brought: those whose numbers it brings back.
        waits: those that hold numbers of a state while it is in the loop; all others may be shared by all blocks.
    """

    before: tuple[Statement, ...]
    flag: str
    body: tuple[Statement, ...]
    after: tuple[Statement, ...]
    taken: tuple[str, ...]
    brought: tuple[str, ...]
    waits: frozenset[str]

    @classmethod
    def of(cls, program: Program) -> WaitingLoop | None:
        """None if there is none in which states could go with others, or none whose passes cost more than moving."""
        found = [k for k, statement in enumerate(program.statements) if isinstance(statement, WhileAny)]
        loop = program.statements[found[0]] if found else None
        if not isinstance(loop, WhileAny) or not _goes_anywhere(loop.body):
            return None
        if any(buffer.in_lanes for buffer in program.buffers):
            return None
        before, after = program.statements[: found[0]], program.statements[found[0] + 1 :]
        asked = _needed(program, after)
        later = asked | {buffer.name for buffer in program.kept if buffer.store}
        written = {buffer_of(place) for one in _all(loop.body) for place in places_of(one)[1]}
        needed = _needed(program, loop.body) | {loop.flag}
        in_order = [buffer.name for buffer in program.buffers]
        taken, brought = (tuple(x for x in in_order if x in names) for names in (needed, written & later))
        moved = sum(program.sizes[name] for name in (*taken, *brought))
        if with_statements(program, loop.body, program.buffers).length < MOVED * moved:
            return None
        made = {buffer_of(place) for one in _all(before) for place in places_of(one)[1]} | written
        waits = needed | set(brought) | asked | {number.buffer for number in program.initial}
        waits |= {b.name for b in program.kept if b.store and (b.load or b.name in made)}
        waits |= {statement.arguments for statement in program.walk() if isinstance(statement, Angles)}
        return cls(before, loop.flag, loop.body, after, taken, brought, frozenset(waits))

    @property
    def follows_choices(self) -> bool:
        """Whether before the loop a block of states goes through parts that some of them alone need."""
        return _chooses(self.before)


def _all(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Statements, and those inside them."""
    for statement in statements:
        yield statement
        yield from _all(inside(statement))


def _chooses(statements: Sequence[Statement]) -> bool:
    """Whether some of them, or of programs that are called, run only if a state needs them."""
    codes = [one.code for one in _all(statements) if isinstance(one, Call)]
    return any(isinstance(one, IfAny) for one in _all(statements)) or any(
        isinstance(code, Program) and _chooses(code.statements) for code in codes
    )


def _goes_anywhere(statements: Sequence[Statement]) -> bool:
    """Whether no statement asks for the number of a state."""
    for statement in _all(statements):
        if isinstance(statement, (Seek, Read, Record, Host)):
            return False
        code = statement.code if isinstance(statement, Call) else None
        if isinstance(code, Program) and not _goes_anywhere(code.statements):
            return False
    return True


def _needed(program: Program, body: Sequence[Statement]) -> set[str]:
    """The buffers of which a pass needs what was there before it: all but those that it first writes as a whole."""
    needed: set[str] = set()
    made: set[str] = set()
    for statement in body:
        parts = list(_all([statement]))
        needed |= {buffer_of(place) for one in parts for place in places_of(one)[0]} - made
        whole = _written_whole(program, statement)
        made |= whole - needed
        needed |= {buffer_of(place) for one in parts for place in places_of(one)[1]} - made
    return needed - {PARAMETERS}


def _written_whole(program: Program, statement: Statement) -> set[str]:
    """The buffers that a statement fills from their beginning to their end."""
    match statement:
        case Call(code, _, outputs):
            pairs = zip(outputs, code.outputs, strict=True)
            return {place for place, spec in pairs if isinstance(place, str) and program.sizes[place] == spec.size}
        case Copy(_, str(target)) if copied(program, statement) == program.sizes[target]:
            return {target}
        case _:
            return set()


def with_loops_inlined(program: Program) -> Program:
    """The program, with the statements of called ones that wait for a flag in place of their calls."""
    buffers, statements = list[Buffer](), list[Statement]()
    for statement in program.statements:
        own, inner = _inlined(program, statement, len(statements))
        buffers += own
        statements += inner
    if len(statements) == len(program.statements):
        return program
    return with_statements(program, statements, (*program.buffers, *buffers))


def _inlined(program: Program, statement: Statement, number: int) -> tuple[list[Buffer], Sequence[Statement]]:
    """The buffers and statements of a call; the call itself where it does not wait, or has data of its own."""
    if not isinstance(statement, Call) or isinstance(statement.code, Block):
        return [], (statement,)
    code = statement.code
    data = (*code.tables, *code.records, *code.curves, *code.series, *code.ranges, *code.initial, *code.parameters)
    if data or not code.is_compilable or not any(isinstance(one, WhileAny) for one in code.statements):
        return [], (statement,)
    names: dict[str, str] = {}
    order = [b for b in code.buffers if b.load] + [b for b in code.buffers if b.store]
    for buffer, place in zip(order, (*statement.inputs, *statement.outputs), strict=True):
        if not isinstance(place, str) or program.sizes[place] != buffer.size:
            return [], (statement,)
        if buffer.load and buffer.name in code.written:  # the caller's numbers stay as they are
            return [], (statement,)
        names[buffer.name] = place
    own = [buffer for buffer in code.buffers if buffer.name not in names]
    names |= {buffer.name: f"{number}:{buffer.name}" for buffer in own}
    return [replace(b, name=names[b.name]) for b in own], tuple(rewritten(one, names) for one in code.statements)
