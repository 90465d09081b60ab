"""Laws of surfaces against closed forms: spinning, rolling, anisotropy, restitution, moving grounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.contact.scenes import G, ball, block, contact, one_body, placed, shape, tilted

R, M = 0.1, 1.0
J = 0.4 * M * R * R


def on_ground(model: lw.Model, ground: lw.Ground | None = None, **material: object) -> lw.Model:
    return model.with_contacts(ground or lw.Ground(), material=lw.Material(**material))  # type: ignore[arg-type]


def test_a_spinning_ball_stops_by_torsional_friction() -> None:
    model = on_ground(ball(R, M), friction=0.5, torsion=0.01)
    spin, slows = 20.0, 0.01 * M * G / J
    run = lw.simulate(model, placed(R), [0, 0, spin, 0, 0, 0], duration=1.5, dt=0.001, method="moreau")
    turning = run.t < 0.9 * spin / slows
    assert run.v[turning, 2] == pytest.approx(spin - slows * run.t[turning], rel=1e-9)
    assert np.abs(run.v[run.t > spin / slows + 0.002]).max() < 1e-12


def test_a_rolling_ball_stops_by_rolling_friction() -> None:
    """The moment ρn about the contact point, where it rolls without slip, turns (7/5)MR²."""
    rho, speed = 0.002, 1.0
    model = on_ground(ball(R, M), friction=0.5, rolling=rho)
    run = lw.simulate(model, placed(R), [0, speed / R, 0, speed, 0, 0], duration=8.0, dt=0.001, method="moreau")
    slows = rho * G / (1.4 * R)
    assert run.q[-1, 4] == pytest.approx(speed**2 / (2 * slows), rel=1e-5)
    assert np.abs(run.v[-1]).max() < 1e-12
    model = on_ground(ball(R, M), lw.Ground(tilted(np.arctan(0.95 * rho / R))), friction=0.5, rolling=rho)
    run = lw.simulate(model, placed(R, tilted(np.arctan(0.95 * rho / R))), duration=1.0, dt=0.001, method="moreau")
    assert np.abs(run.v).max() < 1e-10


@pytest.mark.parametrize(("heading", "mu"), [((1.0, 0.0), 0.2), ((0.0, 1.0), 0.6)])
def test_anisotropic_friction_along_its_axes(heading: tuple[float, float], mu: float) -> None:
    model = on_ground(block(), friction=(0.2, 0.6))
    run = lw.simulate(model, placed(0.05), [0, 0, 0, *heading, 0], duration=0.1, dt=0.001, method="moreau")
    speed = run.v[:, 3:5] @ heading
    assert speed == pytest.approx(1.0 - mu * G * run.t, rel=1e-6)


def test_anisotropic_friction_dissipates_most() -> None:
    """Across its axes a surface that rubs by (μ₁, μ₂) pushes along (μ₁²w₁, μ₂²w₂), not against the slip."""
    mu = np.array([0.2, 0.6])
    model = on_ground(one_body("sphere", (R,), M, [1e6] * 3), friction=tuple(mu))  # too heavy to turn
    w = np.array([1.0, 0.5])
    run = lw.simulate(model, placed(R), [0, 0, 0, *w, 0], duration=1e-3, dt=1e-4, method="moreau")
    force = np.diff(run.v[:2, 3:5], axis=0)[0] / 1e-4
    assert force == pytest.approx(-G * mu**2 * w / np.linalg.norm(mu * w), rel=1e-3)


def test_the_direction_of_anisotropic_friction_turns_with_its_ground() -> None:
    model = block().with_contacts(lw.Ground(tilted(np.pi / 2, axis=2)), material=lw.Material(friction=(0.2, 0.6)))
    run = lw.simulate(model, placed(0.05), [0, 0, 0, 1.0, 0, 0], duration=0.1, dt=0.001, method="moreau")
    assert run.v[-1, 3] == pytest.approx(1.0 - 0.6 * G * 0.1, rel=1e-6)


@pytest.mark.parametrize(
    ("of_ground", "of_body", "along"),
    [(None, (0.2, 0.6), 1), ((0.5, 0.5), (0.2, 0.6), 1), ((0.2, 0.6), (0.2, 0.6), 0), ((0.2, 0.6), (0.5, 0.5), 0)],
)
def test_the_direction_of_anisotropic_friction_turns_with_the_body_whose_it_is(
    of_ground: Any, of_body: Any, along: int
) -> None:
    """A block that is turned by a right angle, thrown along x: across its own direction, along that of the ground."""
    own = None if of_ground is None else lw.Material(friction=of_ground)
    model = block().with_contacts(lw.Ground(material=own), material={"thing": lw.Material(friction=of_body)})
    q0 = np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5), 0, 0, 0.05])
    run = lw.simulate(model, q0, [0, 0, 0, 0, -1.0, 0], duration=0.1, dt=0.001, method="moreau")
    mu = np.sqrt(of_body[along] * (of_body if of_ground is None else of_ground)[along])
    assert run.v[-1, 3:5] == pytest.approx([0.0, -1.0 + mu * G * 0.1], abs=1e-6)


def test_laws_of_two_surfaces_are_those_of_the_one_that_has_them() -> None:
    """A hard ball on a ground that gives way or bounces: the laws of the ground's material, whichever is first."""
    plain = lw.Material(friction=0.3)
    soft = lw.Material(stiffness=1e4, damping=0.3, law="hunt_crossley")
    bouncy = lw.Material(restitution=0.5, impact="poisson")
    for first, second in ((plain, soft), (soft, plain)):
        both = first.with_other(second)
        assert (both.law, both.damping, both.stiffness) == ("hunt_crossley", 0.3, 1e4)
    for first, second in ((plain, bouncy), (bouncy, plain)):
        assert first.with_other(second).impact == "poisson"


