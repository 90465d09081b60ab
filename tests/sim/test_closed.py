"""Closed mechanisms over time: on their manifold, through singular configurations, with redundant constraints."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.samples.mechanisms import squeezer_forces
from tests.files.recording import robot_files
from tests.sim.closed_benchmarks import (
    SQUEEZER_Q,
    SQUEEZER_START,
    SQUEEZER_V,
    four_bar_angle,
    swinging,
)


def drift(traj: lw.Trajectory) -> float:
    """The largest change of energy, relative to the largest there is."""
    return float(np.ptp(traj.energy) / np.abs(traj.energy).max())


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("dop853", {"rtol": 1e-10}),
        ("dopri5", {"rtol": 1e-11}),
        ("rk4", {"dt": 1e-3}),
        ("rodas4", {"rtol": 1e-9}),
    ],
)
def test_two_four_bars_swing_through_their_singular_configuration(method: str, options: dict[str, Any]) -> None:
    model = samples.four_bar(2)
    traj = lw.simulate(model, model.neutral(), swinging(model), duration=10.0, method=method, **options)
    B0 = traj.pose("rod0")[-1, [0, 2], 2]  # the upper end, one metre along its z axis
    np.testing.assert_allclose(B0, [0.328458111542, 0.944518538178], atol=1e-6)
    assert drift(traj) < 1e-6
    assert np.abs(traj.closure_error).max() < 1e-12
    assert np.abs(model.constraints.rate(traj.q, traj.v)).max() < 1e-10


@pytest.mark.parametrize("n", [5, pytest.param(10, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.slow)])
def test_many_four_bars_swing_through_their_singular_configuration(n: int) -> None:
    model = samples.four_bar(n, lw.Spherical() if n > 10 else None)
    times = np.linspace(0.0, 10.0, 51)
    traj = lw.simulate(model, model.neutral(), swinging(model), duration=10.0, rtol=1e-10, output_times=times)
    angle = four_bar_angle(n, times)
    ends = traj.pose("rod0")[:, [0, 2], 2]
    np.testing.assert_allclose(ends, np.stack([np.sin(angle), np.cos(angle)], axis=1), atol=1e-6)
    assert drift(traj) < 1e-6
    assert np.abs(traj.closure_error).max() < 1e-12  # also inside steps


@pytest.mark.parametrize(
    ("method", "options"),
    [("dop853", {"rtol": 1e-10}), ("rk4", {"dt": 1e-5}), ("rodas4", {"rtol": 1e-8})],
)
def test_andrews_squeezer(method: str, options: dict[str, Any]) -> None:
    model = samples.andrews_squeezer()
    traj = lw.simulate(model, SQUEEZER_START, duration=0.03, method=method, control=_squeezed, **options)
    np.testing.assert_allclose(traj.q[-1], SQUEEZER_Q, atol=1e-6)
    np.testing.assert_allclose(traj.v[-1], SQUEEZER_V, rtol=1e-5)
    assert np.abs(traj.closure_error).max() < 1e-12


def _squeezed(t: Any, q: Any, v: Any, p: Any) -> Any:
    return squeezer_forces(q)


@pytest.mark.parametrize(("method", "options"), [("dop853", {"rtol": 1e-10}), ("rk4", {"dt": 1e-3})])
def test_bricard_moves_although_it_is_overconstrained(method: str, options: dict[str, Any]) -> None:
    model = samples.bricard()
    assert model.freedoms(model.neutral()).count == 1
    assert model.freedoms(model.neutral()).gruebler == 0
    traj = lw.simulate(model, model.neutral(), duration=10.0, method=method, **options)
    assert drift(traj) < 1e-8
    assert np.abs(traj.closure_error).max() < 1e-12
    assert np.ptp(traj.q, axis=0).min() > 0.1  # it does move, every hinge of it
    assert model.freedoms(traj.q[-1]).count == 1


def turning(model: lw.Model) -> tuple[Any, Any]:
    """A slider-crank in the middle of a turn."""
    q0 = model.assemble([0.5, -0.6, 0.0])
    return q0, model.constraints.project_velocity(q0, [20.0, 0.0, 0.0])


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("variational", 2), ("generalized_alpha", 2), ("rk4", 4)])
def test_projection_keeps_the_order(method: str, order: int) -> None:
    model = samples.slider_crank()
    q0, v0 = turning(model)
    true = lw.simulate(model, q0, v0, duration=0.2, rtol=1e-13)
    steps = [2e-3, 1e-3]
    errors = [
        np.abs(lw.simulate(model, q0, v0, duration=0.2, method=method, dt=dt).v[-1] - true.v[-1]).max() for dt in steps
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


def test_the_symplectic_method_keeps_the_energy_of_a_closed_mechanism_forever() -> None:
    model = samples.slider_crank()
    traj = lw.simulate(model, *turning(model), duration=30.0, method="variational", dt=1e-3)
    early, late = traj.energy[:2000], traj.energy[-2000:]
    assert np.ptp(early) < 1e-3 * np.abs(early).max()
    assert np.ptp(traj.energy) < 1.1 * np.ptp(early)
    assert np.abs(late.mean() - early.mean()) < 0.05 * np.ptp(early)
    assert np.abs(traj.closure_error).max() < 1e-12


@pytest.mark.parametrize("n", [2, 3])
def test_the_symplectic_method_passes_singular_configurations(n: int) -> None:
    """Some eight times in 10 s; the energy stays in its band, and the band falls with the square of the step."""
    model = samples.four_bar(n)
    bands = []
    for dt in (2e-3, 1e-3):
        traj = lw.simulate(model, model.neutral(), swinging(model), duration=10.0, method="variational", dt=dt)
        assert traj.status == "done"
        assert np.abs(traj.closure_error).max() < 1e-12
        half = len(traj.t) // 2
        assert np.ptp(traj.energy[half:]) < 1.05 * np.ptp(traj.energy[:half])
        bands.append(np.ptp(traj.energy) / np.abs(traj.energy).max())
    assert bands[0] < 1e-5
    assert bands[1] < 0.3 * bands[0]
    angle = four_bar_angle(n, np.array([0.0, 10.0]))[-1]
    np.testing.assert_allclose(np.sin(traj.q[-1, 0]), np.sin(angle), atol=1e-3)


def test_the_symplectic_method_refuses_what_it_cannot_keep() -> None:
    model = samples.slider_crank()
    with pytest.raises(lw.InputError, match="keeps closures itself"):
        lw.simulate(model, model.neutral(), duration=0.1, method="variational", stabilization=None)
    builder = lw.ModelBuilder("skate")
    builder.add_body("skate", "world", lw.Planar(), mass=1.0, inertia=np.eye(3))
    builder.add_coupling("edge", lambda q, v, t: [v[1]], 1)
    skate = builder.build()
    with pytest.raises(lw.InputError, match="constraints between rates"):
        lw.simulate(skate, skate.neutral(), duration=0.1, method="variational")


def test_slider_crank_follows_its_geometry() -> None:
    model = samples.slider_crank(crank=0.1, rod=0.3)
    traj = lw.simulate(model, *turning(model), duration=1.0, method="rk4", dt=1e-4)
    theta = traj.q[:, 0]
    place = 0.1 * np.cos(theta) + np.sqrt(0.3**2 - (0.1 * np.sin(theta)) ** 2) - 0.4
    np.testing.assert_allclose(traj.q[:, 2], place, atol=1e-12)
    assert drift(traj) < 1e-9
    assert np.ptp(theta) > 2 * np.pi


def test_a_batch_is_its_states() -> None:
    model = samples.four_bar(2)
    speeds = np.linspace(0.5, 3.0, 7)
    v0 = swinging(model) * speeds[:, None]
    for method, options in (("rk4", {"dt": 1e-3}), ("dop853", {"output_times": [0.5, 1.0]})):
        batch = lw.simulate(model, model.neutral(), v0, duration=1.0, method=method, **options)
        for k in (0, 3, 6):
            one = lw.simulate(model, model.neutral(), v0[k], duration=1.0, method=method, **options)
            np.testing.assert_allclose(batch.q[k], one.q, atol=1e-9)
        assert np.abs(batch.closure_error).max() < 1e-12


@pytest.mark.parametrize("method", ["rk4", "dop853", "variational"])
def test_sweeps_that_run_as_loops(method: str) -> None:
    model = samples.slider_crank()
    rolled = model.with_sweeps("rolled")
    start = turning(model)
    given = lw.simulate(rolled, *start, duration=0.05, dt=5e-3, method=method)
    expected = lw.simulate(model, *start, duration=0.05, dt=5e-3, method=method)
    np.testing.assert_allclose(given.q[-1], expected.q[-1], atol=1e-9)
    assert np.abs(given.closure_error).max() < 1e-12


def test_single_precision() -> None:
    model = samples.four_bar(2)
    q0, v0 = (np.asarray(x, np.float32) for x in (model.neutral(), swinging(model)))
    traj = lw.simulate(model, q0, v0, duration=0.5, method="rk4", dt=1e-3)
    assert traj.q.dtype == np.float32
    angle = four_bar_angle(2, np.array([0.0, 0.5]))[-1]
    np.testing.assert_allclose(traj.q[-1, 0], angle, atol=1e-5)
    assert np.abs(traj.closure_error).max() < 2e-6


def test_run_time_parameters_reach_the_closures() -> None:
    plain = samples.four_bar(1)
    heavy = plain.with_body("coupler1", mass=3.0)
    model = plain.with_parameters(["coupler1.mass"])
    v0 = swinging(model)
    given = lw.simulate(model, model.neutral(), v0, duration=1.0, p=[3.0])
    built = lw.simulate(heavy, heavy.neutral(), v0, duration=1.0)
    np.testing.assert_allclose(given.q[-1], built.q[-1], atol=1e-9)
    assert np.abs(given.closure_error).max() < 1e-12


def test_prescribed_motion_is_followed() -> None:
    builder = lw.ModelBuilder("arm")
    for k, parent in ((1, "world"), (2, "link1")):
        builder.add_body(
            f"link{k}", parent, lw.Revolute((0, 1, 0)), lw.transform(xyz=(0, 0, -1.0 * (k > 1))), joint_name=f"j{k}",
            mass=1.0, com=(0, 0, -0.5),
        )  # fmt: skip
    builder.add_coupling("drive", lw.closures.Prescribed("j1", lambda t: 0.3 * lw.math.sin(2.0 * t)))
    model = builder.build()
    for method, options in (("dop853", {}), ("rk4", {"dt": 1e-3})):
        traj = lw.simulate(model, [0.0, 0.1], duration=2.0, method=method, **options)
        np.testing.assert_allclose(traj.q[:, 0], 0.3 * np.sin(2.0 * traj.t), atol=1e-12)
        np.testing.assert_allclose(traj.v[:, 0], 0.6 * np.cos(2.0 * traj.t), atol=1e-10)


@pytest.mark.slow
@pytest.mark.skipif(not robot_files(".sdf"), reason="needs example-robot-data")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cassie_wo_gearbox_spring", {"method": "rk4", "dt": 1e-3}),
        ("cassie", {"method": "dop853", "rtol": 1e-6, "output_times": np.linspace(0.0, 2.0, 401)}),
    ],
)
def test_cassie_falls_with_its_loops_closed(name: str, options: dict[str, Any]) -> None:
    """With gears and springs too: 16 closures and couplings, 36 equations."""
    file = next(f for f in robot_files(".sdf") if f.stem == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.ModelWarning)
        model = lw.load(file, floating=name == "cassie")
    q0 = model.assemble(model.neutral())
    assert np.abs(model.closure_error(q0)).max() < 1e-10
    v0 = model.constraints.project_velocity(q0, np.random.default_rng(1).normal(size=model.nv))
    traj = lw.simulate(model, q0, v0, duration=2.0, limits="ignore", **options)
    assert traj.status == "done"
    assert np.abs(traj.closure_error).max() < 1e-9


# What keeps closures closed.
def test_without_stabilization_closures_drift_and_with_feedback_less() -> None:
    model = samples.slider_crank()
    error = {}
    for how in (None, "baumgarte", "projection"):
        traj = lw.simulate(model, *turning(model), duration=3.0, method="rk4", dt=2e-3, stabilization=how)
        error[how] = np.abs(traj.closure_error[-1]).max()
    assert error[None] > 10 * error["baumgarte"] > 1e4 * error["projection"]
    assert error["projection"] < 1e-14


def test_feedback_asks_for_what_it_says() -> None:
    """J_c v̇ + bias = -2a ė - a²e, at a state that is open and opening."""
    model = samples.slider_crank()
    rng = np.random.default_rng(2)
    q, v, tau = rng.normal(size=(3, model.nv)) * 0.3
    a = 7.0
    vdot = model._run("forward_dynamics", q, v, tau, closing_rate=a)
    asked = -2.0 * a * model.constraints.rate(q, v) - a**2 * model.closure_error(q)
    given = model.constraints.jacobian(q) @ vdot + model.constraints.bias(q, v)
    kept = [0, 2]  # x and z: the other rows are redundant in a planar loop
    np.testing.assert_allclose(given[kept], asked[kept], atol=1e-8)


@pytest.mark.parametrize("how", ["project", 3, lw.Baumgarte])
def test_unknown_stabilization(how: Any) -> None:
    model = samples.four_bar(1)
    with pytest.raises(lw.InputError, match="no such stabilization"):
        lw.simulate(model, model.neutral(), stabilization=how)


def test_an_open_start_is_refused_by_name() -> None:
    model = samples.four_bar(2)
    with pytest.raises(lw.errors.ClosureError, match="'pin1' is open") as caught:
        lw.simulate(model, [0.1, 0.0, 0.0, 0.0, 0.0], duration=1.0)
    assert caught.value.residual > 0.05
    assert "assemble" in str(caught.value)


def test_a_start_open_by_rounding_is_closed() -> None:
    model = samples.four_bar(2)
    q0 = model.neutral() + 1e-8
    traj = lw.simulate(model, q0, duration=0.1)
    assert np.abs(traj.closure_error[0]).max() < 1e-14
    assert np.abs(traj.q[0] - q0).max() < 1e-7


def test_a_velocity_against_the_closures_is_projected_and_said_so() -> None:
    model = samples.four_bar(1)
    with pytest.warns(lw.errors.ModelWarning, match="v0 moves against closure 'pin1'"):
        traj = lw.simulate(model, model.neutral(), [1.0, 0.0, 0.0], duration=0.1)
    np.testing.assert_allclose(
        traj.v[0], model.constraints.project_velocity(model.neutral(), [1.0, 0.0, 0.0]), atol=1e-12
    )


def test_motions_that_contradict_each_other_do_not_pass_in_silence() -> None:
    builder = lw.ModelBuilder("torn")
    builder.add_body("link", "world", lw.Revolute((0, 1, 0)), joint_name="j", mass=1.0, com=(0, 0, -0.5))
    builder.add_coupling("one", lw.closures.Prescribed("j", lambda t: t * t))
    builder.add_coupling("other", lw.closures.Prescribed("j", lambda t: 2.0 * t * t))
    model = builder.build()
    with pytest.warns(lw.errors.IntegrationWarning, match="did not stay closed"):
        traj = lw.simulate(model, [0.0], duration=1.0, method="rk4", dt=1e-2)
    assert "did not stay closed" in traj.note


# What comes out.
@pytest.mark.parametrize("method", ["dop853", "dopri5", "rodas4"])
def test_a_motion_that_is_prescribed_altogether_keeps_its_steps_short(method: str) -> None:
    """The crank's angle is a function of time, the rest follows from it: no freedom has an error that could be felt."""
    model = samples.four_bar(1)
    crank = model.joints[0].name

    def angle(t: Any) -> Any:
        return 1.0 + 2.0 * lw.math.sin(3.0 * t)

    model = model.with_coupling("motor", lw.closures.Prescribed(crank, angle))
    q0 = model.assemble(model.neutral())
    v0 = model.constraints.project_velocity(q0, np.zeros(model.nv))
    times = np.linspace(0.0, 5.0, 51)
    traj = lw.simulate(model, q0, v0, duration=5.0, method=method, rtol=1e-8, output_times=times)
    np.testing.assert_allclose(traj.q[:, 0], 1.0 + 2.0 * np.sin(3.0 * times), atol=1e-10)
    assert np.abs(traj.closure_error).max() < 1e-10


def test_what_is_between_samples_is_closed_too(tmp_path: Path) -> None:
    model = samples.slider_crank()
    traj = lw.simulate(model, *turning(model), duration=0.2, method="rk4", dt=2e-3, save_every=5)
    between = traj.at(np.linspace(0.0, 0.2, 77))
    assert np.abs(between.closure_error).max() < 1e-12
    assert np.abs(model.constraints.rate(between.q, between.v)).max() < 1e-10
    loose = lw.simulate(model, *turning(model), duration=0.2, method="rk4", dt=2e-3, stabilization=None)
    assert np.abs(loose.at([0.1111]).closure_error).max() > 1e-12
    np.testing.assert_array_equal(lw.Trajectory.load(traj.save(tmp_path / "t.npz"), model).closure_error,
                                  traj.closure_error)  # fmt: skip


def test_plots_show_the_closures() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    model = samples.slider_crank()
    figure = lw.simulate(model, *turning(model), duration=0.1).plot(("q", "closure_error", "active"))
    assert [axis.get_ylabel() for axis in figure.axes][1] == "closure error [m, 1]"
