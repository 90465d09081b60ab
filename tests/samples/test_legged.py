"""The quadruped and the humanoid: they weigh, stand and fold as they say."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import humanoid, quadruped

MACHINES = {
    "quadruped": (quadruped, 12, 15.4, 4),
    "humanoid": (humanoid, 29, 48.44, 8),
}


@pytest.fixture(params=MACHINES)
def machine(request):
    make, joints, mass, balls = MACHINES[request.param]
    return make(), joints, mass, balls


def soles(model, q):
    """Lowest points of the outlines for contact, which are balls, m."""
    return [
        (model.pose(q, body.name) @ np.array(shape.placement))[:3, 3] - (0.0, 0.0, shape.size[0])
        for body in model.bodies
        for shape in body.collisions
    ]


def test_as_many_joints_and_as_heavy_as_said(machine):
    model, joints, mass, balls = machine
    assert model.nv == 6 + joints
    assert model.mass == pytest.approx(mass)
    assert {shape.kind for body in model.bodies for shape in body.collisions} == {"sphere"}
    assert len(soles(model, model.configurations["stand"])) == balls


def test_feet_are_level_and_carry_the_mass_centre(machine):
    model, *_ = machine
    q = model.configurations["stand"]
    points = np.array(soles(model, q))
    assert np.abs(points[:, 2]).max() < 1e-12
    centre = model.center_of_mass(q)
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    room = np.minimum(centre[:2] - low, high - centre[:2])  # feet are parallel: the rectangle around them
    assert room.min() > 0.05


def test_every_named_configuration_is_within_limits_and_symmetric(machine):
    model, *_ = machine
    for q in model.configurations.values():
        assert (model.limits.lower <= q).all() and (q <= model.limits.upper).all()
        assert abs(model.center_of_mass(q)[1]) < 1e-12


def test_limits_are_sensible(machine):
    """Every joint turns, by less than a full turn, and holds the machine up with strength to spare."""
    model, *_ = machine
    turns = model.limits.upper[7:] - model.limits.lower[7:]
    assert (turns > 0.5).all() and (turns < 2 * np.pi).all()
    q = model.configurations["stand"]
    carried = model.gravity_force(q)
    assert (model.limits.effort[6:] > 1.5 * np.abs(carried[6:])).all()


def test_the_inertia_of_every_body_is_that_of_a_solid(machine):
    model, *_ = machine
    for body in model.bodies:
        small, middle, large = np.linalg.eigvalsh(body.inertia)
        assert small > 0.0 and large <= small + middle


@pytest.mark.parametrize("make", [quadruped, humanoid])
def test_mujoco_agrees_and_sees_nothing_touch(make, tmp_path):
    """With outlines for all bodies, standing: none is in another one but for neighbours."""
    mujoco = pytest.importorskip("mujoco")
    model = make("all")
    model.save(tmp_path / "machine.xml")
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "machine.xml"))
    data = mujoco.MjData(theirs)
    assert np.count_nonzero(theirs.geom_contype) == sum(len(body.collisions) for body in model.bodies)
    for q in model.configurations.values():
        data.qpos[:] = np.concatenate([q[4:7], q[:4], q[7:]])
        mujoco.mj_forward(theirs, data)
        assert data.ncon == 0
        assert np.allclose(data.subtree_com[0], model.center_of_mass(q), atol=1e-9)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(theirs, data, M)
        ours = model.mass_matrix(q)
        assert np.allclose(M[6:, 6:], ours[6:, 6:], atol=1e-9)


def test_it_falls_as_a_whole(machine):
    """Nothing holds it: the mass centre falls freely, whatever the legs do."""
    model, *_ = machine
    motion = lw.simulate(model, model.configurations["stand"], duration=0.2, limits="ignore")
    fall = model.center_of_mass(motion.q)[:, 2]
    assert fall[-1] - fall[0] == pytest.approx(-9.81 * 0.2**2 / 2, rel=1e-6)


def test_outlines_are_asked_for_by_name():
    with pytest.raises(lw.InputError, match="not known"):
        quadruped("hands")
