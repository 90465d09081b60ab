"""On a real GPU: every way of calling, and how exact the device functions are."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions.rolled import chain_segments as segments
from linkwise.functions.rolled import on_device
from linkwise.targets.cuda import runtime, thread_memory
from linkwise.targets.cuda.launched_blocks import DeviceBlock, DividedBlock, device_block
from linkwise.targets.cuda.launched_programs import DeviceProgram
from linkwise.targets.cuda.target import TARGET
from linkwise.trace.block import Block
from tests.functions.rolled.test_long_chain import CUT, chain, state
from tests.sim.mechanisms import double_pendulum, pendulum
from tests.targets.cuda import test_contact as contact
from tests.targets.cuda.models import binary, branches, every_joint, random_state, sum_of_squares, ulps, unary

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
@pytest.mark.parametrize("name", ["mass_matrix_inverse", "linearize_inverse", "linearize_forward"])
def test_wide_results(model: lw.Model, name: str, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several kernels, at once and in turns, by rows and by columns, and one row for all states."""
    function = model.function(name)
    assert isinstance(device_block(function.program, dtype), DividedBlock)
    given = len(function.program.inputs)
    for count, room in ((1, 4 << 30), (31, 4 << 30), (33, 4 << 30), (1000, 4 << 30), (1000, 1 << 20)):
        monkeypatch.setattr(runtime, "WORKING_BYTES", room)
        arrays = [x.astype(dtype) for x in random_state(model, count)[:given]]
        arrays[-1] = arrays[-1][0] if given > 1 else arrays[-1]
        expected = function(*(x.astype(float) for x in arrays))
        for order in "CF":
            got = function(*(cp.asarray(x, order=order) for x in arrays))
            pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
            for a, b in pairs:
                close(a, b, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("size", "outputs"), [(1, 1), (2, 8), (6, 16), (7, 49), (8, 6), (12, 36), (32, 3), (29, 900), (900, 4)]
)
def test_sizes_and_alignments(size: int, outputs: int, dtype: type) -> None:
    """Rows with and without bank conflicts, arrays too large to stage, and rows that begin anywhere."""
    program = DeviceBlock(sum_of_squares(size, outputs), dtype)
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


def run(program: Block, dtype: type, *inputs: np.ndarray) -> np.ndarray:
    arrays = [cp.asarray(np.reshape(x, (-1, 1)), dtype) for x in inputs]
    out = cp.empty((len(inputs[0]), 1), dtype)
    DeviceBlock(program, dtype).launch([*arrays, out], ("rows",) * (len(arrays) + 1), len(inputs[0]))
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
    """Functions of large mechanisms, with branches and several kinds of joints."""
    model = branches()
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
    monkeypatch.setattr(runtime, "WORKING_BYTES", 1 << 21)  # room for a few tiles: the batch takes turns
    close(model.inverse_dynamics(*on), expected, np.float64)
    assert model.inverse_dynamics(*on, out=on[2]) is on[2]
    close(on[2], expected, np.float64)


