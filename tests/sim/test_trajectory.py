"""Trajectories: files, samples between samples, figures."""

import builtins
import pickle

import numpy as np
import pytest

import linkwise as lw
from tests.sim.mechanisms import double_pendulum, mixed
from tests.sim.test_attach import CATCH, LET_GO, wagons


@pytest.fixture(scope="module")
def motion():
    model = mixed()
    q0, v0 = model.random_configuration(1), np.random.default_rng(1).normal(size=model.nv)
    return lw.simulate(model, q0, v0, 0.5, output_times=np.linspace(0.0, 0.5, 51), rtol=1e-11)


@pytest.fixture(scope="module")
def batch():
    model = double_pendulum()
    q0 = np.random.default_rng(0).uniform(-1, 1, (2, 3, 2))
    return lw.simulate(model, q0, None, 0.5, output_times=np.linspace(0.0, 0.5, 11))


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
@pytest.mark.parametrize("which", ["motion", "batch"])
def test_files_bring_back_the_same_numbers(tmp_path, request, which, suffix):
    original = request.getfixturevalue(which)
    path = original.save(tmp_path / f"motion{suffix}")
    again = lw.Trajectory.load(path, model=original.model)
    np.testing.assert_array_equal(again.t, original.t)
    for name in ("q", "v", "x", "vdot", "tau", "energy", "poses"):
        np.testing.assert_array_equal(getattr(again, name), getattr(original, name))
    assert again.columns == original.columns
    if suffix == ".npz":
        assert again.method == original.method
        np.testing.assert_array_equal(again.status, original.status)


def same_events(found, expected):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert (one.name, one.t, one.state) == (other.name, other.t, other.state)
        assert (one.impulses is None) == (other.impulses is None)
        for side in ("q", "v", "q_after", "v_after", "impulses"):
            np.testing.assert_array_equal(getattr(one, side), getattr(other, side))
            assert np.shape(getattr(one, side)) == np.shape(getattr(other, side))


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_files_bring_back_events(tmp_path, shape):
    """Of a mechanism that is caught and let go, so that some events have impulses and others none."""
    start = np.broadcast_to([1.0, 0.0], (*shape, 2)) * (1.0 + np.arange(np.prod(shape, dtype=int)).reshape(*shape, 1))
    tick = lw.Event(lambda t, q, v, p: t - 0.25, name="tick ✓")
    motion = lw.simulate(
        wagons(), np.zeros((*shape, 2)), start, duration=2.0, events=[CATCH, LET_GO, tick], released="coupler"
    )
    assert {event.impulses is None for event in motion.events} == {True, False}
    again = lw.Trajectory.load(motion.save(tmp_path / "motion.npz"), motion.model)
    same_events(again.events, motion.events)
    for name in ("steps", "rejected", "status"):
        np.testing.assert_array_equal(getattr(again, name), getattr(motion, name))
        assert type(getattr(again, name)) is type(getattr(motion, name))
    with pytest.warns(UserWarning, match="cannot hold events"):
        path = motion.save(tmp_path / "motion.csv")
    assert lw.Trajectory.load(path).events == []


def test_files_bring_back_reasons(tmp_path, motion):
    ended = lw.Trajectory(motion.t, motion.q, motion.v, status="failed", reasons={(1, 2): "too stiff"}, steps=7)
    again = lw.Trajectory.load(ended.save(tmp_path / "motion.npz"))
    assert (again.reasons, again.steps, again.status, again.events) == ({(1, 2): "too stiff"}, 7, "failed", [])


def test_files_of_another_kind_are_refused(tmp_path, motion):
    with pytest.raises(lw.InputError, match="npz"):
        motion.save(tmp_path / "motion.txt")
    for name, text in (("a.csv", "x,y\n1,2\n"), ("b.npz", "no")):
        (tmp_path / name).write_text(text)
        with pytest.raises(lw.InputError, match="not a trajectory"):
            lw.Trajectory.load(tmp_path / name)


def test_a_loaded_trajectory_needs_the_model_for_poses(tmp_path, motion):
    again = lw.Trajectory.load(motion.save(tmp_path / "motion.npz"))
    with pytest.raises(lw.LinkwiseError, match="model"):
        _ = again.poses


def test_derived_quantities_are_those_of_the_model(motion):
    model = motion.model
    tau = model.inverse_dynamics(motion.q, motion.v, motion.vdot)
    np.testing.assert_allclose(tau, 0.0, atol=1e-10)
    energy = model.kinetic_energy(motion.q, motion.v) + model.potential_energy(motion.q)
    np.testing.assert_allclose(motion.energy, energy, rtol=1e-12)
    np.testing.assert_allclose(motion.pose("ball"), motion.poses[:, 1], atol=1e-14)


