"""Fields of gravity and magnetism, air, and shadow: against numbers that others computed."""

import numpy as np
import pytest
from scipy.optimize import brentq

import linkwise as lw
from linkwise.space import EARTH, Exponential, Harmonics, Layers, MagneticField, Orbit, jgm3, oblateness, sunlit
from linkwise.spatial.vectors import Vec


def test_jgm3_to_the_last_digit():
    field, r = jgm3(), np.array([6525919.0, 1710416.0, 2508886.0])
    found = -field.mu * r / np.linalg.norm(r) ** 3 + list(field.gradient(Vec(*r)))
    assert np.abs(found - [-6.979261891094626, -1.829283158527076, -2.689990601591786]).max() < 2e-15


def test_oblateness_is_the_textbooks_formula():
    r = np.array([6525919.0, 1710416.0, 2508886.0])
    d = np.linalg.norm(r)
    k, s = 1.5 * EARTH.j2 * EARTH.mu * EARTH.radius**2 / d**5, (r[2] / d) ** 2
    printed = -k * r * [1 - 5 * s, 1 - 5 * s, 3 - 5 * s]
    assert np.allclose(list(oblateness(EARTH.mu, EARTH.radius, EARTH.j2).gradient(Vec(*r))), printed, rtol=1e-14)


def test_gradient_is_that_of_the_potential_and_has_no_poles():
    field, model = jgm3().up_to(6), lw.samples.planar_arm(1)
    f = lw.compile(lambda m, r: field.potential(Vec(*r)), model, {"r": 3})
    for r in ([5e6, -4e6, 3e6], [0.0, 0.0, 7e6], [1.0, 0.0, -7e6]):
        assert np.allclose(f.gradient("r")(r), list(field.gradient(Vec(*r))), rtol=1e-9, atol=1e-12)


def test_tensor_is_the_gradient_of_the_gradient():
    field, model = jgm3().up_to(6), lw.samples.planar_arm(1)
    f = lw.compile(lambda m, r: list(field.gradient(Vec(*r))), model, {"r": 3}).jacobian("r")
    for r in ([5e6, -4e6, 3e6], [0.0, 0.0, 7e6]):
        assert np.allclose(f(r), field.tensor(Vec(*r)).m, rtol=1e-12, atol=1e-20)


def test_harmonics_refuse_what_they_have_not():
    with pytest.raises(lw.InputError, match="no coefficients"):
        jgm3().up_to(21)
    with pytest.raises(lw.InputError, match="order"):
        Harmonics(1.0, 1.0, {(2, 3): (0.0, 0.0)})


def test_magnetic_field_is_the_igrf():
    ppigrf = pytest.importorskip("ppigrf")
    import datetime

    field = MagneticField.igrf("2026-03-01")
    colatitude, longitude = np.radians(50.0), np.radians(30.0)
    s, c = np.sin(colatitude), np.cos(colatitude)
    up = np.array([s * np.cos(longitude), s * np.sin(longitude), c])
    south = np.array([c * np.cos(longitude), c * np.sin(longitude), -s])
    east = np.cross(up, south)
    theirs = np.ravel(ppigrf.igrf_gc(6771.2, 50.0, 30.0, datetime.datetime(2026, 3, 1)))
    ours = 1e9 * np.array(list(field.at(Vec(*(up * 6771.2e3))))) @ np.array([up, south, east]).T
    assert np.allclose(ours, theirs, rtol=1e-10)
    assert field.harmonics.degree == 13
    near = np.array(list(MagneticField.dipole().at(Vec(*(up * 6771.2e3)))))
    assert 1e9 * near @ up == pytest.approx(theirs[0], rel=0.2)


def test_a_date_outside_the_igrf_is_refused():
    pytest.importorskip("ppigrf")
    with pytest.raises(lw.InputError, match="outside the table") as caught:
        MagneticField.igrf("2031-01-01")
    assert "1900" in str(caught.value.allowed)


def test_layers_hit_their_entries_and_go_no_further():
    air = Layers([100e3, 200e3, 300e3], [1e-7, 1e-10, 1e-11])
    found = air.density(np.array([100e3, 150e3, 200e3, 250e3, 300e3, 99e3, 301e3]))
    assert np.allclose(found[:5], [1e-7, 10**-8.5, 1e-10, 10**-10.5, 1e-11], rtol=1e-12)
    assert np.isnan(found[5:]).all()
    standard = Layers.standard()
    assert standard.density(400e3) == pytest.approx(3.725e-12)
    with pytest.raises(lw.InputError, match="does not make sense"):
        Layers([2.0, 1.0], [1.0, 1.0])


def test_layers_of_msis_are_near_the_standard_ones():
    pytest.importorskip("pymsis")
    air = Layers.msis("2026-03-01T12:00", altitudes=[200e3, 300e3, 400e3, 500e3])
    ratio = np.array(air.densities) / Layers.standard().density(np.array(air.altitudes))
    assert (ratio > 0.5).all() and (ratio < 2.0).all()


def test_exponential_air():
    assert Exponential(1e-12, 400e3, 58e3).density(458e3) == pytest.approx(1e-12 / np.e)


@pytest.mark.parametrize(("beta", "seconds"), [(0.0, 2126.323434), (30.0, 1994.295462)])
def test_time_in_the_shadow(beta, seconds):
    orbit, b = Orbit(7e6), np.radians(beta)
    sun = Vec(1.5e17 * np.cos(b), 0.0, 1.5e17 * np.sin(b))

    def light(t):
        return sunlit(Vec(*orbit.state(t)[0]), sun, EARTH.radius, 0.0) - 0.5

    half = orbit.period / 2
    length = brentq(light, half, 2 * half, xtol=1e-10) - brentq(light, 0.0, half, xtol=1e-10)
    assert length == pytest.approx(seconds, abs=1e-6)


def test_penumbra_grows_steadily_and_is_half_at_the_edge():
    sun, r = Vec(lw.space.kepler.ASTRONOMICAL_UNIT, 0.0, 0.0), 7e6
    angle = np.linspace(1.9, 2.1, 2001)
    light = sunlit(Vec(r * np.cos(angle), r * np.sin(angle), 0.0), sun, EARTH.radius)
    assert light[0] == 1.0 and light[-1] == 0.0 and (np.diff(light) <= 1e-12).all()
    part = (light > 0.0) & (light < 1.0)
    across = np.ptp(angle[part])  # the Sun's disc is 9.3 mrad wide
    assert across == pytest.approx(2 * 695.7e6 / lw.space.kepler.ASTRONOMICAL_UNIT, rel=0.03)
    edge = np.pi - np.arcsin(EARTH.radius / r)
    assert np.interp(edge, angle, light) == pytest.approx(0.5, abs=0.01)
    annular = sunlit(Vec(-6e9, 0.0, 0.0), sun, EARTH.radius)
    assert 0.0 < annular < 1.0
