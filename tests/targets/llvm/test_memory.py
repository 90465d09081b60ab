"""Nothing outside the arrays is read or written, for any number of states; lanes do not disturb each other."""

import ctypes
import mmap

import numpy as np
import pytest

from linkwise.targets.llvm import binding, weaving
from linkwise.targets.llvm.kernel import BatchKernel
from linkwise.trace.block import ArraySpec, Block
from tests.targets.programs import evaluate, interpret, kernel_on, mixture

PAGE = mmap.PAGESIZE


class Fenced:
    """An array that ends, or begins, where memory that must not be touched does."""

    def __init__(self, shape, dtype, at_end):
        dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        inner = -(-max(size, 1) // PAGE) * PAGE
        self.map = mmap.mmap(-1, inner + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.protect = ctypes.CDLL(None).mprotect
        self.protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.fences = (start, start + PAGE + inner)
        offset = PAGE + (inner - size if at_end else 0)
        self.array = np.frombuffer(self.map, dtype, int(np.prod(shape)), offset).reshape(shape)
        for fence in self.fences:
            assert self.protect(fence, PAGE, mmap.PROT_NONE if hasattr(mmap, "PROT_NONE") else 0) == 0

    def open(self):
        for fence in self.fences:
            self.protect(fence, PAGE, mmap.PROT_READ | mmap.PROT_WRITE)


@pytest.mark.skipif(not hasattr(mmap, "PROT_READ"), reason="needs memory protection")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("at_end", [True, False])
def test_fences(dtype, at_end):
    program = mixture(sizes=(7, 3, 17), outputs=(5, 8, 1))
    kernel = BatchKernel.build(program, dtype)
    rng = np.random.default_rng(3)
    for count in [*range(41), 63, 64, 65]:
        fenced = [Fenced((count, a.size), dtype, at_end) for a in (*program.inputs, *program.outputs)]
        inputs, outputs = [f.array for f in fenced[:3]], [f.array for f in fenced[3:]]
        for array in inputs:
            array[...] = rng.uniform(-1, 1, array.shape)
        kernel.evaluate(inputs, outputs, count)
        if count in (1, 9, 40):
            tolerance = 1e-12 if dtype is np.float64 else 1e-3
            for got, expected in zip(outputs, interpret(program, inputs), strict=True):
                assert np.allclose(got, expected, rtol=tolerance, atol=tolerance)
        for f in fenced:
            f.open()


@pytest.mark.skipif(not hasattr(mmap, "PROT_READ"), reason="needs memory protection")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("spacing", [0, 10**9], ids=["woven", "apart"])
def test_transposes_woven_or_apart(dtype, spacing, monkeypatch):
    """All blocks, first, last and left over, and all widths; outputs stored early and late."""
    monkeypatch.setattr(weaving, "_SPACING", spacing)
    rng = np.random.default_rng(4)
    for sizes, outputs in [((1,), (1,)), ((4, 8), (3, 16)), ((7, 9, 17), (5, 33, 2)), ((16, 5), (15,))]:
        program = mixture(sizes, outputs)
        kernel = kernel_on(binding.host(), program, dtype)
        for count in (1, 7, 8, 16, 17, 24, 32, 33, 71):
            for at_end in (True, False):
                fenced = [Fenced((count, a.size), dtype, at_end) for a in (*program.inputs, *program.outputs)]
                arrays = [f.array for f in fenced]
                inputs, results = arrays[: len(sizes)], arrays[len(sizes) :]
                for array in inputs:
                    array[...] = rng.uniform(-1, 1, array.shape)
                kernel.evaluate(inputs, results, count)
                if at_end:
                    tolerance = 1e-12 if dtype is np.float64 else 1e-3
                    for got, expected in zip(results, interpret(program, inputs), strict=True):
                        assert np.allclose(got, expected, rtol=tolerance, atol=tolerance)
                for f in fenced:
                    f.open()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_canaries(dtype):
    """Columns of every width from 1 to 19: what lies before and behind the result stays."""
    for width in range(1, 20):
        nodes = tuple(("input", 0, k) for k in range(width)) + tuple(("neg", k) for k in range(width))
        program = Block(
            f"w{width}",
            nodes,
            (ArraySpec("x", (width,)),),
            (ArraySpec("y", (width,)),),
            (tuple(range(width, 2 * width)),),
        )
        kernel = BatchKernel.build(program, dtype)
        for count in (0, 1, 3, 7, 8, 9, 16, 17, 33):
            x = np.random.default_rng(count).normal(size=(count, width)).astype(dtype)
            room = np.full((count + 6, width), 123.0, dtype)
            kernel.evaluate([x], [room[3 : count + 3]], count)
            assert np.array_equal(room[3 : count + 3], -x)
            assert (room[:3] == 123).all()
            assert (room[count + 3 :] == 123).all()


def test_lanes_are_apart():
    program = mixture()
    rng = np.random.default_rng(8)
    inputs = [rng.uniform(-1, 1, (29, a.size)) for a in program.inputs]
    clean = evaluate(program, inputs)
    for bad in (np.nan, np.inf, 1e300, 1e7):
        spoiled = [a.copy() for a in inputs]
        for a in spoiled:
            a[11] = bad
        others = np.arange(29) != 11
        for got, expected in zip(evaluate(program, spoiled), clean, strict=True):
            assert np.array_equal(got[others], expected[others])


def test_a_state_does_not_depend_on_its_place():
    program = mixture()
    rng = np.random.default_rng(9)
    inputs = [rng.uniform(-1, 1, (35, a.size)) for a in program.inputs]
    together = evaluate(program, inputs)
    for k in range(35):
        alone = evaluate(program, [a[k : k + 1] for a in inputs])
        for a, b in zip(alone, together, strict=True):
            assert np.array_equal(a[0], b[k])


@pytest.mark.parametrize("spacing", [0, 10**9], ids=["woven", "apart"])
def test_in_place(spacing, monkeypatch):
    monkeypatch.setattr(weaving, "_SPACING", spacing)
    nodes = tuple(("input", 0, k) for k in range(7)) + tuple(("mul", k, 6 - k) for k in range(7))
    program = Block("p", nodes, (ArraySpec("x", (7,)),), (ArraySpec("y", (7,)),), (tuple(range(7, 14)),))
    x = np.random.default_rng(0).normal(size=(53, 7))
    expected = x * x[:, ::-1]
    kernel_on(binding.host(), program).evaluate([x], [x], 53)
    assert np.array_equal(x, expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads(threads):
    program = mixture()
    rng = np.random.default_rng(2)
    count = 90_001
    inputs = [rng.uniform(-1, 1, (count, a.size)) for a in program.inputs]
    one = evaluate(program, inputs)
    many = evaluate(program, inputs, threads=threads)
    assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))


def test_kernel_from_many_threads():
    from concurrent.futures import ThreadPoolExecutor

    program = mixture()
    rng = np.random.default_rng(2)
    inputs = [rng.uniform(-1, 1, (997, a.size)) for a in program.inputs]
    expected = evaluate(program, inputs)
    with ThreadPoolExecutor(4) as pool:
        for outputs in pool.map(lambda _: evaluate(program, inputs, threads=2), range(40)):
            assert all(np.array_equal(a, b) for a, b in zip(outputs, expected, strict=True))
