"""The binding to LLVM, one thread at a time; the machine that code is made for; and whether builds are checked.

Everything that is asked of LLVM is asked under one lock, but for one thing: while a thread optimises, which takes long
and touches nothing of anybody else's, others may go on. It holds a lock of its own, since how LLVM optimises is set by
switches of the whole process. A process forks only while nobody holds either: the child would find LLVM as it was in
the middle of a thread that the child does not have.
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
optimising = threading.RLock()  # whoever takes both locks takes this one first
_unwanted: deque[Any] = deque()


def _hold() -> None:
    optimising.acquire()
    _lock.acquire()


def _let_go() -> None:
    _lock.release()
    optimising.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)


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
