"""The mass matrix of many links from one half: against Pinocchio, against products, in every way of calling it."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions.rolled.columns import ColumnsFunction
from linkwise.functions.rolled.halves import HalvedFunction
from tests.random_trees import BUILT_IN, random_tree


def _chain(n: int, seed: int) -> lw.Model:
    rng = np.random.default_rng(seed)
    b = lw.ModelBuilder("chain")
    axes, coms = rng.normal(size=(n, 3)), rng.normal(size=(n, 3)) * 0.1
    placements = np.array([lw.transform(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)) for _ in range(n)])
    inertia = np.diag((0.1, 0.12, 0.05))
    b.add_chain("l", n, "world", lw.Revolute, placements, 1.0, coms, inertia, axes=axes, armature=0.02)
    return b.build()


def _relative(M: np.ndarray, expected: np.ndarray) -> float:
    size = np.sqrt(np.diag(expected))
    return float((np.abs(M - expected) / np.outer(size, size)).max())


def test_a_chain_beside_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    from bench.scale import pinocchio_chain

    model = _chain(150, 0)
    assert isinstance(model.function("mass_matrix"), HalvedFunction)
    theirs = pinocchio_chain(model)
    q = np.random.default_rng(1).normal(size=150)
    expected = pin.crba(theirs, theirs.createData(), q)
    expected = np.triu(expected) + np.triu(expected, 1).T + 0.02 * np.eye(150)
    assert _relative(model.mass_matrix(q), expected) < 1e-12


@pytest.mark.parametrize("n", [1, 7, 8, 9, 61])
@pytest.mark.parametrize("types", [("revolute",), ("prismatic", "revolute"), BUILT_IN])
def test_trees_of_every_joint(n: int, types: tuple[str, ...]) -> None:
    model = random_tree(5, n, types).with_sweeps("rolled")
    q = model.random_configuration(2)
    columns = model.mass_product(q, np.eye(model.nv)).T
    M = model.mass_matrix(q)
    np.testing.assert_array_equal(M, M.T)
    np.testing.assert_allclose(M, columns, rtol=1e-11, atol=1e-12 * np.abs(columns).max())


def test_every_way_to_call_it() -> None:
    model = _chain(100, 3)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(3, 100))
    M = model.mass_matrix(q)
    assert M.shape == (3, 100, 100)
    for k in range(3):
        np.testing.assert_array_equal(model.mass_matrix(q[k]), M[k])
    np.testing.assert_array_equal(model.mass_matrix(q[0], threads=2), M[0])
    wide = np.full((100, 200), np.nan)
    model.mass_matrix(q[0], out=wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], M[0])
    assert np.isnan(wide[:, 1::2]).all()
    single = model.mass_matrix(q[0].astype(np.float32))
    assert single.dtype == np.float32
    assert _relative(single.astype(float), M[0]) < 1e-3


def test_parameters_reach_it() -> None:
    model = _chain(70, 4).with_parameters(["l3.mass", "l9.armature", "l20.xyz"])
    q = np.random.default_rng(5).normal(size=70)
    p = np.array([2.0, 0.5, 0.1, 0.2, 0.3])
    M, columns = model.mass_matrix(q, p=p), model.mass_product(q, np.eye(70), p=p).T
    assert _relative(M, columns) < 1e-12
    assert _relative(M, model.mass_matrix(q)) > 1e-3


def test_mimics_take_the_products() -> None:
    b = lw.ModelBuilder("pair")
    b.add_body("a", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0))
    b.add_body("b", "a", lw.Revolute(), lw.transform(xyz=(1, 0, 0)), 1.0, (1, 0, 0), mimic=lw.Mimic("a_joint", 2.0))
    model = b.build().with_sweeps("rolled")
    function = model.function("mass_matrix")
    assert type(function) is ColumnsFunction
    # with q̇ = 1 the first mass moves at 1 m/s, the second at 1 + 3: its link turns with 1 + 2 rad/s
    assert float(model.mass_matrix(np.zeros(1))[0, 0]) == pytest.approx(1.0 + (1.0 + 3.0) ** 2)
