"""Programs: every block stays inside the buffers and reads only what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.interpreter import interpret
from linkwise.trace.program import (
    Buffer,
    Call,
    Copy,
    For,
    Initial,
    Program,
    Slice,
    Stretch,
    Switch,
    input_buffer,
    output_buffer,
)
from linkwise.trace.verifier import verify
from tests.random_trees import random_tree

STEP = Block(
    "step",
    (("input", 0, 0), ("input", 1, 0), ("add", 0, 1)),
    (ArraySpec("before", (1,)), ArraySpec("x", (1,))),
    (ArraySpec("after", (1,)),),
    ((2,),),
)
COPY = Block("copy", (("input", 0, 0),), (ArraySpec("last", (1,)),), (ArraySpec("result", (1,)),), ((0,),))


def running_sum(rows: Any, **changes: Any) -> Program:
    """sums[k + 1] = sums[k] + x[k]; the last is the output."""
    last = Call(COPY, (Stretch("sums", 0),), (Stretch("out:y", 1),))
    body = Call(STEP, (Stretch("sums", 0), Stretch("in:x", 1)), (Stretch("sums", 2),))
    made = Program(
        "running_sum",
        (Buffer("sums", 4, open=True), input_buffer(ArraySpec("x", (3,))), output_buffer(ArraySpec("y", (1,)))),
        (For("links", (body,)), For("last", (last,))),
        rows=np.array([*rows, [3, 0, 0]], np.int64),
        ranges=(("links", 0, 3), ("last", 3, 1)),
        initial=(Initial("sums", 0, 0.0),),
    )
    return replace(made, **changes)


GOOD = [[0, 0, 1], [1, 1, 2], [2, 2, 3]]


def test_good_programs_pass() -> None:
    verify(running_sum(GOOD))
    assert interpret(running_sum(GOOD), [[1.0, 2.0, 4.0]]) == [[7.0]]
    model = random_tree(5, 12, branching=0.5).with_sweeps("rolled")
    names = ("inverse_dynamics", "forward_dynamics", "poses", "mass_solve", "integrate", "perturb_inverse", "momentum")
    programs = [model.function(name).rolled_program for name in names]
    for program in programs:
        verify(program)
    assert any(count == 1 for program in programs for _, _, count in program.ranges)


def once(*rows: list[int], row: int = 0) -> Program:
    """The running sum with the table's rows after the links' given, and the row that the copy of the last takes."""
    return replace(
        running_sum(GOOD), rows=np.array([*GOOD, *rows], np.int64), ranges=(("links", 0, 3), ("last", 3 + row, 1))
    )


def test_code_depends_on_no_table_but_on_every_statement() -> None:
    """Trees of the same kinds of links share a compiled object; programs that do something else never do."""
    good = running_sum(GOOD)
    assert good.fingerprint == once([3, 0, 0], [3, 0, 0], row=1).fingerprint
    assert good.fingerprint == replace(good, initial=()).fingerprint
    for_each, last = good.statements
    others = [
        (For("links", for_each.body, reverse=True), last),
        (For("links", (Switch(2, ((), for_each.body)),)), last),
        (last, for_each),
        (for_each, For("last", (replace(last.body[0], inputs=(Stretch("sums", 2),)),))),
        (for_each, last, last),
    ]
    assert len({good.fingerprint, *(replace(good, statements=s).fingerprint for s in others)}) == 6


def kinds(column: int) -> Program:
    """The running sum with a choice of one body, by a column of the table."""
    good = running_sum(GOOD)
    loop, last = good.statements
    return replace(good, statements=(For("links", (Switch(column, (loop.body,)),)), last))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: running_sum([[0, 0, 1], [1, 1, 2], [2, 3, 3]]),
            r"step of row 2 .* in:x\[3:4\] is outside its 3 values",
        ),
        (lambda: running_sum([[0, 0, 1], [1, 1, 2], [2, 2, 4]]), r"sums\[4:5\] is outside its 4 values"),
        (lambda: running_sum([[-1, 0, 1], [1, 1, 2], [2, 2, 3]]), r"sums\[-1:0\] is outside"),
        (lambda: running_sum([[1, 0, 1], [1, 1, 2], [2, 2, 3]]), r"step of row 0 .* reads sums\[1\] before it is"),
        (lambda: running_sum(GOOD, initial=()), r"reads sums\[0\] before it is written"),
        (lambda: kinds(2), "row 0 .* is of kind 1; there are 1"),
        (
            lambda: running_sum(GOOD, statements=running_sum(GOOD).statements[:1]),
            "output y .* value 0 is never written",
        ),
        (lambda: once([4, 0, 0]), r"copy of row 3 .* sums\[4:5\] is outside its 4 values"),
        (lambda: once([3, 1, 0]), r"copy of row 3 .* out:y\[1:2\] is outside its 1 values"),
        (lambda: once([3, 0, 0], row=1), "range 'last' .* is not in its table of 4 rows"),
        (lambda: running_sum(GOOD, statements=running_sum(GOOD).statements[::-1]), r"copy of row 3 .* reads sums\[3\]"),
        (lambda: running_sum([[0, 0, 1], [1, 1, 2], [2, 2, 2]]), r"step of row 2 .* writes sums\[2\], which it also"),
        (lambda: running_sum(GOOD, initial=(Initial("in:x", 0, 1.0),)), "writes to in:x, which is only for reading"),
        (lambda: running_sum(GOOD, initial=(Initial("nowhere", 0, 1.0),)), "no such buffer 'nowhere'"),
        (lambda: kinds(5), "has no column 5"),
        (lambda: running_sum(GOOD, statements=(Call(COPY, (Stretch("sums", 0),), ("out:y",)),)), "outside a loop over"),
        (lambda: running_sum(GOOD, statements=(For("nothing", ()),)), "no range of rows 'nothing'"),
        (
            lambda: running_sum(GOOD, statements=(Call(COPY, ("sums",), ("out:y",)),)),
            "has 4 numbers where 1 are passed",
        ),
        (lambda: running_sum(GOOD, statements=(Copy("sums", Slice("sums", 1)),)), "0 passes of 4 numbers"),
    ],
)
def test_bad_programs_are_named(make: Callable[[], Program], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        verify(make())


def test_results_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="output after of step takes a value that is not there"):
        verify(replace(STEP, results=((-1,),)))
