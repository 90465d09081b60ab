"""Velocities, accelerations and Jacobians in their three ways of writing, against Pinocchio and each other."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import linkwise as lw
from bench.robots import ROBOTS
from linkwise.errors import InputError
from tests.random_trees import random_tree

FRAMES = {
    "mixed": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
    "local": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
}
HAND = "panda_hand"


def swapped(x: np.ndarray) -> np.ndarray:
    """Pinocchio writes the linear part first."""
    return np.concatenate([x[3:], x[:3]])


@pytest.fixture(scope="module")
def panda() -> lw.Model:
    return lw.load(ROBOTS["panda"].path, locked=list(ROBOTS["panda"].locked))


@pytest.mark.parametrize("reference", FRAMES)
def test_against_pinocchio(panda: lw.Model, reference: str) -> None:
    rng = np.random.default_rng(1)
    q, v, vdot = panda.random_configuration(rng), rng.normal(size=7), rng.normal(size=7)
    model = pin.buildModelFromUrdf(str(ROBOTS["panda"].path))
    model = pin.buildReducedModel(model, [model.getJointId(n) for n in ROBOTS["panda"].locked], pin.neutral(model))
    data = model.createData()
    pin.forwardKinematics(model, data, q, v, vdot)
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    pin.updateFramePlacements(model, data)
    frame, kind = model.getFrameId(HAND), FRAMES[reference]
    J = pin.getFrameJacobian(model, data, frame, kind)
    assert np.allclose(panda.jacobian(q, HAND, reference=reference), swapped(J), atol=1e-12)
    J_rate = pin.getFrameJacobianTimeVariation(model, data, frame, kind)
    assert np.allclose(panda.jacobian_rate(q, v, HAND, reference=reference), swapped(J_rate), atol=1e-12)
    V = pin.getFrameVelocity(model, data, frame, kind).vector
    assert np.allclose(panda.velocity(q, v, HAND, reference=reference), swapped(V), atol=1e-12)
    of = pin.getFrameClassicalAcceleration if reference == "mixed" else pin.getFrameAcceleration
    A = of(model, data, frame, kind).vector
    assert np.allclose(panda.acceleration(q, v, vdot, HAND, reference=reference), swapped(A), atol=1e-11)


@pytest.mark.parametrize("reference", FRAMES)
@pytest.mark.parametrize("seed", range(2))
def test_relations_on_trees_of_all_joints(seed: int, reference: str) -> None:
    model = random_tree(np.random.default_rng(seed), 5)
    rng = np.random.default_rng(seed)
    q, v, vdot = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    body = model.bodies[-1].name
    J = model.jacobian(q, body, reference=reference)
    V = model.velocity(q, v, body, reference=reference)
    assert np.allclose(J @ v, V, atol=1e-10)
    A = model.acceleration(q, v, vdot, body, reference=reference)
    assert np.allclose(J @ vdot + model.jacobian_rate(q, v, body, reference=reference) @ v, A, atol=1e-9)
    # The rate of the velocity, by a difference along the motion.
    h = 1e-5
    ahead, behind = (
        model.velocity(model.integrate(q, s * v + 0.5 * s * s * vdot), v + s * vdot, body, reference=reference)
        for s in (h, -h)
    )
    assert np.allclose((ahead - behind) / (2 * h), A, atol=1e-5 * max(1.0, np.abs(A).max()))


@pytest.mark.parametrize("reference", FRAMES)
def test_at_a_point(panda: lw.Model, reference: str) -> None:
    q, point = panda.random_configuration(3), np.array([0.1, -0.2, 0.3])
    J = panda.jacobian(q, HAND, reference=reference)
    at = panda.jacobian(q, HAND, point, reference=reference)
    arm = {"mixed": panda.pose(q, HAND)[:3, :3] @ point, "local": point, "world": np.zeros(3)}[reference]
    assert np.allclose(at[:3], J[:3], atol=1e-14)
    assert np.allclose(at[3:], J[3:] + np.cross(J[:3].T, arm).T, atol=1e-13)


@pytest.mark.parametrize("reference", FRAMES)
def test_loops_over_links_agree(reference: str) -> None:
    model = lw.load(ROBOTS["g1"].path)
    rolled = model.with_sweeps("rolled")
    rng = np.random.default_rng(2)
    q, v, vdot = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
    body, point = "left_wrist_yaw_link", np.array([0.1, 0.2, 0.3])
    for name, state in (("velocity", (q, v)), ("acceleration", (q, v, vdot))):
        one, other = (getattr(m, name)(*state, body, reference=reference) for m in (model, rolled))
        assert np.allclose(one, other, atol=1e-12)
    for name, state in (("jacobian", (q,)), ("jacobian_rate", (q, v))):
        one, other = (getattr(m, name)(*state, body, point, reference=reference) for m in (model, rolled))
        assert np.allclose(one, other, atol=1e-12)


def test_batches_and_mistakes(panda: lw.Model) -> None:
    q = np.array([panda.random_configuration(k) for k in range(5)])
    v = np.ones((5, 7))
    A = panda.acceleration(q, v, 0.5 * v, HAND, reference="local")
    assert A.shape == (5, 6)
    assert np.allclose(A[2], panda.acceleration(q[2], v[2], 0.5 * v[2], HAND, reference="local"), atol=1e-13)
    with pytest.raises(InputError, match="reference"):
        panda.velocity(q, v, HAND, reference="body")  # type: ignore[arg-type]
