"""The order of emission: nothing lost, nothing before its arguments, what belongs together in one call."""

from itertools import pairwise

import pytest

from bench import synthetic_programs
from linkwise.targets.llvm.block_code import BlockCode
from linkwise.targets.llvm.function_plan import GroupedCall, make_plan
from linkwise.targets.llvm.ir import LaneShape
from linkwise.targets.llvm.residence import residence
from linkwise.targets.llvm.schedule import REGISTERS, schedule
from linkwise.trace.block import ArraySpec, Block, arguments
from tests.targets.programs import mixture


def walk(program, plan):
    """Go through the steps; fail if one reads what is not there."""
    there = {k for k, node in enumerate(program.nodes) if node[0] in ("const", "input")}
    for piece in plan.pieces:
        for step in piece.steps:
            if isinstance(step, GroupedCall):
                assert {a for members in step.members for a in members} <= there
                there |= {number for number, (group, _, _) in plan.item_of.items() if group is step}
            else:
                assert set(arguments(program.nodes[step])) <= there
                there.add(step)
    assert {value for row in program.results for value in row} <= there


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("piece", [None, 1, 50])
@pytest.mark.parametrize("make", [mixture, lambda: synthetic_programs.forward_dynamics(5)], ids=["mixture", "chain"])
def test_order_is_valid(make, piece, final):
    program = make()
    plan = make_plan(program, piece, final)
    walk(program, plan)
    steps = [step for p in plan.pieces for step in p.steps if not isinstance(step, GroupedCall)]
    assert len(steps) == len(set(steps))


def test_sines_and_cosines_of_the_joints_are_one_call():
    plan = make_plan(synthetic_programs.inverse_dynamics(7))
    groups = [step for piece in plan.pieces for step in piece.steps if isinstance(step, GroupedCall)]
    assert [len(group.members) for group in groups] == [7]


def test_neighbours_in_an_input_come_in_order():
    nodes = (("input", 0, 2), ("input", 0, 0), ("input", 0, 1), ("sin", 0), ("sin", 1), ("cos", 2))
    program = Block("p", nodes, (ArraySpec("q", (3,)),), (ArraySpec("y", (3,)),), ((3, 4, 5),))
    (group,) = make_plan(program).pieces[0].steps
    assert [nodes[a][2] for (a,) in group.members] == [0, 1, 2]


def test_dead_nodes_are_left_out():
    nodes = (("input", 0, 0), ("sin", 0), ("add", 0, 0), ("mul", 0, 1))
    program = Block("p", nodes, (ArraySpec("q", (1,)),), (ArraySpec("y", (1,)),), ((2,),))
    assert make_plan(program).pieces[0].steps == (2,)


def test_long_programs_are_cut():
    program = synthetic_programs.forward_dynamics(40)
    assert len(program.nodes) > 12000
    plan = make_plan(program)
    assert len(plan.pieces) > 1
    walk(program, plan)
    home = {step: k for k, piece in enumerate(plan.pieces) for step in piece.steps}
    for value, made, last in plan.crossing:
        assert home[value] == made < last


@pytest.mark.parametrize("registers", [0, REGISTERS])
def test_values_that_wait_share_places(registers):
    program = synthetic_programs.forward_dynamics(40)
    plan, shape = make_plan(program, final=registers > 0), LaneShape(64, 8)
    code = BlockCode(program, plan, shape, shape, registers=registers, called=registers > 0)
    at_once = max(sum(made <= k <= last for _, made, last in plan.crossing) for k in range(len(plan.pieces)))
    sines = sum(2 * len(step.members) for p in plan.pieces for step in p.steps if isinstance(step, GroupedCall))
    assert at_once < 0.9 * len(plan.crossing)
    assert code.frame_bytes <= (at_once + sines) * shape.size


def test_code_of_far_pieces_is_fetched_while_the_one_before_runs():
    """From where each begins to where the next one does; of the last one, to where the function of all begins."""
    program = synthetic_programs.forward_dynamics(40)
    plan, shape = make_plan(program, final=True), LaneShape(64, 8)
    code = BlockCode(program, plan, shape, shape, registers=REGISTERS, called=True, fetched=True)
    whole = code.functions[-1].text()
    calls = [whole.index(f"call void @body_{k}(") for k in range(len(plan.pieces))]
    begins = [whole.index(f"getelementptr i8, ptr @body_{k},") for k in range(1, len(plan.pieces))]
    assert sorted([*calls, *begins]) == [x for pair in zip(begins, calls, strict=False) for x in pair] + calls[-1:]
    assert whole.count("ptrtoint ptr @body to") == 1
    without = BlockCode(program, plan, shape, shape, registers=REGISTERS, called=True)
    assert "prefetch" not in without.functions[-1].text()


def _branches(count, length):
    """Chains of products that know nothing of each other, each from two inputs to one result."""
    nodes = [("input", 0, k) for k in range(2 * count)]
    results = []
    for k in range(count):
        last, factor = 2 * k, 2 * k + 1
        for _ in range(length):
            nodes.append(("mul", last, factor))
            last = len(nodes) - 1
        results.append(last)
    return nodes, results


def _moves(nodes, order):
    """Values that have to wait in memory."""
    steps = [(nodes[number][1:], number, REGISTERS) for number in order]
    found = residence(steps)
    return len(found.stored) + sum(map(len, found.leaving.values()))


def test_many_short_branches_stay_in_registers():
    nodes, results = _branches(40, 6)
    chosen = [number for number, node in enumerate(nodes) if node[0] != "input"]
    order = schedule(nodes, chosen, results, final=True)
    assert sorted(order) == chosen
    assert _moves(nodes, order) == 0
    ahead = sum(b - a == 1 for a, b in pairwise(order))  # that wait for the one before
    assert ahead < len(order) / 2
