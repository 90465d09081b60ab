"""Closures that each hold a branch of their own: when that way is taken, and that it is right at any configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import errors, samples
from tests.closures.mechanisms import EagerModel

Array = Any
ROD = {"mass": 1.5, "com": (0.0, 0.0, 0.3), "inertia": np.diag([0.05, 0.055, 0.01])}
PISTON = {"mass": 1.0, "com": (0.01, 0.0, -0.3), "inertia": np.diag([0.03, 0.032, 0.004])}


def taken(model: lw.Model) -> bool:
    """Whether "auto" takes the branches first."""
    return model._trees.branching is not None


def held(model: lw.Model, q: Array, ends: list[str], joint: lw.Joint) -> lw.Model:
    """The last body held by the others where they are."""
    body = model.bodies[-1].name
    seen_from = np.linalg.inv(model.pose(q, body))
    for end in ends:
        model = model.with_closure(f"to_{end}", end, None, body, seen_from @ model.pose(q, end), joint=joint)
    return model


def plate_on_legs(short_of_lock: float, legs: int = 6) -> tuple[lw.Model, Array]:
    """A plate on legs; the first is so far (rad) from where its universal joint loses a direction."""
    rng = np.random.default_rng(0)
    b = lw.ModelBuilder("plate_on_legs")
    q: list[float] = []
    for i in range(legs):
        foot = lw.transform(xyz=rng.normal(size=3).tolist(), rpy=rng.normal(size=3).tolist())
        b.add_body(f"tube{i}", "world", lw.Universal((1, 0, 0), (0, 1, 0)), foot, **ROD)
        b.add_body(f"piston{i}", f"tube{i}", lw.Prismatic((0, 0, 1)), lw.transform(xyz=(0, 0, 1.0)), **PISTON)
        tilt = np.pi / 2 - short_of_lock if i == 0 else rng.uniform(-0.5, 0.5)
        q += [rng.uniform(-0.5, 0.5), tilt, rng.uniform(-0.2, 0.2)]
    b.add_body("plate", "world", lw.Free(), mass=12.0, com=(0.1, 0, 0), inertia=np.diag([1.1, 1.2, 2.2]))
    at = np.array([*q, 1.0, 0, 0, 0, 0, 0, 1.0])
    return held(b.build(), at, [f"piston{i}" for i in range(legs)], lw.Spherical()), at


def box_in_arms(elbow: float) -> tuple[lw.Model, Array]:
    """A box on a slide and a hinge, welded to two arms of seven hinges; their elbows are straight at 0."""
    b = lw.ModelBuilder("box_in_arms")
    axes = [(0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1)]
    bends = [0.3, 0.4, 0.5, elbow - 0.9, 0.2, 0.7, 0.1]
    q = []
    for side, x in (("left", -0.4), ("right", 0.4)):
        parent, at = "world", lw.transform(xyz=(x, 0, 0))
        for i, (axis, bend) in enumerate(zip(axes, bends, strict=True)):
            b.add_body(f"{side}{i}", parent, lw.Revolute(axis), at, **ROD)
            parent, at = f"{side}{i}", lw.transform(xyz=(0, 0, 0.3 * (i % 2)), rpy=(0, 0.9 * (i % 2), 0))
            q.append(bend)
    b.add_body("lift", "world", lw.Prismatic((0, 0, 1)), mass=2.0)
    b.add_body("box", "lift", lw.Revolute((1, 0, 0)), lw.transform(xyz=(0, 0.1, 1)), **ROD)
    at_rest = np.array([*q, 0.0, 0.3])
    return held(b.build(), at_rest, ["left6", "right6"], lw.Fixed()), at_rest


def check(model: lw.Model, q: Array, rtol: float = 1e-11) -> None:
    model = EagerModel.of(model)
    rng = np.random.default_rng(1)
    exact = model.with_closure_solver("nullspace")
    v = exact.constraints.project_velocity(q, 0.3 * rng.normal(size=model.nv))
    tau, f_ext = rng.normal(size=model.nv), rng.normal(size=(len(model.bodies), 6))
    expected = exact.forward_dynamics(q, v, tau, f_ext)
    named = model.with_closure_solver("branches")
    for own in (model, named):
        np.testing.assert_allclose(
            own.forward_dynamics(q, v, tau, f_ext), expected, rtol=0.0, atol=rtol * np.abs(expected).max()
        )
    wanted = rng.normal(size=model.nv)
    for name, arguments in (("project_velocity", (q, wanted)), ("tangent_part", (q, wanted))):
        one, other = (m._run(name, *arguments) for m in (named, model.with_closure_solver("multipliers")))
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-8)
    forces = named.constraint_forces(q, v, tau, f_ext)
    same = exact.constraint_forces(q, v, tau, f_ext)
    np.testing.assert_allclose(forces.multipliers, same.multipliers, atol=1e-7 * np.abs(same.multipliers).max())


@pytest.mark.parametrize("short_of_lock", [0.5, 1e-4, 1e-8, 0.0])
def test_a_leg_may_lose_a_direction(short_of_lock: float) -> None:
    model, q = plate_on_legs(short_of_lock)
    assert taken(model)
    check(model, q)


def test_fewer_legs_leave_the_plate_free() -> None:
    check(*plate_on_legs(0.3, legs=2))


@pytest.mark.parametrize("elbow", [0.9, 1e-3, 0.0])
def test_arms_with_more_freedoms_than_the_closure_takes(elbow: float) -> None:
    """The box's own freedoms are fewer than the closures' equations, and welds have turns among these."""
    model, q = box_in_arms(elbow)
    assert taken(model)
    check(model, q, 1e-10)


def test_stewart_platform() -> None:
    model = samples.stewart_platform()
    assert taken(model)
    q = model.assemble(model.integrate(model.neutral(), 0.1 * np.random.default_rng(0).normal(size=24)))
    check(model, q)
    legs = model.function("forward_dynamics").counts
    assert (legs.mul, legs.add) == pytest.approx((1715, 1416), rel=0.02)
    assert legs.mul < 0.5 * model.with_closure_solver("multipliers").function("forward_dynamics").counts.mul


def test_feedback_of_what_is_open() -> None:
    """Baumgarte's terms are asked of the same equations."""
    model = samples.stewart_platform()
    rng = np.random.default_rng(2)
    q = model.integrate(model.assemble(model.neutral()), 1e-3 * rng.normal(size=24))
    v, tau = rng.normal(size=24), rng.normal(size=24)
    one, other = (
        m.function("forward_dynamics", closing_rate=20.0)(q, v, tau)
        for m in (model, model.with_closure_solver("multipliers"))
    )
    np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-10 * np.abs(other).max())


