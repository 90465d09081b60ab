"""Loops that go on in the memory of the state they begin with, where nobody needs that any more.

A program that leads from a state to the next, called on a buffer that is not read afterwards, may write its result
where the state is, if it never reads the state again once it has begun to write. Then nothing is moved from the end of
one loop to the beginning of the next, nor from one pass to the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from linkwise.trace.block import Block
from linkwise.trace.program import (
    Call,
    Copy,
    Place,
    Program,
    Statement,
    buffer_of,
    inside,
    places_of,
    rewritten,
    with_statements,
)


def in_place(program: Program, known: dict[int, Program] | None = None) -> Program:
    """A program that does the same, with as many results as possible where its states are."""
    known = {} if known is None else known
    if id(program) not in known:
        known[id(program)] = _Rewriting(program, known).program
    return known[id(program)]


def goes_on_in_place(code: Block | Program, given: int, made: int) -> bool:
    """Whether an output of a program may lie where one of its inputs does: it reads that before it writes."""
    if isinstance(code, Block):
        return _copies(code) and given == code.nodes[0][1]
    source = [b.name for b in code.buffers if b.load][given]
    target = [b.name for b in code.buffers if b.store][made]
    if source == target or code.sizes[source] != code.sizes[target] or source in code.written:
        return False
    begun = False
    for statement in code.statements:
        read, written = ({buffer_of(place) for place in side} for side in _places(statement))
        if begun and source in read:
            return False
        if target in written:
            if source in read and statement != Copy(source, target) and not _may_be_one(statement, source, target):
                return False
            begun = True
    return True


def _may_be_one(statement: Statement, state: str, result: str) -> bool:
    """Whether a statement is a call of a program that may put the result where its state is."""
    if not isinstance(statement, Call) or result not in statement.outputs or state not in statement.inputs:
        return False
    if [buffer_of(place) for place in statement.inputs].count(state) > 1:
        return False
    return goes_on_in_place(statement.code, statement.inputs.index(state), statement.outputs.index(result))


def _copies(block: Block) -> bool:
    """Whether a block does nothing but copy an array as it is."""
    if len(block.outputs) != 1 or not block.nodes or block.nodes[0][0] != "input":
        return False
    array = block.nodes[0][1]
    if len(block.nodes) != block.inputs[array].size:
        return False
    whole = [("input", array, i) for i in range(block.inputs[array].size)]
    return [block.nodes[k] for k in block.results[0]] == whole


def _places(statement: Statement) -> tuple[list[Place], list[Place]]:
    """The places that a statement and those inside it read, and those that they write."""
    read, written = (list(side) for side in places_of(statement))
    for one in inside(statement):
        more = _places(one)
        read += more[0]
        written += more[1]
    return read, written


class _Rewriting:
    """A program, while results are put where states are."""

    def __init__(self, program: Program, known: dict[int, Program]) -> None:
        codes = {id(code): code if isinstance(code, Block) else in_place(code, known) for code in program.codes}
        self.sizes = program.sizes
        self.stored = {b.name for b in program.buffers if b.store and not b.load}
        self.own = {b.name for b in program.buffers if not (b.load or b.store)} - {x.buffer for x in program.initial}
        self.gone: set[str] = set()
        statements = tuple(rewritten(one, codes=codes) for one in program.statements)
        self.uses = Counter(buffer_of(x) for one in statements for side in _places(one) for x in side)
        statements = self._by_calls(self._by_passes(statements))
        self.program = program
        if self.gone or any(code is not codes[id(code)] for code in program.codes):
            left = tuple(b for b in program.buffers if b.name not in self.gone)
            self.program = with_statements(program, statements, left)

    def _by_passes(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Calls whose results are copied to where their states are, and are nowhere else, without these copies."""
        pairs: dict[str, list[bool]] = {}

        def look(statements: Sequence[Statement]) -> None:
            for k, statement in enumerate(statements):
                match statement:
                    case Copy(str(result), str(state)) if result in self.own and k > 0:
                        pairs.setdefault(result, []).append(_may_be_one(statements[k - 1], state, result))
                look(inside(statement))

        def joined(statements: Sequence[Statement]) -> tuple[Statement, ...]:
            found: list[Statement] = []
            for statement in statements:
                match statement:
                    case Copy(str(result), str(state)) if result in self.gone:
                        found[-1] = rewritten(found[-1], {result: state})
                    case _:
                        found.append(rewritten(statement, inner=joined))
            return tuple(found)

        look(statements)
        self.gone |= {name for name, fit in pairs.items() if all(fit) and self.uses[name] == 2 * len(fit)}
        return joined(statements)

    def _by_calls(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Calls one after the other with results where their states are, if nobody reads the states afterwards."""
        touched = [{buffer_of(x) for side in _places(one) for x in side} for one in statements]
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for k, some in enumerate(touched):
            for name in some:
                first.setdefault(name, k)
                last[name] = k
        names: dict[str, str] = {}
        for k, call in enumerate(statements):
            if not isinstance(call, Call):
                continue
            made = [x for x in call.outputs if isinstance(x, str) and x in self.own | self.stored and first[x] == k]
            given = [x for x in call.inputs if isinstance(x, str)]
            joined: set[str] = set()
            for result, place in product(made, given):
                state = names.get(place, place)
                if state not in self.own or last[state] != k or joined & {state, result}:
                    continue
                if _may_be_one(call, place, result):
                    stays, goes = (state, result) if result in self.own else (result, state)
                    names = {old: stays if new == goes else new for old, new in names.items()} | {goes: stays}
                    first[stays], last[stays] = first[state], last[result]
                    self.gone.add(goes)
                    joined |= {state, result}
        found = (rewritten(one, names) for one in statements)
        return tuple(one for one in found if not _does_nothing(one))


def _does_nothing(statement: Statement) -> bool:
    """Whether a statement copies something to where it is."""
    return (
        isinstance(statement, Call)
        and isinstance(statement.code, Block)
        and bool(set(statement.inputs) & set(statement.outputs) and _copies(statement.code))
    )
