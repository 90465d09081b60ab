"""Builtin functions on batches: the kernel's own answers, everything odd handed on, nothing leaked."""

import collections
import gc
import sys
import threading
import tracemalloc

import numpy as np
import pytest

from linkwise.targets import recycled
from linkwise.targets.llvm import layouts
from linkwise.targets.llvm.fastcall import BatchSlot
from linkwise.targets.llvm.kernel import BatchKernel, builtin_function
from tests.targets.llvm.test_fastcall import shaped
from tests.targets.programs import interpret, mixture

pytestmark = pytest.mark.skipif(not layouts.available(), reason="this interpreter has its ordinary path only")

Pair = collections.namedtuple("Pair", "first second")


def slow(*args, **kwargs):
    return "slow", args, kwargs


def filled(program, *dtypes):
    slot = BatchSlot()
    for dtype in dtypes or (np.float64,):
        BatchKernel.build(program, dtype).offer(slot)
    return slot


BOTH = (np.float64, np.float32)


def function(program=None, **kwargs):
    program = program or mixture()
    kwargs.setdefault("slot", filled(program))
    kwargs.setdefault("one_state", False)
    return builtin_function(program, slow=slow, name="mixture", **kwargs)


def batch(count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, (count, *a.shape)) for a in mixture().inputs]


@pytest.mark.parametrize("one_state", [False, True])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 64, 1000])
def test_values(count, one_state):
    x = batch(count)
    got = function(one_state=one_state)(*x)
    assert type(got) is tuple
    for g, e in zip(got, interpret(mixture(), x), strict=True):
        assert type(g) is np.ndarray
        assert g.shape == e.shape
        assert g.flags.owndata
        assert g.flags.c_contiguous
        assert np.allclose(g, e, rtol=1e-12, atol=1e-14)


def test_one_state_and_batches_share_a_function():
    f = function(one_state=True)
    x = batch(5)
    for one, many in zip(f(*(a[3] for a in x)), f(*x), strict=True):
        assert np.allclose(one, many[3], rtol=1e-13, atol=1e-15)


def test_named_tuples():
    got = function(make_result=Pair)(*batch(3))
    assert type(got) is Pair
    assert got.first.shape[0] == 3


@pytest.mark.parametrize("one_state", [False, True])
@pytest.mark.parametrize("count", [1, 8, 100])
def test_float32(count, one_state):
    """The kernel of its own precision; one state through it too."""
    f = function(slot=filled(mixture(), *BOTH), one_state=one_state)
    x = [a.astype(np.float32) for a in batch(count)]
    got, right = f(*x), interpret(mixture(), [a.astype(np.float64) for a in x])
    for g, e, one in zip(got, right, f(*(a[0] for a in x)), strict=True):
        assert g.dtype == one.dtype == np.float32
        assert g.shape == e.shape
        assert np.shape(one) == e.shape[1:]
        assert np.allclose(g, e, rtol=1e-5, atol=1e-5)
        assert np.array_equal(one, g[0])
    doubles = f(*batch(count))
    assert all(g.dtype == np.float64 for g in doubles)


def test_float32_without_its_kernel():
    x = [a.astype(np.float32) for a in batch(3)]
    for arguments in (x, [a[0] for a in x]):
        assert function()(*arguments)[0] == "slow"


def test_float32_into_out():
    program = shaped(3, outputs=((2,),))
    f = builtin_function(program, slow=slow, name="s", slot=filled(program, *BOTH))
    x = X.astype(np.float32)
    for given, size in ((x, (4, 2)), (x[1], (2,))):
        out = np.empty(size, np.float32)
        assert f(given, out=out) is out
        assert np.array_equal(out, f(given))
        assert f(given, out=np.empty(size))[0] == "slow"
        assert f(given.astype(np.float64), out=out)[0] == "slow"
    beside = np.zeros(20, np.float32)  # in the same piece of memory, but apart
    out = beside[12:].reshape(4, 2)
    assert f(beside[:12].reshape(4, 3), out=out) is out
    assert f(beside[:12].reshape(4, 3), out=beside[11:19].reshape(4, 2))[0] == "slow"


def odd_arguments():
    x = batch(4)
    yield "one state", [a[0] for a in x]
    yield "two leading axes", [a.reshape(2, 2, *a.shape[1:]) for a in x]
    yield "no states", [a[:0] for a in x]
    yield "other counts", [x[0], x[1][:3], x[2]]
    yield "one value for all", [x[0], x[1], x[2][0]]
    yield "float32", [x[0].astype("f4"), x[1], x[2]]
    yield "strided", [x[0][::-1], x[1], x[2]]
    yield "a column short", [x[0][:, :-1].copy(), x[1], x[2]]
    yield "list", [x[0].tolist(), x[1], x[2]]
    yield "too few", x[:2]


@pytest.mark.parametrize(("what", "arguments"), list(odd_arguments()))
def test_odd_arguments_are_handed_on(what, arguments):
    said, got, keywords = function()(*arguments)
    assert said == "slow"
    assert all(g is a for g, a in zip(got, arguments, strict=True))
    assert keywords == {}


