"""Steps with contact as kernels, run by emulation beside the processor's: feet, crowds, hills, simulations, resets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.targets.cuda import device_memory, launched_blocks, launched_programs, runtime, thread_memory
from linkwise.targets.cuda.device_memory import DeviceKernel
from linkwise.targets.cuda.thread_memory import ThreadKernel
from tests.targets.cuda.emulation import needs_compiler
from tests.targets.cuda.fakes import Fakes, fakes  # noqa: F401
from tests.targets.cuda.strict import DeviceArray, strict  # noqa: F401

pytestmark = needs_compiler

STEP = 0.002


def hopper() -> lw.Model:
    """A leg on its foot."""
    return lw.gym.task("hopper", 1).rules.model


def hills() -> lw.Ground:
    x, y = np.meshgrid(np.linspace(0.0, 6.0, 9), np.linspace(0.0, 6.0, 9))
    return lw.Ground(shape=lw.shapes.heightfield(0.02 * np.sin(x) * np.cos(y), (6.0, 6.0)))


def bodies(ground: lw.Ground, solver: Any = "auto") -> lw.Model:
    """A ball and a capsule, which touch the ground and each other."""
    b = lw.ModelBuilder("bodies")
    for k, shape in enumerate((lw.shapes.sphere(0.1, mass=1.0), lw.shapes.capsule(0.05, 0.2, mass=1.0))):
        b.add_body(f"body {k}", joint=lw.Free(), shape=shape)
    rules = lw.ContactRules(solver=solver, points=3)
    return b.build().with_contacts(ground, material=lw.Material(friction=0.5), rules=rules)


def state(model: lw.Model, count: int, start: Any = None, steps: int = 60) -> list[Any]:
    """Arguments of a step from states that have come down, under forces of their own."""
    step, rng = model.function("contact_step"), np.random.default_rng(0)
    q, dt = np.tile(np.asarray(model.start if start is None else start, float), (count, 1)), np.full(count, STEP)
    v, impulses = 0.1 * rng.normal(size=(count, model.nv)), np.zeros((count, *step.inputs[3][1]))
    tau = 0.02 * rng.normal(size=v.shape)
    for _ in range(steps):
        made = step(q, v, tau, impulses, dt)
        q, v, impulses = made.q, made.v, made.impulses
    assert (impulses != 0.0).any()
    return [q, v, tau, impulses, dt]


def close(got: Any, expected: Any, dtype: type) -> None:
    """Equal to rounding; of float32 as the laws are solved, 2e-5 of impulses."""
    for name in ("q", "v", "gaps", "overflow"):
        a, b = np.asarray(getattr(got, name), float), np.asarray(getattr(expected, name), float)
        bound = (1e-10 if dtype is np.float64 else 1e-4) * (1.0 + np.abs(b).max(where=np.abs(b) < 1e5, initial=0.0))
        assert np.abs(a - b).max() <= bound, name
    assert np.asarray(got.residuals)[:, 0].max() < (1e-8 if dtype is np.float64 else 1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_feet(fakes: Fakes, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """As one kernel, as a sequence of them, and in turns."""
    model = hopper()
    step, given = model.function("contact_step"), state(model, 11)
    expected, on = step(*(x.astype(dtype) for x in given)), [fakes.array(x, dtype) for x in given]
    launches = []
    for long, room in ((1 << 20, 4 << 30), (500, 4 << 30), (500, 1 << 12)):
        monkeypatch.setattr(launched_blocks, "_LONG", {32: long, 64: long})
        monkeypatch.setattr(runtime, "WORKING_BYTES", room)
        other = hopper().function("contact_step")  # compiled anew
        fakes.cupy.launches.clear()
        close(other(*on), expected, dtype)
        launches.append(len(fakes.cupy.launches))
    assert launches[0] == 1 < launches[1] < launches[2]


ABOVE = [1.0, 0, 0, 0, 0.0, 0, 0.27, 1.0, 0, 0, 0, 0.02, 0, 0.09]


@pytest.mark.parametrize(
    ("dtype", "ground", "solver"), [(np.float64, hills(), "auto"), (np.float32, lw.Ground(), "primal")]
)
def test_crowds(
    fakes: Fakes,  # noqa: F811
    dtype: type,
    ground: lw.Ground,
    solver: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the memory of threads, and in parts in the memory of the device, where turns give the same bits."""
    model = bodies(ground, solver)
    given = state(model, 9, ABOVE)
    expected = model.function("contact_step")(*(x.astype(dtype) for x in given))
    on, found = [fakes.array(x, dtype) for x in given], []
    monkeypatch.setattr(thread_memory, "CALLS", 2)
    monkeypatch.setattr(launched_programs, "_TILES", 0)
    monkeypatch.setattr(device_memory, "_PART", 3000)
    for few, room in ((1 << 20, 4 << 30), (1000, 4 << 30), (1000, 1 << 15)):
        monkeypatch.setattr(thread_memory, "_FEW_LOCAL_BYTES", few)
        monkeypatch.setattr(runtime, "WORKING_BYTES", room)
        if room == 4 << 30:  # turns are taken by the same kernels
            program = bodies(ground, solver).function("contact_step")
        writer = launched_programs.kernel_writer(program.program, np.dtype(dtype).itemsize * 8)
        assert isinstance(writer, ThreadKernel if few > 1000 else DeviceKernel)
        fakes.cupy.launches.clear()
        found.append((program(*on), len(fakes.cupy.launches)))
        close(found[-1][0], expected, dtype)
    (_, one), (parts, some), (turns, more) = found
    assert one in (1, 3) and one < some < more
    assert all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(parts, turns, strict=True))


