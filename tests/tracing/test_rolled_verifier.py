"""Programs with loops: every body stays inside the spaces and reads only what was written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from linkwise.tracing.block import ArraySpec, Block
from linkwise.tracing.program import Constant, Loop, LoopBody, Once, Program, Stretch, interpret_rolled
from linkwise.tracing.verifier import verify, verify_rolled
from tests.random_trees import random_tree

STEP = Block(
    "step",
    (("input", 0, 0), ("input", 1, 0), ("add", 0, 1)),
    (ArraySpec("before", (1,)), ArraySpec("x", (1,))),
    (ArraySpec("after", (1,)),),
    ((2,),),
)
COPY = Block("copy", (("input", 0, 0),), (ArraySpec("last", (1,)),), (ArraySpec("result", (1,)),), ((0,),))


def running_sum(offsets: Any, **changes: Any) -> Program:
    """sums[k + 1] = sums[k] + x[k]; the last is the output."""
    last = LoopBody(COPY, (Stretch("sums", 0),), (Stretch("out:y", 1),))
    body = LoopBody(STEP, (Stretch("sums", 0), Stretch("in:x", 1)), (Stretch("sums", 2),))
    made = Program(
        "running_sum",
        (ArraySpec("x", (3,)),),
        (ArraySpec("y", (1,)),),
        np.zeros(3, np.int64),
        np.array([*offsets, [3, 0, 0]], np.int64),
        np.zeros(0),
        {"sums": 4},
        (Constant("sums", 0, 0.0),),
        (Loop((body,)), Once(last, 0)),
    )
    return replace(made, **changes)


GOOD = [[0, 0, 1], [1, 1, 2], [2, 2, 3]]


def test_good_programs_pass() -> None:
    verify_rolled(running_sum(GOOD))
    assert interpret_rolled(running_sum(GOOD), [[1.0, 2.0, 4.0]]) == [[7.0]]
    model = random_tree(5, 12, branching=0.5).with_sweeps("rolled")
    names = ("inverse_dynamics", "forward_dynamics", "poses", "mass_solve", "integrate", "perturb_inverse", "momentum")
    programs = [model.function(name).rolled_program for name in names]
    for program in programs:
        verify_rolled(program)
    assert any(isinstance(step, Once) for program in programs for step in program.steps)


def once(*rows: list[int], row: int = 0) -> Program:
    """The running sum with the table's rows after the links' given, and the row that the copy of the last takes."""
    good = running_sum(GOOD)
    copy = replace(good.steps[1], row=row)
    return replace(good, offsets=np.array([*GOOD, *rows], np.int64), steps=(good.steps[0], copy))


def test_the_row_is_part_of_the_code() -> None:
    """Two programs that take their offsets from different rows must not share a compiled object."""
    assert once([3, 0, 0], [3, 0, 0]).fingerprint != once([3, 0, 0], [3, 0, 0], row=1).fingerprint


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (running_sum([[0, 0, 1], [1, 1, 2], [2, 3, 3]]), r"step of row 2 .* in:x\[3:4\] is outside its 3 values"),
        (running_sum([[0, 0, 1], [1, 1, 2], [2, 2, 4]]), r"sums\[4:5\] is outside its 4 values"),
        (running_sum([[-1, 0, 1], [1, 1, 2], [2, 2, 3]]), r"sums\[-1:0\] is outside"),
        (running_sum([[1, 0, 1], [1, 1, 2], [2, 2, 3]]), r"step of row 0 .* reads sums\[1\] before it is written"),
        (running_sum(GOOD, constants=()), r"reads sums\[0\] before it is written"),
        (running_sum(GOOD, kinds=np.ones(3, np.int64)), "link 0 .* is of kind 1; there are 1"),
        (running_sum(GOOD, steps=running_sum(GOOD).steps[:1]), "output y .* value 0 is never written"),
        (once([4, 0, 0]), r"copy of row 3 .* sums\[4:5\] is outside its 4 values"),
        (once([3, 1, 0]), r"copy of row 3 .* out:y\[1:2\] is outside its 1 values"),
        (once([3, 0, 0], row=1), "copy of row 4 .* is not in the table of 4 rows, 3 columns"),
        (running_sum(GOOD, steps=running_sum(GOOD).steps[::-1]), r"copy of row 3 .* reads sums\[3\] before"),
        (running_sum([[0, 0, 1], [1, 1, 2], [2, 2, 2]]), r"step of row 2 .* writes sums\[2\], which it also reads"),
        (running_sum(GOOD, constants=(Constant("in:x", 0, 1.0),)), "writes to in:x, which is only for reading"),
        (running_sum(GOOD, constants=(Constant("nowhere", 0, 1.0),)), "no such space 'nowhere'"),
    ],
)
def test_bad_programs_are_named(program: Program, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        verify_rolled(program)


def test_results_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="output after of step takes a value that is not there"):
        verify(replace(STEP, results=((-1,),)))
