"""Wheels, gyros, torquers, thrusters, tanks and slosh against closed forms."""

import itertools

import numpy as np
import pytest

import linkwise as lw
from linkwise import space

TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def hub(inertia=(2.0, 2.0, 2.0), mass=5.0):
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=mass, inertia=np.diag(inertia))
    return b


def still(model, **others):
    q0, v0 = model.neutral(), np.zeros(model.nv)
    return lw.simulate(model, q0, v0, **others)


def test_wheel_back_of_the_envelope():
    """A case that other simulators use: 0.2 N m from 5 s on, against a wheel at 100 rpm on a hub of 2 kg m²."""
    J = 100.0 / (6000.0 * 2 * np.pi / 60)
    b = hub()
    space.add_wheel(b, "wheel", "hub", (0, 0, 1), inertia=J)
    model = b.build()
    motor = space.Wheel(model, "wheel", lambda t, q, v, p: lw.math.where(t >= 5.0, 0.2, 0.0))
    v0 = [0, 0, 0.35, 0, 0, 0, 100 * 2 * np.pi / 60]
    motion = lw.simulate(model, model.neutral(), v0, 5.0, **TIGHT)
    motion = lw.simulate(model, motion.q[-1], motion.v[-1], 5.0, t0=5.0, control=motor, **TIGHT)
    q, v = motion.q[-1], motion.v[-1]
    assert v[2] == pytest.approx(-0.15, abs=1e-10)
    assert 2 * np.arctan2(q[3], q[0]) == pytest.approx(2.25, abs=1e-10)
    assert v[6] == pytest.approx(17.255160819, abs=1e-8)


def test_wheels_that_shake_keep_momentum():
    b = hub((900.0, 800.0, 600.0), 750.0)
    for k, name in enumerate("xyz"):
        space.add_wheel(
            b, name, "hub", np.eye(3)[k], inertia=0.16, mass=12.0, place=0.1 * np.eye(3)[k],
            static_imbalance=0.005, dynamic_imbalance=0.002,
        )  # fmt: skip
    model = b.build()
    motor = space.Wheel(model, ["x", "y", "z"], [0.2, 0.1, -0.5])
    v0 = [0.08, 0.01, 0, 0, 0, 0, *(np.array([500.0, 200.0, -150.0]) * 2 * np.pi / 60)]
    motion = lw.simulate(model, model.neutral(), v0, 2.0, control=motor, **TIGHT)
    momentum = model.centroidal.momentum(motion.q, motion.v)
    assert np.abs(momentum - momentum[0]).max() < 1e-12 * np.abs(momentum).max()


def test_jitter_as_basilisk_publishes_it():
    """Three wheels, strongly out of balance, on a hub: the attitude that its tests of coupled wheels print."""
    rpm = 2 * np.pi / 60
    J, b = 100.0 / (6000.0 * rpm), lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=750.0, com=(-2e-4, 1e-4, 0.1), inertia=np.diag([900.0, 800.0, 600.0]))
    with pytest.warns(lw.errors.ModelWarning, match="triangle"):  # a disc so thin cannot be so far out of balance
        for name, heavy in (("x", (0, 0, 1)), ("y", (0, 0, -1)), ("z", (0, 1, 0))):
            n = np.eye(3)["xyz".index(name)]
            third = np.cross(n, heavy)
            inertia = J / 2 * (np.eye(3) + np.outer(n, n)) + 0.0154 * (np.outer(n, third) + np.outer(third, n))
            com = tuple(0.048 / 12.0 * np.array(heavy))
            b.add_body(name, "hub", lw.Revolute(tuple(n)), lw.transform(xyz=tuple(0.1 * n)), 12.0, com, inertia)
    model = b.build()
    motor = space.Wheel(model, ["x", "y", "z"], [0.2, 0.1, -0.5], limit=0.2)
    v0 = [0.08, 0.01, 0, 0, 0, 0, *(np.array([500.0, 200.0, -150.0]) * rpm)]
    with pytest.warns(lw.errors.SaturationWarning):
        driven = lw.simulate(model, model.neutral(), v0, 0.05, control=motor, **TIGHT)
    q = lw.simulate(model, driven.q[-1], driven.v[-1], 0.05, **TIGHT).q[-1]
    assert q[1:4] / (1.0 + q[0]) == pytest.approx([1.98708924e-3, 2.26086385e-4, -1.60335529e-5], rel=0, abs=6e-12)