def test_a_belt_takes_a_block_along() -> None:
    model = on_ground(block(), lw.Ground(velocity=(2.0, 0.0, 0.0)), friction=0.5)
    run = lw.simulate(model, placed(0.05), duration=1.0, dt=0.001, method="moreau")
    slides = run.t < 2.0 / (0.5 * G) - 0.005
    assert run.v[slides, 3] == pytest.approx(0.5 * G * run.t[slides], rel=1e-6)
    assert run.v[-1] == pytest.approx([0, 0, 0, 2.0, 0, 0], abs=1e-10)


def test_a_block_goes_round_with_a_turntable() -> None:
    spin, radius, mu = 2.0, 0.5, 0.5
    assert spin**2 * radius < mu * G
    model = on_ground(block(), lw.Ground(spin=(0.0, 0.0, spin)), friction=mu)
    q0 = placed(0.05)
    q0[4] = radius
    run = lw.simulate(model, q0, [0, 0, spin, 0, spin * radius, 0], duration=np.pi / spin, dt=0.001, method="moreau")
    assert run.q[-1, 4:6] == pytest.approx([-radius, 0.0], abs=1e-5)
    assert run.v[-1, 2] == pytest.approx(spin, abs=1e-6)


@pytest.mark.parametrize("moves", [{"velocity": (0.0, 0.0, 0.3)}, {"spin": (0.1, 0.0, 0.0)}])
def test_a_plane_moves_in_itself_alone(moves: dict[str, tuple[float, float, float]]) -> None:
    with pytest.raises(lw.InputError, match="in itself"):
        lw.Ground(**moves)  # type: ignore[arg-type]


def test_a_heavy_table_that_moves_takes_what_lies_on_it_along() -> None:
    b = lw.ModelBuilder("lift")
    plate = shape("box", (1.0, 1.0, 0.1))
    b.add_body("table", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1e5, collisions=[plate])
    at = np.eye(4)
    at[2, 3] = 0.05 + R
    inertia = np.diag([J] * 3)
    b.add_body("ball", joint=lw.Free(), placement=at, mass=M, inertia=inertia, collisions=[shape("sphere", (R,))])
    model = b.build().with_gravity((0, 0, 0)).with_contacts(between=[("table", "ball")])
    q0, v0 = model.neutral(), np.zeros(model.nv)
    v0[0] = 0.5
    run = lw.simulate(model, q0, v0, duration=0.1, dt=0.001, method="moreau")
    assert run.v[-1, -1] == pytest.approx(0.5, rel=2e-5)


