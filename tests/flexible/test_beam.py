"""Beams against textbook frequencies, static deflections, and the rotating cantilever."""

import mpmath
import numpy as np
import pytest
from scipy import linalg

from linkwise.errors import InputError, ModelError
from linkwise.flexible import FlexibleBody

L, EA, EI, GJ, MU = 10.0, 2.8e7, 1.4e4, 1e4, 1.2


def beam(**options):
    return FlexibleBody.beam(L, EA, (EI, EI), GJ, MU, **options)


def roots(equation, guesses):
    return np.array([float(mpmath.findroot(equation, guess)) for guess in guesses])


CANTILEVER = roots(lambda x: mpmath.cos(x) + 1 / mpmath.cosh(x), [1.9, 4.7, 7.85, 11.0, 14.1])
FREE = roots(lambda x: mpmath.cos(x) - 1 / mpmath.cosh(x), [4.73, 7.85, 11.0, 14.1])


def hertz(beta):
    return beta**2 * np.sqrt(EI / (MU * L**4)) / (2 * np.pi)


def test_the_call_that_the_design_shows():
    body = FlexibleBody.beam(
        length=10.0, EA=2.8e7, EI=(1.4e4, 1.4e4), GJ=1e4, mass_per_length=1.2, elements=20, modes=5, damping=0.0
    )
    assert body.mass == pytest.approx(12.0, rel=1e-13)
    np.testing.assert_allclose(body.com, [5.0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(np.diag(body.inertia), [0, 100.0, 100.0], atol=1e-10)
    assert body.modes == 11  # five in each plane, one of stretching
    assert body.node("root") is body.nodes[0]
    assert body.node("tip") is body.node(20)
    np.testing.assert_array_equal(body.node(7).position, [3.5, 0, 0])


def test_cantilever_frequencies_and_their_order():
    np.testing.assert_allclose(beam(modes=(5, 0), axial_modes=0).frequencies, hertz(CANTILEVER), rtol=2e-4)
    errors = [
        beam(elements=n, modes=(3, 0), axial_modes=0).frequencies / hertz(CANTILEVER[:3]) - 1 for n in (6, 12, 24)
    ]
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert (np.array(errors) > 0).all()  # a conforming element errs upwards
    np.testing.assert_allclose(orders[1], 4.0, atol=0.1)


def test_free_frequencies_and_their_order():
    body = beam(boundary="free", modes=(4, 4), axial_modes=1, rotary_inertia=0.0)
    np.testing.assert_allclose(body.frequencies[0:8:2], hertz(FREE), rtol=2e-4)
    np.testing.assert_allclose(body.frequencies[-1], np.sqrt(EA / MU) / (2 * L), rtol=1e-6)
    errors = [
        beam(elements=n, modes=(2, 0), axial_modes=0, boundary="free").frequencies / hertz(FREE[:2]) - 1
        for n in (6, 12, 24)
    ]
    np.testing.assert_allclose(np.log2(np.array(errors[1]) / np.array(errors[2])), 4.0, atol=0.15)


def test_free_modes_vanish_at_the_root_and_keep_their_frequencies():
    body = beam(boundary="free", modes=3, rotary_inertia=6e-4)
    assert not body.nodes[0].Gamma.any()
    assert not body.nodes[0].Lambda.any()
    # K is diagonal with ω² of the free body, since rigid motions cost nothing.
    np.testing.assert_allclose(np.sqrt(np.diag(body.stiffness)) / (2 * np.pi), body.frequencies, rtol=1e-7)


def test_stretching_and_twist_frequencies():
    body = beam(modes=0, axial_modes=3, torsion_modes=3, rotary_inertia=(6e-4, 2e-4))
    k = np.array([1, 3, 5])
    expected = np.sort(np.concatenate([k * np.sqrt(EA / MU), k * np.sqrt(GJ / 8e-4)]) / (4 * L))
    np.testing.assert_allclose(body.frequencies, expected, rtol=2e-5)


def test_shear_and_rotary_inertia_give_timoshenko_frequencies():
    """Simply from the characteristic equation of Timoshenko's cantilever (Huang 1961), solved with mpmath."""
    length, EI_, GA, mu, rho_i = 1.0, 1.0, 40.0, 1.0, 0.004
    r2, s2 = rho_i / mu / length**2, EI_ / GA / length**2

    def characteristic(b):
        root = mpmath.sqrt((r2 - s2) ** 2 + 4 / b**2)
        alpha = mpmath.sqrt((-(r2 + s2) + root) / 2)
        beta = mpmath.sqrt(((r2 + s2) + root) / 2)
        return (
            2
            + (b**2 * (r2 - s2) ** 2 + 2) * mpmath.cosh(b * alpha) * mpmath.cos(b * beta)
            - b * (r2 + s2) / mpmath.sqrt(1 - b**2 * r2 * s2) * mpmath.sinh(b * alpha) * mpmath.sin(b * beta)
        )

    expected = roots(characteristic, [3.3, 16.0]) * np.sqrt(EI_ / mu) / (2 * np.pi)
    body = FlexibleBody.beam(
        length,
        1e6,
        EI_,
        1.0,
        mu,
        GA=GA,
        rotary_inertia=rho_i,
        modes=(2, 0),
        axial_modes=0,
        torsion_modes=0,
        elements=40,
    )
    np.testing.assert_allclose(body.frequencies, expected, rtol=2e-4)
    slender = FlexibleBody.beam(length, 1e6, EI_, 1.0, mu, modes=(2, 0), axial_modes=0)
    assert (body.frequencies < 0.99 * slender.frequencies).all()


def test_static_deflection_under_a_tip_force_is_exact_with_residual_vectors():
    body = beam(modes=2, residuals=("tip",), rotary_inertia=6e-4)
    tip = body.node("tip")
    rows = np.vstack([tip.Lambda, tip.Gamma])
    compliance = rows @ np.linalg.solve(body.stiffness, rows.T)
    np.testing.assert_allclose(
        np.diag(compliance), [L / GJ, L / EI, L / EI, L / EA, *(2 * [L**3 / (3 * EI)])], rtol=1e-9
    )
    np.testing.assert_allclose(compliance[4, 2], L**2 / (2 * EI), rtol=1e-9)
    assert dict(body.reduction.static_error)["tip"] < 1e-9
    np.testing.assert_allclose(body.integrals.Me, np.eye(body.modes), atol=1e-8)


# ------------------------------------------------------------------------------------------------------------ spinning


def spun(gamma, *, in_plane=False, body=None, **options):
    """(ω√(μL⁴/EI))² of a beam that spins about z through its root, from K and the integrals alone."""
    body = body or beam(modes=(5, 0) if in_plane else (0, 5), axial_modes=0, **options)
    rate = gamma * np.sqrt(EI / (MU * L**4))
    squared = linalg.eigh(
        body.stiffness - 0.5 * rate**2 * body.integrals.J_second[2, 2], body.integrals.Me, eigvals_only=True
    )
    return squared / (EI / (MU * L**4))


def reference_spun(gamma, size=14):
    """Flapping by Ritz with polynomials ξ²…: ∫w''² + γ²∫½(1-ξ²)w'² = ω²∫w²."""
    x, weight = np.polynomial.legendre.leggauss(40)
    x, weight = (x + 1) / 2, weight / 2
    cheb = [np.polynomial.Chebyshev.basis(k, domain=[0, 1]).convert(kind=np.polynomial.Polynomial) for k in range(size)]
    shapes = [np.polynomial.Polynomial([0, 0, 1]) * each for each in cheb]
    w, w1, w2 = (np.array([(s.deriv(k) if k else s)(x) for s in shapes]) for k in range(3))
    K = (w2 * weight) @ w2.T + gamma**2 * (w1 * weight * (1 - x**2) / 2) @ w1.T
    M = (w * weight) @ w.T
    return np.sqrt(linalg.eigh(K, M, eigvals_only=True))


TABLE = {0: (3.516015, 22.034492, 61.697214), 1: (3.681647, 22.181011, 61.841763), 6: (7.360373, 26.809082, 66.683914)}


@pytest.mark.parametrize("gamma", TABLE)
def test_flapping_of_a_rotating_cantilever(gamma):
    np.testing.assert_allclose(reference_spun(gamma)[:3], TABLE[gamma], rtol=2e-6)
    np.testing.assert_allclose(np.sqrt(spun(gamma))[:3], TABLE[gamma], rtol=1e-3)


@pytest.mark.parametrize("gamma", [2.0, 4.0, 8.0])
def test_rotating_cantilever_in_modes_at_rest(gamma):
    exact = reference_spun(gamma)
    np.testing.assert_allclose(np.sqrt(spun(gamma))[:3], exact[:3], rtol=1e-3)
    np.testing.assert_allclose(np.sqrt(spun(gamma, in_plane=True)[:3]), np.sqrt(exact[:3] ** 2 - gamma**2), rtol=1e-3)


@pytest.mark.parametrize("in_plane", [False, True])
def test_five_spinning_modes_serve_from_rest_to_fast_spins(in_plane):
    rich = beam(modes=(12, 0) if in_plane else (0, 12), axial_modes=0)
    rate = 8.0 * np.sqrt(EI / (MU * L**4))
    body = rich.in_spinning_modes((0, 0, rate), 5)
    assert body.modes == 5
    for gamma in (0.0, 1.0, 3.0, 6.0, 9.0, 12.0):
        exact = np.sqrt(reference_spun(gamma)[:3] ** 2 - in_plane * gamma**2)
        np.testing.assert_allclose(np.sqrt(spun(gamma, body=body)[:3]), exact, rtol=1e-3)


def test_spinning_modes_are_the_same_body_in_other_coordinates():
    rich = beam(modes=3, axial_modes=2, rotary_inertia=6e-4)
    same = rich.in_spinning_modes((0.0, 0.3, 1.5), rich.modes)
    C = np.linalg.lstsq(_all_rows(rich), _all_rows(same), rcond=None)[0]
    rng = np.random.default_rng(3)
    zeta, zeta_dot, V = 0.1 * rng.standard_normal(same.modes), rng.standard_normal(same.modes), rng.standard_normal(6)
    assert same.kinetic_energy(zeta, zeta_dot, V) == pytest.approx(
        rich.kinetic_energy(C @ zeta, C @ zeta_dot, V), rel=1e-9
    )
    np.testing.assert_allclose(same.held_frequencies, rich.held_frequencies, rtol=1e-8)
    with pytest.raises(ModelError, match="not stable"):
        beam(modes=3, stiffening=False).in_spinning_modes((0, 0, 6.0), 2)
    with pytest.raises(InputError, match="0 to 6"):
        beam(modes=3, axial_modes=0).in_spinning_modes((0, 0, 6.0), 7)
    with pytest.raises(InputError, match="not a vector"):
        beam(modes=3, axial_modes=0).in_spinning_modes(6.0, 3)


def _all_rows(body):
    return np.vstack([np.vstack([node.Gamma, node.Lambda]) for node in body.nodes])


def test_in_plane_frequency_falls_to_zero_without_stiffening():
    critical = CANTILEVER[0] ** 2
    assert critical == pytest.approx(3.516015, rel=1e-6)
    assert spun(critical * (1 - 1e-4), in_plane=True, stiffening=False)[0] > 0
    assert spun(critical * (1 + 1e-4), in_plane=True, stiffening=False)[0] < 0
    assert spun(critical, in_plane=True)[0] > 1.0
    np.testing.assert_allclose(spun(critical, stiffening=False)[0], critical**2, rtol=1e-6)


def test_a_body_without_stiffening_warns_when_it_spins_fast():
    soft, stiff = beam(stiffening=False, modes=1), beam(modes=1)
    stiff.check_spin(6.0)
    soft.check_spin(0.1)
    with pytest.warns(UserWarning, match="no geometric stiffening"):
        soft.check_spin(6.0)


@pytest.mark.parametrize(("axial_modes", "tolerance"), [(1, 2e-2), (2, 3e-3), (6, 3e-4)])
def test_steady_extension_of_a_spinning_beam(axial_modes, tolerance):
    """η = K⁻¹ ½Ω² J1[2, 2]: references.md's 5.143e-4 m at 6 rad/s."""
    body = beam(modes=0, axial_modes=axial_modes)
    rate = 6.0
    eta = np.linalg.solve(
        body.stiffness - 0.5 * rate**2 * body.integrals.J_second[2, 2], 0.5 * rate**2 * body.integrals.J1[2, 2]
    )
    assert body.node("tip").Gamma[0] @ eta == pytest.approx(5.143e-4, rel=tolerance)


def test_tip_foreshortening_is_minus_half_the_integral_of_slopes():
    """For a tip force P: v = P(3Lx² - x³)/6EI, ∫v'² = 2 P²L⁵/(15 EI²)."""
    body = beam(modes=(1, 0), axial_modes=0, residuals=("tip",), elements=10)
    P = 100.0
    tip = body.node("tip")
    eta = np.linalg.solve(body.stiffness, P * tip.Gamma[1])
    assert tip.Gamma[1] @ eta == pytest.approx(P * L**3 / (3 * EI), rel=1e-9)
    assert 0.5 * eta @ tip.Q[0] @ eta == pytest.approx(-0.5 * 2 * P**2 * L**5 / (15 * EI**2), rel=1e-9)
    np.testing.assert_array_equal(tip.Q, tip.Q.transpose(0, 2, 1))


def test_damping_ratios():
    body = beam(modes=2, damping=0.02)
    omega = 2 * np.pi * body.frequencies
    np.testing.assert_allclose(np.diag(body.damping), 2 * 0.02 * omega, rtol=1e-9)
    each = beam(modes=(2, 0), axial_modes=0, damping=[0.01, 0.03])
    np.testing.assert_allclose(np.diag(each.damping) / (4 * np.pi * each.frequencies), [0.01, 0.03], rtol=1e-9)
    D = np.array([[1.0, 0.2], [0.2, 2.0]])
    np.testing.assert_array_equal(beam(modes=(2, 0), axial_modes=0, damping=D).damping, D)


def test_nodal_form_keeps_every_dof():
    body = beam(boundary="nodal", elements=2, rotary_inertia=6e-4, damping=0.01)
    assert body.modes == 2 * 6 + 2 * 2
    reduced = beam(elements=2, rotary_inertia=6e-4, modes=4, axial_modes=4, torsion_modes=4)
    np.testing.assert_allclose(body.frequencies, reduced.frequencies, rtol=1e-6)
    shapes = linalg.eigh(body.stiffness, body.integrals.Me)[1]
    D = shapes.T @ body.damping @ shapes
    np.testing.assert_allclose(np.diag(D), 0.02 * 2 * np.pi * body.frequencies, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"modes": -1}, "not a number of modes"),
        ({"modes": (1, 2, 3)}, "one number or two"),
        ({"elements": 0}, "number of elements"),
        ({"elements": 2.5}, "number of elements"),
        ({"torsion_modes": 1}, "rotary_inertia"),
        ({"modes": 30, "elements": 3}, "not so many modes"),
        ({"damping": -0.1}, "negative"),
        ({"damping": [0.1, 0.2]}, "not what the modes need"),
        ({"damping": "soft"}, "not what the modes need"),
        ({"boundary": "clamped"}, "cantilever"),
        ({"boundary": "craig-bampton"}, "need interfaces"),
        ({"boundary": "craig-bampton", "interfaces": ("tip",)}, "rotary_inertia"),
        ({"boundary": "nodal", "elements": 3}, "every dof has mass"),
        ({"boundary": "nodal", "elements": 80, "rotary_inertia": 0.1}, "too large"),
        ({"interfaces": ("tpi",)}, "'tip'"),
        ({"interfaces": ("root",)}, "share nodes"),
        ({"inputs": [("tip", "ty")]}, "outputs"),
        ({"inputs": [("tip", "y")], "outputs": [("tip", "ty")]}, "tx, ty"),
        ({"inputs": ["tip"], "outputs": [("tip", "ty")]}, "not pairs"),
        ({"inputs": [("tip", "ty")], "outputs": [("tip", "ty")], "rank_by": "peak", "modes": 2}, "damping ratio"),
        ({"up_to_hz": -1.0}, "not a frequency"),
        ({"up_to_hz": 1e9, "elements": 300}, "too many modes"),
        ({"mode": 3}, "did you mean 'modes'"),
        ({"rotary_inertia": -1.0}, ">= 0"),
        ({"GA": 0.0}, "> 0"),
    ],
)
def test_bad_beams(options, text):
    with pytest.raises((InputError, ModelError, ValueError), match=text):
        beam(**options)


@pytest.mark.parametrize("field", range(5))
def test_impossible_sections(field):
    values = [L, EA, EI, GJ, MU]
    values[field] = -1.0
    with pytest.raises(ModelError, match="not possible"):
        FlexibleBody.beam(*values)