@pytest.mark.parametrize("kind", CUT)
def test_one_long_chain(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By segments, which are joined pair by pair; with links left over."""
    monkeypatch.setattr(segments, "LONG", 100)
    monkeypatch.setattr(on_device, "SEGMENTS", 100)
    model = chain(997, CUT[kind])
    q, v, tau = state(model)
    expected = model.forward_dynamics(q, v, tau)
    got = cp.asnumpy(model.forward_dynamics(*(cp.asarray(x) for x in (q, v, tau))))
    assert np.abs(got - expected).max() <= 1e-9 * np.abs(expected).max()
    narrow = cp.asnumpy(model.forward_dynamics(*(cp.asarray(np.stack([x, x]), np.float32) for x in (q, v, tau))))
    assert narrow.dtype == np.float32
    again = model.forward_dynamics(*(x.astype(np.float32).astype(float) for x in (q, v, tau)))
    assert np.abs(narrow - again).max() <= 1e-6 * np.abs(again).max()


# Loops over time.
FIXED = {"dt": 0.005, "duration": 0.25}
ADAPTIVE = {"rtol": 1e-9, "duration": 0.25}


def here_and_there(model: lw.Model, q: np.ndarray, v: np.ndarray, **options: object) -> tuple:
    """A simulation on the CPU in double precision and one on the device, compared."""
    here = lw.simulate(model, q.astype(float), v.astype(float), **options)  # type: ignore[arg-type]
    there = lw.simulate(model, cp.asarray(q), cp.asarray(v), **options)  # type: ignore[arg-type]
    assert isinstance(there.q, cp.ndarray) and isinstance(there.energy, cp.ndarray)
    tolerance = 1e-8 if there.q.dtype == np.float64 else 2e-3
    for name in ("q", "v", "x", "tau", "energy"):
        a, b = getattr(here, name), cp.asnumpy(getattr(there, name))
        assert a.shape == b.shape, name
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance, err_msg=name)
    assert np.array_equal(here.status, there.status)
    assert [(e.name, e.state) for e in here.events] == [(e.name, e.state) for e in there.events]
    return here, there


@pytest.mark.parametrize("method", ["euler", "rk4", "variational", "generalized_alpha", "dopri5", "dop853", "rodas4"])
def test_simulate(method: str) -> None:
    model = double_pendulum()
    options = FIXED if method in ("euler", "rk4", "variational", "generalized_alpha") else ADAPTIVE
    q, v, _ = random_state(model, 100)
    here_and_there(model, q, 0.3 * v, method=method, control=lambda t, q, v, p: -0.3 * v, **options)


@pytest.mark.parametrize(("method", "dtype"), [("rk4", np.float64), ("rk4", np.float32), ("dopri5", np.float64)])
def test_simulate_every_joint(model: lw.Model, method: str, dtype: type) -> None:
    q, v, _ = (x.astype(dtype) for x in random_state(model, 40))
    options = {"dt": 0.002, "duration": 0.05} if method == "rk4" else {"rtol": 1e-9, "duration": 0.05}
    here, there = here_and_there(model, q, 0.2 * v, method=method, **options)
    if dtype is np.float64:
        assert np.array_equal(here.steps, there.steps)
    poses = there.pose(model.bodies[-1].name)
    assert isinstance(poses, cp.ndarray)


def test_simulate_a_model_with_loops(model: lw.Model) -> None:
    q, v, _ = random_state(model, 40)
    here_and_there(model.with_sweeps("rolled"), q, 0.2 * v, method="rk4", dt=0.002, duration=0.02)


def arm_in_water() -> lw.Model:
    """A muscle around a cylinder and one through a ring, a fluid, compensation of gravity, a tendon at its limit."""
    b = lw.ModelBuilder("arm")
    bone = {"joint": lw.Revolute(axis=(0, 1, 0)), "mass": 2.0, "com": (0, 0, -0.15), "inertia": 0.02 * np.eye(3)}
    b.add_body("upper", **bone)
    b.add_body("lower", "upper", placement=lw.transform(xyz=(0, 0, -0.3)), **bone)
    for name, body, xyz in (
        ("origin", "upper", (0.03, 0, -0.05)), ("front", "upper", (0.1, 0, -0.3)), ("inner", "upper", (0.01, 0, -0.3)),
        ("insertion", "lower", (0.02, 0, -0.08)), ("elbow", "upper", (0, 0, -0.3)),
    ):  # fmt: skip
        b.add_frame(name, body, lw.transform(xyz=xyz, rpy=(np.pi / 2, 0, 0)))
    ways = [
        lw.equipment.PathTransmission(((("origin", lw.equipment.Wrap("elbow", 0.03, shape, side), "insertion"), 1.0),))  # type: ignore[arg-type]
        for shape, side in (("cylinder", "front"), ("sphere", "inner"))
    ]
    own = {"force": 600.0, "optimal_length": 0.12, "slack_length": 0.22}
    excited = lw.equipment.Activation("muscle", 0.015, smoothing=0.2)
    hill = lw.equipment.HillMuscle(**own, tendon_stiffness=35.0)
    b.add_actuator(lw.equipment.Actuator("biceps", ways[0], activation=excited, muscle=hill))
    b.add_actuator(
        lw.equipment.Actuator("ring", ways[1], activation=excited, muscle=lw.equipment.Muscle(50.0, (0.2, 0.4)))
    )
    b.add_spring(
        lw.equipment.Spring("cord", ways[0], stiffness=50.0, rest=(0.2, 0.25), friction=0.3, limits=(0.1, 0.3))
    )
    b.add_field(lw.equipment.GravityCompensation("afloat", "lower", mass=1.5))
    b.add_field(lw.equipment.FluidBox("water", "upper", size=(0.06, 0.06, 0.3), density=1000.0, viscosity=1e-3))
    b.add_field(
        lw.equipment.FluidEllipsoid("flow", "lower", semi_axes=(0.03, 0.03, 0.15), density=1000.0, wind=(0.1, 0, 0))
    )
    return b.build()


def test_simulate_muscles_and_fluids() -> None:
    model = arm_in_water()
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-0.5, 0.5, (40, 2)), rng.uniform(-1.0, 1.0, (40, 2))
    control = lw.Drives(model, [0.4, 0.2])
    here, _ = here_and_there(model, q, v, method="rk4", dt=5e-4, duration=0.05, control=control)
    assert np.isfinite(here.q).all()
    force = model.passive_force(cp.asarray(q), cp.asarray(v))
    np.testing.assert_allclose(cp.asnumpy(force), model.passive_force(q, v), rtol=1e-11, atol=1e-11)


@pytest.fixture(params=[False, True])
def together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warps that run apart, as in short routines, and warps that stay together."""
    monkeypatch.setattr("linkwise.targets.cuda.thread_memory._LONG", 0 if request.param else 1 << 30)


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_simulate_with_tables_and_samples(method: str) -> None:
    model = double_pendulum()
    rng = np.random.default_rng(1)
    times = np.linspace(0.0, 0.25, 6)
    control = [
        lw.Torque(times, rng.normal(size=(50, 6, 2)), "held"),
        lw.Torque(times, rng.normal(size=(6, 2)), "cubic"),
        lw.Sampled(model, lambda t, q, v, p: -q - 0.1 * v, 37.0, delay=0.004),
        lw.PID(model, [0.0, 0.2]),
    ]
    q, v, _ = random_state(model, 50)
    here_and_there(model, q, 0.3 * v, method=method, control=control, **(FIXED if method == "rk4" else ADAPTIVE))


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_simulate_with_events_and_a_bad_state(method: str) -> None:
    model = pendulum()
    q, v = np.linspace(-1.0, 0.25, 60)[:, None], np.linspace(-3.0, 3.0, 60)[:, None]
    q[17] = np.nan
    events = [
        lw.Event(lambda t, q, v, p: q[0] + 0.1, -1, action=lambda t, q, v: (q, -0.7 * v), name="bounce"),
        lw.Event(lambda t, q, v, p: q[0] - 0.3, 1, terminal=True, name="end"),
    ]
    options = {"duration": 0.4, "limits": "ignore", **({"dt": 0.005} if method == "rk4" else {"rtol": 1e-9})}
    with pytest.warns(lw.errors.IntegrationWarning, match="state 17 of the batch"):
        _, there = here_and_there(model, q, v, method=method, events=events, **options)
    assert {e.name for e in there.events} == {"bounce", "end"}
    assert there.status[17] == "failed"
    assert (there.status == "failed").sum() == 1


def test_simulate_one_state_and_python() -> None:
    model = double_pendulum()
    for method, options in (("rk4", FIXED), ("dopri5", ADAPTIVE)):
        there = lw.simulate(model, cp.asarray([0.3, 0.1]), duration=options["duration"], method=method)
        here = lw.simulate(model, [0.3, 0.1], duration=options["duration"], method=method)
        np.testing.assert_allclose(cp.asnumpy(there.q[-1]), here.q[-1], atol=1e-8)
    q, v, _ = random_state(model, 5)
    sampled = lw.Sampled(model, lambda t, q, v, p: [1.0, 0.0] if q[0] > 0 else [0.0, 1.0], 50.0, python=True)
    here_and_there(model, q, 0.3 * v, method="rk4", control=sampled, **FIXED)


def test_simulate_tensors() -> None:
    torch = pytest.importorskip("torch")
    model = double_pendulum()
    q, v, _ = random_state(model, 20)
    here = lw.simulate(model, q, v, method="rk4", **FIXED)
    with torch.cuda.stream(torch.cuda.Stream()):
        there = lw.simulate(model, *(torch.as_tensor(x, device="cuda") for x in (q, v)), method="rk4", **FIXED)
        assert isinstance(there.q, torch.Tensor) and there.q.is_cuda and there.energy.is_cuda
        np.testing.assert_allclose(there.q.cpu().numpy(), here.q, atol=1e-9)
    np.testing.assert_allclose(there.on_host().tau, here.tau, atol=1e-9)
    assert there[3].q.shape == here[3].q.shape


def test_rollout_as_any_routine() -> None:
    """The kernel with the state in shared memory and the one that any routine gets do the same."""
    model = double_pendulum()

    def euler(m: lw.Model, q: object, v: object, tau: object) -> dict:
        v = v + 0.001 * m.forward_dynamics(q, v, tau)
        return {"q": q + 0.001 * v, "v": v}

    roll = lw.rollout(lw.compile(euler, model, {"q": "q", "v": "v", "tau": "v"}), 50)
    arrays = [cp.asarray(x) for x in random_state(model, 200)]
    expected = roll(*arrays)
    routine = roll.routine
    rows = {routine.given(k): x.copy() for k, x in enumerate(arrays)}
    rows |= {routine.made(k): cp.empty((200, 2)) for k in range(2)}
    rows[routine.CLOCK] = cp.asarray(np.tile([0.0, 50.0], (200, 1)))
    DeviceProgram(routine, np.float64).run(rows, {}, {}, 200)
    for k, name in enumerate(("q", "v")):
        assert cp.allclose(rows[routine.made(k)], getattr(expected, name), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("count", [9, 1000])
def test_contact_of_feet_and_of_crowds(dtype: type, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one kernel, and in parts in the memory of the device; the last tile is not full."""
    for model, start, few in (
        (contact.hopper(), None, 1 << 20),
        (contact.bodies(contact.hills()), contact.ABOVE, 1 << 20),
        (contact.bodies(contact.hills()), contact.ABOVE, 1000),
    ):
        monkeypatch.setattr(thread_memory, "CALLS", 2)
        monkeypatch.setattr(thread_memory, "_FEW_LOCAL_BYTES", few)
        given = [x.astype(dtype) for x in contact.state(model, count, start)]
        step = model.function("contact_step")
        got = step(*(cp.asarray(x) for x in given))
        contact.close(type(got)(*(cp.asnumpy(x) for x in got)), step(*given), dtype)
