"""Tables of Denavit and Hartenberg: the conventions against their products of matrices, and against each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linkwise as lw

ROWS = np.array([[0.1, 0.3, 0.2, -0.4], [-0.2, -math.pi / 2, 0.05, 0.7], [0.3, 1.1, 0.0, 0.0], [0.0, 2.0, -0.3, 0.9]])
JOINTS = "RPRP"


def rz(x: float) -> Any:
    c, s = math.cos(x), math.sin(x)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def rx(x: float) -> Any:
    c, s = math.cos(x), math.sin(x)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def shift(x: float, z: float) -> Any:
    X = np.eye(4)
    X[0, 3], X[2, 3] = x, z
    return X


def product(convention: str, q: Any) -> list[Any]:
    """The frames by the textbooks' matrices."""
    X, found = np.eye(4), []
    for (a, alpha, d, theta), letter, x in zip(ROWS, JOINTS, q, strict=True):
        theta, d = (theta + x, d) if letter == "R" else (theta, d + x)
        if convention == "modified":
            X = X @ rx(alpha) @ shift(a, 0) @ rz(theta) @ shift(0, d)
        else:
            X = X @ rz(theta) @ shift(0, d) @ shift(a, 0) @ rx(alpha)
        found.append(X)
    return found


@pytest.mark.parametrize("convention", ["standard", "modified", "saha"])
def test_frames(convention: str) -> None:
    model = lw.Model.from_dh(ROWS, convention, joints=JOINTS)
    for q in (np.zeros(4), np.array([0.3, -0.2, 1.7, 0.4])):
        for i, expected in enumerate(product(convention, q)):
            np.testing.assert_allclose(model.pose(q, f"dh{i + 1}"), expected, atol=1e-14)
    assert [joint.name for joint in model.joints] == ["joint1", "joint2", "joint3", "joint4"]
    if convention == "modified":
        np.testing.assert_allclose(model.poses(q), product(convention, q), atol=1e-14)


def test_base_and_tool() -> None:
    base, tool = lw.transform((1, 2, 3), (0.1, 0.2, 0.3)), lw.transform((0, 0, 0.1))
    model = lw.Model.from_dh(ROWS, joints=JOINTS, base=base, tool=tool, name="arm", gravity=(0, 0, 0))
    q = np.array([0.3, -0.2, 1.7, 0.4])
    np.testing.assert_allclose(model.pose(q, "tool"), base @ product("standard", q)[-1] @ tool, atol=1e-14)
    assert (model.name, model.gravity) == ("arm", (0.0, 0.0, 0.0))


@pytest.mark.parametrize("convention", ["standard", "modified", "saha"])
def test_dynamics(convention: str) -> None:
    """Energies from the frames and the data as given, without the library's dynamics."""
    rng = np.random.default_rng(0)
    masses, coms = rng.uniform(1, 2, 4), rng.uniform(-0.2, 0.2, (4, 3))
    roots = rng.normal(size=(4, 3, 3)) * 0.1
    inertias = np.eye(3) * 0.3 + roots @ roots.transpose(0, 2, 1)
    model = lw.Model.from_dh(
        ROWS, convention, joints=JOINTS, masses=masses, coms=coms, inertias=inertias, armature=[0.0, 0.1, 0.2, 0.3]
    )
    q, v, h = np.array([0.3, -0.2, 1.7, 0.4]), np.array([0.5, -1.0, 0.8, 0.3]), 1e-5
    here, ahead, behind = (product(convention, q + k * h * v) for k in (0, 1, -1))
    kinetic, potential = 0.5 * float(np.array([0.0, 0.1, 0.2, 0.3]) @ v**2), 0.0
    sign = -1.0 if convention == "saha" else 1.0
    for m, c, I, X, A, B in zip(masses, coms, inertias, here, ahead, behind, strict=True):
        point = np.array([*(sign * c), 1.0])
        velocity = ((A - B) @ point / (2 * h))[:3]
        W = (A - B)[:3, :3] @ X[:3, :3].T / (2 * h)
        omega = np.array([W[2, 1], W[0, 2], W[1, 0]])
        I_world = X[:3, :3] @ I @ X[:3, :3].T
        kinetic += 0.5 * m * velocity @ velocity + 0.5 * omega @ I_world @ omega
        potential += 9.81 * m * (X @ point)[2]
    assert model.kinetic_energy(q, v) == pytest.approx(kinetic, rel=1e-9)
    assert model.potential_energy(q) == pytest.approx(potential, rel=1e-13)


def test_diagonal_inertias() -> None:
    diagonal = [[0.1, 0.2, 0.15]] * 4
    full = [np.diag(row) for row in diagonal]
    a, b = (lw.Model.from_dh(ROWS, joints=JOINTS, masses=[1] * 4, inertias=I) for I in (diagonal, full))
    assert a == b


def test_the_same_arm_in_two_conventions() -> None:
    """A standard table and the modified one that says the same: rows shifted by one, as in the textbooks."""
    standard = np.array([[0.3, 0.5, 0.2, 0.1], [0.1, -0.7, 0.0, 0.2], [0.0, 0.0, 0.4, 0.0]])
    modified = np.array([[0.0, 0.0, 0.2, 0.1], [0.3, 0.5, 0.0, 0.2], [0.1, -0.7, 0.4, 0.0]])
    a = lw.Model.from_dh(standard, "standard", masses=[0, 0, 1])
    b = lw.Model.from_dh(modified, "modified", masses=[0, 0, 1])
    q = np.array([0.4, -0.3, 1.2])
    np.testing.assert_allclose(a.pose(q, "dh3"), b.pose(q, "dh3"), atol=1e-15)


def test_without_masses_there_are_kinematics() -> None:
    model = lw.Model.from_dh(ROWS, joints=JOINTS)
    assert model.jacobian(np.zeros(4), "dh4").shape == (6, 4)
    np.testing.assert_array_equal(model.inverse_dynamics(np.zeros(4), np.ones(4), np.ones(4)), 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"convention": "classic"}, "no such convention for DH tables\n  got:     'classic'\n  allowed: 'standard'"),
        ({"table": [[1, 2, 3]]}, r"the DH table has the wrong shape\n  got:     \(1, 3\)"),
        ({"table": []}, "the DH table has the wrong shape"),
        ({"table": [["a", 0, 0, 0]]}, "the DH table is not made of numbers"),
        ({"table": [[math.nan, 0, 0, 0]]}, "the DH table has numbers that are not finite"),
        ({"joints": "RR"}, "joints does not fit the DH table\n  got:     'RR'\n  allowed: 4 letters"),
        ({"joints": "RRSP"}, "joints does not fit the DH table"),
        ({"masses": [1, 2]}, r"masses has the wrong shape\n  got:     \(2,\)"),
        ({"masses": [1, 1, 1, -1]}, "the mass of body 'link4' is not possible"),
        ({"coms": np.zeros((4, 3))}, "mass centres and inertias need masses"),
        ({"masses": [1] * 4, "inertias": np.zeros((4, 6))}, "inertias has the wrong shape"),
        ({"base": np.zeros((4, 4))}, "the placement of body 'link1' is not a rotation and a shift"),
    ],
)  # fmt: skip
def test_mistakes(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"table": ROWS, "joints": JOINTS, **change}
    with pytest.raises(lw.LinkwiseError, match=message):
        lw.Model.from_dh(**arguments)
