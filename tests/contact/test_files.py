"""Files with a floor: they simulate as they are, with their friction; MuJoCo says what should come out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact.scene import meetings_of
from linkwise.sim.sensors import FootForce, Touch

mujoco = pytest.importorskip("mujoco")

SCENE = """
<mujoco model="scene">
  <option timestep="0.001" cone="elliptic" impratio="10"/>
  <default><geom solref="0.002 1" solimp="0.999 0.9999 0.0001"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction="0.3 0.005 0.0001"/>
    <body name="box" pos="0 0 0.05"><freejoint/><geom type="box" size=".1 .1 .05" mass="2" friction="0.4 0.005 0.0001"/>
    </body>
    <body name="ball" pos="0 1 0.1"><freejoint/><geom type="sphere" size=".1" mass="1" friction="0.1 0.005 0.0001"/>
    </body>
  </worldbody>
</mujoco>
"""


def mujoco_end(text: str, qvel: list[float], duration: float) -> np.ndarray:
    """The qpos that MuJoCo gets to."""
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    d.qvel[:] = qvel
    for _ in range(round(duration / m.opt.timestep)):
        mujoco.mj_step(m, d)
    return np.array(d.qpos)


def test_a_file_with_a_floor_simulates_as_it_is() -> None:
    """A box that slides and a ball that slips and rolls, beside MuJoCo with stiff settings and beside closed forms."""
    model = lw.loads(SCENE)
    v0 = [0, 0, 0, 1.5, 0, 0, 0, 0, 0, 1.0, 0, 0]
    run = lw.simulate(model, v0=v0, duration=1.0, dt=0.001)
    assert run.method == "moreau"
    theirs = mujoco_end(SCENE, [1.5, 0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 0], 1.0)
    assert abs(run.q[-1, 4] - theirs[0]) < 2e-3
    assert abs(run.q[-1, 11] - theirs[7]) < 2e-3
    assert abs(run.q[-1, 4] - 1.5**2 / (2 * 0.4 * 9.81)) < 1e-5  # the larger of both frictions, as in MuJoCo
    assert abs(run.v[-1, 9:] @ run.v[-1, 9:] - (5 / 7) ** 2) < 1e-9  # the ball rolls
    assert "rigid" in run.note
    rigid = [meeting.material.is_rigid for meeting in _meetings(run.model)]
    assert all(rigid)


def _meetings(model: lw.Model) -> tuple[Any, ...]:
    from linkwise.contact.scene import meetings_of

    return meetings_of(model)


@pytest.mark.parametrize(("solref", "solimp"), [("0.02 1", "0.9 0.95 0.001"), ("-2000 -100", "0.8 0.9 0.002")])
def test_softness_of_the_file(solref: str, solimp: str) -> None:
    """A ball that lies on one point sinks as deep as MuJoCo has it."""
    text = f"""
    <mujoco><option cone="elliptic"/><default><geom solref="{solref}" solimp="{solimp}"/></default><worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="ball" pos="0 0 0.1"><freejoint/><geom type="sphere" size=".1" mass="3"/></body></worldbody></mujoco>"""
    theirs = mujoco_end(text, [0.0] * 6, 3.0)[2] - 0.1
    model = lw.loads(text).with_contacts(softness="file")
    run = lw.simulate(model, duration=3.0, dt=0.001, method="moreau")
    assert theirs < -1e-5
    assert abs((run.q[-1, 6] - 0.1) / theirs - 1.0) < 0.01
    assert run.note == ""


def test_priority_condim_and_excludes() -> None:
    text = """
    <mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1" friction="1 .1 .1"/>
    <body name="a" pos="0 0 1"><freejoint/>
    <geom type="sphere" size=".1" condim="6" priority="1" friction="0.2 0.02 0.003"/></body>
    <body name="b" pos="0 0 2"><freejoint/><geom type="sphere" size=".1" condim="1"/></body>
    </worldbody><contact><exclude body1="a" body2="b"/></contact></mujoco>"""
    found = {meeting.body.name: meeting.material for meeting in _meetings(lw.loads(text).with_contacts())}
    assert list(found) == ["a", "b"]
    assert (found["a"].friction, found["a"].torsion, found["a"].rolling) == (0.2, 0.02, 0.003)
    assert found["b"].friction == 1.0
    other = lw.loads(text).with_contacts(material=lw.Material(friction=0.7))
    assert {meeting.material.friction for meeting in _meetings(other)} == {0.7}


def test_surfaces_of_sdf() -> None:
    text = """
    <sdf version="1.9"><world name="w">
    <model name="ground"><static>true</static><link name="l"><collision name="c">
    <geometry><plane><normal>0 0 1</normal></plane></geometry>
    <surface><friction><ode><mu>0.9</mu><mu2>0.9</mu2></ode></friction></surface></collision></link></model>
    <model name="box"><pose>0 0 0.05 0 0 0</pose><link name="box"><inertial><mass>1</mass>
    <inertia><ixx>0.004</ixx><iyy>0.004</iyy><izz>0.006</izz></inertia></inertial><collision name="c">
    <geometry><box><size>0.2 0.2 0.1</size></box></geometry>
    <surface><bounce><restitution_coefficient>0.25</restitution_coefficient></bounce>
    <contact><ode><kp>1e4</kp><kd>100</kd></ode></contact>
    <friction><ode><mu>0.4</mu></ode></friction></surface></collision></link></model></world></sdf>"""
    model = lw.loads(text, floating=True)
    (meeting,) = _meetings(model.with_contacts())
    assert np.isclose(meeting.material.coefficients[0], 0.6)  # √(0.9 · 0.4)
    assert meeting.material.restitution == 0.25
    assert meeting.material.is_rigid
    (soft,) = _meetings(model.with_contacts(softness="file"))
    assert (soft.material.stiffness, soft.material.damping) == (1e4, 0.01)


def _written_tetrahedron(folder: Path) -> None:
    corners = ((0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2))
    faces = ((1, 3, 2), (1, 2, 4), (1, 4, 3), (2, 3, 4))
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in faces]
    (folder / "corner.obj").write_text("\n".join(lines) + "\n")


URDF = """<robot name="r"><link name="corner"><inertial><mass value="1"/><origin xyz="0.05 0.05 0.05"/>
<inertia ixx="0.003" iyy="0.003" izz="0.003" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="{}"/></geometry></collision></link></robot>"""


def test_meshes_become_hulls(tmp_path: Path) -> None:
    _written_tetrahedron(tmp_path)
    (tmp_path / "r.urdf").write_text(URDF.format("corner.obj"))
    model = lw.load(tmp_path / "r.urdf", floating=True).with_contacts(lw.Ground())
    (shape,) = model.bodies["corner"].collisions
    assert shape.kind == "convex"
    assert len(shape.vertices) == 4
    run = lw.simulate(model, [1, 0, 0, 0, 0, 0, 0.01], duration=0.5, dt=0.002, method="moreau")
    assert abs(run.q[-1, 6]) < 1e-9  # it lies on its face


def test_meshes_that_are_not_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(URDF.format("lost.obj"))
    model = lw.load(tmp_path / "r.urdf", floating=True)
    with pytest.raises(lw.errors.ModelFileError, match=r"(?s)'corner'.*only="):
        model.with_contacts(lw.Ground())
    (tmp_path / "lost.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(lw.InputError, match=r"(?s)no hull with an inside.*thickness"):
        model.with_contacts(lw.Ground())


def test_methods_that_do_not_touch_the_floor_say_so() -> None:
    model = lw.loads(SCENE)
    with pytest.warns(lw.errors.InputWarning, match=r"(?s)nothing touches the ground.*moreau") as told:
        lw.simulate(model, duration=0.01, method="dop853")
    assert told[0].filename == __file__
    with pytest.warns(lw.errors.InputWarning, match="nothing touches the ground") as told:
        lw.Simulation(model, method="rk4")
    assert told[0].filename == __file__


def test_files_without_a_floor_say_so() -> None:
    with pytest.raises(lw.InputError, match=r"lw\.Ground"):
        lw.simulate(lw.loads("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"),
                    method="moreau")  # fmt: skip


def test_materials_in_native_files(tmp_path: Path) -> None:
    model = lw.loads(SCENE).with_contacts(softness="file")
    model.save(tmp_path / "scene.lw.json")
    again = lw.load(tmp_path / "scene.lw.json")
    assert again._contact_scene == model._contact_scene
    assert again.bodies["box"].collisions == model.bodies["box"].collisions


def test_pairs_of_a_file_meet_whatever_their_bits_say():
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" contype="0" conaffinity="0"/>
    <body name="a" pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1" contype="0" conaffinity="0"/>
    <body name="b" pos="0.15 0 0"><joint type="hinge" axis="0 1 0"/>
    <geom name="other" size="0.1" contype="0" conaffinity="0"/></body></body>
    <body name="c" pos="2 0 0.1"><freejoint/><geom size="0.1" contype="0" conaffinity="0"/></body></worldbody>
    <contact><pair geom1="ball" geom2="floor" friction="1 1"/>%s<exclude body1="a" body2="b"/></contact></mujoco>"""
    model = lw.loads(text % "")
    assert model.with_contacts().contacts.names == ("a on floor",)
    motion = lw.simulate(model, duration=0.1, dt=0.002, method="moreau")
    assert abs(motion.q[-1, 6] - 0.1) < 1e-6
    assert motion.q[-1, model.joints[2].q_slice][6] < 0.1 - 0.03  # nothing holds the third ball
    with pytest.warns(lw.errors.ModelWarning) as caught:
        both = lw.loads(text % '<pair geom1="ball" geom2="other" friction="0.3 0.4" margin="0.01"/>')
    assert "differs in two directions" in caught[0].message.left_out[0]
    assert "margin" in caught[0].message.left_out[1]
    assert set(both.with_contacts(rules=lw.ContactRules(overlap=1.0)).contacts.names) == {"a on floor", "a on b"}
    with pytest.raises(lw.errors.ModelFileError, match="ghost"):
        lw.loads(text % '<pair geom1="ball" geom2="ghost"/>')


