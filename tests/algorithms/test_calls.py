"""The call boundary: batches, broadcasting, out, threads, dtypes, and every mistake with its message."""

from __future__ import annotations

import inspect
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.closed_catalogue import EVERY
from linkwise.model.making import METHODS
from tests.oracles.eager import Eager
from tests.random_trees import random_state, random_tree


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return random_tree(8, 3, ("revolute", "prismatic", "spherical"), mimic=0.0, branching=0.0)


@pytest.fixture
def states(model: lw.Model) -> tuple[Any, Any, Any]:
    return random_state(model, np.random.default_rng(0), (6,))


def one_by_one(model: lw.Model, *arrays: Any) -> Any:
    eager = Eager(model)
    return np.array([eager.inverse_dynamics(*state) for state in zip(*arrays, strict=True)])


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


# Shapes.
def test_leading_axes(model: lw.Model, states: Any) -> None:
    expected = one_by_one(model, *states)
    close(model.inverse_dynamics(*states), expected)
    for shape in ((1, 6), (6, 1), (2, 3), (3, 1, 2), (1, 1, 6, 1)):
        shaped = [a.reshape(*shape, -1) for a in states]
        result = model.inverse_dynamics(*shaped)
        assert result.shape == (*shape, model.nv)
        close(result.reshape(6, -1), expected)
        assert model.kinetic_energy(*shaped[:2]).shape == shape
        assert model.mass_matrix(shaped[0]).shape == (*shape, model.nv, model.nv)
        assert model.poses(shaped[0]).shape == (*shape, len(model.bodies), 4, 4)


def test_broadcasting(model: lw.Model, states: Any) -> None:
    q, v, vdot = states
    result = model.inverse_dynamics(q[:, None], v[None, :4], vdot[0])
    assert result.shape == (6, 4, model.nv)
    for i in (0, 5):
        for j in (0, 3):
            close(result[i, j], Eager(model).inverse_dynamics(q[i], v[j], vdot[0]))
    f_ext = np.random.default_rng(1).normal(size=(len(model.bodies), 6))
    close(model.inverse_dynamics(q, v, vdot, f_ext)[2], Eager(model).inverse_dynamics(q[2], v[2], vdot[2], f_ext=f_ext))


def test_empty_batches(model: lw.Model) -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        q, v = np.zeros((*shape, model.nq)), np.zeros((*shape, model.nv))
        assert model.inverse_dynamics(q, v, v).shape == (*shape, model.nv)
        assert model.mass_matrix(q).shape == (*shape, model.nv, model.nv)
        assert model.kinetic_energy(q, v).shape == shape
        assert model.inverse_dynamics(q, v, v, threads=4).shape == (*shape, model.nv)
        assert model.inverse_dynamics(q.astype(object), v, v).shape == (*shape, model.nv)


def test_one_state_gives_scalars_as_numbers(model: lw.Model, states: Any) -> None:
    q, v, _ = (a[0] for a in states)
    for _ in range(2):  # the second call is the compiled one
        energy = model.kinetic_energy(q, v)
        assert isinstance(energy, np.float64)
        assert model.potential_energy(q) == pytest.approx(float(Eager(model).potential_energy(q)))


def test_models_without_freedoms() -> None:
    b = lw.ModelBuilder("statue")
    b.add_body("base", mass=3.0)
    model = b.build()
    nothing = np.zeros((4, 0))
    assert (model.nq, model.nv, len(model.bodies)) == (0, 0, 0)
    assert model.inverse_dynamics(nothing, nothing, nothing).shape == (4, 0)
    assert model.mass_matrix(nothing).shape == (4, 0, 0)
    assert model.poses(nothing).shape == (4, 0, 4, 4)
    assert model.pose(np.zeros(0), "base").tolist() == np.eye(4).tolist()
    np.testing.assert_array_equal(model.kinetic_energy(nothing, nothing), np.zeros(4))
    assert model.jacobian(np.zeros(0), "base").shape == (6, 0)
    assert model.random_configuration(0).shape == (0,)


# Memory.
def test_strides_and_orders(model: lw.Model, states: Any) -> None:
    expected = one_by_one(model, *states)
    for change in (
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: np.repeat(a, 3, axis=1)[:, ::3],
        lambda a: a[::-1][::-1],
        lambda a: a.astype(a.dtype.newbyteorder()),
        lambda a: a.astype(np.longdouble),
        lambda a: a.tolist(),
        lambda a: tuple(map(tuple, a)),
        read_only,
    ):
        close(model.inverse_dynamics(*(change(a) for a in states)), expected)
        close(model.inverse_dynamics(*(change(a[:1]) for a in states)), expected[:1])
    row = [np.vstack([a[3], a[3]])[:, :][1] for a in states]
    close(model.inverse_dynamics(*row), expected[3])
    close(model.inverse_dynamics(*(np.repeat(a[3], 2)[::2] for a in states)), expected[3])


