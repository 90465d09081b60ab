"""Craft in orbit: gravity, drag and light on links, in inertial axes and in a world that falls along an orbit."""

import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise import space
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.quaternions import exponential, from_matrix, multiply, normalized
from linkwise.spatial.vectors import Vec

CIRCLE = space.Orbit(7e6)
TILTED = space.Orbit(7e6, 0.01, *np.radians([51.6, 40.0, 60.0, 10.0]))


def craft(inertia=(10.0, 12.0, 8.0), mass=100.0):
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=mass, inertia=np.diag(inertia))
    return b.build()


ONE = craft()
AFTER_ONE_TURN = [9.997462082691, -208.496535325414, 4.999999998187]


@pytest.mark.parametrize("spin", [(0.0, 0.0, 0.0), (2e-3, 1e-3, -1.5e-3)])
def test_beside_an_orbit_to_the_nanometre(spin):
    motion = lw.simulate(
        ONE, [1, 0, 0, 0, 10, -20, 5], [*spin, 0, 0, 0], CIRCLE.period, frame=CIRCLE, rtol=1e-13, atol=1e-13
    )
    assert np.abs(motion.q[-1, 4:] - AFTER_ONE_TURN).max() < 1e-9


def test_beside_an_orbit_in_single_precision():
    q0, v0 = np.array([1, 0, 0, 0, 10, -20, 5], np.float32), np.zeros(6, np.float32)
    # Steps of this size err by 2e-5 m. Velocities are kept to 1e-8 m/s, and what each of N steps rounds off adds up:
    # over numbers of steps near 200 the largest error is 0.6 mm, near 5000 it is 3 mm.
    steps = {"method": "rk4", "dt": CIRCLE.period / 200, "save_every": 200}
    motion = lw.simulate(ONE, q0, v0, CIRCLE.period, frame=CIRCLE, **steps)
    assert motion.q.dtype == np.float32
    assert np.abs(motion.q[-1, 4:] - AFTER_ONE_TURN).max() < 2e-3


def test_a_batch_has_an_orbit_each():
    orbits = space.Orbit([7e6, 8e6, 9e6], [0.0, 0.1, 0.2], 0.5, anomaly=[0.0, 1.0, 2.0])
    q0, v0 = [1, 0, 0, 0, 10, -20, 5], np.zeros(6)
    both = lw.simulate(ONE, q0, v0, 3000.0, frame=orbits, rtol=1e-11)
    for k in range(3):
        one = space.Orbit(*orbits.elements[k])
        alone = lw.simulate(ONE, q0, v0, 3000.0, frame=one, rtol=1e-11)
        assert np.allclose(both.q[k, -1], alone.q[-1], rtol=0, atol=1e-6)
        r, v = one.state(0.0)
        far = space.Orbit.from_state(r + q0[4:], v).state(3000.0)[0] - one.state(3000.0)[0]
        assert np.allclose(alone.q[-1, 4:], far, rtol=0, atol=1e-7)


# By a Runge-Kutta method of order eight in eighty bits; the last digits of what is printed elsewhere differ by 6e-6 m.
FLATTENED = np.array([5472904.8981987, 4291673.9669251, 394613.6367061])


def test_oblateness_for_a_day():
    gravity, tight = space.Gravity(ONE, "J2"), {"rtol": 1e-13}
    # Rounding of 1800 steps moves one run by some 3e-6 m; of runs that are turned about the pole, each its own way.
    angles = np.linspace(0.0, 6.0, 32)
    c, s, one = np.cos(angles), np.sin(angles), np.ones(32)
    turns = np.moveaxis([[c, -s, 0 * one], [s, c, 0 * one], [0 * one, 0 * one, one]], -1, 0)
    r, v = (turns @ x for x in TILTED.state(0.0))
    q0, v0 = np.hstack([np.tile([1, 0, 0, 0], (32, 1)), r]), np.hstack([np.zeros((32, 3)), v])
    inertial = lw.simulate(ONE, q0, v0, 86400.0, control=gravity, atol=1e-9, output_times=[0.0, 86400.0], **tight)
    found = np.einsum("kji,kj->ki", turns, inertial.q[:, -1, 4:]) - FLATTENED
    assert np.abs(found.mean(axis=0)).max() < 3e-6 and np.abs(found).max() < 1.5e-5
    assert np.ptp(inertial.energy, axis=-1).max() < 1e-12 * abs(inertial.energy[0, 0])
    falling = lw.simulate(ONE, [1, 0, 0, 0, 0, 0, 0], None, 86400.0, control=gravity, frame=TILTED, atol=1e-12, **tight)
    assert np.abs(falling.q[-1, 4:] + TILTED.state(86400.0)[0] - FLATTENED).max() < 5e-6  # 670 km from the orbit


def test_harmonics_turn_with_the_planet_and_are_the_same_in_both_worlds():
    gravity, tight = space.Gravity(ONE, 8, sky=space.StillSky(angle=0.3)), {"rtol": 1e-12, "atol": 1e-8}
    r, v = TILTED.state(0.0)
    inertial = lw.simulate(ONE, [1, 0, 0, 0, *r], [0, 0, 0, *v], 3000.0, control=gravity, **tight)
    falling = lw.simulate(ONE, [1, 0, 0, 0, 0, 0, 0], None, 3000.0, control=gravity, frame=TILTED, **tight)
    assert np.abs(falling.q[-1, 4:] + TILTED.state(3000.0)[0] - inertial.q[-1, 4:]).max() < 1e-6

    from scipy.integrate import solve_ivp

    field = space.jgm3().up_to(8)

    def rate(t, y):
        angle = 0.3 + space.EARTH.turning * t
        c, s = np.cos(angle), np.sin(angle)
        R = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        pull = R.T @ np.array(list(field.gradient(Vec(*(R @ y[:3])))))
        return [*y[3:], *(pull - field.mu * y[:3] / np.linalg.norm(y[:3]) ** 3)]

    theirs = solve_ivp(rate, (0, 3000.0), [*r, *v], method="DOP853", rtol=1e-12, atol=1e-8).y[:3, -1]
    assert np.abs(theirs - inertial.q[-1, 4:]).max() < 1e-5


def test_once_for_the_craft_is_as_good_as_link_by_link():
    model = lw.samples.flexible_satellite()
    model = model.with_gravity((0, 0, 0)) if np.any(model.gravity) else model
    rng = np.random.default_rng(0)
    q0, v0 = model.neutral(), 0.01 * rng.normal(size=model.nv)
    ends = []
    for each_link in (True, False):
        gravity = space.Gravity(model, 4, each_link=each_link)
        ends.append(lw.simulate(model, q0, v0, 200.0, control=gravity, frame=TILTED, rtol=1e-11, atol=1e-12).q[-1])
    assert np.abs(ends[0] - ends[1]).max() < 2e-7


def test_energy_and_momentum_of_a_flexible_craft():
    model = lw.samples.flexible_satellite()
    r, v = TILTED.state(0.0)
    q0, v0 = model.neutral(), np.zeros(model.nv)
    q0[4:7], v0[3:6], v0[:3] = r, v, (0.01, 0.02, -0.01)
    motion = lw.simulate(model, q0, v0, 300.0, control=space.Gravity(model), rtol=1e-12, atol=1e-10)
    assert np.ptp(motion.energy) < 1e-12 * abs(motion.energy[0])
    own = model.centroidal.momentum(motion.q, motion.v)
    total = np.cross(model.center_of_mass(motion.q), own[:, 3:]) + own[:, :3]
    assert np.abs(total - total[0]).max() < 1e-12 * np.abs(total[0]).max()


def local(orbit, t, angles):
    """Attitude that is turned by a rotation vector against Hill's axes."""
    frame = normalized(from_matrix(Mat3(orbit.local_axes(t).tolist())))
    return np.array(multiply(frame, exponential(Vec(*angles))))


def test_libration_frequencies():
    """Roll, pitch, yaw 120, 140, 40 along, across and away: from how small disturbances grow in a tenth of a turn."""
    model, n, T, h = craft((40.0, 120.0, 140.0)), CIRCLE.mean_motion, 600.0, 1e-4
    assert n == pytest.approx(1.078007612873e-3, rel=1e-12)
    disturbed = np.concatenate([np.eye(6), -np.eye(6)]) * h * [1, 1, 1, n, n, n]
    q0 = [[*local(CIRCLE, 0.0, d[:3]), 0, 0, 0] for d in disturbed]
    v0 = []
    for d in disturbed:
        turned = exponential(Vec(*-d[:3]))
        spin = np.array(multiply(multiply(turned, (0, 0, 0, n)), (turned[0], *(-x for x in turned[1:]))))[1:]
        v0.append([*(spin + d[3:]), 0, 0, 0])
    end = lw.simulate(model, q0, v0, T, frame=CIRCLE, rtol=1e-12, atol=1e-14, output_times=[T])
    frame = local(CIRCLE, T, np.zeros(3))
    states = []
    for q, v in zip(end.q[:, -1], end.v[:, -1], strict=True):
        off = np.array(multiply(frame * [1, -1, -1, -1], q[:4]))
        off = off if off[0] > 0 else -off
        against = v[:3] - np.array(multiply(multiply(off * [1, -1, -1, -1], (0, 0, 0, n)), off))[1:]
        states.append([*(2 * off[1:]), *(against / n)])
    states = np.array(states)
    growth = np.linalg.eigvals((states[:6] - states[6:]).T / (2 * h))
    found = np.sort(np.unique(np.round(np.abs(np.angle(growth)) / T / n, 8)))
    assert np.abs(np.abs(growth) - 1).max() < 1e-6
    assert np.abs(found[[0, -1]] - [0.696981764, 1.852264314]).max() < 1e-6
    assert np.abs(found - 1.309307341).min() < 1e-6


def test_pitch_libration_of_thirty_degrees():
    model, n = craft((40.0, 120.0, 140.0)), CIRCLE.mean_motion

    def pitch(t, q, v, p):
        # The craft turns in the plane alone: half its angle is that of its quaternion.
        return lw.math.sin(2.0 * lw.math.atan2(q[3], q[0]) - n * t)

    crossing = lw.Event(pitch, direction=-1, name="through the middle")
    q0 = [*local(CIRCLE, 0.0, [0, 0, np.radians(30)]), 0, 0, 0]
    motion = lw.simulate(model, q0, [0, 0, n, 0, 0, 0], 12000.0, frame=CIRCLE, events=crossing, rtol=1e-12, atol=1e-14)
    times = [event.t for event in motion.events]
    assert times[1] - times[0] == pytest.approx(4777.380364469, abs=2e-6)


def test_dual_spin():
    model = craft((120.0, 100.0, 90.0))

    def rates(h):
        wheel = lw.space.BalancedWheel(model, "hub", (0, 0, 1), 0.0, start=h)
        A = model.state_space(model.neutral(), [0, 0, 0.2, 0, 0, 0], np.zeros(6), control=wheel).A
        return np.linalg.eigvals(A[6:9, 6:9])

    assert np.abs(rates(20.0).imag).max() == pytest.approx(0.1449137675, abs=1e-10)
    assert rates(5.0).real.max() == pytest.approx(0.01581138830, abs=1e-10)
    grows = [rates(h).real.max() > 1e-9 for h in (1.9, 2.1, 5.9, 6.1)]
    assert grows == [False, True, True, False]


def test_drag_lowers_an_orbit():
    model = craft(mass=1.0, inertia=(1.0, 1.0, 1.0))
    orbit = space.Orbit(6778137.0)
    air = space.Exponential(1e-12, 400e3, 58e3)
    drag = space.Drag(model, space.Facet("hub", 0.01, None, drag=2.0), air, turning=False)
    end = lw.simulate(model, [1, 0, 0, 0, 0, 0, 0], None, 86400.0, control=drag, frame=orbit, rtol=1e-12, atol=1e-9)
    r, v = (a + b for a, b in zip(orbit.state(86400.0), (end.q[-1, 4:], end.v[-1, 3:]), strict=True))
    assert space.Orbit.from_state(r, v).elements[0] == pytest.approx(6778047.111795, abs=2e-5)


