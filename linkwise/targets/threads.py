"""A batch over several threads.

The compiled function runs without the interpreter's lock, so Python's own threads serve. They are started
once and kept. The caller works too, and all take the next share as they get to it: a thread that wakes late
costs nothing but its own help.

The caller may be interrupted at any time: Ctrl-C, or whatever else a signal's handler raises. Shares that have not
begun are then dropped, and the exception goes on when every thread has left: nothing is written to the caller's
arrays afterwards.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable

_SHARES_PER_THREAD = 4

_lock = threading.Lock()
_tasks: queue.SimpleQueue[_SharedRanges] = queue.SimpleQueue()
_workers = 0


class _SharedRanges:
    """Ranges to work on, taken one at a time by the threads that are free.

    Signals are handled in the caller's thread alone, so only its steps may be cut short: the count of the others who
    are at work is always right.
    """

    def __init__(self, work: Callable[[int, int], None], shares: list[tuple[int, int]], keeping: object) -> None:
        self._work = work
        self._shares = deque(shares)
        self._keeping = keeping
        self._guard = threading.Lock()
        self._at_work = 0
        self._awaited = False
        self._all_left = threading.Lock()
        self._all_left.acquire()
        self._error: BaseException | None = None

    def help(self) -> None:
        """Take shares until none is left; for threads other than the caller's."""
        with self._guard:
            self._at_work += 1  # before a share is taken: none is on its way unseen
        try:
            self._take_shares(self._keeping)
        except BaseException as error:  # handed to the thread that waits
            self._error = error
            self._shares.clear()
        with self._guard:
            self._at_work -= 1
            if self._awaited and self._at_work == 0:
                self._awaited = False
                self._all_left.release()

    def run(self, others: int) -> None:
        """Call so many others to help, take shares like them, then wait for them."""
        try:
            for _ in range(others):
                _tasks.put(self)  # from here on threads may be at work: an interrupt must find us waiting for them
            self._take_shares(self._keeping)
            with self._guard:
                self._awaited = self._at_work > 0
            if self._awaited:
                self._all_left.acquire()
        except BaseException:
            self._abandon()
            raise
        finally:
            self._keeping = None  # a thread that wakes late finds the task, but nothing to do
        if self._error is not None:
            raise self._error

    def _take_shares(self, keeping: object) -> None:
        """Work until nothing is left; ``keeping`` lives as long as this thread is at it, whatever the caller does."""
        while self._shares:
            try:
                share = self._shares.popleft()
            except IndexError:  # another thread was faster
                return
            self._work(*share)

    def _abandon(self) -> None:
        """Drop what has not begun, and stay until nobody is at work, whatever else comes in meanwhile."""
        while True:
            try:
                self._shares.clear()
                while self._at_work:
                    time.sleep(1e-4)
                return
            except BaseException:  # one exception is on its way already
                continue


def _forget() -> None:
    """Forget the threads: after a fork the child has none of its parent's."""
    global _lock, _tasks, _workers
    _lock, _tasks, _workers = threading.Lock(), queue.SimpleQueue(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _serve(tasks: queue.SimpleQueue[_SharedRanges]) -> None:
    while True:
        tasks.get().help()


def _ensure(workers: int) -> None:
    global _workers
    with _lock:
        while _workers < workers:
            _workers += 1
            threading.Thread(target=_serve, args=(_tasks,), name=f"linkwise-{_workers}", daemon=True).start()


def shares(count: int, threads: int, smallest: int, step: int) -> list[tuple[int, int]]:
    """Cut ``count`` into ranges that start at multiples of ``step``; one range if two would be below ``smallest``."""
    if threads <= 1 or count < 2 * smallest:
        return [(0, count)]
    pieces = max(threads, min(threads * _SHARES_PER_THREAD, count // max(smallest, 1)))  # each hand-over costs time too
    size = -(-count // pieces)
    size = -(-size // step) * step
    return [(start, min(count, start + size)) for start in range(0, count, size)]


def run(
    work: Callable[[int, int], None], count: int, threads: int, smallest: int, step: int, keeping: object = None
) -> None:
    """``work(start, stop)`` for ranges that cover ``count``, side by side; returns when all are done.

    ``keeping``: the arrays whose addresses ``work`` uses, alive for as long as any thread may still look at the task.
    """
    parts = shares(count, threads, smallest, step)
    if len(parts) == 1:
        work(*parts[0])
        return
    others = min(threads, len(parts)) - 1
    _ensure(others)
    _SharedRanges(work, parts, keeping).run(others)
