"""From a program to instructions in order with loads and stores: each step leaves the meaning as it is."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.targets.cuda import spilling
from linkwise.targets.cuda.instructions import (
    Instruction,
    instructions,
    most_alive,
    operand,
    ordered,
    pure_angles,
)
from linkwise.targets.cuda.spilling import Reload, Spill
from linkwise.trace.block import ArraySpec, Block, is_truth
from linkwise.trace.interpreter import interpret
from tests.targets.cuda.random_programs import execute, programs, value_of


def inputs_of(program: Block) -> dict[int, float]:
    return {k: 0.3 + 0.7 * node[1] - 0.45 * node[2] for k, node in enumerate(program.nodes) if node[0] == "input"}


def expected(program: Block) -> list[list[float]]:
    given_values = inputs_of(program)
    arrays = [[0.0] * a.size for a in program.inputs]
    for k, value in given_values.items():
        arrays[program.nodes[k][1]][program.nodes[k][2]] = value
    return interpret(program, arrays)


def check(program: Block, values: dict[int, Any]) -> None:
    for row, wanted in zip(program.results, expected(program), strict=True):
        for number, value in zip(row, wanted, strict=True):
            got = value_of(program, values, operand(program, number))
            assert got == value or (math.isnan(got) and math.isnan(value)), (number, got, value)


def wanted_values(program: Block) -> list[int]:
    return [operand(program, value).value for row in program.results for value in row]


@settings(max_examples=150, deadline=None)
@given(programs())
def test_instructions_mean_the_program(program: Block) -> None:
    values = inputs_of(program)
    for each in instructions(program):
        assert set(each.reads) <= values.keys()
        execute(program, values, each)
    check(program, values)


@settings(max_examples=100, deadline=None)
@given(programs())
def test_order_is_valid(program: Block) -> None:
    made = instructions(program)
    given_values = inputs_of(program)
    order = ordered(made, given_values.keys(), wanted_values(program))
    assert sorted(map(id, order)) == sorted(map(id, made))
    assert most_alive(order, given_values.keys()) <= most_alive(made, given_values.keys())
    values = dict(given_values)
    for each in order:
        assert set(each.reads) <= values.keys()
        execute(program, values, each)
    check(program, values)


@settings(max_examples=150, deadline=None)
@given(programs(), st.integers(4, 12), st.booleans())
def test_plan_keeps_to_the_limit(program: Block, limit: int, reuse: bool) -> None:
    """Run with a machine that has few registers and forgets everything else."""
    given_values = inputs_of(program)
    slots = {value: k for k, value in enumerate(given_values)}
    order = ordered(instructions(program), given_values.keys(), wanted_values(program))
    truths = [k for k, node in enumerate(program.nodes) if is_truth(node)]
    reusable = set(slots.values()) if reuse else set()
    plan = spilling.plan(order, slots, limit, reusable=reusable, registers_only=truths)
    store = {slots[value]: number for value, number in given_values.items()}
    registers: dict[int, Any] = {}
    results: dict[int, Any] = {}
    last = {}
    for k, step in enumerate(plan.steps):
        for value in step.reads if isinstance(step, Instruction) else [step.value] if isinstance(step, Spill) else ():
            last[value] = k
    for k, step in enumerate(plan.steps):
        if isinstance(step, Reload):
            registers[step.value] = store[step.slot]
        elif isinstance(step, Spill):
            assert reuse or step.slot >= plan.given
            store[step.slot] = registers[step.value]
        else:
            execute(program, registers, step)
            results.update((value, registers[value]) for value in (*step.writes, *step.reads))
        registers = {value: number for value, number in registers.items() if last.get(value, -1) > k}
        assert all(slot < plan.slots for slot in store)
    check(program, results)


def test_products_go_into_sums() -> None:
    nodes = (
        ("input", 0, 0), ("input", 0, 1), ("mul", 0, 1), ("add", 2, 0), ("sub", 2, 1), ("mul", 0, 0), ("sub", 1, 5),
        ("mul", 1, 1), ("neg", 7),
    )  # fmt: skip
    program = Block("p", nodes, (ArraySpec("x", (2,)),), (ArraySpec("y", (4,)),), ((3, 4, 6, 8),))
    assert [each.op for each in instructions(program)] == ["fma", "fma", "fma", "mul"]


def test_sin_and_cos_are_one() -> None:
    nodes = (("input", 0, 0), ("sin", 0), ("cos", 0), ("add", 1, 2))
    program = Block("p", nodes, (ArraySpec("x", (1,)),), (ArraySpec("y", (1,)),), ((3,),))
    assert [each.op for each in instructions(program)] == ["sincos", "add"]


@pytest.mark.parametrize(
    ("nodes", "results", "pure"),
    [
        ((("input", 0, 0), ("sin", 0)), (1,), {0}),
        ((("input", 0, 0), ("const", 0.5), ("add", 0, 1), ("cos", 2)), (3,), {0}),
        ((("input", 0, 0), ("sin", 0), ("mul", 0, 1)), (2,), set()),  # something else reads it
        ((("input", 0, 0), ("sin", 0)), (1, 0), set()),  # it is a result itself
        ((("input", 0, 0), ("const", 0.5), ("add", 0, 1), ("cos", 2)), (2, 3), set()),  # so is the sum
        ((("input", 0, 0), ("add", 0, 0), ("sin", 1)), (2,), set()),  # not within a turn of what it was
    ],
)
def test_pure_angles(nodes: tuple, results: tuple, pure: set) -> None:
    program = Block("p", nodes, (ArraySpec("x", (1,)),), (ArraySpec("y", (len(results),)),), (results,))
    assert pure_angles(program, instructions(program))[0] == pure
