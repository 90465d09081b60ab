"""On a real GPU: every way of calling, and how exact the device functions are."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import linkwise as lw
from linkwise.codegen.cuda import rolled_runtime
from linkwise.codegen.cuda.runtime import DeviceProgram
from linkwise.codegen.cuda.target import TARGET
from linkwise.rolled import device_chain, long_chain
from linkwise.tracing.program import Program
from tests.codegen.cuda.models import binary, every_joint, random_state, sum_of_squares, ulps, unary
from tests.rolled.test_long_chain import CUT, chain, state

cp = importlib.import_module("cupy") if TARGET.available() else None
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(cp is None, reason="no CUDA device, or no CuPy")]

TOLERANCE = {np.float64: 1e-11, np.float32: 3e-3}


def close(got: object, expected: np.ndarray, dtype: type) -> None:
    got = cp.asnumpy(got)
    assert got.dtype == dtype
    assert got.shape == expected.shape
    assert np.abs(got - expected).max(initial=0) <= TOLERANCE[dtype] * max(1.0, np.abs(expected).max(initial=0))


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return every_joint()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 1000])
def test_functions(model: lw.Model, dtype: type, count: int) -> None:
    q, v, a = (x.astype(dtype) for x in random_state(model, count))
    on = [cp.asarray(x) for x in (q, v, a)]
    wide = [x.astype(float) for x in (q, v, a)]
    close(model.inverse_dynamics(*on), model.inverse_dynamics(*wide), dtype)
    close(model.forward_dynamics(*on), model.forward_dynamics(*wide), dtype)
    close(model.mass_matrix(on[0]), model.mass_matrix(wide[0]), dtype)
    close(model.poses(on[0]), model.poses(wide[0]), dtype)
    close(model.kinetic_energy(*on[:2]), model.kinetic_energy(*wide[:2]), dtype)
    close(model.integrate(*on[:2]), model.integrate(*wide[:2]), dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("size", "outputs"), [(1, 1), (2, 8), (6, 16), (7, 49), (8, 6), (12, 36), (32, 3), (29, 900), (900, 4)]
)
def test_sizes_and_alignments(size: int, outputs: int, dtype: type) -> None:
    """Rows with and without bank conflicts, arrays too large to stage, and rows that begin anywhere."""
    program = DeviceProgram(sum_of_squares(size, outputs), dtype)
    x = cp.asarray(np.random.default_rng(0).uniform(-1, 1, (70, size)), dtype)
    expected = cp.stack([x[:, k % size] ** 2 + cp.sin(x[:, 0]) for k in range(outputs)], 1)
    for start, stop in ((0, 64), (0, 70), (1, 65), (3, 40)):
        out = cp.full((stop - start + 2, outputs), -7, dtype)
        program.launch([x[start:stop], out[1:-1]], ("rows", "rows"), stop - start)
        assert cp.allclose(out[1:-1], expected[start:stop], rtol=1e-5, atol=1e-6)
        assert (out[0] == -7).all() and (out[-1] == -7).all(), "nothing else is written"
    apart, result = cp.asfortranarray(x), cp.full((outputs, 70), -7, dtype)
    program.launch([apart, result.T], ("columns", "columns"), 70)
    assert cp.allclose(result.T, expected, rtol=1e-5, atol=1e-6)
    program.launch([x[:1], out := cp.empty((5, outputs), dtype)], ("one", "rows"), 5)
    assert cp.allclose(out, expected[:1], rtol=1e-5, atol=1e-6)


def run(program: Program, dtype: type, *inputs: np.ndarray) -> np.ndarray:
    arrays = [cp.asarray(np.reshape(x, (-1, 1)), dtype) for x in inputs]
    out = cp.empty((len(inputs[0]), 1), dtype)
    DeviceProgram(program, dtype).launch([*arrays, out], ("rows",) * (len(arrays) + 1), len(inputs[0]))
    return cp.asnumpy(out)[:, 0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("op", ["sin", "cos"])
def test_sin_and_cos(op: str, dtype: type) -> None:
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(1)
    sizes = [1e-3, 1.0, 10.0, 1e3, 1e5] + ([1e9] if dtype is np.float64 else [])
    x = np.concatenate([rng.uniform(-s, s, 400) for s in sizes] + [np.arange(1, 400) * np.pi / 2]).astype(dtype)
    with mpmath.workprec(200):
        exact = [getattr(mpmath, op)(mpmath.mpf(float(a))) for a in x]
        assert ulps(run(unary(op), dtype, x), exact, dtype).max() <= 2.0
    huge = np.array([1e6, 3.3e7, 1e10, 1e20, -1e30, 2.5e38], dtype)
    assert np.abs(run(unary(op), dtype, huge) - getattr(np, op)(huge.astype(float))).max() < 4 * np.finfo(dtype).eps
    assert np.isnan(run(unary(op), dtype, np.array([np.inf, -np.inf, np.nan], dtype))).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_division(dtype: type) -> None:
    rng = np.random.default_rng(2)
    exponent = 300 if dtype is np.float64 else 35
    a = (rng.choice([-1, 1], 20000) * 10.0 ** rng.uniform(-exponent / 2, exponent / 2, 20000)).astype(dtype)
    b = (rng.choice([-1, 1], 20000) * 10.0 ** rng.uniform(-exponent / 2, exponent / 2, 20000)).astype(dtype)
    expected = a.astype(np.longdouble) / b.astype(np.longdouble)
    unit = np.spacing(np.abs(expected).astype(dtype)).astype(np.longdouble)
    assert (np.abs(run(binary("div"), dtype, a, b) - expected) / unit).max() <= 2.0
    special = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1e30, -1e-30], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        expected = x / y
    got = run(binary("div"), dtype, x, y)
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    fine = ~np.isnan(expected)
    assert np.allclose(got[fine], expected[fine], rtol=1e-6)
    sure = fine & (expected != 0)
    assert np.array_equal(np.signbit(got[sure]), np.signbit(expected[sure]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_other_functions(dtype: type) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 5000)).astype(dtype)
    eps = 8 * np.finfo(dtype).eps
    for op, function in (("exp", np.exp), ("sqrt", np.sqrt), ("log", np.log), ("abs", np.abs)):
        given = np.abs(x) if op in ("sqrt", "log") else x
        assert np.allclose(run(unary(op), dtype, given), function(given.astype(float)), rtol=eps, atol=eps)
    assert np.allclose(run(binary("atan2"), dtype, x, y), np.arctan2(x.astype(float), y.astype(float)), rtol=eps)
    assert np.array_equal(run(binary("min"), dtype, x, y), np.minimum(x, y))
    assert np.array_equal(run(binary("lt"), dtype, x, y), (x < y).astype(dtype))


def test_out_in_place_and_columns(model: lw.Model) -> None:
    q, v, a = random_state(model, 500)
    expected = model.inverse_dynamics(q, v, a)
    on = [cp.asarray(x) for x in (q, v, a)]
    assert model.inverse_dynamics(*on, out=on[2]) is on[2]
    close(on[2], expected, np.float64)
    on = [cp.asfortranarray(cp.asarray(x)) for x in (q, v, a)]
    got = model.inverse_dynamics(*on)
    assert got.flags.f_contiguous
    close(got, expected, np.float64)
    strided = cp.zeros((500, 2 * model.nv))[:, ::2]
    model.inverse_dynamics(*on, out=strided)
    close(strided, expected, np.float64)


def test_stream(model: lw.Model) -> None:
    q, v, a = random_state(model, 4000)
    with cp.cuda.Stream(non_blocking=True) as stream:
        got = model.inverse_dynamics(*(cp.asarray(x) for x in (q, v, a)))
        stream.synchronize()
    close(got, model.inverse_dynamics(q, v, a), np.float64)


def test_torch(model: lw.Model) -> None:
    torch = pytest.importorskip("torch")
    q, v, a = random_state(model, 300)
    on = [torch.as_tensor(x, dtype=torch.float32, device="cuda") for x in (q, v, a)]
    got = model.inverse_dynamics(*on)
    assert isinstance(got, torch.Tensor) and got.is_cuda and got.dtype == torch.float32
    close(cp.asarray(got), model.inverse_dynamics(q, v, a), np.float32)
    with torch.cuda.stream(torch.cuda.Stream()):
        late = [x.double() * 1.0 for x in on]
        got = model.forward_dynamics(*late)
        torch.cuda.current_stream().synchronize()
    close(cp.asarray(got), model.forward_dynamics(*(x.cpu().double().numpy() for x in on)), np.float64)
    out = torch.empty_like(on[1])
    assert model.inverse_dynamics(*on, out=out) is out
    with pytest.raises(lw.InputError, match="requires_grad"):
        model.inverse_dynamics(on[0].clone().requires_grad_(), on[1], on[2])
    with pytest.raises(lw.InputError, match="not on the GPU"):
        model.inverse_dynamics(on[0], on[1].cpu().numpy(), on[2])


def test_jax(model: lw.Model) -> None:
    jax = pytest.importorskip("jax")
    q, v, a = random_state(model, 300)
    on = [jax.numpy.asarray(x, dtype="float32") for x in (q, v, a)]
    if on[0].__dlpack_device__()[0] != 2:
        pytest.skip("JAX has no GPU here")
    got = model.inverse_dynamics(*on)
    assert isinstance(got, jax.Array)
    close(cp.asarray(np.asarray(got)), model.inverse_dynamics(q, v, a), np.float32)
    assert np.isfinite(np.asarray(got + 1)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rollout(dtype: type) -> None:
    model = every_joint()

    def euler(m: lw.Model, q: object, v: object, tau: object) -> dict:
        v = v + 0.001 * m.forward_dynamics(q, v, tau)
        return {"q": m.integrate(q, 0.001 * v), "v": v, "work": (v * tau).sum()}

    step = lw.compile(euler, model, {"q": "q", "v": "v", "tau": "v"})
    q, v, tau = (0.3 * x for x in random_state(model, 100))
    for given, options in (
        (tau, {}),
        (tau[0], {}),
        (np.stack([tau] * 10) * np.arange(10)[:, None, None], {"sequences": ["tau"]}),
    ):
        for record in (False, True):
            roll = lw.rollout(step, 10, record=record, **options)
            got = roll(*(cp.asarray(x, dtype) for x in (q, v, given)))
            for one, expected in zip(got, roll(q, v, given), strict=True):
                close(one, expected, dtype)


def test_memory_runs_out(model: lw.Model) -> None:
    pool = cp.cuda.MemoryPool()
    q, v, a = (cp.asarray(x) for x in random_state(model, 20000))
    pool.set_limit(size=1024)
    with cp.cuda.using_allocator(pool.malloc), pytest.raises(lw.LinkwiseError, match="no room for the results"):
        model.inverse_dynamics(q, v, a)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("count", [1, 33, 1000])
def test_loops(dtype: type, count: int) -> None:
    """Functions of large mechanisms: branches and every kind of joint."""
    model = every_joint().with_sweeps("rolled")
    q, v, a = (x.astype(dtype) for x in random_state(model, count))
    on = [cp.asarray(x) for x in (q, v, a)]
    wide = [x.astype(float) for x in (q, v, a)]
    close(model.inverse_dynamics(*on), model.inverse_dynamics(*wide), dtype)
    close(model.forward_dynamics(*on), model.forward_dynamics(*wide), dtype)
    close(model.poses(on[0]), model.poses(wide[0]), dtype)
    close(model.mass_matrix(on[0][:3]), model.mass_matrix(wide[0][:3]), dtype)


def test_loops_every_way_of_calling(monkeypatch: pytest.MonkeyPatch) -> None:
    model = chain(150, CUT["revolute"])
    q, v, a = (0.3 * x for x in random_state(model, 500))
    expected = model.inverse_dynamics(q, v, a)
    on = [cp.asarray(x) for x in (q, v, a)]
    close(model.inverse_dynamics(*(cp.asfortranarray(x) for x in on)), expected, np.float64)
    close(model.inverse_dynamics(on[0], np.zeros(150), np.zeros(150)), model.gravity_force(q), np.float64)
    out = cp.full((500, 150), cp.nan)
    assert model.inverse_dynamics(*on, out=out) is out
    close(out, expected, np.float64)
    with cp.cuda.Stream(non_blocking=True) as stream:
        late = model.inverse_dynamics(*(cp.asarray(x) for x in (q, v, a)))
        stream.synchronize()
    close(late, expected, np.float64)
    monkeypatch.setattr(rolled_runtime, "SCRATCH_BYTES", 1 << 21)  # room for a few tiles: the batch takes turns
    close(model.inverse_dynamics(*on), expected, np.float64)
    assert model.inverse_dynamics(*on, out=on[2]) is on[2]
    close(on[2], expected, np.float64)


@pytest.mark.parametrize("kind", CUT)
def test_one_long_chain(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By segments, which are joined pair by pair; with links left over."""
    monkeypatch.setattr(long_chain, "LONG", 100)
    monkeypatch.setattr(device_chain, "SEGMENTS", 100)
    model = chain(997, CUT[kind])
    q, v, tau = state(model)
    expected = model.forward_dynamics(q, v, tau)
    got = cp.asnumpy(model.forward_dynamics(*(cp.asarray(x) for x in (q, v, tau))))
    assert np.abs(got - expected).max() <= 1e-9 * np.abs(expected).max()
    narrow = cp.asnumpy(model.forward_dynamics(*(cp.asarray(np.stack([x, x]), np.float32) for x in (q, v, tau))))
    assert narrow.dtype == np.float32
    again = model.forward_dynamics(*(x.astype(np.float32).astype(float) for x in (q, v, tau)))
    assert np.abs(narrow - again).max() <= 1e-6 * np.abs(again).max()
