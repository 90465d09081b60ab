"""`FlexibleBody`: a deformable body as a recursion needs it, and the ways to make one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from scipy import linalg

from linkwise.array_types import Array, FloatArray
from linkwise.errors import InputError, ModelError, ModelWarning, UnknownNameError
from linkwise.flexible.choice import BasisChoice, ModeChoice
from linkwise.flexible.integrals import Frozen, ModalIntegrals
from linkwise.flexible.reduction import Reduction
from linkwise.flexible.structure import NodeKey

__all__ = ["FlexibleBody", "FlexibleNode"]

_CAREFREE_SPIN = 0.1
"""Share of the lowest frequency: up to this spin the missing stiffening changes that frequency by less than 1 %."""


@dataclass(frozen=True, eq=False)
class FlexibleNode(Frozen):
    """A node of a flexible body and what the modes do to it, in root axes, from the root.

    At η it is at r(η) = position + Γη + ½η*Qη, turned by the small rotation Λη.
    """

    number: int
    name: str | None
    position: FloatArray
    """(3,): r⁰"""
    Gamma: FloatArray
    """(3, m)"""
    Lambda: FloatArray
    """(3, m)"""
    Q: FloatArray
    """(3, m, m), symmetric in the last two"""

    @property
    def key(self) -> NodeKey:
        """Name of the node, or its number where it has none."""
        return self.number if self.name is None else self.name


@dataclass(frozen=True, eq=False)
class FlexibleBody(Frozen):
    """A deformable body reduced to m modal coordinates η: data only, frozen.

    The body deforms in its frame, whose motion V = [ω; v] and η̇ are independent, and

        x(η) = x⁰ + Γ(x⁰)η + ½η*Q(x⁰)η

    is where the particle x⁰ is in that frame. Usually the frame is that of the root node, where every mode vanishes in
    displacement and rotation. A frame that floats (as one along a beam's chord, whose ends turn) is that of no node:
    `held` says which node the joint holds, and the joint must leave free what the modes move there.

    Kinetic energy follows from the coefficients `integrals`; `linkwise.flexible.integrals` writes it down, with what is
    kept and why. Elastic energy is ½η*Kη, dissipated power η̇*Dη̇, gravity acts on h(η) and on the mass. With Q in x(η)
    there is no further term for geometric stiffening.
    """

    nodes: tuple[FlexibleNode, ...]
    """Kept nodes; the first is the body's frame, where every mode vanishes: that of the root, if it does not float."""
    stiffness: FloatArray
    """K, (m, m)"""
    damping: FloatArray
    """D, (m, m)"""
    integrals: ModalIntegrals
    boundary: str
    """The kind of modes: "cantilever", "free", "craig-bampton", "nodal"."""
    stiffening: bool
    """Whether Q is known. Without it a body that spins fast grows softer instead of stiffer."""
    reduction: Reduction | None = None
    """Account of the reduction; None for a body that was read as it is."""
    held: int = 0
    """The place in `nodes` of the node that the joint holds: 0, or the root's in a frame that floats."""

    def __post_init__(self) -> None:
        super().__post_init__()
        m = len(self.stiffness)
        wanted: dict[str, tuple[Any, tuple[int, ...]]]
        wanted = {name: (getattr(self, name), (m, m)) for name in ("stiffness", "damping")}
        for name, shape in self.integrals.shapes(m).items():
            wanted[f"the integral {name}"] = getattr(self.integrals, name), shape
        for node in self.nodes:
            for name, shape in (("position", (3,)), ("Gamma", (3, m)), ("Lambda", (3, m)), ("Q", (3, m, m))):
                wanted[f"{name} of node {node.key!r}"] = getattr(node, name), shape
        for what, (array, shape) in wanted.items():
            if array.shape != shape:
                raise InputError(f"{what} has the wrong shape", got=str(array.shape), allowed=f"{shape}: {m} modes")
        keys = [node.key for node in self.nodes]
        if len(set(keys)) < len(keys):
            raise InputError("two nodes of a flexible body have one name", got=str(keys[:12]))
        at_root = [np.vstack([node.Gamma, node.Lambda]) for node in self.nodes[:1]]
        if not at_root or np.abs(at_root[0]).max(initial=0.0) > 1e-9:
            raise ModelError(
                "the first node must be the root, where every mode vanishes", got=repr(self.nodes[:1])[:60]
            )
        if not 0 <= self.held < len(self.nodes):
            raise InputError(
                "the node that the joint holds is not there", got=str(self.held), allowed="a place in nodes"
            )

    # ---------------------------------------------------------------------------------------------------- what it is

    @property
    def modes(self) -> int:
        """m, the number of modal coordinates."""
        return len(self.stiffness)

    @property
    def material_nodes(self) -> tuple[FlexibleNode, ...]:
        """The nodes that are pieces of the body: all, without a frame that floats."""
        return self.nodes[1:] if self.held else self.nodes

    @property
    def mass(self) -> float:
        """The mass, kg."""
        return self.integrals.mass

    @property
    def com(self) -> FloatArray:
        """The mass centre at rest, from the root, m."""
        centre: FloatArray = self.integrals.h0 / self.mass
        return centre

    @property
    def inertia(self) -> FloatArray:
        """3×3 at rest, about the mass centre, root axes, kg m²."""
        c = self.com
        return self.integrals.J0 - self.mass * (c @ c * np.eye(3) - np.outer(c, c))

    def node(self, key: NodeKey) -> FlexibleNode:
        """A node by its name or number; "root" is always the root, which the joint holds."""
        for node in self.nodes:
            if (isinstance(key, str) and node.name == key) or (not isinstance(key, str) and node.number == key):
                return node
        if key == "root":
            return self.nodes[self.held]
        raise UnknownNameError("node", key, [node.key for node in self.nodes])

    @property
    def frequencies(self) -> Array:
        """Frequencies of the modes, Hz, ascending: with the root free for free modes, held for all others."""
        return self.free_frequencies if self.boundary == "free" else self.held_frequencies

    @property
    def held_frequencies(self) -> Array:
        """Frequencies with the root held, Hz."""
        return _frequencies(self.stiffness, self.integrals.Me)

    @property
    def free_frequencies(self) -> Array:
        """Frequencies with the root free to move, Hz: the elastic ones, without the six zeros."""
        M = self.integrals.mass_matrix(np.zeros(self.modes))
        m = self.modes
        follow = M[:m, m:] @ np.linalg.lstsq(M[m:, m:], M[m:, :m], rcond=1e-13)[0]
        return _frequencies(self.stiffness, M[:m, :m] - follow)

    def kinetic_energy(self, eta: FloatArray, eta_dot: FloatArray, V: FloatArray) -> float:
        """T(η, η̇, V), J: of modal coordinates η (m) and their rates (m) on a root that moves by V = [ω; v] (6)."""
        x = np.concatenate([eta_dot, V])
        return float(0.5 * x @ self.integrals.mass_matrix(np.asarray(eta, dtype=float)) @ x)

    def in_spinning_modes(self, rate: Sequence[float], modes: int) -> FlexibleBody:
        """Body in the `modes` lowest modes that it has when it spins steadily.

        A fast spin bends modes away from those at rest. Take a body with many modes at rest, and from it the few that
        it has at about the spin that it will have: these serve for slower spins and for rest as well.

        Args:
            rate: (ωx, ωy, ωz) of the root, rad/s.
            modes: how many.
        """
        from linkwise.flexible.assembly import in_spinning_modes

        return in_spinning_modes(self, rate, modes)

    def random_deformation(self, rng: np.random.Generator) -> FloatArray:
        """Random η (m), uniform; each mode moves no node by more than 2 % of the body's size."""
        reach = max((float(np.linalg.norm(node.position)) for node in self.nodes), default=0.0)
        size = max(reach, float(np.sqrt(np.trace(self.integrals.J0) / self.mass)))
        moved = np.max(
            [np.abs(node.Gamma).max(axis=0) + size * np.abs(node.Lambda).max(axis=0) for node in self.nodes], 0
        )
        scale: FloatArray = 0.02 * size / np.where(moved > 0.0, moved, np.inf)
        return scale * rng.uniform(-1.0, 1.0, self.modes)

    def check_spin(self, rate: float) -> None:
        """Warn where a spin of `rate` rad/s is too fast for a body without geometric stiffening."""
        if self.stiffening or not self.modes:
            return
        lowest = 2 * np.pi * float(self.held_frequencies[0])
        if abs(rate) > _CAREFREE_SPIN * lowest:
            warnings.warn(
                ModelWarning(
                    "this flexible body has no geometric stiffening and spins fast",
                    got=f"{abs(rate):.3g} rad/s, lowest mode {lowest:.3g} rad/s",
                    allowed=f"up to {_CAREFREE_SPIN * lowest:.3g} rad/s the error of that mode stays below 1 %",
                    do="give K_geo to from_arrays, or build the body with beam, frame, plate or from_mesh",
                ),
                stacklevel=2,
            )

    def __repr__(self) -> str:
        hertz = self.frequencies
        shown = ", ".join(f"{each:.4g}" for each in hertz[:4]) + (", …" if len(hertz) > 4 else "")
        return f"FlexibleBody({self.mass:.4g} kg, {self.modes} modes: {shown} Hz, {len(self.nodes)} nodes)"

    # ----------------------------------------------------------------------------------------- where it comes from

    @classmethod
    def from_modes(
        cls,
        points: Any,
        masses: Any,
        shapes: Any,
        stiffness: Any,
        *,
        nodes: Mapping[str, tuple[Any, Any, Any]],
        root: str | None = None,
        damping: Any = None,
        second: Any = None,
    ) -> FlexibleBody:
        """Body from assumed modes: functions of your own, sampled where the mass is.

        Args:
            points: x⁰ of particles or quadrature points, (n, 3), in the body's frame, m.
            masses: of each, (n,), kg.
            shapes: Γ at each, (n, 3, m).
            stiffness: K, (m, m).
            nodes: name -> (position (3,), Γ (3, m), Λ (3, m)): places for joints, closures and frames, with how the
                modes move and turn them.
            root: the node that the body's joint holds. None: the frame itself, in whose origin every mode vanishes.
            damping: D, (m, m); none by default.
            second: Q at each point, (n, 3, m, m), symmetric in the last two: without it the body has no geometric
                stiffening. At nodes it counts as zero.

        Example:
            a rod on two pins, in its chord's frame, with one sine as its mode:

            >>> import linkwise as lw
            >>> x = (np.arange(40) + 0.5) / 40
            >>> sine = np.stack([0 * x, np.sin(np.pi * x), 0 * x], axis=1)[:, :, None]
            >>> still, turned = np.zeros((3, 1)), np.array([[0.0], [0.0], [np.pi]])
            >>> ends = {"root": ((0, 0, 0), still, turned), "tip": ((1, 0, 0), still, -turned)}
            >>> rod = lw.FlexibleBody.from_modes(
            ...     np.outer(x, [1, 0, 0]), np.full(40, 0.05), sine, [[500.0]], nodes=ends, root="root"
            ... )
            >>> round(float(rod.frequencies[0]), 3)
            3.559
        """
        from linkwise.flexible.body_sources import modes_body

        return modes_body(points, masses, shapes, stiffness, nodes, root, damping, second)

    @classmethod
    def beam(
        cls,
        length: float,
        EA: float,
        EI: float | tuple[float, float],
        GJ: float,
        mass_per_length: float,
        *,
        elements: int = 20,
        modes: int | tuple[int, int] | None = None,
        axial_modes: int = 1,
        torsion_modes: int | None = None,
        rotary_inertia: float | tuple[float, float] = 0.0,
        GA: float | tuple[float, float] | None = None,
        **choice: Unpack[BasisChoice],
    ) -> FlexibleBody:
        """A straight uniform beam along x, from node "root" to node "tip"; the nodes between have numbers.

        Args:
            length: m.
            EA: against stretching, N.
            EI: against bending, about y (deflection along z) and about z (deflection along y), N m².
            GJ: against twist, N m².
            mass_per_length: kg/m.
            elements: finite elements; nodes are numbered 0 to `elements`.
            modes: bending modes in each plane (deflections along y and along z), or two numbers for the two planes; 5
                where neither this nor `up_to_hz` is given.
            axial_modes: modes of stretching. Without one the beam cannot grow longer when it spins.
            torsion_modes: modes of twist; by default 1 where there is rotary inertia, which they need, else 0.
            rotary_inertia: ρI about y and about z, kg m.
            GA: against shear along y and along z, N, with the shear correction factor; None for no shear.
            choice: the other keywords of `linkwise.flexible.Choice`: boundary, interfaces, residuals, damping, …
        """
        from linkwise.flexible.body_sources import beam_body

        return beam_body(
            length, EA, EI, GJ, mass_per_length, elements, modes, axial_modes, torsion_modes, rotary_inertia, GA, choice
        )

    @classmethod
    def frame(
        cls,
        nodes: Mapping[Hashable, Sequence[float]] | Sequence[Sequence[float]],
        members: Sequence[Any],
        *,
        root: NodeKey,
        **choice: Unpack[ModeChoice],
    ) -> FlexibleBody:
        """A spatial frame of beams, held at one of its nodes; the nodes given here are kept.

        Args:
            nodes: name or number -> position, or positions, numbered from 0.
            members: `linkwise.flexible.Member` each.
            root: the node that is the body's root.
            choice: the keywords of `linkwise.flexible.Choice`.
        """
        from linkwise.flexible.body_sources import frame_body

        return frame_body(nodes, members, root, choice)

    @classmethod
    def plate(
        cls,
        length: float,
        width: float,
        thickness: float,
        *,
        E: float,
        nu: float,
        density: float,
        elements: tuple[int, int] = (8, 4),
        root: Any = "edge",
        nodes: Mapping[str, tuple[float, float]] | None = None,
        **choice: Unpack[ModeChoice],
    ) -> FlexibleBody:
        """A rectangular plate 0 <= x <= length, -width/2 <= y <= width/2, in the plane z = 0.

        Named nodes: "root" where it is held, "tip" in the middle of the far edge (where a node lies there: for an even
        number of elements across), "left" (y > 0) and "right" at the far corners; more with `nodes`.

        Args:
            length: along x, m.
            width: along y, m.
            thickness: m.
            E: Young's modulus, Pa.
            nu: Poisson's ratio.
            density: kg/m³.
            elements: along x and y.
            root: "edge", the whole edge x = 0, which then is a rigid piece with its middle as root; or a point (x, y)
                of the grid.
            nodes: further named points (x, y) of the grid.
            choice: the keywords of `linkwise.flexible.Choice`.
        """
        from linkwise.flexible.body_sources import plate_body

        return plate_body(length, width, thickness, E, nu, density, elements, root, nodes or {}, choice)

    @classmethod
    def from_arrays(
        cls,
        nodes: Any,
        M: Any,
        K: Any,
        *,
        root: Any,
        dofs: Sequence[tuple[NodeKey, int]] | None = None,
        keep: Any = (),
        K_geo: Mapping[Any, Any] | None = None,
        shapes: Any = None,
        **choice: Unpack[ModeChoice],
    ) -> FlexibleBody:
        """Body from free mass and stiffness matrices of any finite-element program, dense or sparse.

        Args:
            nodes: positions (n, 3), numbered from 0; or name or number -> position.
            M: N×N.
            K: N×N.
            root: the node, or the region of nodes, that is the body's root.
            dofs: what each row of M and K is: (node, component), components counted 1 to 6 (displacements along x, y,
                z, then rotations). By default three or six for each node in turn, as N says.
            keep: nodes that the body keeps besides root and interfaces: names or numbers, or a mapping of new names
                to nodes or regions.
            K_geo: geometric stiffness matrices N×N of the structure held at its root, under unit loads: key "x" for a
                force of 1 N/kg along x on all the mass, "xy" for a force of x N/kg along y, and so on ("x" … "z",
                "xx" … "zz"), and (node, "x") for 1 N at a kept node. What is not given counts as zero. Without any,
                there is no stiffening.
            shapes: mode shapes (N, m) found elsewhere, to be used instead of our own.
            choice: the keywords of `linkwise.flexible.Choice`.
        """
        from linkwise.flexible.body_sources import arrays_body

        return arrays_body(nodes, M, K, root, dofs, keep, K_geo, shapes, None, choice)

    @classmethod
    def from_mesh(
        cls,
        mesh: Any,
        *,
        E: float,
        nu: float,
        density: float,
        root: Any,
        nodes: Mapping[str, Any] | None = None,
        **choice: Unpack[ModeChoice],
    ) -> FlexibleBody:
        """Body from a mesh of tetrahedra or hexahedra and a material, with quadratic elements.

        Args:
            mesh: a `skfem` mesh (`MeshTet`, `MeshHex`, …), or the path of a mesh file that `skfem` can load.
            E: Young's modulus, Pa.
            nu: Poisson's ratio.
            density: kg/m³.
            root: the region that is the body's root: a function of x (3, n) that says which points belong to it, the
                name of a boundary of the mesh, or a point (x, y, z), for the mesh node nearest to it and its
                neighbours. It moves as a rigid piece; the root node is its mean point.
            nodes: name -> region as above: nodes that the body keeps; they do not stiffen it. Their motion is the
                mean of the region. (`interfaces` takes the same, but ties the region.)
            choice: the keywords of `linkwise.flexible.Choice`.
        """
        from linkwise.flexible.body_sources import mesh_body

        return mesh_body(mesh, E, nu, density, root, nodes or {}, choice)

    @classmethod
    def from_npz(cls, path: str | os.PathLike[str], **arguments: Any) -> FlexibleBody:
        """Body from an ``.npz`` file: a body written by `save`, or matrices.

        Matrices are the arrays ``M`` and ``K`` (N×N), or their sparse parts ``M_data``, ``M_indices``, ``M_indptr``
        (CSR) and likewise for K, with ``nodes`` (n, 3), and where they are needed ``numbers`` (n,), ``dofs`` (N, 2)
        as in `from_arrays`, which also takes the arguments.
        """
        from linkwise.flexible.body_sources import npz_body

        return npz_body(path, arguments)

    @classmethod
    def from_nastran(
        cls,
        path: str | os.PathLike[str],
        *,
        root: Any,
        bulk: str | os.PathLike[str] | None = None,
        mass: str | None = None,
        stiffness: str | None = None,
        dofs: Sequence[tuple[NodeKey, int]] | None = None,
        keep: Any = (),
        **choice: Unpack[ModeChoice],
    ) -> FlexibleBody:
        """Body from Nastran: DMIG cards in bulk data, or an OUTPUT2 or OUTPUT4 file beside it.

        Args:
            path: bulk data with GRID and DMIG cards (``.bdf``, ``.dat``, ``.pch``), or an ``.op2`` or ``.op4`` file,
                text or binary, dense or sparse (needs the extra ``fem``).
            root: grid number of the root, or several.
            bulk: the bulk data with the GRID cards, where `path` does not hold them.
            mass: the matrix's name; by default the first of MAA, MAAX, MGG, M2GG, MXX, M that is there.
            stiffness: likewise, KAA, KAAX, KGG, K2GG, KXX, K.
            dofs: for these, what the rows are, as in `from_arrays`; by default all six of every grid, in the order of
                their numbers.
            keep: grids that the body keeps, as in `from_arrays`.
            choice: the keywords of `linkwise.flexible.Choice`.
        """
        from linkwise.flexible.body_sources import nastran_body

        return nastran_body(path, root, bulk, mass, stiffness, dofs, keep, choice)

    @classmethod
    def from_abaqus(
        cls,
        mass: str | os.PathLike[str],
        stiffness: str | os.PathLike[str],
        nodes: Any,
        *,
        root: Any,
        keep: Any = (),
        **choice: Unpack[ModeChoice],
    ) -> FlexibleBody:
        """Body from the matrices that Abaqus writes with ``*MATRIX OUTPUT`` (format MATRIX INPUT, ``.mtx``).

        Args:
            mass: ``job_MASS1.mtx``.
            stiffness: ``job_STIF1.mtx``.
            nodes: the input file with its ``*NODE`` lines, or a mapping of numbers to positions.
            root: node number of the root, or several.
            keep: nodes that the body keeps, as in `from_arrays`.
            choice: the keywords of `linkwise.flexible.Choice`.
        """
        from linkwise.flexible.body_sources import abaqus_body

        return abaqus_body(mass, stiffness, nodes, root, keep, choice)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the reduced body as plain arrays; `from_npz` reads it again."""
        from linkwise.flexible.files.npz import write_body

        write_body(self, path)


def frame_node(number: int, modes: int) -> FlexibleNode:
    """The frame of a body as its first node."""
    return FlexibleNode(
        number, "frame", np.zeros(3), np.zeros((3, modes)), np.zeros((3, modes)), np.zeros((3, modes, modes))
    )


def _frequencies(K: FloatArray, M: FloatArray) -> FloatArray:
    if not len(K):
        return np.zeros(0)
    mu = linalg.eigh(M, K, eigvals_only=True)[::-1]
    hertz: FloatArray = 1.0 / (2 * np.pi * np.sqrt(np.maximum(mu, np.finfo(float).tiny)))
    return hertz
