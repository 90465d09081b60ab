"""The modal integrals against sums over particles that know only the nodes' motions."""

import pickle

import numpy as np
import pytest

from linkwise.flexible import FlexibleBody, Member, Section
from linkwise.flexible.frame import frame_structure, straight_beam
from linkwise.flexible.integrals import modal_integrals
from linkwise.flexible.plate import PlateStructure
from tests.flexible.particles import BeamParticles, kinetic_energy_reference, second_order_part

L, MU = 3.0, 1.2


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def beam(**options):
    return FlexibleBody.beam(
        L,
        2.8e7,
        (1.4e4, 2.0e4),
        1e4,
        MU,
        **{"elements": 6, "modes": (3, 2), "axial_modes": 0, "torsion_modes": 0, **options},
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rotary_inertia": (0.02, 0.05)},
        {"boundary": "free", "rotary_inertia": (0.02, 0.05)},
        {"boundary": "craig-bampton", "interfaces": (3,), "modes": 1, "rotary_inertia": (0.02, 0.05)},
    ],
    ids=["line", "sections", "free", "craig-bampton"],
)
def test_kinetic_energy_is_that_of_fine_particles_to_second_order(options, rng):
    body = beam(**options)
    if options.get("boundary") == "craig-bampton":
        # Static shapes of stretch and twist have inner dofs that nodes do not show: keep to bending.
        bending = np.flatnonzero(np.abs(body.node("tip").Gamma[1:]).sum(axis=0) > 0)
    else:
        bending = np.arange(body.modes)
    particles = BeamParticles(body, L, MU, options.get("rotary_inertia", (0.0, 0.0)))
    for _ in range(5):
        eta, eta_dot, V = np.zeros(body.modes), np.zeros(body.modes), rng.standard_normal(6)
        eta[bending], eta_dot[bending] = rng.standard_normal((2, len(bending)))
        exact = second_order_part(lambda *a: kinetic_energy_reference(particles, *a), eta, eta_dot, V)
        ours = second_order_part(body.kinetic_energy, eta, eta_dot, V)
        np.testing.assert_allclose(ours, exact, rtol=1e-10, atol=1e-10 * np.abs(exact).max())


def test_what_is_dropped_is_of_third_order(rng):
    body = beam()
    particles = BeamParticles(body, L, MU)
    eta, eta_dot, V = rng.standard_normal(body.modes), rng.standard_normal(body.modes), rng.standard_normal(6)
    errors = []
    for e in (0.002, 0.001):
        exact = kinetic_energy_reference(particles, e * eta, e * eta_dot, V)
        errors.append(abs(body.kinetic_energy(e * eta, e * eta_dot, V) - exact))
    assert np.log2(errors[0] / errors[1]) > 2.85


def _structures():
    section = Section(2e6, (3e3, 5e3), 2e3, 2.0, (0.01, 0.03), (1e6, 8e5))
    yield straight_beam(2.0, section, 4)
    nodes = {"a": (0, 0, 0), "b": (1, 0.2, 0), "c": (1, 1, 0.7)}
    yield frame_structure(nodes, [Member("a", "b", section), Member("b", "c", section, y=(1, 0, 0))])
    yield PlateStructure(1.0, 0.6, 0.05, 7e10, 0.3, 2700.0, (3, 2))


@pytest.mark.parametrize("structure", list(_structures()), ids=["shear beam", "frame", "plate"])
def test_samples_weigh_what_the_mass_matrix_weighs(structure, rng):
    shapes = rng.standard_normal((structure.size, 4))
    integrals = modal_integrals(structure.samples(shapes, None))
    rigid = structure.rigid(np.zeros(3))
    inertia, coupling = rigid.T @ (structure.M @ rigid), rigid.T @ (structure.M @ shapes)
    np.testing.assert_allclose(integrals.J0, inertia[:3, :3], atol=1e-12 * np.abs(inertia).max())
    np.testing.assert_allclose(integrals.mass, inertia[5, 5], rtol=1e-12)
    np.testing.assert_allclose(np.vstack([integrals.A0, integrals.h1]), coupling, atol=1e-12 * np.abs(coupling).max())
    modal = shapes.T @ (structure.M @ shapes)
    np.testing.assert_allclose(integrals.Me, modal, atol=1e-12 * np.abs(modal).max())


def test_twist_neither_grows_sections_nor_softens_them(rng):
    """Spun about its own axis, a twisted round beam has the inertia of the straight one, to second order."""
    body = beam(modes=0, torsion_modes=2, rotary_inertia=0.05)
    m, straight = body.modes, body.integrals.J0[0, 0]
    for e in (1e-3, 1e-2):
        eta = e * rng.standard_normal(m)
        twist = max(np.abs(node.Lambda[0] @ eta) for node in body.nodes)
        assert abs(body.integrals.mass_matrix(eta)[m, m] - straight) < twist**4 * straight + 1e-14


def test_bending_planes_that_do_not_couple_leave_exact_zeros():
    I = FlexibleBody.beam(10.0, 2.8e7, (1.4e4, 1.4e4), 1e4, 1.2, modes=2, axial_modes=0).integrals
    assert np.count_nonzero(I.h1) == 4  # each mode moves the centre along its own axis only
    assert np.count_nonzero(I.A0) == 4
    assert np.count_nonzero(I.Me) == 4
    assert np.count_nonzero(I.a) == np.count_nonzero(I.B) == 8  # foreshortening pairs modes of one plane, along x only


def test_modes_weigh_one_exactly():
    """And have the moments of inertia that follow: no program depends on the last bits of a machine's LAPACK."""
    integrals = beam().integrals
    np.testing.assert_array_equal(integrals.Me, np.eye(len(integrals.Me)))
    along = np.diagonal(integrals.J2[0, 0])  # all bend
    assert set(along) == {2.0}


def test_arrays_are_frozen_also_after_a_journey():
    body = beam()
    for each in (body, pickle.loads(pickle.dumps(body))):
        for array in (each.stiffness, each.damping, each.integrals.J2, each.node("tip").Q):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.0
    assert each.node("tip").Q.tobytes() == body.node("tip").Q.tobytes()
    assert each.reduction == body.reduction


def test_mass_matrix_is_positive_at_moderate_deflections(rng):
    body = FlexibleBody.beam(10.0, 2.8e7, (1.4e4, 1.4e4), 1e4, 1.2, modes=3, rotary_inertia=6e-4)
    # Static deflections under random loads of the modes, the tip within a tenth of the length.
    for _ in range(50):
        eta = np.linalg.solve(body.stiffness, rng.standard_normal(body.modes))
        eta *= 1.0 / np.linalg.norm(body.node("tip").Gamma @ eta)
        assert np.linalg.eigvalsh(body.integrals.mass_matrix(eta))[0] > 0
