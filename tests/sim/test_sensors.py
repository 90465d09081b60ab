"""Sensors: what they read without noise, and that a seed repeats the noise."""

import numpy as np
import pytest

import linkwise as lw
from tests.sim.mechanisms import double_pendulum, mixed, pendulum


def test_encoder_counts_and_repeats():
    motion = lw.simulate(double_pendulum(), [0.3, 0.1], None, 1.0, output_times=np.linspace(0, 1, 101))
    np.testing.assert_array_equal(lw.Encoder().read(motion), motion.q)
    coarse = lw.Encoder(["lower_joint"], counts=64).read(motion)
    assert coarse.shape == (101, 1)
    steps = coarse / (2 * np.pi / 64)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)
    assert np.abs(coarse[:, 0] - motion.q[:, 1]).max() <= np.pi / 64 + 1e-12
    noisy = lw.Encoder(noise=0.01, bias=0.1)
    np.testing.assert_array_equal(noisy.read(motion, 7), noisy.read(motion, 7))
    error = noisy.read(motion, 7) - motion.q
    assert error.std(axis=0) == pytest.approx(0.01, rel=0.3)
    assert (np.abs(error.mean(axis=0)) > 0.01).any()


def test_imu_at_rest_shows_gravity_and_in_free_fall_nothing():
    model = pendulum()
    still = lw.simulate(model, [-np.pi / 2], None, 0.1)
    reading = lw.IMU("mass").read(still)
    np.testing.assert_allclose(reading[:, :3], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(reading[:, 3:], axis=1), 9.81)
    np.testing.assert_allclose(reading[:, 3], -9.81)  # x hangs down
    b = lw.ModelBuilder("stone")
    b.add_body("stone", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    stone = b.build()
    falling = lw.simulate(stone, stone.neutral(), [0.1, 0.2, 0.3, 1, 0, 0], 1.0)
    reading = lw.IMU("stone").read(falling)
    np.testing.assert_allclose(reading[:, 3:], 0.0, atol=1e-10)
    np.testing.assert_allclose(reading[:, :3], np.broadcast_to([0.1, 0.2, 0.3], (len(falling), 3)), atol=1e-9)
    noisy = lw.IMU("stone", gyro_noise=0.1, accel_noise=1.0, accel_bias=5.0)
    np.testing.assert_array_equal(noisy.read(falling, 3), noisy.read(falling, 3))


def test_force_sensor_agrees_with_inverse_dynamics():
    model = mixed()
    q0, v0 = model.random_configuration(2), np.random.default_rng(2).normal(size=model.nv)

    def push(t, q, v, p):
        return [0.0] * 6 + [0.5] * (model.nv - 6)

    motion = lw.simulate(model, q0, v0, 0.3, control=push, output_times=np.linspace(0, 0.3, 7))
    tau = model.inverse_dynamics(motion.q, motion.v, motion.vdot)
    for joint in ("ball_joint", "base_joint"):
        found = lw.ForceTorque(joint).read(motion)
        part = model.joints[joint].v_slice
        np.testing.assert_allclose(found[:, : part.stop - part.start], tau[:, part], atol=1e-9)
    hinge = model.joints["hinge_joint"]
    along = lw.ForceTorque("hinge_joint").read(motion)[:, :3] @ (np.array([1.0, 1.0, 0.0]) / np.sqrt(2))
    np.testing.assert_allclose(along, tau[:, hinge.v_slice][:, 0], atol=1e-9)
    noisy = lw.ForceTorque("hinge_joint", noise=2.0)
    np.testing.assert_array_equal(noisy.read(motion, 1), noisy.read(motion, 1))


def test_force_sensor_feels_thrusters_further_out(tmp_path):
    model = mixed()
    q0, v0 = model.random_configuration(2), np.random.default_rng(2).normal(size=model.nv)
    burn = lw.space.Propulsion(model, lw.space.Thruster("rod", (1, 0, 1), 3.0, place=(0.1, 0.2, 0.0)))
    motion = lw.simulate(model, q0, v0, 0.3, control=burn, output_times=np.linspace(0, 0.3, 7))
    for read in (motion, lw.Trajectory.load(motion.save(tmp_path / "motion.npz"), model)):
        found = lw.ForceTorque("base_joint").read(read)
        np.testing.assert_allclose(found, 0.0, atol=1e-9)  # the base is free
        ball = lw.ForceTorque("ball_joint").read(read)[:, :3]
        np.testing.assert_allclose(ball, 0.0, atol=1e-9)  # and the ball joint has no motor
        assert np.abs(lw.ForceTorque("ball_joint").read(read)[:, 3:]).max() > 0.1
    assert motion.f_ext.shape == (7, len(model.bodies), 6)


def test_sensors_read_batches():
    model = double_pendulum()
    motion = lw.simulate(model, np.random.default_rng(0).uniform(-1, 1, (4, 2)), None, 0.5)
    assert lw.IMU("lower", accel_bias=1.0).read(motion, 0).shape == (4, 101, 6)
    assert lw.ForceTorque("lower_joint").read(motion).shape == (4, 101, 6)
