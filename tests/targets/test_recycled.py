"""Memory of large results: used again once free, never while somebody looks, bounded, and off if one wants."""

import gc
import os
import sys
import threading

import numpy as np
import pytest

from linkwise.targets import recycled

F8 = np.dtype(np.float64)
LARGE = (recycled.SMALLEST // 8 + 100,)


@pytest.fixture(autouse=True)
def empty_store(monkeypatch):
    monkeypatch.delenv("LINKWISE_KEPT_MEMORY", raising=False)
    monkeypatch.setattr(recycled, "_store", recycled._FreeMemory())
    return recycled._store


def address(array):
    return array.ctypes.data


def test_small_arrays_are_plain():
    assert recycled.empty((10, 3), F8).flags.owndata


def test_memory_is_used_again():
    first = recycled.empty(LARGE, F8)
    assert first.shape == LARGE
    assert first.flags.writeable
    assert address(first) % 64 == 0
    where = address(first)
    del first
    second = recycled.empty((LARGE[0] - 10,), F8)  # about the same size serves
    assert address(second) == where


def test_not_while_a_view_is_alive():
    first = recycled.empty(LARGE, F8)
    first[:] = 1.0
    view = first[5:10].reshape(5, 1).T
    del first
    gc.collect()
    second = recycled.empty(LARGE, F8)
    second[:] = 2.0
    assert np.all(view == 1.0)
    assert not np.shares_memory(view, second)


def test_bounded(monkeypatch, empty_store):
    monkeypatch.setenv("LINKWISE_KEPT_MEMORY", "3")
    held = [recycled.empty(LARGE, F8) for _ in range(10)]
    held.clear()
    assert empty_store._lent_bytes <= 12 << 20
    empty_store.settle()
    assert empty_store._lent_bytes == 0
    assert 0 < empty_store._bytes <= 3 << 20
    assert empty_store._bytes == sum(piece.size for piece in empty_store._pieces)


@pytest.mark.parametrize("said", ["0", "-1"])
def test_off(monkeypatch, said):
    monkeypatch.setenv("LINKWISE_KEPT_MEMORY", said)
    assert recycled.empty(LARGE, F8).flags.owndata


def test_what_nobody_understands_means_the_default(monkeypatch):
    monkeypatch.setenv("LINKWISE_KEPT_MEMORY", "plenty")
    assert recycled.most_kept() == 256 << 20


def test_interrupts_are_not_lost_where_memory_is_given_back():
    """Of a loan nothing runs in Python when it ends."""
    array = recycled.empty(LARGE, F8)
    called = []
    sys.setprofile(lambda *event: called.append(event[:2]))
    del array
    sys.setprofile(None)
    assert [event for _, event in called if event == "call"] == []


def test_threads():
    """No piece is ever in two hands."""
    wrong = []

    def work(mark):
        for _ in range(100):
            array = recycled.empty(LARGE, F8)
            array[:: LARGE[0] // 50] = mark
            if not np.all(array[:: LARGE[0] // 50] == mark):
                wrong.append(mark)

    workers = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_after_a_fork():
    array = recycled.empty(LARGE, F8)
    array[:] = 3.0
    child = os.fork()
    if child == 0:
        mine = recycled.empty(LARGE, F8)
        mine[:] = 4.0
        os._exit(0 if np.all(array == 3.0) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
