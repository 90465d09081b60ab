"""Mechanisms at the edge: nothing that can move, nothing with mass, freedoms that feel no inertia, empty batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw

BATCHES = [(), (0,), (2,), (0, 3)]


def _fixed() -> lw.Model:
    b = lw.ModelBuilder("fixed")
    b.add_body("a", mass=1.0)
    return b.build()


def _usual() -> lw.Model:
    b = lw.ModelBuilder("usual")
    b.add_body("a", joint=lw.Spherical(), mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3))
    b.add_body("b", "a", joint=lw.Revolute(), mass=1.0, com=(0.1, 0.2, 0.3))
    return b.build()


def _on_its_hinge(**more: Any) -> lw.ModelBuilder:
    b = lw.ModelBuilder("point")
    b.add_body("base", joint=lw.Revolute((1, 0, 0)), mass=1.0, com=(0, 0, 1))
    b.add_body("point", "base", joint=lw.Revolute((0, 0, 1)), mass=2.0, com=(0, 0, 0.5), joint_name="spin", **more)
    return b


def _state(model: lw.Model, batch: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    return np.broadcast_to(model.neutral(), (*batch, model.nq)).copy(), np.zeros((*batch, model.nv))


def test_no_mass_no_mass_centre() -> None:
    b = lw.ModelBuilder("massless")
    b.add_body("a", joint=lw.Revolute(), inertia=np.eye(3))
    for model in (_fixed(), b.build()):
        q, v = _state(model, ())
        assert np.isnan(model.center_of_mass(q)).all()
        assert np.isnan(model.centroidal.momentum(q, v)[:3]).all()
        assert np.isnan(model.centroidal.momentum_matrix(q)[:3]).all()
        assert np.isnan(model.centroidal.inertia(q)[:3, :3]).any()
        assert model.momentum(q, v).tolist() == [0.0] * 6


def test_what_cannot_move_has_no_operational_inertia() -> None:
    model = _fixed()
    q, _ = _state(model, ())
    assert not np.isfinite(model.operational.inertia(q, "a")).all()
    assert not model.operational.admittance(q, "a").any()


@pytest.mark.parametrize(
    "name", ["forward_dynamics", "mass_solve", "mass_matrix_inverse", "linearize_forward", "state_space", "simulate"]
)
def test_a_freedom_without_inertia_is_named(name: str) -> None:
    model = _on_its_hinge().build()
    q, v = _state(model, ())
    call = {
        "mass_solve": lambda: model.mass_solve(q, v),
        "mass_matrix_inverse": lambda: model.mass_matrix_inverse(q),
        "simulate": lambda: lw.simulate(model, q, v, duration=0.1),
    }.get(name, lambda: getattr(model, name)(q, v, v))
    with pytest.raises(lw.ModelError, match="joint 'spin' moves no inertia") as error:
        call()
    assert all(word in str(error.value) for word in ("an inertia", "armature", "lock", "'point'"))
    np.testing.assert_allclose(model.inverse_dynamics(q, v, v + 1.0)[1], 0.0)  # what it needs is defined: nothing


def test_the_ways_out() -> None:
    for model in (_on_its_hinge(armature=0.1).build(), _on_its_hinge(inertia=np.eye(3)).build()):
        q, v = _state(model, ())
        assert np.isfinite(model.forward_dynamics(q, v, v + 1.0)).all()


def test_one_that_others_follow_is_named_too() -> None:
    b = _on_its_hinge()
    b.add_body("follower", "point", joint=lw.Revolute((0, 0, 1)), mass=1.0, mimic=lw.Mimic("spin", 2.0))
    model = b.build()
    q, v = _state(model, ())
    for call in (lambda: model.forward_dynamics(q, v, v), lambda: model.mass_matrix_inverse(q)):
        with pytest.raises(lw.ModelError, match="joint 'spin' moves no inertia"):
            call()


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("make", [_fixed, _usual])
def test_no_freedoms_and_no_states(make: Any, batch: tuple[int, ...]) -> None:
    model = make()
    (q, v), n, m = _state(model, batch), model.nv, model.nq
    for lin in (model.linearize_inverse(q, v, v), model.linearize_forward(q, v, v)):
        assert [x.shape for x in lin] == [(*batch, n), *[(*batch, n, n)] * 3]
    second = model.linearize_inverse(q, v, v, order=2), model.linearize_forward(q, v, v, order=2)
    for lin in second:
        assert [x.shape for x in lin] == [(*batch, n), *[(*batch, n, n)] * 3, *[(*batch, n, n, n)] * 4]
    for dt in (None, 0.1):
        A, B = model.state_space(q, v, v, dt=dt)
        assert A.shape == (*batch, 2 * n, 2 * n)
        assert B.shape == (*batch, 2 * n, n)
    for steps in (3, 0):
        s = model.sensitivity(q, v, np.zeros((steps, *batch, n)), 0.1)
        assert s.q.shape == (steps + 1, *batch, m)
        assert s.dx0.shape == (steps + 1, *batch, 2 * n, 2 * n)
        assert s.dp.shape == (steps + 1, *batch, 2 * n, 0)

    def euler(model: Any, q: Any, v: Any, tau: Any) -> Any:
        v = v + 0.1 * model.forward_dynamics(q, v, tau)
        return {"q": model.integrate(q, 0.1 * v), "v": v}

    step = lw.compile(euler, model, inputs={"q": "q", "v": "v", "tau": "v"})
    last = lw.rollout(step, 3)(q, v, v)
    assert (last.q.shape, last.v.shape) == ((*batch, m), (*batch, n))
    every = lw.rollout(step, 3, sequences=["tau"], record=True)(q, v, np.zeros((3, *batch, n)))
    assert (every.q.shape, every.v.shape) == ((3, *batch, m), (3, *batch, n))


def test_a_mirror_image_is_no_motion() -> None:
    def mirrored(q: Any) -> Any:
        c, s = lw.math.cos(q[0]), lw.math.sin(q[0])
        return [[c, s, 0, 0], [s, -c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

    with pytest.raises(lw.InputError, match=r"det R = -1") as error:
        lw.CustomJoint(mirrored, n=1)
    assert "right-handed" in str(error.value)
