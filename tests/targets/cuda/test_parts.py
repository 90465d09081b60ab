"""Programs with wide results in several kernels: the same numbers, all of them, whatever way arrays lie."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.samples import planar_arm
from linkwise.targets.cuda import launched_blocks, tile_layout, wide
from linkwise.targets.cuda import source as kernels
from linkwise.targets.cuda.instructions import Instruction, instructions, operand, ordered
from linkwise.targets.cuda.launched_blocks import DeviceBlock, DividedBlock, device_block, is_wide
from linkwise.targets.cuda.parts import KernelParts, split
from linkwise.targets.cuda.plan_writer import Constants
from linkwise.targets.cuda.spilling import Reload, Spill, plan, with_shared_slots
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.trace.block import ArraySpec, Block
from tests.seeds import usual
from tests.targets.cuda.emulation import LANES, Emulated, needs_compiler
from tests.targets.cuda.models import every_joint, random_state
from tests.targets.cuda.random_programs import execute, programs
from tests.targets.cuda.test_planning import expected, inputs_of


@pytest.fixture(autouse=True)
def _few_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_layout, "LANES", (LANES,))


def run(program: Block, parts: KernelParts, values: dict[int, float]) -> list[list[float]]:
    """All parts after each other, by a machine that forgets everything between them but what they leave."""
    between: dict[int, float] = {}
    for part in parts.parts:
        known = dict(values) | {value: between[place] for value, place in part.reads.items()}
        for each in part.order:
            if each.op == "keep":
                (number,) = each.operands
                node = program.nodes[number.value]
                value = float(node[1]) if node[0] == "const" else float(known[number.value])
                known[each.writes[0]] = -value if number.negative else value
            else:
                execute(program, known, each)
        between.update((place, known[value]) for value, place in part.writes.items())
        assert all(place < parts.places for place in between)
    return [[0.0 if place < 0 else between[place] for place in table] for table in parts.tables]


@settings(max_examples=60, deadline=None)
@given(programs(), st.integers(1, 12))
def test_parts_mean_the_program(program: Block, longest: int) -> None:
    parts = split(program, longest)
    assert all(len(part.order) <= longest for part in parts.parts)
    for got, wanted in zip(run(program, parts, inputs_of(program)), expected(program), strict=True):
        assert np.array_equal(got, np.asarray(wanted, float), equal_nan=True)


@settings(max_examples=50, deadline=None)
@given(programs(), st.integers(4, 8), st.integers(0, 6), st.booleans())
def test_shared_and_local(program: Block, limit: int, room: int, elsewhere: bool) -> None:
    """Slots numbered anew hold what they held; inputs and as many others as there is room for are shared.

    ``elsewhere``: inputs are no slots of ours, and are read again rather than kept in local memory.
    """
    values = inputs_of(program)
    slots = {value: -1 - k if elsewhere else k for k, value in enumerate(values)}
    wanted = [operand(program, value).value for row in program.results for value in row]
    order = ordered(instructions(program), values.keys(), wanted)
    planned = plan(order, slots, limit, reusable={slot for slot in slots.values() if slot >= 0})
    found = with_shared_slots(planned, room)
    assert found.slots <= max(room, planned.given)
    store = {slots[value]: number for value, number in values.items()}
    known: dict[int, Any] = {}
    for step in found.plan.steps:
        if isinstance(step, Instruction):
            execute(program, known, step)
        elif isinstance(step, Reload):
            known[step.value] = store[step.slot]
        else:
            assert 0 <= step.slot < found.slots + found.local
            store[step.slot] = known[step.value]
    for row, numbers in zip(program.results, expected(program), strict=True):
        for number, value in zip(row, numbers, strict=True):
            base = operand(program, number)
            if base.value in known and program.nodes[base.value][0] not in ("const", "input"):
                got = -known[base.value] if base.negative else known[base.value]
                assert got == value or (np.isnan(got) and np.isnan(value))
    assert [s for s in planned.steps if isinstance(s, Instruction)] == [
        s for s in found.plan.steps if isinstance(s, Instruction)
    ]
    assert sum(isinstance(step, Spill) for step in found.plan.steps) == found.plan.stores <= planned.stores
    assert not (
        elsewhere
        and any(isinstance(s, Spill) and s.value in values and s.slot >= found.slots for s in found.plan.steps)
    )


def launch(program: Block, kinds: list[ArrayOrder], given: list[Any], dtype: type, folder: Path, turns: int = 1) -> Any:
    """Results of all kernels, by emulation; the batch in some turns."""
    made = DividedBlock(program, dtype)
    whole = made.kernels(tuple(kinds), tile_layout.SHARED_BYTES)
    count = max(len(a) if kind == "rows" else a.shape[-1] for a, kind in zip(given, kinds, strict=False))
    filled = kinds[len(given) :]
    outputs = [
        np.full((count, a.size) if kind == "rows" else (a.size, count), -777.0, dtype)
        for a, kind in zip(program.outputs, filled, strict=True)
    ]
    step = -(-count // (turns * LANES)) * LANES
    between = np.full(made.division(tuple(kinds)).places * step, np.nan, dtype)
    emulated = []
    for number, kernel in enumerate(whole):
        home = folder / str(number)
        home.mkdir()
        spreads = made.in_place(tuple(kinds))
        arrays = [*given, *outputs] if not spreads else outputs if kernel is whole[-1] else given
        emulated.append((Emulated.of(kernel, len(arrays) + 4, home), arrays))
    for begin in range(0, count, step):
        end = min(count, begin + step)
        for kernel, arrays in emulated:
            passed = [*(a.ctypes.data for a in (*arrays, between)), count, begin, end]
            kernel.launch(passed, -(-(end - begin) // kernel.states))
    return [a if kind == "rows" else a.T for a, kind in zip(outputs, filled, strict=True)]


@needs_compiler
@pytest.mark.parametrize(
    ("name", "dtype"),
    usual(
        [("mass_matrix_inverse", np.float64)],
        ("mass_matrix_inverse", np.float32),
        ("linearize_inverse", np.float64),
        ("linearize_inverse", np.float32),
    ),
)
def test_kernels(name: str, dtype: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few registers and slots, so that values wait near and far, and in several parts and turns."""
    monkeypatch.setattr(wide, "LIMIT", {32: 60, 64: 60})
    monkeypatch.setattr(wide, "_WARPS", {32: 400, 64: 400})
    monkeypatch.setattr(launched_blocks, "LONGEST", {32: 2500, 64: 2500})
    model, count = every_joint(), 3 * LANES + 3
    function = model.function(name)
    program = function.program
    given = [np.ascontiguousarray(a, dtype) for a in random_state(model, count)[: len(program.inputs)]]
    division = DividedBlock(program, dtype).division(("rows",) * (len(given) + len(program.outputs)))
    assert len(division.parts) > 1 and any(part.reads for part in division.parts)
    kinds: list[ArrayOrder] = ["rows"] * (len(given) + len(program.outputs))
    got = launch(program, kinds, given, dtype, tmp_path, turns=2)
    texts = DividedBlock(program, dtype).kernels(tuple(kinds), tile_layout.SHARED_BYTES)
    assert any("lw_far" in kernel.text for kernel in texts[:-1])
    expected = function(*(a.astype(float) for a in given))
    for a, wanted in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
        flat = wanted.reshape(count, -1)
        scale = np.abs(flat).max()
        assert np.allclose(a, flat, rtol=0, atol=(1e-11 if dtype is np.float64 else 2e-3) * scale)