def sums(outputs=((2,),)):
    program = shaped(3, outputs=outputs)
    return builtin_function(program, slow=slow, name="s", slot=filled(program))


X = np.arange(12.0).reshape(4, 3)


def test_out():
    f = sums()
    for x, size in ((X, (4, 2)), (X[1], (2,))):
        out = np.empty(size)
        count = sys.getrefcount(out)
        got = f(x, out=out)
        assert got is out
        del got
        assert sys.getrefcount(out) == count
        assert np.array_equal(out, f(x))
        assert np.array_equal(f(x, out=None, threads=None), out)


def frozen(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "out",
    [
        np.empty((4, 2), "f4"),
        np.empty((3, 2)),
        np.empty((4, 4))[:, :2],
        frozen(np.empty((4, 2))),
        X.reshape(-1)[:8].reshape(4, 2),
        X.reshape(-1)[4:].reshape(4, 2),
        (np.empty((4, 2)),),
    ],
    ids=["float32", "too small", "strided", "read-only", "at the input's start", "at its end", "tuple"],
)
def test_odd_out_is_handed_on(out):
    said, got, keywords = sums()(X, out=out)
    assert said == "slow"
    assert got[0] is X
    assert keywords["out"] is out


def test_beside_the_input():
    both = np.concatenate([np.arange(12.0), np.empty(8)])
    out = both[12:].reshape(4, 2)
    assert sums()(both[:12].reshape(4, 3), out=out) is out


@pytest.mark.parametrize("outputs", [((),), ((2,), (2,))], ids=["a number", "two results"])
def test_out_of_other_results_is_handed_on(outputs):
    out = np.empty(())
    assert sums(outputs)(X[0], out=out)[0] == "slow"


def test_threads():
    """Too few states for two threads run here; the rest, and what is not a number of threads, is handed on."""
    f = sums()
    assert np.array_equal(f(X, threads=2), f(X))
    assert np.array_equal(f(X, threads=1), f(X))
    for odd in (0, -1, 2**70, 1.0, True, "2", np.int64(2)):
        assert f(X, threads=odd)[2] == {"threads": odd}
    many = np.zeros((10_000_000, 3))
    assert f(many, threads=2, out=np.empty((10_000_000, 2)))[0] == "slow"


def test_other_keywords_are_handed_on():
    assert sums()(X, p=None)[2] == {"p": None}
    assert sums()(X, **{"".join(["o", "ut"]): None})[0] == "slow"  # not the name as it is written in a module


def test_without_a_kernel():
    slot = BatchSlot()
    f = function(slot=slot)
    x = batch(4)
    assert f(*x)[0] == "slow"
    BatchKernel.build(mixture()).offer(slot)
    assert np.allclose(f(*x)[0], interpret(mixture(), x)[0])


def test_large_results_are_handed_on():
    most = (recycled.SMALLEST - 1) // (8 * sum(a.size for a in mixture().outputs))
    assert len(function()(*batch(most))[0]) == most
    assert function()(*batch(most + 1))[0] == "slow"


@pytest.mark.parametrize("dtype", BOTH)
def test_nothing_is_leaked(dtype):
    f = function(make_result=Pair, slot=filled(mixture(), *BOTH))
    x = [a.astype(dtype) for a in batch(100)]
    before = [sys.getrefcount(a) for a in x]
    gc.collect()  # what earlier tests left behind holds the precision, too
    kept = sys.getrefcount(np.dtype(dtype))
    tracemalloc.start()
    for _ in range(200):
        f(*x)
    gc.collect()
    first = tracemalloc.get_traced_memory()[0]
    for _ in range(2000):
        f(*x)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    assert grown < 2000
    assert [sys.getrefcount(a) for a in x] == before
    assert abs(sys.getrefcount(np.dtype(dtype)) - kept) < 50


def test_memory_serves_the_next_call_and_goes_with_the_function():
    x = batch(100)
    gc.collect()
    tracemalloc.start()
    slot = filled(mixture(), np.float64)
    f, kernel = function(slot=slot), BatchKernel.build(mixture())
    f(*x)
    first = tracemalloc.get_traced_memory()[0]
    kernel._scratch_bytes = 1 << 20
    kernel.offer(slot)
    for _ in range(3):
        f(*x)
        assert 0.9 < (tracemalloc.get_traced_memory()[0] - first) / (1 << 20) < 1.1
    del f, slot, kernel
    gc.collect()
    assert tracemalloc.get_traced_memory()[0] < first
    tracemalloc.stop()


def test_many_threads():
    """Long batches run without the interpreter's lock: threads share the kernel and nothing else."""
    f, count = function(), 3000
    wrong = []

    def work(seed):
        x = batch(count, seed)
        right = interpret(mixture(), x)
        for _ in range(50):
            if not all(np.allclose(g, e) for g, e in zip(f(*x), right, strict=True)):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
