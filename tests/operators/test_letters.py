"""Each operator against its definition, written out with plain matrices, and against the model's own functions."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError
from tests.operators.checks import eagerly, largest, tree_and_operators

SEEDS = range(4)


def near(a, b, tolerance=1e-11):
    assert largest(a - b) <= tolerance * max(1.0, largest(a), largest(b))
    return True


def phi_of_pose(T):
    """[[R, l~R], [0, R]] of a 4×4 pose."""
    R, (x, y, z) = T[:3, :3], T[:3, 3]
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.block([[R, cross @ R], [np.zeros((3, 3)), R]])


@pytest.mark.parametrize("seed", SEEDS)
def test_shift_is_made_of_relative_poses(seed):
    model, ops, (q, _, _) = tree_and_operators(seed, 9)
    poses = eagerly(model.poses, q)
    expected = np.zeros((6 * len(poses), 6 * len(poses)))
    for k, parent in enumerate(model.parents):
        if parent >= 0:
            at = (slice(6 * parent, 6 * parent + 6), slice(6 * k, 6 * k + 6))
            expected[at] = phi_of_pose(np.linalg.inv(poses[parent]) @ poses[k])
            assert near(ops.E_phi.block(parent, k), expected[at])
    assert near(ops.E_phi.dense(), expected)
    assert near(ops.phi.dense(), np.linalg.inv(np.eye(len(expected)) - expected))


@pytest.mark.parametrize("seed", SEEDS)
def test_definitions_of_articulated_operators(seed):
    _, ops, _ = tree_and_operators(seed, 9, armature=0.5)
    E, H, P, D, armature = (op.dense() for op in (ops.E_phi, ops.H, ops.P, ops.D, ops.armature))
    assert near(D, H @ P @ H.T + armature)
    G = P @ H.T @ np.linalg.inv(D)
    tau_bar = np.eye(len(E)) - G @ H
    assert near(ops.G.dense(), G)
    assert near(ops.K.dense(), E @ G)
    assert near(ops.tau.dense(), G @ H)
    assert near(ops.tau_bar.dense(), tau_bar)
    assert near(ops.E_psi.dense(), E @ tau_bar)
    assert near(ops.psi.dense(), np.linalg.inv(np.eye(len(E)) - E @ tau_bar))
    assert near(ops.D.inv().dense(), np.linalg.inv(D))
    assert near(P, ops.M.dense() + E @ tau_bar @ P @ E.T)
    assert near(ops.P.inv().dense() @ P, np.eye(len(P)), 1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_of_D_are_the_joints(seed):
    model, ops, _ = tree_and_operators(seed, 9)
    D = ops.D.dense()
    inside = np.zeros_like(D, bool)
    for joint in model.joints:
        inside[joint.v_slice, joint.v_slice] = True
        k = joint.index
        assert ops.D.block(k, k).shape == (joint.nv, joint.nv)
    assert not D[~inside].any()


@pytest.mark.parametrize("armature", [0.0, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix(seed, armature):
    model, ops, (q, _, _) = tree_and_operators(seed, 9, armature=armature)
    assert near(ops.mass_matrix.dense(), eagerly(model.mass_matrix, q))
    assert near(ops.mass_matrix.inv().dense(), eagerly(model.mass_matrix_inverse, q), 1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_velocity_terms(seed):
    model, ops, (q, v, vdot) = tree_and_operators(seed, 9)
    poses = eagerly(model.poses, q)
    for body in model.bodies:
        turn = np.kron(np.eye(2), poses[body.index][:3, :3])
        assert near(
            turn @ ops.V.blocks()[body.index], eagerly(lambda q, v, name=body.name: model.velocity(q, v, name), q, v)
        )
    assert near(ops.C.value, eagerly(model.bias_force, q, v))
    f = ops.M @ (ops.phi.T @ ops.a) + ops.b
    assert near(f.value, ops.f.value)
    alpha = ops.phi.T @ (ops.H.T @ vdot + ops.a)
    assert near((ops.H @ ops.phi @ (ops.M @ alpha + ops.b)).value, eagerly(model.inverse_dynamics, q, v, vdot))


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobian_of_points(seed):
    model, ops, (q, _, _) = tree_and_operators(seed, 9)
    body = model.bodies[-1].name
    point = (0.3, -0.1, 0.2)
    J = ops.J([body, "tool", (body, point)]).dense()
    for rows, frame, at in ((0, body, None), (6, "tool", None), (12, body, point)):
        turn = np.kron(np.eye(2), model.pose(q, frame)[:3, :3])
        assert near(turn @ J[rows : rows + 6], model.jacobian(q, frame, at))
    assert ops.B(body).shape == (6 * len(model.bodies), 6)
    assert near(ops.J(body).dense(), J[:6])


@pytest.mark.parametrize("seed", SEEDS)
def test_joint_space_does_not_depend_on_frames(seed):
    model, body, (q, v, _) = tree_and_operators(seed, 9, armature=0.5)
    link = model.operators(q, v, frames="link")
    T = np.random.default_rng(seed).normal(size=model.nv)
    for of in (
        lambda o: o.mass_matrix @ T,
        lambda o: o.mass_matrix.inv() @ T,
        lambda o: o.D @ T,
        lambda o: o.H @ o.psi @ o.K @ T,
        lambda o: (o.H @ o.phi @ o.f).value,
        lambda o: lemma(o, T),
        lambda o: o.J(model.bodies[-1].name) @ T,
        lambda o: (o.B("tool").T @ o.Omega @ o.B("tool")).dense(),
    ):
        assert near(of(link), of(body), 1e-10)


def lemma(o, T):
    """Forward dynamics as in Jain 1991 lemma 6.5: M, P and b of other frames, and the same accelerations."""
    white = o.I - o.H @ o.psi @ o.K
    forces = T - o.H @ o.psi @ (o.K @ T + o.b + o.P @ o.a)
    return (white.T @ o.D.inv() @ forces - o.K.T @ o.psi.T @ o.a).value


def test_gravity_is_in_a():
    model, _, (q, v, _) = tree_and_operators(3, 6)
    still = model.with_gravity((0.0, 0.0, 0.0)).operators(q, 0.0 * v)
    assert not still.a.value.any()
    ops = model.operators(q, 0.0 * v)
    assert near(ops.C.value, model.gravity_force(q))


def test_run_time_parameters():
    model, _, (q, v, _) = tree_and_operators(3, 6)
    name = model.bodies[0].name
    free = model.with_parameters([f"{name}.mass", "gravity"])
    p = np.array([3.0, 1.0, 2.0, 3.0])
    ops = free.operators(q, v, p=p)
    assert near(ops.mass_matrix.dense(), free.mass_matrix(q, p=p))
    assert near(ops.C.value, free.bias_force(q, v, p=p))
    with pytest.raises(InputError, match="no run-time parameters"):
        model.operators(q, v, p=p)


def test_symbols_in_a_placement():
    """A tree is symbolic also where only its lengths are."""
    sympy = pytest.importorskip("sympy")
    builder = lw.ModelBuilder("arm")
    for name, parent, x in (("upper", "world", 0.0), ("lower", "upper", 1.0)):
        joint, placement = lw.Revolute(axis=(0, 1, 0)), lw.transform(xyz=(x, 0, 0))
        builder.add_body(name, parent, joint, placement, mass=2.0, com=(0.5, 0, 0), inertia=0.1 * np.eye(3))
    model, q, length = builder.build().with_parameters(["lower.xyz"]), np.array([0.3, -0.4]), sympy.Symbol("L")
    symbolic = model.operators(q, p=np.array([length, 0.0, 0.0], object)).mass_matrix @ np.ones(2)
    values = [float(x.subs(length, 0.7)) for x in symbolic]
    assert near(np.array(values), model.mass_matrix(q, p=np.array([0.7, 0.0, 0.0])) @ np.ones(2))


def test_velocity_is_needed_for_velocity_terms():
    model, _, (q, _, _) = tree_and_operators(3, 4)
    ops = model.operators(q)
    for word in ("V", "a", "b", "f", "C"):
        with pytest.raises(InputError, match="needs the velocity"):
            getattr(ops, word)


def test_mimic_joints_are_refused():
    model, _, _ = tree_and_operators(0, 2)
    from tests.random_trees import random_tree

    model = random_tree(4, 8, types=("revolute",), mimic=1.0)
    with pytest.raises(InputError, match="follow others"):
        model.operators(model.neutral())


def test_points_that_do_not_move_are_refused():
    _, ops, _ = tree_and_operators(3, 4)
    with pytest.raises(InputError, match="does not move"):
        ops.B("world")
    with pytest.raises(InputError, match="a name and a position"):
        ops.B([("tool", (1.0, 2.0))])
