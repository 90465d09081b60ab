"""Constrained accelerations against Pinocchio's constraintDynamics: point and frame closures on random trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from tests.closures.mechanisms import Closed, EagerModel, at_state, with_closure
from tests.oracles.pinocchio_oracle import Oracle, from_model
from tests.random_trees import random_tree

_TYPES = ("revolute", "prismatic", "universal", "spherical", "helical", "planar", "cylindrical", "free")


def _theirs(oracle: Oracle, case: Closed) -> Any:
    models = pin.StdVec_RigidConstraintModel()
    for c in case.model.closures:
        kind = pin.ContactType.CONTACT_6D if len(c.type.equations) == 6 else pin.ContactType.CONTACT_3D
        sides = []
        for body, placement in ((c.body_a, c.placement_a), (c.body_b, c.placement_b)):
            place = pin.SE3(np.array(placement))
            joint = None if body < 0 else oracle.joints[body]
            sides += [0, place] if joint is None else [joint.index, joint.to_body * place]
        models.append(pin.RigidConstraintModel(kind, oracle.theirs, *sides, pin.LOCAL))
    datas = pin.StdVec_RigidConstraintData()
    for m in models:
        datas.append(m.createData())
    pin.initConstraintDynamics(oracle.theirs, oracle.data, models, datas)
    A_inverse = np.linalg.inv(oracle.A)
    settings = pin.ProximalSettings(1e-14, 1e-10, 50)
    q, v, tau = oracle.q(case.q), oracle.A @ case.v, A_inverse.T @ case.tau
    return A_inverse @ pin.constraintDynamics(oracle.theirs, oracle.data, q, v, tau, models, datas, settings)


@pytest.mark.parametrize("kinds", [("spherical",), ("weld",), ("spherical", "weld"), ("spherical", "spherical")])
@pytest.mark.parametrize("seed", range(5))
def test_random_trees(kinds: tuple[str, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 7, _TYPES, structured=0.2, almost=0.0, armature=0.0)
    while tree.nv < 15:
        tree = random_tree(rng, 7, _TYPES, structured=0.2, almost=0.0, armature=0.0)
    oracle = from_model(tree)
    model: Any = EagerModel.of(tree)
    q = model.random_configuration(rng)
    for i, kind in enumerate(kinds):
        a, b = (tree.bodies[k].name for k in rng.choice(len(tree.bodies), 2, replace=False))
        model = with_closure(model, q, rng, f"c{i}", kind, "world" if i and seed % 2 else a, b)
    case = at_state(model, q, rng)
    expected = _theirs(oracle, case)
    found = model.forward_dynamics(*case.state)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