def test_a_balanced_wheel_is_the_wheel_that_is_a_body():
    J, mass, n = 0.1, 4.0, np.array([0.6, 0.0, 0.8])
    b = hub((3.0, 2.0, 2.5), 20.0)
    space.add_wheel(b, "wheel", "hub", n, inertia=J, across=J / 2, mass=mass)
    as_body = b.build()
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    across = J / 2 * (np.eye(3) - np.outer(n, n))
    b.add_body("hub", joint=lw.Free(), mass=20.0 + mass, inertia=np.diag([3.0, 2.0, 2.5]) + across)
    as_state = b.build()
    numbers = {"limit": 0.3, "top_speed": 60.0, "viscous": 2e-3, "dry": 0.01, "static": 0.02}
    torque, omega, speed = (lambda t, q, v, p: 0.5 * lw.math.cos(t)), np.array([0.1, -0.2, 0.3]), 55.0
    one = space.Wheel(as_body, "wheel", torque, **numbers)
    two = space.BalancedWheel(as_state, "hub", n, torque, start=J * (speed + n @ omega), inertia=J, **numbers)
    grid = {"output_times": np.linspace(0.0, 5.0, 6), **TIGHT}
    with pytest.warns(lw.errors.SaturationWarning):
        a = lw.simulate(as_body, as_body.neutral(), [*omega, 0, 0, 0, speed], 5.0, control=one, **grid)
    with pytest.warns(lw.errors.SaturationWarning):
        c = lw.simulate(as_state, as_state.neutral(), [*omega, 0, 0, 0], 5.0, control=two, **grid)
    np.testing.assert_allclose(c.v, a.v[:, :6], atol=1e-9)
    np.testing.assert_allclose(c.x[:, 0] / J - c.v[:, :3] @ n, a.v[:, 6], atol=1e-7)
    with pytest.raises(lw.InputError, match="inertia"):
        space.BalancedWheel(as_state, "hub", n, 0.0, viscous=1e-3)


def test_imbalance_shakes_as_the_formulas_say():
    """A mass off the axis pulls with U_s Ω², a product of inertia turns with U_d Ω²."""
    b = hub((1e12, 1e12, 1e12), 750.0)
    space.add_wheel(b, "wheel", "hub", (0, 0, 1), inertia=0.16, mass=12.0, static_imbalance=0.005)
    model = b.build()
    pull = model.forward_dynamics(model.neutral(), [0, 0, 0, 0, 0, 0, 60.0], np.zeros(7))[3:6]
    assert np.linalg.norm(pull) == pytest.approx(0.005 * 60.0**2 / 762.0, rel=1e-9)
    b = hub((900.0, 900.0, 900.0), 750.0)
    space.add_wheel(b, "wheel", "hub", (0, 0, 1), inertia=0.16, across=0.1, mass=12.0, dynamic_imbalance=0.002)
    model = b.build()
    turn = model.forward_dynamics(model.neutral(), [0, 0, 0, 0, 0, 0, 60.0], np.zeros(7))[:3]
    assert np.linalg.norm(turn) == pytest.approx(0.002 * 60.0**2 / 900.1, rel=1e-6)


