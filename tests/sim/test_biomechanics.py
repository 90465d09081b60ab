"""Tendons around shapes, muscles, fluids and compensation of gravity: beside MuJoCo, and by what must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from linkwise.files.compare import compare
from linkwise.mechanism.muscles import active_at_length, active_at_speed, speed_of
from linkwise.model.passive_forces import PassiveForces, as_joint_forces
from linkwise.model.transmissions import MovingFrames, length, speed
from tests.files.mujoco_of_mjcf import Beside, mujoco, random_state

SWIMMER = """<mujoco><option density="1000" viscosity="0.0009" wind="0.3 -0.2 0.1"/><worldbody>
<body name="head" pos="0 0 1">{joints}
<geom name="skull" type="ellipsoid" size="0.1 0.06 0.04" density="900" {first} fluidcoef="0.4 0.2 1.4 0.9 1.1"/>
<body name="mid" pos="-0.1 0 0"><joint name="neck" axis="0 0 1"/>
<geom name="trunk" type="capsule" fromto="0 0 0 -0.2 0 0" size="0.03" {second}/>
<geom type="box" size="0.02 0.01 0.05" pos="-0.1 0 0.05" euler="10 20 30"/>
<body name="fin" pos="-0.2 0 0"><geom name="blade" type="cylinder" size="0.03 0.05" euler="20 0 40" {third}/>
</body></body></body></worldbody>
<actuator><motor name="tail" joint="neck"/></actuator></mujoco>"""

LEG = """<mujoco><option gravity="0 1 -9" integrator="RK4" timestep="0.001"/><worldbody>
<site name="origin" pos="0 0.03 0.9"/>
<body name="thigh" pos="0 0 1" gravcomp="0.7"><joint name="hip" axis="0 1 0"/><joint name="twist" axis="0 0 1"/>
 <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05"/>
 <site name="t1" pos="0.06 0.01 -0.1"/><site name="t2" pos="0.05 0 -0.3"/>
 <geom name="ball" type="sphere" size="0.06" pos="0.0 0.01 -0.4" mass="0"/>
 <geom name="rod" type="cylinder" size="0.05 0.1" pos="0 0 -0.4" euler="90 10 0" mass="0"/>
 <site name="outer" pos="0.1 0 -0.4"/><site name="inner" pos="0.02 0 -0.41"/>
 <body name="shank" pos="0 0 -0.4" gravcomp="-0.2"><joint name="knee" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.04"/>
  <site name="k1" pos="0.04 0.01 -0.12"/><site name="k2" pos="-0.05 0 -0.1"/></body></body></worldbody>
<tendon><spatial name="quad" stiffness="100" damping="{damping}" springlength="0.3 0.4"><site site="origin"/>
  <site site="t1"/><geom geom="{geom}" {side}/><site site="k1"/><pulley divisor="2"/><site site="t2"/><site site="k2"/>
 </spatial>
 <fixed name="band" {more}><joint joint="hip" coef="1"/><joint joint="knee" coef="-0.5"/></fixed></tendon>
<actuator>
 <muscle name="long" tendon="quad" lengthrange="0.2 0.6" force="-1" scale="200" timeconst="0.01 0.04" tausmooth="0.3"/>
 <muscle name="short" joint="knee" lengthrange="-1 1" force="30" range="0.6 1.2" lmin="0.4" lmax="1.7" vmax="2"
  fpmax="1.4" fvmax="1.3"/>
 <motor name="pull" tendon="band" gear="3"/></actuator>
