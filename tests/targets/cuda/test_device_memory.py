"""Programs with loops as kernels: run by emulation, against the interpreter and the processor's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE
from linkwise.errors import LinkwiseError
from linkwise.targets.cuda import device_memory, runtime
from linkwise.targets.cuda.row_loops import LinkLoop, LoopPlans, RowLoop, Tables, through_memory
from linkwise.targets.cuda.target import TARGET
from linkwise.trace.interpreter import interpret
from linkwise.trace.program import Angles, Buffer, Call, For, Stretch
from tests.functions.rolled.test_every_function import _inputs, _takes_body
from tests.functions.rolled.test_many_closures import ladder
from tests.random_trees import random_tree
from tests.targets.cuda.emulation import needs_compiler
from tests.targets.cuda.fakes import CupyArray, Fakes, Tensor, fakes  # noqa: F401
from tests.targets.cuda.models import every_joint, random_state

pytestmark = needs_compiler


def chain(n: int, joint: type = lw.Revolute) -> lw.Model:
    """Random links, all of one kind."""
    rng = np.random.default_rng(n)
    builder = lw.ModelBuilder("chain")
    for k in range(n):
        spread = rng.normal(size=(3, 3))
        builder.add_body(
            f"b{k}", parent=f"b{k - 1}" if k else "world", joint=joint(axis=rng.normal(size=3)),
            placement=lw.transform(xyz=0.3 * rng.normal(size=3), rpy=rng.normal(size=3)),
            mass=rng.uniform(0.5, 2), com=0.1 * rng.normal(size=3), inertia=0.1 * np.eye(3) + 0.001 * spread @ spread.T,
        )  # fmt: skip
    return builder.build().with_sweeps("rolled")


@pytest.fixture(scope="module")
def tree() -> lw.Model:
    """Every joint, two branches."""
    return every_joint().with_sweeps("rolled")


def names_and_arguments(model: lw.Model, count: int) -> Iterator[tuple[str, list[Any]]]:
    q, v, a = random_state(model, count)
    yield "inverse_dynamics", [q, v, a]
    yield "forward_dynamics", [q, v, a]
    yield "poses", [q]
    yield "kinetic_energy", [q, v]
    yield "mass_matrix", [q]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_function_of_a_tree(fakes: Fakes, tree: lw.Model, dtype: type) -> None:  # noqa: F811
    """Branches, where what is handed on goes through memory, and joints of every kind; the last tile is not full."""
    for name, arrays in [*names_and_arguments(tree, 7)][: None if dtype is np.float64 else 1]:
        expected = getattr(tree, name)(*arrays)
        got = getattr(tree, name)(*(fakes.array(x, dtype) for x in arrays))
        assert type(got) is CupyArray and got.dtype == dtype, name
        scale = np.abs(expected).max()
        assert np.abs(np.asarray(got) - expected).max() <= (1e-13 if dtype is np.float64 else 1e-4) * scale, name


def test_the_multipliers_of_many_closures(fakes: Fakes) -> None:  # noqa: F811
    """A list of tasks between two loops."""
    model, q = ladder(30, 7)
    program = model.function("forward_dynamics").rolled_program
    plain = [loop for loop in LoopPlans(program).loops.values() if type(loop) is RowLoop]
    assert any(program.range_of[loop.loop.over][1] > 1 for loop in plain)
    v, tau = np.random.default_rng(0).normal(size=(2, 6, 30))
    expected = model.forward_dynamics(q, v, tau)
    got = model.forward_dynamics(*(fakes.array(x, np.float64) for x in (np.tile(q, (6, 1)), v, tau)))
    assert np.abs(np.asarray(got) - expected).max() <= 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_chain_is_carried_in_registers(fakes: Fakes, dtype: type) -> None:  # noqa: F811
    model = chain(23)
    q, v, a = random_state(model, 9)
    on = [fakes.array(x, dtype) for x in (q, v, a)]
    bound = 1e-12 if dtype is np.float64 else 2e-3
    for name in ("inverse_dynamics", "forward_dynamics"):
        expected = getattr(model, name)(q, v, a)
        assert np.abs(np.asarray(getattr(model, name)(*on)) - expected).max() <= bound * np.abs(expected).max()
    program = model.function("forward_dynamics").rolled_for(TARGET)
    loops = list(LoopPlans(program).loops.values())
    assert len(loops) == 4, "angles, motions, articulated inertias with their forces, accelerations"
    for plan in loops:
        assert isinstance(plan, LinkLoop)
        for each in plan.carried:
            rows = program.rows[:23][:: -1 if plan.loop.reverse else 1]
            from_memory, to_memory = through_memory(plan, each, np.zeros(23, int), rows)
            assert from_memory.tolist() == [1] + [0] * 22, "the first link reads what the loop begins with"
            assert to_memory[-2:].all() and not to_memory[:-3].any(), "only the last of each place goes to memory"
    assert sum(len(loop.carried) for loop in loops if isinstance(loop, LinkLoop)) == 4


def test_angles_that_are_read_again_are_stored() -> None:
    program = chain(5).function("forward_dynamics").rolled_for(TARGET)
    plans = LoopPlans(program)
    find, *others = plans.loops.values()
    assert isinstance(find, LinkLoop) and find.angles is not None and find.angles in program.statements
    assert plans.taken == {id(find.angles)} and plans.spared == {find.angles.arguments}
    (finder,) = find.calls.values()
    (angle,) = finder.outputs
    assert isinstance(angle, Stretch)
    reader = Call(finder.code, (angle, *finder.inputs[1:]), (Stretch("elsewhere", angle.column),))
    again = replace(
        program,
        buffers=(*program.buffers, Buffer("elsewhere", program.sizes[angle.buffer], open=True)),
        statements=(*program.statements, For("links", (reader,))),
    )
    plans = LoopPlans(again)
    first, *rest = plans.loops.values()
    assert isinstance(first, LinkLoop) and first.angles is None and not plans.taken
    assert len(rest) == len(others) + 1 and any(isinstance(s, Angles) for s in again.statements)
    assert (id(again), angle.buffer) in Tables(again, [plans]).starts


@pytest.mark.parametrize("room", [64, 1000])
def test_less_is_fetched_ahead_where_there_is_little_room(
    fakes: Fakes,  # noqa: F811
    room: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_memory, "_FETCHED_BYTES", room)
    model = chain(11)
    q, v, a = random_state(model, 5)
    source = model.function("forward_dynamics").source("cuda")
    assert f"#define LW_AHEAD {0 if room == 64 else 1}" in source
    expected = model.forward_dynamics(q, v, a)
    got = model.forward_dynamics(*(fakes.array(x) for x in (q, v, a)))
    assert np.abs(np.asarray(got) - expected).max() <= 1e-12 * np.abs(expected).max()


def test_the_definition(fakes: Fakes, tree: lw.Model) -> None:  # noqa: F811
    q, v, a = random_state(tree, 3)
    program = tree.function("forward_dynamics").rolled_for(TARGET)
    wanted = [interpret(program, [list(q[k]), list(v[k]), list(a[k])])[0] for k in range(3)]
    got = tree.forward_dynamics(*(fakes.array(x) for x in (q, v, a)))
    assert np.abs(np.asarray(got) - wanted).max() <= 1e-13 * np.abs(wanted).max()


def test_every_way_of_calling(fakes: Fakes, tree: lw.Model) -> None:  # noqa: F811
    q, v, a = random_state(tree, 6)
    expected = tree.inverse_dynamics(q, v, a)
    on = [fakes.array(x) for x in (q, v, a)]
    assert np.allclose(tree.inverse_dynamics(on[0][2], on[1][2], on[2][2]), expected[2], rtol=1e-12)
    lots = tree.inverse_dynamics(*(x.reshape(2, 3, -1) for x in on))
    assert lots.shape == (2, 3, tree.nv) and np.allclose(lots.reshape(6, -1), expected, rtol=1e-12)
    out = fakes.array(np.zeros((6, tree.nv)))
    assert tree.inverse_dynamics(*on, out=out) is out
    assert np.allclose(out, expected, rtol=1e-12)
    still = np.zeros(tree.nv)
    assert np.allclose(tree.inverse_dynamics(on[0], still, still), tree.gravity_force(q), rtol=1e-12, atol=1e-12)
    fortran = tree.inverse_dynamics(*(fakes.array(x, order="F") for x in (q, v, a)))
    assert np.allclose(fortran, expected, rtol=1e-12) and fortran.flags.f_contiguous
    tensors = tree.inverse_dynamics(*(Tensor(x) for x in (q, v, a)))
    assert isinstance(tensors, Tensor) and np.allclose(tensors.array, expected, rtol=1e-12)
    assert tree.inverse_dynamics(*on, out=on[2]) is on[2], "in place"
    assert np.allclose(on[2], expected, rtol=1e-12)
    assert tree.inverse_dynamics(*(x[:0] for x in on)).shape == (0, tree.nv)
    with pytest.raises(lw.InputError, match="wrong shape"):
        tree.inverse_dynamics(on[0], on[1][:, :-1], on[2])


def test_large_batches_take_turns(fakes: Fakes, tree: lw.Model, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    q, v, a = random_state(tree, 21)
    expected = tree.forward_dynamics(q, v, a)
    on = [fakes.array(x) for x in (q, v, a)]
    monkeypatch.setattr(runtime, "WORKING_BYTES", 100_000)  # room for two tiles or three, not for six
    assert np.allclose(tree.forward_dynamics(*on), expected, rtol=1e-12)
    monkeypatch.setattr(runtime, "WORKING_BYTES", 1 << 30)
    fakes.cupy.most_bytes = 60_000  # the same where the device says no
    assert np.allclose(tree.forward_dynamics(*on), expected, rtol=1e-12)
    fakes.cupy.most_bytes = 21 * tree.nv * 8
    with pytest.raises(LinkwiseError, match="no room for the memory that forward_dynamics works in"):
        tree.forward_dynamics(*on)


def test_a_bad_state_harms_only_itself(fakes: Fakes, tree: lw.Model) -> None:  # noqa: F811
    q, v, a = random_state(tree, 6)
    q[2, 8] = np.nan
    got = np.asarray(tree.inverse_dynamics(*(fakes.array(x) for x in (q, v, a))))
    assert np.isnan(got[2]).any()
    others = [0, 1, 3, 4, 5]
    assert np.allclose(got[others], tree.inverse_dynamics(q, v, a)[others], rtol=1e-12)


def test_huge_angles(fakes: Fakes) -> None:  # noqa: F811
    model = chain(3)
    q = np.array([[1e12, -3e10, 2.0], [1.0, 2.0, 3.0]])
    zero = np.zeros(3)
    got = np.asarray(model.inverse_dynamics(fakes.array(q), zero, zero))
    assert np.allclose(got, model.inverse_dynamics(q, np.zeros((2, 3)), np.zeros((2, 3))), rtol=1e-3)


def test_the_text_is_the_same_for_any_length() -> None:
    assert chain(4).function("forward_dynamics").source("cuda") == chain(9).function("forward_dynamics").source("cuda")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_function_of_the_catalogue(fakes: Fakes, name: str) -> None:  # noqa: F811
    """On a tree with joints of all types that follow each other, as on the processor."""
    rng = np.random.default_rng(3)
    model = random_tree(rng, 6, mimic=0.3).with_sweeps("rolled")
    static = {"body": model.bodies[-1].name} if _takes_body(name) else {}
    arrays = _inputs(model, name, rng, 5)
    function = model.function(name, **static)
    wanted, got = function(*arrays), function(*(fakes.array(a) for a in arrays))
    for here, there in zip(*(x if isinstance(x, tuple) else (x,) for x in (wanted, got)), strict=True):
        assert type(there) is CupyArray
        assert np.abs(np.asarray(there) - here).max(initial=0) <= 1e-10 * np.abs(here).max(initial=0)