def read_only(a: Any) -> Any:
    a = a.copy()
    a.flags.writeable = False
    return a


def test_inputs_are_not_changed(model: lw.Model, states: Any) -> None:
    before = [a.copy() for a in states]
    model.inverse_dynamics(*states)
    model.inverse_dynamics(*(a[0] for a in states))
    model.integrate(*states[:2], threads=2)
    for a, b in zip(states, before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_integers(model: lw.Model) -> None:
    q = np.array([[1] * model.nq, [2] * model.nq])
    v = np.arange(model.nv)
    close(model.inverse_dynamics(q, v, v > 1), model.inverse_dynamics(q * 1.0, v * 1.0, (v > 1) * 1.0))
    close(
        model.inverse_dynamics(q[0].astype(np.int8), v.astype(np.uint16), v), model.inverse_dynamics(q[0] * 1.0, v, v)
    )


def test_fractions_and_decimals(model: lw.Model) -> None:
    q = np.full(model.nq, 0.25)
    for kind in (Fraction("1/4"), Decimal("0.25")):
        result = model.gravity_force([kind] * model.nq)
        close(result.astype(float), model.gravity_force(q))


def test_out(model: lw.Model, states: Any) -> None:
    expected = one_by_one(model, *states)
    out = np.full((6, model.nv), np.nan)
    assert model.inverse_dynamics(*states, out=out) is out
    close(out, expected)
    wide = np.full((6, 2 * model.nv), np.nan)
    assert model.inverse_dynamics(*states, out=wide[:, ::2]).base is wide
    close(wide[:, ::2], expected)
    assert np.isnan(wide[:, 1::2]).all()
    fortran = np.asfortranarray(np.zeros((6, model.nv)))
    close(model.inverse_dynamics(*states, out=fortran), expected)
    energy = np.zeros(6)
    assert model.kinetic_energy(*states[:2], out=energy) is energy
    assert energy.all()
    one = np.zeros(model.nv)
    assert model.inverse_dynamics(*(a[2] for a in states), out=one) is one
    close(one, expected[2])


def test_out_may_be_an_input(model: lw.Model, states: Any) -> None:
    q, v, vdot = states
    expected = one_by_one(model, q, v, vdot)
    close(model.inverse_dynamics(q, v, vdot, out=vdot), expected)
    close(vdot, expected)
    moving = np.vstack([q, q[:1]])
    ahead = model.integrate(moving[:-1], v)
    close(model.integrate(moving[:-1], v, out=moving[1:]), ahead)  # overlapping by all but one state


def test_threads(model: lw.Model) -> None:
    q, v, vdot = random_state(model, np.random.default_rng(0), (1000,))
    expected = model.inverse_dynamics(q, v, vdot)
    for threads in (1, 2, 3, np.int64(4), 1000):
        np.testing.assert_array_equal(model.inverse_dynamics(q, v, vdot, threads=threads), expected)
        np.testing.assert_array_equal(model.inverse_dynamics(q[:3], v[:3], vdot[:3], threads=threads), expected[:3])


def test_first_call_from_many_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    fresh = random_tree(31, 4, ("revolute", "prismatic"))
    states = random_state(fresh, np.random.default_rng(0))
    expected = Eager(fresh).inverse_dynamics(*states)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: fresh.inverse_dynamics(*states), range(64)):
            close(result, expected)


def test_nan_stays_in_its_state(model: lw.Model) -> None:
    for n in (1, 7, 8, 9, 16, 33):
        states = random_state(model, np.random.default_rng(0), (n,))
        clean = model.forward_dynamics(*states), model.mass_matrix(states[0]), model.integrate(*states[:2])
        for value in (np.nan, np.inf):
            bad = [a.copy() for a in states]
            k = n // 2
            bad[0][k] = value  # all of q: what a result does not depend on may be left out
            results = model.forward_dynamics(*bad), model.mass_matrix(bad[0]), model.integrate(*bad[:2])
            for ours, expected in zip(results, clean, strict=True):
                assert not np.isfinite(ours[k]).all()
                np.testing.assert_array_equal(np.delete(ours, k, 0), np.delete(expected, k, 0))


# Mistakes.
def wrong(message: str, error: type[Exception] = lw.InputError) -> Any:
    return pytest.raises(error, match=re.escape(message))


