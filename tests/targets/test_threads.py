"""Batches over threads: interrupted at any time, nothing is freed under a thread that still works."""

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from linkwise.targets import threads
from tests.machine import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")


def in_subprocess(script: str) -> str:
    """What a script of its own process prints; a crash is a failure of the test, with its signal."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.strip()


def test_interrupts_at_any_time() -> None:
    """Arrays of an interrupted call are freed at once; threads that still wrote to them would crash or spoil others."""
    script = """
        import signal, time
        import numpy as np
        from linkwise.samples import planar_arm

        model = planar_arm(n=5)
        Q = np.random.default_rng(0).normal(size=(600_000, 5))
        expected = model.mass_matrix(Q)
        model.mass_matrix(Q, threads=2)
        start = time.perf_counter()
        model.mass_matrix(Q, threads=2)
        usual = time.perf_counter() - start
        caught = 0
        for k in range(60):
            signal.setitimer(signal.ITIMER_REAL, usual * (0.02 + 1.2 * k / 60))
            try:
                for _ in range(3):
                    model.mass_matrix(Q.copy(), threads=2)
            except KeyboardInterrupt:
                caught += 1
            else:
                raise SystemExit("an interrupt was lost")
            canary = np.zeros(expected.shape)  # takes the memory that was given back
            time.sleep(0.02 if k % 8 == 0 else 0)
            assert not canary.any()
            del canary
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert np.array_equal(model.mass_matrix(Q, threads=2), expected)
        print(caught)
        """
    head = "import signal; signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
    assert in_subprocess(head + textwrap.dedent(script)) == "60"


class UnexpectedError(Exception):
    pass


def raising(*_: object) -> None:
    raise UnexpectedError


@pytest.fixture
def alarm():
    before = signal.signal(signal.SIGALRM, raising)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("delay", [0.01, 0.03, 0.07, 0.11])
def test_nobody_works_after_an_exception(alarm, delay: float) -> None:
    """Any handler's exception comes out once; by then every thread has left, and shares not begun are dropped."""
    inside, begun, guard = set(), [], threading.Lock()

    def work(start: int, stop: int) -> None:
        with guard:
            inside.add(start)
            begun.append(start)
        time.sleep(0.05)
        with guard:
            inside.remove(start)

    threads.run(lambda start, stop: None, 2, threads=2, smallest=1, step=1)  # Python's own start of a thread is over
    alarm(delay)
    started = time.perf_counter()
    with pytest.raises(UnexpectedError):
        threads.run(work, 40, threads=2, smallest=1, step=1)
    # The caller's own share may be cut short where it is Python; no other thread is at work.
    assert len(inside) <= 1
    assert time.perf_counter() - started < 0.4
    assert len(begun) <= 6
    count = len(begun)
    time.sleep(0.15)
    assert len(begun) == count
    threads.run(work, 4, threads=2, smallest=1, step=1)


def test_signals_again_and_again(alarm) -> None:
    """A second signal while the threads are waited for does not let go of them."""
    inside, guard, raised, begun = [0], threading.Lock(), [0], threading.Event()

    def handler(*_: object) -> None:
        raised[0] += 1
        if raised[0] == 4:
            signal.setitimer(signal.ITIMER_REAL, 0)
        raise UnexpectedError

    def work(start: int, stop: int) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(60.0)  # there is somebody to wait for, however slow the machine is
            time.sleep(0.01)
            return
        with guard:
            inside[0] += 1
            if not raised[0]:
                signal.setitimer(signal.ITIMER_REAL, 0.03, 0.01)
        begun.set()
        time.sleep(0.2)
        with guard:
            inside[0] -= 1

    signal.signal(signal.SIGALRM, handler)
    with pytest.raises(UnexpectedError):
        threads.run(work, 8, threads=3, smallest=1, step=1)
    assert inside[0] == 0
    assert raised[0] == 4


def test_errors_of_workers_come_out() -> None:
    def work(start: int, stop: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("from a thread")
        time.sleep(0.05)

    with pytest.raises(ValueError, match="from a thread"):
        threads.run(work, 40, threads=3, smallest=1, step=1)


def test_every_share_once() -> None:
    for threads_used in (2, 3, 8):
        hits = np.zeros(1000, int)

        def work(start: int, stop: int, hits: np.ndarray = hits) -> None:
            hits[start:stop] += 1

        for _ in range(200):
            threads.run(work, 1000, threads=threads_used, smallest=10, step=8)
        assert (hits == 200).all()


def test_an_interrupt_while_others_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that was called before the caller got to work itself is waited for like any other."""
    begun, ended = threading.Event(), threading.Event()

    class Interrupted(type(threads._tasks)):  # type: ignore[misc]
        def put(self, task: object) -> None:
            super().put(task)
            if task is not None:
                begun.wait(10.0)
                raise KeyboardInterrupt

    def work(start: int, stop: int) -> None:
        begun.set()
        time.sleep(0.2)
        ended.set()

    monkeypatch.setattr(threads, "_tasks", Interrupted())
    monkeypatch.setattr(threads, "_workers", 0)
    with pytest.raises(KeyboardInterrupt):
        threads.run(work, 1000, 2, 1, 1)
    assert ended.is_set()
