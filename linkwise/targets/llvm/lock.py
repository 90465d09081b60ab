"""LLVM, one at a time.

Everything that is asked of LLVM is asked under one lock, and a process forks only while nobody holds it: the child
would find LLVM as it was in the middle of a thread that the child does not have.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.RLock()  # may be taken again: the collector may run at any time, and discard things
_unwanted: deque[Any] = deque()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@contextmanager
def using_llvm() -> Iterator[Any]:
    """The binding to LLVM, for this thread alone."""
    with _lock:
        try:
            yield _binding()
        finally:
            _close_unwanted()


def discard(thing: Any) -> None:
    """Close an object of LLVM's: now, or if another thread is at work there, when that has finished.

    This never waits, so that it can be called when anything is freed, whatever locks are held there.
    """
    _unwanted.append(thing)
    if _lock.acquire(blocking=False):
        try:
            _close_unwanted()
        finally:
            _lock.release()


def _close_unwanted() -> None:
    while _unwanted:
        _unwanted.popleft().close()


@cache
def _binding() -> Any:
    """llvmlite, imported and initialised at first use: it takes a tenth of a second."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm
