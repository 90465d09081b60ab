"""Orbits against published and closed forms, and against SciPy's integrator."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from linkwise.space import EARTH, Orbit, hill_transfer, hill_transition, lambert
from linkwise.space.kepler import eccentric_anomaly

ANGLES = np.radians([51.6, 40.0, 60.0, 10.0])


def test_kepler_to_micrometres():
    orbit = Orbit(9000e3, 0.2, *ANGLES)
    r, v = orbit.state(1e4)
    assert np.abs(r - [-7620864.82248, -3555434.34364, 2744137.72645]).max() < 1e-5
    energy = v @ v / 2 - EARTH.mu / np.linalg.norm(r)
    assert energy == pytest.approx(-EARTH.mu / 18000e3, rel=1e-14)


@pytest.mark.parametrize(("e", "most"), [(0.0, 0.0), (0.02, 0.02), (0.3, 0.3), (0.8, 0.8), (0.9, 1.0), (0.99, 1.0)])
def test_keplers_equation(e, most):
    M = np.linspace(-3.14, 3.14, 2001)
    s, c = eccentric_anomaly(M, e, most)
    assert np.abs(np.sin(np.arctan2(s, c) - e * s - M)).max() < 1e-15
    assert np.abs(s * s + c * c - 1).max() < 1e-15


@pytest.mark.parametrize(
    "elements",
    [(9e6, 0.2, *ANGLES), (7e6, 0.0, 0.0, 0.0, 0.0, 1.0), (8e6, 0.1, 0.0, 0.0, 0.3, 2.0), (7e6, 0.0, 2.0, -1.0, 0, 0)],
)
def test_state_to_elements_and_back(elements):
    orbit = Orbit(*elements)
    again = Orbit.from_state(*orbit.state(123.0), t=123.0)
    for t in (0.0, 5000.0):
        for one, two in zip(orbit.state(t), again.state(t), strict=True):
            assert np.allclose(one, two, rtol=1e-13, atol=1e-6)


def test_secular_rates_of_oblateness():
    node, perigee, _ = Orbit(7e6, 0.01, ANGLES[0]).drift()
    assert node == pytest.approx(-9.029531558e-7, rel=1e-9)
    assert perigee == pytest.approx(6.753259155e-7, rel=1e-9)


def test_a_batch_and_a_trace_say_the_same():
    orbits = Orbit(7e6, 0.01, 0.9, anomaly=np.linspace(0, 6, 5))
    r, v = orbits.state(100.0)
    assert r.shape == v.shape == (5, 3)
    one = Orbit(7e6, 0.01, 0.9, anomaly=1.5)
    assert np.allclose(r[1], one.state(100.0)[0], rtol=1e-15)
    arm = lw.samples.planar_arm(1)
    traced = lw.compile(lambda model, t: np.concatenate(one.state(t)), arm, {"t": "scalar"})
    t = np.linspace(0, 9000, 7)
    assert np.allclose(traced(t), np.concatenate(one.state(t), axis=-1), rtol=1e-13)
    assert np.allclose(traced.jacobian("t")(t)[..., :3], one.state(t)[1], rtol=1e-9, atol=1e-6)


def test_clohessy_wiltshire_transfer_and_how_far_it_misses():
    orbit = Orbit(7e6)
    quarter = orbit.period / 4
    v0, _ = hill_transfer(orbit.mean_motion, [0, -1000.0, 0], [0, 0, 0], quarter)
    assert np.abs(v0 - [-0.655799975, 0.327899988, 0]).max() < 1e-9
    (r, v), (R, V) = orbit.from_local(0.0, [0, -1000.0, 0], v0), orbit.state(0.0)
    chaser = Orbit.from_state(R + r, V + v)
    ends = (one - two for one, two in zip(chaser.state(quarter), orbit.state(quarter), strict=True))
    missed, _ = orbit.to_local(quarter, *ends)
    assert np.abs(missed - [0.142132407, -0.125886498, 0]).max() < 2e-8


def test_hills_equations_against_an_integrator():
    n, y0 = 1.1e-3, np.array([10.0, -20.0, 5.0, 0.01, 0.02, -0.03])

    def rate(t, y):
        return [*y[3:], 3 * n * n * y[0] + 2 * n * y[4], -2 * n * y[3], -n * n * y[2]]

    end = solve_ivp(rate, (0, 4000.0), y0, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    assert np.allclose(hill_transition(n, 4000.0) @ y0, end, rtol=1e-9)


def test_lambert_finds_the_orbit_that_was_flown():
    rng = np.random.default_rng(1)
    for _ in range(5):
        orbit = Orbit(8e6, rng.uniform(0, 0.19), rng.uniform(0, 3), *rng.uniform(-3, 3, 3))
        r1, v1 = orbit.state(0.0)
        for T in (500.0, 2000.0, 5000.0):
            r2, v2 = orbit.state(T)
            long = bool(np.cross(r1, r2) @ np.cross(r1, v1) < 0)
            start, end = lambert(r1, r2, T, EARTH.mu, long_way=long)
            assert np.abs(start - v1).max() < 1e-9 and np.abs(end - v2).max() < 1e-9


@pytest.mark.parametrize("turns", [1, 3])
def test_lambert_with_whole_turns(turns):
    """Both orbits that exist arrive; one of them is the one that the places were taken from."""
    orbit = Orbit(9e6, 0.15, 0.4, 0.2, 1.0, 0.3)
    for part in (0.3, 0.45, 0.6, 0.9):
        T = (part + turns) * orbit.period
        (r1, v1), (r2, v2) = orbit.state(0.0), orbit.state(T)
        long = bool(np.cross(r1, r2) @ np.cross(r1, v1) < 0)
        both = [lambert(r1, r2, T, EARTH.mu, long_way=long, turns=turns, wide=wide) for wide in (False, True)]
        assert min(np.abs(start - v1).max() + np.abs(end - v2).max() for start, end in both) < 1e-8
        found = [Orbit.from_state(r1, start, through_ground=True) for start, _ in both]
        assert found[0].elements[0] < found[1].elements[0]
        assert max(np.abs(each.state(T)[0] - r2).max() for each in found) < 1e-4


@pytest.mark.parametrize("e", [1.05, 1.5, 5.0])
def test_open_orbits(e):
    """Around a hyperbola and away, against SciPy; the same orbit from a state of it."""
    slow = Orbit(-7e6 / (e - 1.0), e, 0.6, 0.3, 1.2)
    orbit = Orbit(*slow.elements[:5], -slow.mean_motion * 3000.0)
    (r, v), (r_end, v_end) = orbit.state(0.0), orbit.state(10_000.0)

    def fall(t, y):
        return [*y[3:], *(-EARTH.mu * y[:3] / np.linalg.norm(y[:3]) ** 3)]

    there = solve_ivp(fall, (0.0, 10_000.0), [*r, *v], method="DOP853", rtol=1e-13, atol=1e-7).y[:, -1]
    assert np.abs(there - [*r_end, *v_end]).max() < 1e-3
    assert orbit.is_open and orbit.period == np.inf
    assert np.linalg.norm(orbit.state(3000.0)[0]) == pytest.approx(7e6, rel=1e-14)
    again = Orbit.from_state(r_end, v_end, 10_000.0)
    assert np.allclose(again.elements, orbit.elements, rtol=1e-11)
    model = lw.ModelBuilder("point", gravity=(0, 0, 0))
    model.add_body("point", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    aside = lw.simulate(model.build(), [1, 0, 0, 0, 10, -20, 5], None, 10_000.0, frame=orbit, rtol=1e-11)
    beside = Orbit.from_state(r + np.array([10, -20, 5]), v).state(10_000.0)[0] - r_end
    assert np.abs(aside.q[-1, 4:] - beside).max() < 1e-4


def test_lamberts_derivative_is_that_of_differences():
    model = lw.samples.planar_arm(1)
    r1 = np.array([7e6, 0.0, 1e5])
    f = lw.compile(lambda m, r2, T: lambert(r1, r2, T, EARTH.mu)[0], model, {"r2": 3, "T": "scalar"})
    r2, T = np.array([1e5, 8e6, 2e5]), 2500.0
    assert np.allclose(f(r2, T), lambert(r1, r2, T, EARTH.mu)[0], rtol=1e-12)
    by_time = (f(r2, T + 0.5) - f(r2, T - 0.5)) / 1.0
    assert np.allclose(f.jacobian("T")(r2, T), by_time, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Orbit(a=400e3), "through the ground of Earth"),
        (lambda: Orbit(a=8e6, e=0.5), "through the ground"),
        (lambda: Orbit(a=8e6, e=1.0), "0 <= e < 1"),
        (lambda: Orbit(a=8e6, e=1.2), "of an open orbit"),
        (lambda: Orbit(a=-8e6, e=0.2), "axis is positive"),
        (lambda: Orbit(a=[8e6, -8e6], e=[0.1, 2.0]), "closed and open"),
        (lambda: Orbit(a=-8e6, e=2.0).drift(), "does not come round"),
        (lambda: Orbit(a=np.nan), "not finite"),
        (lambda: Orbit(a=8e6, i=51.6), "between 0 and π"),
        (lambda: Orbit.from_state([7e6, 0, 0], [0, 0, 0]), "stands still"),
        (lambda: Orbit.from_state([7e6, 0, 0], [900.0, 0, 0]), "straight up"),
        (lambda: Orbit.from_state([7e6, 0, 0], [[0, 12e3, 0], [0, 8e3, 0]]), "some on open ones"),
        (lambda: lambert([7e6, 0, 0], [0, 8e6, 0], 5000.0, EARTH.mu, turns=2), "2 turns"),
        (lambda: lambert([7e6, 0, 0], [0, 8e6, 0], 5000.0, EARTH.mu, wide=True), "one orbit"),
        (lambda: lambert([7e6, 0, 0], [-7e6, 0, 0], 100.0, EARTH.mu), "one line with the centre"),
        (lambda: hill_transfer(1e-3, [1, 0, 0], [0, 0, 1], np.pi * 1e3), "same place"),
    ],
)
def test_bad_input_is_refused(make, says):
    with pytest.raises(lw.InputError, match=says):
        make()


def test_a_ballistic_flight_may_end_in_the_ground():
    assert Orbit(a=8e6, e=0.5, through_ground=True).perigee_altitude < 0
