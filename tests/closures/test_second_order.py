"""Second derivatives of constrained accelerations: against differences, a formula, and a mechanism written in JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from tests.closures.mechanisms import Closed, T, at_state, closed_tree

Array = Any
TYPES = ("revolute", "spherical", "prismatic", "free")


def _close(found: Array, expected: Array, tol: float) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tol * (1.0 + np.abs(expected).max()))


def _along_axes(model: lw.Model, state: tuple[Array, ...], which: int, part: str, **given: Any) -> Array:
    """Differences of fourth order of one matrix of ``linearize_forward`` along every axis of an argument, axis last."""
    h = 1e-3
    columns = []
    for unit in np.eye(model.nv):
        values = []
        for s in (h, -h, 2 * h, -2 * h):
            moved = list(state)
            moved[which] = model.integrate(moved[0], s * unit) if which == 0 else moved[which] + s * unit
            values.append(getattr(model.linearize_forward(*moved, **given), part))
        columns.append((8 * (values[0] - values[1]) - (values[2] - values[3])) / (12 * h))
    return np.stack(columns, axis=-1)


def _check_everywhere(model: lw.Model, state: tuple[Array, ...], **given: Any) -> None:
    """Of independent equations, along all changes, those that open the closures too.

    (Not of closures that join two origins: how these are said where the origins are apart is left to the solvers.)
    """
    second = model.linearize_forward(*state, order=2, **given)
    first = model.linearize_forward(*state, **given)
    for name in ("vdot", "dq", "dv", "dtau"):
        np.testing.assert_array_equal(getattr(second, name), getattr(first, name))
    parts = {"dqdq": ("dq", 0), "dqdv": ("dq", 1), "dvdv": ("dv", 1), "dqdtau": ("dq", 2), "dvdtau": ("dv", 2)}
    for name, (part, which) in parts.items():
        _close(getattr(second, name), _along_axes(model, state, which, part, **given), 1e-6)
    mixed = np.swapaxes(second.dqdv, -1, -2)  # in another order: how dv and dtau change along q
    _close(mixed, _along_axes(model, state, 0, "dv", **given), 1e-6)


@pytest.mark.parametrize("kinds", [["rolling_disc", "gear"], ["on_curve"], ["skate"]], ids=lambda kinds: kinds[0])
def test_along_every_axis(kinds: list[str]) -> None:
    case = closed_tree(4, kinds, n=4, compiled=True, types=TYPES, structured=0.3)
    J = case.model.constraints.jacobian(case.q, t=T, v=case.v)
    assert np.linalg.matrix_rank(J, tol=1e-6) == len(J)
    _check_everywhere(case.model, case.state, t=T)


def test_a_closure_that_is_not_linear_in_rates_has_mixed_derivatives_by_velocity_and_force() -> None:
    case = closed_tree(4, ["skate"], n=4, compiled=True, types=TYPES, structured=0.3)
    second = case.model.linearize_forward(*case.state, order=2, t=T)
    assert np.abs(second.dvdtau).max() > 1e-6
    case = closed_tree(4, ["spherical"], n=4, compiled=True, types=TYPES, structured=0.3)
    second = case.model.linearize_forward(*case.state, order=2, t=T)
    assert np.abs(second.dvdtau).max() < 1e-9 * np.abs(second.dqdtau).max()


def test_external_forces_and_parameters() -> None:
    model = samples.slider_crank().without("wrist")
    end, pin = lw.transform(xyz=(0.3, 0.0, 0.0)), lw.closures.PointOnCurve(lambda x, y, z: x, lambda x, y, z: z)
    model = model.with_closure("wrist", "rod", end, "slider", joint=pin).with_parameters(["rod.mass", "slider.xyz"])
    rng = np.random.default_rng(3)
    p = model.parameters.nominal * 1.1
    state = model.assemble(np.array([0.7, -1.0, -0.05]), p=p), rng.normal(size=3), rng.normal(size=3)
    _check_everywhere(model, state, f_ext=rng.normal(size=(3, 6)), p=p)


def _check_on_the_closures(case: Closed, tol: float) -> None:
    """d²v̇/ds² along a closed motion (q, v, τ)(s), at any rank: D²[x', x'] + D x''."""
    model, rng, n = case.model, np.random.default_rng(0), case.model.nv
    second = model.linearize_forward(*case.state, order=2, t=T)
    J = model.constraints.jacobian(case.q, t=T, v=case.v)
    rank = np.linalg.matrix_rank(J, tol=1e-9)
    assert rank < len(J)
    null = np.linalg.svd(J)[2][rank:].T
    h = 1e-2
    for _ in range(2):
        d, w, u = null @ rng.normal(size=null.shape[1]), rng.normal(size=n), rng.normal(size=n)
        values, moves = [], []
        for s in (-3 * h, -2 * h, -h, 0.0, h, 2 * h, 3 * h):
            q = model.assemble(model.integrate(case.q, s * d), t=T, tol=1e-14)
            v = case.v + s * w
            for _ in range(3):
                v = model.constraints.project_velocity(q, v, t=T)
            values.append(model.forward_dynamics(q, v, case.tau + s * u, t=T))
            moves.append(np.concatenate([model.difference(case.q, q), v - case.v]))
        slope = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h)
        bend = np.array([2, -27, 270, -490, 270, -27, 2]) / (180 * h * h)
        x, x_bent = slope @ np.array(moves), bend @ np.array(moves)
        a, b = x[:n], x[n:]
        found = second.dq @ x_bent[:n] + second.dv @ x_bent[n:]
        for block, left, right, times in (
            (second.dqdq, a, a, 1.0),
            (second.dqdv, a, b, 2.0),
            (second.dvdv, b, b, 1.0),
            (second.dqdtau, a, u, 2.0),
            (second.dvdtau, b, u, 2.0),
        ):
            found = found + times * np.einsum("ijk,j,k->i", block, left, right)
        _close(found, bend @ np.array(values), tol)


def test_redundant_pins() -> None:
    model = samples.four_bar(2)
    q = model.assemble(0.4 * np.array([1, -1, 1, -1, 1.0]))
    _check_on_the_closures(at_state(model, q, np.random.default_rng(0)), 1e-6)


def test_bricard() -> None:
    model = samples.bricard()
    q = model.assemble(model.integrate(model.neutral(), 0.3 * model.freedoms(model.neutral()).basis[:, 0]))
    _check_on_the_closures(at_state(model, q, np.random.default_rng(1)), 1e-6)


def test_the_same_closure_twice() -> None:
    case = closed_tree(5, ["revolute"], n=4, compiled=True, types=TYPES, structured=0.3)
    (pin,) = case.model.closures
    names = ["world", *(body.name for body in case.model.bodies)]
    a, b = names[pin.body_a + 1], names[pin.body_b + 1]
    twice = case.model.with_closure("again", a, pin.placement_a, b, pin.placement_b, joint=lw.Revolute((0, 1, 0)))
    _check_on_the_closures(Closed(twice, *case.state), 1e-6)


def test_the_formula_of_four_bars() -> None:
    """φ̈ = k sin φ, whatever φ̇: with redundant equations, along the motion, -k sin φ for its second derivative."""
    n = 2
    model = samples.four_bar(n)
    pattern = np.array([1.0, -1.0] * n + [1.0])
    k = 3 * (3 * n + 1) / (2 * (4 * n + 1)) * 9.81
    phi, rate = np.array([0.5, 2.0]), np.array([2.0, -1.0])
    second = model.linearize_forward(phi[:, None] * pattern, rate[:, None] * pattern, np.zeros(5), order=2)

    def along(block: Array) -> Array:
        return np.einsum("...ijk,j,k->...i", block, pattern, pattern)

    np.testing.assert_allclose(along(second.dqdq), -k * np.sin(phi)[:, None] * pattern, atol=1e-8)
    np.testing.assert_allclose(along(second.dvdv), 0.0, atol=1e-9)


def test_a_linkage_written_in_jax() -> None:
    """A planar four-bar of rods of four lengths: its Lagrange equations, by JAX, differentiated by JAX."""
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    lengths, masses, ground, gravity = (0.4, 1.1, 0.7), (0.8, 1.7, 1.2), 1.0, 9.81
    builder = lw.ModelBuilder("linkage", gravity=(0.0, 0.0, -gravity))
    parent, start = "world", 0.0
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        builder.add_body(
            f"rod{i}",
            parent,
            lw.Revolute((0, -1, 0)),
            lw.transform(xyz=(start, 0, 0)),
            mass=mass,
            com=(length / 2, 0, 0),
            inertia=np.diag([0.0, 1.0, 1.0]) * mass * length**2 / 12,
        )
        parent, start = f"rod{i}", length
    pin = lw.closures.PointOnCurve(lambda x, y, z: x, lambda x, y, z: z)
    end, foot = lw.transform(xyz=(lengths[-1], 0, 0)), lw.transform(xyz=(ground, 0, 0))
    model = builder.build().with_closure("foot", "world", foot, "rod2", end, joint=pin)

    def joints(q: Any) -> Any:
        """Where the rods begin and end, in the plane."""
        angles = jnp.cumsum(q)
        steps = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1) * jnp.array(lengths)[:, None]
        return jnp.concatenate([jnp.zeros((1, 2)), jnp.cumsum(steps, axis=0)])

    def lagrangian(q: Any, v: Any) -> Any:
        def middle(q: Any) -> Any:
            places = joints(q)
            return (places[1:] + places[:-1]) / 2

        _, speed = jax.jvp(middle, (q,), (v,))
        m, length = jnp.array(masses), jnp.array(lengths)
        turning = m * length**2 / 12 * jnp.cumsum(v) ** 2
        return (m * (speed**2).sum(1) + turning).sum() / 2 - gravity * (m * middle(q)[:, 1]).sum()

    def closing(q: Any) -> Any:
        return joints(q)[-1] - jnp.array([ground, 0.0])

    def accelerations(q: Any, v: Any, tau: Any) -> Any:
        M = jax.hessian(lagrangian, 1)(q, v)
        force = tau + jax.grad(lagrangian)(q, v) - jax.jvp(lambda q: jax.grad(lagrangian, 1)(q, v), (q,), (v,))[1]
        J = jax.jacobian(closing)(q)
        bias = jax.jvp(lambda q: jax.jvp(closing, (q,), (v,))[1], (q,), (v,))[1]
        whole = jnp.block([[M, J.T], [J, jnp.zeros((2, 2))]])
        return jnp.linalg.solve(whole, jnp.concatenate([force, -bias]))[:3]

    rng = np.random.default_rng(0)
    q = model.assemble(np.array([1.2, -0.9, -1.5]))
    v, tau = model.constraints.project_velocity(q, rng.normal(size=3)), rng.normal(size=3)
    second = model.linearize_forward(q, v, tau, order=2)
    with jax.enable_x64(True):
        both = jax.jit(lambda *x: (accelerations(*x), jax.hessian(accelerations, (0, 1, 2))(*x)))
        vdot, blocks = both(q, v, tau)
    _close(second.vdot, vdot, 1e-12)
    pairs = {"dqdq": (0, 0), "dqdv": (0, 1), "dvdv": (1, 1), "dqdtau": (0, 2), "dvdtau": (1, 2)}
    for name, (a, b) in pairs.items():
        _close(getattr(second, name), blocks[a][b], 1e-11)


def test_what_is_not_there_says_so() -> None:
    model = samples.four_bar(1)
    with pytest.raises(lw.InputError, match="no such order"):
        model.linearize_forward(np.zeros(3), np.zeros(3), np.zeros(3), order=3)  # type: ignore[arg-type]
    with pytest.raises(lw.InputError, match="takes no out"):
        model.linearize_forward(np.zeros(3), np.zeros(3), np.zeros(3), order=2, out=(np.zeros(3),))


def test_an_empty_batch() -> None:
    second = samples.four_bar(1).linearize_forward(*np.zeros((3, 0, 3)), order=2)
    assert {a.shape for a in second} == {(0, 3), (0, 3, 3), (0, 3, 3, 3)}


@pytest.mark.parametrize("order", [1, 2])
def test_a_state_that_is_not_a_number_harms_only_itself(order: int) -> None:
    model = samples.four_bar(1)
    q = np.tile(model.assemble(np.array([1.2, -0.9, -1.5])), (3, 1))
    v, tau = np.zeros((2, 3, 3))
    expected = model.linearize_forward(q, v, tau, order=order)
    q[1] = np.nan
    found = model.linearize_forward(q, v, tau, order=order)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])
    assert np.isnan(found.vdot[1]).all()
    assert np.isnan(found.dq[1]).all()


@pytest.mark.parametrize("order", [1, 2])
def test_single_precision(order: int) -> None:
    """The results have it; the rank of redundant equations is found in double precision."""
    model = samples.four_bar(1)
    q = model.assemble(np.array([1.2, -0.9, -1.5])).astype(np.float32)
    v = model.constraints.project_velocity(q.astype(float), np.ones(3)).astype(np.float32)
    state = (q, v, np.ones(3, np.float32))
    exact = model.linearize_forward(*(x.astype(float) for x in state), order=order)
    for a, b in zip(model.linearize_forward(*state, order=order), exact, strict=True):
        assert a.dtype == np.float32
        _close(a, b, 1e-6)
    assert {a.dtype for a in model.linearize_forward(q, v, np.ones(3), order=order)} == {np.dtype(float)}
