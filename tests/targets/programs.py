"""Small programs, what they mean, and ways to run them."""

from __future__ import annotations

import dataclasses
import struct

import numpy as np

from linkwise.targets.llvm import binding, jit, kernel, source, tiers
from linkwise.trace.block import OPS, ArraySpec, Block


def unary(op: str) -> Block:
    return Block(op, (("input", 0, 0), (op, 0)), (ArraySpec("x", (1,)),), (ArraySpec("y", (1,)),), ((1,),))


def binary(op: str) -> Block:
    nodes = (("input", 0, 0), ("input", 1, 0), (op, 0, 1))
    return Block(op, nodes, (ArraySpec("a", (1,)), ArraySpec("b", (1,))), (ArraySpec("y", (1,)),), ((2,),))


def mixture(sizes=(7, 3, 1), outputs=(5, 9)) -> Block:
    """Sums and products over several arrays, with sin and cos of some and of an intermediate."""
    nodes: list[tuple] = [("input", a, k) for a, n in enumerate(sizes) for k in range(n)]
    inputs = len(nodes)
    nodes += [("sin", k) for k in range(0, inputs, 2)] + [("cos", k) for k in range(0, inputs, 3)]
    nodes += [("const", 0.75)]
    for k in range(60):
        n = len(nodes)
        nodes.append((("add", "mul", "sub")[k % 3], (k * 7) % n, (k * 13 + 5) % n))
    nodes.append(("sin", len(nodes) - 1))
    nodes.append(("add", len(nodes) - 1, 2))
    nodes.append(("cos", len(nodes) - 1))
    results, n = [], len(nodes)
    for j, size in enumerate(outputs):
        results.append(tuple((n - 1 - 3 * k - j) % n for k in range(size)))
    return Block(
        "mixture",
        tuple(nodes),
        tuple(ArraySpec(f"x{a}", (size,)) for a, size in enumerate(sizes)),
        tuple(ArraySpec(f"y{j}", (size,)) for j, size in enumerate(outputs)),
        tuple(results),
    )


def interpret(program: Block, inputs) -> list[np.ndarray]:
    """What the ops' definitions say, state by state."""
    count = len(inputs[0])
    outputs = [np.empty((count, array.size)) for array in program.outputs]
    for state in range(count):
        values: list = []
        for node in program.nodes:
            if node[0] == "const":
                values.append(node[1])
            elif node[0] == "input":
                values.append(float(inputs[node[1]][state, node[2]]))
            else:
                values.append(OPS[node[0]].define(*(values[a] for a in node[1:])))
        for output, row in zip(outputs, program.results, strict=True):
            output[state] = [values[k] for k in row]
    return outputs


def evaluate(program: Block, inputs, dtype=np.float64, threads=1) -> list[np.ndarray]:
    built = kernel.BatchKernel.build(program, dtype)
    return _run(built, program, inputs, dtype, threads)


def _run(built, program, inputs, dtype, threads=1):
    inputs = [np.ascontiguousarray(array, dtype) for array in inputs]
    count = len(inputs[0])
    outputs = [np.full((count, array.size), -777.0, dtype) for array in program.outputs]
    built.evaluate(inputs, outputs, count, threads)
    return outputs


def kernel_on(machine: binding.Machine, program: Block, dtype=np.float64) -> kernel.BatchKernel:
    """As compiled, never from the cache, for another machine that this one can stand in for."""
    module = source.batch_module(program, machine, np.dtype(dtype).itemsize * 8)
    made = jit.compile_text(module.text, machine, in_order=module.in_order)
    library = jit.LoadedObject(made, (source.BATCH_ENTRY, source.SCRATCH_ENTRY), kernel.imports())
    return kernel.BatchKernel(program, dtype, tiers.Library(source.ENTRIES, library), machine.lanes(dtype))


def evaluate_on(machine: binding.Machine, program: Block, inputs, dtype=np.float64) -> list[np.ndarray]:
    return _run(kernel_on(machine, program, dtype), program, inputs, dtype)


def lesser_machines() -> list[binding.Machine]:
    """This machine as its poorer relatives: narrower vectors, no masks, no fused operations."""
    host = binding.host()
    found = [host]
    if host.triple.startswith("x86_64"):
        if host.vector_bytes > 32:
            found.append(dataclasses.replace(host, cpu="haswell", features="", vector_bytes=32, masked=False))
        found.append(dataclasses.replace(host, cpu="x86-64", features="", vector_bytes=16, masked=False, fma=False))
    return found


def bits(values) -> list[int]:
    """For comparisons that tell -0 from 0; every NaN is the same."""
    return [struct.unpack("<q", struct.pack("<d", v))[0] if v == v else -1 for v in np.ravel(values).tolist()]