def test_a_bad_state_harms_itself_alone(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Also in the tile that it shares with others, whose loops it goes through with them."""
    monkeypatch.setattr(thread_memory, "CALLS", 2)
    monkeypatch.setattr(thread_memory, "_FEW_LOCAL_BYTES", 1000)
    model = bodies(lw.Ground(), "primal")
    step, given = model.function("contact_step"), state(model, 6, ABOVE)
    expected = np.asarray(step(*(fakes.array(x) for x in given)).v)
    given[1][2, 3] = np.nan
    got = np.asarray(step(*(fakes.array(x) for x in given)).v)
    assert np.isnan(got[2]).any() and np.array_equal(np.delete(got, 2, 0), np.delete(expected, 2, 0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_simulations(strict: Any, dtype: type) -> None:  # noqa: F811
    """A whole motion on the ground in one kernel."""
    model = hopper()
    q = np.tile(np.asarray(model.start), (5, 1))
    q[:, 2] += 0.65 + np.linspace(0.0, 0.02, 5)
    options = {"duration": 0.06, "dt": STEP, "method": "moreau", "save_every": 10}
    expected = lw.simulate(model, q.astype(dtype), **options)
    got = lw.simulate(model, DeviceArray(q.astype(dtype)), **options).on_host()
    assert np.abs(got.q - expected.q).max() < (1e-9 if dtype is np.float64 else 1e-4)
    assert np.abs(got.v - expected.v).max() < (1e-7 if dtype is np.float64 else 5e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_environments_with_resets(fakes: Fakes, dtype: type) -> None:  # noqa: F811
    """Robots that end their episodes at different times begin anew in the same kernel."""
    envs = [lw.gym.task("hopper", 6, device=device, dtype=dtype) for device in ("cpu", "cuda")]
    seen = [np.asarray(env.reset(seed=3)[0], float) for env in envs]
    rng = np.random.default_rng(0)
    size = envs[0].single_action_space.shape
    ended = 0
    for _ in range(40):
        action = rng.uniform(-1, 1, (6, *size)).astype(dtype)
        made = [env.step(action if env is envs[0] else fakes.array(action, dtype)) for env in envs]
        seen = [np.asarray(each[0], float) for each in made]
        assert np.array_equal(np.asarray(made[0][2]), np.asarray(made[1][2]))
        assert np.abs(seen[0] - seen[1]).max() < (1e-6 if dtype is np.float64 else 5e-2)
        ended += int(np.asarray(made[0][2]).sum())
    assert ended > 0
