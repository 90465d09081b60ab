"""Plates against published frequencies, convergence, and the beam as their narrow limit."""

import numpy as np
import pytest
from scipy import linalg

from linkwise.errors import LinkwiseError
from linkwise.flexible import FlexibleBody
from linkwise.flexible.plate import PlateStructure

E, NU, RHO, T = 7e10, 0.3, 2700.0, 0.002
D = E * T**3 / (12 * (1 - NU**2))


def plate(length=1.0, width=1.0, **options):
    return FlexibleBody.plate(length, width, T, E=E, nu=NU, density=RHO, **options)


def parameter(hertz, length=1.0):
    return 2 * np.pi * np.asarray(hertz) * length**2 * np.sqrt(RHO * T / D)


def test_square_cantilever_plate():
    """ωa²√(ρt/D) for ν = 0.3: Leissa (1973) by Ritz gives 3.4917, 8.5246, 21.429, 27.331, 31.111 as upper bounds.

    Later and finer Ritz solutions lie at 3.471, 8.507, 21.28, 27.20, 30.95.
    """
    found = parameter(plate(elements=(12, 12), modes=5, stiffening=False).frequencies)
    np.testing.assert_allclose(found, (3.471, 8.507, 21.28, 27.20, 30.95), rtol=1e-3)
    assert (found < (3.4917, 8.5246, 21.429, 27.331, 31.111)).all()


def test_simply_supported_plate_converges_as_the_fourth_power():
    """(m² + n²)π² exactly; supports put on the free matrices here."""
    errors = []
    for n in (2, 4, 6):
        structure = PlateStructure(1.0, 1.0, T, E, NU, RHO, (n, n))
        x, y = structure.positions[:, 0], structure.positions[:, 1]
        edge_x, edge_y = (np.abs(x * (1 - x)) < 1e-12), (np.abs(np.abs(y) - 0.5) < 1e-12)
        nodes = np.arange(len(x))
        held = np.concatenate(
            [12 * nodes[edge_x] + 8, 12 * nodes[edge_x] + 10, 12 * nodes[edge_y] + 8, 12 * nodes[edge_y] + 9]
        )
        w = np.setdiff1d((12 * nodes[:, None] + np.arange(8, 12)).ravel(), held)
        squared = linalg.eigh(structure.K[w][:, w].toarray(), structure.M[w][:, w].toarray(), eigvals_only=True)
        # Rotary inertia of a thin plate takes off ½(t²/12)(m² + n²)π² of the frequency: 3e-6 here.
        exact = 2 * np.pi**2 * (1 - T**2 / 24 * 2 * np.pi**2)
        errors.append(parameter(np.sqrt(squared[0]) / (2 * np.pi)) / exact - 1)
    assert all(error > 0 for error in errors)
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), 4.0, atol=0.3)
    assert errors[2] < 5e-5


def test_a_narrow_plate_is_a_beam():
    """Without Poisson's ratio, since a clamped edge would hold the plate's width and stiffen it."""
    width = 0.02
    body = FlexibleBody.plate(1.0, width, T, E=E, nu=0.0, density=RHO, elements=(8, 2), modes=2)
    beam = FlexibleBody.beam(
        1.0,
        E * width * T,
        (E * width * T**3 / 12, E * T * width**3 / 12),
        1.0,
        RHO * width * T,
        modes=(0, 2),
        axial_modes=0,
    )
    np.testing.assert_allclose(body.frequencies, beam.frequencies, rtol=1e-4)
    np.testing.assert_allclose(np.diag(body.node("tip").Q[0]), np.diag(beam.node("tip").Q[0]), rtol=2e-3)
    np.testing.assert_allclose(
        np.diag(body.integrals.J_second[2, 2]), np.diag(beam.integrals.J_second[2, 2]), rtol=2e-3
    )


def test_mass_properties_and_nodes():
    body = plate(length=2.0, width=1.0, elements=(4, 2), modes=3, nodes={"inside": (1.0, 0.5)})
    assert body.mass == pytest.approx(RHO * T * 2.0, rel=1e-12)
    np.testing.assert_allclose(body.com, [1.0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(
        np.diag(body.inertia) / body.mass, [(1 + T**2) / 12, (4 + T**2) / 12, 5 / 12], rtol=1e-10
    )
    assert [node.name for node in body.nodes] == ["root", "tip", "left", "right", "inside"]
    np.testing.assert_array_equal(body.node("left").position, [2.0, 0.5, 0.0])
    assert np.linalg.eigvalsh(body.integrals.mass_matrix(np.array([0.05, -0.02, 0.01])))[0] > 0


def test_a_plate_on_a_point_and_with_an_interface():
    point = plate(elements=(4, 4), root=(0.5, 0.0), modes=4, boundary="free", stiffening=False)
    # Free square plate, ν = 0.3: 13.468, 19.596, 24.271 (Leissa).
    np.testing.assert_allclose(parameter(point.frequencies[:3]), (13.468, 19.596, 24.271), rtol=3e-3)
    far = [4 * 5 + k for k in range(5)]
    body = plate(elements=(4, 4), interfaces={"far": far}, boundary="craig-bampton", modes=2)
    assert dict(body.reduction.static_error)["far"] < 1e-8
    np.testing.assert_allclose(body.node("far").position, [1.0, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"length": 0.0}, "length of a plate"),
        ({"elements": (0, 3)}, "elements of a plate"),
        ({"elements": 3}, "elements of a plate"),
        ({"root": (0.123, 0.0)}, "nearest"),
        ({"root": "middle"}, "two numbers"),
        ({"nodes": {"a": (5.0, 0.0)}}, "no node of the plate"),
    ],
)
def test_bad_plates(options, text):
    with pytest.raises(LinkwiseError, match=text):
        plate(**options)


def test_bad_material():
    with pytest.raises(LinkwiseError, match="Poisson"):
        FlexibleBody.plate(1.0, 1.0, 0.01, E=E, nu=0.6, density=RHO)