def test_wrong_shapes(model: lw.Model, states: Any) -> None:
    q, v, vdot = states
    with wrong(
        f"v has the wrong shape for inverse_dynamics\n  got:     (6, {model.nv + 1})\n  allowed: (..., {model.nv})"
    ):
        model.inverse_dynamics(q, np.zeros((6, model.nv + 1)), vdot)
    for bad in (np.float64(1.0), 1.0, [], [[]], np.zeros((model.nq, 1)), [[1.0, 2.0], [3.0]]):
        with pytest.raises(lw.InputError):
            model.inverse_dynamics(bad, v, vdot)
        with pytest.raises(lw.InputError):
            model.inverse_dynamics(bad, v[0], vdot[0])
    with wrong("the batches of inverse_dynamics's arguments do not fit together\n  got:     q (6,), v (5,), vdot (6,)"):
        model.inverse_dynamics(q, v[:5], vdot)
    with wrong("f_ext has the wrong shape for inverse_dynamics"):
        model.inverse_dynamics(q, v, vdot, np.zeros((6, 6)))
    with wrong("point has the wrong shape for jacobian\n  got:     (2,)\n  allowed: (..., 3)"):
        model.jacobian(q, model.bodies[0].name, [1.0, 2.0])


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros(5, complex), ["a"] * 5, np.array(["1.0"] * 5), [None] * 5, None, "q", b"q", {}, {"q": 1}, object(),
        [object()] * 5, [1j] * 5, [{1}] * 5, np.zeros(5, "datetime64[s]"), np.zeros(5, [("x", float)]), [10**400] * 5,
        np.ma.masked_equal(np.arange(5.0), 2.0), ["0.1"] * 5, [[1.0]] * 5, range(3), lambda: 0,
    ],
    ids=lambda bad: f"{type(bad).__name__}",
)  # fmt: skip
def test_wrong_kinds(bad: Any) -> None:
    model = random_tree(0, 5, ("revolute",))
    good = np.zeros(5)
    assert model.nv == 5
    with pytest.raises(lw.InputError):
        model.gravity_force(bad)
    model.gravity_force(good)  # from here on the compiled function sees it first
    with pytest.raises(lw.InputError):
        model.gravity_force(bad)
    with pytest.raises(lw.InputError):
        model.bias_force(good, bad)


def test_wrong_kind_has_a_message(model: lw.Model, states: Any) -> None:
    q, v, vdot = states
    with wrong("q of inverse_dynamics is not made of real numbers\n  got:     dtype complex128"):
        model.inverse_dynamics(q + 0j, v, vdot)
    with wrong("q of gravity_force is not made of real numbers\n  got:     None"):
        model.gravity_force([None] * model.nq)


def test_wrong_out(model: lw.Model, states: Any) -> None:
    fits = f"ndarray (6, {model.nv}) float64"
    for out in (
        np.zeros((6, model.nv + 1)),
        np.zeros((6, model.nv), np.float32),
        [0.0],
        np.zeros((6, model.nv), ">f8"),
    ):
        with wrong("out of inverse_dynamics does not fit"):
            model.inverse_dynamics(*states, out=out)
    with wrong(f"got:     ndarray (5, {model.nv}) float64\n  allowed: {fits}"):
        model.inverse_dynamics(*states, out=np.zeros((5, model.nv)))
    with wrong("out of inverse_dynamics is read-only"):
        model.inverse_dynamics(*states, out=read_only(np.zeros((6, model.nv))))
    with wrong("out of inverse_dynamics has the wrong length"):
        model.inverse_dynamics(*states, out=(np.zeros((6, model.nv)),) * 2)
    with wrong("inverse_dynamics can fill out= with numbers only"):
        model.inverse_dynamics(*(a.astype(object) for a in states), out=np.zeros((6, model.nv)))


@pytest.mark.parametrize("threads", [0, -1, 1.0, 2.5, "2", True, [1], np.nan])
def test_wrong_threads(model: lw.Model, states: Any, threads: Any) -> None:
    with wrong("threads is not a positive whole number"):
        model.inverse_dynamics(*states, threads=threads)


def test_parameters_that_were_not_declared(model: lw.Model, states: Any) -> None:
    with wrong("inverse_dynamics was given p, but this model has no run-time parameters"):
        model.inverse_dynamics(*states, p=[1.0])
    with_mass = model.with_parameters(["body0.mass"])
    with wrong("p has the wrong shape for inverse_dynamics\n  got:     (2,)\n  allowed: (..., 1)"):
        with_mass.inverse_dynamics(*states, p=[1.0, 2.0])
    with wrong("got:     'body0.mas'", lw.errors.UnknownNameError):
        model.with_parameters(["body0.mas"])
    with wrong("did you mean 'body0.mass'", lw.errors.UnknownNameError):
        model.with_parameters(["body0.mas"])
    with wrong("parameters are given as a list of names"):
        model.with_parameters("body0.mass")
    with wrong("parameter 'gravity' is named twice"):
        model.with_parameters(["gravity", "gravity"])


