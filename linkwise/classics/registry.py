"""The classical algorithms by name: what each computes, where it is printed, what it can treat, and how to call it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.classics import (
    armstrong,
    articulated_body,
    bae_haug,
    book,
    brandl_johanni_otter,
    conjugate_gradient,
    constraint_force,
    denoc,
    divide_and_conquer,
    featherstone,
    hollerbach,
    lilly_orin,
    luh_walker_paul,
    mass_matrices,
    newton_euler,
    noc,
    rodriguez,
    rosenthal,
    sparse_kkt,
    vereshchagin,
)
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.layout import lay_out
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.tree import Tree

Kind = Literal["inverse", "forward", "mass matrix"]

ALL_JOINTS = "all"
FIXED_AXES = "with axes fixed in their links"
ONE_FREEDOM = "of one freedom"


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of the papers.

    ``function`` takes ``(tree, q, v, vdot)``, ``(tree, q, v, tau)`` or ``(tree, q)``, by its kind: flat sequences of
    any scalar.
    """

    name: str
    kind: Kind
    paper: str
    equations: str
    order: str
    function: Callable[..., Any]
    joints: str = ALL_JOINTS
    topology: Literal["tree", "chain"] = "tree"
    needs: tuple[str, ...] = ()
    """Further requirements: "mass" (every link has mass of its own), "no armature", "no mimics"."""


class PrintedCount(str):
    """Operations for a chain of n links as a paper prints them, "n³/6 + 23n²/2 - 47"; called with n, their number."""

    def __call__(self, n: int) -> float:
        """For so many links."""
        total = 0.0
        for term in self.replace("+ ", "+").replace("- ", "-").split():
            found = re.fullmatch(r"([+-]?)(\d*)(n?)([²³]?)(?:/(\d+))?", term)
            assert found is not None, term
            sign, factor, linear, power, divisor = found.groups()
            value = int(factor or 1) * n ** " n²³".index(power or linear or " ") / int(divisor or 1)
            total += -value if sign == "-" else value
        return total


class Algorithms(dict[str, Algorithm]):
    """Algorithms by name; a name that does not exist is answered with the nearest ones."""

    def __missing__(self, name: str) -> Algorithm:
        raise UnknownNameError("classical algorithm", name, self)

    def of_kind(self, kind: Kind) -> list[Algorithm]:
        """All that compute the same thing."""
        return [algorithm for algorithm in self.values() if algorithm.kind == kind]


_TREE = ("no mimics",)
_MASS = ("mass", "no mimics")
_BODIES = ("mass", "no armature", "no mimics")

