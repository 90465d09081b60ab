"""The arithmetic of functions of one state in a checked build, which tests and the campaign run."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.targets.llvm import binding, bounds, jit, source, transcendental
from linkwise.targets.llvm.block_code import BlockCode
from linkwise.targets.llvm.function_plan import make_plan
from linkwise.targets.llvm.fusing import fused
from linkwise.targets.llvm.ir import FunctionText, LaneShape, module_text
from linkwise.trace.block import Block


class CheckedState:
    """The arithmetic of the single-state function, on the caller's arrays themselves, watching itself.

    The builtin function around it, which takes arrays apart and makes the result, is not part of it.
    """

    _ENTRY = "linkwise_state"

    def __init__(self, program: Block, machine: binding.Machine | None = None) -> None:
        machine = machine or binding.host()
        self.program = program
        block = fused(program, machine)
        plan = make_plan(block)
        vector = LaneShape(64, machine.vector_bytes // 8)
        body = BlockCode(block, plan, LaneShape(64, 1), vector, masked=machine.masked)
        entry = FunctionText(f"define void @{self._ENTRY}(ptr %in, ptr %out, i64 %count, ptr %scratch) #0")
        places = [
            entry.load("ptr", entry.address("ptr", side, k), 8)
            for side, arrays in (("%in", program.inputs), ("%out", program.outputs))
            for k in range(len(arrays))
        ]
        entry.do(f"call void @body({', '.join(f'ptr {place}' for place in [*places, '%scratch'])})")
        entry.do("ret void")
        grouped = [f for e in source.entries_used(plan) for f in transcendental.functions(e, machine, 64)]
        text = module_text([*grouped, *body.functions, entry], [source.attributes(machine)])
        watch = bounds.Watch(text)
        self._library = jit.LoadedObject(
            bytes(jit.compile_text(bounds.instrumented(text), machine)), (self._ENTRY,), watch.imports
        )
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        self._frame = np.empty(body.frame_bytes + 64, np.uint8)
        self._call = bounds._watched(
            signature(self._library[self._ENTRY]), watch, bounds._rows(program, 8), body.frame_bytes
        )

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Fill ``outputs`` from ``inputs``, both contiguous float64."""
        ins, outs = ((ctypes.c_void_p * len(x))(*(int(a.ctypes.data) for a in x)) for x in (inputs, outputs))
        frame = int(self._frame.ctypes.data)
        self._call(ins, outs, 1, frame + -frame % 64)
