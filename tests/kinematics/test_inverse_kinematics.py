"""Inverse kinematics: what it finds is checked by Pinocchio's forward kinematics, SciPy and closed forms."""

from __future__ import annotations

import numpy as np
import pinocchio
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import linkwise as lw
from bench.robots import ROBOTS
from linkwise.errors import InputError, UnknownNameError
from linkwise.kinematics.levenberg import reaching
from linkwise.samples import four_bar, planar_arm, stewart_platform
from linkwise.targets.llvm.device import HostedProgram

HAND = "panda_hand"


@pytest.fixture(scope="module")
def panda() -> lw.Model:
    robot = ROBOTS["panda"]
    return lw.load(robot.path, locked=list(robot.locked))


@pytest.fixture(scope="module")
def g1() -> lw.Model:
    return lw.load(ROBOTS["g1"].path)


def configurations(model: lw.Model, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([model.random_configuration(rng) for _ in range(count)])


def inside(model: lw.Model, q: np.ndarray) -> bool:
    return bool(((q >= model.limits.lower) & (q <= model.limits.upper)).all())


def test_poses_by_pinocchio(panda: lw.Model) -> None:
    target = panda.pose(configurations(panda, 200), HAND)
    found = panda.inverse_kinematics(HAND, target, tol=1e-8)
    assert found.converged.all()
    assert inside(panda, found.q)
    whole = pinocchio.buildModelFromUrdf(str(ROBOTS["panda"].path))
    data = whole.createData()
    frame = whole.getFrameId(HAND)
    for q, T in zip(found.q, target, strict=True):
        pinocchio.framesForwardKinematics(whole, data, np.concatenate([q, np.zeros(2)]))
        assert np.abs(data.oMf[frame].homogeneous - T).max() < 3e-8
    # It says itself how far it is off.
    placed = panda.pose(found.q, HAND)
    off = np.linalg.norm(placed[:, :3, 3] - target[:, :3, 3], axis=1)
    turn = Rotation.from_matrix(placed[:, :3, :3] @ np.swapaxes(target[:, :3, :3], 1, 2)).magnitude()
    assert np.allclose(found.position_error, off, atol=1e-14)
    assert np.allclose(found.angle_error, turn, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("tol", [(1e-4, 1e-3), 1e-8])
@pytest.mark.parametrize(("name", "body"), [("panda", HAND), ("g1", "left_wrist_yaw_link")])
def test_ten_thousand_targets(name: str, body: str, tol: object, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    target = model.pose(configurations(model, 10_000, seed=1), body)
    found = model.inverse_kinematics(body, target, tol=tol)
    assert found.converged.mean() >= 0.999
    assert inside(model, found.q)


def test_a_result_does_not_depend_on_its_batch(panda: lw.Model) -> None:
    target = panda.pose(configurations(panda, 60), HAND)
    whole = panda.inverse_kinematics(HAND, target)
    assert (whole.start > 0).any()
    again = panda.inverse_kinematics(HAND, target.reshape(6, 10, 4, 4), threads=2)
    assert again.q.shape == (6, 10, 7)
    assert np.array_equal(again.q.reshape(-1, 7), whole.q)
    for k in range(0, 60, 7):
        alone = panda.inverse_kinematics(HAND, target[k])
        assert alone.start == whole.start[k]
        assert np.allclose(alone.q, whole.q[k], atol=1e-6)


def test_the_compiled_loop_does_what_its_definition_says(panda: lw.Model) -> None:
    target = panda.pose(configurations(panda, 5), HAND)
    panda.inverse_kinematics(HAND, target)
    from linkwise.memoized import Memory

    problem = next(iter(Memory.of(panda).table("inverse kinematics").values())).problem
    routine = reaching(problem)
    x = lw.Reach(HAND, target).aims()
    rows = {
        "q": configurations(panda, 5, seed=3),
        "x": x,
        "tolerance": np.full((5, 3), 1e-6),
        "control": np.tile([0.0, 0.1, 0.0, -1.0, 0.0, 30.0], (5, 1)),
        "errors": np.zeros((5, 3)),
    }
    other = {name: row.copy() for name, row in rows.items()}
    HostedProgram(routine).run(rows, {}, {}, 5)
    from linkwise.targets.llvm.program_kernel import ProgramKernel

    ProgramKernel.build(routine).run(other, {}, {}, 5)
    for name in ("q", "control", "errors"):
        assert np.allclose(rows[name], other[name], rtol=1e-6, atol=1e-9)


def test_position_alone_and_a_point(panda: lw.Model) -> None:
    p = panda.pose(configurations(panda, 50), HAND)[:, :3, 3]
    found = panda.inverse_kinematics(HAND, p)
    assert found.converged.all()
    assert np.abs(panda.pose(found.q, HAND)[:, :3, 3] - p).max() < 1e-6
    assert (found.angle_error == 0.0).all()
    point = np.array([0.01, 0.02, 0.1])
    found = panda.inverse_kinematics(lw.Reach(HAND, position=p, point=point))
    T = panda.pose(found.q, HAND)
    assert found.converged.all()
    assert np.abs(T[:, :3, 3] + T[:, :3, :3] @ point - p).max() < 1e-6


def test_rotation_alone(panda: lw.Model) -> None:
    R = panda.pose(configurations(panda, 50), HAND)[:, :3, :3]
    found = panda.inverse_kinematics(lw.Reach(HAND, rotation=R))
    assert found.converged.all()
    assert np.abs(panda.pose(found.q, HAND)[:, :3, :3] - R).max() < 1e-6


@pytest.mark.parametrize("d", [0.3, 1.0, 1.7])
def test_two_links_in_closed_form(d: float) -> None:
    """The elbow angle of two links of length one whose tip is at distance d: cos = d²/2 - 1."""
    arm = planar_arm(2, length=1.0)
    tip = (d * np.cos(0.3), d * np.sin(0.3), 0.0)
    found = arm.inverse_kinematics(lw.Reach("link2", position=tip, point=(1.0, 0.0, 0.0)), tol=1e-10)
    assert found.converged
    assert np.isclose(np.cos(found.q[1]), d * d / 2 - 1, atol=1e-9)


def test_out_of_reach_is_said_and_the_best_is_returned(panda: lw.Model) -> None:
    found = panda.inverse_kinematics(HAND, (3.0, 0.0, 0.3), starts=10)
    assert not found.converged
    # Stretched towards it: nothing nearer is found by a general optimiser.
    p = lambda q: panda.pose(q, HAND)[:3, 3]  # noqa: E731
    bounds = list(zip(panda.limits.lower, panda.limits.upper, strict=True))
    other = minimize(lambda q: ((p(q) - [3.0, 0.0, 0.3]) ** 2).sum(), found.q, bounds=bounds)
    assert found.position_error < np.sqrt(other.fun) + 1e-4


def test_not_a_number_harms_only_itself(panda: lw.Model) -> None:
    target = panda.pose(configurations(panda, 9), HAND)
    clean = panda.inverse_kinematics(HAND, target)
    target[4, 0, 3] = np.nan
    found = panda.inverse_kinematics(HAND, target)
    assert not found.converged[4]
    rest = np.arange(9) != 4
    assert np.array_equal(found.q[rest], clean.q[rest])


def test_locked_and_chosen_joints(panda: lw.Model) -> None:
    q0 = configurations(panda, 20)
    target = panda.pose(configurations(panda, 20, seed=4), HAND)[:, :3, 3]
    found = panda.inverse_kinematics(HAND, target, q0=q0, locked=["panda_joint3", "panda_joint5"])
    assert found.converged.any()
    assert (found.start > 0).any()
    assert np.array_equal(found.q[:, [2, 4]], q0[:, [2, 4]])
    found = panda.inverse_kinematics(HAND, target, q0=q0, joints=["panda_joint1", "panda_joint2", "panda_joint4"])
    assert np.array_equal(found.q[:, [2, 4, 5, 6]], q0[:, [2, 4, 5, 6]])


def test_a_start_beyond_the_limits_is_brought_inside(panda: lw.Model) -> None:
    beyond = 0.5 * (panda.limits.lower + panda.limits.upper)
    beyond[0] = panda.limits.upper[0] + 0.1
    target = panda.pose(beyond, HAND)
    found = panda.inverse_kinematics(HAND, target, q0=beyond)  # which would be a solution itself
    assert inside(panda, found.q)
    held = panda.inverse_kinematics(HAND, target, q0=beyond, locked=["panda_joint1"])
    assert held.q[0] == beyond[0]  # what is locked is left alone


def test_what_cannot_matter_is_said(panda: lw.Model) -> None:
    with pytest.raises(InputError, match="no joint that may move matters"):
        panda.inverse_kinematics("panda_link1", (0, 0, 1), joints=["panda_joint5"])
    with pytest.raises(InputError, match="no joint that may move matters"):
        panda.inverse_kinematics("panda_link0", np.eye(4))


def test_flexible_bodies_stay_as_they_are() -> None:
    beam = lw.FlexibleBody.beam(
        length=1.0, EA=1e6, EI=(1e3, 1e3), GJ=1e3, mass_per_length=0.5, elements=4, modes=2, damping=0.0
    )
    builder = lw.ModelBuilder("bending arm")
    builder.add_body("upper", joint=lw.Revolute((0, 0, 1)), flexible=beam)
    builder.add_body("lower", parent="upper", at="tip", joint=lw.Revolute((0, 0, 1)), mass=1.0, inertia=np.eye(3))
    model = builder.build()
    q0 = model.random_configuration(1)
    goal = lw.Reach("lower", position=(0.9, 0.7, 0.0), point=(1.0, 0.0, 0.0))
    found = model.inverse_kinematics(goal, q0=q0, tol=(1e-6, 1e-6))
    T = model.pose(found.q, "lower")
    reached = T[:2, 3] + T[:2, 0]
    bent = model.bodies["upper"].q_slice
    assert np.array_equal(found.q[bent], q0[bent])
    assert np.linalg.norm(reached - [0.9, 0.7]) < max(1e-6, found.position_error + 1e-12)


def test_limits_may_be_ignored(panda: lw.Model) -> None:
    q = np.array([0.3, 0.4, 0.2, 1.5, 0.1, 4.5, 0.2])  # beyond
    target = panda.pose(q, HAND)
    near = q + 0.05
    found = panda.inverse_kinematics(HAND, target, q0=near, limits="ignore")
    assert found.converged
    assert found.start == 0
    assert not inside(panda, found.q)


def test_near_a_preferred_configuration(panda: lw.Model) -> None:
    """As near as SciPy's SLSQP finds from there."""
    rest = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.8, 0.8])
    target = panda.pose(rest + 0.5 * (configurations(panda, 25) - rest), HAND)
    plain = panda.inverse_kinematics(HAND, target, q0=rest)
    found = panda.inverse_kinematics(HAND, target, rest=rest)
    assert found.converged.all()
    assert inside(panda, found.q)
    far = np.linalg.norm(found.q - rest, axis=1)
    assert (far <= np.linalg.norm(plain.q - rest, axis=1) + 1e-5).all()
    bounds = list(zip(panda.limits.lower, panda.limits.upper, strict=True))
    gaps = []
    for q, T, distance in list(zip(found.q, target, far, strict=True))[:8]:

        def off(x: np.ndarray, T: np.ndarray = T) -> np.ndarray:
            P = panda.pose(x, HAND)
            return np.r_[P[:3, 3] - T[:3, 3], Rotation.from_matrix(P[:3, :3] @ T[:3, :3].T).as_rotvec()]

        best = minimize(
            lambda x: ((x - rest) ** 2).sum(),
            q,
            constraints={"type": "eq", "fun": off},
            bounds=bounds,
            method="SLSQP",
            options={"ftol": 1e-12},
        )
        gaps.append(distance - np.sqrt(best.fun))
    assert max(gaps) < 5e-3


def test_several_goals_of_a_humanoid() -> None:
    model = lw.load(ROBOTS["g1"].path, floating=True)
    q = configurations(model, 12)
    hand, foot = "left_wrist_yaw_link", "right_ankle_roll_link"
    com = model.center_of_mass(q)[:, :2]
    goals = [lw.Reach(hand, model.pose(q, hand)), lw.Reach(foot, model.pose(q, foot)), lw.Balance(com)]
    found = model.inverse_kinematics(goals)
    assert found.converged.all()
    for body in (hand, foot):
        assert np.abs(model.pose(found.q, body) - model.pose(q, body)).max() < 2e-6
    assert np.abs(model.center_of_mass(found.q)[:, :2] - com).max() < 1e-6


def test_an_axis_along_a_direction_or_at_a_point(panda: lw.Model) -> None:
    T = panda.pose(configurations(panda, 40), HAND)
    place = lw.Reach(HAND, position=T[:, :3, 3])
    found = panda.inverse_kinematics([place, lw.Aim(HAND, (0, 0, 2.0), along=T[:, :3, 2])])
    assert found.converged.all()
    assert np.abs(panda.pose(found.q, HAND)[:, :3, 2] - T[:, :3, 2]).max() < 1e-6
    point = T[:, :3, 3] + 0.4 * T[:, :3, 2]
    found = panda.inverse_kinematics([place, lw.Aim(HAND, (0, 0, 1), at=point)])
    assert found.converged.all()
    P = panda.pose(found.q, HAND)
    way = point - P[:, :3, 3]
    assert np.abs(way / np.linalg.norm(way, axis=1)[:, None] - P[:, :3, 2]).max() < 1e-6


def test_an_axis_that_points_the_other_way(panda: lw.Model) -> None:
    q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.8, 0.8])
    axis = panda.pose(q0, HAND)[:3, 2]
    found = panda.inverse_kinematics(lw.Aim(HAND, (0, 0, 1), along=-axis), q0=q0)
    assert found.converged
    assert np.abs(panda.pose(found.q, HAND)[:3, 2] + axis).max() < 1e-6