<sensor><tendonpos name="l" tendon="quad"/><tendonvel name="rate" tendon="quad"/>
 <tendonactuatorfrc name="on band" tendon="band"/><actuatorfrc name="f" actuator="long"/></sensor></mujoco>"""
SIDES = {"shorter": "", "outer": 'sidesite="outer"', "inner": 'sidesite="inner"'}


def leg(geom: str = "ball", side: str = "shorter", damping: float = 3.0, more: str = "") -> str:
    return LEG.format(geom=geom, side=SIDES[side], damping=damping, more=more)


def swimmer(*shapes: str, joints: str = "<freejoint/>") -> str:
    words = dict(zip(("first", "second", "third"), (f'fluidshape="{each}"' for each in shapes), strict=True))
    return SWIMMER.format(joints=joints, **words)


PLANAR = '<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/><joint name="turn"/>'


@pytest.mark.parametrize("shapes", [("none",) * 3, ("ellipsoid",) * 3, ("none", "ellipsoid", "none")])
def test_forces_of_a_fluid_are_mujocos(shapes: tuple[str, ...]) -> None:
    """A box of the body's inertia, or ellipsoids at shapes; a body without joints has its own."""
    text = swimmer(*shapes)
    model = lw.loads(text)
    assert [type(each).__name__ for each in model.fields] == [
        "FluidEllipsoid" if shape == "ellipsoid" else "FluidBox" for shape in shapes
    ]
    beside, rng = Beside.of_text(model, text), np.random.default_rng(0)
    for _ in range(10):
        q, v = random_state(model, rng)
        theirs = np.linalg.inv(beside.T(q)).T @ beside.at(q, v, passive=True).qfrc_fluid
        np.testing.assert_allclose(
            np.array(PassiveForces(model).total(q, v), float), theirs, atol=1e-12 * np.abs(theirs).max()
        )


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("geom", ["ball", "rod"])
def test_tendons_springs_and_muscles_are_mujocos(geom: str, side: str) -> None:
    """Lengths, speeds, springs with slack, muscles with their activation, compensation of gravity; joints of one axis.

    From within, MuJoCo's Newton steps end at 1e-6 rad; ours go on.
    """
    text = leg(geom, side)
    model = lw.loads(text)
    beside, rng = Beside.of_text(model, text), np.random.default_rng(1)
    m, worst, touched = beside.m, 0.0, 0
    exact = 1e-6 if side == "inner" else 1e-11
    for _ in range(40):
        q, v = random_state(model, rng)
        u, x = rng.uniform(-0.2, 1.2, 3), rng.uniform(0.0, 1.0, 2)
        data = beside.at(q, v, passive=True)
        data.ctrl[:], data.act[:] = u, x
        mujoco.mj_forward(m, data)
        touched += int(data.ten_wrapnum[0] > 6)
        way, places = model.springs["quad"].transmission, MovingFrames(model, q, v)
        assert float(length(places, way)) == pytest.approx(data.ten_length[0], abs=1e-11)
        assert float(speed(places, way)) == pytest.approx(data.ten_velocity[0], abs=exact)
        drives = lw.Drives(model, u)
        np.testing.assert_allclose(
            np.array(drives.forces(0.0, q, v, x, ()), float), data.actuator_force, rtol=exact, atol=exact * 100
        )
        np.testing.assert_allclose(np.array(drives.rate(0.0, q, v, x, ()), float), data.act_dot, rtol=1e-12)
        on_bodies = as_joint_forces(model, q, list((drives.wrench(0.0, q, v, x, ()) or {}).items()), None)
        ours = np.array(drives.force(0.0, q, v, x, ()), float) + np.array(on_bodies, float)
        passive = np.array(PassiveForces(model, lw.JointRules(friction=False)).total(q, v), float)
        for one, other in ((ours, data.qfrc_actuator), (passive, data.qfrc_passive)):
            worst = max(worst, float(np.abs(one - other).max() / np.abs(other).max()))
    assert worst < exact
    assert 5 < touched < 40  # both kinds of way were seen


def rolled(text: str, u: Any, steps: int, q: Any, v: Any) -> tuple[Any, Any]:
    """MuJoCo's data after so many of its Runge–Kutta steps without constraints, and its states on the way."""
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.integrator, m.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    m.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    m.actuator_actearly[:] = 0
    data = mujoco.MjData(m)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
    seen = []
    for _ in range(steps):
        mujoco.mj_forward(m, data)
        seen.append([*data.qpos, *data.qvel, *data.act, *data.sensordata])
        mujoco.mj_step(m, data)
    return data, np.array(seen)


def test_a_leg_moves_as_mujocos_does() -> None:
    """The same Runge–Kutta steps: muscles, tendon, compensation; and what sensors of tendons and muscles read."""
    text, u = leg("rod", "outer"), [0.8, 0.3, 0.5]
    model = lw.loads(text)
    q, v = np.array([0.3, 0.1, -1.2]), np.array([0.5, 0.2, -0.3])
    _, seen = rolled(text, u, 100, q, v)
    drives = lw.Drives(model, u)
    rules = lw.JointRules(limits="ignore")
    motion = lw.simulate(model, q, v, duration=0.099, dt=1e-3, method="rk4", control=drives, rules=rules)
    np.testing.assert_allclose(np.concatenate([motion.q, motion.v, motion.x], axis=-1), seen[:, :8], atol=1e-10)
    read = lw.Instruments(drives=drives).read(motion)
    ours = np.concatenate([read[name] for name in ("l", "rate", "on band", "f")], axis=-1)
    np.testing.assert_allclose(ours, seen[:, 8:], atol=1e-8)
    assert np.ptp(motion.x, axis=0).min() > 0.1