def test_unknown_names(model: lw.Model, states: Any) -> None:
    q = states[0]
    with wrong("there is no body or frame of this name\n  got:     'Tool'", lw.errors.UnknownNameError):
        model.pose(q, "Tool")
    with wrong("did you mean 'tool'", lw.errors.UnknownNameError):
        model.jacobian(q, "Tool")
    with wrong("body must be a name\n  got:     3"):
        model.pose(q, 3)  # type: ignore[arg-type]
    with wrong("there is no function of this name\n  got:     'massmatrix'", lw.errors.UnknownNameError):
        model.function("massmatrix")
    with wrong("did you mean 'joint1'", lw.errors.UnknownNameError):
        model.joints["joint11"]
    with wrong("there is no body of this name", lw.errors.UnknownNameError):
        model.bodies["tool"]  # a frame, not a body
    with wrong("there is no body of this name", lw.errors.UnknownNameError):
        model.bodies["nobody"]
    with pytest.raises(KeyError):
        model.joints["nothing"]


def test_wrong_number_of_arguments(model: lw.Model, states: Any) -> None:
    model.inverse_dynamics(*(a[0] for a in states))
    for call in (lambda: model.inverse_dynamics(*states[:2]), lambda: model.inverse_dynamics(*states, *states)):
        with pytest.raises(TypeError):
            call()
    with wrong("inverse_dynamics takes 3 arrays\n  got:     2"):
        model.function("inverse_dynamics")(*states[:2])
    with pytest.raises(TypeError):
        model.inverse_dynamics(*states, bogus=1)  # type: ignore[call-arg]


def test_keywords(model: lw.Model, states: Any) -> None:
    q, v, vdot = (a[0] for a in states)
    first = model.inverse_dynamics(q=q, v=v, vdot=vdot)
    second = model.inverse_dynamics(q, v, vdot)
    third = model.inverse_dynamics(q, vdot=vdot, v=v)
    close(first, second)
    close(third, second)
    close(model.rnea(q, v, vdot), second)
    close(model.aba(q, v, second), vdot)
    close(model.crba(q), model.mass_matrix(q))


def test_copies_and_pickles(model: lw.Model, states: Any) -> None:
    import copy
    import pickle

    expected = model.inverse_dynamics(*states)
    plain = random_tree(8, 3, ("revolute", "prismatic", "spherical"), mimic=0.0, branching=0.0)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), plain):
        assert other == model
        assert hash(other) == hash(model)
        close(other.inverse_dynamics(*states), expected)
    assert model.with_gravity((0, 0, 0)) != model


def test_changed_copies(model: lw.Model, states: Any) -> None:
    q, v, vdot = states
    model.inverse_dynamics(q, v, vdot)
    close(model.with_gravity((0, 0, 0)).gravity_force(q), 0.0)
    rotors = np.linspace(0.1, 1.0, model.nv)
    heavier = model.with_joint_constants(armature=rotors)
    close(heavier.mass_matrix(q), model.with_joint_constants(armature=0.0).mass_matrix(q) + np.diag(rotors))
    close(
        model.with_body("body0", mass=0.0, com=(0, 0, 0), inertia=np.zeros((3, 3))).mass,
        model.mass - model.bodies[0].mass,
    )
    np.testing.assert_array_equal(model.with_joint_constants(damping=0.5).joint_constants.damping, 0.5)
    np.testing.assert_array_equal(model.with_joint_constants(friction=0.25).joint_constants.friction, 0.25)
    assert model.renamed(name="other").name == "other"
    with wrong("gravity is not three numbers"):
        model.with_gravity((0, 0))
    with wrong("armature has the wrong length"):
        model.with_joint_constants(armature=[1.0] * (model.nv + 1))
    with wrong("damping must be finite and not negative"):
        model.with_joint_constants(damping=-1.0)
    with wrong("there is no body of this name", lw.errors.UnknownNameError):
        model.with_body("nobody", mass=1.0)


# What methods say of themselves.
def test_signatures_and_words_that_no_function_knows(model: lw.Model) -> None:
    """Every function of the catalogue shows all its arguments, and refuses others, internal ones too."""
    every = [name for name in EVERY if name in METHODS]
    assert len(every) > 40
    for name in every:
        shown = inspect.signature(METHODS[name].method).parameters
        assert not any(p.kind is p.VAR_KEYWORD for p in shown.values()), name
        for by_name in ("out", "threads") if name in ("integrate", "difference") else ("p", "out", "threads"):
            assert shown[by_name].kind is inspect.Parameter.KEYWORD_ONLY and shown[by_name].default is None, name
        inputs = [n for n in EVERY[name].inputs if n not in ("q0", "q1")]
        assert [n for n in shown if n in inputs] == inputs, name
    q = model.neutral()
    for wrong in ({"active": q}, {"t": 0.0}, {"body": "a"}, {"thread": 1}):
        with pytest.raises(TypeError, match=f"mass_matrix.* unexpected keyword argument '{next(iter(wrong))}'"):
            model.mass_matrix(q, **wrong)
