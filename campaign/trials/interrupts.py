"""Ctrl-C at random moments: in threaded calls, while compiling, while reading a file, while simulating.

After the interrupt the arrays of the call are taken away (no access at all): a thread that still works on them ends the
process. Then the same call must give the same bits as ever.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from campaign.guarded import Guarded, available
from campaign.trial import Log, Trial, said
from linkwise import samples

STATES = 20_000


@contextmanager
def interrupt_after(seconds: float, by_thread: bool) -> Iterator[None]:
    """KeyboardInterrupt in the main thread at some moment, by a timer's signal or sent by another thread."""
    if by_thread:
        stop = threading.Event()

        def send() -> None:
            if not stop.wait(seconds):
                _thread.interrupt_main()

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


@cache
def _arm() -> tuple[lw.Model, list[Any], Any, float]:
    """A model, its inputs, the right answer, and how long it takes."""
    model = samples.stanford_arm()
    arrays = list(np.random.default_rng(0).uniform(-1, 1, (3, STATES, model.nv)))
    right = model.forward_dynamics(*arrays, threads=2)
    began = time.perf_counter()
    model.forward_dynamics(*arrays, threads=2)
    return model, arrays, right, time.perf_counter() - began


def threaded_call(rng: np.random.Generator, by_thread: bool) -> None:
    """A batch over two or three threads."""
    model, arrays, right, usual = _arm()
    guarded = [Guarded(x.shape, x.dtype) for x in (*arrays, right)]
    for guard, x in zip(guarded, arrays, strict=False):
        guard.array[...] = x
    ins, out = [guard.array for guard in guarded[:3]], guarded[3].array
    threads = int(rng.integers(2, 4))
    try:
        with interrupt_after(max(1e-6, float(rng.uniform(0, 1.2)) * usual), by_thread):
            model.forward_dynamics(*ins, out=out, threads=threads)
            time.sleep(1e-4)
        assert np.array_equal(out, right), "a call that was not interrupted went wrong"
    except KeyboardInterrupt:
        for guard in guarded:
            guard.close()
        if rng.random() < 0.3:
            time.sleep(usual)
    again = model.forward_dynamics(*arrays, threads=threads)
    assert np.array_equal(again, right), "after an interrupt the same call gives other bits"


def compiling(rng: np.random.Generator, by_thread: bool) -> None:
    """The first call of a function, which compiles it."""
    builder = lw.ModelBuilder("new")
    builder.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=float(rng.uniform(1, 2)), com=(0.1, 0, -0.5))
    model = builder.build()
    q = np.array([0.3])
    try:
        with interrupt_after(float(rng.uniform(1e-4, 0.08)), by_thread):
            model.gravity_force(q)
    except KeyboardInterrupt:
        pass
    expected = model.mass * 9.81 * (0.5 * np.sin(0.3) - 0.1 * np.cos(0.3))
    for _ in range(2):
        assert abs(model.gravity_force(q)[0] - expected) < 1e-12 * model.mass * 9.81, "wrong after an interrupt"


def reading(rng: np.random.Generator, by_thread: bool) -> None:
    """A file."""
    text = b'<robot name="r"><link name="a"/>' + b"".join(
        b'<link name="l%d"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        b'</inertial></link><joint name="j%d" type="revolute"><parent link="a"/><child link="l%d"/>'
        b'<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>' % (k, k, k)
        for k in range(20)
    )
    text += b"</robot>"
    try:
        with interrupt_after(float(rng.uniform(1e-5, 0.01)), by_thread):
            lw.loads(text)
    except KeyboardInterrupt:
        pass
    assert lw.loads(text).nv == 20


@cache
def _motion() -> tuple[lw.Model, Any]:
    model = samples.double_pendulum() if hasattr(samples, "double_pendulum") else samples.stanford_arm()
    q = np.full(model.nq, 0.1)
    return model, lw.simulate(model, q, np.zeros(model.nv), duration=0.2, dt=1e-3, method="rk4").q


def simulating(rng: np.random.Generator, by_thread: bool) -> None:
    """A motion."""
    model, right = _motion()

    def run() -> Any:
        return lw.simulate(model, np.full(model.nq, 0.1), np.zeros(model.nv), duration=0.2, dt=1e-3, method="rk4").q

    try:
        with interrupt_after(float(rng.uniform(1e-5, 0.02)), by_thread):
            run()
    except KeyboardInterrupt:
        pass
    assert np.array_equal(run(), right), "after an interrupt the same motion is another"


KINDS: tuple[tuple[Callable[[np.random.Generator, bool], None], float], ...] = (
    (threaded_call, 0.85),
    (compiling, 0.05),
    (reading, 0.05),
    (simulating, 0.05),
)


class Interrupts(Trial):
    """KeyboardInterrupt anywhere."""

    name, unit, target, chunk = "interrupts", "interrupts at random moments", 10**4, 500
    patience = 30.0

    def unavailable(self) -> str | None:
        """Needs signals and page protection."""
        return None if hasattr(signal, "setitimer") and available() else "this system has no interval timers"

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Interrupt, look, go on."""
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _arm()
        for number in log.numbers(numbers):
            rng = np.random.default_rng([seed, number])
            what = KINDS[rng.choice(len(KINDS), p=[p for _, p in KINDS])][0]
            by_thread = bool(rng.random() < 0.2)
            log.begin(number, f"{what.__name__}, by {'a thread' if by_thread else 'a timer'}")
            try:
                what(rng, by_thread)
            except KeyboardInterrupt:
                pass  # it came a little late, between two trials
            except Exception as error:
                log.fail(number, said(error))
