"""Calls with arrays on a device, all the way to a kernel and back, with the libraries played by fakes."""

from __future__ import annotations

import types

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError, LinkwiseError, MissingExtraError
from linkwise.targets.cuda.target import on_device
from tests.targets.cuda.emulation import needs_compiler
from tests.targets.cuda.fakes import CupyArray, Fakes, JaxArray, Tensor, fakes  # noqa: F401

pytestmark = needs_compiler


def pendulums(links: int = 2) -> lw.Model:
    builder = lw.ModelBuilder("pendulums")
    parent = "world"
    for k in range(links):
        placement = lw.transform(xyz=(0, 0, -1.0 if k else 0.0))
        builder.add_body(
            f"rod{k}", parent=parent, joint=lw.Revolute(axis=(0, 1, 0)), placement=placement,
            mass=1.0, com=(0, 0, -0.5), inertia=np.diag([0.1, 0.1, 0.01]),
        )  # fmt: skip
        parent = f"rod{k}"
    return builder.build()


@pytest.fixture
def model() -> lw.Model:
    return pendulums()


def states(count: int, dtype: type = float) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    return [rng.uniform(-2, 2, (count, 2)).astype(dtype) for _ in range(3)]


def test_what_is_on_a_device(fakes: Fakes) -> None:  # noqa: F811
    assert on_device(fakes.array([1.0]))
    assert on_device(Tensor(np.zeros(2)))
    assert on_device(JaxArray(np.zeros(2)))
    for value in (np.zeros(2), [1.0, 2.0], 3.0, None, np.float64(1.0), "q"):
        assert not on_device(value)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cupy_in_cupy_out(fakes: Fakes, model: lw.Model, dtype: type) -> None:  # noqa: F811
    for count in (1, 3, 8, 21):
        q, v, a = states(count, dtype)
        got = model.inverse_dynamics(fakes.array(q, dtype), fakes.array(v, dtype), fakes.array(a, dtype))
        assert type(got) is CupyArray
        assert got.dtype == dtype
        assert np.allclose(got, model.inverse_dynamics(q, v, a), rtol=1e-5 if dtype is np.float32 else 1e-13)


