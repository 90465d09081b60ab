"""Derivatives of steps with contact, against differences of the steps themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.contact.scenes import ball, block, shape

TIGHT = lw.ContactRules(rounds=60, tolerance=1e-14)
RUBBER = lw.Material(friction=0.6)


def quadruped(rules: lw.ContactRules = TIGHT) -> lw.Model:
    """A trunk with four legs of two joints each, on round feet."""
    b = lw.ModelBuilder("quadruped")
    b.add_body("trunk", joint=lw.Free(), mass=8.0, inertia=np.diag([0.06, 0.25, 0.28]))
    down = lw.transform(xyz=(0, 0, -0.2))
    rod = {"mass": 0.4, "com": (0, 0, -0.1), "inertia": np.diag([2e-3, 2e-3, 2e-4])}
    for name, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("hl", -0.2, 0.1), ("hr", -0.2, -0.1)):
        at = lw.transform(xyz=(x, y, 0))
        b.add_body(f"{name}_thigh", parent="trunk", joint=lw.Revolute(axis=(0.2, 1, 0)), placement=at, **rod)  # type: ignore[arg-type]
        foot = [shape("sphere", (0.02,), down)]
        knee = lw.Revolute(axis=(0, 1, 0))
        b.add_body(f"{name}_shin", parent=f"{name}_thigh", joint=knee, placement=down, collisions=foot, **rod)  # type: ignore[arg-type]
    return b.build().with_contacts(lw.Ground(), material=RUBBER, rules=rules, between=[])


def standing(model: lw.Model) -> np.ndarray:
    """A crouched q whose feet touch the ground."""
    q = np.array([1.0, 0, 0, 0, 0, 0, 1.0, *[0.6, -1.1] * 4])
    q[6] -= float(model.contact_points(q).gap.min())
    return q


def differences(model: lw.Model, f: Any, at: list[np.ndarray], places: dict[int, str], step: float = 1e-6) -> Any:
    """Central differences of all outputs along unit directions of some inputs; directions last but one, states first."""
    columns: list[list[np.ndarray]] = []
    for place, name in places.items():
        size = model.nv if name == "q" else at[place].shape[-1]
        for k in range(size):
            ends = []
            for side in (step, -step):
                moved, d = list(at), np.zeros(size)
                d[k] = side
                moved[place] = model.integrate(at[place], d) if name == "q" else at[place] + d
                ends.append(f(*moved))
            columns.append([(a - b) / (2.0 * step) for a, b in zip(*ends, strict=True)])
    return [np.stack(parts, axis=1) for parts in zip(*columns, strict=True)]


def along_units(model: lw.Model, f: lw.CompiledFunction, at: list[np.ndarray], names: tuple[str, ...]) -> Any:
    """The same by forward mode."""
    sizes = [model.nv if name in ("q", "v", "tau") else dict(f.inputs)[name][0] for name in names]
    ends = np.cumsum(sizes)
    units = np.eye(ends[-1])
    parts = [units[:, end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return f.jvp(*names)(*(x[:, None] for x in at), *parts)


def check(
    model: lw.Model, q: Any, v: Any, tau: Any, *, impulses: bool = True, rel: float = 1e-6, h: float = 0.002
) -> lw.CompiledFunction:
    """Both modes of one step at several states."""
    f = model.function("contact_step")
    q, v = np.atleast_2d(np.asarray(q, float)), np.atleast_2d(np.asarray(v, float))
    tau = np.broadcast_to(np.asarray(tau, float), v.shape)
    dt = np.full(len(q), h)
    start = f(q, v, tau, np.zeros((len(q), f.inputs[3][1][0])), dt).impulses
    at = [q, v, tau, start, dt]
    names = ("q", "v", "tau", "impulses")
    expected = differences(model, f, at, dict(enumerate(names)))
    found = along_units(model, f, at, names)
    after = f(*at)
    assert after.residuals.max() < 1e-13
    for name in ("q", "v", "gaps", *(["impulses"] if impulses else [])):
        a, b = getattr(found, name), expected[after._fields.index(name)]
        scale = np.maximum(np.abs(b).max(axis=(1, 2), keepdims=True), 1e-3)
        assert np.abs((a - b) / scale).max() < rel, name
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=x.shape) * (impulses or name != "impulses") for name, x in zip(after._fields, after, strict=True)]
    back = np.concatenate(f.vjp(*names)(*at, *weights), axis=-1)
    forth = sum((w[:, None] * x).reshape(*x.shape[:2], -1).sum(-1) for w, x in zip(weights, found, strict=True))
    assert np.abs(back - forth).max() < 1e-12 * np.abs(forth).max()
    return f


def test_a_ball_that_flies_sticks_slides_and_lands() -> None:
    model = ball().with_contacts(lw.Ground(), material=RUBBER, rules=TIGHT)
    turned = np.array([0.8, 0.36, 0.48, 0.0])
    q = [[*turned, 0, 0, z] for z in (0.2, 0.1, 0.1 - 1e-5, 0.1004)]
    v = [[0.1, 0.2, 0.3, 1, 0, 0], [0.1, 0.23, 0.3, 0.02, -0.01, -0.1], [3, 0.2, 1, 1, -0.6, -0.05], [1, 2, 1, 1, 0, -1]]
    check(model, q, v, [0.01, 0.02, 0.03, 0.1, 0.2, 0.3])


def test_a_box_that_stands_slides_and_lands_on_an_edge() -> None:
    model = block().with_contacts(lw.Ground(), material=RUBBER, rules=TIGHT)
    tilt = 0.2
    edge = 0.1 * np.sin(tilt) + 0.05 * np.cos(tilt) - 0.0005
    q = [[1, 0, 0, 0, 0, 0, 0.05], [1, 0, 0, 0, 0, 0, 0.05], [np.cos(tilt / 2), 0, np.sin(tilt / 2), 0, 0, 0, edge]]
    v = [[0.0] * 6, [0, 0, 0, 1, 0.3, 0], [0.1, 0.2, 0, 0.03, 0.1, -0.1]]
    check(model, q, v, 0.0, impulses=False)  # of four corners the impulses are not unique


def test_a_quadruped_that_stands_with_feet_that_lift_and_slide() -> None:
    model = quadruped()
    rng = np.random.default_rng(3)
    q = np.stack([standing(model)] * 4)
    tau = np.zeros((4, model.nv))
    tau[:, 6:] = rng.normal(size=(4, 8)) * 4.0
    v = np.zeros((4, model.nv))
    v[1:] = rng.normal(size=(3, model.nv)) * 0.3
    v[2, 3] = 1.5
    f = check(model, q, v, tau)
    after = f(q, v, tau, np.zeros(12), 0.002)
    normal, friction = after.impulses[:, ::3], np.hypot(after.impulses[:, 1::3], after.impulses[:, 2::3])
    touching, sliding = normal > 0.0, friction > 0.6 * normal * (1 - 1e-9)
    assert touching[0].all() and not touching.all()
    assert (touching & sliding).any() and (touching & ~sliding).any()


def test_joints_at_their_limits_and_with_dry_friction() -> None:
    rules = lw.ContactRules(rounds=60, tolerance=1e-14, joint_limits=True, joint_friction=True)
    b = lw.ModelBuilder("arm")
    rod = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.diag([0.1, 0.1, 0.01])}
    hinge = lw.Revolute(axis=(0, 1, 0))
    b.add_body("upper", joint=hinge, limits=lw.JointLimits(-0.5, 0.5), friction=0.4, **rod)  # type: ignore[arg-type]
    tip = [shape("sphere", (0.05,), lw.transform(xyz=(0, 0, -1)))]
    b.add_body("lower", parent="upper", joint=hinge, placement=lw.transform(xyz=(0, 0, -1)), friction=0.3, collisions=tip, **rod)  # type: ignore[arg-type]
    deep = lw.Ground(tuple(map(tuple, lw.transform(xyz=(0, 0, -1.9)).tolist())))
    model = b.build().with_contacts(deep, material=RUBBER, rules=rules)
    bent = np.arccos((1.9 - 0.05 - np.cos(0.2)) / 1.0) - 0.2
    q = [[0.1, 0.9], [0.5, 1.2], [0.02, 1.5], [0.2, bent]]
    v = [[0.3, -0.4], [0.2, 0.5], [0.0, 0.0], [0.05, -0.5]]
    check(model, q, v, [[0.3, 0.1], [0.2, -0.1], [6.3, 4.9], [0.1, 0.0]])


def test_a_closed_mechanism_on_the_ground() -> None:
    hinge = lw.Revolute(axis=(0, 1, 0))
    b = lw.ModelBuilder("four-bar")
    rod: dict[str, Any] = {"mass": 1.0, "inertia": np.diag([1 / 12, 1 / 12, 1e-3])}
    b.add_body("left", joint=hinge, com=(0, 0, 0.5), **rod)
    knob = [shape("sphere", (0.1,), lw.transform(xyz=(0.4, 0, 0)))]
    b.add_body("top", parent="left", joint=hinge, placement=lw.transform(xyz=(0, 0, 1)), com=(0.5, 0, 0), collisions=knob, **rod)
    b.add_body("right", joint=hinge, placement=lw.transform(xyz=(1, 0, 0)), com=(0, 0, 0.5), **rod)
    ends = lw.transform(xyz=(1, 0, 0)), lw.transform(xyz=(0, 0, 1))
    b.add_closure("pin", body_a="top", placement_a=ends[0], body_b="right", placement_b=ends[1], joint=hinge)
    free = b.build()
    q = np.array(free.assemble([0.3, -0.3, 0.3]))
    v = 0.2 * np.array([1.0, -1.0, 1.0])
    below = np.cos(0.3) - 0.1
    ground = lw.Ground(tuple(map(tuple, lw.transform(xyz=(0, 0, below)).tolist())))
    model = free.with_contacts(ground, material=RUBBER, rules=TIGHT)
    check(model, [q, q], [v, -v], [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    "material",
    [
        lw.Material(friction=0.5, restitution=0.4),
        lw.Material(friction=0.5, restitution=0.4, impact="poisson"),
        lw.Material(friction=0.5, stiffness=2e4, damping=0.01),
    ],
    ids=["newton", "poisson", "compliant"],
)
def test_surfaces_that_bounce_and_give_way(material: lw.Material) -> None:
    model = ball().with_contacts(lw.Ground(), material=material, rules=TIGHT)
    q = [[0.8, 0.36, 0.48, 0.0, 0, 0, z] for z in (0.1004, 0.0995)]
    check(model, q, [[1, 2, 1, 1, 0, -1], [3, 0.2, 1, 0.1, -0.6, -0.05]], 0.1)


def test_an_impact() -> None:
    model = block().with_contacts(lw.Ground(), material=lw.Material(friction=0.6, restitution=0.3), rules=TIGHT)
    tilt = 0.2
    q = np.array([[np.cos(tilt / 2), 0, np.sin(tilt / 2), 0, 0, 0, 0.1 * np.sin(tilt) + 0.05 * np.cos(tilt)]])
    v = np.array([[0.1, 0.2, 0.1, 0.3, 0.1, -1.0]])
    f = model.function("impact")
    expected = differences(model, f, [q, v], {1: "v"})
    found = along_units(model, f, [q, v], ("v",))
    assert np.abs(found.v - expected[0]).max() < 1e-6 * np.abs(expected[0]).max()


def stepped(m: Any, q: Any, v: Any, impulses: Any, cost: Any, tau: Any) -> dict[str, Any]:
    """A step with a cost that grows."""
    after = m.contact_step(q, v, tau, impulses, 0.002)
    return {"q": after.q, "v": after.v, "impulses": after.impulses, "cost": cost + after.v @ after.v + after.q[4] ** 2}


def test_fifty_steps_in_both_modes() -> None:
    model = quadruped()
    rows = model.function("contact_step").inputs[3][1][0]
    step = lw.compile(stepped, model, {"q": "q", "v": "v", "impulses": rows, "cost": "scalar", "tau": "v"})
    many = lw.rollout(step, 50, sequences="tau")
    rng = np.random.default_rng(5)
    q, v = standing(model), rng.normal(size=model.nv) * 0.1
    q[6] += 0.003
    tau = rng.normal(size=(50, model.nv)) * 0.5
    tau[:, 6:] += np.tile([0.0, 8.0], 4)
    at = (q, v, np.zeros(rows), 0.0, tau)
    value, by_q, by_v, by_tau = many.value_and_gradient("q", "v", "tau", of="cost")(*at)
    assert value == many(*at).cost
    eps = 1e-7
    for _ in range(3):
        dq, dv, dtau = rng.normal(size=model.nv), rng.normal(size=model.nv), rng.normal(size=tau.shape)
        ends = [
            many(model.integrate(q, s * dq), v + s * dv, at[2], 0.0, tau + s * dtau).cost for s in (eps, -eps)
        ]
        expected = (ends[0] - ends[1]) / (2 * eps)
        assert by_q @ dq + by_v @ dv + (by_tau * dtau).sum() == pytest.approx(expected, rel=1e-5)
        forward = many.jvp("q", "v", "tau")(*at, dq, dv, dtau).cost
        assert forward == pytest.approx(by_q @ dq + by_v @ dv + (by_tau * dtau).sum(), rel=1e-11)


def test_second_derivatives_are_refused() -> None:
    model = ball().with_contacts(lw.Ground(), material=RUBBER)
    with pytest.raises(lw.InputError, match="no second derivatives"):
        model.function("contact_step").hessian("v").program  # noqa: B018


def test_a_smoothed_backward_pass_sees_a_contact_before_it_is_made() -> None:
    q, v, zero = np.array([1.0, 0, 0, 0, 0, 0, 0.101]), np.array([0, 0, 0, 0.1, 0, -0.3]), np.zeros(6)

    def slope(**rules: Any) -> Any:
        model = ball().with_contacts(lw.Ground(), material=RUBBER, rules=lw.ContactRules(**rules))
        f = model.function("contact_step")
        after = f(q, v, zero, np.zeros(3), 0.002)
        return after.v, f.jvp("v")(q, v, zero, np.zeros(3), 0.002, np.eye(6)[5]).v[5]

    exact, smooth, narrow = slope(), slope(backward="smooth", smoothing=0.1), slope(backward="smooth", smoothing=1e-4)
    assert np.array_equal(exact[0], smooth[0])
    assert exact[1] == pytest.approx(1.0, abs=1e-12)
    assert 0.5 < smooth[1] < 0.99
    assert narrow[1] == pytest.approx(1.0, abs=1e-5)


def test_rules_of_the_backward_pass_are_checked() -> None:
    with pytest.raises(lw.InputError, match="no such derivatives"):
        lw.ContactRules(backward="blurred")  # type: ignore[arg-type]
    with pytest.raises(lw.InputError, match="no impulse"):
        lw.ContactRules(smoothing=0.0)
