"""Loops that go on where their states are: the same numbers, and fewer of them moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise.functions.function  # noqa: F401  (loops of texts become loops of programs)
from linkwise.spatial.scalar import Items, looped_over, where
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.calls import traced
from linkwise.trace.in_place import goes_on_in_place, in_place
from linkwise.trace.interpreter import evaluate_in_python
from linkwise.trace.program import Call, Copy, Program, copied
from linkwise.trace.verifier import verify

WIDE = 5


def stirred(state: Any, row: Any) -> tuple[list[Any], list[Any]]:
    """One pass: a straight-line body."""
    return [0.5 * a + b * row[0] for a, b in zip(state, [*state[1:], state[0]], strict=True)], []


def nested(state: Any, row: Any) -> tuple[list[Any], list[Any]]:
    """One pass with a loop in it, that leaves the state alone where the row says so."""
    inner, _ = looped_over([Items([0.25, -0.5], [0, 1], 1)], stirred, state, (lambda now, row: now[0] < 2.0,))
    return [where(row[0] > 0.0, a, b) for a, b in zip(inner, state, strict=True)], []


def passed_on(state: Any, row: Any) -> tuple[list[Any], list[Any]]:
    """One pass that is a loop and nothing else."""
    return looped_over([Items([row[0], 0.5], [0, 1], 1)], stirred, state)[0], []


def looped(body: Any, state: Any) -> list[Any]:
    return looped_over([Items([0.3, -0.7, 0.9], [0, 1, 2], 1)], body, state)[0]


def one_after_the_other(x: Any) -> dict[str, Any]:
    return {"y": looped(stirred, looped(nested, looped(passed_on, looped(stirred, [a + 1.0 for a in x]))))}


def read_afterwards(x: Any) -> dict[str, Any]:
    first = looped(stirred, [2.0 * a for a in x])
    second = looped(stirred, first)
    third = looped(passed_on, first)
    return {"y": [a - b * c for a, b, c in zip(first, second, third, strict=True)], "z": second}


def made_of_itself(x: Any) -> dict[str, Any]:
    """The state is an item of its own loop too, so that no pass may change it before it is read."""
    state = [a - 1.0 for a in x]
    items = Items(state, list(range(WIDE)), 1)
    return {"y": looped_over([items], stirred, state)[0]}


TEXTS = (one_after_the_other, read_afterwards, made_of_itself)


def moved(program: Program, same: frozenset[tuple[str, str]] = frozenset()) -> int:
    """Numbers that are copied from one buffer to another, each loop once; with some buffers that lie in one place."""
    total = 0
    for statement in program.walk():
        if isinstance(statement, Copy) and (statement.source, statement.target) not in same:
            total += copied(program, statement)
        if isinstance(statement, Call) and isinstance(statement.code, Program):
            code = statement.code
            given = zip((b.name for b in code.buffers if b.load), statement.inputs, strict=True)
            made = list(zip((b.name for b in code.buffers if b.store), statement.outputs, strict=True))
            both = ((a, b) for a, x in given for b, y in made if x == y or (x, y) in same)
            total += moved(code, frozenset(both))
    return total


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_are_the_same(text: Any) -> None:
    program = traced("text", text, {"x": WIDE})
    assert isinstance(program, Program)
    changed = in_place(program)
    verify(changed)
    x = np.random.default_rng(0).normal(size=(11, WIDE))
    expected = [[list(values) for values in text(row).values()] for row in x.tolist()]
    for run in (_interpreted, _compiled):
        for code in (program, changed):
            found = run(code, x)
            for k, array in enumerate(found):
                assert np.allclose(array, [row[k] for row in expected], rtol=1e-14, atol=1e-14)


def _interpreted(program: Program, x: Any) -> list[Any]:
    made = [np.empty((len(x), spec.size)) for spec in program.outputs]
    evaluate_in_python(program, [x], made, len(x))
    return made


def _compiled(program: Program, x: Any) -> list[Any]:
    made = [np.empty((len(x), spec.size)) for spec in program.outputs]
    ProgramKernel.build(program).evaluate([x], made, len(x))
    return made


def test_states_that_nobody_reads_again_are_not_moved() -> None:
    program = traced("text", one_after_the_other, {"x": WIDE})
    assert isinstance(program, Program)
    assert moved(program) >= 8 * WIDE
    assert moved(in_place(program)) == 2 * WIDE  # a state that is needed beside what its loop makes, from pass to pass
    assert len(in_place(program).buffers) < len(program.buffers)


def test_a_state_that_is_read_later_stays() -> None:
    program = traced("text", read_afterwards, {"x": WIDE})
    assert isinstance(program, Program)
    first = next(s for s in in_place(program).statements if isinstance(s, Call) and isinstance(s.code, Program))
    later = [s for s in in_place(program).statements if isinstance(s, Call) and isinstance(s.code, Program)][1:]
    assert first.inputs[0] == first.outputs[0]
    assert later[0].outputs[0] != first.outputs[0]


def test_a_program_that_reads_its_state_late_is_told() -> None:
    program = traced("text", made_of_itself, {"x": WIDE})
    assert isinstance(program, Program)
    loops = [code for code in program.codes if isinstance(code, Program)]
    assert goes_on_in_place(loops[0], 0, 0)
    assert not goes_on_in_place(loops[0], len(loops[0].inputs) - 1, 0)
    changed = in_place(program)
    call = next(s for s in changed.statements if isinstance(s, Call) and isinstance(s.code, Program))
    assert call.outputs[0] not in call.inputs
