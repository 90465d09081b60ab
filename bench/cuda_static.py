"""Kernels of steps with contact as a compiler for CUDA sees them, without a card: ``python -m bench.cuda_static …``.

Takes what ``python -m bench.contact --gpu`` takes, and compiles what it would launch, for compute capability 9.0, with
NVRTC. That and the disassembler come from the packages ``nvidia-cuda-nvrtc`` and ``nvidia-cuda-nvdisasm``; ``--cuda``
is the folder they are in, ``site-packages/nvidia/cu13``. No driver is needed.

For each row: seconds of compiling (of one thread, and of the longest kernel, since kernels compile side by side), the
most registers, what spills, the code, and counts of instructions, each once: a loop counts as one pass. From these come
bounds in million steps a second of an H200: issue (128 lanes in each of 132 multiprocessors at 1.98 GHz, half as many
for float64), and memory (every access to device memory at 4.8 TB/s, as if no cache held anything). Nothing is run.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import contact_gpu, report
from linkwise.targets.cuda.runtime import OPTIONS

LANES, MEMORY = 128 * 132 * 1.98e9, 4.8e12
SHARED_BYTES, PROCESSORS = 227 * 1024, 132
DOUBLE = ("DADD", "DMUL", "DFMA", "DSETP")
HEADER = (
    "robot", "row", "precision", "kernels", "text s", "compile s", "longest s", "registers", "stack B", "spilled B",
    "code kB", "instructions", "local", "shared", "device", "issue M/s", "memory M/s",
)  # fmt: skip


class Compiler:
    """NVRTC and the disassembler in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.nvrtc = folder, ctypes.CDLL(str(next(folder.glob("lib/libnvrtc.so*"))))

    def figures(self, text: str) -> dict[str, Any]:
        """Figures of one kernel."""
        nvrtc, program, size = self.nvrtc, ctypes.c_void_p(), ctypes.c_size_t()
        options = [*OPTIONS, "-arch=sm_90", "--ptxas-options=-v"]
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
        began = time.thread_time()
        failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
        seconds = time.thread_time() - began
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        said = log.value.decode()
        if failed:
            raise RuntimeError(said[:2000])
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, code)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", said)
        return {
            "seconds": seconds,
            "registers": max(map(int, re.findall(r"Used (\d+) registers", said))),
            "stack": sum(int(stack) for stack, _ in spills),
            "spilled": sum(int(spilled) for _, spilled in spills),
            "instructions": self._instructions(code.raw),
        }

    def _instructions(self, code: bytes) -> Counter[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.cubin"
            path.write_bytes(code)
            text = subprocess.run(
                [self.folder / "bin/nvdisasm", "-c", path], capture_output=True, text=True, check=True
            )
        return Counter(re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9]+)", text.stdout, re.MULTILINE))


class _Array(np.ndarray[Any, Any]):
    """An array that says it is on a device."""

    __module__ = "cupy"
    device = types.SimpleNamespace(id=0)


def recorded() -> list[str]:
    """Texts that are compiled from now on, by a CuPy that compiles and launches nothing."""
    texts: list[str] = []
    cupy: Any = types.ModuleType("cupy")

    class Device:
        def __init__(self, number: int = 0) -> None:
            self.id = number
            self.attributes = {"MaxSharedMemoryPerBlockOptin": SHARED_BYTES, "MultiProcessorCount": PROCESSORS}

        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None: ...

    class RawModule:
        def __init__(self, code: str, options: object) -> None:
            texts.append(code)

        def get_function(self, name: str) -> Any:
            return lambda *launch, **options: None

    cupy.ndarray, cupy.RawModule = _Array, RawModule
    cupy.cuda = types.SimpleNamespace(Device=Device, get_current_stream=lambda: types.SimpleNamespace(ptr=0))
    cupy.empty = lambda shape, dtype=float: np.empty(shape, dtype).view(_Array)
    cupy.zeros = lambda shape, dtype=float: np.zeros(shape, dtype).view(_Array)
    cupy.asarray = lambda array, dtype=None: np.asarray(array, dtype).view(_Array)
    sys.modules["cupy"] = cupy
    return texts


def row_of(row: dict[str, str], compiler: Compiler, texts: list[str]) -> dict[str, Any]:
    """Figures of one row."""
    robot = contact_gpu.touching(contact_gpu.models(Path(row["path"]))[row["part"]], row)
    step, dtype = robot.function("contact_step"), np.dtype(row["precision"])
    texts.clear()
    began = time.process_time()
    step(*(np.zeros((64, *shape), dtype).view(_Array) for _, shape in step.inputs))
    written, found = time.process_time() - began, [compiler.figures(text) for text in texts]
    counts = sum((each["instructions"] for each in found), Counter[str]())

    def of(*names: str) -> int:
        return sum(counts[name] for name in names)

    total, device = counts.total(), of("LDG", "STG", "LD", "ST")
    return {
        "kernels": len(found),
        "text s": round(written, 1),
        "compile s": round(sum(each["seconds"] for each in found), 1),
        "longest s": round(max(each["seconds"] for each in found), 1),
        "registers": max(each["registers"] for each in found),
        "stack B": max(each["stack"] for each in found),
        "spilled B": sum(each["spilled"] for each in found),
        "code kB": total * 16 // 1024,
        "instructions": total,
        "local": of("LDL", "STL"),
        "shared": of("LDS", "STS"),
        "device": device,
        "issue M/s": round(LANES / (total + of(*DOUBLE)) / 1e6),
        "memory M/s": round(MEMORY / max(1, device * dtype.itemsize) / 1e6),
        "of kernels": [{**each, "instructions": dict(each["instructions"])} for each in found],
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Compile, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.cuda_static", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robots", nargs="+", type=Path, help="as of python -m bench.contact --gpu")
    parser.add_argument("--cuda", type=Path, required=True, help="the folder of lib/libnvrtc.so and bin/nvdisasm")
    options = parser.parse_args(argv)
    compiler, texts, rows = Compiler(options.cuda), recorded(), []
    for row in contact_gpu.rows_of(options.robots):
        if row["way"] != "resets":
            named = {"robot": Path(row["path"]).name.partition(".")[0], "row": contact_gpu.name_of(row)}
            rows.append({**named, "precision": row["precision"], **row_of(row, compiler, texts)})
            print(json.dumps({key: rows[-1][key] for key in HEADER}), flush=True)
    print(report.table(HEADER, [[row[key] for key in HEADER] for row in rows]))
    print(report.write("cuda_static", {"rows": rows}))


if __name__ == "__main__":
    main()
