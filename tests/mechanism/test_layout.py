"""The internal frames: chosen for cheapness, exact also where axes are nearly parallel or a frame cannot be turned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import Trees
from linkwise.mechanism.frames import AlignedFrames, zxz
from linkwise.mechanism.regroup import Parts
from tests.oracles.eager import Eager, relative_error
from tests.random_trees import BUILT_IN, random_inertia, random_joint, random_state

SMALL = [0.0, 1e-17, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3, 1e-2, 0.03]


def turn(axis: Any, angle: float) -> np.ndarray:
    """A rotation that nobody has rounded to a quarter turn."""
    K = np.cross(np.eye(3), np.array(axis) / np.linalg.norm(axis))
    X = np.eye(4)
    X[:3, :3] += math.sin(angle) * K + 2 * math.sin(angle / 2) ** 2 * K @ K
    return X


def frames_agree(model: lw.Model, tolerance: float = 1e-12) -> None:
    rng = np.random.default_rng(0)
    trees = Trees(model)
    trees.__dict__["fast"] = trees.in_body_frames
    ours, plain = Eager(model), Eager(model, trees=trees)
    for _ in range(2):
        q, v, vdot = random_state(model, rng)
        assert relative_error(ours.poses(q), plain.poses(q)) < tolerance
        assert relative_error(ours.inverse_dynamics(q, v, vdot), plain.inverse_dynamics(q, v, vdot)) < tolerance
        assert relative_error(ours.mass_matrix(q), plain.mass_matrix(q)) < tolerance
        solved = ours.forward_dynamics(q, v, vdot), plain.forward_dynamics(q, v, vdot)
        assert relative_error(*solved) < 1e3 * tolerance


@pytest.mark.parametrize("angle", SMALL)
@pytest.mark.parametrize("kind", BUILT_IN)
def test_nearly_parallel_axes(angle: float, kind: str) -> None:
    rng = np.random.default_rng(1)
    b = lw.ModelBuilder("nearly")
    b.add_body("a", joint=lw.Revolute(), placement=turn((1, 2, 3), angle), **random_inertia(rng))
    shifted = turn((1, -1, 0.3), angle)
    shifted[:3, 3] = (0.3, 0.1, 0.2)
    b.add_body("b", "a", random_joint(rng, kind, 1.0), shifted, **random_inertia(rng))
    b.add_body("c", "b", lw.Revolute(), shifted, **random_inertia(rng))
    frames_agree(b.build())


def rodrigues(axis: Any, angle: float) -> np.ndarray:
    """A turn about an axis, with nothing left out however small."""
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * K + 2 * math.sin(angle / 2) ** 2 * K @ K


@pytest.mark.parametrize("tilt", [1e-15, 1e-12, 1e-9, 1e-8, 1e-7])
@pytest.mark.parametrize("along", range(3))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_axes_that_are_nearly_coordinate_axes(tilt: float, along: int, sign: float) -> None:
    """Their length is that of one component to the last digit, but they are not that axis."""
    axis = np.full(3, tilt)
    axis[along] = sign
    b = lw.ModelBuilder("tilted")
    b.add_body("a", joint=lw.Revolute(axis), mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3))
    b.add_body("b", "a", joint=lw.Universal(axis, np.roll(axis, 1)), mass=1.0, com=(1, 0, 0), inertia=np.eye(3))
    model, q = b.build(), np.array([1.0, 0.7, -0.4])
    R = rodrigues(axis, 1.0)
    assert np.abs(model.pose(q, "a")[:3, :3] - R).max() < 3e-15
    R = R @ rodrigues(axis, 0.7) @ rodrigues(np.roll(axis, 1), -0.4)
    assert np.abs(model.pose(q, "b")[:3, :3] - R).max() < 3e-15


@pytest.mark.parametrize("angle", SMALL)
def test_frames_are_orthonormal(angle: float) -> None:
    b = lw.ModelBuilder("nearly")
    parent = "world"
    for k in range(5):
        X = turn((1, -k, 0.3), angle if k % 2 else math.pi - angle)
        X[:3, 3] = (0.1 * k, 0.2, -0.1)
        b.add_body(f"b{k}", parent, lw.Revolute(), X, mass=1.0, com=(0.1, 0.2, 0.3))
        parent = f"b{k}"
    model = b.build()
    frames = AlignedFrames(model, np.zeros(len(model.bodies), bool), Parts(model).centres())
    for k, R in enumerate(frames.R):
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=2e-15, err_msg=f"link {k}")
        assert np.linalg.det(R) > 0
        assert np.abs(frames.o[k]).max() < 200.0  # nearly parallel axes do not send origins away


@pytest.mark.parametrize("normal", np.vstack([np.eye(3), -np.eye(3), [[0.6, 0.0, 0.8]]]).tolist())
@pytest.mark.parametrize("axis", np.eye(3).tolist())
def test_a_child_that_cannot_be_turned(normal: list[float], axis: list[float]) -> None:
    """A planar joint's frame is fixed by its normal: parallel to the hinge before it, its x is taken over."""
    rng = np.random.default_rng(2)
    b = lw.ModelBuilder("planar")
    b.add_body("a", joint=lw.Revolute(axis), **random_inertia(rng))
    b.add_body("b", "a", lw.Planar(normal), lw.transform((0.1, 0.2, 0.3)), **random_inertia(rng))
    frames_agree(b.build())


