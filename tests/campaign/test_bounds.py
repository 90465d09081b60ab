"""Checked builds find what is out of bounds, and find nothing in what is emitted."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.targets.llvm import binding, bounds, program_kernel, source
from linkwise.trace.block import ArraySpec, Block
from tests.contact.scenes import block, placed
from tests.random_trees import random_tree
from tests.targets.checked_state import CheckedState
from tests.targets.programs import interpret, lesser_machines, mixture


def ran(kernel: object, program: Block, count: int, dtype: str = "f8") -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    inputs = [rng.uniform(-1, 1, (count, a.size)).astype(dtype) for a in program.inputs]
    outputs = [np.empty((count, a.size), dtype) for a in program.outputs]
    kernel.evaluate(inputs, outputs, count)  # type: ignore[attr-defined]
    tolerance = 1e-12 if dtype == "f8" else 1e-3
    for got, expected in zip(outputs, interpret(program, inputs), strict=True):
        assert np.allclose(got, expected, rtol=tolerance, atol=tolerance)
    return outputs


@pytest.mark.parametrize("machine", lesser_machines(), ids=lambda machine: machine.cpu)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_batches_stay_inside(machine: binding.Machine, dtype: str) -> None:
    program = mixture(sizes=(7, 3, 17), outputs=(5, 8, 1))
    kernel = bounds.checked_batch(program, dtype, machine)
    for count in (1, 3, 8, 9, 16, 17, 33):
        ran(kernel, program, count, dtype)


def wide(columns: int) -> Block:
    """An output whose rows are put together in scratch memory, with columns that are always zero."""
    nodes = (("input", 0, 0), ("const", 0.0), ("neg", 0))
    results = tuple(1 if k % 40 > 20 else 2 for k in range(columns))
    return Block("wide", nodes, (ArraySpec("x", (1,)),), (ArraySpec("y", (columns,)),), (results,))


def test_wide_outputs_stay_inside() -> None:
    program = wide(300)
    kernel = bounds.checked_batch(program)
    for count in (1, 8, 21):
        ran(kernel, program, count)


@pytest.mark.parametrize("shift", [0, 8, 24, 40, 56])
def test_wide_outputs_at_any_place_in_a_line(shift: int) -> None:
    """Whatever instructions claim of an address must hold there."""
    program, count = wide(300), 21
    kernel = bounds.checked_batch(program)
    x = np.random.default_rng(0).normal(size=(count, 1))
    raw = np.zeros(count * 300 * 8 + 128, np.uint8)
    out = raw[-raw.ctypes.data % 64 + shift :][: count * 300 * 8].view("f8").reshape(count, 300)
    kernel.evaluate([x], [out], count)
    assert np.array_equal(out[:, 0], -x[:, 0])


def test_one_state_stays_inside() -> None:
    for machine in lesser_machines():
        program = samples.stanford_arm().function("forward_dynamics").program
        kernel = CheckedState(program, machine)
        inputs = [np.random.default_rng(1).uniform(-1, 1, (1, a.size)) for a in program.inputs]
        outputs = [np.empty((1, a.size)) for a in program.outputs]
        kernel.run(inputs, outputs)
        assert np.allclose(outputs[0], interpret(program, inputs)[0])


@pytest.mark.parametrize("single", [False, True])
def test_what_runs_once_between_loops_stays_inside(single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its places are a row of the table behind the links'; one beyond its space must be found as it runs."""
    model = random_tree(3, 9, branching=0.5).with_sweeps("rolled")
    program = model.function("momentum").rolled_program
    (once,) = [first for name, first, count in program.ranges if count == 1]
    kernel = bounds.checked_program(program, single=single)
    beyond = kernel.memory.bytes // 8  # values: outside, but in memory that is there
    q, v, out = (np.zeros((5 + beyond, size))[:5] for size in (model.nq, model.nv, 6))
    q[...] = [model.random_configuration(np.random.default_rng(k)) for k in range(5)]
    v[...] = np.random.default_rng(0).normal(size=v.shape)
    kernel.evaluate([q, v], [out], 5)
    assert np.allclose(out, model.with_sweeps("unrolled").momentum(q, v), rtol=1e-9, atol=1e-9)
    kernel.memory._rows[once:] += beyond
    monkeypatch.setattr(program_kernel._kept, "buffer", np.zeros(20 * kernel.memory.bytes, np.uint8), raising=False)
    with pytest.raises(bounds.BoundsError, match=r"out of bounds.*@block\d+"):
        kernel.evaluate([q, v], [out], 5)


@pytest.mark.parametrize("single", [False, True])
def test_loops_stay_inside(single: bool) -> None:
    model = random_tree(3, 9, branching=0.5).with_sweeps("rolled")
    unrolled = model.with_sweeps("unrolled")
    program = model.function("inverse_dynamics").rolled_program
    kernel = bounds.checked_program(program, single=single)
    rng = np.random.default_rng(0)
    for count in (1, 3, 8, 19):
        q = np.array([model.random_configuration(rng) for _ in range(count)])
        v, vdot = rng.normal(size=(2, count, model.nv))
        out = np.empty((count, model.nv))
        kernel.evaluate([q, v, vdot], [out], count)
        assert np.allclose(out, unrolled.inverse_dynamics(q, v, vdot), rtol=1e-9, atol=1e-9)