def test_wheel_friction_and_top_speed():
    b = hub((1e9, 1e9, 1e9), 1e9)
    space.add_wheel(b, "wheel", "hub", (0, 0, 1), inertia=0.1)
    model = b.build()
    slow = space.Wheel(model, "wheel", 0.0, viscous=1e-3, dry=0.03)
    motion = lw.simulate(model, model.neutral(), [0] * 6 + [100.0], 20.0, control=slow, **TIGHT)
    s = 0.03 / 1e-3
    assert motion.v[-1, 6] == pytest.approx((100.0 + s) * np.exp(-20 * 1e-3 / 0.1) - s, rel=1e-7)
    fast = space.Wheel(model, "wheel", 0.5, limit=0.2, top_speed=30.0)
    with pytest.warns(lw.errors.SaturationWarning, match="wheel"):
        motion = still(model, duration=30.0, control=fast)
    assert motion.v[0, 6] == 0.0 and 29.0 < motion.v[-1, 6] < 30.0 + 1e-6
    braking = lw.simulate(model, model.neutral(), [0] * 6 + [30.0], 1.0, control=space.Wheel(model, "wheel", -0.1))
    assert braking.v[-1, 6] == pytest.approx(29.0, rel=1e-6)


def test_control_moment_gyro_turns_momentum():
    b = hub((1e5, 1e5, 1e5), 1e3)
    space.add_gyro(b, "gyro", "hub", (1, 0, 0), (0, 0, 1), inertia=0.1, gimbal_inertia=1e-3)
    model = b.build()
    gyro = space.ControlMomentGyro(model, "gyro", 0.05, gain=5e4)
    v0 = np.zeros(model.nv)
    v0[model.joints["gyro_joint"].v_slice] = 600.0
    motion = lw.simulate(model, model.neutral(), v0, 4.0, control=gyro, method="rodas4", rtol=1e-9)
    momentum = model.centroidal.momentum(motion.q, motion.v)
    assert np.abs(momentum - momentum[0]).max() < 1e-7 * 60.0
    angle = motion.q[-1, model.joints["gyro gimbal_joint"].q_slice][0]
    assert angle == pytest.approx(0.2, rel=1e-2)
    h, I = 60.0, 1e5  # the body takes what the rotor's axis gives: about y, -h sin(angle)
    assert motion.v[-1, 1] == pytest.approx(-h * np.sin(angle) / I, rel=5e-3)


def test_gyro_of_variable_speed_is_a_wheel_when_its_gimbal_rests():
    b = hub((100.0, 100.0, 100.0), 100.0)
    space.add_gyro(b, "gyro", "hub", (1, 0, 0), (0, 0, 1), inertia=0.1, gimbal_inertia=1e-3)
    model = b.build()
    gyro = space.ControlMomentGyro(model, "gyro", 0.0, spin_torque=0.5)
    motion = still(model, duration=2.0, control=gyro, method="rodas4", rtol=1e-10)
    I = 100.0 + 1e-3
    assert motion.v[-1, 0] == pytest.approx(-0.5 * 2.0 / I, rel=1e-6)


def test_torquer_is_a_cross_product():
    model = hub().build()
    q = np.array([0.8, 0.0, 0.6, 0.0, 3e6, -4e6, 5e6])
    torquer = space.Torquer(model, "hub", (10.0, -20.0, 5.0), sky=space.StillSky(angle=0.0))
    B = np.array(list(torquer.field.at(lw.spatial.vectors.Vec(*q[4:]))))
    R = model.pose(q, "hub")[:3, :3]
    found = np.array(torquer.wrench(0.0, q, np.zeros(6), [], [])["hub"], float)
    assert np.allclose(found[:3], np.cross([10, -20, 5], R.T @ B), rtol=1e-12)
    assert 1e-5 < np.linalg.norm(B) < 6e-5


def test_thruster_pulses_are_as_long_as_asked_or_not_at_all():
    model = hub(mass=10.0).build()
    push = space.Thruster("hub", (1, 0, 0), 20.0, lambda t, q, v, p: p[0], period=0.1, minimum=0.02)
    motors = space.Propulsion(model, push)
    asked = np.array([[0.5], [0.25], [0.19], [0.21], [1.0], [2.0]])
    motion = lw.simulate(model, model.neutral(), None, 1.0, control=motors, p=asked, output_times=[1.0])
    burnt = 10.0 * motion.v[:, -1, 3] / 20.0
    assert np.allclose(burnt, [0.5, 0.25, 0.0, 0.21, 1.0, 1.0], atol=1e-9)