@pytest.mark.parametrize(
    "model",
    [
        samples.four_bar(1),
        samples.slider_crank(),
        samples.bricard(),
        samples.stewart_platform().with_coupling("tied", lw.closures.Coupling({"slide1": 1.0, "slide2": -1.0})),
        samples.stewart_platform().with_closure("stay", "tube1", None, "tube2", None, joint=lw.Spherical()),
    ],
    ids=["four-bar", "slider-crank", "bricard", "coupled", "crossed"],
)
def test_where_it_cannot_be(model: lw.Model) -> None:
    """A closure that holds no branch of its own: "auto" is the multipliers, and the name is refused."""
    assert not taken(model)
    with pytest.raises(errors.InputError, match="a branch of their own"):
        model.with_closure_solver("branches")


def test_loops_take_the_multipliers() -> None:
    """Sweeps that run as loops have no branches."""
    model = samples.stewart_platform().with_sweeps("rolled")
    q = model.neutral()
    expected = model.with_sweeps("unrolled").forward_dynamics(q, np.zeros(24), np.ones(24))
    np.testing.assert_allclose(model.forward_dynamics(q, np.zeros(24), np.ones(24)), expected, atol=1e-10)
    with pytest.raises(errors.InputError, match="a branch of their own"):
        model.with_closure_solver("branches").forward_dynamics(q, np.zeros(24), np.ones(24))


@pytest.mark.slow
def test_attached_and_released() -> None:
    """A simulation in which closures come and go takes the multipliers, and says nothing."""
    model = samples.stewart_platform()
    gone = lw.Event(lambda t, q, v, p: t - 0.01, name="snap", release="ball1")
    traj = lw.simulate(model, model.neutral(), duration=0.02, events=gone, rtol=1e-8)
    assert traj.active[-1].tolist() == [0, 1, 1, 1, 1, 1]
