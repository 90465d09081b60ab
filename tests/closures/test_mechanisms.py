"""Known mechanisms: exact accelerations, published ones, freedoms and redundant constraints by name."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from tests.closures.mechanisms import EagerModel
from tests.sim.closed_benchmarks import IN_OUR_ORDER, SQUEEZER_START


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("pin", [None, lw.Spherical()])
def test_n_four_bar_accelerates_as_the_formula_says(n: int, pin: lw.Joint | None) -> None:
    model = EagerModel.of(samples.four_bar(n, pin))
    for phi, rate in ((0.3, 1.0), (1.2, -2.0), (-2.5, 0.5)):
        pattern = np.array([1.0, -1.0] * n + [1.0])
        q, v = phi * pattern, rate * pattern
        assert np.abs(model.closure_error(q)).max() < 1e-14
        assert np.abs(model.constraints.rate(q, v)).max() < 1e-14
        expected = 3 * (3 * n + 1) / (2 * (4 * n + 1)) * 9.81 * np.sin(phi) * pattern
        np.testing.assert_allclose(model.forward_dynamics(q, v, np.zeros(model.nv)), expected, rtol=0, atol=2e-11)


def test_four_bar_lying_flat_has_more_freedoms() -> None:
    n = 3
    model = EagerModel.of(samples.four_bar(n))
    pattern = np.array([1.0, -1.0] * n + [1.0])
    assert model.freedoms(0.3 * pattern).count == 1
    assert model.freedoms(np.pi / 2 * pattern).count == n + 1


def test_andrews_squeezer_starts_as_published() -> None:
    model = EagerModel.of(samples.andrews_squeezer())
    q = SQUEEZER_START
    assert np.abs(model.closure_error(q)).max() < 1e-15
    tau = samples.squeezer_forces(q)
    vdot = model.forward_dynamics(q, np.zeros(7), tau)
    # v̇ and multipliers at the start as the IVP test set prints them, in its order of the angles
    published = np.array([14222.4439199541138705911625887, -10666.8329399655854029433719415, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(vdot, published[IN_OUR_ORDER], rtol=1e-11, atol=1e-7)
    # The published multipliers are along X and Y; ours along the axes of K2. So are those of the other two pins.
    force = model.constraint_forces(q, np.zeros(7), tau).multipliers[:2]
    turned = np.array([[np.cos(q[0]), -np.sin(q[0])], [np.sin(q[0]), np.cos(q[0])]]) @ force
    np.testing.assert_allclose(
        np.abs(turned), [98.5668703962410896057654982170, 6.12268834425566265503114393122], rtol=1e-9
    )
    found = model.freedoms(q)
    assert (found.count, found.gruebler) == (1, -8)
    assert found.redundant == {f"pin{k}": ("z", "tilt x", "tilt y") for k in (3, 4, 6)}


def test_bricard_moves_though_gruebler_counts_none() -> None:
    model = EagerModel.of(samples.bricard())
    q = model.neutral()
    assert np.abs(model.closure_error(q)).max() < 1e-15
    for step in (0.0, 0.3, 0.3, 0.3):
        q = model.assemble(model.integrate(q, step * model.freedoms(q).basis[:, 0]))
        found = model.freedoms(q)
        assert (found.count, found.gruebler) == (1, 0)
        assert found.redundant == {"hinge6": ("tilt z",)}
        np.testing.assert_allclose(model.constraints.jacobian(q) @ found.basis, 0.0, atol=1e-12)


def test_stewart_platform_has_six_freedoms_and_its_slides_carry_it() -> None:
    model = EagerModel.of(samples.stewart_platform())
    q = model.neutral()
    assert np.abs(model.closure_error(q)).max() < 1e-14
    found = model.freedoms(q)
    assert (found.count, found.gruebler, found.redundant) == (6, 6, {})
    slides = [f"slide{k}" for k in range(1, 7)]
    still = np.zeros(model.nv)
    tau = model.inverse_dynamics(q, still, still, actuated=slides)
    assert set(np.flatnonzero(tau)) <= {model.joints[name].v_slice.start for name in slides}
    np.testing.assert_allclose(model.forward_dynamics(q, still, tau), 0.0, atol=1e-11)
    # By symmetry pairs of legs bear alike, and together, along Z, all the weight above the slides.
    assert tau[2] > 0.0


def test_slider_crank_against_its_closed_form() -> None:
    crank, rod = 0.1, 0.3
    model = EagerModel.of(samples.slider_crank(crank, rod))
    for angle in (0.4, 2.0, -1.1):
        q = model.assemble(np.array([angle, -angle, -0.05]))
        angle = q[0]
        x = crank * np.cos(angle) + np.sqrt(rod**2 - (crank * np.sin(angle)) ** 2)
        np.testing.assert_allclose(q[2], x - crank - rod, atol=1e-12)
        # dx/dθ, from the closed form
        slope = -crank * np.sin(angle) - crank**2 * np.sin(angle) * np.cos(angle) / np.sqrt(
            rod**2 - (crank * np.sin(angle)) ** 2
        )
        N = model.freedoms(q).basis[:, 0]
        np.testing.assert_allclose(N[2] / N[0], slope, rtol=1e-10)
