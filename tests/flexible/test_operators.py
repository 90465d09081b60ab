"""The operator algebra with links that deform: identities, and the same answers as the model's own functions."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.operators import RULES
from tests.flexible.mechanisms import arm, small_beam, state, tree
from tests.operators.checks import difference

BEAMS = (
    {"modes": (1, 0), "axial_modes": 0, "torsion_modes": 0},
    {"modes": (2, 1), "axial_modes": 1, "torsion_modes": 0},
)


def random_tree(seed):
    """Rigid and flexible bodies in any order, on roots and on nodes."""
    rng = np.random.default_rng(seed)
    b = lw.ModelBuilder(f"random {seed}")
    names = []
    flexible = set()
    joints = (lw.Revolute(axis=(0, 1, 0)), lw.Prismatic(axis=(1, 0, 0)), lw.Spherical(), lw.Universal(), lw.Revolute())
    beams = [small_beam(elements=4, **options) for options in BEAMS]
    for k in range(7):
        parent = "world" if k == 0 else names[rng.integers(len(names))]
        at = {"at": ("tip", 2, "root")[rng.integers(3)]} if parent in flexible else {}
        place = lw.transform(xyz=rng.normal(size=3), rpy=rng.normal(size=3))
        joint = joints[rng.integers(len(joints))]
        if rng.random() < 0.5:
            b.add_body(f"b{k}", parent, joint, place, flexible=beams[rng.integers(2)], **at)
            flexible.add(f"b{k}")
        else:
            inertia = np.diag(rng.uniform(0.2, 0.3, 3))
            b.add_body(f"b{k}", parent, joint, place, 1.0, rng.normal(size=3), inertia, **at)
        names.append(f"b{k}")
    return b.build()


def near(a, b, tolerance=1e-9):
    a, b = np.asarray(a, float), np.asarray(b, float)
    assert a.shape == b.shape
    assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("seed", range(6))
def test_every_rule_on_random_trees(seed):
    model = random_tree(seed)
    q, v = state(model, seed)
    ops = model.operators(q, v)
    rng = np.random.default_rng(seed)
    for rule in RULES.values():
        if rule.holds_for(ops):
            left, right = rule.sides(ops)
            assert difference(left, right, rng.normal(size=(left.cols.size, 3))) < 1e-9, rule.name


@pytest.mark.parametrize("make", [arm, tree, lambda: random_tree(1)])
def test_the_models_own_answers(make):
    model = make()
    q, v = state(model, 2)
    ops = model.operators(q, v)
    M = model.mass_matrix(q)
    near(ops.mass_matrix.dense(), M)
    near(ops.mass_matrix.inv().dense() @ M, np.eye(model.nv), 1e-8)
    near(ops.C.value, model.bias_force(q, v))
    tau = np.random.default_rng(0).normal(size=model.nv)
    H, phi, psi, K, D, I = ops.H, ops.phi, ops.psi, ops.K, ops.D, ops.I
    factor = I - H @ psi @ K
    near((factor.T @ D.inv() @ factor @ ops.vector(tau - model.bias_force(q, v))).value,
         model.forward_dynamics(q, v, tau), 1e-8)  # fmt: skip
    assert phi.rows.sizes == tuple(6 + body.modes for body in model.bodies)


def test_batches_and_symbols():
    model = tree()
    states = [state(model, k) for k in range(3)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    ops = model.operators(q, v)
    near(ops.mass_matrix.dense(), model.mass_matrix(q))
    near(ops.C.value, model.bias_force(q, v))

    def bias(model, q, v):
        ops = model.operators(q, v)
        return ops.C.value

    near(lw.compile(bias, model, inputs={"q": "q", "v": "v"})(q, v), model.bias_force(q, v))


def test_points_on_flexible_bodies_are_refused():
    model = tree()
    with pytest.raises(lw.InputError, match="on a flexible body"):
        model.operators(model.neutral()).B("boom")