def test_facets_of_drag_and_light_by_hand():
    model = craft()
    plate = space.Facet.plate("hub", 2.0, (1, 0, 0), place=(0, 0.5, 0), specular=0.3, diffuse=0.2, drag=2.2)
    c = np.cos(np.radians(60))
    q = np.array([np.cos(np.pi / 6), 0, 0, np.sin(np.pi / 6), 7e6, 0, 0])  # turned by 60° about z
    light = space.Sunlight(model, plate, shadow=False)
    R = np.array([[c, -np.sin(np.pi / 3), 0], [np.sin(np.pi / 3), c, 0], [0, 0, 1]])
    found = np.array(light.wrench(0.0, q, np.zeros(6), [], [])["hub"], float)
    pressure = 1361.0 / 299792458.0 * (149597870700.0 / (149597870700.0 - 7e6)) ** 2
    s, n = R.T @ [1, 0, 0], np.array([1.0, 0, 0])
    force = -pressure * 2.0 * c * ((1 - 0.3) * s + 2 * (0.3 * c + 0.2 / 3) * n)
    assert np.allclose(found[3:], force, rtol=1e-12)
    assert np.allclose(found[:3], np.cross([0, 0.5, 0], force), rtol=1e-12)
    air = space.Exponential(1e-11, 621863.0, 50e3)
    drag = space.Drag(model, plate, air, turning=False)
    v = np.array([0, 0, 0, *(R.T @ [7500.0, 0, 0])])
    flow = R.T @ [7500.0, 0, 0]
    found = np.array(drag.wrench(0.0, q, v, [], [])["hub"], float)
    assert np.allclose(found[3:], -0.5 * 1e-11 * 2.2 * 2.0 * c * 7500.0 * flow, rtol=1e-9)


def test_in_the_umbra_nothing_shines():
    light = space.Sunlight(ONE, space.Facet.box("hub", (1, 1, 1)))
    assert not np.any(light.wrench(0.0, [1, 0, 0, 0, -7e6, 0, 0], np.zeros(6), [], [])["hub"])


def test_sun_and_moon_pull():
    pytest.importorskip("erfa")
    sky = space.Sky("2026-03-01T00:00:00", 86400.0)
    high = space.Orbit(42164e3)
    gravity = space.Gravity(ONE, others=("sun", "moon"), sky=sky)
    motion = lw.simulate(ONE, [1, 0, 0, 0, 0, 0, 0], None, 43200.0, control=gravity, frame=high, rtol=1e-11, atol=1e-9)
    r, v = high.state(0.0)

    from scipy.integrate import solve_ivp

    def rate(t, y):
        numbers = sky.at(t)
        pull = -space.EARTH.mu * y[:3] / np.linalg.norm(y[:3]) ** 3
        for place, mu in ((numbers[3:6], space.SUN.mu), (numbers[6:9], space.MOON.mu)):
            away = place - y[:3]
            pull = pull + mu * (away / np.linalg.norm(away) ** 3 - place / np.linalg.norm(place) ** 3)
        return [*y[3:], *pull]

    theirs = solve_ivp(rate, (0, 43200.0), [*r, *v], method="DOP853", rtol=1e-12, atol=1e-8).y[:3, -1]
    away = motion.q[-1, 4:]
    assert np.linalg.norm(away) > 1000.0
    assert np.abs(theirs - high.state(43200.0)[0] - away).max() < 1e-3


