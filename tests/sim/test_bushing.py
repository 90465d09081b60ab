"""A compliant connection between two frames: its force is the gradient of its energy, and momenta are kept."""

import numpy as np
import pytest

import linkwise as lw
from tests.flexible.mechanisms import small_beam


def two_bodies(gravity=(0, 0, 0)):
    """Two free bodies."""
    b = lw.ModelBuilder("two", gravity=gravity)
    for name, mass in (("one", 1.0), ("two", 2.0)):
        b.add_body(name, joint=lw.Free(), mass=mass, com=(0.1, 0, 0.05), inertia=np.diag([0.1, 0.15, 0.2]))
    return b.build()


def bushing(model, **options):
    return lw.Bushing(
        model,
        "one",
        "two",
        stiffness=(20.0, 30.0, 40.0),
        turning_stiffness=(3.0, 2.0, 1.0),
        placement_a=lw.transform(xyz=(0.3, 0, 0), rpy=(0.2, 0.1, 0)),
        placement_b=lw.transform(xyz=(-0.2, 0.1, 0)),
        **options,
    )


def near(model, rng, size=0.2):
    """A configuration near the neutral one."""
    return model.integrate(model.neutral(), size * rng.normal(size=model.nv))


def test_force_is_the_gradient_of_the_energy():
    model = two_bodies()
    element = bushing(model)
    rng = np.random.default_rng(0)
    q, v = near(model, rng), np.zeros(model.nv)
    force = np.array(element.force(0.0, q, v, (), ()), float)
    h = 1e-4
    for i, unit in enumerate(np.eye(model.nv)):
        moved = [element.energy(model.integrate(q, s * h * unit), (), ()) for s in (-2, -1, 1, 2)]
        slope = (moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * h)
        assert force[i] == pytest.approx(-slope, abs=1e-9)


def test_damping_takes_energy_at_the_rate_of_the_stretch():
    model = two_bodies()
    plain, damped = bushing(model), bushing(model, damping=0.7, turning_damping=(0.1, 0.2, 0.3))
    rng = np.random.default_rng(1)
    q, v = near(model, rng), rng.normal(size=model.nv)
    lost = v @ np.array(damped.force(0.0, q, v, (), ()) - plain.force(0.0, q, v, (), ()), float)
    assert lost < 0.0
    h = 1e-6

    def stretch(s):
        ends = [damped._pose(end, model.integrate(q, s * v), None) for end in damped.ends]
        return np.concatenate([np.array(x, float) for x in damped._stretch(*ends)[1:]])

    rate = (stretch(h) - stretch(-h)) / (2 * h)
    assert lost == pytest.approx(-rate @ (np.array([0.7] * 3 + [0.1, 0.2, 0.3]) * rate), rel=1e-6)


def test_momenta_and_energy_are_kept():
    model = two_bodies()
    rng = np.random.default_rng(2)
    q, v = near(model, rng), rng.normal(size=model.nv)
    traj = lw.simulate(model, q, v, duration=3.0, control=bushing(model), rtol=1e-11)
    momentum = model.momentum(traj.q, traj.v)
    assert np.abs(momentum - momentum[0]).max() < 1e-9
    assert np.ptp(traj.energy) < 1e-8
    assert np.ptp(model.kinetic_energy(traj.q, traj.v)) > 0.1


def test_at_a_node_of_a_flexible_body():
    """A hinged beam whose tip stands on a spring comes to rest with half of its weight on it."""
    b = lw.ModelBuilder("beam")
    beam = small_beam(modes=(0, 2), axial_modes=0, torsion_modes=0)
    b.add_body("beam", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    model = b.build()
    place = model.pose(model.neutral(), "beam", node="tip")
    for k in (1e5, 1e6):
        ends = {"placement_a": place, "node_b": "tip"}
        spring = lw.Bushing(model, "world", "beam", (0.0, 0.0, k), damping=(0.0, 0.0, 40.0), **ends)
        control = [spring, lambda t, q, v, p: [-3.0 * x for x in v]]
        run = lw.simulate(model, model.neutral(), duration=4.0, control=control, rtol=1e-7, output_times=[0.0, 4.0])
        sunk = place[2, 3] - model.pose(run.q[-1], "beam", node="tip")[2, 3]
        assert k * sunk == pytest.approx(beam.mass * 9.81 / 2, rel=0.01)


def test_refusals():
    model = two_bodies()
    with pytest.raises(lw.InputError, match="one rigid body"):
        lw.Bushing(model, "one", "one", 1.0)
    with pytest.raises(lw.InputError, match="negative"):
        lw.Bushing(model, "one", "two", -1.0)
    with pytest.raises(lw.errors.UnknownNameError):
        lw.Bushing(model, "one", "three", 1.0)
