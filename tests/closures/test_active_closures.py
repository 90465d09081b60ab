"""Joints that close loops are joints: coordinates, springs, dampers, friction, limits, motors and sensors.

A four-bar linkage has four hinges, and which of them closes the loop is nobody's business: whatever acts at them, the
motion, the forces and the energies are the same. So each cut is compared with one in which the hinge in question is in
the tree.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import linkwise as lw
from linkwise.files.compare import compare
from tests.contact.scenes import shape
from tests.flexible.mechanisms import arm

HINGE = lw.Revolute((0, 1, 0))
RODS: dict[str, dict[str, Any]] = {
    "left": {"mass": 1.0, "com": (0, 0, 0.5), "inertia": np.diag([0.083, 0.083, 1e-3])},
    "bar": {"mass": 1.3, "com": (0.6, 0, 0.05), "inertia": np.diag([1e-3, 0.2, 0.2])},
    "right": {"mass": 0.8, "com": (0, 0, 0.4), "inertia": np.diag([0.07, 0.07, 1e-3])},
}
EVERYTHING = {
    "A": {"damping": 0.1},
    "C": {"stiffness": 7.0, "damping": 0.4, "friction": 0.2, "rest": 0.25},
    "D": {"stiffness": 3.0, "damping": 0.3, "rest": -0.1},
}

NUMBERS = ("limits", "damping", "friction", "stiffness", "rest")


def at(x: float, z: float) -> Any:
    return lw.transform(xyz=(x, 0, z))


def four_bar(cut: str, numbers: dict[str, Any] | None = None, motors: bool = False) -> lw.Model:
    """Hinges A (world, left), B (left, bar), C (bar, right) and D (world, right), of which one closes the loop."""
    of = {name: (numbers or {}).get(name, {}) for name in "ABCD"}
    b = lw.ModelBuilder(f"cut at {cut}")
    if cut == "A":
        b.add_body("right", "world", HINGE, at(1.1, 0), joint_name="D", **RODS["right"], **of["D"])
        # The bar hangs on the right rod: C the other way round is a turn about the opposite axis.
        back = lw.Revolute((0, -1, 0))
        b.add_body("bar", "right", back, at(0, 1), joint_frame=at(1.2, 0), joint_name="C", **RODS["bar"], **of["C"])
        b.add_body("left", "bar", back, joint_frame=at(0, 1), joint_name="B", **RODS["left"], **of["B"])
        b.add_closure("A", "world", None, "left", None, joint=HINGE, **of["A"])
    else:
        b.add_body("left", "world", HINGE, joint_name="A", **RODS["left"], **of["A"])
        b.add_body("bar", "left", HINGE, at(0, 1), joint_name="B", **RODS["bar"], **of["B"])
    if cut == "C":
        b.add_body("right", "world", HINGE, at(1.1, 0), joint_name="D", **RODS["right"], **of["D"])
        b.add_closure("C", "bar", at(1.2, 0), "right", at(0, 1), joint=HINGE, **of["C"])
    if cut == "D":
        b.add_body("right", "bar", HINGE, at(1.2, 0), joint_frame=at(0, 1), joint_name="C", **RODS["right"], **of["C"])
        b.add_closure("D", "world", at(1.1, 0), "right", None, joint=HINGE, **of["D"])
    if motors:
        for name, u in (("C", 2.0), ("D", -1.0)):
            servo = {"gain": (u, 0.1, 0.0), "bias": (0.3, -2.0, -0.2), "force_range": (-5.0, 5.0)}
            b.add_actuator(lw.equipment.Actuator(f"motor {name}", lw.equipment.JointTransmission({name: 1.5}), **servo))
        b.add_spring(
            lw.equipment.Spring(
                "band", lw.equipment.JointTransmission({"B": 1.0, "C": -0.5}), stiffness=2.0, rest=(0.1, 0.1)
            )
        )
        for name in "ABCD":
            b.add_sensor(lw.equipment.Sensor(f"at {name}", "joint_position", name))
            b.add_sensor(lw.equipment.Sensor(f"of {name}", "joint_velocity", name))
    return b.build()


def hinges(model: lw.Model, q: Any) -> np.ndarray:
    """The angles of A, B, C and D (..., 4)."""
    own = {joint.name: np.asarray(q)[..., joint.q_slice.start] for joint in model.joints}
    own |= {each.name: model.constraints.coordinates(q)[..., each.q_slice.start] for each in model.constraints.freedoms}
    return np.stack([own[name] for name in "ABCD"], axis=-1)


def rates(model: lw.Model, q: Any, v: Any) -> np.ndarray:
    """Their rates (..., 4)."""
    own = {joint.name: np.asarray(v)[..., joint.v_slice.start] for joint in model.joints}
    own |= {
        each.name: model.constraints.velocities(q, v)[..., each.v_slice.start] for each in model.constraints.freedoms
    }
    return np.stack([own[name] for name in "ABCD"], axis=-1)


def tree_part(model: lw.Model, angles: np.ndarray) -> np.ndarray:
    """The q (or v) of a model from angles (or rates) of A, B, C and D."""
    return angles[..., ["ABCD".index(joint.name) for joint in model.joints]]


def states() -> tuple[np.ndarray, np.ndarray]:
    model = four_bar("C")
    q = model.assemble([0.3, 0.0, 0.3])
    v = model.constraints.project_velocity(q, [1.0, 0.0, 0.0])
    return hinges(model, q), rates(model, q, v)


CUTS = ("A", "C", "D")


@pytest.mark.parametrize("cut", CUTS)
def test_coordinates_are_those_of_the_joint_in_the_tree(cut: str) -> None:
    angles, speeds = states()
    model = four_bar(cut)
    q, v = tree_part(model, angles), tree_part(model, speeds)
    assert np.abs(model.closure_error(q)).max() < 1e-12
    np.testing.assert_allclose(hinges(model, q), angles, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(rates(model, q, v), speeds, rtol=0.0, atol=1e-12)


def test_forces_along_closures_do_the_work_that_the_velocities_say() -> None:
    """J* of the efforts is the J of the velocities, at any state, for a joint with several freedoms too."""
    rng = np.random.default_rng(0)
    b = lw.ModelBuilder("three loops")
    for k in range(4):
        b.add_body(f"rod{k}", "world" if k == 0 else f"rod{k - 1}", lw.Universal(), at(0.3, 0.2), mass=1.0)
    for k, joint in enumerate(
        (lw.Cylindrical((1, 2, 2)), lw.Universal(), lw.Spherical(), lw.Planar(), lw.Helical(0.1))
    ):
        b.add_closure(f"loop{k}", "world", None, f"rod{k % 3 + 1}", at(0.1, 0.0), joint=joint)
    model = b.build()
    q, v = rng.normal(size=model.nq) * 0.3, rng.normal(size=model.nv)
    k = sum(each.joint.nv for each in model.constraints.freedoms)
    assert k == 2 + 2 + 3 + 3 + 1
    f = rng.normal(size=k)
    np.testing.assert_allclose(
        model.constraints.efforts(q, f) @ v, f @ model.constraints.velocities(q, v), rtol=0.0, atol=1e-12
    )


@pytest.mark.parametrize(
    "joint", [HINGE, lw.Prismatic((1, 0, 1)), lw.Cylindrical((0, 1, 1)), lw.Helical(0.2, (0, 0, 1)), lw.Universal(),
              lw.Spherical(), lw.Planar((1, 1, 0))], ids=lambda joint: type(joint).__name__
)  # fmt: skip
def test_every_joint_type_is_read_where_it_closes(joint: lw.Joint) -> None:
    """A body on two equal joints, one in the tree and one that closes: both say the same."""
    b = lw.ModelBuilder("twice")
    pose = lw.transform(xyz=(0.1, 0.2, 0.3), rpy=(0.4, 0.5, 0.6))
    b.add_body("hull", "world", joint, pose, mass=1.0, inertia=np.eye(3))
    b.add_closure("again", "world", pose, "hull", None, joint=joint)
    model = b.build()
    rng = np.random.default_rng(1)
    q = model.integrate(model.neutral(), rng.uniform(-1, 1, model.nv))
    v = rng.normal(size=model.nv)
    assert np.abs(model.closure_error(q)).max() < 1e-12
    np.testing.assert_allclose(model.difference(q, model.constraints.coordinates(q)), 0.0, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(model.constraints.velocities(q, v), v, rtol=0.0, atol=1e-12)


@cache
def run(cut: str) -> tuple[lw.Model, lw.Trajectory, dict[str, np.ndarray]]:
    """A run with springs, dampers, friction and motors at the hinges, and what the sensors read."""
    model = four_bar(cut, EVERYTHING, motors=True)
    q, v = (tree_part(model, each) for each in states())
    drives = lw.Drives(model, u={"motor C": 0.7, "motor D": lambda t, q, v, p: lw.math.sin(t)})
    times = np.linspace(0, 0.6, 7)
    given = {"control": drives, "rtol": 1e-12, "atol": 1e-13, "output_times": times, "account": True}
    motion = lw.simulate(model, q, v, duration=0.6, **given)
    return model, motion, lw.Instruments(drives=drives).read(motion)


def test_they_do_so_in_long_chains_and_on_bodies_that_bend() -> None:
    """Sweeps that run as loops over the links, and forces at the node of a flexible body, which move its modes."""
    rng = np.random.default_rng(0)
    b = lw.ModelBuilder("ring")
    step = at(0.1, 0.0)
    names = b.add_chain("link", 90, placements=step, masses=0.01, coms=(0.05, 0, 0), axes=(0, 1, 0))
    b.add_closure("pin", names[3], step, names[-1], step, joint=HINGE, damping=2.0)
    b.add_closure("guide", "world", None, names[40], None, joint=lw.Prismatic((1, 0, 0)))
    chain = b.build()
    assert chain._rolls
    bent = arm().with_closure(
        "tip", "world", at(1.0, 0.0), "two", None, joint=HINGE, node_b="tip", stiffness=9.0, rest=0.3
    )
    for model, k in ((chain, 2), (bent, 1)):
        q = model.integrate(model.neutral(), 0.1 * rng.normal(size=model.nv))
        v, f = rng.normal(size=model.nv), rng.normal(size=k)
        u = model.constraints.velocities(q, v)
        np.testing.assert_allclose(model.constraints.efforts(q, f) @ v, f @ u, rtol=1e-11)
        if model is chain:  # all in one plane: the rate of the angle, closed or not
            np.testing.assert_allclose(u[0], v[4:].sum(), rtol=1e-12)
            felt = model.passive_force(q, v)
            np.testing.assert_allclose(felt, np.r_[np.zeros(4), np.full(86, -2.0 * u[0])], rtol=0.0, atol=1e-10)
        else:
            stretch = model.constraints.coordinates(q)[0] - 0.3
            np.testing.assert_allclose(model.passive_force(q, 0 * v) @ v, -9.0 * stretch * u[0], rtol=1e-11)
            assert np.abs(model.passive_force(q, 0 * v)[model.bodies["two"].v_slice]).max() > 1e-3  # its modes feel it


@pytest.mark.parametrize("cut", ["A", "D"])
def test_the_motion_does_not_know_where_the_loop_is_cut(cut: str) -> None:
    (first, one, read), (second, other, again) = run("C"), run(cut)
    np.testing.assert_allclose(hinges(first, one.q), hinges(second, other.q), rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(rates(first, one.q, one.v), rates(second, other.q, other.v), rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(one.energy, other.energy, rtol=0.0, atol=1e-10)
    assert np.ptp(one.energy) > 0.1  # they do act
    assert set(read) == set(again)
    for name, values in read.items():
        np.testing.assert_allclose(values, again[name], rtol=0.0, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("cut", ["A", "D"])
def test_the_work_of_each_cause_is_the_same(cut: str) -> None:
    first, other = (run(each)[1].energy_account() for each in ("C", cut))
    for account in (first, other):
        assert np.abs(account.unexplained).max() < 1e-9
    for cause in ("control", "springs", "damping", "friction"):
        np.testing.assert_allclose(first.work[cause], other.work[cause], rtol=0.0, atol=1e-10, err_msg=cause)
        assert np.abs(first.work[cause]).max() > 1e-3, cause


def test_the_hinges_bear_the_same_wherever_the_loop_is_cut() -> None:
    """The force on the right rod at C, as the closure's multipliers say it, and as what the joint in the tree bears."""
    borne = []
    for model, motion, _ in (run("C"), run("D")):
        (closing,) = np.moveaxis(motion.constraint_forces().wrenches, 1, 0)
        right = model.bodies["right"].index
        needed = model.joint_wrenches(motion.q, motion.v, motion.vdot)[:, right, 3:]  # of both hinges together
        by_closure = closing[:, 3:]
        borne.append(by_closure if model.closures[0].name == "C" else needed - by_closure)
    np.testing.assert_allclose(borne[0], borne[1], rtol=0.0, atol=1e-9)
    assert np.abs(borne[0]).max() > 1.0