@pytest.mark.parametrize(("solver", "dt"), [("dual", 0.0005), ("dual", 0.002), ("dual", 0.005), ("primal", 0.002)])
def test_a_shaken_table_carries_a_ball(solver: Any, dt: float) -> None:
    """A table moved by the clock, z = A(1 - cos ωt): what lies on it is pressed by m(g + z̈)."""
    A, omega = 0.02, 10.0
    assert A * omega**2 < G
    b = lw.ModelBuilder("shaker")
    plate = shape("box", (1.0, 1.0, 0.1))
    b.add_body("table", joint=lw.Prismatic(axis=(0, 0, 1)), joint_name="lift", mass=1.0, collisions=[plate])
    at = np.eye(4)
    at[2, 3] = 0.05 + R
    inertia = np.diag([J] * 3)
    b.add_body("ball", joint=lw.Free(), placement=at, mass=M, inertia=inertia, collisions=[shape("sphere", (R,))])
    b.add_coupling("drive", lw.closures.Prescribed("lift", lambda t: A * (1.0 - lw.math.cos(omega * t))))
    model = b.build().with_contacts(between=[("table", "ball")], rules=lw.ContactRules(solver=solver))
    run = lw.simulate(model, model.neutral(), duration=0.5, dt=dt, method="moreau")
    middle = run.t[1:] - dt / 2
    force = M * (G + A * omega**2 * np.cos(omega * middle))
    late = middle > 0.05
    assert contact(run, "impulses")[1:, 0][late] / dt == pytest.approx(force[late], rel=2.0 * dt**2)
    assert run.q[:, 0] == pytest.approx(A * (1.0 - np.cos(omega * run.t)), abs=1e-12)
    assert np.abs(contact(run, "gaps")).max() < 3.0 * dt**3


@pytest.mark.parametrize("solver", ["dual", "primal"])
@pytest.mark.parametrize(
    ("A", "omega", "dt"), [(0.002, 40.0, 0.001), (0.002, 40.0, 0.005), (0.05, 13.0, 0.002), (0.002, 65.0, 0.002)]
)
def test_forces_on_a_table_that_shakes_fast_do_not_chatter(solver: Any, A: float, omega: float, dt: float) -> None:
    """A brick on it: forces are means of steps, (ωh)²/24 of the table's acceleration from those in their middles."""
    b = lw.ModelBuilder("shaker")
    plate, at = shape("box", (1.0, 1.0, 0.1)), np.eye(4)
    at[:3, 3] = 0.3, 0.2, 0.1
    b.add_body("table", joint=lw.Prismatic(axis=(0, 0, 1)), joint_name="lift", mass=1.0, collisions=[plate])
    inertia, brick = np.diag([0.0042, 0.0042, 0.0067]), shape("box", (0.2, 0.2, 0.1))
    b.add_body("brick", joint=lw.Free(), placement=at, mass=M, inertia=inertia, collisions=[brick])
    b.add_coupling("drive", lw.closures.Prescribed("lift", lambda t: A * (1.0 - lw.math.cos(omega * t))))
    model = b.build().with_contacts(between=[("table", "brick")], rules=lw.ContactRules(solver=solver))
    run = lw.simulate(model, model.neutral(), duration=0.5, dt=dt, method="moreau")
    middle = run.t[1:] - dt / 2
    force = contact(run, "impulses")[1:, :12].reshape(-1, 4, 3)[..., 0].sum(axis=1) / dt
    late, most = middle > 0.05, M * A * omega**2
    assert np.abs(force - M * (G + A * omega**2 * np.cos(omega * middle)))[late].max() < most * (omega * dt) ** 2 / 15.0
    assert np.abs(run.v[:, 1:4]).max() < 1e-9


