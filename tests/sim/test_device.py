"""Whole simulations on a GPU: kernels by emulation, arrays that refuse what CuPy's refuse, results as on the CPU."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError, LinkwiseError
from linkwise.sim.measuring import Measured
from tests.seeds import usual
from tests.sim.mechanisms import double_pendulum, pendulum
from tests.targets.cuda.emulation import needs_compiler
from tests.targets.cuda.fakes import fakes  # noqa: F401
from tests.targets.cuda.models import every_joint
from tests.targets.cuda.strict import DeviceArray, Tensor, strict  # noqa: F401

pytestmark = needs_compiler

FIXED = {"dt": 0.01, "duration": 0.2}
ADAPTIVE = {"rtol": 1e-8, "duration": 0.2}


def arm() -> lw.Model:
    """A free body with two joints, one of them with damping, friction and a limit."""
    b = lw.ModelBuilder("arm", gravity=(0, 0, -9.81))
    b.add_body("hub", joint=lw.Free(), mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]))
    b.add_body("rod", "hub", lw.Revolute(axis=(0, 1, 0)), mass=0.5, com=(0.3, 0, 0), inertia=0.01 * np.eye(3))
    return b.build()


def start(model: lw.Model, count: int = 5, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, 0.5 * rng.normal(size=(count, model.nv))


def both(model: lw.Model, q: Any, v: Any, **options: Any) -> tuple[lw.Trajectory, lw.Trajectory]:
    """On the CPU and on the device: the same to rounding, everywhere."""
    here = lw.simulate(model, q, v, **options)
    there = lw.simulate(model, DeviceArray(q), DeviceArray(v), **options)
    assert type(there.q) is type(there.v) is type(there.energy) is DeviceArray
    assert there.q.dtype == here.q.dtype
    np.testing.assert_array_equal(there.t, here.t)
    tolerance = 1e-10 if q.dtype == np.float64 else 1e-3  # exp and log, in the choice of steps, differ in the last bit
    for name in ("q", "v", "x", "vdot", "tau", "energy", "p"):
        mine, theirs = getattr(here, name), getattr(there, name)
        np.testing.assert_allclose(theirs.inner, mine, rtol=tolerance, atol=tolerance, err_msg=name)
    assert np.array_equal(there.status, here.status)
    assert np.array_equal(there.steps, here.steps)
    assert there.reasons.keys() == here.reasons.keys()
    assert [(e.name, e.state) for e in there.events] == [(e.name, e.state) for e in here.events]
    return here, there


@pytest.mark.parametrize("method", ["rk4", "variational", "generalized_alpha", "dopri5", "dop853", "rodas4"])
def test_every_kind_of_integrator(strict: Any, method: str) -> None:  # noqa: F811
    model = arm() if method in ("rk4", "dopri5") else double_pendulum()
    options = FIXED if method in ("rk4", "variational", "generalized_alpha") else ADAPTIVE

    def control(t: Any, q: Any, v: Any, p: Any) -> Any:
        return -0.3 * v + 0.1 * lw.math.sin(5.0 * t)

    both(model, *start(model), method=method, control=control, **options)


def test_samples_stay_on_the_device(strict: Any) -> None:  # noqa: F811
    model = double_pendulum()
    q, v = start(model, 6)
    traj = lw.simulate(model, DeviceArray(q), DeviceArray(v), method="rk4", dt=0.001, duration=0.2)
    samples = 6 * 201 * 4
    assert strict.downloaded < samples / 10, "only what says how far each state is comes back"
    for name in ("q", "v", "vdot", "tau", "energy"):
        assert type(getattr(traj, name)) is DeviceArray
    assert strict.downloaded < samples / 10


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_tables_samples_and_forces_from_outside(strict: Any, method: str) -> None:  # noqa: F811
    """Own tables for each member, of every kind, a controller that is sampled and delayed, and a state that flows."""
    model = double_pendulum()
    rng = np.random.default_rng(1)
    times = np.linspace(0.0, 0.2, 5)
    control = [
        lw.Torque(times, rng.normal(size=(3, 5, 2)), "held"),
        lw.Torque(times, rng.normal(size=(5, 2)), "linear"),
        lw.Torque(times, rng.normal(size=(5, 2)), "cubic"),
        lw.Sampled(model, lambda t, q, v, p: -q - 0.1 * v, 37.0, delay=0.004),
        lw.PID(model, [0.0, 0.2]),
    ]
    load = {"lower": lambda t, q, v, p: [0.0, 0.0, 0.1 * t, 0.2, 0.0, 0.0]}
    options = FIXED if method == "rk4" else ADAPTIVE
    both(model, *start(model, 3), method=method, control=control, f_ext=load, **options)


def bounce(**more: Any) -> lw.Event:
    return lw.Event(
        lambda t, q, v, p: q[0] + 0.1, direction=-1, action=lambda t, q, v: (q, -0.7 * v), name="bounce", **more
    )


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_events(strict: Any, method: str) -> None:  # noqa: F811
    """Bounces of some states, the end of others; samples before, at and after."""
    model = pendulum()
    q = np.array([[0.3], [0.01], [-2.0], [0.2]])
    v = np.array([[-3.0], [-0.5], [0.0], [2.0]])
    end = lw.Event(lambda t, q, v, p: q[0] - 0.3, direction=1, terminal=True, name="end")
    options = {"duration": 0.5, "method": method, "events": [bounce(), end]}
    options |= {"dt": 0.01} if method == "rk4" else {"rtol": 1e-9}
    here, there = both(model, q, v, **options)
    assert {e.name for e in here.events} == {"bounce", "end"}
    for a, b in zip(here.events, there.events, strict=True):
        assert abs(a.t - b.t) < 1e-12
    assert there[3].status == "event"
    assert len(there[3].t) < len(there.t)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_one_bad_state_harms_itself_alone(strict: Any, method: str) -> None:  # noqa: F811
    model = double_pendulum()
    q, v = start(model, 6)
    q[2, 0] = np.nan
    options = {**(FIXED if method == "rk4" else ADAPTIVE), "method": method}
    with pytest.warns(lw.errors.IntegrationWarning, match="state 2 of the batch"):
        here, there = both(model, q, v, **options)
    assert list(there.reasons) == [(2,)]
    assert np.isfinite(np.delete(there.q.inner, 2, axis=0)).all()
    assert there.reasons[2,] == here.reasons[2,]


def test_single_precision(strict: Any) -> None:  # noqa: F811
    model = double_pendulum()
    q, v = (x.astype(np.float32) for x in start(model, 5))
    _, there = both(model, q, v, method="rk4", **FIXED)
    assert there.v.dtype == np.float32


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_one_state(strict: Any, method: str) -> None:  # noqa: F811
    """Without a batch: every step of an adaptive method, both sides of an event."""
    model = pendulum()
    options = {"duration": 0.3, "method": method, "events": bounce()}
    options |= {"dt": 0.01} if method == "rk4" else {"rtol": 1e-9}
    here = lw.simulate(model, [0.1], [-1.0], **options)
    there = lw.simulate(model, DeviceArray([0.1]), [-1.0], **options)
    assert type(there.q) is DeviceArray
    assert there.q.shape == here.q.shape
    assert there.status == "done"
    assert abs(there.events[0].t - here.events[0].t) < 1e-9
    assert (np.diff(there.t) == 0.0).sum() == 1
    times = np.linspace(0.0, 0.3, 20)
    np.testing.assert_allclose(there.at(times).q.inner, here.at(times).q, atol=1e-8)


def test_times_between_steps_batches_of_axes_and_parameters(strict: Any) -> None:  # noqa: F811
    model = double_pendulum().with_parameters(["upper.mass"])
    q, v = (x.reshape(2, 3, -1) for x in start(model, 6))
    p = np.linspace(0.5, 1.5, 6).reshape(2, 3, 1)
    for times in ([0.05, 0.1, 0.2], [0.0333, 0.1111]):
        options = {"method": "rk4", "output_times": times, **FIXED}
        here = lw.simulate(model, q, v, p=p, **options)
        there = lw.simulate(model, DeviceArray(q), v, p=DeviceArray(p), **options)
        assert there.q.shape == (2, 3, len(times), 2)
        np.testing.assert_allclose(there.q.inner, here.q, atol=1e-12)
        np.testing.assert_allclose(there.tau.inner, here.tau, atol=1e-12)


def test_closed_mechanisms(strict: Any) -> None:  # noqa: F811
    b = lw.ModelBuilder("four bars", gravity=(0, -9.81, 0))
    for k, parent in enumerate(("world", "bar0", "bar1")):
        place = lw.transform(xyz=(1.0 if k else 0.0, 0, 0))
        b.add_body(f"bar{k}", parent, lw.Revolute(axis=(0, 0, 1)), place, mass=1.0, com=(0.5, 0, 0))
    end = lw.transform(xyz=(1, 0, 0))
    b.add_closure("pin", "bar2", end, "world", end, joint=lw.Revolute(axis=(0, 0, 1)))
    model = b.build()
    q = np.array([model.assemble([angle, -1.57, -1.57]) for angle in (1.4, 1.57, 1.7)])
    _, there = both(model, q, np.zeros((3, 3)), method="rk4", **FIXED)
    assert type(there.closure_error) is DeviceArray
    assert np.abs(there.closure_error.inner).max() < 1e-13


def test_what_is_found_on_the_host_goes_to_the_device_of_the_run(
    strict: Any,  # noqa: F811  # a fixture, imported by its name
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = samples.four_bar(1)
    q = np.tile(model.assemble(np.array([1.2, -0.9, -1.5])), (2, 1))
    traj = lw.simulate(model, DeviceArray(q), DeviceArray(0.0 * q), method="rk4", dt=0.01, duration=0.02)
    kind, inside = type(traj.home), []
    entered, brought = kind.entered, kind.to_device

    @contextmanager
    def noted(home: Any) -> Iterator[None]:
        inside.append(home)
        with entered(home):
            yield
        inside.pop()

    def checked(home: Any, array: Any) -> Any:
        assert inside == [traj.home]
        return brought(home, array)

    monkeypatch.setattr(kind, "entered", noted)
    monkeypatch.setattr(kind, "to_device", checked)
    assert type(traj.active) is type(traj.closure_error) is DeviceArray


def test_python_is_asked_between_steps_or_not_at_all(strict: Any) -> None:  # noqa: F811
    model = pendulum()
    q, v = start(model, 3)

    def branching(t: Any, q: Any, v: Any, p: Any) -> Any:
        return [-1.0] if q[0] > 0 else [1.0]

    for options in ({"method": "rk4", **FIXED}, {"method": "dopri5", **ADAPTIVE}):
        both(model, q, v, control=lw.Sampled(model, branching, 50.0, python=True), **options)
        with (
            warnings.catch_warnings(action="error"),  # it is not called slow before it is refused
            pytest.raises(InputError, match=r"cannot be called from a GPU\s+got:\s+branching: [\s\S]*lw.Sampled"),
        ):
            lw.simulate(model, DeviceArray(q), DeviceArray(v), control=branching, **options)


def test_models_with_loops_over_links(strict: Any) -> None:  # noqa: F811
    """In the memory of threads, and in that of the device where a state needs more."""
    model = every_joint().with_sweeps("rolled")
    q, v = start(model, 3)
    both(model, q, 0.2 * v, method="rk4", dt=0.005, duration=0.02)
    large = lw.ModelBuilder("chain")
    rod = {"mass": 1.0, "com": (0.0, 0.0, 0.5), "inertia": np.diag([0.1, 0.1, 0.01])}
    for k in range(300):
        parent = f"b{k - 1}" if k else "world"
        large.add_body(f"b{k}", parent, lw.Revolute(axis=(0, 1, 0)), lw.transform(xyz=(0, 0, 1)), **rod)
    model = large.build()
    q, v = 1e-3 * np.random.default_rng(0).normal(size=(2, 3, 300))
    both(model, q, v, method="rk4", dt=1e-4, duration=3e-4)


def test_memory_is_used_again(strict: Any) -> None:  # noqa: F811
    model = double_pendulum()
    q, v = (DeviceArray(x) for x in start(model, 3))
    first = lw.simulate(model, q, v, method="rk4", **FIXED)
    again = lw.simulate(model, q, v, method="rk4", out=first, **FIXED)
    assert again.storage is first.storage
    here = lw.simulate(model, q.inner, v.inner, method="rk4", **FIXED)
    with pytest.raises(InputError, match=r"out does not fit[\s\S]*on the host[\s\S]*on the GPU"):
        lw.simulate(model, q, v, method="rk4", out=here, **FIXED)
    with pytest.raises(InputError, match=r"out does not fit[\s\S]*on the GPU[\s\S]*on the host"):
        lw.simulate(model, q.inner, v.inner, method="rk4", out=first, **FIXED)
    strict.most_bytes = 100
    with pytest.raises(LinkwiseError, match=r"no room for the results[\s\S]*save_every"):
        lw.simulate(model, q, v, method="rk4", **FIXED)


def test_on_the_host_again(strict: Any, tmp_path: Path) -> None:  # noqa: F811
    model = arm()
    q, v = start(model, 3)
    here, there = both(model, q, v, method="rk4", **FIXED)
    copied = there.on_host()
    assert copied.on_host() is copied
    for name in ("q", "v", "x", "p", "tau", "energy"):
        np.testing.assert_array_equal(getattr(copied, name), getattr(there, name).inner)
    for other in (pickle.loads(pickle.dumps(there)), lw.Trajectory.load(there.save(tmp_path / "motion.npz"))):
        assert other.on_host() is other
        np.testing.assert_array_equal(other.q, copied.q)
        np.testing.assert_array_equal(other.energy, copied.energy)
    later = there.at([0.0123])
    assert type(later.q) is DeviceArray
    np.testing.assert_allclose(later.q.inner, here.at([0.0123]).q, atol=1e-14)
    one = there[1]
    assert type(one.v) is DeviceArray
    np.testing.assert_array_equal(one.v.inner, copied[1].v)
    np.testing.assert_allclose(there.pose("rod").inner, here.pose("rod"), atol=1e-14)
    assert repr(there) == repr(here)


def test_tensors_in_tensors_out(strict: Any) -> None:  # noqa: F811
    model = double_pendulum()
    q, v = start(model, 3)
    traj = lw.simulate(model, Tensor(q), Tensor(v), method="rk4", **FIXED)
    assert type(traj.q) is type(traj.energy) is Tensor
    assert strict.launches[0][3] == "torch 0", "on the caller's stream"
    np.testing.assert_allclose(traj.on_host().q, lw.simulate(model, q, v, method="rk4", **FIXED).q, atol=1e-13)
    with pytest.raises(InputError, match="different GPUs"):
        lw.simulate(model, DeviceArray(q), DeviceArray(v, 1), method="rk4", **FIXED)


def test_the_guide(strict: Any) -> None:  # noqa: F811
    """What docs/guide/gpu.md says of simulations, which is run as it stands only where there is a GPU."""
    page = Path(lw.__file__).parents[1] / "docs" / "guide" / "gpu.md"
    section = page.read_text(encoding="utf-8").split("## Simulations")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    exec(code, {"lw": lw, "np": np, "cp": strict, "samples": samples})


def test_interrupted(strict: Any) -> None:  # noqa: F811
    """What was computed so far comes back, with the side that is not there left out."""
    model = double_pendulum()

    def enough(done: float) -> None:
        raise KeyboardInterrupt

    for options in ({"method": "rk4", **FIXED}, {"method": "dopri5", **ADAPTIVE}):
        traj = lw.simulate(model, *(DeviceArray(x) for x in start(model, 3)), progress=enough, **options)
        assert set(traj.status) <= {"interrupted", "done"}
        assert type(traj.q) is DeviceArray


def test_simulations_in_pieces_are_refused(strict: Any) -> None:  # noqa: F811
    with pytest.raises(InputError, match="on the processor"):
        lw.Simulation(pendulum(), DeviceArray(np.zeros((3, 1))))


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, q, v, tau: m.linearize_forward(q, v, tau, order=2),
        lambda m, q, v, tau: m.state_space(q, v, tau),
        lambda m, q, v, tau: m.inverse_dynamics(q, v, v, actuated=[m.joints[0].name]),
        lambda m, q, v, tau: m.assemble(q),
        lambda m, q, v, tau: m.constraints.check(q, v),
        lambda m, q, v, tau: m.freedoms(q),
        lambda m, q, v, tau: m.sensitivity(q, v, tau, 0.01),
        lambda m, q, v, tau: m.with_closure_solver("nullspace").forward_dynamics(q, v, tau),
    ],
)
def test_what_needs_the_host_says_so(strict: Any, ask: Any) -> None:  # noqa: F811
    """Where a function of a closed model computes with NumPy, all four parts of a message."""
    model = samples.four_bar()
    q = model.assemble(model.neutral())
    with pytest.raises(InputError) as found:
        ask(model, *(DeviceArray(x) for x in (q, np.zeros(model.nv), np.zeros(model.nv))))
    assert "on the host only" in found.value.what
    assert found.value.got == "an array on a device: cupy.DeviceArray"
    assert found.value.allowed == "NumPy arrays"
    assert "x.get() with CuPy" in str(found.value.do)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("library", [DeviceArray, Tensor])
def test_derivatives_of_a_closed_model(strict: Any, dtype: Any, library: Any) -> None:  # noqa: F811
    """On the device from the first array to the last: none comes to the host."""
    model, rng = samples.four_bar(), np.random.default_rng(0)
    q = np.array([model.assemble(x) for x in rng.uniform(-0.3, 0.3, (3, model.nq))], dtype)
    v, tau, dq, dv, dtau = rng.uniform(-1, 1, (5, 3, model.nv)).astype(dtype)
    there = [library(x) for x in (q, v, tau, dq, dv, dtau)]
    found, along = model.linearize_forward(*there[:3]), model.perturb_forward(*there)
    assert strict.downloads == 0
    expected = model.linearize_forward(q, v, tau)
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    for got, wanted in (*zip(found, expected, strict=True), (along, model.perturb_forward(q, v, tau, dq, dv, dtau))):
        assert type(got) is library
        assert got.dtype == dtype
        np.testing.assert_allclose(got.inner, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())
    if library is DeviceArray:
        out = DeviceArray(np.empty((3, model.nv), dtype))
        assert model.perturb_forward(*there, out=out) is out
        assert np.array_equal(out.inner, along.inner)


def test_second_derivatives_of_a_tree_need_the_host(strict: Any) -> None:  # noqa: F811
    model = double_pendulum()
    x = [DeviceArray(np.zeros(2)) for _ in range(3)]
    for name in ("linearize_forward", "linearize_inverse"):
        with pytest.raises(InputError, match="second order are computed on the host only"):
            getattr(model, name)(*x, order=2)
    with pytest.raises(InputError, match="state_space is computed on the host only"):
        model.state_space(*x)


class _Hooks(lw.Element):
    """A field of acceleration, a mass that changes with a state of its own, and a law that knows it."""

    nx, is_actuator = 1, False

    def initial(self) -> list[float]:
        return [0.5]

    def rate(self, t: Any, q: Any, v: Any, x: Any, p: Any) -> Any:
        return [-0.2]

    def parameters(self, t: Any, q: Any, v: Any, x: Any, p: Any) -> Any:
        return {"rod.mass": x[0]}

    def acceleration(self, t: Any, q: Any, v: Any, x: Any, p: Any) -> Any:
        return lambda point: point * (-1.0 / (1.0 + point @ point))


@pytest.mark.parametrize("options", usual([{**FIXED, "method": "rk4"}], ADAPTIVE))
def test_fields_parameters_and_sensors(strict: Any, options: dict[str, Any]) -> None:  # noqa: F811
    model = arm()
    q, v = start(model)
    sensor = Measured(lambda t, q, v, p: v[6:7], 1, noise=0.1, step=0.01, delay=0.02, seed=4)
    damp = lw.Sampled(model, lambda t, z, p: [0.0] * 6 + [-0.1 * z[0]], 100.0, sensors=[sensor])
    nozzle = lw.space.Thruster("hub", (1, 0, 0), 1.0, lambda t, q, v, p, x: 0.3 * x[0])
    push = lw.space.Propulsion(model, nozzle)
    both(model, q, v, control=[_Hooks(), damp, push], **options)


def test_a_craft_in_orbit(strict: Any) -> None:  # noqa: F811
    from linkwise import space

    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=10.0, inertia=np.diag([1.0, 2.0, 3.0]))
    model = b.build()
    q, v = start(model)
    facets, orbit = space.Facet.plate("hub", 2.0, (0, 0, 1)), space.Orbit(6.8e6, 0.01, 0.9)
    air = space.Exponential(1e-11, 400e3, 58e3)
    acting = [space.Gravity(model, 2, each_link=False), space.Drag(model, facets, air), space.Sunlight(model, facets)]
    both(model, q, v, control=acting, frame=orbit, **{**FIXED, "method": "rk4"})
