"""Spatial frames of beams: `Member`s between nodes, and straight beams as the simplest frame.

Second order: a member whose axis turns by v', w' grows shorter along itself by ½∫(v'² + w'²)dx, and the frame follows
so that no stress arises from it: exact for straight beams, and the usual geometric stiffness of axial forces for
frames. What it leaves out is twist times bending (a rotated member bends in rotated axes), of second order as well,
but not of the kind that stiffens.

A beam element has two nodes of six dofs, and one inner dof each for stretch and twist. Deflections are the cubics that
solve the static beam equation with shear (Friedman and Kosmatka 1993; Hermite's cubics where the section does not
shear), so nodal values under loads at nodes are exact and there is no locking. Stretch and twist are quadratics, whose
inner dof is a bubble: frequencies of slender beams converge as h⁴, of all kinds. Mass is consistent, with the sections'
rotary inertia. Matrices and the fields at the quadrature points come from the same functions, so that every mass
integral over the points agrees with the mass matrix. Dofs of an element, in its own axes: u, v, w, θx, θy, θz at node
1, the same at node 2, then the bubbles of u and θx.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy import sparse

from linkwise.array_types import Array, FloatArray
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.flexible.integrals import Samples, pairs
from linkwise.flexible.section import Section, positive
from linkwise.flexible.structure import Indices, Structure, assembled, cross_matrix

DOFS = 14
# Four points integrate the sixth powers of the consistent mass and of ∫x Q dm exactly.
_nodes, _weights = np.polynomial.legendre.leggauss(4)
POINTS: FloatArray = (_nodes + 1.0) / 2.0
WEIGHTS: FloatArray = _weights / 2.0


@dataclass(frozen=True)
class ElementFields:
    """Fields of the 14 dofs at the quadrature points, in element axes."""

    displacement: FloatArray
    """(points, 3, 14)"""
    rotation: FloatArray
    """(points, 3, 14)"""
    strain: FloatArray
    """(points, 6, 14): stretch, shear along y and z, twist, curvature about y and z"""
    slope: FloatArray
    """(3, 2, 14): coefficients of 1, ξ, ξ² in dv/dx and dw/dx"""


def element_fields(section: Section, length: float) -> ElementFields:
    """The fields of one element."""
    L, x = length, POINTS
    n = len(x)
    displacement, rotation, strain = np.zeros((n, 3, DOFS)), np.zeros((n, 3, DOFS)), np.zeros((n, 6, DOFS))
    slope = np.zeros((3, 2, DOFS))
    for field, row, strain_row, first, bubble in ((displacement, 0, 0, 0, 12), (rotation, 0, 3, 3, 13)):
        field[:, row, first], field[:, row, first + 6], field[:, row, bubble] = 1 - x, x, 4 * x * (1 - x)
        strain[:, strain_row, first], strain[:, strain_row, first + 6] = -1 / L, 1 / L
        strain[:, strain_row, bubble] = 4 * (1 - 2 * x) / L
    # The plane x-y has (v, θz); in the plane x-z, w' = -θy, so the same functions serve with the sign of the rotation
    # turned.
    EI_y, EI_z = section.EI
    GA_y, GA_z = section.shear_stiffness
    for row, turn, EI, GA, sign in ((1, 2, EI_z, GA_y, 1.0), (2, 1, EI_y, GA_z, -1.0)):
        deflection, angle = _bending(12 * EI / (GA * L**2), L)
        dofs = [row, 3 + turn, 6 + row, 9 + turn]
        signs = np.array([1.0, sign, 1.0, sign])
        displacement[:, row, dofs] = _values(deflection, x) * signs
        rotation[:, turn, dofs] = sign * _values(angle, x) * signs
        gradient = _derivative(deflection) / L
        strain[:, row, dofs] = (_values(gradient, x) - _values(angle, x)) * signs
        strain[:, 3 + turn, dofs] = sign * _values(_derivative(angle), x) / L * signs
        slope[:, row - 1, dofs] = gradient[:3] * signs
    return ElementFields(displacement, rotation, strain, slope)


def _bending(phi: float, L: float) -> tuple[FloatArray, FloatArray]:
    """Deflection and rotation of the section for (v1, θ1, v2, θ2): coefficients of 1, ξ, ξ², ξ³, (4, 4) each."""
    deflection = np.array(
        [
            [1 + phi, -phi, -3.0, 2.0],
            [0.0, L * (1 + phi / 2), -L * (2 + phi / 2), L],
            [0.0, phi, 3.0, -2.0],
            [0.0, -L * phi / 2, -L * (1 - phi / 2), L],
        ]
    )
    angle = np.array(
        [
            [0.0, -6 / L, 6 / L, 0.0],
            [1 + phi, -(4 + phi), 3.0, 0.0],
            [0.0, 6 / L, -6 / L, 0.0],
            [0.0, -(2 - phi), 3.0, 0.0],
        ]
    )
    return deflection.T / (1 + phi), angle.T / (1 + phi)


def _values(coefficients: FloatArray, x: FloatArray) -> FloatArray:
    return np.vander(x, len(coefficients), increasing=True) @ coefficients


def _derivative(coefficients: FloatArray) -> FloatArray:
    degree = np.arange(1, len(coefficients))[:, None]
    return np.vstack([degree * coefficients[1:], np.zeros((1, coefficients.shape[1]))])


@dataclass(frozen=True)
class Member:
    """A straight beam between two nodes of a frame.

    Args:
        start: node at its beginning.
        end: node at its end.
        section: its cross-section.
        elements: how many finite elements it is cut into.
        y: a vector that, with the beam's axis, spans the plane of the section's y axis; by default the global y axis,
            or the global -x axis for members along y.
    """

    start: Hashable
    end: Hashable
    section: Section
    elements: int = 4
    y: tuple[float, float, float] | None = None


class FrameStructure(Structure):
    """Beam elements assembled: six dofs a node, then two inner dofs an element."""

    def __init__(
        self,
        positions: FloatArray,
        numbers: Sequence[int],
        names: Mapping[str, int],
        ends: Indices,
        axes: FloatArray,
        sections: Sequence[Section],
    ) -> None:
        n, elements = len(positions), len(ends)
        self._length = np.linalg.norm(positions[ends[:, 1]] - positions[ends[:, 0]], axis=1)
        self._axes = axes  # rows are the element's axes
        self._sections = tuple(sections)
        inner = 6 * n + 2 * np.arange(elements)[:, None] + np.arange(2)
        self._dofs = np.hstack([6 * ends[:, :1] + np.arange(6), 6 * ends[:, 1:] + np.arange(6), inner])
        self._ends = ends
        fields = [element_fields(section, L) for section, L in zip(sections, self._length, strict=True)]
        # Columns to global axes: the four node triples turn, the inner dofs stay along the element.
        turn = np.zeros((elements, DOFS, DOFS))
        for k in range(4):
            turn[:, 3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = axes
        turn[:, 12, 12] = turn[:, 13, 13] = 1.0
        self._displacement = np.einsum("eba,egbc,ecd->egad", axes, np.stack([f.displacement for f in fields]), turn)
        self._rotation = np.einsum("eba,egbc,ecd->egad", axes, np.stack([f.rotation for f in fields]), turn)
        self._slope = np.einsum("ekbc,ecd->ekbd", np.stack([f.slope for f in fields]), turn)
        strain = np.einsum("egbc,ecd->egbd", np.stack([f.strain for f in fields]), turn)

        weight = self._length[:, None] * WEIGHTS
        stiffness = np.array([_stiffness(section) for section in sections])
        inertia = np.array([[sum(section.rotary_inertia), *section.rotary_inertia] for section in sections])
        mu = np.array([section.mass_per_length for section in sections])
        rotation = np.einsum("eab,egbd->egad", axes, self._rotation)
        K = np.einsum("eg,es,egsc,egsd->ecd", weight, stiffness, strain, strain)
        M = np.einsum("eg,e,egac,egad->ecd", weight, mu, self._displacement, self._displacement)
        M += np.einsum("eg,ea,egac,egad->ecd", weight, inertia, rotation, rotation)
        size = 6 * n + 2 * elements
        M, K = (_assembled(each, self._dofs, size) for each in (M, K))
        super().__init__(positions, numbers, names, M, K, np.arange(6 * n).reshape(n, 6))

    def stretching(self, shapes: FloatArray) -> FloatArray:
        """EA ∫(v_i'v_j' + w_i'w_j')dx / L along each member, pulling its ends together."""
        m = shapes.shape[1]
        i, j = pairs(m)
        slope = self._element_slopes(shapes)
        k = np.arange(3)
        power = 1.0 / (k[:, None] + k + 1)
        total = self._length[:, None, None] * np.einsum("ekbi,kl,elbj->eij", slope, power, slope)
        EA = np.array([section.EA for section in self._sections])
        force = (EA / self._length)[:, None] * total[:, i, j]
        along = self._axes[:, 0]
        forces = np.zeros((self.size, len(i)))
        for end, sign in ((0, -1.0), (1, 1.0)):
            dofs = 6 * self._ends[:, end, None] + np.arange(3)
            np.add.at(forces, dofs, sign * along[:, :, None] * force[:, None, :])
        return forces

    def samples(self, shapes: FloatArray, second: FloatArray | None) -> Samples:
        """Quadrature points; where sections have rotary inertia, four particles in each that have it."""
        dofs = shapes[self._dofs]
        G = np.einsum("egad,edm->egam", self._displacement, dofs)
        turn = np.einsum("egad,edm->egam", self._rotation, dofs)
        start, span = (
            self.positions[self._ends[:, 0]],
            self.positions[self._ends[:, 1]] - self.positions[self._ends[:, 0]],
        )
        x = start[:, None] + POINTS[:, None] * span[:, None]
        mu = np.array([section.mass_per_length for section in self._sections])
        weight = (self._length * mu)[:, None] * WEIGHTS
        Q = None
        if second is not None:
            Q = np.einsum("egad,edp->egap", self._displacement, second[self._dofs]) + self._between_nodes(shapes)
        return _with_sections(x, G, Q, weight, turn, self._offsets(mu))

    def kinds(self, shapes: Array) -> list[str]:
        """Kinds of the modes of a beam along x: "axial", "y", "z" (the deflection) or "twist"."""
        nodal = shapes[: 6 * len(self.positions)].reshape(-1, 6, shapes.shape[1])
        size = np.abs(nodal).max(axis=0)
        # Each kind in its own measure: displacement, or rotation times a length that makes it comparable.
        length = np.ptp(self.positions, axis=0).max()
        return [("axial", "y", "z", "twist")[int(k)] for k in np.vstack([size[:3], length * size[3]]).argmax(axis=0)]

    def _element_slopes(self, shapes: FloatArray) -> FloatArray:
        slopes: FloatArray = np.einsum("ekbd,edm->ekbm", self._slope, shapes[self._dofs])
        return slopes

    def _between_nodes(self, shapes: Array) -> Array:
        """Departure of the foreshortening inside an element from the straight line between its nodes."""
        m = shapes.shape[1]
        i, j = pairs(m)
        slope = self._element_slopes(shapes)
        power = np.arange(3)[:, None] + np.arange(3) + 1
        kernel = (POINTS[:, None, None] ** power - POINTS[:, None, None]) / power
        inside = self._length[:, None, None, None] * np.einsum("ekbi,gkl,elbj->egij", slope, kernel, slope)
        along: FloatArray = np.einsum("ea,egp->egap", self._axes[:, 0], inside[:, :, i, j])
        return -along

    def _offsets(self, mu: FloatArray) -> FloatArray | None:
        """(elements, 4, 3): particles of a quarter of the mass, ±a along y and ±b along z."""
        rotary = np.array([section.rotary_inertia for section in self._sections])
        if not rotary.any():
            return None
        a, b = np.sqrt(2 * rotary[:, 1] / mu), np.sqrt(2 * rotary[:, 0] / mu)
        y, z = self._axes[:, 1], self._axes[:, 2]
        return np.stack([a[:, None] * y, -a[:, None] * y, b[:, None] * z, -b[:, None] * z], axis=1)


def _with_sections(
    x: FloatArray, G: FloatArray, Q: FloatArray | None, weight: FloatArray, turn: FloatArray, offsets: FloatArray | None
) -> Samples:
    """Samples from fields on elements×points, spread over the particles of the sections.

    A section turns rigidly by θ: its particles move by θ×ρ + ½θ×(θ×ρ) beyond the axis. The second-order part keeps a
    twisted section from growing, and the moments of inertia right to second order.
    """
    m = G.shape[-1]
    if offsets is not None:
        i, j = pairs(m)
        x = x[:, :, None] + offsets[:, None]
        lever = cross_matrix(offsets)  # ρ~
        G = G[:, :, None] - np.einsum("esab,egbm->egsam", lever, turn)
        if Q is not None:
            spin = cross_matrix(np.moveaxis(turn, 2, 3))  # (e, g, m, 3, 3)
            twice = np.einsum("egpab,egpbc,esc->egsap", spin[:, :, i], spin[:, :, j], offsets)
            twice += np.einsum("egpab,egpbc,esc->egsap", spin[:, :, j], spin[:, :, i], offsets)
            Q = Q[:, :, None] + 0.5 * twice
        weight = np.repeat(weight[:, :, None] / 4, 4, axis=2)
    return Samples(
        position=x.reshape(-1, 3),
        shapes=G.reshape(weight.size, 3, m),
        second=None if Q is None else Q.reshape(weight.size, 3, Q.shape[-1]),
        weight=weight.ravel(),
    )


def _stiffness(section: Section) -> list[float]:
    shear = [0.0 if math.isinf(GA) else GA for GA in section.shear_stiffness]
    return [section.EA, *shear, section.GJ, *section.EI]


def _assembled(blocks: FloatArray, dofs: Indices, size: int) -> sparse.csr_array:
    # Rounding from turning axes would join families of dofs that do not act on each other.
    scale = np.sqrt(np.einsum("eii->ei", blocks))
    blocks = np.where(np.abs(blocks) > 1e-14 * scale[:, :, None] * scale[:, None, :], blocks, 0.0)
    matrix = assembled(blocks, dofs, size)
    matrix.eliminate_zeros()
    return matrix


def straight_beam(length: float, section: Section, elements: int) -> FrameStructure:
    """A beam along x from node 0, "root", to the last, "tip"; its section's y and z are the frame's."""
    positive(length, "the length of a beam")
    count = _element_count(elements)
    positions = np.zeros((count + 1, 3))
    positions[:, 0] = np.linspace(0.0, float(length), count + 1)
    ends = np.arange(count)[:, None] + np.arange(2)
    axes = np.tile(np.eye(3), (count, 1, 1))
    names = {"root": 0, "tip": count}
    return FrameStructure(positions, range(count + 1), names, ends, axes, [section] * count)


def frame_structure(
    nodes: Mapping[Hashable, Sequence[float]] | Sequence[Sequence[float]], members: Sequence[Member]
) -> FrameStructure:
    """Nodes and members assembled; nodes inside members are numbered after the given ones.

    Args:
        nodes: name or number -> position, or positions, which are then numbered from 0.
        members: the beams.
    """
    given: dict[Hashable, Sequence[float]] = dict(nodes) if isinstance(nodes, Mapping) else dict(enumerate(nodes))
    keys = list(given)
    try:
        positions = np.array([given[key] for key in keys], dtype=float).reshape(len(keys), 3)
    except (TypeError, ValueError):
        raise InputError(
            "the nodes of a frame are not points", got=repr(nodes)[:80], allowed="name: (x, y, z)"
        ) from None
    if not members:
        raise InputError("a frame needs members", got="none", allowed="lw.flexible.Member(start, end, section), …")
    index = {key: k for k, key in enumerate(keys)}
    taken = [key for key in keys if isinstance(key, int)]
    number = max([*taken, len(keys) - 1], default=-1) + 1
    numbers = []
    free = iter(range(number, number + len(keys)))
    for key in keys:
        numbers.append(key if isinstance(key, int) else next(free))
    names = {key: k for key, k in index.items() if isinstance(key, str)}
    points, axes, sections = list(positions), [], []
    ends: list[tuple[int, int]] = []
    following = max(numbers, default=-1) + 1
    for member in members:
        for key in (member.start, member.end):
            if key not in index:
                raise InputError(
                    "a member ends at a node that the frame does not have",
                    got=repr(key),
                    allowed=", ".join(map(repr, keys)),
                )
        first, last = index[member.start], index[member.end]
        span = positions[last] - positions[first]
        count = _element_count(member.elements)
        if not np.linalg.norm(span) > 0:
            raise InputError("a member has no length", got=f"{member.start!r} to {member.end!r}", allowed="two places")
        chain = [first, *range(len(points), len(points) + count - 1), last]
        points += [positions[first] + span * (k / count) for k in range(1, count)]
        numbers += range(following, following + count - 1)
        following += count - 1
        ends += pairwise(chain)
        axes += [_axes(span, member.y)] * count
        sections += [member.section] * count
    return FrameStructure(np.array(points), numbers, names, np.array(ends), np.array(axes), sections)


def _axes(span: FloatArray, y: Sequence[float] | None) -> FloatArray:
    x = span / np.linalg.norm(span)
    if y is None:
        y = (-1.0, 0.0, 0.0) if abs(x[1]) > 1 - 1e-6 else (0.0, 1.0, 0.0)
    across = np.asarray(y, dtype=float)
    z = np.cross(x, across)
    if not np.linalg.norm(z) > 1e-9 * np.linalg.norm(across):
        raise InputError("the y axis of a member lies along it", got=repr(tuple(y)), allowed="any other direction")
    z /= np.linalg.norm(z)
    return np.stack([x, np.cross(z, x), z])


def _element_count(elements: object) -> int:
    if not isinstance(elements, (int, np.integer)) or isinstance(elements, bool) or not 1 <= elements <= 100_000:
        raise InputError("the number of elements is not possible", got=repr(elements), allowed="1 to 100000")
    return int(elements)