@pytest.mark.parametrize("kind", ["reach", "aim", "look", "balance"])
def test_jacobians_of_goals_are_derivatives(panda: lw.Model, kind: str) -> None:
    """Of half the square of the error, everywhere; and of the error itself, where it is small."""
    from linkwise.algorithms.catalogue import Trees

    rng = np.random.default_rng(2)
    q = panda.random_configuration(rng)
    R = Rotation.random(random_state=1).as_matrix()
    goal = {
        "reach": lw.Reach(HAND, position=(0.2, 0.1, 0.4), rotation=R),
        "aim": lw.Aim(HAND, (0.3, 0.1, 1.0), along=(1.0, 2.0, 0.5)),
        "look": lw.Aim(HAND, (0.3, 0.1, 1.0), at=(1.0, 2.0, 0.5)),
        "balance": lw.Balance((0.1, 0.2, 0.3)),
    }[kind]
    trees, x = Trees(panda), goal.aims().tolist()

    def half_square(q: np.ndarray) -> float:
        return 0.5 * sum(e * e for block in goal.blocks(trees, q.tolist(), x) for e in block.e)

    blocks = goal.blocks(trees, q.tolist(), x)
    gradient = sum(np.array(block.J, float).T @ np.array(block.e, float) for block in blocks)
    h = 1e-6
    for j in range(panda.nv):
        d = np.zeros(panda.nv)
        d[j] = h
        difference = (half_square(panda.integrate(q, d)) - half_square(panda.integrate(q, -d))) / (2 * h)
        assert np.isclose(gradient[j], difference, rtol=1e-6, atol=1e-8)


