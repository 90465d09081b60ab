"""Single-state functions: right answers, everything odd handed on, nothing leaked."""

import collections
import gc
import inspect
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

from linkwise.targets.llvm import fastcall, layouts
from linkwise.targets.llvm.kernel import builtin_function
from linkwise.trace.block import ArraySpec, Block
from tests.targets.programs import interpret, mixture

pytestmark = pytest.mark.skipif(not layouts.available(), reason="this interpreter has its ordinary path only")

Pair = collections.namedtuple("Pair", "first second")


def slow(*args, **kwargs):
    return "slow", args, kwargs


def function(program=None, **kwargs):
    kwargs.setdefault("slow", slow)
    return builtin_function(program or mixture(), name="mixture", doc="A mixture.", **kwargs)


def state(program, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, a.shape) for a in program.inputs]


def shaped(*shape, outputs=((),)):
    """Sums of neighbours of one input, in outputs of any shape."""
    size = int(np.prod(shape))
    nodes = (*(("input", 0, k) for k in range(size)), ("add", 0, size - 1))
    specs = tuple(ArraySpec(f"y{j}", s) for j, s in enumerate(outputs))
    return Block("s", nodes, (ArraySpec("x", shape),), specs, tuple((size,) * s.size for s in specs))


def test_values():
    program = mixture()
    f = function()
    for seed in range(20):
        x = state(program, seed)
        got, expected = f(*x), interpret(program, [a[None] for a in x])
        assert type(got) is tuple
        for g, e in zip(got, expected, strict=True):
            assert type(g) is np.ndarray
            assert g.dtype == np.float64
            assert g.flags.owndata
            assert g.flags.c_contiguous
            assert np.allclose(g, e[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 31])
def test_many_angles(count):
    """However many sines are taken together, each is right, also far out."""
    nodes = tuple(("input", 0, k) for k in range(count)) + tuple(("sin", k) for k in range(count))
    program = Block(
        "s", nodes, (ArraySpec("q", (count,)),), (ArraySpec("y", (count,)),), (tuple(range(count, 2 * count)),)
    )
    f = builtin_function(program, slow=slow, name="s")
    for scale in (1.0, 1e4, 1e9):
        q = np.random.default_rng(count).normal(size=count) * scale
        assert np.allclose(f(q), np.sin(q), rtol=1e-15, atol=1e-16)


def test_shapes():
    f = builtin_function(shaped(2, 3, outputs=((), (2, 2), (0,))), slow=slow, name="s")
    x = np.arange(6.0).reshape(2, 3)
    number, grid, empty = f(x)
    assert type(number) is np.float64
    assert number == 5
    assert grid.tolist() == [[5, 5], [5, 5]]
    assert empty.shape == (0,)
    one = builtin_function(shaped(2), slow=slow, name="s")(np.array([1.0, 2.0]))
    assert type(one) is np.float64
    assert one == 3


def test_named_tuple():
    f = function(make_result=Pair)
    x = state(mixture())
    got = f(*x)
    assert type(got) is Pair
    assert np.array_equal(got.first, function()(*x)[0])
    assert hash(Pair(1, 2)) == hash((1, 2))
    assert type(function(make_result=Pair._make)(*x)) is Pair
    assert type(function(make_result=list)(*x)) is list
    assert function(make_result=len)(*x) == 2
    with pytest.raises(TypeError):
        function(make_result=int)(*x)


def test_single_output_in_a_named_tuple():
    one = collections.namedtuple("One", "value")
    f = builtin_function(shaped(2), slow=slow, name="s", make_result=one._make)
    assert f(np.array([1.0, 2.0])) == one(3.0)


class Sub(np.ndarray):
    pass


