"""The two arms of Saha 1999 §6 against a computation that shares nothing with the library.

Newton's and Euler's laws straight from the tables, in the inertial frame: positions of mass centres and rotations as
functions of time, differentiated with 40 digits, then moments about each joint's axis summed over what hangs on it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp

import linkwise as lw
from linkwise import samples

T = 10
TABLE_3 = [
    # a, b, α in degrees, joint, m, r, diagonal of I (Saha 1999 table 3)
    (0.0, 0.2, -90, "R", 9.0, (0.0, -0.1, 0.0), (0.01, 0.02, 0.01)),
    (0.0, 0.1, -90, "R", 6.0, (0.0, 0.0, 0.0), (0.05, 0.06, 0.01)),
    (0.0, 0.0, 0, "P", 4.0, (0.0, 0.0, 0.0), (0.4, 0.4, 0.01)),
    (0.0, 0.6, 90, "R", 1.0, (0.0, -0.1, 0.0), (0.001, 0.001, 0.0005)),
    (0.0, 0.0, -90, "R", 0.6, (0.0, 0.0, 0.0), (0.0005, 0.0005, 0.0002)),
    (0.0, 0.0, 0, "R", 0.5, (0.0, 0.0, 0.0), (0.003, 0.001, 0.002)),
]
START = [0.0, math.pi / 2, 0.0, 0.0, 0.0, 0.0]
END = [math.pi / 3, math.pi / 3, 0.1, math.pi / 3, math.pi / 3, math.pi / 3]
LENGTH, MASS = 0.5, 0.2
PLANAR = [(LENGTH, 0.0, 0, "R", MASS, (LENGTH / 2, 0.0, 0.0), (0.0, MASS * LENGTH**2 / 12, MASS * LENGTH**2 / 12))] * 3


def cycloid(t: Any, start: float, end: float) -> Any:
    return start + (mp.mpf(end) - start) * (t / T - mp.sin(2 * mp.pi * t / T) / (2 * mp.pi))


def frames(table: Any, q: list[Any]) -> list[Any]:
    """All frames of the paper's appendix A in the inertial frame: frame i + 1 from frame i."""
    X, found = mp.eye(4), [mp.eye(4)]
    for (a, b, alpha, joint, *_), x in zip(table, q, strict=True):
        theta, b = (x, mp.mpf(b)) if joint == "R" else (mp.mpf(0), x)
        c, s = mp.cos(theta), mp.sin(theta)
        ca, sa = {-90: (0, -1), 0: (1, 0), 90: (0, 1)}[alpha]
        turned = mp.matrix([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, b], [0, 0, 0, 1]])
        X = X * turned * mp.matrix([[1, 0, 0, a], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
        found.append(X)
    return found


def newton_euler(table: Any, start: Any, end: Any, gravity: Any, t: float) -> list[float]:
    """Joint forces at one time of the cycloidal motion."""
    with mpmath.workdps(40):
        t = mp.mpf(t)
        n = len(table)

        def at(time: Any) -> list[Any]:
            return frames(table, [cycloid(time, a, b) for a, b in zip(start, end, strict=True)])

        def center(time: Any, k: int) -> Any:
            X = at(time)[k + 1]
            return X[:3, 3] - X[:3, :3] * mp.matrix(table[k][5])  # r leads from the mass centre to the next joint

        def spin(time: Any, k: int) -> Any:
            R = at(time)[k + 1][:3, :3]
            R_dot = derivative(lambda x: at(x)[k + 1][:3, :3], time, 1)
            W = R_dot * R.T
            omega = mp.matrix([W[2, 1], W[0, 2], W[1, 0]])
            return R * mp.diag([mp.mpf(x) for x in table[k][6]]) * R.T * omega

        now, g = at(t), mp.matrix([mp.mpf(x) for x in gravity])
        force = [mp.mpf(table[k][4]) * (derivative(lambda x, k=k: center(x, k), t, 2) - g) for k in range(n)]
        moment = [derivative(lambda x, k=k: spin(x, k), t, 1) for k in range(n)]
        tau = []
        for i in range(n):
            z, o = now[i][:3, 2], now[i][:3, 3]
            if table[i][3] == "P":
                tau.append(sum(dot(z, force[k]) for k in range(i, n)))
            else:
                tau.append(sum(dot(z, cross(center(t, k) - o, force[k]) + moment[k]) for k in range(i, n)))
        return [float(x) for x in tau]


def derivative(function: Any, at: Any, order: int) -> Any:
    """Central differences of sixth order: with 40 digits and a step of 1e-4 good for some twenty."""
    h = mp.mpf(10) ** -4
    x = {k: function(at + k * h) for k in range(-3, 4)}
    if order == 1:
        return (45 * (x[1] - x[-1]) - 9 * (x[2] - x[-2]) + (x[3] - x[-3])) / (60 * h)
    sums = 270 * (x[1] + x[-1]) - 27 * (x[2] + x[-2]) + 2 * (x[3] + x[-3]) - 490 * x[0]
    return sums / (180 * h**2)


def dot(a: Any, b: Any) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Any, b: Any) -> Any:
    return mp.matrix([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def motion(start: Any, end: Any, t: Any) -> tuple[Any, Any, Any]:
    t = np.asarray(t, float)[:, None]
    way, turn = np.subtract(end, start), 2 * np.pi * t / T
    q = np.array(start) + way * (t / T - np.sin(turn) / (2 * np.pi))
    return q, way * (1 - np.cos(turn)) / T, way * 2 * np.pi * np.sin(turn) / T**2


def from_table(table: Any, **options: Any) -> lw.Model:
    rows = [(a, math.radians(alpha), b, 0.0) for a, b, alpha, *_ in table]
    columns = list(zip(*table, strict=True))
    return lw.Model.from_dh(
        rows, "saha", joints=columns[3], masses=columns[4], coms=columns[5], inertias=columns[6], **options
    )


TIMES = [0.0, 1.3, 4.1, 7.7]


@lru_cache
def stanford_forces() -> list[list[float]]:
    return [newton_euler(TABLE_3, START, END, (0, 0, -9.81), t) for t in TIMES]


@pytest.mark.parametrize("make", [samples.stanford_arm, lambda: from_table(TABLE_3)], ids=["models", "from_dh"])
def test_stanford_arm(make: Any) -> None:
    model = make()
    q, v, vdot = motion(START, END, TIMES)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, vdot), stanford_forces(), atol=1e-12)


@pytest.mark.parametrize(
    "make", [samples.planar_arm, lambda: from_table(PLANAR, gravity=(0, -9.81, 0))], ids=["models", "from_dh"]
)
def test_planar_arm(make: Any) -> None:
    model, start, end = make(), [0.0] * 3, [math.pi] * 3
    q, v, vdot = motion(start, end, TIMES)
    expected = [newton_euler(PLANAR, start, end, (0, -9.81, 0), t) for t in TIMES]
    np.testing.assert_allclose(model.inverse_dynamics(q, v, vdot), expected, atol=1e-12)


def test_what_the_paper_says_of_figure_9() -> None:
    """Joint 3 falls with nearly g once joint 2 has turned by 90°; at the start the slide is level and feels nothing."""
    model = samples.stanford_arm()
    rest = np.zeros(6)
    level = model.forward_dynamics(np.array(START), rest, rest)
    assert abs(level[2]) < 1e-12
    hanging = model.forward_dynamics(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), rest, rest)
    assert abs(abs(hanging[2]) - 9.81) < 1e-12


def test_what_the_paper_says_of_figure_6() -> None:
    """Falling from the stretched position, θ1 first turns in the negative direction."""
    model = samples.planar_arm()
    assert model.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3))[0] < 0
