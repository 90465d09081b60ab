"""Linearised dynamics of random trees with joints of every type, against differences of high precision."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import Trees
from linkwise.algorithms.linearized_forward import linearize, linearized_forward
from linkwise.algorithms.linearized_inverse import about_a_fixed_point, in_link_frames, linearized_inverse
from linkwise.algorithms.solver import Articulated, Factored
from tests.derivatives.differences import eager, exact_jacobian, relative
from tests.random_trees import ALL, random_state, random_tree

TOLERANCE = 1e-8


def _trees() -> list[object]:
    cases = [pytest.param((k,), 3, 0.0, id=k) for k in ALL if k != "fixed"]
    cases += [pytest.param(ALL, 5, 0.0, id=f"mixed{k}") for k in range(2)]
    cases.append(pytest.param(("revolute", "prismatic", "rolling"), 5, 0.6, id="mimics"))
    return cases


@pytest.mark.parametrize(("types", "n", "mimic"), _trees())
def test_against_differences(types: tuple[str, ...], n: int, mimic: float) -> None:
    rng = np.random.default_rng(len(types) + n)
    model = random_tree(rng, n, types, mimic=mimic)
    q, v, x = random_state(model, rng)
    f_ext = rng.normal(size=(len(model.bodies), 6))
    for method, function in (("linearize_inverse", "inverse_dynamics"), ("linearize_forward", "forward_dynamics")):
        ours = eager(model, method, q, v, x, f_ext=f_ext)
        for k, name in enumerate(ours._fields[1:]):
            expected = exact_jacobian(model, function, k, q, v, x, f_ext=f_ext)
            assert relative(getattr(ours, name), expected) < TOLERANCE, (method, name)
        changes = rng.normal(size=(3, model.nv))
        along = sum(getattr(ours, name) @ d for name, d in zip(ours._fields[1:], changes, strict=True))
        perturbed = eager(model, method.replace("linearize", "perturb"), q, v, x, *changes, f_ext=f_ext)
        assert relative(perturbed, along) < TOLERANCE, method
        assert relative(ours[0], eager(model, function, q, v, x, f_ext=f_ext)) < 1e-10


@pytest.mark.parametrize("seed", range(4))
def test_all_ways_agree(seed: int) -> None:
    """Recursions alone, articulated bodies column by column, and factors of 𝓜; columns that walk, and about a point."""
    rng = np.random.default_rng(seed)
    model = random_tree(rng, 9)
    q, v, x = (x.tolist() for x in random_state(model, rng))
    tree = Trees(model).fast
    f_ext = Trees(model).link_forces(rng.normal(size=6 * len(model.bodies)).tolist(), tree)
    recursion = linearize(tree, q, v, x, f_ext)
    for way in (Articulated, Factored):
        for a, b in zip(recursion, linearized_forward(tree, q, v, x, f_ext, solver=way(tree, q)), strict=True):
            assert relative(a, np.array(b, float)) < 1e-9
    walked, referred = (
        linearized_inverse(tree, q, v, x, f_ext, way=way) for way in (in_link_frames, about_a_fixed_point)
    )
    for a, b in zip(walked, referred, strict=True):
        assert relative(a, np.array(b, float)) < 1e-10


def test_far_away_and_fast() -> None:
    """Neither place nor speed of a floating base costs digits: the joints' own numbers stay what they are."""
    rng = np.random.default_rng(8)
    builder = lw.ModelBuilder("floating")
    for k in range(8):
        builder.add_body(
            f"b{k}",
            parent=f"b{k - 1}" if k else "world",
            joint=lw.Revolute(axis=rng.normal(size=3)) if k else lw.Free(),
            placement=lw.transform(xyz=rng.normal(size=3)),
            mass=1.0,
            com=rng.normal(size=3),
            inertia=np.diag([2.0, 3.0, 4.0]),
        )
    model = builder.build()
    q, v, tau = random_state(model, rng)
    tree = Trees(model).fast

    def at(place: float, speed: float) -> list[np.ndarray]:
        there, moving = q.copy(), v.copy()
        there[:3] += place
        moving[3:6] += speed
        found = linearize(tree, there.tolist(), moving.tolist(), tau.tolist())
        return [np.array(x, float)[..., 6:][6:] if np.ndim(x) == 2 else np.array(x, float)[6:] for x in found]

    here = at(0.0, 0.0)
    for a, b in zip(here * 2, at(1e7, 0.0) + at(0.0, 1e5), strict=True):
        assert relative(a, b) < 1e-9


