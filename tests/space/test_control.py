"""Attitude control and sensors."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise import space
from linkwise.spatial.vectors import Vec

AXES = np.array([[1, 0, 1], [0, 1, 1], [-1, 0, 1], [0, -1, 1]]) / np.sqrt(2)
I = np.diag([12.0, 10.0, 8.0])


def craft(wheels=True):
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=100.0, inertia=I)
    for k, axis in enumerate(AXES if wheels else ()):
        space.add_wheel(b, f"wheel{k}", "hub", axis, inertia=0.02, mass=1.0)
    return b.build()


BARE, WHEELED = craft(False), craft()


def turned(model, degrees, axis):
    q = model.neutral()
    x, y, z, w = Rotation.from_rotvec(np.radians(degrees) * np.array(axis) / np.linalg.norm(axis)).as_quat()
    q[:4] = w, x, y, z
    return q


@pytest.mark.parametrize("law", [space.QuaternionFeedback, space.MRPFeedback])
def test_feedback_settles_from_any_attitude(law):
    kp = 0.5 if law is space.QuaternionFeedback else 2.0
    target = [np.cos(0.2), 0, np.sin(0.2), 0]
    control = space.BodyMoment(BARE, "hub", law(BARE, "hub", target, kp=kp, kd=4.0, inertia=I))
    q0 = np.array([turned(BARE, angle, (1, 2, -1)) for angle in (30.0, 150.0, 210.0, 330.0)])
    motion = lw.simulate(BARE, q0, [0.05, -0.03, 0.02, 0, 0, 0], 300.0, control=control)
    off = np.abs(motion.q[:, -1, :4] @ target)
    assert (off > 1 - 1e-6).all()
    assert np.abs(motion.v[:, -1, :3]).max() < 1e-4


def test_small_angles_oscillate_as_the_gains_say():
    law = space.QuaternionFeedback(BARE, "hub", kp=0.48, kd=0.0)
    A = BARE.state_space(BARE.neutral(), np.zeros(6), np.zeros(6), control=space.BodyMoment(BARE, "hub", law)).A
    found = np.sort(np.unique(np.round(np.abs(np.linalg.eigvals(A).imag), 9)))
    assert np.allclose(found[-3:], np.sqrt(0.48 / np.array([12.0, 10.0, 8.0])), atol=1e-8)


def test_mrp_is_scipys():
    for rotation in Rotation.random(5, rng=1):
        x, y, z, w = rotation.as_quat()
        assert np.allclose(list(space.mrp((w, x, y, z))), rotation.as_mrp(), atol=1e-14)


def test_four_wheels_share_and_give_what_the_law_asks_for():
    asked = [0.1, -0.05, 0.02]
    share = space.WheelShares(lambda t, q, v, p: asked, AXES)
    torques = np.array(share(0.0, (), (), ()))
    assert np.allclose(-AXES.T @ torques, asked)
    assert np.allclose(torques, -np.linalg.lstsq(AXES.T, asked, rcond=None)[0])
    law = space.QuaternionFeedback(WHEELED, "hub", kp=0.5, kd=4.0)
    motors = space.Wheel(WHEELED, [f"wheel{k}" for k in range(4)], space.WheelShares(law, AXES))
    motion = lw.simulate(WHEELED, turned(WHEELED, 40.0, (1, 1, 0)), None, 200.0, control=motors)
    assert abs(motion.q[-1, 0]) > 1 - 1e-6
    momentum = WHEELED.centroidal.momentum(motion.q, motion.v)
    assert np.abs(momentum[:, :3]).max() < 1e-9


def corner_thrusters():
    made = []
    for x in (-1, 1):
        for y in (-1, 1):
            for z in (-1, 1):
                for axis in range(3):
                    place, direction = np.array([x, y, z], float), np.zeros(3)
                    direction[axis] = -place[axis]
                    made.append(space.Thruster("hub", tuple(direction), 2.0, place=tuple(place)))
    return made


def test_thrusters_share_by_linear_programme_and_by_least_squares():
    thrusters = corner_thrusters()
    A = space.thruster_matrix(BARE, thrusters, "hub")
    wrench = np.array([0.3, -0.2, 0.1, 1.0, 0.5, -0.4])
    commands = space.least_fuel(A, wrench)
    assert np.allclose(A @ commands, wrench) and (commands >= 0).all() and (commands <= 1).all()
    best = linprog(np.ones(24), A_eq=A, b_eq=wrench, bounds=(0, 1)).fun
    assert commands.sum() == pytest.approx(best)
    near = space.bounded_shares(A, wrench)
    assert np.allclose(A @ near, wrench, atol=1e-6) and (near >= 0).all()
    with pytest.raises(lw.InputError, match="cannot give this wrench"):
        space.least_fuel(A, 1e3 * wrench)
    traced = space.ThrusterShares(lambda t, q, v, p: wrench, A)(0.0, (), (), ())
    assert np.allclose(A @ traced, wrench) and np.min(traced) >= -1e-15


def test_thrusters_turn_a_craft():
    thrusters = corner_thrusters()
    A = space.thruster_matrix(BARE, thrusters, "hub")[:3]
    share = space.ThrusterShares(space.QuaternionFeedback(BARE, "hub", kp=0.5, kd=4.0), A)
    made = [
        space.Thruster("hub", each.direction, 2.0, lambda t, q, v, p, k=k: share(t, q, v, p)[k], each.place)
        for k, each in enumerate(thrusters)
    ]
    motion = lw.simulate(BARE, turned(BARE, 20.0, (0, 1, 1)), None, 150.0, control=space.Propulsion(BARE, made))
    assert abs(motion.q[-1, 0]) > 1 - 1e-6


def test_shares_refuse_what_cannot_be_done():
    with pytest.raises(lw.InputError, match="every axis"):
        space.WheelShares(lambda *a: [0, 0, 0], np.eye(3)[:2])
    with pytest.raises(lw.InputError, match="every way"):
        space.ThrusterShares(lambda *a: [0, 0, 0], np.eye(3))


def test_dumping_and_detumbling():
    B, h = Vec(2e-5, -1e-5, 3e-5), Vec(1.0, 2.0, -0.5)
    moment = np.array(list(space.dumping_dipole(B, h, 1e-3).cross(B)))
    b = np.array(list(B)) / np.linalg.norm(list(B))
    across = np.array(list(h)) - b * (b @ list(h))
    assert np.allclose(moment, -1e-3 * across)
    assert np.allclose(list(space.detumbling_dipole(B, h, 1e-3).cross(B)), -1e-3 * across)
    torquer = space.Torquer(BARE, "hub", 0.0)
    orbit = space.Orbit(7e6, i=1.2)
    placed = torquer.along(orbit)

    def law(t, q, v, p):
        return list(space.detumbling_dipole(placed.field_at(t, q, (), p), Vec(*v[:3]), 0.05))

    coils = space.Torquer(BARE, "hub", law)
    motion = lw.simulate(BARE, BARE.neutral(), [0.02, -0.03, 0.01, 0, 0, 0], 6000.0, control=coils, frame=orbit)
    assert np.linalg.norm(motion.v[-1, :3]) < 0.1 * np.linalg.norm(motion.v[0, :3])


def test_rates_from_attitudes():
    spin, dt = np.array([0.0, 0.0, 0.2]), 0.1
    free = lw.simulate(BARE, BARE.neutral(), [*spin, 0, 0, 0], 10.0, output_times=np.arange(101) * dt)
    rate = np.array(list(space.rate_between(free.q[50, :4], free.q[51, :4], dt)))
    assert np.allclose(rate, free.v[50:52, :3].mean(axis=0), atol=1e-4)
    rng = np.random.default_rng(0)
    seen = space.StarTracker(BARE, "hub", noise=1e-4).read(free, rng)
    estimate = space.RateFilter(dt, smooth=0.7)
    state, errors = estimate.start(), []
    for k in range(101):
        state = estimate(state, seen[k])
        errors.append(np.linalg.norm(np.array(state[4:]) - free.v[k, :3]))
    raw = [
        np.linalg.norm(np.array(list(space.rate_between(seen[k], seen[k + 1], dt))) - free.v[k, :3])
        for k in range(50, 100)
    ]
    assert np.mean(errors[50:]) < 0.5 * np.mean(raw) and np.mean(errors[50:]) < 1.5e-3


ORBIT = space.Orbit(7e6, i=1.0)


@pytest.fixture(scope="module")
def motion():
    q0 = np.array([turned(BARE, 50.0, (1, 2, 3)), turned(BARE, 10.0, (0, 0, 1))])
    return lw.simulate(
        BARE, q0, [0.01, 0.02, -0.01, 0.1, 0, 0], 6000.0, frame=ORBIT, output_times=np.linspace(0, 6000, 301)
    )


def test_sensors_read_what_is(motion):
    R = [Rotation.from_quat(q[:, [1, 2, 3, 0]]) for q in motion.q]
    tracked = space.StarTracker(BARE, "hub").read(motion)
    assert np.allclose(np.abs((tracked * motion.q[..., :4]).sum(-1)), 1.0)
    assert np.allclose(space.Gyro(BARE, "hub").read(motion), motion.v[..., :3])
    place, speed = ORBIT.state(motion.t)
    gnss = space.GNSS(BARE, "hub", orbit=ORBIT).read(motion)
    assert np.allclose(gnss[..., :3], place + motion.q[..., 4:])
    assert np.allclose(
        gnss[..., 3:], [speed + a.apply(b) for a, b in zip(R, motion.v[..., 3:], strict=True)], atol=1e-6
    )
    sun = space.SunSensor(BARE, "hub", orbit=ORBIT).read(motion)
    lit = space.sunlit(Vec(*(place + motion.q[0, :, 4:]).T), Vec(1.495978707e11, 0.0, 0.0), 6378137.0) > 0.5
    assert ((np.linalg.norm(sun[0], axis=-1) > 0.5) == lit).all() and 100 < lit.sum() < 300
    assert np.allclose(sun[0, lit], R[0].inv().apply([1.0, 0, 0])[lit], atol=1e-4)
    narrow = space.SunSensor(BARE, "hub", boresight=(1, 0, 0), half_angle=0.5, orbit=ORBIT).read(motion)
    inside = np.linalg.norm(narrow[0], axis=-1) > 0
    assert (sun[0, inside, 0] > np.cos(0.5)).all() and inside.sum() < lit.sum()
    B = space.Magnetometer(BARE, "hub", orbit=ORBIT).read(motion)
    assert B.shape == (2, 301, 3) and np.allclose(*np.linalg.norm(B, axis=-1), rtol=1e-3)


def test_noise_is_as_large_as_said_and_repeats(motion):
    clean = space.Gyro(BARE, "hub").read(motion)
    noisy = space.Gyro(BARE, "hub", noise=1e-3)
    one, two = noisy.read(motion, 7), noisy.read(motion, 7)
    assert (one == two).all()
    assert (one - clean).std() == pytest.approx(1e-3, rel=0.1)
    walked = space.Gyro(BARE, "hub", walk=1e-5)
    ends = [(walked.read(motion, seed) - clean)[..., -1, :] for seed in range(60)]
    assert np.std(ends) == pytest.approx(1e-5 * np.sqrt(6000.0), rel=0.15)
    tracked = space.StarTracker(BARE, "hub", noise=1e-3).read(motion, 3)
    angles = 2 * np.arccos(np.clip(np.abs((tracked * motion.q[..., :4]).sum(-1)), 0, 1))
    assert angles.mean() == pytest.approx(1e-3 * np.sqrt(8 / np.pi), rel=0.1)


@pytest.mark.parametrize("sensor", [space.GNSS, space.SunSensor, space.Magnetometer])
def test_sensors_that_do_not_know_the_orbit_of_a_falling_world_are_refused(motion, sensor):
    lost = sensor(BARE, "hub")
    with pytest.raises(lw.InputError, match="inside Earth"):
        lost.read(motion)
    control = lw.Sampled(BARE, lambda t, z, p: [0.0 * z[0]] * BARE.nv, 1.0, sensors=[lost.in_loop()])
    with pytest.raises(lw.InputError, match="does not know the orbit"):
        lw.simulate(BARE, duration=1.0, control=control, frame=ORBIT)
    place, speed = ORBIT.state(0.0)
    inertial = lw.simulate(BARE, [1, 0, 0, 0, *place], [0, 0, 0, *speed], 10.0, control=space.Gravity(BARE))
    assert np.isfinite(lost.read(inertial)).all()


def test_sensors_in_the_loop():
    """Attitude by a star tracker and a gyro with noise, at ten samples a second, the tracker at one and late."""
    sensors = [
        space.StarTracker(BARE, "hub", noise=1e-4).in_loop(rate=1.0, delay=0.5, seed=1),
        space.Gyro(BARE, "hub", noise=1e-4, bias=1e-5, walk=1e-7).in_loop(seed=2),
    ]

    def control(t, z, p):
        sign = lw.math.where(z[0] < 0.0, -1.0, 1.0)
        return [*(-2.0 * 0.3 * sign * z[1:4] - 3.0 * z[4:7]), 0.0, 0.0, 0.0]

    law = lw.Sampled(BARE, control, 10.0, sensors=sensors)
    q0 = turned(BARE, 20.0, (1, 2, 3))
    one, two = (lw.simulate(BARE, q0, None, 200.0, control=law, method="rk4", dt=0.05).q[-1] for _ in range(2))
    assert (one == two).all()
    off = 2 * np.arccos(min(abs(one[0]), 1.0))
    assert 1e-7 < off < 2e-3
    with pytest.raises(lw.InputError, match="stands still"):
        pytest.importorskip("erfa")
        space.SunSensor(BARE, "hub", sky=space.Sky("2026-01-01", 100.0)).in_loop()


def test_range_and_bearing():
    b = lw.ModelBuilder("two", gravity=(0, 0, 0))
    for name in ("chaser", "target"):
        b.add_body(name, joint=lw.Free(), mass=10.0, inertia=np.eye(3))
    model = b.build()
    q = model.neutral()
    q[model.joints["target_joint"].q_slice.start + 4 :][:3] = 3.0, 4.0, 12.0
    far, azimuth, elevation = space.RangeAndBearing(model, "chaser", "target").measure(0.0, q, np.zeros(12))
    assert (far, azimuth, elevation) == pytest.approx((13.0, np.arctan2(4, 3), np.arctan2(12, 5)))