ALGORITHMS = Algorithms(
    (algorithm.name, algorithm) for algorithm in [
        # inverse dynamics
        Algorithm("newton_euler", "inverse", "Jain 1991", "17", "n", newton_euler.inverse_dynamics),
        Algorithm(
            "newton_euler_spatial", "inverse", "Featherstone 2000", "3-8", "n", newton_euler.inverse_dynamics_spatial
        ),
        Algorithm("composite_inverse", "inverse", "Jain 1991", "29", "n", mass_matrices.inverse_by_composite_bodies),
        Algorithm("denoc_inverse", "inverse", "Saha 1999", "31, 32", "n", denoc.inverse_dynamics, needs=("mass",)),
        Algorithm(
            "hollerbach", "inverse", "Saha 1999", "table 1", "n", hollerbach.inverse_dynamics,
            joints="revolute", topology="chain", needs=_TREE,
        ),
        Algorithm(
            "book", "inverse", "Featherstone 2000", "§2", "n", book.inverse_dynamics,
            joints="revolute, prismatic", topology="chain", needs=_TREE,
        ),
        Algorithm(
            "luh_walker_paul", "inverse", "Saha 1999", "table 1", "n", luh_walker_paul.inverse_dynamics,
            joints="revolute, prismatic", needs=("mass",),
        ),
        # mass matrix
        Algorithm("direct", "mass matrix", "Jain 1991", "23", "n²", mass_matrices.direct),
        Algorithm("symmetry", "mass matrix", "Jain 1991", "23", "n²", mass_matrices.by_symmetry, needs=_TREE),
        Algorithm(
            "composite", "mass matrix", "Jain 1991", "24-28", "n²", mass_matrices.by_composite_bodies, needs=_TREE
        ),
        Algorithm(
            "structurally_recursive", "mass matrix", "Featherstone 2000", "§2", "n³", lilly_orin.structurally_recursive,
            needs=_TREE,
        ),
        Algorithm("noc", "mass matrix", "Saha 1999", "16-20", "n³", noc.mass_matrix, needs=_MASS),
        Algorithm("denoc", "mass matrix", "Saha 1999", "21-24", "n²", denoc.generalized_inertia, needs=_MASS),
        # forward dynamics, O(n³)
        Algorithm("direct_cholesky", "forward", "Jain 1991", "22, 23", "n³", mass_matrices.forward_direct),
        Algorithm(
            "symmetry_cholesky", "forward", "Jain 1991", "22, 23", "n³", mass_matrices.forward_by_symmetry, needs=_TREE
        ),
        Algorithm(
            "composite_cholesky", "forward", "Jain 1991", "22, 28", "n³", mass_matrices.forward_by_composite_bodies,
            needs=_TREE,
        ),
        Algorithm(
            "noc_cholesky", "forward", "Saha 1999", "6-20", "n³", noc.forward_dynamics, joints=FIXED_AXES, needs=_MASS
        ),
        Algorithm(
            "denoc_explicit", "forward", "Saha 1999", "20-33, 40-55", "n³", denoc.forward_dynamics_explicit,
            joints=FIXED_AXES, needs=_MASS,
        ),
        # O(n²)
        Algorithm("conjugate_gradient", "forward", "Jain 1991", "30", "n²", conjugate_gradient.forward_dynamics),
        Algorithm(
            "preconditioned_conjugate_gradient", "forward", "Jain 1991", "30", "n²",
            conjugate_gradient.forward_dynamics_preconditioned, needs=_TREE,
        ),
        Algorithm(
            "innovations", "forward", "Jain 1991", "lemma 6.2", "n²", articulated_body.forward_by_innovations,
            needs=_TREE
        ),
        # O(n)
        Algorithm(
            "articulated_body", "forward", "Jain 1991", "45, 46, 60", "n", articulated_body.forward_dynamics,
            needs=_TREE
        ),
        Algorithm("vereshchagin", "forward", "Jain 1991", "§5", "n", vereshchagin.forward_dynamics, needs=_TREE),
        Algorithm(
            "armstrong", "forward", "Jain 1991", "47-49", "n", armstrong.forward_dynamics,
            joints="spherical", needs=("no armature",),
        ),
        Algorithm(
            "featherstone_absolute", "forward", "Featherstone 2000", "11-14", "n",
            featherstone.forward_dynamics_absolute,
            needs=_TREE
        ),
        Algorithm(
            "featherstone_link", "forward", "Featherstone 2000", "11-14", "n",
            featherstone.forward_dynamics_link_coordinates,
            needs=_TREE,
        ),
        Algorithm("rodriguez", "forward", "Jain 1991", "§5, §6", "n", rodriguez.forward_dynamics, needs=_TREE),
        Algorithm(
            "brandl_johanni_otter", "forward", "Jain 1991", "table 1", "n", brandl_johanni_otter.forward_dynamics,
            needs=_TREE
        ),
        Algorithm(
            "bae_haug", "forward", "Jain 1991", "50-52", "n", bae_haug.forward_dynamics,
            joints="revolute, prismatic, helical, cylindrical", needs=_TREE,
        ),
        Algorithm(
            "rosenthal", "forward", "Jain 1991", "§5, table 1", "n", rosenthal.forward_dynamics,
            joints=ONE_FREEDOM, needs=_TREE,
        ),
        Algorithm("denoc_forward", "forward", "Saha 1999", "33-37, 46-50", "n", denoc.forward_dynamics, needs=_MASS),
        Algorithm("sparse_kkt", "forward", "Featherstone 2000", "27", "n", sparse_kkt.forward_dynamics, needs=_BODIES),
        Algorithm(
            "constraint_force", "forward", "Featherstone 2000", "28", "n", constraint_force.forward_dynamics,
            needs=_BODIES,
        ),
        Algorithm(
            "divide_and_conquer", "forward", "Featherstone 2000", "§3.5", "n", divide_and_conquer.forward_dynamics,
            needs=_MASS,
        ),
    ]
)  # fmt: skip


def run(
    name: str, model: Mechanism | Tree, q: ArrayLike, v: ArrayLike | None = None, x: ArrayLike | None = None
) -> NDArray[Any]:
    """Run a classical algorithm on one state, in the frames of the bodies: a slow, obvious reference.

    Args:
        name: of the algorithm, see :data:`ALGORITHMS`.
        model: a model, or a tree laid out by hand.
        q: configuration (nq), numbers or symbols.
        v: velocity (nv); zero if not given. A mass matrix takes none.
        x: accelerations for inverse dynamics, joint forces for forward dynamics (nv); zero if not given.

    Returns:
        joint forces (nv), accelerations (nv), or the mass matrix (nv, nv).
    """
    algorithm = ALGORITHMS[name]
    tree = model if isinstance(model, Tree) else lay_out(model, align=False, regroup=False)
    q = _flat("q", q, tree.nq)
    if algorithm.kind == "mass matrix":
        result = algorithm.function(tree, q)
    else:
        zero = [0.0] * tree.nv
        result = algorithm.function(
            tree, q, zero if v is None else _flat("v", v, tree.nv), zero if x is None else _flat("x", x, tree.nv)
        )
    array = np.array(result, dtype=object)
    return array.astype(float) if all(isinstance(entry, (int, float)) for entry in array.flat) else array


def _flat(name: str, values: ArrayLike, size: int) -> list[Any]:
    array = np.asarray(values)
    if array.shape != (size,):
        raise InputError(
            f"{name} has the wrong shape",
            got=str(array.shape),
            allowed=f"({size},)",
            do="classical algorithms take one state at a time",
        )
    return list(array.tolist())