def struck(**material: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocities before and after a spinning rod's end hits the ground, and the impulses."""
    at = np.eye(4)
    at[:3, 3] = (0.3, 0.0, -0.2)
    b = lw.ModelBuilder("rod")
    inertia = np.diag([0.02, 0.03, 0.03])
    b.add_body("rod", joint=lw.Free(), mass=1.0, inertia=inertia, collisions=[shape("sphere", (0.05,), at)])
    model = on_ground(b.build().with_gravity((0, 0, 0)), **material)
    q0, v0 = placed(0.25), np.array([0.0, 1.0, 0.0, 1.5, 0.2, -2.0])
    dt = 1e-4
    done = model.contact_step(q0, v0, np.zeros(6), dt=dt)
    arm = np.array([0.3, 0.0, -0.25])

    def at_point(v: np.ndarray) -> np.ndarray:
        return np.asarray(v[3:] + np.cross(v[:3], arm))

    return at_point(v0), at_point(done.v), done.impulses


def test_newton_restitution_reverses_a_part_of_the_speed() -> None:
    before, after, _ = struck(friction=0.3, restitution=0.6)
    assert after[2] == pytest.approx(-0.6 * before[2], abs=2e-3)  # rows of the middle of the step


def test_poisson_restitution_returns_a_part_of_the_impulse() -> None:
    _, _, compression = struck(friction=0.3, restitution=0.0)
    _, after, whole = struck(friction=0.3, restitution=0.6, impact="poisson")
    assert whole[0] == pytest.approx(1.6 * compression[0], rel=1e-9)
    assert after[2] > 0.0


def test_both_laws_agree_without_friction() -> None:
    newton = struck(friction=0.0, restitution=0.6)[1]
    poisson = struck(friction=0.0, restitution=0.6, impact="poisson")[1]
    assert newton == pytest.approx(poisson, abs=2e-3)


def test_three_balls_that_touch_by_poisson() -> None:
    """All three are compressed at once; then each pair gets back what it stored: -1/3, 2/3, 2/3."""
    b = lw.ModelBuilder("row")
    for k in range(3):
        at = np.eye(4)
        at[0, 3] = k * 2 * R
        given = {"mass": 1.0, "placement": at, "collisions": [shape("sphere", (R,))]}
        b.add_body(f"b{k}", joint=lw.Prismatic(axis=(1, 0, 0)), **given)  # type: ignore[arg-type]
    law = lw.Material(friction=0.0, restitution=1.0, impact="poisson", threshold=0.0)
    model = b.build().with_contacts(between=[("b0", "b1"), ("b1", "b2")], material=law)
    # The second pair hardly approaches; it is compressed by the first.
    done = model.contact_step(np.zeros(3), np.array([1.0, 0.0, -1e-12]), np.zeros(3), dt=1e-4)
    assert done.v == pytest.approx([-1 / 3, 2 / 3, 2 / 3], abs=1e-6)


def test_slow_approaches_do_not_bounce() -> None:
    for threshold, bounces in ((0.5, False), (0.05, True)):
        model = on_ground(ball(R, M).with_gravity((0, 0, 0)), restitution=1.0, threshold=threshold)
        run = lw.simulate(model, placed(R + 1e-3), [0, 0, 0, 0, 0, -0.1], duration=0.05, dt=1e-3, method="moreau")
        assert run.v[-1, 5] == pytest.approx(0.1 if bounces else 0.0, abs=1e-6)


@pytest.mark.parametrize(
    "material",
    [
        {"friction": -0.1},
        {"restitution": 1.5},
        {"stiffness": 0.0},
        {"law": "cubic"},
        {"impact": "stronge"},
        {"torsion": -1.0},
    ],
)
def test_impossible_materials_are_refused(material: dict[str, object]) -> None:
    with pytest.raises(lw.InputError, match=next(iter(material))):
        lw.Material(**material)  # type: ignore[arg-type]


def test_sliding_with_torsion_in_mujoco() -> None:
    """A spinning ball that does not slide: MuJoCo's torsional friction has the same length for a coefficient."""
    mujoco = pytest.importorskip("mujoco")
    xml = f"""<mujoco><option timestep="0.0005" cone="elliptic" impratio="100" iterations="200" tolerance="1e-12"/>
    <worldbody><geom type="plane" size="5 5 0.1" condim="4" friction="0.5 0.01 0" solref="0.002 1"/>
    <body pos="0 0 {R}"><freejoint/><geom type="sphere" size="{R}" mass="{M}" condim="4" friction="0.5 0.01 0"
    solref="0.002 1"/></body></worldbody></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(theirs)
    data.qvel[5] = 20.0
    while data.time < 0.5:
        mujoco.mj_step(theirs, data)
    model = on_ground(ball(R, M), friction=0.5, torsion=0.01)
    run = lw.simulate(model, placed(R), [0, 0, 20.0, 0, 0, 0], duration=data.time, dt=0.0005, method="moreau")
    assert run.v[-1, 2] == pytest.approx(data.qvel[5], rel=1e-2)  # MuJoCo's softness; ours is exact above
    assert contact(run, "impulses").shape[-1] == 4


@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_what_lies_does_not_bounce_by_poissons_law(restitution: float) -> None:
    """Weight presses in every step, and is no blow, however slow a blow may be that bounces."""
    law = lw.Material(friction=0.4, restitution=restitution, threshold=0.0, impact="poisson")
    for model, height in ((ball(), 0.1), (block(), 0.05)):
        still = model.with_contacts(lw.Ground(), material=law)
        run = lw.simulate(still, placed(height), duration=0.2, dt=0.005, method="moreau")
        assert np.abs(run.v).max() < 1e-12


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_gaps_of_the_start_are_those_of_the_start(solver: str) -> None:
    """They were zero, as if everything touched, before the first step."""
    model = block().with_contacts(lw.Ground(), rules=lw.ContactRules(solver=solver))  # type: ignore[arg-type]  # any word
    run = lw.simulate(model, [placed(0.3), placed(0.05)], duration=0.01, dt=0.005, method="moreau")
    assert run.contacts.gap[:, 0] == pytest.approx(np.array([[0.25] * 4, [0.0] * 4]), abs=1e-12)
    assert run.contacts.count[:, 0].tolist() == [0, 0]
    assert lw.Simulation(model, placed(0.3), dt=0.005, method="moreau").contacts.deepest[0] == pytest.approx(0.25)


FACTORS = np.array([[0.0], [0.4], [1.0], [1.5]])


@pytest.mark.parametrize(
    ("rules", "friction"),
    [({"solver": "dual"}, 0.5), ({"solver": "primal"}, 0.5), ({"points": 2}, 0.5), ({}, (0.5, 0.4))],
    ids=["dual", "primal", "kept", "anisotropic"],
)
def test_friction_is_a_run_time_parameter(rules: dict[str, Any], friction: Any) -> None:
    body = block().with_contacts(lw.Ground(), material=lw.Material(friction=friction), rules=lw.ContactRules(**rules))
    model = body.with_parameters(["thing.mass", "friction"])
    p = np.hstack([np.ones_like(FACTORS), FACTORS])
    given = {"duration": 0.2, "dt": 0.002, "p": p}
    motion = lw.simulate(model, np.tile(placed(0.05), (4, 1)), np.tile([0, 0, 0, 2.0, 0, 0], (4, 1)), **given)
    assert np.allclose(motion.v[:, -1, 3], 2.0 - 0.5 * FACTORS[:, 0] * G * 0.2, rtol=0, atol=1e-6)
    assert np.allclose(motion.contacts.friction[:, -1, :, 0], 0.5 * FACTORS)
    assert (motion.contacts.mode[1:, -1] == 1).all()  # they slip, by the friction that they have


@pytest.mark.parametrize("solver", ["dual", "primal"])
@pytest.mark.parametrize("material", [{"friction": 0.3}, {"friction": 0.3, "torsion": 0.01, "rolling": 0.01}])
def test_steps_have_derivatives_by_friction(solver: Any, material: dict[str, float]) -> None:
    rules = lw.ContactRules(solver=solver, tolerance=1e-13)
    model = ball().with_contacts(lw.Ground(), material=lw.Material(**material), rules=rules)
    step = model.with_parameters(["friction"]).function("contact_step")
    state = placed(0.1), [1, 2, 3, 2.0, 1.0, -1.0], np.zeros(6), np.zeros(step.inputs[3][1][0]), 0.002
    less, more = (step(*state, [1.0 + x]).v for x in (-1e-5, 1e-5))
    expected = (more - less) / 2e-5
    assert np.abs(expected).max() > 1.0
    assert step.jacobian("p")(*state, [1.0]).v[:, 0] == pytest.approx(expected, abs=1e-6)


def test_friction_as_a_parameter_of_surfaces_that_give_way_and_of_impacts() -> None:
    soft = block().with_contacts(lw.Ground(), material=lw.Material(friction=0.5, stiffness=1e5, damping=0.01))
    q, v = np.tile(placed(0.05), (4, 1)), np.tile([0, 0, 0, 2.0, 0, 0], (4, 1))
    given = {"duration": 0.1, "method": "rk4", "dt": 1e-4, "p": FACTORS}
    motion = lw.simulate(soft.with_parameters(["friction"]), q, v, **given)
    assert np.allclose(motion.v[:, -1, 3], 2.0 - 0.5 * FACTORS[:, 0] * G * 0.1, rtol=0, atol=5e-3)

    hard = ball().with_contacts(lw.Ground(), material=lw.Material(friction=0.2)).with_parameters(["friction"])
    after = hard.contacts.impact(np.tile(placed(0.1), (4, 1)), np.tile([0, 0, 0, 3, 0, -1.0], (4, 1)), p=FACTORS)
    assert np.allclose(after.v[:, 3], 3.0 - 0.2 * FACTORS[:, 0], rtol=0, atol=1e-9)
    step = hard.function("contact_step")
    state = placed(0.1), [0, 0, 0, 3, 0, -1.0], np.zeros(6), np.zeros(3), 0.002
    less, more = (step(*state, [1.0 + x]).v for x in (-1e-4, 1e-4))
    along = step.jacobian("p")(*state, [1.0]).v
    assert np.allclose(along[:, 0], (more - less) / 2e-4, rtol=0, atol=1e-8)
    assert along[3, 0] < -0.2


def test_friction_is_no_parameter_of_what_has_no_shapes() -> None:
    with pytest.raises(lw.errors.UnknownNameError, match="friction"):
        lw.samples.planar_arm(2).with_parameters(["friction"])
