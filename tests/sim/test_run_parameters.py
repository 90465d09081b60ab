"""Run-time parameters of a run: whatever is read off the trajectory is of the mechanism that moved."""

import pickle

import numpy as np
import pytest

import linkwise as lw

NAMES = ["arm.mass", "arm.com", "arm.xyz", "hand.rpy", "gravity"]
SIZES = [1, 3, 3, 3, 3]


def machine(mass=1.0, com=(0.3, 0.0, 0.1), xyz=(0.4, 0.1, 0.0), rpy=(0.0, 0.0, 0.0), gravity=(0.0, 0.0, -9.81)):
    b = lw.ModelBuilder("machine", gravity=gravity)
    I = np.diag([0.1, 0.2, 0.3])
    b.add_body("turret", joint=lw.Revolute(axis=(0, 0, 1)), mass=2.0, com=(0.1, 0, 0), inertia=I)
    at = lw.transform(xyz=xyz)
    b.add_body("arm", "turret", lw.Revolute(axis=(0, 1, 0)), at, mass=mass, com=com, inertia=I)
    at = lw.transform(xyz=(0.5, 0, 0), rpy=rpy)
    b.add_body("hand", "arm", lw.Spherical(), at, mass=0.5, com=(0.0, 0.2, 0.0), inertia=I)
    b.add_frame("tip", "hand", lw.transform(xyz=(0.1, 0.2, 0.3)))
    return b.build()


def sets(count):
    rng = np.random.default_rng(0)
    return [
        {
            "mass": float(rng.uniform(0.5, 4.0)),
            "com": tuple(rng.uniform(-0.3, 0.3, 3)),
            "xyz": tuple(rng.uniform(-0.5, 0.5, 3)),
            "rpy": tuple(rng.uniform(-1.0, 1.0, 3)),
            "gravity": tuple(rng.uniform(-5.0, 5.0, 3)),
        }
        for _ in range(count)
    ]


def flat(values):
    return np.concatenate([np.ravel(values[k]) for k in ("mass", "com", "xyz", "rpy", "gravity")])


READINGS = {
    "pose": lambda motion: motion.pose("tip"),
    "poses": lambda motion: motion.poses,
    "energy": lambda motion: motion.energy,
    "vdot": lambda motion: motion.vdot,
    "IMU": lambda motion: lw.IMU("tip").read(motion),
    "ForceTorque": lambda motion: lw.ForceTorque("arm_joint").read(motion),
    "Encoder": lambda motion: lw.Encoder().read(motion),
}


def push(t, q, v, p):
    return [0.3, lw.math.sin(t), 0.0, 0.1, 0.0]


@pytest.fixture(scope="module")
def run():
    model = machine().with_parameters(NAMES)
    assert [p.slice.stop - p.slice.start for p in model.parameters] == SIZES
    q0, v0 = model.random_configuration(1), np.linspace(-1.0, 1.0, model.nv)
    chosen = sets(3)
    options = {"duration": 0.4, "output_times": np.linspace(0.0, 0.4, 9), "rtol": 1e-10, "control": push}
    batch = lw.simulate(model, q0, v0, p=np.stack([flat(c) for c in chosen]), **options)
    single = lw.simulate(model, q0, v0, p=flat(chosen[1]), **options)
    built = [lw.simulate(machine(**c), q0, v0, **options) for c in chosen]
    return batch, single, built


@pytest.mark.parametrize("what", READINGS)
def test_what_is_read_belongs_to_the_run(run, what, tmp_path):
    batch, single, built = run
    read = READINGS[what]
    again = lw.Trajectory.load(single.save(tmp_path / "motion.npz"), single.model)
    table = lw.Trajectory.load(batch.save(tmp_path / "motion.csv"), batch.model)
    everything = [(single, 1), (again, 1), (pickle.loads(pickle.dumps(batch))[2], 2), (table[0], 0), (batch[0], 0)]
    for motion, k in everything:
        np.testing.assert_allclose(read(motion), read(built[k]), atol=1e-7)
    np.testing.assert_allclose(read(batch), np.stack([read(each) for each in built]), atol=1e-7)
    times = [0.05, 0.2]
    np.testing.assert_allclose(read(batch.at(times))[2], read(built[2].at(times)), atol=1e-7)
    np.testing.assert_allclose(read(batch[1:])[1], read(built[2]), atol=1e-7)


def test_parameters_are_kept(run, tmp_path):
    batch, single, _ = run
    assert batch.p.shape == (3, 13)
    assert single.p.shape == (13,)
    for name in ("motion.npz", "motion.csv"):
        np.testing.assert_array_equal(lw.Trajectory.load(batch.save(tmp_path / name)).p, batch.p)
    np.testing.assert_array_equal(batch[1:].p, batch.p[1:])


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_a_run_keeps_its_own_copy(method):
    model = machine().with_parameters(["arm.mass"])
    q0, p = model.neutral(), np.array([[2.0], [3.0]])
    motion = lw.simulate(model, q0, None, 0.1, p=p, method=method)
    expected = lw.simulate(model, q0, None, 0.1, p=p, method=method).energy
    p[:] = 100.0
    np.testing.assert_array_equal(motion.energy, expected)


def test_control_parameters_are_not_the_models():
    motion = lw.simulate(machine(), machine().neutral(), None, 0.1, control=lambda t, q, v, p: [p[0]] * 5, p=[1.0])
    assert motion.model_parameters is None
    np.testing.assert_allclose(motion.pose("tip"), machine().pose(motion.q, "tip"))
