"""The machine that code is made for: its name, its features, how wide its vectors are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from linkwise.targets.llvm.lock import using_llvm


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