def test_relations() -> None:
    """𝓜 is symmetric, 𝓜⁻¹ its inverse, A_C = 𝓜⁻¹A_D, gravity's part of B_D is the Hessian of the potential."""
    rng = np.random.default_rng(1)
    model = random_tree(rng, 4, ("revolute", "prismatic", "universal"))
    q, v, tau = random_state(model, rng)
    forward = model.linearize_forward(q, v, tau)
    inverse = model.linearize_inverse(q, v, forward.vdot)
    np.testing.assert_allclose(inverse.dvdot, model.mass_matrix(q), atol=1e-12)
    np.testing.assert_allclose(inverse.dvdot @ forward.dtau, np.eye(model.nv), atol=1e-9)
    assert relative(inverse.dvdot @ forward.dq, -inverse.dq) < 1e-9
    assert relative(inverse.dvdot @ forward.dv, -inverse.dv) < 1e-9
    zero = np.zeros(model.nv)
    potential = lw.compile(lambda m, q: m.potential_energy(q), model, {"q": "q"})
    still = model.linearize_inverse(q, zero, zero)
    assert relative(still.dq, potential.hessian("q")(q)) < 1e-10
    assert relative(still.dq, still.dq.T) < 1e-10


def test_batches_and_single_states_and_out() -> None:
    rng = np.random.default_rng(2)
    model = random_tree(rng, 3)
    q, v, x = random_state(model, rng, (5, 2))
    for method in (model.linearize_inverse, model.linearize_forward):
        whole = method(q, v, x)
        out = tuple(np.empty_like(y) for y in whole)
        again = method(q, v, x, out=out, threads=2)
        assert all(a is b for a, b in zip(again, out, strict=True))
        for _ in range(2):  # the second time, the single-state function is in place
            one = method(q[3, 1].copy(), v[3, 1].copy(), x[3, 1].copy())
            assert type(one) is type(whole)
            for field in whole._fields:
                np.testing.assert_allclose(getattr(one, field), getattr(whole, field)[3, 1], rtol=1e-9, atol=1e-9)
                np.testing.assert_array_equal(getattr(again, field), getattr(whole, field))


def test_run_time_parameters() -> None:
    rng = np.random.default_rng(4)
    model = random_tree(rng, 3, ("revolute", "spherical"))
    name = f"{model.bodies[0].name}.mass"
    free = model.with_parameters([name])
    q, v, x = random_state(model, rng)
    heavier = free.linearize_inverse(q, v, x, p=[free.parameters.nominal[0] * 2])
    assert relative(free.linearize_inverse(q, v, x).dq, model.linearize_inverse(q, v, x).dq) < 1e-12
    assert relative(heavier.dvdot, free.mass_matrix(q, p=free.parameters.nominal * 2)) < 1e-12


@pytest.mark.parametrize("seed", range(2))
def test_second_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_tree(rng, 3, ("revolute", "spherical", "prismatic", "universal", "planar"))
    q, v, x = random_state(model, rng)
    n, h = model.nv, 1e-5

    def differences(method: str, field: str, wrt: int) -> np.ndarray:
        columns = []
        for e in np.eye(n) * h:
            values = []
            for s in (2, 1, -1, -2):
                state = [q, v, x]
                state[wrt] = model.integrate(q, s * e) if wrt == 0 else state[wrt] + s * e
                values.append(getattr(getattr(model, method)(*state), field))
            columns.append((8 * (values[1] - values[2]) - (values[0] - values[3])) / (12 * h))
        return np.stack(columns, -1)

    for method, third in (("linearize_inverse", "vdot"), ("linearize_forward", "tau")):
        second = getattr(model, method)(q, v, x, order=2)
        for name, field, wrt in (("dqdq", "dq", 0), ("dqdv", "dq", 1), ("dvdv", "dv", 1), (f"dqd{third}", "dq", 2)):
            assert relative(getattr(second, name), differences(method, field, wrt)) < 1e-7, (method, name)
        assert relative(second.dvdv, np.swapaxes(second.dvdv, -1, -2)) < 1e-12
        batched = getattr(model, method)(np.stack([q, q]), v, x, order=2)
        assert relative(batched.dqdq[1], second.dqdq) < 1e-10


def test_orders_that_do_not_exist() -> None:
    model = random_tree(0, 1, ("revolute",))
    with pytest.raises(lw.InputError, match="1 or 2"):
        model.linearize_inverse([0.0], [0.0], [0.0], order=3)  # type: ignore[arg-type]


def test_large_mechanisms_by_lanes() -> None:
    rng = np.random.default_rng(9)
    model = random_tree(rng, 6, ("revolute", "spherical", "prismatic", "universal"))
    rolled = model.with_sweeps("rolled")
    q, v, x = random_state(model, rng, (2,))
    f_ext = rng.normal(size=(len(model.bodies), 6))
    changes = rng.normal(size=(3, model.nv))
    for name in ("inverse", "forward"):
        expected = getattr(model, f"linearize_{name}")(q, v, x, f_ext)
        out = tuple(np.empty_like(y) for y in expected)
        found = getattr(rolled, f"linearize_{name}")(q, v, x, f_ext, out=out)
        for field in expected._fields:
            assert relative(getattr(found, field), getattr(expected, field)) < 1e-9, (name, field)
        free = getattr(rolled, f"linearize_{name}")(q, v, x)
        assert relative(free.dq, getattr(model, f"linearize_{name}")(q, v, x).dq) < 1e-9
        along = getattr(rolled, f"perturb_{name}")(q, v, x, *changes, f_ext)
        assert relative(along, getattr(model, f"perturb_{name}")(q, v, x, *changes, f_ext)) < 1e-9
