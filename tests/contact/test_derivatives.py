"""Derivatives of steps with contact, against differences of the steps themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.contact.scenes import ball, block, shape

TIGHT = lw.ContactRules(rounds=60, tolerance=1e-14)
RUBBER = lw.Material(friction=0.6)


def quadruped(material: lw.Material = RUBBER, rules: lw.ContactRules = TIGHT, legs: int = 4) -> lw.Model:
    """A trunk with four legs of two joints each, or some of these, on round feet."""
    b = lw.ModelBuilder("quadruped")
    b.add_body("trunk", joint=lw.Free(), mass=8.0, inertia=np.diag([0.06, 0.25, 0.28]))
    down = lw.transform(xyz=(0, 0, -0.2))
    rod = {"mass": 0.4, "com": (0, 0, -0.1), "inertia": np.diag([2e-3, 2e-3, 2e-4])}
    for name, x, y in (("fl", 0.2, 0.1), ("hr", -0.2, -0.1), ("fr", 0.2, -0.1), ("hl", -0.2, 0.1))[:legs]:
        at = lw.transform(xyz=(x, y, 0))
        b.add_body(f"{name}_thigh", parent="trunk", joint=lw.Revolute(axis=(0.2, 1, 0)), placement=at, **rod)  # type: ignore[arg-type]
        foot = [shape("sphere", (0.02,), down)]
        knee = lw.Revolute(axis=(0, 1, 0))
        b.add_body(f"{name}_shin", parent=f"{name}_thigh", joint=knee, placement=down, collisions=foot, **rod)  # type: ignore[arg-type]
    return b.build().with_contacts(lw.Ground(), material=material, rules=rules, between=[])


def standing(model: lw.Model) -> np.ndarray:
    """A crouched q whose feet touch the ground."""
    q = np.array([1.0, 0, 0, 0, 0, 0, 1.0, *[0.6, -1.1] * ((model.nq - 7) // 2)])
    q[6] -= float(model.contacts.points(q).gap.min())
    return q


def differences(model: lw.Model, f: Any, at: list[np.ndarray], places: dict[int, str], step: float = 1e-7) -> Any:
    """Central differences of all outputs along unit directions of some inputs: states, directions, numbers."""
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


ALL = ("q", "v", "gaps", "impulses")


def check(
    model: lw.Model, q: Any, v: Any, tau: Any, outputs: tuple[str, ...] = ALL, alike: float = 1e-12
) -> lw.CompiledFunction:
    """Both modes of one step of 2 ms at several states."""
    f = model.function("contact_step")
    q, v = np.atleast_2d(np.asarray(q, float)), np.atleast_2d(np.asarray(v, float))
    tau = np.broadcast_to(np.asarray(tau, float), v.shape)
    dt = np.full(len(q), 0.002)
    start = f(q, v, tau, np.zeros((len(q), f.inputs[3][1][0])), dt).impulses
    at = [q, v, tau, start, dt]
    names = ("q", "v", "tau", "impulses")
    expected = differences(model, f, at, dict(enumerate(names)))
    found = along_units(model, f, at, names)
    after = f(*at)
    assert after.residuals.max() < 1e-13
    for name in outputs:
        a, b = getattr(found, name), expected[after._fields.index(name)]
        scale = np.maximum(np.abs(b).max(axis=(1, 2), keepdims=True), 1e-2)
        assert np.abs((a - b) / scale).max() < 1e-6, name
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=x.shape) * (name in outputs) for name, x in zip(after._fields, after, strict=True)]
    back = np.concatenate(f.vjp(*names)(*at, *weights), axis=-1)
    forth = sum((w[:, None] * x).reshape(*x.shape[:2], -1).sum(-1) for w, x in zip(weights, found, strict=True))
    assert np.abs(back - forth).max() < alike * np.abs(forth).max()
    return f


def test_a_ball_that_flies_sticks_slides_and_lands() -> None:
    model = ball().with_contacts(lw.Ground(), material=RUBBER, rules=TIGHT)
    turned = np.array([0.8, 0.36, 0.48, 0.0])
    q = [[*turned, 0, 0, z] for z in (0.2, 0.1, 0.1 - 1e-5, 0.1004)]
    v = [
        [0.1, 0.2, 0.3, 1, 0, 0],
        [0.1, 0.23, 0.3, 0.02, -0.01, -0.1],
        [3, 0.2, 1, 1, -0.6, -0.05],
        [1, 2, 1, 1, 0, -1],
    ]
    check(model, q, v, [0.01, 0.02, 0.03, 0.1, 0.2, 0.3])


def test_a_box_that_stands_slides_and_lands_on_an_edge() -> None:
    model = block().with_contacts(lw.Ground(), material=RUBBER, rules=TIGHT)
    tilt = 0.2
    edge = 0.1 * np.sin(tilt) + 0.05 * np.cos(tilt) - 0.0005
    # How far a step goes with the mean velocity has a kink where several gaps are zero, the velocity at its end has
    # none; of four corners the impulses are not unique, and the small system is nearly singular.
    check(model, [[1, 0, 0, 0, 0, 0, 0.05]] * 2, [[0.0] * 6, [0, 0, 0, 1, 0.3, -0.05]], 0.0, ("v",), 1e-8)
    on_edge = [np.cos(tilt / 2), 0, np.sin(tilt / 2), 0, 0, 0, edge]
    check(model, on_edge, [0.1, 0.2, 0, 0.03, 0.1, -0.1], 0.0, ("q", "v", "gaps"), 1e-8)


def test_a_box_that_slides_on_four_corners_has_the_derivative_of_the_closed_form() -> None:
    """v⁺ = v - μ(gh - v_z) v/|v| along the ground, whatever share of the load each corner bears."""
    model, h, mu = block().with_contacts(lw.Ground(), material=RUBBER, rules=TIGHT), 0.002, 0.6
    v = np.array([0, 0, 0, 1.0, 0.3, 0])
    given = [[1, 0, 0, 0, 0, 0, 0.05], v, np.zeros(6), np.zeros(12), h]
    found = model.function("contact_step").jvp("v")(*given, np.eye(6)[3:]).v[:, 3:]
    u, speed = v[3:5] / np.linalg.norm(v[3:5]), np.linalg.norm(v[3:5])
    wanted = np.zeros((3, 3))
    wanted[:2, :2] = np.eye(2) - mu * 9.81 * h / speed * (np.eye(2) - np.outer(u, u))
    wanted[2, :2] = mu * u
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("spin", [3.0, 20.0])
def test_a_box_that_spins_on_four_corners_does_not_jump(spin: float) -> None:
    """Corners that are as near as each other count alike: it stays where it is, and steps change as velocities do."""
    model = block().with_contacts(lw.Ground(), material=RUBBER, rules=TIGHT)
    f, q, v = model.function("contact_step"), np.array([1, 0, 0, 0, 0, 0, 0.05]), np.array([0, 0, spin, 0, 0, 0])
    given = [np.zeros(6), np.zeros(12), 0.002]
    end = f(q, v, *given)
    assert np.abs(end.v[3:]).max() < 1e-12
    for size in (1e-9, 1e-5):
        sides = [f(np.tile(q, (6, 1)), v + side * np.eye(6), *given).v for side in (size, -size)]
        assert np.abs(sides[0] - sides[1]).max() < 15.0 * 2.0 * size
    found, expected = f.jvp("v")(q, v, *given, np.eye(6)).v, (sides[0] - sides[1]) / (2.0 * size)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("passive", [False, True])
def test_a_quadruped_that_stands_with_feet_that_lift_and_slide(passive: bool) -> None:
    model = quadruped(rules=replace(TIGHT, passive=passive))
    rng = np.random.default_rng(3)
    q = np.stack([standing(model)] * 4)
    tau = np.zeros((4, model.nv))
    tau[1:, 6:] = rng.normal(size=(3, 8)) * 4.0
    v = rng.normal(size=(4, model.nv)) * 0.3
    v[0] *= 0.1
    v[0, 5], v[1, 5], v[2, 3] = -0.3, 0.6, 1.5
    f = check(model, q, v, tau)
    after = f(q, v, tau, np.zeros(12), 0.002)
    normal, friction = after.impulses[:, ::3], np.hypot(after.impulses[:, 1::3], after.impulses[:, 2::3])
    touching, sliding = normal > 0.0, friction > 0.6 * normal * (1 - 1e-9)
    assert touching[0].all() and not touching[1].all()
    assert (touching & sliding).any() and (touching & ~sliding).any()


def test_all_jacobians_of_a_step_in_one_call() -> None:
    model, rng = quadruped(), np.random.default_rng(3)
    q, n = standing(model), model.nv
    q[6] += 1e-3  # feet land, away from the kink of what rests
    v, tau = 0.3 * rng.normal(size=n), 3.0 * rng.normal(size=n)
    v[5] = -2.0
    lin = model.contacts.linearize_step(np.stack([q, q]), v, tau)
    assert lin._fields == ("dq", "dv", "dtau")
    assert lin.dq.shape == lin.dv.shape == lin.dtau.shape == (2, 2 * n, n)
    end = model.contact_step(q, v, tau)
    assert (end.impulses.reshape(-1, 3)[:, 0] > 0.0).sum() >= 2

    def change(q: Any, v: Any, tau: Any) -> Any:
        moved = model.contact_step(q, v, tau)
        return [np.concatenate([model.difference(end.q, moved.q), moved.v])]

    for name, place, size in (("dq", 0, 1e-7), ("dv", 1, 1e-6), ("dtau", 2, 1e-3)):
        ((columns,),) = (
            differences(model, lambda *x: [y[None] for y in change(*x)], [q, v, tau], {place: name[1:]}, size),
        )
        found = getattr(lin, name)
        np.testing.assert_allclose(found[0], columns[0].T, rtol=2e-6, atol=2e-6 * np.abs(found[0]).max())
        np.testing.assert_array_equal(found[0], found[1])
    with pytest.raises(lw.InputError, match="one array"):
        model.function("contact_step").jacobians("q")


def arm(material: lw.Material, *, joint_rows: bool) -> lw.Model:
    """Two links that hang, with a ball at their end above a floor at -1.9 m."""
    rules = lw.ContactRules(rounds=60, tolerance=1e-14, joint_limits=joint_rows, joint_friction=joint_rows)
    b = lw.ModelBuilder("arm")
    rod = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.diag([0.1, 0.1, 0.01])}
    hinge = lw.Revolute(axis=(0, 1, 0))
    b.add_body("upper", joint=hinge, limits=lw.JointLimits(-0.5, 0.5), friction=0.4, **rod)  # type: ignore[arg-type]
    tip = [shape("sphere", (0.05,), lw.transform(xyz=(0, 0, -1)))]
    b.add_body(
        "lower",
        parent="upper",
        joint=hinge,
        placement=lw.transform(xyz=(0, 0, -1)),
        friction=0.3,
        collisions=tip,
        **rod,
    )  # type: ignore[arg-type]
    deep = lw.Ground(tuple(map(tuple, lw.transform(xyz=(0, 0, -1.9)).tolist())))
    return b.build().with_contacts(deep, material=material, rules=rules)


def four_bar(solver: Any) -> tuple[lw.Model, np.ndarray, np.ndarray]:
    """A mechanism that is closed, with a knob on the ground; its configuration and velocity."""
    hinge = lw.Revolute(axis=(0, 1, 0))
    b = lw.ModelBuilder("four-bar")
    rod: dict[str, Any] = {"mass": 1.0, "inertia": np.diag([1 / 12, 1 / 12, 1e-3])}
    b.add_body("left", joint=hinge, com=(0, 0, 0.5), **rod)
    knob = [shape("sphere", (0.1,), lw.transform(xyz=(0.4, 0, 0)))]
    b.add_body(
        "top",
        parent="left",
        joint=hinge,
        placement=lw.transform(xyz=(0, 0, 1)),
        com=(0.5, 0, 0),
        collisions=knob,
        **rod,
    )
    b.add_body("right", joint=hinge, placement=lw.transform(xyz=(1, 0, 0)), com=(0, 0, 0.5), **rod)
    ends = lw.transform(xyz=(1, 0, 0)), lw.transform(xyz=(0, 0, 1))
    b.add_closure("pin", body_a="top", placement_a=ends[0], body_b="right", placement_b=ends[1], joint=hinge)
    free = b.build()
    q = np.array(free.assemble([0.3, -0.3, 0.3]))
    below = np.cos(0.3) - 0.1
    ground = lw.Ground(tuple(map(tuple, lw.transform(xyz=(0, 0, below)).tolist())))
    model = free.with_contacts(ground, material=lw.Material(friction=0.0), rules=replace(TIGHT, solver=solver))
    return model, q, 0.2 * np.array([1.0, -1.0, 1.0])


def followers() -> lw.Model:
    """Two slides, of which one follows the other."""
    b = lw.ModelBuilder("followers")
    down: dict[str, Any] = {"joint": lw.Prismatic(axis=(0.1, 0, -1)), "collisions": [shape("sphere", (0.1,))]}
    b.add_body("first", mass=1.0, joint_name="lead", **down)
    high = lw.transform(xyz=(1, 0, 0))
    b.add_body("second", mass=3.0, mimic=lw.Mimic("lead", multiplier=2.0), placement=high, **down)
    ground = lw.Ground(tuple(map(tuple, lw.transform(xyz=(0, 0, -0.55)).tolist())))
    return b.build().with_contacts(ground, material=RUBBER, rules=TIGHT)


def cantilever() -> lw.Model:
    """A flexible beam with a foot."""
    beam = lw.FlexibleBody.beam(
        length=1.0, EA=4e6, EI=(300.0, 300.0), GJ=230.0, mass_per_length=0.5, modes=(2, 2), axial_modes=0, damping=0.1
    )
    b = lw.ModelBuilder("cantilever")
    b.add_body("arm", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    b.add_body("foot", parent="arm", at="tip", mass=0.2, collisions=[shape("sphere", (0.02,))])
    ground = lw.Ground(tuple(map(tuple, lw.transform(xyz=(0, 0, -0.02)).tolist())))
    return b.build().with_contacts(ground, material=RUBBER, rules=TIGHT)


def of_all_kinds() -> dict[str, tuple[lw.Model, Any, Any]]:
    """Models with a state in which something touches, each for another reason why Jacobians could be wrong."""
    rng = np.random.default_rng(4)
    legs, two, lying = quadruped(), quadruped(legs=2), block().with_contacts(lw.Ground(), material=RUBBER, rules=TIGHT)
    on_legs = standing(legs), 0.2 * rng.normal(size=legs.nv)
    on_two = standing(two), on_legs[1][: two.nv]
    on_edge = np.array([np.cos(0.1), 0, np.sin(0.1), 0, 0, 0, 0.1 * np.sin(0.2) + 0.05 * np.cos(0.2) - 5e-4])
    closed, q, v = four_bar("dual")
    beam = cantilever()
    return {
        "legs": (legs, *on_legs),
        "parameters": (two.with_parameters(["trunk.mass", "fl_shin.com"]), *on_two),
        "smooth": (two.with_contacts(lw.Ground(), rules=replace(TIGHT, backward="smooth"), between=[]), *on_two),
        "passive": (two.with_contacts(lw.Ground(), rules=replace(TIGHT, passive=True), between=[]), *on_two),
        "primal": (two.with_contacts(lw.Ground(), rules=replace(TIGHT, solver="primal"), between=[]), *on_two),
        "alone": (lying, on_edge, np.array([0.1, 0.2, 0, 0.03, 0.1, -0.1])),
        "joint rows": (arm(RUBBER, joint_rows=True), np.array([0.4998, 1.2]), np.array([0.2, 0.5])),
        "closed": (closed, q, v),
        "followers": (followers(), np.array([0.2262]), np.array([0.3])),
        "flexible": (beam, np.zeros(beam.nq), 0.1 * rng.normal(size=beam.nv)),
    }


KINDS = ("legs", "parameters", "smooth", "passive", "primal", "alone", "joint rows", "closed", "followers", "flexible")


@pytest.mark.parametrize("kind", KINDS)
def test_jacobians_in_one_call_are_those_of_forward_mode(kind: str) -> None:
    model, q, v = of_all_kinds()[kind]
    n, tau = model.nv, 0.3 * np.random.default_rng(6).normal(size=model.nv)
    f = model.function("contact_change")
    more = (model.parameters.nominal,) if f.inputs[-1][0] == "p" else ()
    given = (q, v, tau, np.zeros(f.inputs[3][1]), 0.002, *more)
    assert np.abs(model.contact_step(q, v, tau).impulses).max() > 1e-4
    found = np.concatenate(model.contacts.linearize_step(q, v, tau), axis=1)
    units = np.eye(3 * n)
    expected = f.jvp("q", "v", "tau")(*given, *(units[:, k * n : (k + 1) * n] for k in range(3))).T
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    by_dt, along = f.jacobian("dt")(*given), f.jvp("dt")(*given, 1.0)
    np.testing.assert_allclose(by_dt, along, atol=1e-9 * np.abs(along).max())
    for name, size in f.inputs[5:]:
        columns = f.jvp(name)(*given, np.eye(*size)).T
        np.testing.assert_allclose(f.jacobian(name)(*given), columns, atol=1e-9 * np.abs(columns).max())


def test_joints_at_their_limits_and_with_dry_friction() -> None:
    model = arm(RUBBER, joint_rows=True)
    bent = np.arccos((1.9 - 0.05 - np.cos(0.2)) / 1.0) - 0.2
    q = [[0.1, 0.9], [0.4998, 1.2], [0.02, 1.5], [0.2, bent]]
    v = [[0.3, -0.4], [0.2, 0.5], [0.0, 0.0], [0.05, -0.5]]
    check(model, q, v, [[0.3, 0.1], [0.2, -0.1], [6.3, 4.9], [0.1, 0.0]])


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_a_closed_mechanism_on_the_ground(solver: Any) -> None:
    model, q, v = four_bar(solver)
    # Forbidden motions count as 1e7 times as heavy, which costs rounding as many digits.
    check(model, [q, q], [v, -v], [0.1, 0.2, 0.3], alike=1e-12 if solver == "dual" else 1e-8)


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
    expected = differences(model, f, [q, v], {1: "v"}, 1e-6)
    found = along_units(model, f, [q, v], ("v",))
    assert np.abs(found.v - expected[0]).max() < 1e-6 * np.abs(expected[0]).max()


def stepped(m: Any, q: Any, v: Any, impulses: Any, cost: Any, tau: Any) -> dict[str, Any]:
    """A step with a cost that grows."""
    after = m.contact_step(q, v, tau, impulses, 0.002)
    return {"q": after.q, "v": after.v, "impulses": after.impulses, "cost": cost + after.v @ after.v + after.q[-2] ** 2}


def check_rollout(model: lw.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
    """Both modes of a cost of 50 steps, by the state at the start and all forces."""
    rows = model.function("contact_step").inputs[3][1][0]
    step = lw.compile(stepped, model, {"q": "q", "v": "v", "impulses": rows, "cost": "scalar", "tau": "v"})
    many = lw.rollout(step, 50, sequences="tau")
    at = (q, v, np.zeros(rows), 0.0, tau)
    value, by_q, by_v, by_tau = many.value_and_gradient("q", "v", "tau", of="cost")(*at)
    assert value == many(*at).cost
    rng = np.random.default_rng(7)
    for _ in range(3):
        d = [rng.normal(size=x.shape) for x in (v, v, tau)]
        ends = [
            many(model.integrate(q, s * d[0]), v + s * d[1], at[2], 0.0, tau + s * d[2]).cost for s in (1e-7, -1e-7)
        ]
        back = by_q @ d[0] + by_v @ d[1] + (by_tau * d[2]).sum()
        assert back == pytest.approx((ends[0] - ends[1]) / 2e-7, rel=1e-6)
        assert many.jvp("q", "v", "tau")(*at, *d).cost == pytest.approx(back, rel=1e-11)


def test_fifty_steps_of_a_ball_that_bounces() -> None:
    model = ball().with_contacts(lw.Ground(), material=lw.Material(friction=0.3, restitution=0.7), rules=TIGHT)
    tau = np.random.default_rng(5).normal(size=(50, 6)) * 0.1
    check_rollout(model, np.array([0.8, 0.36, 0.48, 0, 0, 0, 0.15]), np.array([1.0, 5, 1, 1, 0.3, -1]), tau)


def test_fifty_steps_of_an_arm_that_pushes_into_a_floor_that_gives_way() -> None:
    model = arm(lw.Material(friction=0.6, stiffness=2e4, damping=0.01), joint_rows=False)
    tau = np.random.default_rng(5).normal(size=(50, 2))
    bent = np.arccos((1.9 - 0.05 - np.cos(0.2)) / 1.0) - 0.2
    check_rollout(model, np.array([0.2, bent]), np.array([0.1, -1.0]), tau)


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
    with pytest.raises(lw.InputError, match="smoothing"):
        lw.ContactRules(smoothing=0.0)


def test_feet_that_stand_still_while_the_trunk_sinks_have_derivatives_that_are_bounded() -> None:
    """Gaps that rounding decides do not say how far a step goes: slopes of 1e8 along them would be of no use."""
    model = quadruped(rules=lw.ContactRules())
    q0 = standing(model)
    still = lw.simulate(model, q0, duration=1.0, dt=0.002, control=lw.PD(model, q0, kp=200.0, kd=4.0))
    v = 1e-10 * np.random.default_rng(0).normal(size=(200, model.nv))
    q = model.integrate(still.q[-1], np.linspace(-2e-12, 2e-12, 200)[:, None] * np.eye(model.nv)[5])
    for dt in (0.002, 0.02):
        lin = model.contacts.linearize_step(q, v, 0.97 * still.tau[-1], dt=dt)
        assert np.abs(lin.dq[:, : model.nv]).max() < 20.0
