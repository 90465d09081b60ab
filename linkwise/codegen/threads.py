"""A batch over several threads.

The compiled function runs without the interpreter's lock, so Python's own threads serve. They are started
once and kept. The caller works too, and all take the next share as they get to it: a thread that wakes late
costs nothing but its own help.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Callable

_SHARES_PER_THREAD = 4

_lock = threading.Lock()
_tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
_workers = 0


class _Task:
    """Ranges to work on, taken one at a time by whoever is free."""

    def __init__(self, work: Callable[[int, int], None], shares: list[tuple[int, int]]) -> None:
        self.work, self.shares = work, shares
        self._next = itertools.count()
        self._left = len(shares)
        self._guard = threading.Lock()
        self._finished = threading.Lock()
        self._finished.acquire()
        self.error: BaseException | None = None

    def help(self) -> None:
        """Take shares until none is left."""
        while (k := next(self._next)) < len(self.shares):
            try:
                self.work(*self.shares[k])
            except BaseException as error:  # handed to the thread that waits
                self.error = error
            with self._guard:
                self._left -= 1
                if self._left == 0:
                    self._finished.release()

    def wait(self) -> None:
        self._finished.acquire()
        if self.error is not None:
            raise self.error


def _forget() -> None:
    """After a fork the child has none of its parent's threads."""
    global _lock, _tasks, _workers
    _lock, _tasks, _workers = threading.Lock(), queue.SimpleQueue(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _serve(tasks: queue.SimpleQueue[_Task]) -> None:
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


def run(work: Callable[[int, int], None], count: int, threads: int, smallest: int, step: int) -> None:
    """``work(start, stop)`` for ranges that cover ``count``, side by side; returns when all are done."""
    parts = shares(count, threads, smallest, step)
    if len(parts) == 1:
        work(*parts[0])
        return
    helpers = min(threads, len(parts)) - 1
    _ensure(helpers)
    task = _Task(work, parts)
    for _ in range(helpers):
        _tasks.put(task)
    task.help()
    task.wait()
