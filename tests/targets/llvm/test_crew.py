"""Threads without the interpreter: every state once, whoever asks at the same time, also after a fork."""

import ctypes
import os
import sys
import threading

import numpy as np
import pytest

from linkwise.targets.llvm import crew as native
from linkwise.targets.llvm import kernel as kernels
from linkwise.targets.llvm import layouts
from linkwise.targets.llvm.fastcall import BatchSlot
from linkwise.targets.llvm.kernel import BatchKernel
from tests.targets.programs import interpret, mixture

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX threads")


@pytest.fixture(autouse=True)
def small_shares(monkeypatch):
    """Every batch is worth several threads."""
    monkeypatch.setattr(kernels, "_SHARE_NODES", 1)
    monkeypatch.setattr(kernels, "_WAKING_NODES", 1)


def batch(count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, (count, *a.shape)).reshape(count, a.size) for a in mixture().inputs]


def jobs_posted(crew):
    """Number of jobs that others were asked to help with: the second word of the board."""
    return ctypes.c_int64.from_address(crew.places[1] + 8).value


def run(kernel, inputs, threads):
    outputs = [np.full((len(inputs[0]), a.size), np.nan) for a in mixture().outputs]
    kernel.evaluate(inputs, outputs, len(inputs[0]), threads)
    return outputs


def right(inputs):
    shaped = [x.reshape(len(x), *a.shape) for x, a in zip(inputs, mixture().inputs, strict=True)]
    return [y.reshape(len(y), -1) for y in interpret(mixture(), shaped)]


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("count", [2, 3, 8, 9, 17, 100, 1001])
def test_every_state_once(count, threads):
    kernel, inputs = BatchKernel.build(mixture()), batch(count)
    for got, alone, e in zip(run(kernel, inputs, threads), run(kernel, inputs, 1), right(inputs), strict=True):
        assert np.allclose(got, e, rtol=1e-12, atol=1e-14)
        assert np.array_equal(got, alone)


def test_long_batches_go_in_stretches(monkeypatch):
    monkeypatch.setattr(kernels, "_LONGEST_NODES", 1)
    kernel, inputs = BatchKernel.build(mixture()), batch(100)
    for got, e in zip(run(kernel, inputs, 2), right(inputs), strict=True):
        assert np.allclose(got, e, rtol=1e-12, atol=1e-14)


def test_many_callers():
    """One of them gets the crew, the others do their work alone; all get what is theirs."""
    kernel, wrong = BatchKernel.build(mixture()), []

    def work(seed):
        inputs = batch(300, seed)
        expected = right(inputs)
        for _ in range(100):
            if not all(np.allclose(g, e) for g, e in zip(run(kernel, inputs, 3), expected, strict=True)):
                wrong.append(seed)

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_after_a_fork():
    kernel, inputs = BatchKernel.build(mixture()), batch(100)
    expected = run(kernel, inputs, 3)
    child = os.fork()
    if child == 0:
        same = all(np.array_equal(g, e) for g, e in zip(run(kernel, inputs, 3), expected, strict=True))
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(not layouts.available(), reason="this interpreter has its ordinary path only")
def test_a_builtin_function_after_a_fork():
    """It has been told where the crew is; in the child it finds one there, without members, and again with them."""
    kernel, inputs, asked = BatchKernel.build(mixture()), batch(100), []
    slot = BatchSlot()
    kernel.offer(slot)

    def slow(*arrays, threads):
        asked.append(threads)
        flat = [x.reshape(len(x), -1) for x in arrays]
        return [y.reshape(len(y), *a.shape) for y, a in zip(run(kernel, flat, threads), mixture().outputs, strict=True)]

    function = kernels.builtin_function(mixture(), slow, "mixture", slot=slot, one_state=False)
    given = [x.reshape(len(x), *a.shape) for x, a in zip(inputs, mixture().inputs, strict=True)]
    expected = function(*given, threads=3)
    function(*given, threads=3)
    assert asked == [3]
    child = os.fork()
    if child == 0:
        answers = [function(*given, threads=3) for _ in range(2)]
        right = all(np.array_equal(g, e) for got in answers for g, e in zip(got, expected, strict=True))
        os._exit(0 if right and asked == [3, 3] and jobs_posted(native.crew()) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_little_work_wakes_nobody(monkeypatch):
    monkeypatch.setattr(kernels, "_WAKING_NODES", 10**12)
    kernel, crew = BatchKernel.build(mixture()), native.Crew()
    monkeypatch.setitem(native._crews, "here", crew)
    inputs = batch(100)
    for got, e in zip(run(kernel, inputs, 2), right(inputs), strict=True):
        assert np.allclose(got, e, rtol=1e-12, atol=1e-14)
    assert jobs_posted(crew) == 0
    monkeypatch.setattr(kernels, "_WAKING_NODES", 1)
    run(kernel, inputs, 2)
    assert jobs_posted(crew) == 1


def test_without_posix_threads(monkeypatch):
    monkeypatch.setattr(native.sys, "platform", "win32")
    kernel, inputs = BatchKernel.build(mixture()), batch(100)
    for got, e in zip(run(kernel, inputs, 3), right(inputs), strict=True):
        assert np.allclose(got, e, rtol=1e-12, atol=1e-14)


def test_no_memory():
    kernel, inputs = BatchKernel.build(mixture()), batch(100)
    kernel._scratch_bytes = 1 << 60
    with pytest.raises(MemoryError, match="bytes of memory for the lanes"):
        run(kernel, inputs, 2)
