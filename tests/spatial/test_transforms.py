"""Transforms, vectors and inertias against their 6×6 matrices (formulas §1), factor by factor and in products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia, coordinate_axis
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.quaternions import rotation_matrix
from linkwise.spatial.transforms import Rotation, Shift, Tilt, Transform, TransformFactor, Turn
from linkwise.spatial.vectors import Force, Motion, Vec

SEEDS = range(25)


def random_factor(rng: np.random.Generator) -> TransformFactor:
    kind = rng.integers(5)
    angle = float(rng.choice([rng.normal() * 2, 1e-7, math.pi - 1e-7, math.pi / 2, 0.0]))
    if kind < 2:
        return Turn(int(rng.integers(3)), math.cos(angle), math.sin(angle))
    if kind == 2:
        return Rotation(rotation_matrix(rng.normal(size=4).tolist()))
    if kind == 3:
        return random_tilt(rng)[0]
    return Shift(Vec.of((rng.normal(size=3) * (rng.random(3) < 0.6)).tolist()))


def random_tilt(rng: np.random.Generator) -> tuple[Tilt, np.ndarray]:
    """With its Rodrigues parameters."""
    across = int(rng.integers(3))
    c = rng.normal(size=3) * float(rng.choice([1.0, 1e-7, 30.0, 0.0]))
    c[across] = 0.0
    k = 2.0 / (1.0 + float(c @ c))
    return Tilt(across, Vec.of(c.tolist()), k, Vec.of((k * c).tolist())), c


@pytest.mark.parametrize("seed", SEEDS)
def test_a_tilt_is_cayleys_rotation(seed: int) -> None:
    tilt, c = random_tilt(np.random.default_rng(seed))
    R = np.linalg.solve(np.eye(3) - tilde(c), np.eye(3) + tilde(c))
    close(np.array(tilt.matrix()[0].m, float), R)
    close(np.array([list(tilt.rotate(Vec.unit(i))) for i in range(3)], float).T, R)


def random_transform(rng: np.random.Generator) -> Transform:
    return Transform(*(random_factor(rng) for _ in range(rng.integers(0, 6))))


def tilde(v: Any) -> np.ndarray:
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def rotation_of(X: Transform) -> np.ndarray:
    return np.array(X.R.m, float)


def phi(X: Transform) -> np.ndarray:
    """[[R, l~R], [0, R]]."""
    R, l = rotation_of(X), np.array(list(X.l), float)
    return np.block([[R, tilde(l) @ R], [np.zeros((3, 3)), R]])


def six(vector: Any) -> np.ndarray:
    return np.array(list(vector), float)


def rigid_matrix(M: RigidInertia) -> np.ndarray:
    return np.block([[np.array(M.J.m), tilde(M.h)], [-tilde(M.h), M.m * np.eye(3)]])


def articulated_matrix(P: ArticulatedInertia) -> np.ndarray:
    B = np.array(P.B.m)
    return np.block([[np.array(P.J.m), B], [B.T, np.array(P.M.m)]])


def random_rigid(rng: np.random.Generator) -> RigidInertia:
    m = float(rng.uniform(0.5, 2))
    return RigidInertia(m, Vec.of(rng.normal(size=3).tolist()), Sym3.of(*rng.normal(size=6).tolist()))


def random_articulated(rng: np.random.Generator) -> ArticulatedInertia:
    A = rng.normal(size=(6, 6))
    A = A @ A.T
    return ArticulatedInertia(
        Sym3.build_symmetric(lambda i, j: float(A[i, j])),
        Mat3.build(lambda i, j: float(A[i, j + 3])),
        Sym3.build_symmetric(lambda i, j: float(A[i + 3, j + 3])),
    )


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * (1 + np.abs(b).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_action_is_that_of_the_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, f, V = random_transform(rng), Force.of(rng.normal(size=6).tolist()), Motion.of(rng.normal(size=6).tolist())
    close(six(X @ f), phi(X) @ six(f))
    close(six(X.T @ V), phi(X).T @ six(V))
    close(six(X.motion_to_child(V)), phi(X).T @ six(V))
    close(six(X.motion_to_parent(V)), np.linalg.solve(phi(X).T, six(V)))
    close(six(X.motion_to_parent(X.T @ V)), six(V))
    v = Vec.of(rng.normal(size=3).tolist())
    close(list(X.rotate(v)), rotation_of(X) @ list(v))
    close(list(X.rotate_back(v)), rotation_of(X).T @ list(v))


@pytest.mark.parametrize("seed", SEEDS)
def test_congruences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, M, P = random_transform(rng), random_rigid(rng), random_articulated(rng)
    close(rigid_matrix(X.congruence(M)), phi(X) @ rigid_matrix(M) @ phi(X).T)
    close(articulated_matrix(X.congruence(P)), phi(X) @ articulated_matrix(P) @ phi(X).T)
    close(articulated_matrix(X.congruence(M.articulated())), rigid_matrix(X.congruence(M)))


@pytest.mark.parametrize("seed", SEEDS)
def test_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y, Z = (random_transform(rng) for _ in range(3))
    close(phi(X.then(Y)), phi(X) @ phi(Y))
    close(phi(X.then(Y).then(Z)), phi(X.then(Y.then(Z))))
    close(phi(X.then(Transform())), phi(X))
    close(phi(Transform()), np.eye(6))
    R = rotation_of(X)
    close(R @ R.T, np.eye(3))
    assert np.linalg.det(R) == pytest.approx(1.0)


def test_rigid_leaves_identities_out_but_nothing_else() -> None:
    """A turn by 1e-9 has ones on its diagonal to the last digit and still is a turn."""
    assert Transform.rigid(Mat3.identity(), Vec.zero()).factors == ()
    for angle in (1e-9, 1e-8, 1e-15, 1e-3):
        R = np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1.0]])
        X = Transform.rigid(Mat3(R.tolist()), Vec.zero())
        np.testing.assert_array_equal(rotation_of(X), R)
    half_turn = Transform.rigid(Mat3(np.diag([1.0, -1.0, -1.0]).tolist()), Vec(1.0, 0.0, 0.0))
    assert len(half_turn.factors) == 2


@pytest.mark.parametrize("axis", range(3))
def test_turns(axis: int) -> None:
    c, s = math.cos(0.3), math.sin(0.3)
    R = np.array(Turn(axis, c, s).matrix()[0].m, float)
    u = np.eye(3)[axis]
    np.testing.assert_allclose(R @ u, u)
    np.testing.assert_allclose(R, c * np.eye(3) + s * tilde(u) + (1 - c) * np.outer(u, u), atol=1e-16)


@pytest.mark.parametrize("seed", SEEDS)
def test_cross_products(seed: int) -> None:
    rng = np.random.default_rng(seed)
    V, W, f = rng.normal(size=(3, 6))
    crm = np.block([[tilde(V[:3]), np.zeros((3, 3))], [tilde(V[3:]), tilde(V[:3])]])
    A, B, F = Motion.of(V.tolist()), Motion.of(W.tolist()), Force.of(f.tolist())
    close(six(A.cross(B)), crm @ W)
    close(six(A.cross_force(F)), -crm.T @ f)
    assert A.dot(F) == pytest.approx(V @ f)
    assert A.cross(B).dot(F) == pytest.approx(-B.dot(A.cross_force(F)))  # power is invariant
    close(six(A.cross(A)), np.zeros(6))
    close(six(A + B), V + W)
    close(six(A - B), V - W)
    close(six(-A), -V)
    close(six(2.0 * A), 2 * V)
    assert [A[i] for i in range(6)] == V.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_rigid_inertia(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, c = float(rng.uniform(1, 2)), rng.normal(size=3)
    J = rng.normal(size=(3, 3))
    J = J @ J.T
    M = RigidInertia.from_com(m, Vec.of(c.tolist()), Sym3.build_symmetric(lambda i, j: float(J[i, j])))
    close(rigid_matrix(M), np.block([[J - m * tilde(c) @ tilde(c), m * tilde(c)], [-m * tilde(c), m * np.eye(3)]]))
    V = Motion.of(rng.normal(size=6).tolist())
    close(six(M @ V), rigid_matrix(M) @ six(V))
    N = random_rigid(rng)
    close(rigid_matrix(M + N), rigid_matrix(M) + rigid_matrix(N))
    close(rigid_matrix(M - N), rigid_matrix(M) - rigid_matrix(N))
    close(articulated_matrix(M.articulated()), rigid_matrix(M))


@pytest.mark.parametrize("seed", SEEDS)
def test_eliminating_an_axis(seed: int) -> None:
    """P - u D⁻¹ u* has nothing left along s; the zeros written for a coordinate axis are those computed for any."""
    rng = np.random.default_rng(seed)
    P, k = random_articulated(rng), int(rng.integers(6))
    s = Motion.unit(k)
    u = P @ s
    g = u * (1.0 / s.dot(u))
    assert coordinate_axis(s) == k
    close(articulated_matrix(P.without(u, g, k)), articulated_matrix(P.without(u, g, None)))
    assert (articulated_matrix(P.without(u, g, k))[k] == 0).all()
    s = Motion.of(rng.normal(size=6).tolist())
    assert coordinate_axis(s) is None
    u = P @ s
    left = articulated_matrix(P.without(u, u * (1.0 / s.dot(u)), None))
    close(left @ six(s), np.zeros(6))
    close(left, left.T)


def test_coordinate_axes() -> None:
    assert coordinate_axis(Motion.zero()) is None
    assert coordinate_axis(Motion.of([0, 0, 1.0, 0, 0, 0.1])) is None
    assert coordinate_axis(Motion.of([0, 0, -1.0, 0, 0, 0])) is None
    assert coordinate_axis(Motion.of([0, 0, 2.0, 0, 0, 0])) is None


def test_matrices() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 3, 3))
    a, b = Mat3(A.tolist()), Mat3(B.tolist())
    v = Vec.of([1.0, 2.0, 3.0])
    close(np.array(a.times(b).m), A @ B)
    close(np.array(a.T.m), A.T)
    close(np.array((a + b).m), A + B)
    close(np.array((a - b).m), A - B)
    close(list(a @ v), A @ [1, 2, 3])
    close(list(a.transpose_times(v)), A.T @ [1, 2, 3])
    close(list(a.column(1)), A[:, 1])
    close(np.array(Mat3.cross(v).m), tilde(v))
    assert repr(v) == "Vec(1.0, 2.0, 3.0)"
    assert Sym3.of(1, 2, 3, 4, 5, 6).six() == (1, 2, 3, 4, 5, 6)
