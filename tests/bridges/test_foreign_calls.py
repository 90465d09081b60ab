"""Foreign calls of XLA: that JAX makes them, what they refuse, and what the handler does with a frame made by hand."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LinkwiseError
from linkwise.targets import DirectLaunch
from linkwise.targets.llvm import foreign_calls as xla
from tests.derivatives.differences import relative
from tests.random_trees import random_state, random_tree

pytestmark = pytest.mark.skipif(not xla.available(), reason="foreign calls are not served here")


@pytest.fixture(scope="module")
def arm() -> lw.Model:
    return random_tree(3, 2, ("revolute",), mimic=0.0)


@pytest.fixture
def jax() -> Iterator[Any]:
    found = pytest.importorskip("jax", reason="needs the extra jax")
    with found.enable_x64(True) if hasattr(found, "enable_x64") else found.experimental.enable_x64():
        yield found


def test_neither_python_nor_another_loop_comes_between(jax: Any, arm: lw.Model) -> None:
    f = lw.as_jax(arm.function("forward_dynamics"))
    q, v, tau = random_state(arm, np.random.default_rng(1), (5,))
    for made in (f, jax.vmap(f), jax.vmap(jax.hessian(lambda *x: f(*x).sum()))):
        text = jax.jit(made).lower(q, v, tau).as_text()
        assert "custom_call @linkwise" in text
        assert "callback" not in text
        assert "while" not in text  # a batch is one call
    first = jax.jit(jax.vmap(jax.jacfwd(f, argnums=2)))(q, v, tau)
    assert relative(first, arm.mass_matrix_inverse(q)) < 1e-12
    energy = lw.as_jax(arm.function("kinetic_energy"))
    assert relative(jax.jit(jax.vmap(jax.hessian(energy, argnums=1)))(q, v), arm.mass_matrix(q)) < 1e-12
    assert jax.jit(f)(q[:0], v[:0], tau[:0]).shape == (0, 2)


def test_results_of_every_size(jax: Any, arm: lw.Model) -> None:
    """Batches around the width of a vector, several results, both precisions, and more memory than the stack has."""
    large = random_tree(5, 14, ("revolute",), mimic=0.0)
    for model, name in ((arm, "linkwise"), (large, "large")):
        f = model.function("linearize_forward")
        for count in (1, 3, 8, 17):
            state = random_state(model, np.random.default_rng(count), (count,))
            found = jax.jit(lw.as_jax(f))(*state)
            for ours, theirs in zip(f(*state), found, strict=True):
                assert (np.asarray(theirs) == ours).all(), name
    single = [x.astype(np.float32) for x in random_state(arm, np.random.default_rng(0), (9,))]
    dynamics = arm.function("forward_dynamics")
    assert (np.asarray(jax.jit(lw.as_jax(dynamics))(*single)) == dynamics(*single)).all()


def test_a_function_with_a_loop(jax: Any, arm: lw.Model) -> None:
    def steps(m: Any, q: Any, v: Any) -> Any:
        def one(_: Any, state: Any) -> Any:
            q, v = state
            v = v + 0.01 * m.forward_dynamics(q, v, [0.0, 0.0])
            return q + 0.01 * v, v

        return lw.loop(5, one, (q, v))[0]

    f = lw.compile(steps, arm, {"q": "q", "v": "v"})
    q, v, _ = random_state(arm, np.random.default_rng(1), (5,))
    assert "callback" not in jax.jit(lw.as_jax(f)).lower(q, v).as_text()
    assert (np.asarray(jax.jit(lw.as_jax(f))(q, v)) == f(q, v)).all()


def test_export(jax: Any, arm: lw.Model) -> None:
    pytest.importorskip("flatbuffers", reason="needs the extra jax")
    f = lw.as_jax(arm.function("forward_dynamics"))
    q, v, tau = random_state(arm, np.random.default_rng(1), (4,))
    (batch,) = jax.export.symbolic_shape("b")
    shape = jax.ShapeDtypeStruct((batch, 2), np.float64)
    passed = [jax.export.DisabledSafetyCheck.custom_call("linkwise")]
    made = jax.export.export(jax.jit(f), platforms=["cpu", "cuda"], disabled_checks=passed)(shape, shape, shape)
    again = jax.export.deserialize(made.serialize())
    assert (np.asarray(again.call(q, v, tau)) == arm.forward_dynamics(q, v, tau)).all()
    table, calls = dict(xla.foreign_calls()._entries), xla.foreign_calls()
    calls.forget()  # as in a process that has never seen the function
    try:
        with pytest.raises(Exception, match=r"jax\.jit\(f\)\.lower"):
            jax.block_until_ready(again.call(q, v, tau))
        jax.jit(lambda *x: f(*x)).lower(q, v, tau)
        assert (np.asarray(again.call(q, v, tau)) == arm.forward_dynamics(q, v, tau)).all()
    finally:
        for number, (entry, _) in table.items():
            calls.add(number, entry)


def test_another_version_is_refused(jax: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from linkwise.bridges.jax import check_version

    check_version()
    folder = tmp_path / "xla" / "ffi" / "api"
    folder.mkdir(parents=True)
    (folder / "c_api.h").write_text("#define XLA_FFI_API_MAJOR 7\n#define XLA_FFI_API_MINOR 1\n")
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    with pytest.raises(LinkwiseError, match=r"version 7\.1"):
        check_version()


# A frame as XLA makes it, of the structures of its interface.


class Part(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("extension", ctypes.c_void_p))


class Listed(Part):
    _fields_ = (("count", ctypes.c_int64), ("kinds", ctypes.c_void_p), ("items", ctypes.c_void_p))


class Attributes(Part):
    _fields_ = (
        ("count", ctypes.c_int64),
        ("kinds", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("items", ctypes.c_void_p),
    )


class Frame(Part):
    _fields_ = (
        ("api", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", Listed),
        ("results", Listed),
        ("attributes", Attributes),
        ("future", ctypes.c_void_p),
    )


class Version(Part):
    _fields_ = (("major", ctypes.c_int), ("minor", ctypes.c_int))


CALL = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class Api(Part):
    _fields_ = (
        ("version", Version),
        ("internal", ctypes.c_void_p),
        ("create_error", CALL),
        ("others", ctypes.c_void_p * 3),
        ("get_stream", CALL),
    )


class Error(Part):
    _fields_ = (("message", ctypes.c_char_p), ("code", ctypes.c_int))


class Stream(Part):
    _fields_ = (("context", ctypes.c_void_p), ("stream", ctypes.c_void_p))


class Buffer(Part):
    _fields_ = (
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
    )


class Scalar(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int), ("value", ctypes.c_void_p))


class Metadata(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("version", Version), ("traits", ctypes.c_uint32), ("state", ctypes.c_int64))


class Question(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.c_void_p),
    )


class Caller:
    """Stands for XLA."""

    def __init__(self, major: int = 0) -> None:
        self.messages: list[bytes] = []

        def create(told: int) -> int:
            self.messages.append(Error.from_address(told).message)
            return 0xBAD

        def stream(told: int) -> int:
            asked = Stream.from_address(told)
            assert asked.context == 0xC0
            asked.stream = 0x57
            return 0

        version = Version(24, None, major, 9)
        self.api = Api(0, None, version, None, CALL(create), (ctypes.c_void_p * 3)(), CALL(stream))
        self.call = CALL(xla.foreign_calls().address)

    def frame(self, number: int, given: list[np.ndarray], filled: list[np.ndarray]) -> Frame:
        def buffers(arrays: list[np.ndarray]) -> Listed:
            made = []
            for array in arrays:
                dims = (ctypes.c_int64 * array.ndim)(*array.shape)
                made.append(Buffer(48, None, 12, array.ctypes.data, array.ndim, ctypes.addressof(dims)))
                self.held += [dims, made[-1]]
            items = (ctypes.c_void_p * len(made))(*map(ctypes.addressof, made))
            self.held.append(items)
            return Listed(40, None, len(made), None, ctypes.addressof(items))

        value = ctypes.c_int64(number)
        scalar = Scalar(5, ctypes.addressof(value))
        items = (ctypes.c_void_p * 1)(ctypes.addressof(scalar))
        self.held: list[Any] = [value, scalar, items]
        told = Attributes(48, None, 1, None, None, ctypes.addressof(items))
        return Frame(176, None, ctypes.addressof(self.api), 0xC0, 3, buffers(given), buffers(filled), told, None)


def test_what_is_asked_of_the_handler() -> None:
    for major, said in ((0, []), (1, [b"version 0.x"])):
        caller, answer = Caller(major), Metadata(48)
        question = Question(32, 1, None, ctypes.addressof(answer))
        frame = Frame(176, ctypes.addressof(question), ctypes.addressof(caller.api))
        assert bool(caller.call(ctypes.addressof(frame))) == bool(said)
        assert all(part in text for part, text in zip(said, caller.messages, strict=True))
    assert (answer.version.major, answer.version.minor) == (0, 0)  # nothing is said to who asks wrongly


def test_a_launch_gets_the_stream_the_addresses_and_the_number_of_states(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def launch(stream: int, places: Any, count: int) -> None:  # and no direct way
        seen.append((stream, [int(place) for place in places], count))
        if count == 1:
            raise RuntimeError("no such device")

    number = xla.number_of("a launch", 1)
    xla.foreign_calls().add(number, xla.launch_entry(number, launch, 2, 1, 1))
    caller = Caller()
    a, b, c = np.zeros((2, 3, 4)), np.zeros((2, 3)), np.zeros((2, 3, 5))
    assert caller.call(ctypes.addressof(caller.frame(number, [a, b], [c]))) is None
    assert seen == [(0x57, [a.ctypes.data, b.ctypes.data, c.ctypes.data], 6)]
    assert caller.call(ctypes.addressof(caller.frame(number, [a, b], [c[0, 0]]))) == 0xBAD
    assert b"launch" in caller.messages[-1]
    assert "no such device" in capsys.readouterr().err
    assert caller.call(ctypes.addressof(caller.frame(number, [a], [c]))) == 0xBAD
    assert b"number of arrays" in caller.messages[-1]
    assert caller.call(ctypes.addressof(caller.frame(number + 1, [a], [c]))) == 0xBAD
    assert b"does not know" in caller.messages[-1]


def test_a_kernel_is_launched_by_the_driver_from_the_second_call_on() -> None:
    """With a stand-in for the driver's function, whose arguments are those of cuLaunchKernel."""
    seen: list[Any] = []

    def driver(*given: Any) -> int:
        *grid, stream, passed, extra = given
        numbers = ctypes.cast(passed, ctypes.POINTER(ctypes.c_void_p))
        values = [ctypes.c_int64.from_address(numbers[k]).value for k in range(4)]
        seen.append((grid, stream, values, extra))
        return 1 if values[-1] == 1 else 0

    kinds = [ctypes.c_int64, *[ctypes.c_uint32] * 7, *[ctypes.c_void_p] * 3]
    launcher = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(driver)
    address = ctypes.cast(launcher, ctypes.c_void_p).value
    number = xla.number_of("a launch", 2)
    direct = DirectLaunch(address, 0xF00, threads=64, states=4, shared_bytes=1000)
    xla.foreign_calls().add(number, xla.launch_entry(number, lambda *_: direct, 2, 1, 1))
    caller = Caller()
    a, b, c = np.zeros((2, 3, 4)), np.zeros((2, 3)), np.zeros((2, 3, 5))
    for _ in range(2):
        assert caller.call(ctypes.addressof(caller.frame(number, [a, b], [c]))) is None
    places = [x.ctypes.data for x in (a, b, c)]
    assert seen == [([0xF00, 2, 1, 1, 64, 1, 1, 1000], 0x57, [*places, 6], None)]
    assert caller.call(ctypes.addressof(caller.frame(number, [a, b], [c[:0]]))) is None
    assert len(seen) == 1  # nothing is launched for no states
    assert caller.call(ctypes.addressof(caller.frame(number, [a, b], [c[0, 0]]))) == 0xBAD
    assert b"driver" in caller.messages[-1]
