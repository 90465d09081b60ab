"""Values made once: by one thread for all, without waiting for each other in a ring, also after a fork."""

import gc
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import linkwise as lw
from linkwise.memoized import _made, _Making, cached_property, no_search_for_cycles, once
from linkwise.samples import planar_arm


class Thing:
    def __init__(self) -> None:
        self.made = 0
        self.other: Thing | None = None
        self.pause = 0.0

    @cached_property
    def value(self) -> object:
        """What it is."""
        self.made += 1
        time.sleep(self.pause)
        if self.other is not None:
            _ = self.other.value
        return object()


def test_once_for_all_threads() -> None:
    thing = Thing()
    thing.pause = 0.1
    with ThreadPoolExecutor(8) as pool:
        values = set(pool.map(lambda _: thing.value, range(8)))
    assert len(values) == 1
    assert thing.made == 1
    assert vars(thing)["value"] in values
    assert isinstance(Thing.value, cached_property)
    assert Thing.value.__doc__ == "What it is."


def test_objects_do_not_wait_for_each_other() -> None:
    slow, quick = Thing(), Thing()
    slow.pause = 1.0
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    time.sleep(0.05)
    start = time.perf_counter()
    _ = quick.value
    assert time.perf_counter() - start < 0.5
    thread.join()


def test_a_ring_is_made_twice_rather_than_never() -> None:
    """a asks for b, in another thread b asks for a: each alone would be fine, since the values are the same."""
    store: dict[str, object] = {}
    both = threading.Barrier(2)

    def value(name: str, other: str) -> object:
        def make() -> str:
            if threading.current_thread().name.startswith(name):
                both.wait()
                once(store, other, lambda: other)
            return name

        return once(store, name, make)

    threads = [
        threading.Thread(target=value, args=pair, name=pair[0], daemon=True) for pair in (("a", "b"), ("b", "a"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert store == {"a": "a", "b": "b"}


def test_after_a_failure_the_next_one_tries() -> None:
    store: dict[str, int] = {}
    entered = threading.Event()

    def fail() -> int:
        entered.set()
        time.sleep(0.1)
        raise ValueError("no")

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(once, store, "x", fail)
        entered.wait()
        assert once(store, "x", lambda: 3) == 3
        with pytest.raises(ValueError, match="no"):
            first.result()


def test_tracing_beside_a_first_call() -> None:
    """One thread traces a function that evaluates another numerically; a second makes that one's first call."""
    model = planar_arm(n=3)
    q = np.array([0.1, 0.2, 0.3])
    tracing = threading.Event()

    def outer(m, x):
        tracing.set()
        time.sleep(0.3)
        return m.potential_energy(x) + float(numeric(q)[0, 0])

    def first_call() -> None:
        tracing.wait()
        numeric(q)

    numeric = lw.compile(lambda m, x: m.mass_matrix(x), model, inputs={"x": "q"})
    traced = lw.compile(outer, model, inputs={"x": "q"})
    threads = [threading.Thread(target=f, daemon=True) for f in (lambda: traced(q[None]), first_call)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "the two threads wait for each other"
    assert traced(q) == pytest.approx(model.potential_energy(q) + model.mass_matrix(q)[0, 0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_another_thread_compiles() -> None:
    """The child begins in the middle of a thread it does not have, and compiles nevertheless."""
    done = threading.Event()

    def compile_again_and_again() -> None:
        k = 0
        while not done.is_set():
            k += 1
            lw.compile(lambda m, q, k=k: m.mass_matrix(q) * (1.0 + k), model, inputs={"q": "q"})(q)

    model = planar_arm(n=4)
    q = np.full(4, 0.1)
    shared = lw.compile(lambda m, q: m.mass_matrix(q), model, inputs={"q": "q"})
    threads = [threading.Thread(target=compile_again_and_again, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for k in range(6):
            time.sleep(0.05 + 0.007 * k)
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    fresh = planar_arm(n=3)
                    here = lw.compile(lambda m, q, k=k: m.mass_matrix(q) + k, fresh, inputs={"q": "q"})
                    ok = np.isfinite(here(q[:3])).all() and np.isfinite(shared(q)).all()
                    ok = ok and np.isfinite(model.mass_matrix(np.zeros((50_000, 4)), threads=2)).all()
                    code = 0 if ok else 2
                finally:
                    os._exit(code)
            assert _status(child, 60) == 0
    finally:
        done.set()
        for thread in threads:
            thread.join(60)


def _status(child: int, seconds: float) -> int | None:
    """How a child ended; None if it did not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def test_a_making_that_was_interrupted_while_it_ended_keeps_nobody_waiting() -> None:
    store: dict[str, int] = {}
    left = _Making()
    left.thread = -1
    left.gate.release()
    _made[id(store), "x"] = left
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(once, store, "x", lambda: 7).result(timeout=10.0) == 7
    assert (id(store), "x") not in _made


def test_the_collector_is_only_paused() -> None:
    assert gc.isenabled()
    with no_search_for_cycles():
        assert not gc.isenabled()
    with pytest.raises(KeyError), no_search_for_cycles():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with no_search_for_cycles():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_objects_that_others_made_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where threads run freely the count goes on growing; to walk through all objects at every value took minutes."""
    walked = []
    monkeypatch.setattr(gc, "freeze", lambda: walked.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: walked.append("unfreeze"))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)
    counts = iter([500_000, 500_100, 500_100, 900_000])
    monkeypatch.setattr(gc, "get_count", lambda: (next(counts), 0, 0))
    with no_search_for_cycles():
        pass
    assert not walked
    with no_search_for_cycles():
        pass
    assert walked == ["freeze", "unfreeze"]
