"""Solids from meshes: isotropic elasticity on quadratic tetrahedra or hexahedra, meshes and elements by scikit-fem.

Linear elements are not offered: they are far too stiff in bending (35 % on a slender beam).

Second order: the full Green–Lagrange strain ½∇φ_i*∇φ_j of the modes, which the solid gives way to. In other words:
static modal derivatives, q_ij = -K⁻¹ (∂K/∂η_j) φ_i; or by reciprocity, F·q_ij = -φ_i*K_G(F)φ_j with the geometric
stiffness under any load F. Exact to second order for any shape, where the mesh resolves the modes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, ModelError, ModelFileError, UnknownNameError, require_extra
from linkwise.flexible.integrals import Samples, pairs
from linkwise.flexible.section import poisson, positive
from linkwise.flexible.structure import Indices, Matrix, Structure, assembled

_EXACT = 4
"""Order of quadrature: products of two quadratics."""


class SolidStructure(Structure):
    """Quadratic solid elements; three displacements at each node (corners first, then the nodes between)."""

    def __init__(self, mesh: Any, E: float, nu: float, density: float) -> None:
        for name, value in (("E", E), ("density", density)):
            positive(value, f"{name} of the material")
        poisson(nu)
        self._mesh = mesh = _loaded(mesh)
        self._basis = basis = _quadratic_basis(mesh)
        self._lame = E * nu / ((1 + nu) * (1 - 2 * nu))
        self._shear = E / (2 * (1 + nu))
        self._elements: Indices = np.asarray(basis.element_dofs.T, dtype=np.intp)
        self._dx: FloatArray = np.asarray(basis.dx)
        # (elements, local nodes, 3, points) and (elements, local nodes, points)
        gradient = np.stack([np.broadcast_to(f[0].grad, (3, *self._dx.shape)) for f in basis.basis])
        self._gradient: FloatArray = gradient.transpose(2, 0, 1, 3)
        N = np.stack([np.broadcast_to(np.asarray(f[0]), self._dx.shape) for f in basis.basis]).transpose(1, 0, 2)
        volume = self._dx.sum(axis=1)
        if not (volume > 1e-12 * volume.max()).all():
            raise ModelError("an element of the mesh is flat", got=f"element {int(volume.argmin())} (from 0)")
        n = basis.N
        self._dofs = (3 * self._elements[:, :, None] + np.arange(3)).reshape(len(self._elements), -1)
        W = density * np.einsum("eaq,eq,ebq->eab", N, self._dx, N, optimize=True)
        self.weight = assembled(W, self._elements, n)
        M = sparse.kron(self.weight, sparse.eye_array(3), format="csr")
        K = self._stiffness(n)
        table = np.full((n, 6), -1)
        table[:, :3] = np.arange(3 * n).reshape(n, 3)
        super().__init__(np.asarray(basis.doflocs.T, dtype=float), range(n), {}, M, K, table)

    def _stiffness(self, n: int) -> Matrix:
        g, dx = self._gradient, self._dx
        elements, local = g.shape[:2]
        K = np.zeros((elements, local, 3, local, 3))
        weighted = g * dx[:, None, None, :]
        both = np.einsum("eacq,ebdq->eacbd", weighted, g, optimize=True)
        K += self._lame * both
        K += self._shear * both.transpose(0, 1, 4, 3, 2)
        trace = np.einsum("eacbc->eab", both)
        for c in range(3):
            K[:, :, c, :, c] += self._shear * trace
        return assembled(K.reshape(elements, 3 * local, 3 * local), self._dofs, 3 * n)

    def stretching(self, shapes: FloatArray) -> FloatArray:
        """∫ σ(w) : ½(∇φ_i*∇φ_j + ∇φ_j*∇φ_i) dV for the pairs."""
        m = shapes.shape[1]
        i, j = pairs(m)
        nodal = shapes.reshape(-1, 3, m)[self._elements]  # (e, a, c, m)
        # ∂u_c/∂x_d of each mode at each point
        slope = np.einsum("eadq,eacm->emqcd", self._gradient, nodal, optimize=True)
        forces = np.zeros((self.size, len(i)))
        weighted = self._gradient * self._dx[:, None, None, :]
        for p, (k, l) in enumerate(zip(i, j, strict=True)):
            product = np.einsum("eqcd,eqcf->eqdf", slope[:, k], slope[:, l])
            strain = 0.5 * (product + product.transpose(0, 1, 3, 2))
            stress = 2 * self._shear * strain
            stress += self._lame * np.einsum("eqdd->eq", strain)[..., None, None] * np.eye(3)
            local = np.einsum("eadq,eqdc->eac", weighted, stress, optimize=True)
            forces[:, p] = np.bincount(self._dofs.ravel(), local.ravel(), minlength=self.size)
        return forces

    def samples(self, shapes: FloatArray, second: FloatArray | None) -> Samples:
        """Nodes, weighed by the scalar mass matrix: exact, since positions and fields lie in the same interpolation."""
        n = len(self.positions)
        bent = None if second is None else second.reshape(n, 3, -1)
        return Samples(self.positions, shapes.reshape(n, 3, -1), bent, self.weight)

    def find(self, region: Any, name: str) -> list[int]:
        """The nodes of a region: a test of points, a boundary's name, a point, or numbers of nodes."""
        if callable(region):
            inside = np.asarray(region(self.positions.T))
            if inside.shape != (len(self.positions),) or inside.dtype != bool:
                raise InputError(
                    f"the region {name!r} is not a test of points",
                    got=f"an array {inside.shape} of {inside.dtype}",
                    allowed="a function of x (3, n) that returns n truth values",
                )
            nodes = np.flatnonzero(inside)
        elif isinstance(region, str):
            boundaries = self._mesh.boundaries or {}
            if region not in boundaries:
                raise UnknownNameError("boundary of the mesh", region, boundaries)
            nodes = np.unique(self._basis.get_dofs(region).all())
        elif np.shape(region) == (3,) and np.asarray(region).dtype.kind == "f":
            nearest = int(np.linalg.norm(self.positions - np.asarray(region), axis=1).argmin())
            nodes = self._with_neighbours(np.array([nearest]))
        else:
            nodes = self.region(region)
        if not len(nodes):
            low, high = self.positions.min(axis=0), self.positions.max(axis=0)
            raise InputError(
                f"the region {name!r} holds no node of the mesh",
                got=repr(region),
                allowed=f"nodes between ({_point(low)}) and ({_point(high)})",
                do="compare with a tolerance, e.g. lambda x: x[0] < 1e-6; or check the units of the mesh",
            )
        return [int(k) for k in nodes]

    def _with_neighbours(self, nodes: Indices) -> Indices:
        """A single node is seen with the others of its elements."""
        if len(nodes) > 1:
            return nodes
        return np.unique(self._elements[(self._elements == nodes[0]).any(axis=1)])


def _quadratic_basis(mesh: Any) -> Any:
    skfem = require_extra("skfem", "fem")
    kinds = {skfem.MeshTet: skfem.ElementTetP2, skfem.MeshHex: skfem.ElementHex2}
    for kind, element in kinds.items():
        if isinstance(mesh, kind):
            return skfem.Basis(mesh, element(), intorder=_EXACT)
    raise InputError(
        "this is not a mesh of solid elements",
        got=type(mesh).__name__,
        allowed="skfem.MeshTet, skfem.MeshHex (or their quadratic kinds), or a mesh file",
        do="mesh the solid with tetrahedra or hexahedra",
    )


def _loaded(mesh: Any) -> Any:
    if not isinstance(mesh, (str, os.PathLike)):
        return mesh
    if not Path(mesh).exists():
        raise ModelFileError("there is no such file", file=mesh)
    skfem = require_extra("skfem", "fem")
    require_extra("meshio", "fem")
    try:
        return skfem.Mesh.load(os.fspath(mesh))
    except Exception as error:
        raise ModelFileError("cannot read this file as a mesh", file=mesh, got=str(error)[:200]) from error


def _point(values: FloatArray) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