def test_a_swimmer_moves_as_mujocos_does_and_in_batches() -> None:
    text = swimmer("ellipsoid", "none", "ellipsoid", joints=PLANAR)
    model = lw.loads(text)
    q, v = np.zeros(4), np.array([0.4, 0.1, 0.5, -3.0])
    _, seen = rolled(text, [0.02], 100, q, v)
    given = {"duration": 0.099, "dt": 1e-3, "method": "rk4", "control": lw.Drives(model, 0.02)}
    motion = lw.simulate(model, np.stack([q, 0.0 * q]), np.stack([v, 0.5 * v]), **given)
    np.testing.assert_allclose(np.concatenate([motion.q, motion.v], axis=-1)[0], seen, atol=1e-10)
    forces = motion.forces()
    needed = model.inverse_dynamics(motion.q, motion.v, motion.vdot)
    np.testing.assert_allclose(forces.total, needed, atol=1e-9)
    assert (np.abs(forces.fluid).max(axis=(0, 1)) > 0.0).all()
    single = np.array(PassiveForces(model).total(motion.q[1, 50], motion.v[1, 50]), float)
    np.testing.assert_allclose(model.passive_force(motion.q, motion.v)[1, 50], single, atol=1e-12)


def test_energy_is_kept_and_explained() -> None:
    """A tendon that lays itself around a ball and lifts off, without damping; compensation counts as lifting."""
    model = lw.loads(leg(damping=0.0))
    q, v = np.array([0.3, 0.1, -1.2]), np.array([2.5, 0.2, 3.0])
    motion = lw.simulate(model, q, v, duration=1.0, rtol=1e-10, account=True)
    way = model.springs["quad"].transmission
    straight = lw.equipment.PathTransmission(
        tuple((tuple(s for s in stops if isinstance(s, str)), f) for stops, f in way.paths)
    )
    around = [
        float(length(MovingFrames(model, at), way) - length(MovingFrames(model, at), straight)) for at in motion.q
    ]
    assert min(around) < 1e-12 < 1e-3 < max(around)
    assert np.ptp(motion.energy) < 1e-7
    account = motion.energy_account()
    assert np.abs(account.unexplained).max() < 1e-7
    assert np.abs(account.work["compensation"]).max() > 0.1


def test_derivatives_are_those_of_differences() -> None:
    text = leg("ball", "outer", more='frictionloss="0.3"').replace("<option", '<option density="300" viscosity="0.2"')
    model = lw.loads(text)
    q, v, tau = np.array([0.3, 0.1, -1.2]), np.array([0.5, 0.2, -0.3]), np.array([0.1, 0.0, 0.2])
    found = model.state_space(q, v, tau)

    def rate(q: Any, v: Any) -> Any:
        return model.forward_dynamics(q, v, tau + model.passive_force(q, v))

    h = 1e-6
    for k, e in enumerate(np.eye(3) * h):
        by_q = (rate(q + e, v) - rate(q - e, v)) / (2 * h)
        by_v = (rate(q, v + e) - rate(q, v - e)) / (2 * h)
        np.testing.assert_allclose(found.A[3:, k], by_q, atol=1e-6 * np.abs(found.A).max())
        np.testing.assert_allclose(found.A[3:, 3 + k], by_v, atol=1e-6 * np.abs(found.A).max())


def test_a_tendon_stops_at_its_limits() -> None:
    model = lw.loads(leg(more='range="-0.4 0.4"'))
    assert model.springs["band"].limits == (-0.4, 0.4)
    given = {"duration": 0.6, "dt": 5e-4, "method": "rk4"}
    free, held = (
        lw.simulate(model, np.zeros(3), [3.0, 0.0, -1.0], **given, rules=lw.JointRules(limits=limits))
        for limits in ("ignore", "spring")
    )
    lengths = [motion.q[:, 0] - 0.5 * motion.q[:, 2] for motion in (free, held)]
    assert np.abs(lengths[0]).max() > 1.0
    assert 0.4 < np.abs(lengths[1]).max() < 0.6
    assert np.abs(held.forces().limits).max() > 0.0
    assert model.with_equipment(springs=[*model.springs][:1]).springs[0].name == "quad"