def doctored(text: str, pattern: str, change: str) -> str:
    found, times = re.subn(pattern, change, text, count=1, flags=re.M)
    assert times == 1, f"nothing like {pattern} in the text"
    return found


@pytest.mark.parametrize(
    ("pattern", "change"),
    [
        (r"(%row\w*|%t\d+) = mul i64 %i, 7", r"\1 = mul i64 %i, 8"),  # rows further apart than they are
        (r"%whole = sub i64 %count, %left", "%whole = add i64 %count, 8"),  # a block too many
    ],
)
def test_what_leaves_an_array_is_found(pattern: str, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = mixture(sizes=(7,), outputs=(5,))
    machine = lesser_machines()[-1]
    good = source.batch_module(program, machine, 64)
    bad = good._replace(text=doctored(good.text, pattern, change))
    monkeypatch.setattr(source, "batch_module", lambda *_: bad)
    kernel = bounds.checked_batch(program, "f8", machine)
    room = [
        np.zeros((64, a.size)) for a in (*program.inputs, *program.outputs)
    ]  # what is beyond is there, but not ours
    with pytest.raises(bounds.BoundsError, match=r"out of bounds.*(load|store).*@\w+"):
        kernel.evaluate([room[0][:16]], [room[1][:16]], 16)


def test_what_leaves_its_place_in_the_scratch_memory_is_found() -> None:
    program = mixture()
    text = source.batch_module(program, lesser_machines()[-1], 64).text
    assert bounds.verify_scratch(text) > 50
    place = r"(getelementptr <\d+ x double>, ptr %out0, i64) \d+"
    with pytest.raises(bounds.BoundsError, match="leaves its"):
        bounds.verify_scratch(doctored(text, place, r"\1 999"))


def test_a_frame_no_longer_than_its_pointer_reaches_is_a_piece_of_its_own() -> None:
    """The pointer is behind the first vectors of the frame, so that of a short program it is at the end."""
    text = source.batch_module(samples.quadruped().function("integrate").program, lesser_machines()[0], 64).text
    assert bounds.verify_scratch(text) > 50


def test_an_input_that_is_written_to_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = mixture(sizes=(5,), outputs=(5,))
    kernel = bounds.checked_batch(program)
    both = np.zeros((9, 5))
    with pytest.raises(bounds.BoundsError, match="store"):
        # The output is not in the table: all that may be written to is elsewhere.
        monkeypatch.setattr(bounds.Watch, "allow", _all_read_only(bounds.Watch.allow))
        kernel.evaluate([both], [both.copy()], 9)


def _all_read_only(allow: object) -> object:
    def changed(self: bounds.Watch, ranges: list[tuple[int, int, bool]]) -> None:
        allow(self, [ranges[0], *((begin, size, False) for begin, size, _ in ranges[1:])])  # type: ignore[operator]

    return changed


def test_a_way_to_touch_memory_that_is_not_known_is_refused() -> None:
    with pytest.raises(bounds.BoundsError, match="unchecked"):
        bounds.instrumented("define void @f(ptr %p) {\n  %x = load atomic i64, ptr %p acquire, align 8\n  ret void\n}")


def test_asked_for_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LINKWISE_DEBUG", raising=False)
    assert not binding.checked_builds()
    monkeypatch.setenv("LINKWISE_DEBUG", "1")
    assert binding.checked_builds()


@pytest.mark.parametrize("sweeps", ["unrolled", "rolled"])
def test_debug_runs_are_checked(sweeps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of one state and of many, with loops and without, go through checked builds, with the usual results."""
    q = np.random.default_rng(0).uniform(-1, 1, (9, 6))
    right = samples.stanford_arm().gravity_force(q)
    calls = []
    judge = bounds.Watch.judge
    monkeypatch.setattr(bounds.Watch, "judge", lambda watch: calls.append(judge(watch)))
    monkeypatch.setenv("LINKWISE_DEBUG", "1")
    model = samples.stanford_arm().with_sweeps(sweeps)
    for n, batch in enumerate((q[0], q[0], q), start=1):
        assert np.allclose(model.gravity_force(batch), right[0] if batch.ndim == 1 else right, rtol=1e-12, atol=1e-12)
        assert len(calls) == n


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_steps_with_contact_are_checked(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their solvers are loops of which nobody knows how long they take, with results that are NaN if it is too long."""
    model = block().with_contacts(lw.Ground(), rules=lw.ContactRules(solver=solver))
    given = placed(0.05), np.array([0.0, 0.0, 0.0, 1.0, 0.0, -0.2]), np.zeros(6)
    right = model.contact_step(*given)
    monkeypatch.setenv("LINKWISE_DEBUG", "1")
    checked = block().with_contacts(lw.Ground(), rules=lw.ContactRules(solver=solver)).contact_step(*given)
    np.testing.assert_allclose(checked.v, right.v, atol=1e-12)
