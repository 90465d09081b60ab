"""The beam element: two nodes of six dofs, and one inner dof each for stretch and twist.

Deflections are the cubics that solve the static beam equation with shear (Friedman and Kosmatka 1993; Hermite's
cubics where the section does not shear), so nodal values under loads at nodes are exact and there is no locking.
Stretch and twist are quadratics, whose inner dof is a bubble: frequencies of slender beams converge as h⁴, of all
kinds. Mass is consistent, with the sections' rotary inertia. Matrices and the fields at the
quadrature points come from the same functions, so that every mass integral over the points agrees with the mass matrix.

Dofs of an element, in its own axes: u, v, w, θx, θy, θz at node 1, the same at node 2, then the bubbles of u and θx.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.flexible.section import Section

__all__ = ["DOFS", "POINTS", "WEIGHTS", "ElementFields", "element_fields"]

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