def odd_arguments():
    x = state(mixture())
    yield "list", [x[0].tolist(), x[1], x[2]], {}
    yield "subclass", [x[0].view(Sub), x[1], x[2]], {}
    yield "float32", [x[0].astype("f4"), x[1], x[2]], {}
    yield "swapped", [x[0].astype(">f8"), x[1], x[2]], {}
    yield "strided", [np.zeros(14)[::2], x[1], x[2]], {}
    yield "reversed", [x[0][::-1], x[1], x[2]], {}
    yield "short", [x[0][:-1], x[1], x[2]], {}
    yield "long", [np.zeros(8), x[1], x[2]], {}
    yield "batch", [np.zeros((2, 7)), np.zeros((2, 3)), np.zeros((2, 1))], {}
    yield "unaligned", [np.frombuffer(bytes(57), np.uint8)[1:].view("f8"), x[1], x[2]], {}
    yield "last", [x[0], x[1], None], {}
    yield "few", x[:2], {}
    yield "many", [*x, 1], {}
    yield "none", [], {}
    yield "keyword", x[:2], {"x2": x[2]}
    yield "extra keyword", x, {"f_ext": 2}


@pytest.mark.parametrize(("args", "kwargs"), [pytest.param(a, k, id=name) for name, a, k in odd_arguments()])
def test_odd_arguments_go_to_slow(args, kwargs):
    name, got, gotten = function()(*args, **kwargs)
    assert name == "slow"
    assert all(a is b for a, b in zip(got, args, strict=True))
    assert gotten.keys() == kwargs.keys()
    assert all(gotten[k] is kwargs[k] for k in kwargs)


def test_slow_may_fail():
    def fail(*_):
        raise ValueError("no")

    f = function(slow=fail)
    with pytest.raises(ValueError, match="no"):
        f(1)


def test_read_only_input_is_fine():
    x = state(mixture())
    for a in x:
        a.flags.writeable = False
    assert type(function()(*x)) is tuple


def test_looks_like_a_function():
    f = function()
    assert f.__name__ == "mixture"
    assert f.__doc__ == "A mixture."
    assert f.__module__ == "linkwise"
    assert list(inspect.signature(f).parameters) == ["x0", "x1", "x2"]


@pytest.mark.parametrize("kind", [None, Pair, list])
def test_references(kind):
    """Counts stay, and calls take no memory."""
    f = function(make_result=kind)
    x = state(mixture())
    watched = [*x, np.dtype(np.float64), np.ndarray, slow, f, Pair, tuple.__new__]
    f(*x)
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(1000):
        f(*x)
        f(1, 2, k=3)
    assert [sys.getrefcount(w) for w in watched] == before
    assert [sys.getrefcount(item) for item in f(*x)] == [sys.getrefcount(item) for item in (np.ones(1), np.ones(1))]
    tracemalloc.start()
    try:
        f(*x)
        used = tracemalloc.get_traced_memory()[0]
        for _ in range(50_000):
            f(*x)
        assert tracemalloc.get_traced_memory()[0] - used < 10_000
    finally:
        tracemalloc.stop()


def test_one_reference_per_scalar():
    f = builtin_function(shaped(2), slow=slow, name="s")
    x = np.array([1.0, 2.0])
    descr = sys.getrefcount(np.dtype(np.float64))
    for _ in range(1000):
        f(x)
    assert abs(sys.getrefcount(np.dtype(np.float64)) - descr) < 5


def test_lifetime():
    """The function keeps what it needs, in particular its slow path, and nothing keeps the function."""

    class Owner:
        def __init__(self):
            self.fast = function(slow=self.slow)

        def slow(self, *args):
            return "slow", args

    owner = Owner()
    f = owner.fast
    ended = weakref.ref(owner)
    del owner
    gc.collect()
    assert f(3) == ("slow", (3,))
    del f
    gc.collect()
    assert ended() is None
    for _ in range(200):  # code of functions that are gone is given back without disturbing others
        g = function()
        assert g(3)[0] == "slow"


def test_no_function_when_the_check_fails(monkeypatch):
    monkeypatch.setattr(fastcall, "available", lambda: False)
    assert function() is None


@pytest.mark.parametrize("field", ["TYPE", "DATA", "NDIM", "DIMS", "DESCR", "FLAGS"])
def test_check_notices_other_layouts(monkeypatch, field):
    monkeypatch.setattr(layouts, field, getattr(layouts, field) + 8)
    assert not all(map(layouts._as_expected, layouts._probes()))
