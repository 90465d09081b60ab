"""Many closures in sweeps as loops: the same numbers as written out, from code that hardly grows with their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.spatial.dual import Dual, new_level, parts_of_level
from linkwise.trace.interpreter import interpret
from linkwise.trace.program import Call, For, Program, inside
from linkwise.trace.verifier import verify
from tests.closures.mechanisms import EagerModel

Array = Any


def ladder(n: int, closures: int, joint: Any = None, span: int = 5) -> tuple[lw.Model, Array]:
    """A hanging chain with closures from link to link, which hold at the configuration."""
    builder = lw.ModelBuilder("ladder")
    for k in range(n):
        builder.add_body(
            f"l{k}", f"l{k - 1}" if k else "world", lw.Revolute([(0, 1, 0), (1, 0, 0)][k % 2]),
            lw.transform(xyz=(0, 0, -0.1)), mass=1.0, com=(0, 0, -0.05), inertia=np.eye(3) * 1e-3,
        )  # fmt: skip
    model = builder.build().with_sweeps("rolled")
    q = np.random.default_rng(n).uniform(-0.3, 0.3, n)
    poses = model.poses(q)
    for j in range(closures):
        a = 1 + (j * (n - span - 1)) // max(closures, 1)
        b = a + span
        place = np.linalg.inv(poses[b]) @ poses[a]
        model = model.with_closure(f"c{j}", f"l{a}", None, f"l{b}", place, joint=joint or lw.Spherical())
    return model, q


def _state(model: lw.Model, q: Array, count: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=(2, count, model.nv))
    q = np.broadcast_to(q, (count, model.nq))
    return q, np.array([_written_out(model).constraints.project_velocity(*one) for one in zip(q, v, strict=True)]), tau


def _tasks(program: Program) -> list[For]:
    """The lists of tasks between sweeps: loops over rows that are no links'."""
    loops = [s for s in program.statements if isinstance(s, For) and s.over != "links"]
    return [loop for loop in loops if program.range_of[loop.over][1] > 1]


def _written_out(model: lw.Model) -> EagerModel:
    """Sweeps from link to link, elimination row by row, on plain floats."""
    return EagerModel.of(model.with_sweeps("unrolled"))


def _near(found: Any, expected: Any, tol: float) -> None:
    for x, y in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
        np.testing.assert_allclose(x, y, rtol=0, atol=tol * max(1.0, np.abs(y).max()))


@pytest.mark.parametrize(("closures", "joint"), [(7, lw.Spherical()), (4, lw.Revolute((0, 1, 0)))])
def test_the_same_numbers_as_written_out(closures: int, joint: Any) -> None:
    """21 equations, with a rest beside the tiles; and 20, of which some are redundant where links bend in one plane."""
    model, q = ladder(26, closures, joint)
    written_out = _written_out(model)
    program = model.function("forward_dynamics").rolled_program
    assert _tasks(program)
    verify(program)
    q, v, tau = _state(model, q, 5)
    one = q[3], v[3], tau[3]
    expected = written_out.forward_dynamics(*one)
    _near(model.forward_dynamics(*one), expected, 1e-10)
    _near(model.forward_dynamics(q, v, tau)[3], expected, 1e-10)
    (interpreted,) = interpret(program, [x.tolist() for x in one])
    _near(np.array(interpreted), expected, 1e-10)
    _near(model.constraint_forces(*one), written_out.constraint_forces(*one), 1e-8)
    _near(model.constraints.jacobian(q[3]), written_out.constraints.jacobian(q[3]), 1e-12)


def test_changes_through_the_loops() -> None:
    """Dual numbers pass through the tiles, as they do through the text on floats."""
    model, q = ladder(30, 7)
    (q,), (v,), (tau,) = _state(model, q, 1)
    program = model.function("forward_dynamics").along(("q", "v", "tau")).rolled_program  # type: ignore[attr-defined]
    assert _tasks(program)
    d = np.random.default_rng(1).normal(size=(3, model.nv))
    (found,) = interpret(program, [x.tolist() for x in (q, v, tau, *d)])
    text = _written_out(model).function("forward_dynamics").text
    level = new_level()
    duals = [
        [Dual(x, y, level) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        for a, b in zip((q, v, tau), d, strict=True)
    ]
    _near(np.array(found), np.array(parts_of_level(text(*duals), level)[1]), 1e-9)


def test_couplings_and_joints_that_follow() -> None:
    model, q = ladder(26, 6)
    for k in range(4):
        model = model.with_coupling(f"g{k}", lw.closures.Coupling({f"l{4 * k}_joint": 1.0, f"l{4 * k + 1}_joint": 0.5}))
    q, v, tau = _state(model, q, 2)
    one = q[1], v[1], tau[1]
    _near(model.forward_dynamics(*one), _written_out(model).forward_dynamics(*one), 1e-9)


def test_what_there_is_to_compile_hardly_grows() -> None:
    few, many = (ladder(80, k)[0].function("forward_dynamics").rolled_program for k in (8, 24))
    first = [program.statements[0].body[0] for program in (few, many)]
    assert all(isinstance(statement, Call) for statement in first), "no link has code of its own"
    assert many.operations < 4 * few.operations  # three times the closures; the elimination alone would be 27 times
    pieces = [sum(len(c.code.nodes) for s in _tasks(p) for i in s.body for c in inside(i)) for p in (few, many)]
    assert pieces[0] == pieces[1], "the elimination is the same code"


def test_few_unknowns_are_written_out() -> None:
    model, _ = ladder(20, 2)
    assert not _tasks(model.function("forward_dynamics").rolled_program)


def test_which_models_roll() -> None:
    assert ladder(80, 10)[0].with_sweeps("auto")._rolls
    assert not ladder(40, 10)[0].with_sweeps("auto")._rolls
    assert not samples.four_bar(40)._rolls, "each closure is felt by a few bodies only"
