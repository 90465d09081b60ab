"""A joint that is not at the origin of the body's frame: the same mechanism, with the frames where the author wants."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.layout import lay_out

KINDS = [
    lw.Revolute((0.3, -0.5, 0.8)),
    lw.Revolute((0, 0, 1)),
    lw.Prismatic((0.6, 0.0, 0.8)),
    lw.Helical(0.3, (1, 2, 3)),
    lw.Cylindrical((0, 1, 1)),
    lw.Universal((1, 0, 0), (0, 1, 1)),
    lw.Planar((0.2, 1, 0)),
    lw.Spherical(),
    lw.Free(),
]


def somewhere(rng: np.random.Generator) -> np.ndarray:
    return lw.transform(xyz=rng.uniform(-1, 1, 3), rpy=rng.uniform(-2, 2, 3))


def chain(rng: np.random.Generator, *, offsets: bool) -> tuple[lw.Model, list[np.ndarray]]:
    """All joint types in a row. Without offsets, the bodies' frames are the joints', and what they carry is moved."""
    b = lw.ModelBuilder("chain")
    frames = [somewhere(rng) for _ in KINDS]
    parent, back = "world", np.eye(4)
    for k, (kind, J) in enumerate(zip(KINDS, frames, strict=True)):
        X, com, root = somewhere(rng), rng.uniform(-1, 1, 3), rng.uniform(-1, 1, (3, 3))
        A = root @ root.T
        inertia = np.trace(A) * np.eye(3) - A
        name = f"b{k}"
        if offsets:
            b.add_body(name, parent, kind, X, 1.0 + k, com, inertia, joint_frame=J)
        else:
            inv = np.linalg.inv(J)
            com = inv[:3, :3] @ com + inv[:3, 3]
            b.add_body(name, parent, kind, back @ X, 1.0 + k, com, inv[:3, :3] @ inertia @ inv[:3, :3].T)
            back = inv
        parent = name
    b.add_frame("tip", parent, (np.eye(4) if offsets else back) @ lw.transform(xyz=(0.1, 0.2, 0.3)))
    return b.build(), frames


@pytest.fixture(scope="module")
def pair() -> tuple[lw.Model, lw.Model, list[np.ndarray]]:
    there, frames = chain(np.random.default_rng(3), offsets=True)
    here, _ = chain(np.random.default_rng(3), offsets=False)
    return there, here, frames


def test_the_mechanism_is_the_same(pair: tuple[lw.Model, lw.Model, list[np.ndarray]]) -> None:
    there, here, frames = pair
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = here.random_configuration(rng)
        v, vdot = rng.normal(size=(2, here.nv))
        tau = here.inverse_dynamics(q, v, vdot)
        np.testing.assert_allclose(there.inverse_dynamics(q, v, vdot), tau, rtol=1e-9, atol=1e-9 * abs(tau).max())
        np.testing.assert_allclose(there.forward_dynamics(q, v, tau), vdot, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(there.pose(q, "tip"), here.pose(q, "tip"), atol=1e-12)
        np.testing.assert_allclose(there.jacobian(q, "tip"), here.jacobian(q, "tip"), atol=1e-11)
        moved = here.poses(q) @ np.array([np.linalg.inv(J) for J in frames])
        np.testing.assert_allclose(there.poses(q), moved, atol=1e-12)


def test_external_forces_are_in_the_frames_of_the_bodies(pair: tuple[lw.Model, lw.Model, list[np.ndarray]]) -> None:
    there, here, frames = pair
    rng = np.random.default_rng(1)
    q, v = here.random_configuration(rng), rng.normal(size=here.nv)
    wrench = rng.normal(size=(len(frames), 6))
    moved = np.empty_like(wrench)  # the same forces, about the joints' origins and in their axes
    for k, J in enumerate(frames):
        R, p = J[:3, :3], J[:3, 3]
        moved[k, 3:] = R.T @ wrench[k, 3:]
        moved[k, :3] = R.T @ (wrench[k, :3] - np.cross(p, wrench[k, 3:]))
    expected = here.inverse_dynamics(q, v, v, moved)
    np.testing.assert_allclose(there.inverse_dynamics(q, v, v, wrench), expected, rtol=1e-9, atol=1e-9)


def test_the_layouts_agree(pair: tuple[lw.Model, lw.Model, list[np.ndarray]]) -> None:
    from linkwise.algorithms.inverse_dynamics import inverse_dynamics

    there = pair[0]
    rng = np.random.default_rng(2)
    q, v, vdot = there.random_configuration(rng).tolist(), *rng.normal(size=(2, there.nv)).tolist()
    aligned = inverse_dynamics(lay_out(there), q, v, vdot)
    as_written = inverse_dynamics(lay_out(there, align=False, regroup=False), q, v, vdot)
    np.testing.assert_allclose(np.array(aligned, float), np.array(as_written, float), rtol=1e-9, atol=1e-9)


def test_a_fixed_body_has_its_own_frame_too() -> None:
    J = lw.transform(xyz=(0, 0, 1), rpy=(0, 0, 0.3))
    b = lw.ModelBuilder("weld")
    b.add_body("a", joint=lw.Revolute(), mass=1.0, inertia=np.eye(3))
    b.add_body("b", parent="a", joint=lw.Fixed(), placement=lw.transform(xyz=(1, 0, 0)), joint_frame=J)
    model = b.build()
    np.testing.assert_allclose(model.pose([0.0], "b"), lw.transform(xyz=(1, 0, 0)) @ np.linalg.inv(J), atol=1e-15)