def test_from_within_the_way_is_the_shortest_that_touches() -> None:
    wrap, rng = lw.equipment.Wrap("ring", 0.5, "cylinder", "in"), np.random.default_rng(0)
    seen = 0
    for _ in range(200):
        a, b = rng.uniform(-1.5, 1.5, (2, 3))
        touch = wrap.touch(a.tolist(), b.tolist(), [0.1, 0.2, 0.0])
        if not touch.touches:
            continue
        seen += 1
        point = np.array(touch.first[:2])
        ways = [point - end[:2] for end in (a, b)]
        tangent = np.array([-point[1], point[0]])
        assert abs(sum(way @ tangent / np.linalg.norm(way) for way in ways)) < 1e-12
        along = sum(np.linalg.norm(np.subtract(end, touch.first)) for end in (a, b))
        flat = sum(np.linalg.norm(way) for way in ways)
        assert along == pytest.approx(np.hypot(flat, b[2] - a[2]), abs=1e-12)
    assert seen > 50


def test_everything_is_kept_by_files_and_by_changes(tmp_path: Path) -> None:
    model = lw.loads(
        leg("rod", "inner", more='frictionloss="0.3" range="-1 1"').replace("<option", '<option density="9"')
    )
    model.save(tmp_path / "leg.lw.json")
    again = lw.load(tmp_path / "leg.lw.json")
    for what in ("springs", "fields", "actuators", "sensors"):
        assert getattr(again, what) == getattr(model, what)
    q, v = np.array([0.3, 0.1, -1.2]), np.array([0.5, 0.2, -0.3])
    expected = np.array(PassiveForces(model).total(q, v), float)
    renamed = model.renamed(lambda name: f"my_{name}")
    np.testing.assert_array_equal(np.array(PassiveForces(renamed).total(q, v), float), expected)
    image = model.mirrored("xz")
    q_image, v_image = model.mirrored_state("xz", q, v)
    theirs, _ = model.mirrored_state("xz", expected, expected)
    np.testing.assert_allclose(np.array(PassiveForces(image).total(q_image, v_image), float), theirs, atol=1e-12)
    held = model.locked({"twist": 0.1})
    ours = np.array(PassiveForces(held).total(q[[0, 2]], v[[0, 2]] * [1, 1]), float)
    still = np.array(PassiveForces(model).total(q, v * [1, 0, 1]), float)
    np.testing.assert_allclose(ours, still[[0, 2]], atol=1e-12)
    assert not model.without("shank").springs and len(model.without("shank").fields) == 2
    lost = model.save(tmp_path / "leg.xml")
    assert any("fluid" in each for each in lost)
    back = lw.load(tmp_path / "leg.xml")
    for spring, other in zip(model.springs, back.springs, strict=True):
        assert (spring.stiffness, spring.rest, spring.friction, spring.limits) == (
            other.stiffness, other.rest, other.friction, other.limits,
        )  # fmt: skip
        places = MovingFrames(model, q, v), MovingFrames(back, q, v)
        one, two = (float(speed(at, s.transmission)) for at, s in zip(places, (spring, other), strict=True))
        assert one == pytest.approx(two, abs=1e-13)
    assert back.actuators["short"].muscle == model.actuators["short"].muscle
    dry = model.with_equipment(
        fields=[each for each in model.fields if isinstance(each, lw.equipment.GravityCompensation)]
    )
    ours, theirs = (np.array(PassiveForces(each).total(q, v), float) for each in (dry, back))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert compare(model, again).same
    other = model.with_equipment(fields=model.fields[1:])
    assert not compare(model, other).same


def test_hills_curves() -> None:
    """As De Groote 2016 draws them: strongest near the optimal length, nothing at full speed, inverse to inverse."""
    lengths = np.linspace(0.4, 1.8, 1401)
    force = np.array([active_at_length(float(l)) for l in lengths])
    assert force.max() == pytest.approx(1.0, abs=5e-3)
    assert lengths[force.argmax()] == pytest.approx(1.0, abs=0.02)
    assert force[0] < 0.15 and force[-1] < 0.1
    assert active_at_speed(0.0) == pytest.approx(1.0, abs=5e-3)
    assert active_at_speed(-1.0) == pytest.approx(0.0, abs=0.02)
    assert active_at_speed(1.0) == pytest.approx(1.789, abs=5e-3)
    for v in (-0.9, -0.1, 0.0, 0.4):
        assert speed_of(active_at_speed(v)) == pytest.approx(v, abs=1e-12)


