"""The binding to LLVM, one thread at a time; the machine that code is made for; and whether builds are checked.

Everything that is asked of LLVM is asked under one lock, but for one thing: threads that optimise, which takes long and
touches nothing of anybody else's, go on beside all others. They take turns where they want unlike switches of LLVM's,
which hold for the whole process. A process forks only while nobody optimises or holds the lock: the child would find
LLVM as it was in the middle of a thread that the child does not have.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from linkwise.dataclass import dataclass

_lock = threading.RLock()  # may be taken again: the collector may run at any time, and discard things
_unwanted: deque[Any] = deque()


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


Switches = frozenset[str]
"""Switches of LLVM's that are not as usual."""

NOT_AGAIN, IN_ORDER = "-disable-post-ra", "-enable-misched"
_USUAL = {NOT_AGAIN: False, IN_ORDER: True}


class Turns:
    """Turns to optimise: threads that want the same switches have theirs together.

    Whoever wants others, or to be alone, waits until nobody is at work, and is not passed by those who come later.
    Whoever takes a turn and the lock takes the turn first.
    """

    def __init__(self) -> None:
        self._switches: Switches = frozenset()
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._at_work: set[int] = set()  # threads
        self._alone = False

    def must_wait(self, switches: Switches | None) -> bool:
        """Whether a thread that wanted these switches now, or none beside it, had to wait."""
        return bool(self._waiting) or not self._suits(switches)

    def _suits(self, switches: Switches | None) -> bool:
        return not (self._at_work and (self._alone or switches != self._switches))

    @contextmanager
    def turn(self, switches: Switches) -> Iterator[None]:
        """A turn with these switches."""
        self._take(switches)
        try:
            yield
        finally:
            self._leave()

    def _take(self, switches: Switches | None) -> None:
        mine, me = object(), threading.get_ident()
        with self._changed:
            self._at_work.discard(me)  # a turn that an interrupt ended
            self._waiting.append(mine)
            try:
                self._changed.wait_for(lambda: self._waiting[0] is mine and self._suits(switches))
                if switches is not None:
                    self._set(switches)
            finally:
                self._waiting.remove(mine)
                self._changed.notify_all()
            self._at_work.add(me)
            self._alone = switches is None

    def _leave(self) -> None:
        with self._changed:
            self._at_work.discard(threading.get_ident())
            self._alone = False
            self._changed.notify_all()

    def _set(self, switches: Switches) -> None:
        for name in sorted(switches ^ self._switches):
            with using_llvm() as llvm:
                llvm.set_option("linkwise", f"{name}={str(_USUAL[name] ^ (name in switches)).lower()}")
            self._switches ^= {name}

    def before_fork(self) -> None:
        """Wait for those at work, and hold up all others."""
        self._take(None)
        _lock.acquire()

    def after_fork(self) -> None:
        """Let others go on."""
        _lock.release()
        self._leave()

    def in_child(self) -> None:
        """Begin anew: the threads that waited are the parent's."""
        _lock.release()
        self._begin()


optimising = Turns()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=optimising.before_fork, after_in_parent=optimising.after_fork, after_in_child=optimising.in_child
    )


@cache
def _binding() -> Any:
    """llvmlite, imported and initialised at first use: it takes a tenth of a second."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Code that is not optimised is selected as optimised code is: that fuses the same products and sums, so both round
    # alike, and is faster here than LLVM's own short ways (ARM has the second), which give up at every vector constant.
    llvm.set_option("linkwise", "-fast-isel=false")
    llvm.set_option("linkwise", "-global-isel=false")
    return llvm


@dataclass(frozen=True)
class Machine:
    """Properties of a processor that the code generator must know."""

    triple: str
    cpu: str
    features: str  # LLVM's list, "+avx2,-avx512f,..."
    vector_bytes: int
    masked: bool  # loads and stores can leave lanes out at no cost (AVX-512)
    fma: bool  # fused multiply-add is an instruction, not a library call

    def lanes(self, dtype: Any) -> int:
        """States that one vector register holds."""
        return self.vector_bytes // int(np.dtype(dtype).itemsize)

    @property
    def identity(self) -> str:
        """Properties that decide whether an object file runs here."""
        return f"{self.triple} {self.cpu} {self.features} {self.vector_bytes}"


@cache
def host() -> Machine:
    """The processor this process runs on."""
    with using_llvm() as llvm:
        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
        try:
            found = llvm.get_host_cpu_features()
        except RuntimeError:  # LLVM cannot ask this kind of processor; its name implies the features
            return Machine(triple, cpu, "", 16, masked=False, fma=not triple.startswith(("x86_64", "i")))
    on = {name for name, present in found.items() if present}
    # AVX-512 counts only with the parts that the transposes and the tail masks use.
    wide = {"avx512f", "avx512dq", "avx512vl", "avx512bw"} <= on
    size = 64 if wide else 32 if {"avx", "avx2"} <= on else 16
    x86 = triple.startswith(("x86_64", "i"))
    return Machine(triple, cpu, found.flatten(), size, masked=wide, fma=not x86 or "fma" in on)


def checked_builds() -> bool:
    """Whether kernels are to be checked builds: the environment says ``LINKWISE_DEBUG=1``."""
    return os.environ.get("LINKWISE_DEBUG", "0").lower() not in ("", "0", "off", "no", "false")
