"""Kernels in which states that are done make room for others: the same numbers as where every state goes by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linkwise.targets.cuda import pooled_threads, runtime, thread_memory
from linkwise.targets.cuda.launched_programs import DeviceProgram, is_sequence, kernel_writer
from linkwise.targets.cuda.pooled_threads import PooledKernel
from linkwise.targets.cuda.thread_memory import ThreadKernel
from linkwise.targets.llvm.device import HostedProgram
from linkwise.trace import waiting
from tests.seeds import seeds
from tests.targets.cuda import test_contact as contact
from tests.targets.cuda.emulation import needs_compiler
from tests.targets.cuda.fakes import Fakes, fakes  # noqa: F401
from tests.targets.llvm.test_pool import rows_of, waiting_program

pytestmark = needs_compiler


@pytest.mark.parametrize(
    ("dtype", "passes", "long"), [(np.float64, 2, 0), (np.float32, 0, 0), (np.float64, 1, 1 << 20)]
)
@pytest.mark.parametrize("seed", seeds(2, of=4))
def test_states_wait_in_a_queue(
    fakes: Fakes,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    dtype: Any,
    passes: int,
    long: int,
) -> None:
    """Also where warps stay together, since their blocks count as long."""
    monkeypatch.setattr(thread_memory, "_LONG", long)
    monkeypatch.setattr(pooled_threads, "PASSES", passes)
    rng = np.random.default_rng(seed)
    program = waiting_program(rng, called=seed % 2 > 0)
    writer = kernel_writer(program, np.dtype(dtype).itemsize * 8)
    assert isinstance(writer, PooledKernel)
    host = HostedProgram(program, dtype)
    for count, room in ((1, 1 << 30), (5, 1 << 30), (70, 1 << 30), (70, 8 * writer.memory * 20)):
        monkeypatch.setattr(runtime, "WORKING_BYTES", room)
        rows = rows_of(program, rng, count, dtype)
        expected = {name: array.copy() for name, array in rows.items()}
        host.run(expected, {}, {}, count)
        fakes.cupy.launches.clear()
        DeviceProgram(program, dtype).run(rows, {}, {}, count)
        assert (len(fakes.cupy.launches) > 3) == (room < 1 << 30)
        for name in ("y", "left"):
            np.testing.assert_allclose(rows[name], expected[name], rtol=1e-12 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_steps_with_contact(fakes: Fakes, monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:  # noqa: F811
    """Results where inputs are: those that wait still find theirs."""
    monkeypatch.setattr(pooled_threads, "PASSES", 1)
    model = contact.hopper()
    step, given = model.function("contact_step"), contact.state(model, 23)
    expected, on = step(*(x.astype(dtype) for x in given)), [fakes.array(x, dtype) for x in given]
    monkeypatch.setattr(waiting, "MOVED", 0)  # from here on: kernels of the processor are made for what it was
    assert is_sequence(step.program, 64)
    contact.close(contact.hopper().function("contact_step")(*on), expected, dtype)
    out = step(*on)._replace(q=on[0], v=on[1], impulses=on[3])
    step(*on, out=out)
    contact.close(out, expected, dtype)


def test_short_passes_do_not_wait() -> None:
    program = contact.hopper().function("contact_step").program
    assert type(kernel_writer(program, 32)) is ThreadKernel
