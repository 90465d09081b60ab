"""What a method cannot treat it refuses, with an error that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.classics import ALGORITHMS, run
from linkwise.mechanism.layout import lay_out
from tests.random_trees import random_state, random_tree


def refused(name: str, model: object, nq: int, nv: int) -> lw.InputError:
    with pytest.raises(lw.InputError) as caught:
        run(name, model, np.ones(nq), np.zeros(nv), np.zeros(nv))
    assert caught.value.do
    return caught.value


@pytest.mark.parametrize(
    ("name", "types", "got"),
    [
        ("armstrong", ("revolute",), "Revolute"),
        ("bae_haug", ("spherical",), "Spherical"),
        ("rosenthal", ("cylindrical",), "Cylindrical"),
        ("noc_cholesky", ("universal",), "Universal"),
        ("denoc_explicit", ("universal",), "Universal"),
    ],
)
def test_joint_types(name: str, types: tuple[str, ...], got: str) -> None:
    model = random_tree(1, 2, types, branching=0.0)
    assert got in str(refused(name, model, model.nq, model.nv).got)


@pytest.mark.parametrize("name", [a.name for a in ALGORITHMS.values() if a.topology == "chain"])
def test_branches(name: str) -> None:
    b = lw.ModelBuilder("fork")
    for k, parent in enumerate(["world", "link0", "link0"]):
        b.add_body(f"link{k}", parent=parent, joint=lw.Revolute(), mass=1.0, inertia=np.eye(3))
    assert "link2" in str(refused(name, b.build(), 3, 3).got)


@pytest.mark.parametrize("name", [a.name for a in ALGORITHMS.values() if "no armature" in a.needs])
def test_rotors(name: str) -> None:
    b = lw.ModelBuilder("motor")
    b.add_body(
        "link",
        joint=lw.Spherical() if name == "armstrong" else lw.Revolute(),
        mass=1.0,
        inertia=np.eye(3),
        armature=0.1,
    )
    model = b.build()
    assert "armature" in str(refused(name, model, model.nq, model.nv).allowed)


@pytest.mark.parametrize("name", [a.name for a in ALGORITHMS.values() if "mass" in a.needs])
def test_links_without_mass(name: str) -> None:
    model = random_tree(2, 3, ("revolute",), branching=0.0, armature=0.0)
    assert "mass" in str(refused(name, lay_out(model), model.nq, model.nv).got)  # regrouped: the joints carry no mass


@pytest.mark.parametrize("name", [a.name for a in ALGORITHMS.values() if "no mimics" in a.needs])
def test_mimics(name: str) -> None:
    b = lw.ModelBuilder("gripper")
    b.add_body("a", joint=lw.Prismatic(), mass=1.0, inertia=np.eye(3), joint_name="left")
    b.add_body("b", parent="a", joint=lw.Prismatic(), mass=1.0, inertia=np.eye(3), mimic=lw.Mimic("left", -1.0, 0.0))
    assert "follow" in str(refused(name, b.build(), 1, 1).got)


def test_symbols_for_moving_axes() -> None:
    sympy = pytest.importorskip("sympy")
    model = random_tree(1, 1, ("universal",), armature=0.0, structured=0.0)
    with pytest.raises(lw.InputError, match="changes with q"):
        run("sparse_kkt", model, sympy.symbols("q:2"))


def test_shapes_and_names() -> None:
    model = random_tree(1, 3, ("revolute",))
    q, v, x = random_state(model, np.random.default_rng(0), (2,))
    with pytest.raises(lw.InputError, match="wrong shape"):
        run("articulated_body", model, q, v, x)
    with pytest.raises(lw.errors.UnknownNameError, match="articulated_body"):
        run("articulated", model, q[0])
