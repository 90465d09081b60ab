"""Products and sums that are rounded once: by one rule, wherever they are computed."""

from fractions import Fraction

import numpy as np
import pytest

from linkwise import samples
from linkwise.targets.llvm import binding
from linkwise.targets.llvm.fusing import fused
from linkwise.trace.block import OPS, ArraySpec, Block
from linkwise.trace.passes import needed
from tests.targets.programs import bits, evaluate_on, lesser_machines

WITH = next(machine for machine in lesser_machines() if machine.fma)
EXACT = {
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
    "fnms": lambda a, b, c: -a * b - c,
}


def block(nodes, results, inputs=4):
    leaves = tuple(("input", 0, k) for k in range(inputs))
    return Block("p", (*leaves, *nodes), (ArraySpec("x", (inputs,)),), (ArraySpec("y", (len(results),)),), (results,))


def last(nodes):
    return fused(block(nodes, (3 + len(nodes),)), WITH).nodes[-1]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([("mul", 0, 1), ("add", 4, 2)], ("fma", 0, 1, 2)),
        ([("mul", 0, 1), ("add", 2, 4)], ("fma", 0, 1, 2)),
        ([("mul", 0, 1), ("sub", 4, 2)], ("fms", 0, 1, 2)),
        ([("mul", 0, 1), ("sub", 2, 4)], ("fnma", 0, 1, 2)),
        ([("mul", 0, 1), ("neg", 4), ("add", 2, 5)], ("fnma", 0, 1, 2)),
        ([("mul", 0, 1), ("neg", 4), ("sub", 2, 5)], ("fma", 0, 1, 2)),
        ([("mul", 0, 1), ("neg", 4), ("sub", 5, 2)], ("fnms", 0, 1, 2)),
        ([("neg", 1), ("add", 0, 4)], ("sub", 0, 1)),
        ([("neg", 0), ("neg", 1), ("add", 4, 5)], ("sub", 4, 1)),
        ([("mul", 0, 1), ("mul", 2, 3), ("add", 4, 5)], ("fma", 0, 1, 5)),
        ([("mul", 0, 1), ("mul", 4, 3), ("mul", 2, 3), ("sub", 6, 5)], ("fnma", 4, 3, 6)),
        ([("mul", 0, 1), ("add", 4, 4)], ("add", 4, 4)),
    ],
)
def test_signs_and_the_product_that_is_ready_last(nodes, expected):
    assert last(nodes) == expected


def test_products_that_are_read_twice_or_are_results_stay():
    program = block([("mul", 0, 1), ("add", 4, 2), ("add", 4, 3)], (5, 6))
    assert fused(program, WITH) == program
    program = block([("mul", 0, 1), ("add", 4, 2)], (4, 5))
    assert fused(program, WITH) == program


def test_nothing_changes_where_the_machine_has_no_such_operation():
    program = block([("mul", 0, 1), ("add", 4, 2)], (5,))
    for machine in lesser_machines():
        assert (fused(program, machine) is program) != machine.fma


def random_block(seed, sums=60):
    """Sums and differences of products and of negated ones, each of earlier sums; some products serve twice."""
    rng = np.random.default_rng(seed)
    nodes = [("input", 0, k) for k in range(4)]
    values, products = [0, 1, 2, 3], []
    for _ in range(sums):
        terms = []
        for _ in range(2):
            if products and rng.random() < 0.2:
                terms.append(int(rng.choice(products)))
                continue
            a, b = rng.choice([*values[-8:], 0, 1, 2, 3], 2).tolist()
            nodes.append(("mul", a, b) if rng.random() < 0.8 else ("neg", a))
            products.append(len(nodes) - 1)
            if rng.random() < 0.3:
                nodes.append(("neg", len(nodes) - 1))
            terms.append(len(nodes) - 1)
        nodes.append((str(rng.choice(["add", "sub"])), *terms))
        values.append(len(nodes) - 1)
    results = tuple(values[-20:])
    return Block("random", tuple(nodes), (ArraySpec("x", (4,)),), (ArraySpec("y", (20,)),), (results,))


@pytest.mark.parametrize("seed", range(4))
def test_compiled_code_rounds_as_the_rule_says(seed):
    """Exact fractions, rounded once where the block says so."""
    program = random_block(seed)
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, (9, 4))
    found = fused(program, WITH)
    assert sum(node[0] in EXACT for node in found.nodes) > 15
    expected = []
    live = needed(found)
    for state in x.tolist():
        values = []
        for node, alive in zip(found.nodes, live, strict=True):
            read = [] if node[0] == "input" or not alive else [values[a] for a in node[1:]]
            if node[0] == "input":
                values.append(state[node[2]])
            elif not alive:
                values.append(0.0)
            elif node[0] in EXACT:
                values.append(float(EXACT[node[0]](*map(Fraction, read))))
            else:
                values.append(OPS[node[0]].define(*read))
        expected.append([values[k] for k in found.results[0]])
    for machine in lesser_machines():
        if machine.fma:
            assert np.array_equal(evaluate_on(machine, program, [x])[0], expected)


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_a_state_has_the_same_bits_in_a_batch_and_alone(name, monkeypatch):
    monkeypatch.setenv("LINKWISE_TIER", "optimised")
    robot = samples.quadruped()
    rng = np.random.default_rng(1)
    q = np.array([robot.random_configuration(rng) for _ in range(19)])
    v, w = rng.normal(size=(2, 19, robot.nv))
    batch = getattr(robot, name)(q, v, w)
    alone = [getattr(robot, name)(*state) for state in zip(q, v, w, strict=True)]
    np.testing.assert_array_equal(batch, alone)


def test_zeros_of_both_signs_stay_apart_where_constants_are_in_memory():
    nodes = [("const", 0.0), ("const", -0.0), ("mul", 0, 1)]
    for _ in range(200):
        nodes.append(("add", 3 + len(nodes), 2))
    program = block(nodes, (4, 5, 3 + len(nodes)))
    zeros = evaluate_on(binding.host(), program, [np.ones((16, 4))])[0][:, :2]
    assert bits(zeros) == bits(np.tile([0.0, -0.0], (16, 1)))