def test_a_hill_muscle_stretches_its_tendon_as_scipy_integrates_it() -> None:
    """One that lifts a mass: fibre, tendon, activation and mass as four states."""
    own = {"force": 800.0, "optimal_length": 0.08, "slack_length": 0.2, "pennation": 0.2, "tendon_stiffness": 35.0}
    muscle = lw.equipment.HillMuscle(**own)
    b = lw.ModelBuilder("lift")
    b.add_body("load", joint=lw.Prismatic(axis=(0, 0, 1)), joint_name="up", mass=20.0)
    b.add_actuator(
        lw.equipment.Actuator(
            "biceps",
            lw.equipment.JointTransmission({"up": -1.0}),
            activation=lw.equipment.Activation("muscle", 0.015),
            muscle=muscle,
        )
    )
    model = b.build()
    q = np.array([-0.279])
    drives = lw.Drives(model, 0.6)
    times = np.linspace(0.0, 0.3, 7)
    motion = lw.simulate(model, q, duration=0.3, control=drives, rtol=1e-10, output_times=times)

    def law(v: float) -> float:
        return float(0.886 - 0.318 * np.arcsinh(-8.149 * v - 0.374))

    def rates(t: float, y: Any) -> list[float]:
        z, w, a, fibre = y
        cosine = np.sqrt(1.0 - (np.sin(0.2) / fibre) ** 2)
        tendon = (-z - fibre * 0.08 * cosine) / 0.2
        pull = max(0.0, 0.2 * np.exp(35.0 * (tendon - 0.995)) - 0.25)
        passive = (np.exp(4.0 * (fibre - 1.0) / 0.6) - 1.0) / (np.exp(4.0) - 1.0) if fibre > 1.0 else 0.0
        terms = ((0.815, 1.055, 0.162, 0.063), (0.433, 0.717, -0.03, 0.2), (0.1, 1.0, np.sqrt(0.125), 0.0))
        active = sum(h * np.exp(-0.5 * ((fibre - c) / (w_ + s * fibre)) ** 2) for h, c, w_, s in terms)
        at_speed = np.clip((pull / cosine - passive) / (max(a, 0.01) * active), law(-1.0), law(1.0))
        shortening = 10.0 * (np.sinh((at_speed - 0.886) / -0.318) + 0.374) / -8.149
        rising = 0.015 * (0.5 + 1.5 * a) if a < 0.6 else 0.04 / (0.5 + 1.5 * a)
        return [w, 800.0 * pull / 20.0 - 9.81, (0.6 - a) / rising, shortening]

    theirs = solve_ivp(rates, (0.0, 0.3), [q[0], 0.0, 0.0, 1.0], "LSODA", times, rtol=1e-10, atol=1e-12).y.T
    ours = np.concatenate([motion.q, motion.v, motion.x], axis=-1)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert ours[-1, 2] > 0.5 and abs(ours[-1, 3] - 1.0) > 0.05
    stiff = lw.equipment.HillMuscle(**{**own, "tendon_stiffness": None, "pennation": 0.0})
    assert stiff.pull(1.0, 0.28, 0.0) == pytest.approx(-800.0, rel=5e-3)
    assert stiff.states == 0 and muscle.shortened(0.1).slack_length == pytest.approx(0.1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lw.equipment.Wrap("ball", -1.0),
        lambda: lw.equipment.Wrap("ball", 1.0, "cone"),  # type: ignore[arg-type]
        lambda: lw.equipment.PathTransmission((((lw.equipment.Wrap("ball", 1.0), "a"), 1.0),)),
        lambda: lw.equipment.PathTransmission(
            ((("a", lw.equipment.Wrap("ball", 1.0), lw.equipment.Wrap("rod", 1.0), "b"), 1.0),)
        ),
        lambda: lw.equipment.Muscle(100.0, (1.0, 1.0)),
        lambda: lw.equipment.Muscle(100.0, (0.0, 1.0), l_min=1.2),
        lambda: lw.equipment.HillMuscle(100.0, 0.0, 0.1),
        lambda: lw.equipment.HillMuscle(100.0, 0.1, 0.0, tendon_stiffness=35.0),
        lambda: lw.equipment.FluidBox("wet", "hull", (1.0, 1.0, 1.0), density=-1.0),
        lambda: lw.equipment.FluidEllipsoid("wet", "hull", (1.0, 1.0)),  # type: ignore[arg-type]
        lambda: lw.equipment.GravityCompensation("up", "hull", np.nan),
        lambda: lw.equipment.Activation("muscle", 0.01, release_time=0.0),
        lambda: lw.ModelBuilder("x").add_field("water"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(lw.LinkwiseError):
        make()