def test_statics_and_linear_models_do_not_either() -> None:
    angles, _ = states()
    found = []
    for cut in CUTS:
        model = four_bar(cut, EVERYTHING, motors=True)
        drives = lw.Drives(model, u=[0.7, 0.2])
        rest = model.statics.equilibrium(tree_part(model, angles), control=drives)
        still = np.zeros(3)
        space = model.state_space(rest.q, still, np.zeros(3), control=drives)
        N = model.freedoms(rest.q).basis
        modes = np.linalg.eigvals(space.A)
        found.append((hinges(model, rest.q), np.sort_complex(modes[np.abs(modes) > 1e-6]), N))
    for angles_there, modes, _ in found[1:]:
        np.testing.assert_allclose(angles_there, found[0][0], rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(modes, found[0][1], rtol=0.0, atol=1e-8)
    assert len(found[0][1]) == 2  # one freedom: one pair


def test_a_motor_by_hand_is_the_motor_in_the_tree() -> None:
    angles, speeds = states()
    tree, closed = four_bar("D"), four_bar("C")
    accelerations = []
    for model in (tree, closed):
        q, v = tree_part(model, angles), tree_part(model, speeds)
        tau = [0.0, 0.0, 2.5] if model is tree else model.constraints.efforts(q, [2.5])
        accelerations.append(model.forward_dynamics(q, v, tau)[:2])
    np.testing.assert_allclose(*accelerations, rtol=0.0, atol=1e-11)


def test_limits_hold_and_a_released_closure_pulls_nothing() -> None:
    angles, speeds = states()
    limits = lw.JointLimits(-0.5, 0.5)
    stopped, free = (four_bar("C", {"C": numbers}) for numbers in ({"limits": limits}, {"damping": 1e-9}))
    q, v = tree_part(free, angles), 3.0 * tree_part(free, speeds)
    reached = [hinges(model, lw.simulate(model, q, v, duration=0.5).q)[:, 2].max() for model in (stopped, free)]
    assert 0.5 < reached[0] < 0.65
    assert reached[1] > 0.8
    apart, none = (
        lw.simulate(four_bar("C", numbers), q, v, duration=0.3, released=["C"])
        for numbers in ({"C": {"stiffness": 50.0, "damping": 2.0, "friction": 1.0}}, None)
    )
    np.testing.assert_allclose(apart.q[-1], none.q[-1], rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(apart.energy[-1], none.energy[-1], rtol=0.0, atol=1e-9)


def test_a_released_closure_ends_the_pull_of_what_goes_along_it() -> None:
    """A band across a joint of the tree and the hinge that is released is slack, and so is its limit."""
    angles, speeds = states()
    bare = four_bar("C")
    q, v = tree_part(bare, angles), tree_part(bare, speeds)
    way = lw.equipment.JointTransmission({"B": 1.0, "C": -0.5})
    band = lw.equipment.Spring("band", way, stiffness=20.0, damping=2.0, rest=(0.1, 0.1), limits=(-0.1, 0.1))
    banded = bare.with_equipment(springs=[band])
    for closures, same in ((["C"], True), ([], False)):
        one, other = (lw.simulate(model, q, v, duration=0.3, released=closures) for model in (banded, bare))
        assert (np.abs(one.q[-1] - other.q[-1]).max() < 1e-9) == same
        assert (np.abs(one.energy[-1] - other.energy[-1]) < 1e-9) == same


def touching(model: lw.Model) -> lw.Model:
    """The same with a ball on one of its bodies, above a ground that it does not reach."""
    ball = shape("sphere", (0.01,))
    bodies = tuple(replace(body, collisions=(ball,)) if body.name == "left" else body for body in model.bodies)
    return replace(model, bodies=bodies).with_contacts(lw.Ground(at(0.0, -100.0)))


def test_steps_with_contact_feel_all_that_acts_along_closures() -> None:
    """Springs, a damper, a limit, a motor and a band across a joint of the tree, against a run without steps."""
    numbers = {"C": {"stiffness": 7.0, "damping": 0.4, "rest": 0.25, "limits": lw.JointLimits(-0.5, 0.5)}}
    angles, speeds = states()
    model = four_bar("C", numbers, motors=True)
    q, v = tree_part(model, angles), 2.0 * tree_part(model, speeds)
    control = lw.Drives(model, u={"motor C": 0.7})
    exact = lw.simulate(model, q, v, duration=0.4, control=control, rtol=1e-10, output_times=[0.0, 0.4])
    inert = lw.simulate(four_bar("C"), q, v, duration=0.4, output_times=[0.0, 0.4])
    assert np.abs(exact.q[-1] - inert.q[-1]).max() > 0.1
    off = []
    for dt in (0.002, 0.001):
        run = lw.simulate(touching(model), q, v, duration=0.4, dt=dt, method="moreau", control=control)
        assert hinges(model, run.q)[:, 2].max() > 0.5  # the limit has a part in it
        off.append(np.abs(run.q[-1] - exact.q[-1]).max())
    assert off[1] < 1e-3
    assert off[0] / off[1] > 1.8  # velocities count at the start of a step: of first order


def test_steps_with_contact_refuse_dry_friction_along_closures_and_tendons() -> None:
    model = touching(four_bar("C", {"C": {"friction": 0.2}}))
    way = lw.equipment.JointTransmission({"A": 1.0})
    model = model.with_equipment(springs=[lw.equipment.Spring("band", way, friction=0.1)])
    q = tree_part(model, states()[0])
    with pytest.raises(lw.InputError, match="closure 'C', spring 'band'"):
        lw.simulate(model, q, duration=0.01, dt=0.001, method="moreau")
    run = lw.simulate(model, q, duration=0.01, dt=0.001, method="moreau", rules=lw.JointRules(friction=False))
    assert np.abs(run.v[-1]).max() > 1e-3


def test_effort_limits_of_a_closure_bound_its_motor() -> None:
    model = four_bar("C", {"C": {"limits": lw.JointLimits(effort=0.5)}}, motors=True)
    angles, speeds = states()
    q, v = tree_part(model, angles), tree_part(model, speeds)
    drives = lw.Drives(model, u={"motor C": 10.0})
    pushed = [
        model._acting(drives, lw.JointRules(springs=False, effort=effort), None, None).force(q, 0 * v)
        for effort in (True, False)
    ]
    # Alone, 1.5 times what the motor exerts, which its own range bounds; with the limit, no more than 0.5 N m.
    at_c, at_d = (np.array(drives.forces(0.0, q, 0 * v, (), ()), float) * 1.5).tolist()
    assert at_c == 7.5
    for effort, felt in zip((0.5, 7.5), pushed, strict=True):
        alone = model.constraints.efforts(q, [effort])
        np.testing.assert_allclose(felt - alone, (0.0, 0.0, at_d), rtol=0.0, atol=1e-12)


def test_an_angle_is_told_around_the_middle_of_its_limits() -> None:
    model = four_bar("C", {"C": {"limits": lw.JointLimits(3.0, 5.0)}})
    angles, _ = states()
    q = tree_part(model, angles)
    np.testing.assert_allclose(model.constraints.coordinates(q)[0], angles[2] + 2 * np.pi, rtol=0.0, atol=1e-12)


def test_the_spring_of_a_closure_against_mujoco() -> None:
    """MuJoCo has D in its tree: its spring's power and energy are those of ours, where D closes the loop."""
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
      <body name="left"><joint name="A" axis="0 1 0"/><inertial pos="0 0 .5" mass="1" diaginertia=".083 .083 .001"/>
        <body name="bar" pos="0 0 1"><joint name="B" axis="0 1 0"/>
          <inertial pos=".6 0 .05" mass="1.3" diaginertia=".001 .2 .2"/></body></body>
      <body name="right" pos="1.1 0 0">
        <joint name="D" axis="0 1 0" stiffness="30" damping=".7" springref="28.64788975654116"/>
        <inertial pos="0 0 .4" mass=".8" diaginertia=".07 .07 .001"/></body></worldbody></mujoco>"""
    reference = mujoco.MjModel.from_xml_string(text)
    reference.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(reference)
    angles, speeds = states()
    data.qpos[:], data.qvel[:] = angles[[0, 1, 3]], speeds[[0, 1, 3]]
    mujoco.mj_forward(reference, data)
    bare, model = four_bar("D"), four_bar("D", {"D": {"stiffness": 30.0, "damping": 0.7, "rest": 0.5}})
    q, v = tree_part(model, angles), tree_part(model, speeds)
    np.testing.assert_allclose(model.passive_force(q, v) @ v, data.qfrc_passive @ data.qvel, rtol=1e-11)
    energies = [lw.simulate(each, q, v, duration=0.01).energy[0] for each in (model, bare)]
    np.testing.assert_allclose(energies[0], data.energy.sum(), rtol=1e-11)
    np.testing.assert_allclose(energies[0] - energies[1], 15.0 * (angles[3] - 0.5) ** 2, rtol=1e-9)


# Files and changed copies.
def test_files_keep_them(tmp_path: Path) -> None:
    numbers = {"C": dict(EVERYTHING["C"], limits=lw.JointLimits(-1.0, 1.5, effort=9.0))}
    model = four_bar("C", numbers, motors=True)
    model.save(tmp_path / "own.lw.json")
    again = lw.load(tmp_path / "own.lw.json")
    assert again == model
    assert again.closures[0].damping == (0.4,)
    plain = four_bar("C", {"C": dict(EVERYTHING["C"], limits=lw.JointLimits(-1.0, 1.5))})
    plain.save(tmp_path / "robot.urdf")
    read = lw.load(tmp_path / "robot.urdf", loops=tmp_path / "robot.loops.yaml")
    assert {n: getattr(read.closures["C"], n) for n in NUMBERS} == {n: getattr(plain.closures["C"], n) for n in NUMBERS}
    assert not compare(read, plain, tolerance=1e-9).differences
    q, v = (tree_part(plain, each) for each in states())
    np.testing.assert_allclose(read.passive_force(q, v), plain.passive_force(q, v), rtol=0.0, atol=1e-12)


def test_a_joint_of_an_sdf_file_that_closes_a_loop_acts() -> None:
    def sdf(*order: str) -> str:
        hinge = """<joint name="{0}" type="revolute"><parent>{1}</parent><child>{2}</child><pose>{3}</pose>
          <axis><xyz>0 1 0</xyz>{4}</axis></joint>"""
        acts = """<dynamics><damping>.4</damping><friction>.2</friction><spring_stiffness>7</spring_stiffness>
          <spring_reference>.25</spring_reference></dynamics><limit><lower>-1</lower><upper>1</upper></limit>"""
        joints = {
            "A": hinge.format("A", "world", "left", "0 0 0 0 0 0", ""),
            "B": hinge.format("B", "left", "bar", "0 0 0 0 0 0", ""),
            "C": hinge.format("C", "bar", "right", "0 0 1 0 0 0", acts),
            "D": hinge.format("D", "world", "right", "0 0 0 0 0 0", ""),
        }
        link = """<link name="{0}"><pose>{1}</pose><inertial><pose>{2}</pose><mass>{3}</mass><inertia><ixx>.1</ixx>
          <iyy>.1</iyy><izz>.1</izz></inertia></inertial></link>"""
        links = (
            link.format("left", "0 0 0 0 0 0", "0 0 .5 0 0 0", 1.0)
            + link.format("bar", "0 0 1 0 0 0", ".6 0 0 0 0 0", 1.3)
            + link.format("right", "1.2 0 0 0 0 0", "0 0 .4 0 0 0", 0.8)
        )
        return f'<sdf version="1.9"><model name="m">{links}{"".join(joints[k] for k in order)}</model></sdf>'

    tree, closed = lw.loads(sdf(*"ABCD")), lw.loads(sdf(*"ABDC"))
    assert [c.name for c in tree.closures] == ["D"]
    assert [c.name for c in closed.closures] == ["C"]
    assert closed.closures["C"].stiffness == (7.0,)
    q = closed.assemble([0.2, -0.2, 0.2])
    v = closed.constraints.project_velocity(q, [1.0, 0.0, 0.0])
    angles, speeds = hinges(closed, q), rates(closed, q, v)
    a = [
        model.forward_dynamics(q, v, model.passive_force(q, v))[:2]
        for model, q, v in ((m, tree_part(m, angles), tree_part(m, speeds)) for m in (tree, closed))
    ]
    np.testing.assert_allclose(*a, rtol=0.0, atol=1e-10)


def test_what_mjcf_cannot_say_is_listed(tmp_path: Path) -> None:
    lost = four_bar("C", EVERYTHING, motors=True).save(tmp_path / "model.xml")
    for what in ("along closure 'C'", "motor C", "band", "at C", "of C"):
        assert any(what in line for line in lost), what
    assert not any("motor D" in line for line in lost)


def test_changed_copies_take_them_along() -> None:
    model = four_bar("C", {"C": dict(EVERYTHING["C"], limits=lw.JointLimits(-1.0, 1.5))}, motors=True)
    mirrored = model.mirrored()
    angles, speeds = states()
    q, v = tree_part(model, angles), tree_part(model, speeds)
    drives = [lw.Drives(m, u=0.5) for m in (model, mirrored)]
    signs = np.sign(mirrored.joints[0].type.axis[1]) * np.ones(3)
    for one, other in (
        (model.passive_force(q, v), mirrored.passive_force(signs * q, signs * v) * signs),
        (drives[0].forces(0, q, v, (), ()), drives[1].forces(0, signs * q, signs * v, (), ())),
    ):
        np.testing.assert_allclose(np.array(one, float), np.array(other, float), rtol=0.0, atol=1e-12)
    renamed = model.renamed({"C": "pin"})
    np.testing.assert_allclose(renamed.passive_force(q, v), model.passive_force(q, v), rtol=0.0, atol=1e-13)
    assert [a.transmission.joints for a in renamed.actuators] == [("pin",), ("D",)]
    left = model.without("right")
    assert [a.name for a in left.actuators] == []
    with pytest.raises(lw.ModelError, match="act along it"):
        model.without("C")
    held = model.locked(["A", "B", "D"], at=q)
    assert held.nv == 0
    assert not held.closures


def test_what_cannot_have_them_says_so() -> None:
    b = lw.ModelBuilder("weld")
    b.add_body("rod", "world", HINGE, mass=1.0)
    with pytest.raises(lw.InputError, match="'fast' has no freedoms of its own"):
        b.add_closure("fast", "world", None, "rod", None, joint=lw.Fixed(), damping=1.0)
    with pytest.raises(lw.InputError, match="'held' has no freedoms of its own"):
        b.add_closure("held", "world", None, "rod", None, joint=lw.closures.Distance(1.0), stiffness=1.0)
    with pytest.raises(lw.InputError, match="cannot have a spring"):
        b.add_closure("ball", "world", None, "rod", None, joint=lw.Spherical(), stiffness=1.0)
    with pytest.raises(lw.ModelError, match="the damping of closure 'pin'"):
        b.add_closure("pin", "world", None, "rod", None, joint=HINGE, damping=-1.0)


def test_what_acts_along_a_closure_finds_it_by_its_name() -> None:
    b = lw.ModelBuilder("twice")
    b.add_body("rod", "world", HINGE, mass=1.0, com=(0, 0, 0.5), joint_name="pin")
    b.add_body("next", "rod", HINGE, mass=1.0, com=(0, 0, 0.5), placement=at(0, 1.0))
    b.add_closure("pin", "world", at(0, 2.0), "next", at(0, 1.0), joint=HINGE, damping=1.0)
    with pytest.raises(lw.ModelError, match="closure 'pin' has the name of a joint"):
        b.build()