def test_the_sky_is_erfas():
    erfa = pytest.importorskip("erfa")
    sky = space.Sky("2026-03-01T06:00:00", 86400.0, dut1=0.1)
    base = 2440587.5 + float(np.datetime64("2026-03-01").astype(int))
    tt, ut1 = erfa.taitt(*erfa.utctai(base, 0.25)), erfa.utcut1(base, 0.25, 0.1)
    for t in (0.0, 12345.0, 86400.0):
        theirs = erfa.c2t06a(tt[0], tt[1] + t / 86400, ut1[0], ut1[1] + t / 86400, 0.0, 0.0)
        assert np.abs(np.array(sky.to_fixed(t, sky.at(t)).m) - theirs).max() < 1e-13


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: space.Sky("2060-01-01", 100.0), "outside what the time scales know"),
        (lambda: space.Sky("yesterday", 100.0), "not a date"),
        (lambda: space.Sky("2026-01-01", 100.0).at(101.0), "outside the sky's table"),
        (lambda: space.Gravity(ONE, others="moon"), "no Moon"),
        (lambda: space.Gravity(ONE, 21), "no coefficients"),
        (lambda: space.Gravity(ONE, others="venus"), "nothing of this name"),
        (lambda: space.Facet("hub", -1.0, (1, 0, 0)), "area"),
        (lambda: space.Facet("hub", 1.0, (0, 0, 0)), "no direction"),
        (lambda: space.Facet("hub", 1.0, (1, 0, 0), specular=0.7, diffuse=0.7), "more light than it gets"),
        (lambda: lw.simulate(lw.samples.planar_arm(1), frame=CIRCLE), "no uniform gravity"),
        (lambda: lw.simulate(ONE, frame="orbit"), "not a frame"),
    ],
)
def test_bad_input_is_refused(make, says):
    pytest.importorskip("erfa")
    with pytest.raises(lw.InputError, match=says):
        make()


def test_a_run_beyond_the_skys_table_is_refused():
    pytest.importorskip("erfa")
    light = space.Sunlight(ONE, space.Facet.box("hub", (1, 1, 1)), sky=space.Sky("2026-01-01", 100.0))
    with pytest.raises(lw.InputError, match="leaves the times that a table knows"):
        lw.simulate(ONE, [1, 0, 0, 0, 0, 0, 0], None, 101.0, control=light, frame=CIRCLE)
    going = lw.Simulation(ONE, [1, 0, 0, 0, 0, 0, 0], control=light, frame=CIRCLE, dt=1.0)
    going.advance(60.0)
    with pytest.raises(lw.InputError, match="leaves the times"):
        going.advance(60.0)


def test_leaving_the_table_of_the_air_ends_a_run():
    drag = space.Drag(ONE, space.Facet("hub", 1.0, None), space.Layers([300e3, 621e3], [1e-11, 1e-13]))
    with pytest.warns(lw.errors.IntegrationWarning, match=r"Drag.*621.9 km high, in <Layers: 2 altitudes, 300 to 621"):
        motion = lw.simulate(ONE, [1, 0, 0, 0, 0, 0, 0], None, 100.0, control=drag, frame=CIRCLE)
    assert motion.status == "failed"


def test_falling_into_the_planet_ends_a_run_and_harms_no_other():
    place, speed = space.Orbit(6.5e6, i=np.pi / 2).state(0.0)
    q0, v0 = np.tile([1, 0, 0, 0, *place], (2, 1)), np.tile([0, 0, 0, *speed], (2, 1))
    v0[0, 3:] = 0.0  # falls
    ends = {"control": space.Gravity(ONE), "duration": 400.0, "method": "rk4", "dt": 0.5}
    with pytest.warns(lw.errors.IntegrationWarning, match=r"1 of 2.*\n.*Gravity.*from the centre of Earth"):
        motion = lw.simulate(ONE, q0, v0, **ends)
    assert motion.status.tolist() == ["failed", "done"]
    r = np.linalg.norm(motion.q[..., 4:], axis=-1)
    assert np.nanmin(r[0]) > 0.985 * space.EARTH.radius and np.allclose(r[1], 6.5e6, rtol=1e-9)
    over_the_pole = space.Orbit(space.EARTH.radius, i=np.pi / 2)  # above the ground, by its flattening
    assert lw.simulate(ONE, duration=over_the_pole.period, frame=over_the_pole).status == "done"


def test_elements_travel_and_are_compiled_once():
    gravity = space.Gravity(ONE, 4, sky=space.StillSky())
    again = pickle.loads(pickle.dumps(gravity))
    assert again.signature == gravity.signature == space.Gravity(ONE, 4).signature
    assert space.Gravity(ONE, 5).signature != gravity.signature
    assert again.along(TILTED).signature != gravity.along(CIRCLE).signature
