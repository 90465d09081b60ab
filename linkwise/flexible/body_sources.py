"""One function for each way to make a `FlexibleBody`: the model, its root, the nodes it keeps."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, UnknownNameError
from linkwise.flexible.assembly import body_of
from linkwise.flexible.body import FlexibleBody, FlexibleNode, frame_node
from linkwise.flexible.choice import Choice, choice_from, mode_count
from linkwise.flexible.files.abaqus import read_mtx, read_nodes
from linkwise.flexible.files.nastran import read_nastran
from linkwise.flexible.files.npz import read_npz
from linkwise.flexible.frame import Member, frame_structure, straight_beam
from linkwise.flexible.integrals import Samples, modal_integrals, without_rounding
from linkwise.flexible.nodal import nodal_structure
from linkwise.flexible.plate import PlateStructure
from linkwise.flexible.reduction import ByKind
from linkwise.flexible.root_support import KeptNode, kept_nodes
from linkwise.flexible.section import Section, pair
from linkwise.flexible.structure import NodeKey, Structure
from linkwise.flexible.structure_checks import check_structure, suspect_units

_BEAM_MODES = 5


def beam_body(
    length: float,
    EA: float,
    EI: float | tuple[float, float],
    GJ: float,
    mass_per_length: float,
    elements: int,
    modes: int | tuple[int, int] | None,
    axial_modes: int,
    torsion_modes: int | None,
    rotary_inertia: float | tuple[float, float],
    GA: float | tuple[float, float] | None,
    given: Mapping[str, Any],
) -> FlexibleBody:
    """`FlexibleBody.beam`."""
    rotary = pair(rotary_inertia, "rotary_inertia", positive=False)
    shear = None if GA is None else pair(GA, "GA", positive=True)
    section = Section(EA, pair(EI, "EI", positive=True), GJ, mass_per_length, rotary, shear)
    structure = straight_beam(length, section, elements)
    choice = choice_from(dict(given))
    if torsion_modes is None:
        torsion_modes = 1 if any(rotary) else 0
    by_kind = None
    if choice.up_to_hz is None and not len(choice.inputs):
        per_plane = (_BEAM_MODES, _BEAM_MODES) if modes is None else (modes, modes) if np.ndim(modes) == 0 else modes
        y, z = _two_counts(per_plane)
        counts = {
            "y": y,
            "z": z,
            "axial": mode_count(axial_modes, "axial_modes"),
            "twist": mode_count(torsion_modes, "torsion_modes"),
        }
        by_kind = ByKind({kind: count for kind, count in counts.items() if count}, structure.kinds)
    elif modes is not None:
        choice = choice_from({**given, "modes": modes})
    root = KeptNode(structure, "root", "root")
    keep = [root, *(KeptNode(structure, k, k) for k in range(1, elements)), KeptNode(structure, "tip", "tip")]
    return body_of(structure, root, choice, keep[1:], by_kind=by_kind)


def modes_body(
    points: Any,
    masses: Any,
    shapes: Any,
    stiffness: Any,
    nodes: Mapping[str, tuple[Any, Any, Any]],
    root: str | None,
    damping: Any,
    second: Any,
) -> FlexibleBody:
    """`FlexibleBody.from_modes`."""
    K = np.atleast_2d(np.asarray(stiffness, dtype=float))
    m, n = len(K), len(points)
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
        r, G, L = (_of_shape(array, f"{what} of node {name!r}", shape) for what, (array, shape) in place.items())
        own.append(FlexibleNode(number, name, r, G, L, np.zeros((3, m, m))))
    if root is not None and root not in nodes:
        raise UnknownNameError("node", root, list(nodes))
    x, weight, G, K, D, Q = (_of_shape(array, what, shape) for what, (array, shape) in given.items())
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


def _of_shape(array: Any, what: str, shape: tuple[int, ...]) -> FloatArray:
    numbers: FloatArray = np.asarray(array, dtype=float)
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise InputError(f"{what}: not what the modes need", got=f"an array {numbers.shape}", allowed=f"{shape}")
    return numbers


def frame_body(
    nodes: Mapping[Hashable, Sequence[float]] | Sequence[Sequence[float]],
    members: Sequence[Member],
    root: NodeKey,
    given: Mapping[str, Any],
) -> FlexibleBody:
    """`FlexibleBody.frame`."""
    structure = frame_structure(nodes, members)
    check_structure(structure, own_elements=True)
    keys = list(nodes) if isinstance(nodes, Mapping) else list(range(len(nodes)))
    held = KeptNode(structure, root, root)
    keep = [KeptNode(structure, key, key) for key in keys if key != root]
    return body_of(structure, held, choice_from(dict(given)), keep)


def plate_body(
    length: float,
    width: float,
    thickness: float,
    E: float,
    nu: float,
    density: float,
    elements: tuple[int, int],
    root: Any,
    nodes: Mapping[str, tuple[float, float]],
    given: Mapping[str, Any],
) -> FlexibleBody:
    """`FlexibleBody.plate`."""
    structure = PlateStructure(length, width, thickness, E, nu, density, elements)
    for name, point in nodes.items():
        structure.names[name] = structure.at(point)
    if isinstance(root, str) and root == "edge":
        held = KeptNode(structure, "root", structure.edge())
    else:
        held = KeptNode(structure, "root", structure.numbers[structure.at(root)])
    keep = [KeptNode(structure, name, name) for name in structure.names]
    return body_of(structure, held, choice_from(dict(given)), keep)


def arrays_body(
    nodes: Any,
    M: Any,
    K: Any,
    root: Any,
    dofs: Sequence[tuple[NodeKey, int]] | None,
    keep: Any,
    K_geo: Mapping[Any, Any] | None,
    shapes: Any,
    file: str | None,
    given: Mapping[str, Any],
) -> FlexibleBody:
    """`FlexibleBody.from_arrays`, and what readers of files end in."""
    structure = nodal_structure(nodes, M, K, dofs=dofs, K_geo=K_geo, file=file)
    modes = None if shapes is None else np.asarray(shapes, dtype=float)
    return _checked_body(structure, root, keep, choice_from(dict(given)), shapes=modes)


def mesh_body(
    mesh: Any,
    E: float,
    nu: float,
    density: float,
    root: Any,
    nodes: Mapping[str, Any],
    given: Mapping[str, Any],
) -> FlexibleBody:
    """`FlexibleBody.from_mesh`."""
    from linkwise.flexible.solid import SolidStructure

    structure = SolidStructure(mesh, E, nu, density)
    regions = dict(given)
    if "interfaces" in regions:
        interfaces = regions["interfaces"]
        if not isinstance(interfaces, Mapping):
            raise InputError("the interfaces of a mesh need names", got=repr(interfaces), allowed="name: region, …")
        regions["interfaces"] = {name: structure.find(region, name) for name, region in interfaces.items()}
    keep = {name: structure.find(region, name) for name, region in nodes.items()}
    return _checked_body(structure, structure.find(root, "root"), keep, choice_from(regions), own_elements=True)


def npz_body(path: str | os.PathLike[str], arguments: dict[str, Any]) -> FlexibleBody:
    """`FlexibleBody.from_npz`."""
    found = read_npz(path)
    if isinstance(found, FlexibleBody):
        if arguments:
            raise InputError(
                "the file holds a reduced body, which takes no arguments", got=", ".join(arguments), do="leave them out"
            )
        return found
    if "root" not in arguments:
        raise InputError(
            "the file holds matrices: the body needs a root", do="from_npz(path, root=…), as for from_arrays"
        )
    rest = dict(arguments)
    dofs = rest.pop("dofs", found.dofs)
    return arrays_body(
        found.nodes,
        found.M,
        found.K,
        rest.pop("root"),
        dofs,
        rest.pop("keep", ()),
        rest.pop("K_geo", None),
        rest.pop("shapes", None),
        os.fspath(path),
        rest,
    )


def nastran_body(
    path: str | os.PathLike[str],
    root: Any,
    bulk: str | os.PathLike[str] | None,
    mass: str | None,
    stiffness: str | None,
    dofs: Sequence[tuple[NodeKey, int]] | None,
    keep: Any,
    given: Mapping[str, Any],
) -> FlexibleBody:
    """`FlexibleBody.from_nastran`."""
    found = read_nastran(path, bulk, mass, stiffness, dofs)
    return arrays_body(found.nodes, found.M, found.K, root, found.dofs, keep, None, None, os.fspath(path), given)


def abaqus_body(
    mass: str | os.PathLike[str],
    stiffness: str | os.PathLike[str],
    nodes: Any,
    root: Any,
    keep: Any,
    given: Mapping[str, Any],
) -> FlexibleBody:
    """`FlexibleBody.from_abaqus`."""
    positions = nodes if isinstance(nodes, Mapping) else read_nodes(nodes)
    found = read_mtx(mass, stiffness, positions)
    return arrays_body(found.nodes, found.M, found.K, root, found.dofs, keep, None, None, os.fspath(stiffness), given)


def _checked_body(
    structure: Structure,
    root: Any,
    keep: Any,
    choice: Choice,
    *,
    shapes: FloatArray | None = None,
    own_elements: bool = False,
) -> FlexibleBody:
    check_structure(structure, own_elements=own_elements)
    held = KeptNode(structure, root if isinstance(root, str) else "root", root)
    kept = [place for place in kept_nodes(structure, keep, "nodes to keep") if place.key != held.key]
    body = body_of(structure, held, choice, kept, shapes=shapes)
    suspect_units(structure, body)
    return body


def _two_counts(value: Any) -> tuple[int, int]:
    try:
        y, z = value
    except (TypeError, ValueError):
        raise InputError("modes of a beam are one number or two", got=repr(value), allowed="5, or (5, 0)") from None
    return mode_count(y, "modes"), mode_count(z, "modes")
