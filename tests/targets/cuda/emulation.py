"""Kernels run on the CPU: their text, compiled as C++ with stand-ins for what CUDA adds.

A warp is four threads of the operating system that wait for each other where a warp does, so that the cooperative
parts of a kernel (staging, votes) run as written, vector accesses and all; only the number of lanes differs.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from linkwise.targets.cuda.source import Kernel
from tests.targets.cuda.ptx import as_cpp

LANES = 4

compiler = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(compiler is None, reason="no C++ compiler here to run kernels on the CPU with")

_BEFORE = """
#include <cmath>
#include <cstring>
#include <pthread.h>
using std::nan;
using std::nanf;
#define LW_LANES 4
#define LW_THREADS 4
#define __device__
#define __global__
#define __shared__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
static int __float_as_int(float x) { int i; std::memcpy(&i, &x, 4); return i; }
static float __int_as_float(int i) { float x; std::memcpy(&x, &i, 4); return x; }
static int __double2hiint(double x) { long long i; std::memcpy(&i, &x, 8); return (int)(i >> 32); }
static int __double2loint(double x) { long long i; std::memcpy(&i, &x, 8); return (int)i; }
static double __hiloint2double(int h, int l)
{ long long i = ((long long)h << 32) | (unsigned)l; double x; std::memcpy(&x, &i, 8); return x; }
struct Index { int x; };
static thread_local Index threadIdx, blockIdx, gridDim;
static pthread_barrier_t warp_barrier; // warps run one after the other
static int warp_vote[LW_LANES];
static unsigned long long atomicAdd(unsigned long long *place, unsigned long long by)
{ return __atomic_fetch_add(place, by, __ATOMIC_SEQ_CST); }
static void __syncwarp(unsigned = 0) { pthread_barrier_wait(&warp_barrier); }
static void __syncthreads() { __syncwarp(); } // a block that waits is one warp
static bool __any_sync(unsigned, bool mine);
static bool __syncthreads_or(bool mine) { return __any_sync(0, mine); }
static bool __any_sync(unsigned, bool mine)
{
    warp_vote[threadIdx.x % LW_LANES] = mine;
    __syncwarp();
    bool any = false;
    for (int k = 0; k < LW_LANES; ++k) any = any || warp_vote[k];
    __syncwarp();
    return any;
}
"""

_AFTER = """
REAL lw_memory[1 << 18] __align__(16);

struct Given { // an argument, which becomes what its parameter is
    long long bits;
    template <typename T> operator T *() const { return (T *)bits; }
    operator long long() const { return bits; }
    operator int() const { return (int)bits; }
};

struct Lane {
    const Given *given;
    int blocks, block, thread;
};

static void *in_lane(void *own)
{
    const Lane &lane = *(const Lane *)own;
    const Given *const given = lane.given;
    blockIdx.x = lane.block;
    gridDim.x = lane.blocks;
    threadIdx.x = lane.thread;
    CALL;
    return nullptr;
}

extern "C" void run(const Given *given, int blocks)
{
    pthread_barrier_init(&warp_barrier, nullptr, LW_LANES);
    for (int warp = 0; warp < blocks * LW_WARPS; ++warp) {
        Lane lanes[LW_LANES];
        pthread_t threads[LW_LANES];
        for (int k = 0; k < LW_LANES; ++k) {
            lanes[k] = {given, blocks, warp / LW_WARPS, warp % LW_WARPS * LW_LANES + k};
            pthread_create(&threads[k], nullptr, in_lane, &lanes[k]);
        }
        for (int k = 0; k < LW_LANES; ++k) pthread_join(threads[k], nullptr);
    }
    pthread_barrier_destroy(&warp_barrier);
}
"""


class Emulated:
    """A kernel compiled for the CPU: one that takes some arrays, a count, and perhaps ``more`` whole numbers."""

    def __init__(self, kernel: Kernel, arrays: int, dtype: type, folder: Path, more: int = 0) -> None:
        self._build(kernel, arrays + 1 + more, folder)
        self.dtype = np.dtype(dtype)

    @classmethod
    def of(cls, kernel: Kernel, parameters: int, folder: Path) -> Emulated:
        """Any kernel, which is given so many parameters in whatever order."""
        made = cls.__new__(cls)
        made._build(kernel, parameters, folder)
        return made

    def _build(self, kernel: Kernel, parameters: int, folder: Path) -> None:
        self.states = kernel.states or kernel.threads
        passed = ", ".join(f"given[{k}]" for k in range(parameters))
        source, library = folder / f"{kernel.name}.cpp", folder / f"{kernel.name}.so"
        source.write_text(_BEFORE + as_cpp(kernel.text) + _AFTER.replace("CALL", f"{kernel.name}({passed})"))
        # Not contracted: the kernel says itself where it fuses, and so the results are those of the GPU.
        flags = ["-std=gnu++14", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-pthread", "-w"]
        flags += ["-mfma"] if platform.machine() == "x86_64" else []  # others have it always
        assert compiler is not None
        done = subprocess.run([compiler, *flags, "-o", library, source], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]
        self._run = ctypes.CDLL(str(library)).run
        self._run.argtypes = [ctypes.c_void_p, ctypes.c_int]

    def __call__(self, arrays: Sequence[np.ndarray], count: int, *more: int) -> None:
        """Run on arrays that are exactly as a kernel gets them."""
        assert all(a.dtype == self.dtype for a in arrays)
        self.launch([*(a.ctypes.data for a in arrays), count, *more], -(-count // self.states))

    def launch(self, given: Sequence[int], blocks: int) -> None:
        """Run so many blocks with these arguments, addresses and numbers."""
        self._run((ctypes.c_int64 * max(1, len(given)))(*given), blocks)
