"""Sliders and the mouse: what they ask for comes out, within limits and closed."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.viz.posing import PointGoal, freedoms_of, is_closed, moved, settled


def free_model():
    b = lw.ModelBuilder("free")
    b.add_body("base", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    b.add_body("ball", parent="base", joint=lw.Spherical(), mass=1.0, inertia=np.eye(3))
    b.add_body("plane", parent="ball", joint=lw.Planar(), mass=1.0, inertia=np.eye(3))
    b.add_body("cross", parent="plane", joint=lw.Universal(), mass=1.0, inertia=np.eye(3))
    b.add_body("slide", parent="cross", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0, inertia=np.eye(3))
    return b.build()


@pytest.mark.parametrize("model", [free_model(), samples.flexible_arm(), samples.stanford_arm()], ids=lambda m: m.name)
def test_there_is_a_slider_for_each_freedom(model):
    freedoms = freedoms_of(model, 1.0)
    assert [freedom.place for freedom in freedoms] == list(range(model.nv))
    q = model.random_configuration(0)
    for freedom in freedoms:
        assert freedom.low < freedom.high
        value = 0.3 * freedom.high + 0.7 * freedom.low if freedom.high < 1e3 else 0.1
        changed = freedom.set(q, 0.4 * value)
        assert freedom.get(changed) == pytest.approx(0.4 * value, abs=1e-9)
        others = [
            other for other in freedoms if other is not freedom and other.label.split()[0] != freedom.label.split()[0]
        ]
        for other in others:
            assert other.get(changed) == pytest.approx(other.get(q), abs=1e-9)


@pytest.mark.parametrize("make", [samples.four_bar, samples.slider_crank, samples.stewart_platform])
def test_the_rest_follows_a_slider(make):
    model = make()
    q = model.assemble(model.neutral())
    freedom = freedoms_of(model, 1.0)[0]
    found = moved(model, q, freedom.set(q, freedom.get(q) + 0.15), freedom.place)
    assert found is not None and is_closed(model, found)
    assert freedom.get(found) == pytest.approx(freedom.get(q) + 0.15, abs=1e-9)
    assert np.abs(model.difference(q, found)).max() < 1.0  # in the same branch


def test_a_slider_beyond_reach_says_so():
    b = lw.ModelBuilder("triangle")  # a crank of 1 m whose end is tied to a point 1.5 m away by a rod of 1 m
    y = lw.Revolute(axis=(0, 1, 0))
    b.add_body("crank", joint=y, mass=1.0, com=(0.5, 0, 0), inertia=np.eye(3))
    b.add_body("rod", parent="crank", joint=y, placement=lw.transform(xyz=(1, 0, 0)), mass=1.0, inertia=np.eye(3))
    b.add_closure("pin", body_a="rod", placement_a=lw.transform(xyz=(1, 0, 0)), body_b="world",
                  placement_b=lw.transform(xyz=(1.5, 0, 0)), joint=y)  # fmt: skip
    model = b.build()
    q = model.assemble([0.5, 1.0])
    turned = q.copy()
    turned[0] += np.pi
    assert moved(model, q, turned, 0) is None


def test_a_body_reaches_what_is_near():
    model = samples.stanford_arm()
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(20):
        q = model.random_configuration(rng)
        target = model.pose(model.integrate(q, 0.1 * rng.normal(size=model.nv)), "link6")
        point = np.array([0.0, 0.0, 0.05])
        goal = PointGoal("link6", point, target[:3, :3] @ point + target[:3, 3], target[:3, :3])
        found = settled(model, q, [goal])
        assert ((found >= model.limits.lower - 1e-12) & (found <= model.limits.upper + 1e-12)).all()
        reached += np.abs(model.pose(found, "link6") - target).max() < 1e-6
    assert reached >= 18


def test_closures_stay_closed_while_a_body_is_drawn_away():
    model = samples.four_bar()
    q = model.assemble(model.neutral())
    name = model.bodies[1].name
    X = model.pose(q, name)
    found = settled(model, q, [PointGoal(name, np.zeros(3), X[:3, 3] + (0.05, 0.0, 0.0))])
    found = found if is_closed(model, found) else settled(model, found)
    assert is_closed(model, found)
    assert model.pose(found, name)[0, 3] - X[0, 3] > 0.03


def test_limits_hold():
    b = lw.ModelBuilder("limited")
    limits = lw.JointLimits(-0.2, 0.2)
    b.add_body("a", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, inertia=np.eye(3), limits=limits)
    b.add_body("b", parent="a", joint=lw.Revolute(axis=(0, 1, 0)), placement=lw.transform(xyz=(1, 0, 0)), mass=1.0,
               inertia=np.eye(3), limits=limits)  # fmt: skip
    model = b.build()
    found = settled(model, np.zeros(2), [PointGoal("b", np.array([1.0, 0, 0]), np.array([0.0, 0, 2.0]))])
    np.testing.assert_allclose(found, [-0.2, -0.2], atol=0.05)
    assert (np.abs(found) <= 0.2 + 1e-12).all()
