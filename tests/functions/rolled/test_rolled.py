"""Rolled sweeps give what unrolled ones give: the same text, run as loops."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.forward_dynamics import forward_dynamics
from linkwise.algorithms.inverse_dynamics import inverse_dynamics
from linkwise.functions import function as functions
from linkwise.functions.rolled.finish import inward_slots, outward_slots
from linkwise.functions.rolled.link_vectors import GlobalInput
from linkwise.functions.rolled.rolling import RolledTree
from linkwise.mechanism.layout import lay_out, numbers_of
from linkwise.targets.cuda.target import TARGET
from linkwise.targets.llvm.device import PROCESSOR
from linkwise.trace.block import ArraySpec
from linkwise.trace.interpreter import interpret
from linkwise.trace.verifier import verify
from tests.random_trees import random_tree
from tests.seeds import seeds


def _without_mimics(seed: int, n: int) -> lw.Model:
    rng = np.random.default_rng(seed)
    while True:
        model = random_tree(rng, n)
        if all(joint.mimic is None for joint in model.joints):
            return model


def _states(model: lw.Model, rng: np.random.Generator, count: int) -> tuple[np.ndarray, ...]:
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


@pytest.mark.parametrize("text", [inverse_dynamics, forward_dynamics])
@pytest.mark.parametrize("seed", seeds(2, of=6))
def test_the_loops_mean_what_the_text_says(seed: int, text: object) -> None:
    """By the interpreter, which defines what a program with loops does."""
    model = _without_mimics(seed, 8)
    rng = np.random.default_rng(seed)
    tree = lay_out(model)
    q, v, x = (a[0] for a in _states(model, rng, 1))
    rolled = RolledTree(tree)
    inputs = [
        GlobalInput(n, ArraySpec(n, (s,)), k)
        for n, s, k in (("q", model.nq, "q"), ("v", model.nv, "v"), ("x", model.nv, "v"))
    ]
    program = rolled.finish("f", inputs, {"out": text(rolled, *inputs)})  # type: ignore[operator]
    expected = text(tree, q.tolist(), v.tolist(), x.tolist())  # type: ignore[operator]
    np.testing.assert_allclose(interpret(program, [q, v, x])[0], expected, rtol=1e-12, atol=1e-12)


FUNCTIONS = [
    ("inverse_dynamics", "qvx"), ("forward_dynamics", "qvx"),
    ("inverse_dynamics", "qvxf"), ("forward_dynamics", "qvxf"),
    ("bias_force", "qv"), ("gravity_force", "q"), ("poses", "q"), ("mass_matrix", "q"), ("mass_matrix_inverse", "q"),
    ("mass_product", "qv"), ("mass_solve", "qv"), ("external_force", "qf"), ("integrate", "qv"),
    ("configuration_rate", "qv"),
]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(1, of=3))
def test_rolled_and_unrolled_functions_agree(seed: int) -> None:
    model = _without_mimics(20 + seed, 4)
    rolled = model.with_sweeps("rolled")
    rng = np.random.default_rng(seed)
    q, v, x = _states(model, rng, 11)
    given = {"q": q, "v": v, "x": x, "f": rng.normal(size=(11, len(model.bodies), 6))}
    for name, arguments in FUNCTIONS:
        arrays = [given[a] for a in arguments]
        expected = getattr(model, name)(*arrays)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(getattr(rolled, name)(*arrays), expected, rtol=0, atol=1e-12 * scale, err_msg=name)
        one = getattr(rolled, name)(*(a[0] for a in arrays))
        np.testing.assert_allclose(one, expected[0], rtol=0, atol=1e-12 * scale, err_msg=name)


def test_rolled_linearisation_agrees() -> None:
    model = _without_mimics(30, 4)
    rolled = model.with_sweeps("rolled")
    q, v, x = _states(model, np.random.default_rng(3), 2)
    for name in ("linearize_inverse", "linearize_forward"):
        expected, got = getattr(model, name)(q, v, x), getattr(rolled, name)(q, v, x)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-11 * np.abs(a).max(), err_msg=name)


def test_rolled_jacobians_agree() -> None:
    model = _without_mimics(31, 6)
    rolled = model.with_sweeps("rolled")
    rng = np.random.default_rng(4)
    q = _states(model, rng, 3)[0]
    for body in (model.bodies[0].name, model.bodies[-1].name):
        for point in (None, rng.normal(size=3)):
            expected = model.jacobian(q, body, point)
            np.testing.assert_allclose(
                rolled.jacobian(q, body, point), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
            )
    assert not rolled.jacobian(q, "world").any()


def test_float32_threads_and_out() -> None:
    model = _without_mimics(5, 6).with_sweeps("rolled")
    q, v, x = _states(model, np.random.default_rng(0), 100)
    expected = model.forward_dynamics(q, v, x)
    out = np.empty_like(expected)
    assert model.forward_dynamics(q, v, x, out=out, threads=2) is out
    np.testing.assert_array_equal(out, expected)
    single = model.forward_dynamics(*(a.astype(np.float32) for a in (q, v, x)))
    assert single.dtype == np.float32
    assert np.abs(single - expected).max() < 2e-3 * np.abs(expected).max()


def test_a_nan_stays_in_its_state() -> None:
    model = _without_mimics(6, 6).with_sweeps("rolled")
    q, v, x = _states(model, np.random.default_rng(1), 20)
    expected = model.forward_dynamics(q, v, x)
    q[7, -1] = np.nan
    got = model.forward_dynamics(q, v, x)
    assert np.isnan(got[7]).any()
    others = np.arange(20) != 7
    np.testing.assert_array_equal(got[others], expected[others])


def _chain(n: int, rng: np.random.Generator) -> lw.Model:
    builder = lw.ModelBuilder("chain")
    for i in range(n):
        builder.add_body(
            f"link{i}",
            "world" if i == 0 else f"link{i - 1}",
            lw.Revolute(rng.normal(size=3)),
            placement=lw.transform(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)),
            mass=1 + rng.random(),
            com=rng.normal(size=3) * 0.1,
            inertia=np.diag((0.1, 0.12, 0.05)),
        )
    return builder.build()


def test_a_long_chain_rolls_by_itself_and_its_code_does_not_grow() -> None:
    rng = np.random.default_rng(2)
    short, long = _chain(70, rng), _chain(700, rng)
    assert short._rolls
    assert not _chain(10, rng)._rolls
    programs = [m.function("forward_dynamics").rolled_program for m in (short, long)]  # type: ignore[attr-defined]
    assert programs[0].operations == programs[1].operations
    assert programs[0].fingerprint == programs[1].fingerprint
    # memory linear in n
    sizes = [sum(b.size for b in p.buffers if not (b.load or b.store)) for p in programs]
    assert sizes[1] < 10.5 * sizes[0]
    q, v, x = rng.normal(size=(3, 700)) * 0.3
    vdot = long.forward_dynamics(q, v, x)
    residual = long.inverse_dynamics(q, v, vdot) - x
    scale = np.abs(long.bias_force(q, v)).max()
    assert np.abs(residual).max() < 1e-10 * scale


def test_slots_are_used_again() -> None:
    tree = lay_out(_chain(50, np.random.default_rng(3)))
    assert outward_slots(numbers_of(tree.links, "parent"))[2] <= 3
    assert inward_slots(numbers_of(tree.links, "parent"))[2] <= 4


def test_a_wrong_way_to_run_sweeps() -> None:
    with pytest.raises(lw.InputError, match="no such way to run sweeps"):
        _without_mimics(8, 6).with_sweeps("looped")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sweeps_joined_from_far_do_the_same(seed: int) -> None:
    """Where loops between them are moved out of the way: fewer loops, the same numbers."""
    rng = np.random.default_rng(seed)
    model = random_tree(rng, 9, mimic=0.3).with_sweeps("rolled")
    q = model.random_configuration(rng)
    v, tau = rng.normal(size=(2, model.nv))
    function = model.function("forward_dynamics")
    near, far = function.rolled_program, function.rolled_for(TARGET)  # type: ignore[attr-defined]
    assert len(far.statements) <= len(near.statements)
    found = [interpret(program, [list(q), list(v), list(tau)])[0] for program in (near, far)]
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-12 * np.abs(found[0]).max())
    verify(far)


def test_a_place_without_loops_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(type(TARGET)):  # type: ignore[misc]
        name = "elsewhere"
        loops = False

    class There(type(PROCESSOR)):  # type: ignore[misc]
        name, target = "a device without loops", Elsewhere()

    monkeypatch.setattr(functions, "device_of", lambda arrays: There())
    chain = _chain(4, np.random.default_rng(5)).with_sweeps("rolled")
    for name in ("mass_matrix", "gravity_force"):
        with pytest.raises(lw.InputError, match="runs on the CPU") as caught:
            getattr(chain, name)(np.zeros(4))
        assert "with_sweeps" in str(caught.value)
