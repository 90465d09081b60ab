"""Constrained accelerations and multipliers against a dense solution, for every kind of closure; every solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linkwise import samples
from tests.closures.mechanisms import (
    BETWEEN,
    RELATIONS,
    Closed,
    EagerModel,
    T,
    at_state,
    closed_tree,
    dense_accelerations,
    with_closure,
)
from tests.random_trees import random_tree
from tests.seeds import seeds, usual


def _compare(
    case: Closed, rtol: float = 1e-10, solvers: tuple[str, ...] = ("auto", "kkt", "embedding", "nullspace")
) -> None:
    vdot, multipliers, least = dense_accelerations(case)
    assert least > 1e-7  # well conditioned
    J, bias = (
        case.model.constraints.jacobian(case.q, t=case.t, v=case.v),
        case.model.constraints.bias(case.q, case.v, t=case.t),
    )
    assert np.abs(J @ vdot + bias).max() < 1e-9 * (1.0 + np.abs(bias).max())  # no contradiction
    for solver in solvers:
        chosen: dict[str, Any] = {"at": case.q, "t": case.t} if solver == "embedding" else {}
        model = case.model.with_closure_solver(solver, **chosen)
        found = model.forward_dynamics(*case.state, t=case.t)
        np.testing.assert_allclose(found, vdot, rtol=0, atol=rtol * np.abs(vdot).max(), err_msg=solver)
        forces = model.constraint_forces(*case.state, t=case.t)
        scale = np.abs(multipliers).max() + np.abs(vdot).max()
        # Joints that follow others are couplings for one of the solvers, and have a part in its weights W.
        atol = scale * (1e-8 + 1e-11 / least) * (100.0 if any(j.mimic for j in model.joints) else 1.0)
        np.testing.assert_allclose(forces.multipliers, multipliers, rtol=0, atol=atol, err_msg=solver)
        efforts = J.T @ multipliers
        np.testing.assert_allclose(J.T @ forces.multipliers, efforts, rtol=0, atol=rtol * (1.0 + np.abs(efforts).max()))


@pytest.mark.parametrize("kind", [*BETWEEN, *RELATIONS])
@pytest.mark.parametrize("seed", seeds(1, of=3))
def test_every_kind(kind: str, seed: int) -> None:
    case = closed_tree(seed, [kind], mimic=0.2)
    assert np.abs(case.model.closure_error(case.q, t=T)).max(initial=0.0) < 1e-12
    assert np.abs(case.model.constraints.rate(case.q, case.v, t=T)).max() < 1e-9
    _compare(case)


@pytest.mark.parametrize("seed", seeds(3, of=12))
def test_several_of_any_kind(seed: int) -> None:
    # Motions that time prescribes contradict closures that leave no freedom for them: each in a tree of its own, above.
    kinds = [k for k in (*BETWEEN, *RELATIONS) if k not in ("led", "stretched", "prescribed")]
    rng = np.random.default_rng(100 + seed)
    _compare(closed_tree(seed, [str(k) for k in rng.choice(kinds, 3)], n=9, mimic=0.2))


_PAIRS = {
    "nested": [("body0", "body5"), ("body1", "body4")],
    "crossed": [("body0", "body3"), ("body1", "body5")],
    "sharing a link": [("body0", "body3"), ("body3", "body5")],
    "double ground": [("world", "body5"), ("world", "body2")],
    "consecutive links": [("body2", "body3"), ("body3", "body4")],
    "reversed": [("body5", "body0"), ("body5", "world")],
    "descendants": [("body1", "body5"), ("body2", "body5")],
}


@pytest.mark.parametrize("topology", _PAIRS)
@pytest.mark.parametrize("kind", usual(["spherical"], "revolute", "distance"))
def test_topologies(topology: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    types = ("revolute", "prismatic", "universal", "spherical")
    model = random_tree(rng, 6, types, branching=0.0, structured=0.2)
    while model.nv < 11:
        model = random_tree(rng, 6, types, branching=0.0, structured=0.2)
    model = EagerModel.of(model)
    q = model.random_configuration(rng)
    for i, (a, b) in enumerate(_PAIRS[topology]):
        model = with_closure(model, q, rng, f"c{i}", kind, a, b)
    _compare(at_state(model, q, rng))


@pytest.mark.parametrize("kind", ["weld", "revolute", "spherical", "rolling_ball"])
def test_the_same_closure_twice(kind: str) -> None:
    once = closed_tree(3, [kind])
    instance = once.model.closures[0]
    bodies = ["world" if k < 0 else once.model.bodies[k].name for k in (instance.body_a, instance.body_b)]
    twice = once.model.with_closure(
        "again",
        bodies[0],
        np.array(instance.placement_a),
        bodies[1],
        np.array(instance.placement_b),
        joint=instance.type,
    )
    assert twice.freedoms(once.q).redundant["again"] == instance.equations
    case = Closed(twice, *once.state)
    _compare(case)
    expected = once.model.forward_dynamics(*once.state)
    np.testing.assert_allclose(twice.forward_dynamics(*once.state), expected, atol=1e-10 * np.abs(expected).max())
    # Of least norm: each bears half.
    m = len(instance.equations)
    forces = twice.constraint_forces(*once.state).multipliers
    np.testing.assert_allclose(forces[:m], forces[m:], rtol=0, atol=1e-7 * np.abs(forces).max())


def test_planar_closures_in_space_are_redundant_and_right() -> None:
    model = EagerModel.of(samples.four_bar(3))
    rng = np.random.default_rng(0)
    q = model.assemble(0.4 * np.array([1, -1, 1, -1, 1, -1, 1.0]))
    case = at_state(model, q, rng)
    assert np.linalg.matrix_rank(model.constraints.jacobian(q)) == 6
    _compare(case)


def test_external_forces_and_wrenches_balance_the_bodies() -> None:
    """The wrenches as external forces on the tree cause the same accelerations."""
    case = closed_tree(5, ["weld", "spherical"], n=8)
    model = case.model
    rng = np.random.default_rng(0)
    f_ext = rng.normal(size=(len(model.bodies), 6))
    vdot, _, _ = dense_accelerations(case, f_ext)
    found = model.forward_dynamics(*case.state, f_ext, t=T)
    np.testing.assert_allclose(found, vdot, rtol=0, atol=1e-10 * np.abs(vdot).max())
    wrenches = model.constraint_forces(*case.state, f_ext, t=T).wrenches
    total = f_ext.copy()
    for closure, wrench in zip(model.closures, wrenches, strict=True):
        for body, at, sign in ((closure.body_b, closure.placement_b, 1.0), (closure.body_a, None, -1.0)):
            if body < 0:
                continue
            b_world = (np.eye(4) if closure.body_b < 0 else model.poses(case.q)[closure.body_b]) @ closure.placement_b
            X = np.array(at) if at is not None else np.linalg.inv(model.poses(case.q)[body]) @ b_world
            moment, force = X[:3, :3] @ wrench[:3], X[:3, :3] @ wrench[3:]
            total[body] += sign * np.concatenate([moment + np.cross(X[:3, 3], force), force])
    open_tree = model
    for closure in model.closures:
        open_tree = open_tree.without(closure.name)
    np.testing.assert_allclose(
        open_tree.forward_dynamics(*case.state, total), vdot, rtol=0, atol=1e-8 * np.abs(vdot).max()
    )
