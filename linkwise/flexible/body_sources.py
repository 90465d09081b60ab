"""Ways to make a `FlexibleBody`: the model, its root, the nodes it keeps."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.checks import checked_array
from linkwise.errors import InputError, UnknownNameError
from linkwise.flexible.files.matrix_files import MatrixModel
from linkwise.flexible.frame import Member, frame_structure, straight_beam
from linkwise.flexible.integrals import Samples, modal_integrals, without_rounding
from linkwise.flexible.mode_choice import BasisChoice, Choice, ModeChoice, Places, choice_from, mode_count
from linkwise.flexible.nodal import Loads, Nodes, nodal_structure
from linkwise.flexible.plate import PlateStructure
from linkwise.flexible.reduction import ByKind
from linkwise.flexible.root_support import KeptNode, kept_nodes
from linkwise.flexible.section import Section, pair
from linkwise.flexible.structure import MatrixLike, NodeKey, Region, Structure
from linkwise.flexible.structure_checks import check_structure, suspect_units

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody

_BEAM_MODES = 5


class BodySources:
    """The constructors of a :class:`FlexibleBody`."""

    @classmethod
    def from_modes(
        cls,
        points: ArrayLike,
        masses: ArrayLike,
        shapes: ArrayLike,
        stiffness: ArrayLike,
        *,
        nodes: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
        root: str | None = None,
        damping: ArrayLike | None = None,
        second: ArrayLike | None = None,
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
        from linkwise.flexible.body import FlexibleBody, FlexibleNode, frame_node

        K = np.atleast_2d(np.asarray(stiffness, dtype=float))
        m, n = len(K), len(np.asarray(points))
        given = {
            "points": (points, (n, 3)),
            "masses": (masses, (n,)),
            "shapes": (shapes, (n, 3, m)),
            "stiffness": (K, (m, m)),
            "damping": (np.zeros((m, m)) if damping is None else damping, (m, m)),
            "second": (np.zeros((0, 3, m, m)) if second is None else second, (0 if second is None else n, 3, m, m)),
        }
        own = [frame_node(0, m)]
        for number, (name, (position, Gamma, Lambda)) in enumerate(nodes.items(), start=1):
            place = {"the position": (position, (3,)), "Γ": (Gamma, (3, m)), "Λ": (Lambda, (3, m))}
            r, G, L = (
                checked_array(f"{what} of node {name!r}", array, shape) for what, (array, shape) in place.items()
            )
            own.append(FlexibleNode(number, name, r, G, L, np.zeros((3, m, m))))
        if root is not None and root not in nodes:
            raise UnknownNameError("node", root, list(nodes))
        x, weight, G, K, D, Q = (checked_array(what, array, shape) for what, (array, shape) in given.items())
        packed = None if second is None else Q[:, :, *np.triu_indices(m)]
        return FlexibleBody(
            nodes=tuple(own),
            stiffness=K,
            damping=D,
            integrals=without_rounding(modal_integrals(Samples(x, G, packed, weight))),
            boundary="cantilever",
            stiffening=second is not None,
            held=0 if root is None else 1 + list(nodes).index(root),
        )

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
        from linkwise.flexible.element_assembly import body_of

        rotary = pair(rotary_inertia, "rotary_inertia", positive=False)
        shear = None if GA is None else pair(GA, "GA", positive=True)
        section = Section(EA, pair(EI, "EI", positive=True), GJ, mass_per_length, rotary, shear)
        structure = straight_beam(length, section, elements)
        picked = choice_from(choice)
        if torsion_modes is None:
            torsion_modes = 1 if any(rotary) else 0
        by_kind = None
        if picked.up_to_hz is None and not len(picked.inputs):
            y, z = _two_counts(_BEAM_MODES if modes is None else modes)
            counts = {
                "y": y,
                "z": z,
                "axial": mode_count(axial_modes, "axial_modes"),
                "twist": mode_count(torsion_modes, "torsion_modes"),
            }
            by_kind = ByKind({kind: count for kind, count in counts.items() if count}, structure.kinds)
        elif modes is not None:
            picked = choice_from({**choice, "modes": modes})
        root = KeptNode(structure, "root", "root")
        keep = [root, *(KeptNode(structure, k, k) for k in range(1, elements)), KeptNode(structure, "tip", "tip")]
        return body_of(structure, root, picked, keep[1:], by_kind=by_kind)

    @classmethod
    def frame(
        cls,
        nodes: Mapping[Hashable, Sequence[float]] | Sequence[Sequence[float]],
        members: Sequence[Member],
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
        from linkwise.flexible.element_assembly import body_of

        structure = frame_structure(nodes, members)
        check_structure(structure, own_elements=True)
        keys = list(nodes) if isinstance(nodes, Mapping) else list(range(len(nodes)))
        held = KeptNode(structure, root, root)
        keep = [KeptNode(structure, key, key) for key in keys if key != root]
        return body_of(structure, held, choice_from(choice), keep)

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
        root: Literal["edge"] | Sequence[float] = "edge",
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
        from linkwise.flexible.element_assembly import body_of

        structure = PlateStructure(length, width, thickness, E, nu, density, elements)
        for name, point in (nodes or {}).items():
            structure.names[name] = structure.at(point)
        at_root = (
            structure.edge() if isinstance(root, str) and root == "edge" else structure.numbers[structure.at(root)]
        )
        held = KeptNode(structure, "root", at_root)
        keep = [KeptNode(structure, name, name) for name in structure.names]
        return body_of(structure, held, choice_from(choice), keep)

    @classmethod
    def from_arrays(
        cls,
        nodes: Nodes,
        M: MatrixLike,
        K: MatrixLike,
        *,
        root: Region,
        dofs: Sequence[tuple[NodeKey, int]] | None = None,
        keep: Places = (),
        K_geo: Loads | None = None,
        shapes: ArrayLike | None = None,
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
        return _of_matrices(MatrixModel(nodes, M, K, dofs), root, keep, None, choice, K_geo, shapes)

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
        from linkwise.flexible.solid import SolidStructure

        structure = SolidStructure(mesh, E, nu, density)
        regions = dict(choice)
        if "interfaces" in regions:
            interfaces = regions["interfaces"]
            if not isinstance(interfaces, Mapping):
                raise InputError("the interfaces of a mesh need names", got=repr(interfaces), allowed="name: region, …")
            regions["interfaces"] = {name: structure.find(region, name) for name, region in interfaces.items()}
        keep = {name: structure.find(region, name) for name, region in (nodes or {}).items()}
        return _checked_body(structure, structure.find(root, "root"), keep, choice_from(regions), own_elements=True)

    @classmethod
    def from_npz(cls, path: str | os.PathLike[str], **arguments: Any) -> FlexibleBody:
        """Body from an ``.npz`` file: a body written by `save`, or matrices.

        Matrices are the arrays ``M`` and ``K`` (N×N), or their sparse parts ``M_data``, ``M_indices``, ``M_indptr``
        (CSR) and likewise for K, with ``nodes`` (n, 3), and where they are needed ``numbers`` (n,), ``dofs`` (N, 2)
        as in `from_arrays`, which also takes the arguments.
        """
        from linkwise.flexible.body import FlexibleBody
        from linkwise.flexible.files.npz import read_npz

        found = read_npz(path)
        if isinstance(found, FlexibleBody):
            if arguments:
                raise InputError(
                    "the file holds a reduced body, which takes no arguments",
                    got=", ".join(arguments),
                    do="leave them out",
                )
            return found
        if "root" not in arguments:
            raise InputError(
                "the file holds matrices: the body needs a root", do="from_npz(path, root=…), as for from_arrays"
            )
        rest = {"keep": (), "dofs": found.dofs} | arguments
        root, dofs, keep = (rest.pop(each) for each in ("root", "dofs", "keep"))
        K_geo, shapes = (rest.pop(each, None) for each in ("K_geo", "shapes"))
        return _of_matrices(replace(found, dofs=dofs), root, keep, os.fspath(path), rest, K_geo, shapes)

    @classmethod
    def from_nastran(
        cls,
        path: str | os.PathLike[str],
        *,
        root: Region,
        bulk: str | os.PathLike[str] | None = None,
        mass: str | None = None,
        stiffness: str | None = None,
        dofs: Sequence[tuple[NodeKey, int]] | None = None,
        keep: Places = (),
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
        from linkwise.flexible.files.nastran import read_nastran

        found = read_nastran(path, bulk, mass, stiffness, dofs)
        return _of_matrices(found, root, keep, os.fspath(path), choice)

    @classmethod
    def from_abaqus(
        cls,
        mass: str | os.PathLike[str],
        stiffness: str | os.PathLike[str],
        nodes: str | os.PathLike[str] | Mapping[int, ArrayLike],
        *,
        root: Region,
        keep: Places = (),
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
        from linkwise.flexible.files.abaqus import read_mtx, read_nodes

        positions = nodes if isinstance(nodes, Mapping) else read_nodes(nodes)
        found = read_mtx(mass, stiffness, positions)
        return _of_matrices(found, root, keep, os.fspath(stiffness), choice)


def _of_matrices(
    model: MatrixModel,
    root: Region,
    keep: Places,
    file: str | None,
    choice: Mapping[str, Any],
    K_geo: Loads | None = None,
    shapes: ArrayLike | None = None,
) -> FlexibleBody:
    structure = nodal_structure(model.nodes, model.M, model.K, dofs=model.dofs, K_geo=K_geo, file=file)
    modes = None if shapes is None else np.asarray(shapes, dtype=float)
    return _checked_body(structure, root, keep, choice_from(choice), shapes=modes)


def _checked_body(
    structure: Structure,
    root: Region,
    keep: Places,
    choice: Choice,
    *,
    shapes: FloatArray | None = None,
    own_elements: bool = False,
) -> FlexibleBody:
    from linkwise.flexible.element_assembly import body_of

    check_structure(structure, own_elements=own_elements)
    held = KeptNode(structure, root if isinstance(root, str) else "root", root)
    kept = [place for place in kept_nodes(structure, keep, "nodes to keep") if place.key != held.key]
    body = body_of(structure, held, choice, kept, shapes=shapes)
    suspect_units(structure, body)
    return body


def _two_counts(value: Any) -> tuple[int, int]:
    """Modes in each plane, from one number for both or two."""
    try:
        y, z = (value, value) if np.ndim(value) == 0 else value
    except (TypeError, ValueError):
        raise InputError("modes of a beam are one number or two", got=repr(value), allowed="5, or (5, 0)") from None
    return mode_count(y, "modes"), mode_count(z, "modes")