RULES = """<mujoco><worldbody>
    <geom name="floor" type="plane" size="1 1 1" friction="0.2 0.03 0.004" condim="%d" priority="%d"/>
    <body name="a" pos="0 0 0.1"><freejoint/>
    <geom name="ball" size="0.1" friction="0.9 0.01 0.002" condim="%d" priority="%d"/></body></worldbody>
    <contact>%s</contact></mujoco>"""


@pytest.mark.parametrize(
    "pair", ["", '<pair geom1="floor" geom2="ball" friction="0.4 0.4 0.05 0.06 0.06" condim="4"/>']
)
@pytest.mark.parametrize("priorities", [(0, 0), (1, 0), (0, 3)])
@pytest.mark.parametrize("condims", [(1, 3), (3, 1), (3, 4), (4, 3), (6, 1), (1, 1)])
def test_friction_of_two_surfaces_is_what_mujoco_makes_of_it(
    condims: tuple[int, int], priorities: tuple[int, int], pair: str, tmp_path: Path
) -> None:
    """Also of what is written as MJCF and as a native file, and read again."""
    mujoco = pytest.importorskip("mujoco")
    text = RULES % (condims[0], priorities[0], condims[1], priorities[1], pair)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    d.qpos[2] = 0.0999
    mujoco.mj_forward(m, d)
    (touch,) = d.contact
    mu = np.array(touch.friction)[[0, 2, 3]] * (touch.dim >= np.array([3, 4, 6]))
    model = lw.loads(text)
    model.save(tmp_path / "model.lw.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save(tmp_path / "model.xml")
        written = lw.load(tmp_path / "model.xml")
    for each in (model, lw.load(tmp_path / "model.lw.json"), written):
        (meeting,) = meetings_of(each.with_contacts())
        material = meeting.material
        assert [material.friction, material.torsion, material.rolling] == pytest.approx(mu.tolist(), abs=1e-15)


def test_a_pair_slides_by_its_own_friction_and_gives_way_by_its_own_softness() -> None:
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body name="a" pos="0 0 0.05"><freejoint/><geom name="box" type="box" size="0.1 0.1 0.05"/></body></worldbody>
    <contact><pair geom1="floor" geom2="box" friction="0.25 0.25" solref="0.01 1" solimp="0.9 0.9 0.001"/>
    </contact></mujoco>"""
    model = lw.loads(text)
    v = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    motion = lw.simulate(model, v0=v, duration=0.6, dt=0.002)
    assert motion.q[-1, 4] == pytest.approx(1.0 / (2 * 0.25 * 9.81), rel=1e-4)
    other = model.with_contacts(material=lw.Material(friction=0.5))
    assert meetings_of(other)[0].material.friction == 0.5
    slow = text.replace("0.01 1", "0.02 1")
    soft = [meetings_of(lw.loads(t).with_contacts(softness="file"))[0].material for t in (text, slow)]
    assert soft[0].stiffness == pytest.approx(4.0 * soft[1].stiffness, rel=1e-9)


def test_bodies_that_several_joints_join_do_not_meet() -> None:
    """As in MuJoCo, whose bodies have as many joints as they like."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><body name="a"><joint axis="0 0 1"/><geom size="0.1"/>
    <body name="b" pos="0.1 0 0"><joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1"/><geom size="0.1"/>
    <body name="c" pos="0.1 0 0"><joint axis="1 0 0"/><geom size="0.1"/></body></body></body></worldbody></mujoco>"""
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    met = [{m.body(m.geom_bodyid[g]).name for g in (c.geom1, c.geom2)} for c in d.contact]
    assert met == [{"a", "c"}]
    assert lw.loads(text).with_contacts().contacts.pairs == ("a on c",)


HOPPER = """<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body name="torso" pos="0 0 1" euler="0 90 0">
<joint name="forth" type="slide" axis="0 0 1"/><joint name="up" type="slide" axis="-1 0 0"/>
<joint name="turn" axis="0 1 0"/><geom size=".1"/></body></worldbody></mujoco>"""


def test_a_planar_walker_does_not_fall_through_the_floor() -> None:
    """Between it and the world are slides and a hinge, not a free joint."""
    run = lw.simulate(lw.loads(HOPPER), duration=1.0, dt=0.005)
    assert run.method == "moreau"
    assert run.q[-1] == pytest.approx([0.0, -0.9, 0.0], abs=1e-9)
    with pytest.warns(lw.errors.InputWarning, match="nothing touches the ground"):
        lw.simulate(lw.loads(HOPPER), duration=0.1, method="dop853")


def test_an_arm_over_a_floor_is_said_to_touch_nothing() -> None:
    arm = HOPPER.replace('type="slide" axis="-1 0 0"', 'type="slide" axis="-1 0 0" limited="true" range="-5 5"')
    assert 'method="moreau"' in lw.simulate(lw.loads(arm), duration=0.1).note
    assert "nothing touches" not in lw.simulate(lw.loads(arm), duration=0.1, dt=0.01, method="moreau").note


INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LEG = f"""<robot name="leg"><link name="trunk">{INERTIAL}</link><link name="shank">{INERTIAL}<collision name="rod">
<geometry><box size=".1 .1 .4"/></geometry></collision></link><link name="foot"><collision><geometry>
<sphere radius=".05"/></geometry></collision></link><joint name="knee" type="revolute"><parent link="trunk"/>
<child link="shank"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="9"/></joint>
<joint name="ankle" type="fixed"><origin xyz="0 0 -.3"/><parent link="shank"/><child link="foot"/></joint></robot>"""


def test_links_and_shapes_are_named_where_they_are_parts_of_bodies(tmp_path: Path) -> None:
    """A foot on a fixed joint, as robots have them, and a shape by its own name in the file."""
    leg = lw.loads(LEG, floating=True)

    def touching(**named: Any) -> list[str]:
        return [pair.shape.kind for pair in meetings_of(leg.with_contacts(lw.Ground(), **named))]

    assert touching(only=["foot"]) == ["sphere"]
    assert touching(only=["rod"]) == ["box"]
    assert touching(only=["shank"]) == ["box", "sphere"] == touching()
    assert touching(exclude=[("foot", "ground")]) == ["box"]
    slick = leg.with_contacts(lw.Ground(), material={"foot": lw.Material(friction=0.1)})
    assert [pair.material.friction for pair in meetings_of(slick)] == [lw.Material().friction, 0.1]
    leg.save(tmp_path / "leg.lw.json")
    again = lw.load(tmp_path / "leg.lw.json").with_contacts(lw.Ground(), only=["rod"])
    assert [pair.shape.kind for pair in meetings_of(again)] == ["box"]
    with pytest.raises(lw.errors.UnknownNameError, match="did you mean 'foot'"):
        touching(only=["fot"])


def test_forces_on_links_that_are_parts_of_bodies() -> None:
    """Those on a foot are all that its body bears; its sensor reads them at the foot."""
    leg = lw.loads(LEG, floating=True).with_contacts(lw.Ground(), lw.Ground(name="wall"), only=["foot"])
    q = np.array([1.0, 0, 0, 0, 0, 0, 0.345, 0])
    run = lw.simulate(leg, q, [0, 0, 0, 0.1, 0, 0, 0], duration=0.02, dt=0.002)
    body, foot = (FootForce(name).read(run) for name in ("shank", "foot"))
    assert np.allclose(body, run.contacts.wrenches[:, leg.bodies["shank"].index])
    assert foot[-1, 5] > 1.0
    assert np.allclose(body[:, 3:], foot[:, 3:])
    assert np.allclose(body[:, :3], foot[:, :3] + np.cross([0, 0, -0.3], foot[:, 3:]))
    both = [run.contacts.force_on("foot", by=name) for name in ("ground", "wall")]
    assert np.allclose(both[0], run.contacts.force_on("shank")) and 0.0 < both[1][-1, 2] < both[0][-1, 2]
    assert np.allclose(Touch(["foot"]).read(run), Touch().read(run))
    with pytest.raises(lw.errors.UnknownNameError, match="did you mean 'foot'"):
        run.contacts.force_on("fot")
    (pressing,) = run.plot("contact").axes[0].lines
    assert np.array_equal(pressing.get_ydata(), run.contacts.pressing("foot")) and pressing.get_label() == "shank"
    assert (
        repr(lw.loads(LEG).with_contacts(only=["foot"]).contacts) == "<contacts of 'leg': nothing of 'leg' can touch>"
    )
    assert repr(lw.loads(LEG).contacts) == "<contacts of 'leg': 0 pairs, 0 points>"
    assert repr(leg.contacts) == "<contacts of 'leg': 2 pairs, 2 points: 'shank on ground', 'shank on wall'>"