def rocket(propellant, radius=0.3, inertia=(100.0, 100.0, 100.0), mass=500.0, capacity=None, **others):
    tank = space.Tank.sphere("propellant", radius, propellant, capacity)
    b = hub(inertia, mass - propellant)
    tank.add(b, "hub")
    model = b.build()
    return model, lambda thruster: space.Propulsion(model, thruster, tank, **others)


DV, USED, WAY = 26.555716563, 5.852284353, 7951.082177


@pytest.mark.parametrize("narrow", [1, 8])
def test_a_plume_has_the_momentum_of_the_thrust(narrow):
    """Facets all around catch all of it: together they are pushed as the thruster is, the other way."""
    b = hub()
    b.add_body("shell", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    model = b.build()
    rings, far = 120, 3.0
    edges = np.linspace(0.0, np.pi, rings + 1)
    facets = []
    for low, high in itertools.pairwise(edges):
        middle, area = (low + high) / 2, 2 * np.pi * far**2 * (np.cos(low) - np.cos(high)) / 8
        for k in range(8):
            out = [np.sin(middle) * np.cos(k * np.pi / 4), np.sin(middle) * np.sin(k * np.pi / 4), -np.cos(middle)]
            facets.append(space.Facet("shell", area, tuple(-np.array(out)), tuple(far * np.array(out))))
    thruster = space.Thruster("hub", (0, 0, 1), 20.0, plume=narrow)
    motor = space.Propulsion(model, thruster, facets=facets)
    pushed = motor.wrench(0.0, model.neutral(), np.zeros(12), (), ())
    assert np.allclose(pushed["hub"], [0, 0, 0, 0, 0, 20.0])
    assert np.allclose(np.array(pushed["shell"], float), [0, 0, 0, 0, 0, -20.0], atol=20.0 * 5.0 / rings**2)


def test_a_plume_presses_on_what_faces_it_and_falls_off_with_the_square():
    b = hub()
    b.add_body("other", joint=lw.Free(), mass=1e6, inertia=np.eye(3))
    model = b.build()

    def push(normal, place, in_motion=False):
        motor = space.Propulsion(
            model,
            space.Thruster("hub", (1, 0, 0), 20.0, place=(-1, 0, 0), plume=4),
            facets=space.Facet("other", 0.1, normal),
        )
        q = model.neutral()
        q[11:14] = place
        if in_motion:
            return 1e6 / 1e-3 * lw.simulate(model, q, duration=1e-3, control=motor).v[-1, 9:]
        return np.array(motor.wrench(0.0, q, np.zeros(12), (), ())["other"], float)

    full = 20.0 * 6.0 / (2 * np.pi) * 0.1 / 4.0  # two metres behind the nozzle
    assert np.allclose(push((1, 0, 0), (-3, 0, 0)), [0, 0, 0, -full, 0, 0])
    assert np.allclose(push((1, 0, 0), (-3, 0, 0), in_motion=True), [-full, 0, 0], rtol=1e-5)
    assert np.allclose(push(None, (-5, 0, 0)), [0, 0, 0, -full / 4, 0, 0])
    assert not push((-1, 0, 0), (-3, 0, 0)).any() and not push(None, (3, 0, 0)).any()
    aside = push((1, 0, 0), (-3, 2, 0))
    assert np.allclose(aside[3:], full / 2 * 0.25 * np.sqrt(0.5) * np.array([-1, 1, 0]) * np.sqrt(0.5))


def test_rocket_equation():
    model, propelled = rocket(20.0)
    push = propelled(space.Thruster("hub", (1, 0, 0), 22.0, impulse=230.0))
    motion = lw.simulate(model, model.neutral(), None, 600.0, control=push, **TIGHT)
    assert motion.v[-1, 3] == pytest.approx(DV, abs=1e-8)
    assert motion.x[0, 0] - motion.x[-1, 0] == pytest.approx(USED, abs=1e-9)
    assert motion.q[-1, 4] == pytest.approx(WAY, abs=1e-5)


def test_an_empty_tank_ends_the_burn():
    model, propelled = rocket(2.0)
    push = propelled(space.Thruster("hub", (1, 0, 0), 22.0, impulse=230.0))
    wheel = lw.space.BalancedWheel(model, "hub", (1, 0, 0), 0.0)  # has a state before the tank's
    motion = lw.simulate(model, model.neutral(), None, 600.0, control=[wheel, push], events=push.empty([wheel, push]))
    assert [event.name for event in motion.events] == ["propellant empty"]
    assert motion.events[0].t == pytest.approx(2.0 * 230 * 9.80665 / 22.0, rel=1e-6)
    assert motion.v[-1, 3] == pytest.approx(230 * 9.80665 * np.log(500 / 498), rel=1e-7)
    assert abs(motion.x[-1, 1]) < 1e-6
    with pytest.raises(lw.InputError, match="not part of the control"):
        push.empty([wheel])


def test_commands_see_the_states_of_elements():
    """A burn that ends when half of the propellant is left."""
    model, propelled = rocket(2.0)
    push = propelled(
        space.Thruster("hub", (1, 0, 0), 22.0, lambda t, q, v, p, x: lw.math.where(x[0] > 1.0, 1.0, 0.0), impulse=230.0)
    )
    motion = lw.simulate(model, model.neutral(), None, 600.0, control=push)
    assert motion.x[-1, 0] == pytest.approx(1.0, abs=1e-4)


def test_reboost_along_the_velocity():
    model, propelled = rocket(20.0)
    orbit = space.Orbit(7e6)
    r, v = orbit.state(0.0)

    def along(t, q, v, p):
        """Turns the body so that its x axis stays along the velocity, which gravity turns."""
        X = model.pose(q, "hub")
        speed, g = X[:2, :2] @ v[3:5], -space.EARTH.mu * q[4:6] / (q[4:6] @ q[4:6]) ** 1.5
        rate = (speed[0] * g[1] - speed[1] * g[0]) / (speed @ speed)
        return [0.0, 0.0, 100.0 * (0.5 * lw.math.atan2(v[4], v[3]) - (v[2] - rate))]

    push = propelled(space.Thruster("hub", (1, 0, 0), 22.0, impulse=230.0))
    control = [push, space.BodyMoment(model, "hub", along), space.Gravity(model)]
    half = np.sqrt(0.5)
    q0, v0 = [half, 0, 0, half, *r], [0, 0, orbit.mean_motion, np.linalg.norm(v), 0, 0]
    motion = lw.simulate(model, q0, v0, 600.0, control=control, rtol=1e-12, atol=1e-9)
    q, v = motion.q[-1], motion.v[-1]
    after = space.Orbit.from_state(q[4:], model.pose(q, "hub")[:3, :3] @ v[3:])
    assert after.elements[0] == pytest.approx(7049699.250654, abs=1e-4)
    assert after.elements[1] == pytest.approx(6.928878681e-3, abs=1e-11)


def test_jet_damping():
    model, propelled = rocket(60.0, np.sqrt(5.0), (680.0, 680.0, 680.0), 400.0)
    push = propelled(space.Thruster("hub", (-1, 0, 0), 0.25 * 230 * 9.80665, impulse=230.0, place=(2, 0, 0)))
    motion = lw.simulate(model, model.neutral(), [0, 0, 0.1, 0, 0, 0], 200.0, control=push, **TIGHT)
    assert motion.x[-1, 0] == pytest.approx(10.0, abs=1e-9)
    assert motion.v[-1, 2] == pytest.approx(0.0875, abs=1e-11)
    still = space.Propulsion(model, push.thrusters, push.tank, damping=False)
    motion = lw.simulate(model, model.neutral(), [0, 0, 0.1, 0, 0, 0], 200.0, control=still, **TIGHT)
    assert motion.v[-1, 2] == pytest.approx(0.1, abs=1e-12)


def test_contents_of_tanks():
    centre, J = space.Tank.cylinder("p", 0.5, 2.0, 30.0, 100.0, settled=True).content(50.0)
    assert np.allclose(list(centre), [0, 0, -0.5])
    assert np.allclose(J, [50 * (0.25 / 4 + 1 / 12)] * 2 + [50 * 0.125, 0, 0, 0], rtol=1e-3)
    inertia = np.tile([1.0, 2.0, 3.0, 0, 0, 0], (3, 1)) * [[0.0], [1.0], [2.0]]
    table = space.Tank.table("p", 1.5, [0.0, 1.0, 2.0], [[0, 0, 0], [0, 0, 1], [0, 0, 3]], inertia)
    centre, J = table.content(1.5)
    assert list(centre) == [0, 0, 2.0] and pytest.approx([1.5, 3.0, 4.5, 0, 0, 0]) == J


def test_slosh_pendulum():
    """Frequencies under thrust, with the hub held and free."""
    M, m, l, F, I, z = 400.0, 30.0, 0.25, 22.0, 100.0, -0.2
    a = F / M
    b = lw.ModelBuilder("held", gravity=(0, 0, -a))
    b.add_body("hub", mass=1.0)
    space.add_pendulum(b, "slosh", "hub", mass=m, length=l)
    A = b.build().state_space(np.zeros(2), np.zeros(2), np.zeros(2)).A
    assert np.abs(np.linalg.eigvals(A).imag).max() == pytest.approx(0.469041576, abs=1e-8)
    assert np.sqrt(a / l) == pytest.approx(0.469041576, abs=1e-9)
    b = hub((I, I, I), M)
    space.add_pendulum(b, "slosh", "hub", mass=m, length=l, hinge=(0, 0, z))
    model = b.build()
    thrust = space.Propulsion(model, space.Thruster("hub", (0, 0, 1), F))
    A = model.state_space(model.neutral(), np.zeros(8), np.zeros(8), control=thrust).A
    assert np.abs(np.linalg.eigvals(A).imag).max() == pytest.approx(0.474895337, abs=1e-8)


def test_slosh_particle():
    b = lw.ModelBuilder("held", gravity=(0, 0, 0))
    b.add_body("hub", mass=1.0)
    space.add_particle(b, "slosh", "hub", (1, 0, 0), mass=20.0, stiffness=1.8, damping=0.4)
    model = b.build()
    assert model.passive_force([0.1], [1.0])[0] == pytest.approx(-0.58)
    assert model.mass_matrix([0.0])[0, 0] == 20.0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda m: space.Propulsion(m, space.Thruster("hub", (1, 0, 0), 1.0, impulse=200.0)), "has no tank"),
        (lambda m: space.Tank.sphere("fuel", 0.3, 0.0), "tank is empty"),
        (lambda m: space.Tank.sphere("fuel", 0.3, 20.0, 10.0), "cannot hold so much"),
        (lambda m: space.Tank.table("fuel", 1.0, [0, 1], np.zeros((3, 3)), np.zeros((2, 6))), "do not fit"),
        (lambda m: space.Thruster("hub", (0, 0, 0), 1.0), "no direction"),
        (lambda m: space.Thruster("hub", (1, 0, 0), 1.0, period=0.1, minimum=0.2), "longer than the period"),
        (lambda m: space.Thruster("hub", (1, 0, 0), 1.0, minimum=0.2), "only pulses"),
        (lambda m: space.Propulsion(m, ()), "no thruster"),
        (lambda m: space.Thruster("hub", (0, 0, 1), 1.0, plume=0.5), "how narrow"),
        (lambda m: space.Propulsion(m, space.Thruster("hub", (0, 0, 1), 1.0, plume=4)), "facets to press on"),
        (lambda m: space.Wheel(m, (), 1.0), "no wheel"),
        (lambda m: space.Wheel(m, "hub", 1.0), "one freedom"),
        (lambda m: space.add_wheel(hub(), "w", "hub", (0, 0, 0), inertia=1.0), "no direction"),
        (lambda m: space.add_gyro(hub(), "g", "hub", (1, 0, 0), (1, 0, 0), inertia=1.0), "right angles"),
    ],
)
def test_bad_input_is_refused(make, says):
    with pytest.raises(lw.InputError, match=says):
        make(hub().build())