@needs_compiler
def test_columns_and_one_for_all(tmp_path: Path) -> None:
    model, count = planar_arm(6), 2 * LANES + 1
    function = model.function("linearize_inverse")
    q, v, vdot = random_state(model, count)
    kinds: list[ArrayOrder] = ["columns", "one", "rows", "rows", "columns", "rows", "columns"]
    given = [np.ascontiguousarray(q.T), v[0].copy(), vdot]
    got = launch(function.program, kinds, given, np.float64, tmp_path)
    for a, wanted in zip(got, function(q, np.broadcast_to(v[0], v.shape), vdot), strict=True):
        assert np.allclose(a, wanted.reshape(count, -1), rtol=1e-11, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize(
    ("longest", "dtype"),
    usual([(7, np.float64), (5000, np.float32)], (3, np.float64), (3, np.float32), (7, np.float32), (5000, np.float64)),
)
@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_results_of_every_kind(
    longest: int, dtype: type, kind: ArrayOrder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs, constants, zeros, signs changed, truths, the same number twice; huge angles; also from part to part.

    Columns are left where they belong: no kernel spreads them, and later parts read them there.
    """
    monkeypatch.setattr(launched_blocks, "LONGEST" if kind == "rows" else "LONGEST_AT_HOME", {32: longest, 64: longest})
    nodes = (
        ("input", 0, 0), ("input", 0, 1), ("const", 0.0), ("const", 2.5), ("mul", 0, 1), ("neg", 4), ("lt", 0, 1),
        ("input", 1, 0), ("sin", 7), ("neg", 0), ("div", 8, 3), ("select", 6, 0, 3), ("min", 0, 1), ("max", 1, 0),
        ("abs", 1), ("sqrt", 14), ("le", 1, 0), ("and", 6, 16), ("or", 6, 17), ("not", 18), ("eq", 0, 0), ("exp", 8),
    )  # fmt: skip
    results = tuple(range(len(nodes)))
    specs = ArraySpec("x", (2,)), ArraySpec("angle", (1,))
    program = Block("all", nodes, specs, (ArraySpec("y", (len(nodes),)),), (results,))
    x = np.array([[0.5, -1.5], [2.0, 3.0], [-1.0, -1.0], [0.0, 7.0], [4.0, 4.0]])
    huge = 1e12 if dtype is np.float64 else 1e5
    angle = np.array([[0.1], [huge], [-3.0], [100.0], [0.01 * huge]]).astype(dtype).astype(float)
    given = [x.astype(dtype), angle.astype(dtype)]
    made = DividedBlock(program, dtype)
    assert made.in_place(("rows", "rows", kind)) is (kind == "rows")
    assert DividedBlock(program, dtype, apart=False).in_place(("rows", "rows", kind))
    parts = made.kernels(("rows", "rows", kind), tile_layout.SHARED_BYTES)
    assert len(parts) == len(made.division(("rows", "rows", kind)).parts) + (kind == "rows")
    (got,) = launch(program, ["rows", "rows", kind], given, dtype, tmp_path, turns=1 if kind == "rows" else 2)
    a, b = x.T
    sine = np.sin(angle[:, 0])
    truths = a < b, b <= a
    wanted = [
        a, b, 0 * a, 0 * a + 2.5, a * b, -a * b, truths[0], angle[:, 0], sine, -a, sine / 2.5,
        np.where(truths[0], a, 2.5), np.minimum(a, b), np.maximum(a, b), abs(b), np.sqrt(abs(b)), truths[1],
        truths[0] & truths[1], truths[0] | (truths[0] & truths[1]), ~truths[0], a == a, np.exp(sine),
    ]  # fmt: skip
    assert np.allclose(got, np.array(wanted, float).T, rtol=1e-12 if dtype is np.float64 else 1e-6, atol=1e-7)


def test_which_programs_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose results are wide and long in the making, or leave no room."""
    monkeypatch.setattr(tile_layout, "LANES", (32,))
    model = every_joint()
    program = model.function("linearize_inverse").program
    assert is_wide(program, 64) and is_wide(program, 32)
    assert isinstance(device_block(program, np.float64), DividedBlock)
    for short in (model.function("jacobian", body="world"), model.function("inverse_dynamics")):
        assert isinstance(device_block(short.program, np.float64), DeviceBlock)
    assert not is_wide(model.function("mass_matrix").program, 32)


def test_the_last_kernel_takes_as_many_states_as_find_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_layout, "LANES", (32,))
    program = every_joint().function("linearize_inverse").program
    parts = split(program, 5000)
    kinds: list[ArrayOrder] = ["rows"] * len(program.outputs)
    few, many = (wide.last_kernel(program, parts, 64, kinds, room) for room in (30_000, 200_000))
    assert few.shared_bytes <= 30_000 < many.shared_bytes <= 200_000
    assert few.states < many.states and kernels.Kernel.blocks(few, 100) == -(-100 // few.states)


@needs_compiler
def test_arrays_may_have_any_name(tmp_path: Path) -> None:
    """Also those that a kernel uses itself."""
    names = (
        "begin",
        "end",
        "between",
        "slots",
        "own",
        "row",
        "table",
        "tile",
        "first",
        "count",
        "rows",
        "t0",
    )
    specs = tuple(ArraySpec(name, (1,)) for name in names)
    nodes: list[Any] = [("input", k, 0) for k in range(len(names))]
    nodes += [("add", k, (k + 1) % len(names)) for k in range(len(names))]
    results = tuple((len(names) + k,) for k in range(len(names)))
    program = Block("state", tuple(nodes), specs, specs, results)
    given = [np.arange(6.0)[:, None] + k for k in range(len(names))]
    got = launch(program, ["rows"] * (2 * len(names)), given, np.float64, tmp_path)
    for k, a in enumerate(got):
        assert np.array_equal(a, given[k] + given[(k + 1) % len(names)])


@pytest.mark.parametrize(
    "available",
    [48 * 1024, *(pytest.param(size * 1024, marks=pytest.mark.slow) for size in (64, 99, 227))],
)
def test_no_kernel_asks_for_more_memory_than_there_is(available: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many results and inputs there are."""
    monkeypatch.setattr(tile_layout, "LANES", (32, 16, 8, 4))
    wide_inputs = sums(900, 70)
    for program in (planar_arm(6).function("linearize_inverse").program, wide_inputs, sums(3, 4000)):
        for dtype in (np.float64, np.float32):
            made = DividedBlock(program, dtype)
            arrays: int = len(program.inputs) + len(program.outputs)
            found = made.kernels(("rows",) * arrays, available)
            assert max(kernel.shared_bytes for kernel in found) <= available
            alone = kernels.batch_kernel(program, made.dtype.itemsize * 8, shared_bytes=available)
            assert alone.shared_bytes <= available


def test_a_table_has_no_more_constants_than_a_kernel_can_have() -> None:
    """The others stand in the instructions."""
    program = sums(3, 9000)
    constants = Constants.of([program], 64)
    assert 8 * len(constants.places) <= 64 * 1024
    assert constants.text(1.5 + 8999, False) == "9000.5"
    (part, *_) = DividedBlock(program, np.float64).kernels(("rows", "rows"), tile_layout.SHARED_BYTES)
    offsets = [int(offset) for offset in re.findall(r"lw_constant\+(\d+)", part.text)]
    assert offsets and max(offsets) < 64 * 1024


def sums(inputs: int, outputs: int) -> Block:
    """Sums of neighbours, each output with a number of its own."""
    nodes: list[Any] = [("input", 0, k) for k in range(inputs)]
    results = []
    for k in range(outputs):
        nodes += [("const", 1.5 + k), ("add", k % inputs, (k + 1) % inputs), ("mul", len(nodes), len(nodes) + 1)]
        results.append(len(nodes) - 1)
    specs = (ArraySpec("x", (inputs,)),), (ArraySpec("y", (outputs // 10, 10)),)
    return Block("sums", tuple(nodes), *specs, (tuple(results),))


@needs_compiler
@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_arrays_that_find_no_room(kind: ArrayOrder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs and the numbers of the results are read where they are."""
    monkeypatch.setattr(tile_layout, "SHARED_BYTES", 2000)
    program, count = sums(90, 80), 2 * LANES + 3
    x = np.random.default_rng(0).normal(size=(count, 90))
    (got,) = launch(program, [kind, kind], [np.ascontiguousarray(x if kind == "rows" else x.T)], np.float64, tmp_path)
    wanted = [(1.5 + k) * (x[:, k] + x[:, (k + 1) % 90]) for k in range(80)]
    assert np.allclose(got, np.array(wanted).T, rtol=1e-15)


def test_texts_are_written_once_for_what_a_part_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launched_blocks, "LONGEST", {32: 300, 64: 300})
    program = planar_arm(8).function("linearize_inverse").program
    made = DividedBlock(program, np.float64)
    rows: tuple[ArrayOrder, ...] = ("rows",) * 7
    first = made.kernels(rows, tile_layout.SHARED_BYTES)
    again = made.kernels(("rows", "rows", "one", *("rows",) * 4), tile_layout.SHARED_BYTES)
    read = [2 in part.inputs(program) for part in made.division(rows).parts]
    assert any(read) and not all(read)
    assert [a is not b for a, b in zip(first[:-1], again[:-1], strict=True)] == read
    assert first[-1] is again[-1]