def rz(x: float) -> np.ndarray:
    return turn((0, 0, 1), x)[:3, :3]


def rx(x: float) -> np.ndarray:
    return turn((1, 0, 0), x)[:3, :3]


@pytest.mark.parametrize("alpha", [*SMALL, *(math.pi - x for x in SMALL), 1.0, -1.0, -1e-8])
def test_three_turns(alpha: float) -> None:
    """R = Rz(γ) Rx(α) Rz(β) to rounding, also where γ and β are ill defined and only their sum is not."""
    for gamma in (0.0, 0.7, -2.0, math.pi):
        for beta in (0.0, 1.1, -0.4, math.pi / 2):
            R = rz(gamma) @ rx(alpha) @ rz(beta)
            g, a, b = (float(angle[0]) for angle in zxz(R[None]))
            np.testing.assert_allclose(rz(g) @ rx(a) @ rz(b), R, atol=6e-15)


def test_small_rotations_of_named_frames() -> None:
    """A frame turned by 1e-8 has ones on its diagonal; it is still turned."""
    for angle in (1e-8, 1e-9, 3e-8, 1e-12):
        b = lw.ModelBuilder("camera")
        b.add_body("a", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0))
        b.add_frame("camera", "a", turn((1, 2, 2), angle))
        model = b.build()
        pose = model.pose(np.zeros(1), "camera")
        np.testing.assert_allclose(pose[2, 1], angle / 3, rtol=1e-6)


def test_aligned_frames_cost_less() -> None:
    """The same arm, written in frames turned at random: the program is the one of the neat description."""
    rng = np.random.default_rng(3)
    neat = lw.Model.from_dh(
        [(0.1, math.pi / 2, 0.3, 0), (0.4, 0, 0, 0), (0.05, -math.pi / 2, 0.1, 0), (0, math.pi / 2, 0.4, 0)],
        masses=[1, 2, 3, 4], coms=rng.normal(size=(4, 3)) * 0.1, inertias=[[0.1, 0.2, 0.15]] * 4,
    )  # fmt: skip
    b = lw.ModelBuilder("messy")
    parent, undo = "world", np.eye(4)
    for body in neat.bodies:
        turned = turn(rng.normal(size=3), float(rng.uniform(0, 3)))  # the frame of this body, in the neat one
        part = body.parts[0]
        R = turned[:3, :3].T
        xx, yy, zz, xy, xz, yz = part.inertia
        inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        axis = R @ [0.0, 0.0, 1.0]
        b.add_body(
            body.name,
            parent,
            lw.Revolute(axis),
            undo @ np.array(body.placement) @ turned,
            part.mass,
            R @ part.com,
            inertia,
        )
        parent, undo = body.name, np.linalg.inv(turned)
    messy = b.build()
    q, v, vdot = random_state(neat, rng)
    assert relative_error(Eager(messy).inverse_dynamics(q, v, vdot), Eager(neat).inverse_dynamics(q, v, vdot)) < 1e-12
    for name in ("inverse_dynamics", "forward_dynamics"):
        ours, best = messy.function(name).counts, neat.function(name).counts
        assert ours.M <= 1.1 * best.M
        assert ours.A <= 1.1 * best.A