def test_one_state_and_more_axes(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(6)
    one = model.inverse_dynamics(*(fakes.array(x[0]) for x in (q, v, a)))
    assert one.shape == (2,)
    assert np.allclose(one, model.inverse_dynamics(q[0], v[0], a[0]))
    many = model.mass_matrix(fakes.array(q.reshape(2, 3, 2)))
    assert many.shape == (2, 3, 2, 2)
    assert np.allclose(many, model.mass_matrix(q.reshape(2, 3, 2)))
    assert model.inverse_dynamics(*(fakes.array(np.zeros((0, 2))) for _ in range(3))).shape == (0, 2)


def test_several_results_and_scalars(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, _ = states(5)
    both = lw.compile(
        lambda m, q, v: {"energy": m.kinetic_energy(q, v), "force": m.gravity_force(q)}, model, {"q": "q", "v": "v"}
    )
    got = both(fakes.array(q), fakes.array(v))
    assert got._fields == ("energy", "force")
    assert got.energy.shape == (5,)
    assert np.allclose(got.energy, both(q, v).energy)
    assert np.allclose(got.force, both(q, v).force)


def test_broadcast_and_values_on_the_host(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(5)
    got = model.inverse_dynamics(fakes.array(q), fakes.array(v[0]), np.array(a[1], np.float32))
    assert np.allclose(got, model.inverse_dynamics(q, v[0], a[1]), rtol=1e-6)
    got = model.inverse_dynamics(fakes.array(q[:, None]), fakes.array(v), [0.0, 0.0])
    assert got.shape == (5, 5, 2)
    assert np.allclose(got, model.inverse_dynamics(q[:, None], v, [0.0, 0.0]))


def test_run_time_parameters(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(5)
    free = model.with_parameters(["rod1.mass"])
    got = free.inverse_dynamics(*(fakes.array(x, np.float32) for x in (q, v, a)))
    assert got.dtype == np.float32, "the nominal parameters on the host do not decide the precision"
    assert np.allclose(got, model.inverse_dynamics(q, v, a), rtol=1e-4)
    p = np.linspace(1, 2, 5)[:, None]
    got = free.inverse_dynamics(*(fakes.array(x) for x in (q, v, a)), p=fakes.array(p))
    assert np.allclose(got, free.inverse_dynamics(q, v, a, p=p))


def test_columns(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    """Arrays in Fortran order are read and written where they are."""
    q, v, a = states(9)
    given = [fakes.array(x, order="F") for x in (q, v, a)]
    fakes.cupy.ascontiguousarray = None  # no copy
    got = model.inverse_dynamics(*given)
    assert got.flags.f_contiguous
    assert np.allclose(got, model.inverse_dynamics(q, v, a))
    matrices = model.mass_matrix(given[0])
    assert np.allclose(matrices, model.mass_matrix(q))


def test_strided_and_other_dtypes_are_copied(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(9)
    wide = fakes.array(np.concatenate([q, q], axis=1))
    got = model.inverse_dynamics(wide[:, :2], fakes.array(v)[::1], fakes.array(a, np.float32))
    assert got.dtype == np.float64
    assert np.allclose(got, model.inverse_dynamics(q, v, a), rtol=1e-6)
    whole = model.gravity_force(fakes.array([[1, 2]], np.int64))
    assert np.allclose(whole, model.gravity_force([[1.0, 2.0]]))


def test_out(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(9)
    expected = model.inverse_dynamics(q, v, a)
    arrays = [fakes.array(x) for x in (q, v, a)]
    out = fakes.array(np.zeros((9, 2)))
    assert model.inverse_dynamics(*arrays, out=out) is out
    assert np.allclose(out, expected)
    strided = fakes.array(np.zeros((9, 4)))[:, ::2]
    assert model.inverse_dynamics(*arrays, out=strided) is strided
    assert np.allclose(strided, expected)
    fortran = fakes.array(np.zeros((9, 2)), order="F")
    model.inverse_dynamics(*arrays, out=fortran)
    assert np.allclose(fortran, expected)
    model.inverse_dynamics(*arrays, out=arrays[2])  # in place
    assert np.allclose(arrays[2], expected)


def test_out_that_overlaps(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(10)
    long = fakes.array(np.concatenate([a, np.zeros((1, 2))]))
    model.inverse_dynamics(fakes.array(q), fakes.array(v), long[:10], out=long[1:])
    assert np.allclose(long[1:], model.inverse_dynamics(q, v, a))


OUTS = {
    "on the host": lambda f: np.zeros((9, 2)),
    "too short": lambda f: f.array(np.zeros((8, 2))),
    "another precision": lambda f: f.array(np.zeros((9, 2)), np.float32),
    "another device": lambda f: f.array(np.zeros((9, 2)), device=1),
    "not writable": lambda f: JaxArray(np.zeros((9, 2))),
}


@pytest.mark.parametrize("make", OUTS.values(), ids=OUTS.keys())
def test_out_that_does_not_fit(fakes: Fakes, model: lw.Model, make: object) -> None:  # noqa: F811
    with pytest.raises(InputError, match="out of inverse_dynamics does not fit"):
        model.inverse_dynamics(*(fakes.array(x) for x in states(9)), out=make(fakes))  # type: ignore[operator]


def test_torch(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(9, np.float32)
    got = model.inverse_dynamics(Tensor(q), Tensor(v), Tensor(a))
    assert type(got) is Tensor
    assert got.array.dtype == np.float32
    assert np.allclose(got.array, model.inverse_dynamics(q, v, a), rtol=1e-4)
    assert fakes.cupy.launches[-1][3] == "torch 0", "on the caller's stream"
    assert fakes.cupy.uploads == 0
    with pytest.raises(InputError, match=r"requires_grad=True[\s\S]*detach"):
        model.inverse_dynamics(Tensor(q, requires_grad=True), Tensor(v), Tensor(a))


def test_the_usual_call_is_quick(fakes: Fakes, model: lw.Model, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Nothing is looked at twice where nothing is unusual."""
    monkeypatch.setattr("linkwise.targets.cuda.exchange.DeviceBatch", None)
    fakes.torch.cuda.current_stream = lambda device: types.SimpleNamespace(cuda_stream="current")
    q, v, a = states(9)
    expected = model.inverse_dynamics(q, v, a)
    assert np.allclose(model.inverse_dynamics(*(fakes.array(x) for x in (q, v, a))), expected)
    assert np.allclose(model.inverse_dynamics(Tensor(q), Tensor(v), Tensor(a)).array, expected)
    many = model.mass_matrix(fakes.array(q.reshape(3, 3, 2)))
    assert many.shape == (3, 3, 2, 2)


def test_jax(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(9)
    got = model.inverse_dynamics(JaxArray(q), JaxArray(v), JaxArray(a))
    assert type(got) is JaxArray
    assert np.allclose(got.array, model.inverse_dynamics(q, v, a))


def test_another_library(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    class Theirs:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array.view(CupyArray)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        dtype = np.dtype(float)

    q, v, a = states(3)
    got = model.inverse_dynamics(Theirs(q), Theirs(v), Theirs(a))
    assert type(got) is CupyArray
    assert np.allclose(got, model.inverse_dynamics(q, v, a))


def test_on_its_device(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    got = model.inverse_dynamics(*(fakes.array(x, device=3) for x in states(5)))
    assert got.device.id == 3
    assert fakes.cupy.launches[-1][2] == 3


def test_different_devices(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(5)
    with pytest.raises(InputError, match=r"different GPUs[\s\S]*q on 0, v on 1"):
        model.inverse_dynamics(fakes.array(q), fakes.array(v, device=1), fakes.array(a))


def test_host_and_device_mixed(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = states(5)
    with pytest.raises(InputError, match=r"v of inverse_dynamics is not on the GPU[\s\S]*ndarray \(5, 2\)"):
        model.inverse_dynamics(fakes.array(q), v, fakes.array(a))


def test_wrong_shapes(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    q, v, a = (fakes.array(x) for x in states(5))
    with pytest.raises(InputError, match=r"v has the wrong shape[\s\S]*\(5, 1\)"):
        model.inverse_dynamics(q, v[:, :1], a)
    with pytest.raises(InputError, match=r"do not fit together[\s\S]*v \(4,\)"):
        model.inverse_dynamics(q, v[:4], a)
    with pytest.raises(InputError, match="not made of real numbers"):
        model.inverse_dynamics(q, fakes.array(np.zeros((5, 2)), complex), a)


def test_out_of_memory(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    fakes.cupy.most_bytes = 10
    with pytest.raises(LinkwiseError, match=r"no room for the results[\s\S]*split the batch"):
        model.inverse_dynamics(*(fakes.array(x) for x in states(5)))


def test_too_little_memory_on_the_chip(fakes: Fakes) -> None:  # noqa: F811
    """Then arrays are read where they are; only a rollout must keep its state there."""
    fakes.cupy.shared_bytes = 100
    q, v, a = states(5)
    model = pendulums()
    assert np.allclose(model.inverse_dynamics(*(fakes.array(x) for x in (q, v, a))), model.inverse_dynamics(q, v, a))
    step = lw.compile(lambda m, q, v: {"q": q + 0.1 * v}, model, {"q": "q", "v": "v"})
    with pytest.raises(InputError, match="too large for a rollout"):
        lw.rollout(step, 3)(fakes.array(q), fakes.array(v))


def test_compiler_refuses(fakes: Fakes) -> None:  # noqa: F811
    class CompileException(Exception):  # noqa: N818
        pass

    fakes.cupy.compile_error = CompileException("no such architecture")
    with pytest.raises(LinkwiseError, match=r"NVRTC did not compile[\s\S]*no such architecture"):
        pendulums().inverse_dynamics(*(fakes.array(x) for x in states(5)))


def test_without_cupy(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(MissingExtraError, match=r"linkwise\[cuda\]"):
        pendulums().inverse_dynamics(*(Tensor(x) for x in states(5)))


def test_rollout(fakes: Fakes, model: lw.Model) -> None:  # noqa: F811
    def euler(m: lw.Model, q: object, v: object, tau: object) -> dict:
        v = v + 0.01 * m.forward_dynamics(q, v, tau)
        return {"q": q + 0.01 * v, "v": v, "power": (v * tau).sum()}

    step = lw.compile(euler, model, {"q": "q", "v": "v", "tau": "v"})
    q, v, tau = states(7)
    expected = lw.rollout(step, 20)(q, v, tau)
    got = lw.rollout(step, 20)(fakes.array(q), fakes.array(v), fakes.array(tau))
    for a, b in zip(got, expected, strict=True):
        assert np.allclose(a, b, rtol=1e-12)
    held = lw.rollout(step, 20)(fakes.array(q[0]), fakes.array(v), [0.1, 0.2])
    for a, b in zip(held, lw.rollout(step, 20)(q[0], v, [0.1, 0.2]), strict=True):
        assert np.allclose(a, b, rtol=1e-12)
    series = np.random.default_rng(0).uniform(-1, 1, (20, 7, 2))
    roll = lw.rollout(step, 20, sequences=["tau"], record=True)
    got, expected = roll(fakes.array(q), fakes.array(v), fakes.array(series)), roll(q, v, series)
    assert got.q.shape == (20, 7, 2)
    assert got.power.shape == (20, 7)
    for a, b in zip(got, expected, strict=True):
        assert np.allclose(a, b, rtol=1e-11)
    common = series[:, 0]  # the same for all states
    for given in (fakes.array(common), common):
        got = roll(fakes.array(q), fakes.array(v), given)
        for a, b in zip(got, roll(q, v, common), strict=True):
            assert np.allclose(a, b, rtol=1e-11)
    with pytest.raises(InputError, match="one row for each step"):
        roll(fakes.array(q), fakes.array(v), fakes.array(series[:5]))
