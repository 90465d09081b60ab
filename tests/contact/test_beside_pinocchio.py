"""Both contact solvers beside Pinocchio's ADMM, on robots that stand on points: the same friction problem for all.

Mass matrices and Jacobians are Pinocchio's; unknown are the impulses after which nothing approaches or slips but by
Coulomb's law. The dual solver sees them as pulls, the primal one as velocities of the freedoms.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact.cones import Cone, Response, Row
from linkwise.contact.primal import Laws, Primal
from linkwise.mechanism.contacts import ContactRules
from linkwise.spatial.scalar import Items

pin = pytest.importorskip("pinocchio")
if not hasattr(pin, "ADMMConstraintSolver"):
    pytest.skip("this Pinocchio has no ADMM", allow_module_level=True)

FRICTION, ROUNDS = 0.8, 200
FOLDER = Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
if not FOLDER.exists():
    pytest.skip("no robots to load", allow_module_level=True)
ROBOTS = {
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", ["lf_foot", "rf_foot", "lh_foot", "rh_foot"], [(0, 0, 0)]),
    "solo12": ("solo_description/robots/solo12.urdf", ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"], [(0, 0, 0)]),
    "talos": (
        "talos_data/robots/talos_reduced.urdf",
        ["left_sole_link", "right_sole_link"],
        [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.06, 0.06)],
    ),
}


class Problem:
    """Robots at random postures with random velocities, all of whose feet strike the ground."""

    def __init__(self, name: str, count: int) -> None:
        path, frames, corners = ROBOTS[name]
        robot = pin.buildModelFromUrdf(str(FOLDER / path), pin.JointModelFreeFlyer())
        own, rng = robot.createData(), np.random.default_rng(11)
        self.M, self.J, self.v, self.expected = [], [], [], []
        for _ in range(count):
            q = pin.integrate(robot, pin.neutral(robot), np.r_[np.zeros(6), rng.uniform(-0.6, 0.6, robot.nv - 6)])
            v = rng.normal(size=robot.nv)
            M = pin.crba(robot, own, q)
            M = np.triu(M) + np.triu(M, 1).T
            pin.computeJointJacobians(robot, own, q)
            pin.updateFramePlacements(robot, own)
            rows = []
            for frame in frames:
                number = robot.getFrameId(frame)
                six = pin.getFrameJacobian(robot, own, number, pin.LOCAL_WORLD_ALIGNED)
                for corner in corners:
                    arm = own.oMf[number].rotation @ np.array(corner, float)
                    rows.append(six[:3] - pin.skew(arm) @ six[3:])
            self.M.append(M)
            self.J.append(np.array(rows)[:, [2, 0, 1]])  # normal first
            self.v.append(v)
            self.expected.append(self._by_admm(robot, M, np.array(rows), v))

    @staticmethod
    def _by_admm(robot: Any, M: np.ndarray, rows: np.ndarray, v: np.ndarray) -> tuple[bool, np.ndarray]:
        models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for _ in rows:
            point = pin.PointContactConstraintModel(robot, 1)
            point.setFriction(FRICTION)
            models.append(pin.ConstraintModel(point))
            datas.append(pin.ConstraintData(point.createData()))
        J = rows.reshape(-1, len(v))
        settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
        settings.max_iterations = 20_000
        for tolerance in ("feasibility", "complementarity"):
            setattr(settings, f"absolute_{tolerance}_tol", 1e-12)
            setattr(settings, f"relative_{tolerance}_tol", 1e-14)
        W = J @ np.linalg.solve(M, J.T)
        solver = pin.ADMMConstraintSolver()
        good = solver.solve(pin.DelassusOperatorDense(W), J @ v, models, datas, settings, result)
        return bool(good), np.array(result.retrieveConstraintImpulses()).reshape(-1, 3)[:, [2, 0, 1]]


def nothing() -> lw.Model:
    """A model for functions that ask none."""
    b = lw.ModelBuilder("nothing")
    b.add_body("body", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    return b.build()


def by_primal(n: int, points: int) -> lw.CompiledFunction:
    """Impulses (points, 3) from M, J, 𝓜⁻¹J* and v."""

    def solve(_: Any, M: Any, J: Any, U: Any, v: Any) -> Any:
        laws = []
        for k in range(points):
            W = [[sum(a * b for a, b in zip(J[k, i], U[k, j], strict=True)) for j in range(3)] for i in range(3)]
            laws.append(Laws([0.0] * 3, 0.0, 0.0, [FRICTION], [W[0][0], W[1][1] + W[2][2]]).numbers)
        rows = [[list(x.reshape(-1)) for x in each] for each in (J, U)]
        columns = [[J[k, i, a] for k in range(points) for i in range(3)] for a in range(n)]
        given = (Items.rows([list(x) for x in M]), *map(Items.rows, rows), Items.rows(columns), Items.rows(laws))
        found = Primal(*given, (2,), []).solved(
            list(v), [0.0] * (3 * points), ContactRules(tolerance=1e-12, rounds=ROUNDS)
        )
        return np.array(found[1], object).reshape(points, 3)

    shapes = {"M": (n, n), "J": (points, 3, n), "U": (points, 3, n), "v": (n,)}
    return lw.compile(solve, nothing(), inputs=shapes)


def by_dual(points: int) -> lw.CompiledFunction:
    """Impulses (points, 3) from W and the velocities without impulses."""

    def solve(_: Any, W: Any, w: Any) -> Any:
        cones: list[Cone] = []
        for k in range(points):
            row = [Row((3 * k + i,), (1.0,)) for i in range(3)]
            cones.append(Cone((row[0],), (0.0,), "half_line"))
            cones.append(Cone((row[1], row[2]), (0.0, 0.0), "disk", FRICTION, len(cones) - 1))
        rules = ContactRules(tolerance=1e-12, rounds=ROUNDS)
        found = Response(cones, [list(x) for x in W]).solved(list(w), [0.0] * (3 * points), rules)
        return np.array(found[1], object).reshape(points, 3)

    return lw.compile(solve, nothing(), inputs={"W": (3 * points, 3 * points), "w": (3 * points,)})


@pytest.mark.parametrize("name", ["hyq", "solo12"])
def test_impulses_of_feet_are_those_of_admm(name: str) -> None:
    """Points on feet of their own: the solution is one."""
    given = Problem(name, 60)
    M, J, v = np.array(given.M), np.array(given.J), np.array(given.v)
    n, points = v.shape[-1], J.shape[1]
    U = np.linalg.solve(M[:, None], J.swapaxes(-1, -2)).swapaxes(-1, -2)
    flat = J.reshape(len(v), -1, n)
    W = flat @ U.reshape(flat.shape).swapaxes(-1, -2)
    primal = by_primal(n, points)(M, J, U, v)
    dual = by_dual(points)(W, np.einsum("sra,sa->sr", flat, v))
    expected = np.array([impulses for _, impulses in given.expected])
    sure = np.array([good for good, _ in given.expected])
    assert sure.mean() > 0.9
    size = np.maximum(np.abs(expected).max(axis=(1, 2)), 1e-3)
    for found in (primal, dual):
        off = np.abs(found - expected).max(axis=(1, 2)) / size
        assert np.quantile(off[sure], 0.95) < 1e-8
        assert np.median(off[sure]) < 1e-10


def test_velocities_on_flat_feet_are_those_of_admm() -> None:
    """Four corners on each foot. Impulses may be shared in many ways, and of some blows there are several outcomes.

    Where velocities differ from ADMM's, both obey the laws.
    """
    given = Problem("talos", 40)
    M, J, v = np.array(given.M), np.array(given.J), np.array(given.v)
    U = np.linalg.solve(M[:, None], J.swapaxes(-1, -2)).swapaxes(-1, -2)
    found = by_primal(v.shape[-1], J.shape[1])(M, J, U, v)
    sure = np.array([good for good, _ in given.expected])
    expected = np.array([impulses for _, impulses in given.expected])
    after = [np.einsum("skia,ski->sa", U, impulses) + v for impulses in (found, expected)]
    off = np.abs(after[0] - after[1]).max(axis=-1)[sure]
    assert sure.mean() > 0.9
    assert (off < 1e-6).mean() > 0.75
    for velocities, impulses in zip(after, (found, expected), strict=True):
        assert missed(np.einsum("skia,sa->ski", J, velocities), impulses)[sure].max() < 1e-9


def missed(w: np.ndarray, impulses: np.ndarray) -> np.ndarray:
    """Of each state what Signorini's condition or λ = proj(λ - w) of Coulomb's disk is missed by."""
    reach = FRICTION * np.maximum(impulses[..., 0], 0.0)
    x = impulses[..., 1:] - w[..., 1:]
    length = np.maximum(np.linalg.norm(x, axis=-1), 1e-30)
    near = x * np.minimum(reach / length, 1.0)[..., None]
    off = np.abs(impulses[..., 1:] - near).max(axis=-1)
    return np.maximum(off, np.abs(np.minimum(impulses[..., 0], w[..., 0]))).max(axis=-1)
