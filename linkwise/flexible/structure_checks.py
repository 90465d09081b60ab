"""Checks that matrices are those of a free elastic body. Each says where it failed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import ModelError, ModelFileError, ModelWarning
from linkwise.flexible.nodal import Nodes, nodal_structure
from linkwise.flexible.solving import SymmetricFactor, lowest_modes
from linkwise.flexible.structure import COMPONENTS, Matrix, MatrixLike, NodeKey, Structure, vector_of

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody


_SYMMETRY = 1e-6
"""Asymmetry allowed, of the diagonal: what files with seven digits leave."""
_RIGID = 1e-6
"""Elastic energy of a rigid motion beside that of its parts."""
_FASTEST_SOUND = 2e4
"""m/s; in diamond 1.8e4."""
_DENSEST = 2.3e4
"""kg/m³; osmium 2.26e4."""
_THINNEST = 1e-3
"""kg/m³ of the box around a body; a deployed solar sail has some 0.01."""


@dataclass(frozen=True)
class StructureCheck:
    """Findings about a structure.

    Args:
        mass: kg.
        com: mass centre in the model's frame, m.
        inertia: 3×3 about it, kg m².
        rigid_energy: of the six rigid motions rx, ry, rz, tx, ty, tz, relative: near zero for a free model.
        size: of the box around the nodes, m.
        free_hz: the lowest frequencies of the free model, the rigid motions' near zero among them; empty where they
            were not asked for.
    """

    mass: float
    com: FloatArray
    inertia: FloatArray
    rigid_energy: FloatArray
    size: FloatArray
    free_hz: tuple[float, ...] = ()

    def report(self) -> str:
        """All of this to be read."""
        worst = float(self.rigid_energy.max())
        lines = (
            [f"lowest free frequencies {', '.join(f'{each:.4g}' for each in self.free_hz)} Hz"] if self.free_hz else []
        )
        return "\n".join(
            [
                f"mass {self.mass:.6g} kg, mass centre ({', '.join(f'{c:.6g}' for c in self.com)}) m",
                "inertia about it: "
                + ", ".join(f"{2 * a} {self.inertia[k, k]:.6g}" for k, a in enumerate("xyz"))
                + " kg m²",
                f"box {' × '.join(f'{s:.4g}' for s in self.size)} m",
                f"six rigid motions, elastic energy at most {worst:.1e} of that of a deformation",
                *lines,
            ]
        )


def check(
    nodes: Nodes, M: MatrixLike, K: MatrixLike, dofs: Sequence[tuple[NodeKey, int]] | None = None
) -> StructureCheck:
    """Properties of a free elastic body, or an error if it is none. Arguments as in `FlexibleBody.from_arrays`.

    Raises `ModelError` that says what is wrong and where: matrices that are not symmetric or not definite, loose parts,
    supports that were left in, mechanisms, dofs without a node.
    """
    structure = nodal_structure(nodes, M, K, dofs=dofs)
    found = check_structure(structure)
    lowest = lowest_modes(structure.K, structure.M, 12, free=True).hertz
    elastic = lowest[6:]
    if len(elastic) and lowest[5] < 1e-3 * elastic[-1] and elastic[0] < 1e-3 * elastic[-1]:
        count = int((lowest < 1e-3 * elastic[-1]).sum())
        _fail(structure, "the model is a mechanism", got=f"{count} motions without stiffness", allowed="six rigid ones")
    return replace(found, free_hz=tuple(lowest.tolist()))


def check_structure(structure: Structure, *, own_elements: bool = False) -> StructureCheck:
    """Facts of a free body; raises `ModelError` (or `ModelFileError`) for what cannot be one.

    Args:
        structure: the model.
        own_elements: whether its matrices were assembled here, and need no more than a look at the mesh.
    """
    _check_connected(structure)
    if not own_elements:
        for name, matrix in (("M", structure.M), ("K", structure.K)):
            _check_symmetry(structure, name, matrix)
            _check_diagonal(structure, name, matrix)
        _check_mass(structure)
    rigid_energy = _check_rigid(structure)
    rigid = structure.rigid(np.zeros(3))
    inertia = rigid.T @ (structure.M @ rigid)
    mass = float(np.trace(inertia[3:, 3:]) / 3)
    com = vector_of(inertia[:3, 3:]) / mass
    about_com = inertia[:3, :3] - mass * (com @ com * np.eye(3) - np.outer(com, com))
    return StructureCheck(mass, com, about_com, rigid_energy, np.ptp(structure.positions, axis=0))


def suspect_units(structure: Structure, body: FlexibleBody) -> None:
    """Warn where mass, size and frequencies cannot all be in kg, m and Hz."""
    box = np.ptp(structure.positions, axis=0)
    length = float(box.max())
    thin = float(np.prod(np.maximum(box, 0.01 * length)))
    thick = float(np.prod(np.maximum(box, 0.3 * length)))
    do = "give SI units: metres, kilograms, newtons (a model in mm and tonnes: positions / 1000, M × 1000, K × 1000)"
    if body.mass > _DENSEST * thick or body.mass < _THINNEST * thin:
        _warn("mass and size do not go together: are the units SI?", f"{body.mass:.3g} kg in {_box(box)} m", do)
    lowest = float(body.held_frequencies[0]) if body.modes else 0.0
    if lowest * length > _FASTEST_SOUND / 4:
        got = f"{lowest:.3g} Hz at a length of {length:.3g} m: waves faster than in any solid"
        _warn("frequency and size do not go together: are the units SI?", got, do)


def _warn(what: str, got: str, do: str) -> None:
    warnings.warn(ModelWarning(what, got=got, do=do), stacklevel=5)


def _box(box: FloatArray) -> str:
    return " × ".join(f"{side:.3g}" for side in box)


def _check_symmetry(structure: Structure, name: str, matrix: Matrix) -> None:
    difference = sparse.coo_array(matrix - matrix.T)
    if not difference.nnz:
        return
    scale = np.sqrt(np.abs(matrix.diagonal()))
    size = np.maximum(scale[difference.row] * scale[difference.col], 1e-300)
    share = np.abs(difference.data) / size
    worst = int(share.argmax())
    if share[worst] > _SYMMETRY:
        i, j = int(difference.row[worst]), int(difference.col[worst])
        _fail(
            structure,
            f"{name} is not symmetric",
            got=f"{matrix[i, j]:.6g} at ({_dof(structure, i)}; {_dof(structure, j)}), {matrix[j, i]:.6g} at its mirror",
            allowed="equal entries",
            do="if the file holds one triangle only, read it as symmetric",
        )


def _check_diagonal(structure: Structure, name: str, matrix: Matrix) -> None:
    diagonal = matrix.diagonal()
    if (diagonal < 0).any():
        worst = int(diagonal.argmin())
        _fail(
            structure,
            f"{name} is not positive",
            got=f"{diagonal[worst]:.3g} at {_dof(structure, worst)}",
            allowed=">= 0",
        )


def _check_connected(structure: Structure) -> None:
    """Parts that no stiffness joins to the rest."""
    n = len(structure.positions)
    owner = np.full(structure.size, -1)
    for node in range(n):
        owner[structure.tied(np.array([node]))] = node
    entries = structure.K.tocoo()
    row, column = owner[entries.row], owner[entries.col]
    nodal = (row >= 0) & (column >= 0)
    graph = sparse.coo_array((np.ones(nodal.sum()), (row[nodal], column[nodal])), shape=(n, n))
    count, label = csgraph.connected_components(graph, directed=False)
    if count > 1:
        sizes = np.bincount(label)
        smallest = np.flatnonzero(label == sizes.argmin())
        shown = ", ".join(structure.label(int(k)) for k in smallest[:5])
        _fail(
            structure,
            f"the model falls into {count} parts that nothing joins",
            got=f"{len(smallest)} of {n} nodes apart: {shown}" + (", …" if len(smallest) > 5 else ""),
            do="join them in the mesh (merge coincident nodes), or leave unused nodes out",
        )


def _check_rigid(structure: Structure) -> FloatArray:
    """Rigid motions must cost no energy."""
    centre = structure.positions.mean(axis=0)
    rigid = structure.rigid(centre)
    forces = structure.K @ rigid
    energy = np.einsum("na,na->a", rigid, forces)
    scale = np.einsum("na,n,na->a", rigid, np.abs(structure.K.diagonal()), rigid)
    share: FloatArray = np.abs(energy) / np.maximum(scale, 1e-300)
    worst = int(share.argmax())
    if share[worst] > _RIGID:
        dof = int(np.abs(forces[:, worst] * rigid[:, worst]).argmax())
        motion = (
            "turning about x",
            "turning about y",
            "turning about z",
            "moving along x",
            "moving along y",
            "moving along z",
        )
        _fail(
            structure,
            "the model resists rigid motions: it is not free",
            got=f"{motion[worst]} costs {share[worst]:.1e} of a deformation's energy, most at {_dof(structure, dof)}",
            allowed="six rigid motions without energy",
            do="leave supports and springs to the ground out; check that positions and matrices belong together",
        )
    return share


def _check_mass(structure: Structure) -> None:
    """M must be positive semidefinite and weigh the same along x, y and z."""
    rigid = structure.rigid(structure.positions.mean(axis=0))
    inertia = rigid.T @ (structure.M @ rigid)
    along = np.diag(inertia)[3:]
    if not along.min() > 0:
        _fail(structure, "the model has no mass", got=f"{along.tolist()} kg along x, y, z", allowed="> 0")
    if np.ptp(along) > 1e-3 * along.max():
        _fail(
            structure,
            "the mass is not the same along x, y and z",
            got=", ".join(f"{each:.6g}" for each in along) + " kg",
            do="dofs are missing, or masses act along some axes only",
        )
    diagonal = structure.M.diagonal()
    weighty = np.flatnonzero(diagonal > 0)
    weightless = structure.M[np.flatnonzero(diagonal == 0)]
    if weightless.nnz:
        row = int(np.flatnonzero(diagonal == 0)[weightless.tocoo().row[0]])
        _fail(structure, "M is not positive semidefinite", got=f"a coupling without a mass at {_dof(structure, row)}")
    part = structure.M[weighty][:, weighty]
    # A little more than M must be positive definite, or M has a negative eigenvalue.
    lifted = part + 1e-9 * sparse.diags_array(diagonal[weighty])
    factor = SymmetricFactor(lifted, "M is not positive semidefinite", lambda k: _dof(structure, int(weighty[k])))
    if factor.negative:
        _fail(
            structure,
            "M is not positive semidefinite",
            got=f"{factor.negative} negative eigenvalues",
            allowed="none",
            do="check how the matrix was written: a triangle, a sign, a unit",
        )


def _dof(structure: Structure, dof: int) -> str:
    for node, own in enumerate(structure.table):
        if dof in own:
            return f"{structure.label(node)} {COMPONENTS[int(np.flatnonzero(own == dof)[0])]}"
        if dof in structure.tied(np.array([node])):
            return structure.label(node)
    return f"dof {dof}"


def _fail(structure: Structure, what: str, **parts: Any) -> NoReturn:
    if structure.file is not None:
        raise ModelFileError(what, file=structure.file, **parts)
    raise ModelError(what, **parts)