def test_closed_mechanisms_stay_closed() -> None:
    platform = stewart_platform()
    q0 = platform.assemble(platform.neutral())
    shifts = np.random.default_rng(0).uniform(-0.1, 0.1, (9, 3))
    T = np.array([lw.transform(xyz=np.add((0, 0, 1.2), s), rpy=s[::-1]) for s in shifts])
    found = platform.inverse_kinematics("plate", T, q0=q0)
    assert found.converged.all()
    assert np.abs(platform.closure_error(found.q)).max() < 1e-9
    assert np.abs(platform.pose(found.q, "plate") - T).max() < 1e-6
    bars = four_bar()
    q = bars.assemble(bars.integrate(bars.assemble(bars.neutral()), 0.3 * np.ones(3)))
    found = bars.inverse_kinematics("coupler1", bars.pose(q, "coupler1")[:3, 3])
    assert found.converged
    assert np.abs(bars.closure_error(found.q)).max() < 1e-9


def test_a_start_at_the_solution_takes_no_step(panda: lw.Model) -> None:
    q = configurations(panda, 1)[0]
    found = panda.inverse_kinematics(HAND, panda.pose(q, HAND), q0=q)
    assert found.iterations == 0
    assert np.array_equal(found.q, q)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.inverse_kinematics(HAND), "no target"),
        (lambda m: m.inverse_kinematics(HAND, np.eye(3)[:, :2]), "wrong shape"),
        (lambda m: m.inverse_kinematics(HAND, 2.0 * np.eye(4)), "not a rotation"),
        (lambda m: m.inverse_kinematics(HAND, np.diag([1.0, 1.0, -1.0, 1.0])), "not a rotation"),
        (lambda m: m.inverse_kinematics(HAND, [np.diag([1.0, 1.0, -1.0, 1.0])] * 2), "not a rotation"),
        (lambda m: m.inverse_kinematics([]), "no goal"),
        (lambda m: m.inverse_kinematics([3]), "not a goal"),
        (lambda m: m.inverse_kinematics([lw.Balance((0, 0))], np.eye(4)), "target goes with"),
        (lambda m: m.inverse_kinematics(HAND, np.eye(4), tol=-1), "tol is not positive"),
        (lambda m: m.inverse_kinematics(HAND, np.eye(4), tol="x"), "tol is not positive"),
        (lambda m: m.inverse_kinematics(HAND, np.eye(4), starts=-1), "starts is not"),
        (lambda m: m.inverse_kinematics(HAND, np.eye(4), q0=[0.0]), "q0 has the wrong shape"),
        (lambda m: m.inverse_kinematics(HAND, np.eye(4), limits="soft"), "limits"),
        (lambda m: lw.Reach(HAND), "needs one aim"),
        (lambda m: lw.Reach(HAND, np.eye(4), position=(0, 0, 0)), "needs one aim"),
        (lambda m: lw.Reach(HAND, position=(0, 0, 0), weight=0), "weight"),
        (lambda m: lw.Aim(HAND, (0, 0, 0), along=(0, 0, 1)), "no direction"),
        (lambda m: lw.Aim(HAND, (0, 0, 1), along=(0, 0, 0)), "no direction"),
        (lambda m: lw.Aim(HAND, (0, 0, 1)), "needs one aim"),
        (lambda m: m.inverse_kinematics([lw.Reach(HAND, [np.eye(4)] * 2), lw.Balance([(0, 0)] * 3)]), "do not fit"),
    ],
)
def test_mistakes_are_named(panda: lw.Model, call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(panda)  # type: ignore[operator]


def test_unknown_names(panda: lw.Model) -> None:
    with pytest.raises(UnknownNameError, match="panda_hand"):
        panda.inverse_kinematics("panda_hnd", np.eye(4))
    with pytest.raises(UnknownNameError, match="joint"):
        panda.inverse_kinematics(HAND, np.eye(4), locked=["elbow"])
