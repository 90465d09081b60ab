"""Sensors inside the loop: noise from a seed, bias, steps, rates and delays."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.measuring import Measured, drawn_from, whole


def slider():
    b = lw.ModelBuilder("slider", gravity=(0, 0, 0))
    b.add_body("block", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0, inertia=np.eye(3))
    return b.build()


SLIDER = slider()


def read(t, z, p):
    """The reading itself as a force: what the control knew is what the motion has as tau."""
    return [z[0]]


def forces(sensor, rate=100.0, duration=1.0, **options):
    control = lw.Sampled(SLIDER, read, rate, sensors=[sensor])
    times = (np.arange(int(duration * rate)) + 0.5) / rate
    return lw.simulate(SLIDER, [0.0], duration=duration, control=control, output_times=times, **options).tau[..., 0]


def clock(t, q, v, p):
    return [t]


def test_noise_is_white_of_its_size_and_repeats():
    found = forces(Measured(lambda t, q, v, p: [2.0], 1, noise=0.3, seed=5), rate=1000.0, duration=10.0)
    assert found.mean() == pytest.approx(2.0, abs=4 * 0.3 / 100.0)
    assert found.std() == pytest.approx(0.3, rel=0.03)
    apart = found - found.mean()
    assert np.abs(np.correlate(apart, apart, "full")[len(apart) :][:20]).max() < 5 * 0.09 * 100.0
    assert np.abs((apart**3).mean()) < 0.01  # no side is favoured
    assert (apart**4).mean() / 0.3**4 == pytest.approx(3.0, abs=0.3)
    again = forces(
        Measured(lambda t, q, v, p: [2.0], 1, noise=0.3, seed=5), rate=1000.0, duration=10.0, method="rk4", dt=5e-4
    )
    np.testing.assert_allclose(again, found, atol=1e-12)
    other = forces(Measured(lambda t, q, v, p: [2.0], 1, noise=0.3, seed=6), rate=1000.0, duration=10.0)
    assert abs(np.corrcoef(found, other)[0, 1]) < 0.05


def test_the_generators_are_lecuyers():
    """Against whole numbers of Python."""
    a, b = 123456, 654321
    for _ in range(50):
        a, b = 40014 * a % 2147483563, 40692 * b % 2147483399
    numbers = [123456.0, 654321.0]
    numbers, _ = drawn_from(numbers, 50)
    assert numbers == [float(a), float(b)]
    assert [whole(x) for x in (2.4, -2.6, 1e9 + 0.7)] == [2.0, -3.0, 1e9 + 1]


def test_members_of_a_batch_have_their_own():
    sensor = Measured(lambda t, q, v, p: [0.0], 1, noise=0.1, bias=1.0, seed=1, batch=200)
    control = lw.Sampled(SLIDER, read, 10.0, sensors=[sensor])
    found = lw.simulate(SLIDER, np.zeros((200, 1)), duration=1.0, control=control, method="rk4", dt=0.1).tau[:, :-1, 0]
    assert found.mean(axis=1).std() == pytest.approx(1.0, rel=0.15)
    assert found.std(axis=1).mean() == pytest.approx(0.1, rel=0.15)


def test_steps_rate_and_delay():
    """Of a clock: what is read, and when."""
    samples = np.arange(100) / 100.0
    np.testing.assert_allclose(forces(Measured(clock, 1)), samples, atol=1e-12)
    np.testing.assert_allclose(forces(Measured(clock, 1, step=0.25)), np.round(samples / 0.25) * 0.25, atol=1e-12)
    np.testing.assert_allclose(forces(Measured(clock, 1, rate=25.0)), np.floor(samples * 25 + 1e-9) / 25, atol=1e-12)
    np.testing.assert_allclose(forces(Measured(clock, 1, delay=0.03)), np.maximum(samples - 0.03, 0.0), atol=1e-12)
    both = np.maximum(np.floor((samples - 0.02) * 50 + 1e-9) / 50, 0.0)
    np.testing.assert_allclose(forces(Measured(clock, 1, rate=50.0, delay=0.02)), both, atol=1e-12)


def test_a_bias_walks():
    sensor = Measured(lambda t, q, v, p: [0.0], 1, walk=0.2, seed=3, batch=400)
    control = lw.Sampled(SLIDER, read, 10.0, sensors=[sensor])
    found = lw.simulate(SLIDER, np.zeros((400, 1)), duration=4.0, control=control, method="rk4", dt=0.1).tau[..., 0]
    assert found[:, 35].std() == pytest.approx(0.2 * np.sqrt(3.5), rel=0.1)


def test_a_loop_closes_on_readings():
    """A regulator that sees an encoder of few counts and a noisy, late speed still holds."""
    control = lw.Sampled(
        SLIDER,
        lambda t, z, p: [20.0 * (1.0 - z[0]) - 6.0 * z[1]],
        200.0,
        sensors=[
            lw.Encoder(["block_joint"], counts=1000),
            Measured(lambda t, q, v, p: v, 1, noise=0.01, delay=0.01, seed=2),
        ],
    )
    motion = lw.simulate(SLIDER, [0.0], duration=5.0, control=control)
    assert motion.q[-1, 0] == pytest.approx(1.0, abs=0.02)


def test_what_does_not_fit_is_refused():
    for sensor, match in (
        (Measured(clock, 1, rate=30.0), "divides the control's"),
        (Measured(clock, 1, delay=0.005), "multiple of its period"),
        (lw.IMU("block"), "cannot be measured inside the loop"),
    ):
        with pytest.raises(lw.InputError, match=match):
            lw.Sampled(SLIDER, read, 100.0, sensors=[sensor])
    with pytest.raises(lw.InputError, match="at least zero"):
        Measured(clock, 1, noise=-1.0)