def test_between_the_samples(motion):
    times = np.linspace(0.003, 0.497, 77)
    exact = lw.simulate(motion.model, motion.q[0], motion.v[0], 0.5, output_times=times, rtol=1e-12)
    found = motion.at(times)
    np.testing.assert_allclose(found.q, exact.q, atol=2e-6)
    np.testing.assert_allclose(found.v, exact.v, atol=2e-5)
    on_samples = motion.at(motion.t)
    np.testing.assert_allclose(on_samples.q, motion.q, atol=1e-13)
    with pytest.raises(lw.InputError, match="outside"):
        motion.at([0.6])


def test_between_the_samples_of_a_batch(batch):
    found = batch.at([0.123, 0.4])
    assert found.q.shape == (2, 3, 2, 2)
    np.testing.assert_allclose(found.q[1, 2], batch[1, 2].at([0.123, 0.4]).q, atol=1e-14)


def test_pickled_with_everything(batch):
    again = pickle.loads(pickle.dumps(batch))
    for name in ("t", "q", "v", "vdot", "tau", "energy", "poses"):
        np.testing.assert_array_equal(getattr(again, name), getattr(batch, name))
    assert again.status.tolist() == batch.status.tolist()
    with pytest.raises(lw.InputError, match="outside"):
        batch.at([np.nan])


def test_plot(motion, batch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = motion.plot()
    assert [axis.get_ylabel().split()[0] for axis in figure.axes] == ["q", "v", "τ", "energy"]
    assert len(batch.plot(["q"], joints=["upper_joint"]).axes[0].lines) == 6
    for joints in (["nonsense"], ["upper_joint", "nonsense"]):
        with pytest.raises(lw.errors.UnknownNameError, match=r"'nonsense'[\s\S]*upper_joint"):
            batch.plot(["q"], joints=joints)
    matplotlib.pyplot.close("all")


def test_xarray_is_asked_for_by_name(motion, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "xarray":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(lw.LinkwiseError, match="pip install xarray"):
        motion.to_xarray()


def test_xarray(batch):
    pytest.importorskip("xarray")
    data = batch.to_xarray()
    assert data["q"].dims == ("batch0", "batch1", "time", "coordinate")
    np.testing.assert_array_equal(data["energy"].values, batch.energy)


def test_shown_as_text(motion, batch):
    assert repr(motion) == "<Trajectory: 51 samples, 0 … 0.5 s, done>"
    assert "batch (2, 3)" in repr(batch)
    assert len(batch) == 11
    with pytest.raises(lw.InputError, match="not a batch"):
        motion[0]


def test_a_trajectory_made_by_hand_says_what_it_lacks():
    arm = double_pendulum()
    t, q = np.array([0.0, 1.0]), np.zeros((2, arm.nq))
    with pytest.raises(lw.LinkwiseError, match=r"has no vdot[\s\S]*derived="):
        lw.Trajectory(t, q, q, model=arm).at(0.5)
    assert lw.Trajectory(t, q, q, model=arm, derived={"vdot": q}).at(0.5).q.shape == (1, arm.nq)


# Without velocities.
def test_velocities_by_differences_are_of_second_order():
    """Against a simulation of a body that tumbles on a hinge: quaternions, uneven times, both ends."""
    b = lw.ModelBuilder("tumbler", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=2.0, inertia=np.diag([0.1, 0.2, 0.25]))
    b.add_body("flap", "hub", lw.Revolute((0, 1, 0)), mass=1.0, com=(0.3, 0, 0), inertia=0.01 * np.eye(3))
    model = b.build()
    errors = []
    for n in (101, 201):
        s = np.linspace(0.0, 1.0, n)
        motion = lw.simulate(
            model, v0=[1, 2, -1, 0.5, 0, 0, 2], duration=1.0, output_times=s + 0.1 * s * (1 - s), rtol=1e-11
        )
        alone = lw.Trajectory(motion.t, motion.q, model=model)
        errors.append(np.abs(alone.v - motion.v).max())
    assert errors[0] < 1e-2 and 3.5 < errors[0] / errors[1] < 4.5


def test_velocities_without_a_model_are_those_of_numpy():
    t = np.array([0.0, 0.1, 0.15, 0.4, 0.5])
    q = np.random.default_rng(3).normal(size=(2, 5, 3))
    assert np.allclose(lw.Trajectory(t, q).v, np.gradient(q, t, axis=-2, edge_order=2))


def test_velocities_keep_to_their_side_of_a_jump():
    t, q = [0.0, 1.0, 2.0, 2.0, 3.0, 4.0], [[0.0], [1.0], [2.0], [5.0], [4.0], [3.0]]
    assert np.allclose(lw.Trajectory(t, q).v[:, 0], [1, 1, 1, -1, -1, -1])
    with pytest.raises(lw.InputError, match="differences"):
        lw.Trajectory([0.0, -1.0], [[0.0], [1.0]])
