"""MJCF against MuJoCo, on a file with one of everything: the same mechanism, loops, actuators, sensors, keyframes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.files.check import check_file
from linkwise.files.mjcf import from_mujoco, to_mujoco
from linkwise.model.transmissions import MovingFrames, length, speed, wrenches
from tests.files.mujoco_of_mjcf import Beside, driven, errors, mujoco, random_state

EVERYTHING = """
<mujoco model="everything">
  <compiler angle="degree" autolimits="true"/>
  <option gravity="0.3 -0.2 -9.7"/>
  <default>
    <joint damping="0.3" armature="0.02"/>
    <default class="springy"><joint stiffness="4" springref="20"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <camera name="eye" pos="1 2 3"/>
    <body name="hull" pos="0.1 0.2 1" euler="10 20 30">
      <freejoint name="root"/>
      <geom type="box" size="0.2 0.1 0.05" pos="0.02 0 0.01" euler="0 0 20"/>
      <site name="hull" pos="0.1 0.05 0.02" euler="30 10 0"/>
      <body name="leg" pos="0.2 0 -0.05">
        <joint name="hip_x" axis="1 0 0.2" pos="0.01 0.02 0" ref="15" range="-90 90"/>
        <joint name="hip_y" axis="0 1 0" pos="0 0 0.03" class="springy"/>
        <joint name="hip_s" type="slide" axis="0.3 0 1" ref="0.1" stiffness="30" springref="0.05"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0 0.02 -0.3"/>
        <body name="foot" pos="0 0 -0.3" quat="0.9 0.1 0.2 0.3">
          <joint name="ankle" type="ball" pos="0.01 0 0.02" stiffness="3" damping="0.2" armature="0.01"/>
          <geom type="ellipsoid" size="0.06 0.04 0.02"/>
          <site name="sole" pos="0 0.01 -0.02" euler="5 6 7"/>
          <body name="toe" pos="0.05 0 0"><geom size="0.01"/></body>
        </body>
      </body>
      <body name="arm" pos="-0.2 0.1 0">
        <joint name="shoulder" axis="0 1 0" frictionloss="0.1"/>
        <geom type="cylinder" size="0.02 0.1"/>
        <body name="hand" pos="0 0 0.2">
          <joint name="wrist" axis="1 0 0"/>
          <geom size="0.04"/>
          <site name="grip" pos="0.01 0.02 0.03"/>
        </body>
      </body>
    </body>
    <site name="hook" pos="0.3 0.1 2"/>
  </worldbody>
  <tendon>
    <fixed name="band" stiffness="5" damping="0.4" springlength="-0.05 0.1">
      <joint joint="shoulder" coef="0.7"/><joint joint="wrist" coef="-1.2"/>
    </fixed>
  </tendon>
  <actuator>
    <motor name="m_hip" joint="hip_x" gear="3" ctrlrange="-1 1"/>
    <position name="p_hip" joint="hip_y" kp="20" kv="2" forcerange="-8 8"/>
    <velocity name="v_slide" joint="hip_s" kv="5"/>
    <general name="g_arm" joint="shoulder" gaintype="affine" gainprm="2 0.5 0.3" biastype="affine"
             biasprm="0.2 -3 -0.4" gear="1.5"/>
    <general name="filtered" joint="wrist" dyntype="filter" dynprm="0.2" gainprm="2"/>
    <intvelocity name="integrated" joint="wrist" kp="7" actrange="-0.3 0.3"/>
    <motor name="m_band" tendon="band" gear="2"/>
    <general name="m_ball" joint="ankle" gear="0.3 -0.2 0.5" biastype="affine" biasprm="0 -2 -0.1"/>
    <general name="thrust" site="sole" gear="1 2 3 0.1 0.2 0.3" biastype="affine" biasprm="0.5 0 -0.3"/>
    <motor name="geared" joint="wrist" gear="4" armature="0.003" damping="0.02"/>
  </actuator>
  <sensor>
    <jointpos joint="hip_x"/><jointvel joint="hip_s"/><ballquat joint="ankle"/><ballangvel joint="ankle"/>
    <actuatorpos actuator="g_arm"/><actuatorvel actuator="m_band"/><actuatorfrc actuator="p_hip"/>
    <actuatorfrc actuator="filtered"/><jointactuatorfrc joint="wrist"/>
    <gyro site="sole"/><accelerometer site="sole"/><velocimeter site="sole"/><magnetometer site="grip"/>
    <force site="grip"/><torque site="grip"/>
    <framepos objtype="site" objname="sole"/><framequat objtype="xbody" objname="hand"/>
    <framepos objtype="site" objname="sole" reftype="xbody" refname="arm"/>
    <framequat objtype="body" objname="leg" reftype="site" refname="grip"/>
    <framexaxis objtype="camera" objname="eye"/><frameyaxis objtype="site" objname="sole"/>
    <framezaxis objtype="xbody" objname="hand" reftype="xbody" refname="hull"/>
    <framelinvel objtype="body" objname="leg"/><frameangvel objtype="site" objname="sole"/>
    <framelinvel objtype="site" objname="sole" reftype="xbody" refname="arm"/>
    <frameangvel objtype="site" objname="sole" reftype="xbody" refname="arm"/>
    <framelinacc objtype="site" objname="sole"/><frameangacc objtype="site" objname="sole"/>
    <subtreecom body="arm"/><subtreelinvel body="leg"/><subtreeangmom body="hull"/>
    <clock/>
  </sensor>
  <keyframe>
    <key name="bent" qpos="1 2 3 0.5 0.5 0.5 0.5 0.1 0.2 0.3 1 0 0 0 0.4 0.5"/>
    <key qpos="0 0 0 1 0 0 0 0 0 0 1 0 0 0 0 0"/>
  </keyframe>
</mujoco>
"""


def left_out(caught: Any) -> str:
    """What warnings say was left out of a file."""
    return "; ".join(left for each in caught for left in each.message.left_out)


@pytest.fixture(scope="module")
def everything() -> tuple[lw.Model, Beside]:
    model = lw.loads(EVERYTHING)
    return model, Beside.of_text(model, EVERYTHING)


def test_dynamics(everything: tuple[lw.Model, Beside]) -> None:
    _, beside = everything
    found = errors(beside, np.random.default_rng(0), states=6)
    assert max(found[:4]) < 1e-11, found
    assert found.driven < 1e-11, found


CORD = """<spatial name="cord" stiffness="9" damping="0.7" springlength="0.2">
      <site site="hook"/><site site="grip"/><site site="hull"/>
      <pulley divisor="2"/><site site="sole"/><site site="grip"/></spatial>"""
SERVO = '<position name="m_cord" tendon="cord" kp="3" kv="0.2" gear="1.5"/>'


def test_tendon_through_space() -> None:
    """It acts on bodies here, on joints there; so it is kept from the sensors of joint forces above."""
    text = EVERYTHING.replace("<tendon>", f"<tendon>{CORD}").replace("<actuator>", f"<actuator>{SERVO}")
    found = errors(Beside.of_text(lw.loads(text), text), np.random.default_rng(0))
    assert found.driven < 1e-11, found


COINCIDENT = """<mujoco><worldbody><site name="hook" pos="0.3 0 0"/>
<body name="a"><joint name="i" axis="0 0 1"/><geom size="0.1" pos="0.2 0 0"/><site name="tip" pos="0.3 0 0"/>
  <site name="same" pos="0.3 0 0"/><body name="b" pos="0.3 0 0"><joint name="j" axis="0 1 0"/>
  <geom size="0.1" pos="0 0 0.2"/><site name="root"/><site name="end" pos="0 0.1 0.2"/></body></body></worldbody>
<tendon><spatial name="cord" stiffness="9" damping="0.7" springlength="0.2">{}</spatial></tendon>
<actuator><motor name="pull" tendon="cord" gear="2"/></actuator></mujoco>"""


@pytest.mark.parametrize("q", [(0.0, 0.4), (1e-17, 0.4), (1e-14, -0.3), (0.7, 0.4)])
@pytest.mark.parametrize(
    "way", [("hook", "tip"), ("hook", "root"), ("tip", "same"), ("hook", "tip", "root", "end"), ("root", "tip", "hook")]
)
def test_a_tendon_through_sites_that_coincide(way: tuple[str, ...], q: tuple[float, float]) -> None:
    """Some coincide at q = 0, some always, on one body or on two. MuJoCo takes the x axis for the missing direction."""
    text = COINCIDENT.format("".join(f'<site site="{site}"/>' for site in way))
    model = lw.loads(text)
    beside = Beside.of_text(model, text)
    v = np.array([0.5, -0.8])
    data = beside.at(np.array(q), v)
    transmission = model.springs["cord"].transmission
    places = MovingFrames(model, q, v)
    assert float(length(places, transmission)) == pytest.approx(data.ten_length[0], rel=1e-12, abs=1e-17)
    assert float(speed(places, transmission)) == pytest.approx(data.ten_velocity[0], rel=1e-9, abs=1e-15)
    row = np.zeros(model.nv)
    for body, wrench in wrenches(places, transmission).items():
        J, R = model.jacobian(q, body), model.pose(q, body)[:3, :3]
        row += J.T @ np.concatenate([R @ np.array(wrench[:3], float), R @ np.array(wrench[3:], float)])
    theirs = np.zeros((1, model.nv))
    m = beside.m
    mujoco.mju_sparse2dense(theirs, data.ten_J, m.ten_J_rownnz, m.ten_J_rowadr, m.ten_J_colind)
    np.testing.assert_allclose(row, theirs[0], rtol=1e-9, atol=1e-15)
    assert driven(beside, model, np.array(q), v, np.random.default_rng(0)) < 1e-11
    assert np.isfinite(lw.simulate(model, q, v, duration=0.01, dt=0.005, method="rk4").q).all()


def test_nesting_is_not_counted_as_including(tmp_path: Path) -> None:
    """An include deep inside bodies, and in each of many files: only files within files are counted."""
    (tmp_path / "part.xml").write_text("<mujocoinclude><joint/><geom size='0.1'/></mujocoinclude>")
    for deep in (5, 19, 40):
        text = f"<mujoco><worldbody>{'<body>' * deep}<include file='part.xml'/>{'</body>' * deep}</worldbody></mujoco>"
        (tmp_path / "whole.xml").write_text(text)
        assert lw.load(tmp_path / "whole.xml").nv == mujoco.MjModel.from_xml_path(str(tmp_path / "whole.xml")).nv == 1
    for deep, allowed in ((20, True), (21, False)):
        for k in range(deep):
            inside = f"<include file='f{k + 1}.xml'/>" if k + 1 < deep else "<joint/><geom size='0.1'/>"
            (tmp_path / f"f{k}.xml").write_text(f"<mujocoinclude>{inside}</mujocoinclude>")
        (tmp_path / "whole.xml").write_text(
            "<mujoco><worldbody><body><include file='f0.xml'/></body></worldbody></mujoco>"
        )
        if allowed:
            assert lw.load(tmp_path / "whole.xml").nv == 1
        else:
            with pytest.raises(lw.errors.ModelFileError, match="20 deep"):
                lw.load(tmp_path / "whole.xml")


def test_states_there_and_back(everything: tuple[lw.Model, Beside]) -> None:
    model, _ = everything
    q, v = random_state(model, np.random.default_rng(1))
    again = from_mujoco(model, *to_mujoco(model, [q, q], [v, v]))
    assert np.allclose(again.q, q, atol=1e-15)
    assert np.allclose(again.v, v, atol=1e-14)
    with pytest.raises(lw.InputError, match="does not fit"):
        to_mujoco(model, q[:-1], v)


def test_poses_of_bodies_sites_and_cameras(everything: tuple[lw.Model, Beside]) -> None:
    model, beside = everything
    q, v = random_state(model, np.random.default_rng(2))
    data = beside.at(q, v)
    for name in ("hull", "leg", "foot", "toe", "hand"):
        X = model.pose(q, name)
        assert np.allclose(X[:3, 3], data.body(name).xpos, atol=1e-14)
        assert np.allclose(X[:3, :3].reshape(-1), data.body(name).xmat, atol=1e-14)
    assert np.allclose(model.pose(q, "hull_site")[:3, 3], data.site("hull").xpos, atol=1e-14)
    assert np.allclose(model.pose(q, "eye")[:3, :3].reshape(-1), data.cam("eye").xmat, atol=1e-14)


def test_keyframes_are_configurations(everything: tuple[lw.Model, Beside]) -> None:
    model, beside = everything
    assert list(model.configurations) == ["initial", "bent", "key1"]
    assert np.allclose(to_mujoco(model, model.configurations["initial"]).q, beside.m.qpos0, atol=1e-15)
    assert np.allclose(to_mujoco(model, model.configurations["bent"]).q, beside.m.key_qpos[0], atol=1e-15)


def test_limits_and_geometry(everything: tuple[lw.Model, Beside]) -> None:
    model, _ = everything
    assert model.joints["hip_x"].limits[0].upper == pytest.approx(np.pi / 2)
    assert model.joints["shoulder"].friction == (0.1,)
    (box,) = model.bodies["hull"].visuals
    assert (box.kind, box.size) == ("box", (0.4, 0.2, 0.1))
    assert [shape.kind for shape in model.bodies["leg"].collisions] == ["capsule"]


def test_sensors(everything: tuple[lw.Model, Beside]) -> None:
    """Along a short motion with everything acting, reading by reading."""
    model, beside = everything
    rng = np.random.default_rng(3)
    u = rng.uniform(-0.5, 0.5, len(model.actuators))
    drives = lw.Drives(model, u)
    rules = lw.JointRules(friction=False, limits="ignore")
    q, v = random_state(model, rng)
    x0 = rng.uniform(-0.2, 0.2, drives.nx)
    motion = lw.simulate(model, q, v, duration=0.02, dt=0.01, method="rk4", control=drives, rules=rules, x0=x0)
    readings = lw.Instruments(drives=drives).read(motion)
    m = beside.m
    m.opt.disableflags = int(m.opt.disableflags) | int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    m.opt.enableflags = int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    data = mujoco.MjData(m)
    for k in range(len(motion.t)):
        data.qpos[:], data.qvel[:] = to_mujoco(model, motion.q[k], motion.v[k])
        data.ctrl[:], data.act[:], data.time = u, motion.x[k], motion.t[k]
        mujoco.mj_forward(m, data)
        for i, sensor in enumerate(model.sensors):
            theirs = data.sensordata[m.sensor_adr[i] : m.sensor_adr[i] + m.sensor_dim[i]]
            ours = readings[sensor.name][k]
            if sensor.size == 4 and ours @ theirs < 0:
                ours = -ours
            assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9), (sensor, ours, theirs)


LOOPS = """
<mujoco>
  <worldbody>
    <body name="a"><joint name="a" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0"/>
      <body name="b" pos="0.3 0 0"><joint name="b" axis="0 1 0"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.4"/><site name="tip" pos="0 0 0.4" euler="0 30 0"/></body>
    </body>
    <body name="c" pos="0.5 0 0"><joint name="c" axis="0 1 0"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.4"/><site name="end" pos="-0.2 0 0.4" euler="0 30 0"/></body>
    <body name="d" pos="0 1 0"><joint name="d" axis="0 1 0" ref="0.2"/><geom size="0.1" pos="0.1 0 0"/></body>
    <body name="e" pos="0 2 0"><joint name="e" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0"/></body>
    <body name="f" pos="0 3 0"><freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body name="g" pos="0 3 1"><freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body name="h" pos="1 3 1"><freejoint/><geom type="box" size="0.1 0.2 0.3"/></body>
    <body name="k" pos="0 4 0"><joint name="k" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0"/></body>
  </worldbody>
  <tendon><fixed name="sum"><joint joint="d" coef="2"/><joint joint="e" coef="-0.5"/></fixed>
    <fixed name="one"><joint joint="k" coef="1"/></fixed></tendon>
  <equality>
    <connect name="pin" body1="b" body2="c" anchor="0 0 0.4"/>
    <weld name="glue" body1="f" body2="g" relpose="0 0 1 0.9 0.1 0.2 0.3" anchor="0.1 0.2 0.3"/>
    <weld name="hang" body1="g" body2="h" torquescale="0"/>
    <connect name="sites" site1="tip" site2="end"/>
    <joint name="gear" joint1="d" joint2="e" polycoef="0.1 2"/>
    <joint name="cam" joint1="k" joint2="e" polycoef="0.1 0.5 0.3 -0.2 0.1"/>
    <joint name="held" joint1="a" polycoef="0.3"/>
    <tendon name="both" tendon1="sum" tendon2="one" polycoef="0.2 -1"/>
    <weld name="later" body1="f" active="false"/>
  </equality>
</mujoco>
"""


def test_loops_have_mujocos_rows() -> None:
    """Each closure spans the same space of forces as MuJoCo's rows, and is closed where they are."""
    with pytest.warns(lw.errors.ModelWarning) as caught:
        model = lw.loads(LOOPS)
    assert "'later', which is not active" in left_out(caught)
    kinds = {closure.name: closure.type.kind for closure in model.closures}
    assert kinds == {
        "pin": "Spherical", "glue": "Fixed", "hang": "Spherical", "sites": "Spherical",
        "gear": "Coupling", "cam": "PolynomialCoupling", "held": "Coupling", "both": "Coupling",
    }  # fmt: skip
    beside = Beside.of_text(model, LOOPS)
    for i, closure in enumerate(model.closures):
        alone = model
        for other in model.closures:
            alone = alone if other is closure else alone.without(other.name)
        q = alone.assemble(random_state(model, np.random.default_rng(i))[0])
        place, rows = _equality(beside, q, mujoco.mj_name2id(beside.m, mujoco.mjtObj.mjOBJ_EQUALITY, closure.name))
        assert np.abs(place).max() < 1e-9, closure.name
        ours = alone.constraints.jacobian(q)
        rank = np.linalg.matrix_rank(ours, tol=1e-6)
        assert np.linalg.matrix_rank(rows, tol=1e-6) == rank == np.linalg.matrix_rank(np.vstack([rows, ours]), tol=1e-6)


def _equality(beside: Beside, q: Any, number: int) -> tuple[Any, Any]:
    """What MuJoCo has for one equality: by how much it is open, and its rows in our coordinates."""
    m, data = beside.m, mujoco.MjData(beside.m)
    data.qpos[:] = to_mujoco(beside.model, q).q
    mujoco.mj_forward(m, data)
    rows = np.zeros((data.nefc, m.nv))
    if mujoco.mj_isSparse(m):
        mujoco.mju_sparse2dense(rows, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    else:
        rows[:] = np.reshape(data.efc_J, (-1, m.nv))[: data.nefc]
    own = (data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)) & (data.efc_id == number)
    return data.efc_pos[own], rows[own] @ np.linalg.inv(beside.T(q))


def test_several_bodies_stand_between_joints() -> None:
    model = lw.loads(EVERYTHING)
    assert [body.name for body in model.bodies][:4] == ["hull", "leg.hip_x", "leg.hip_y", "leg"]
    assert model.bodies["leg.hip_x"].mass == 0.0
    assert [joint.name for joint in model.joints][:4] == ["root", "hip_x", "hip_y", "hip_s"]


def test_locked_joints() -> None:
    """Locked joints leave the actuators, sensors and configurations of the others as they are."""
    held = {"wrist": 0.3, "hip_x": 0.2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.ModelWarning)
        model, whole = lw.loads(EVERYTHING, locked=held), lw.loads(EVERYTHING)
    assert "m_hip" not in [actuator.name for actuator in model.actuators]
    assert "wrist" not in [sensor.target for sensor in model.sensors]
    q = model.configurations["bent"]
    q_whole = np.array(whole.configurations["bent"])
    for name, value in held.items():
        q_whole[whole.joints[name].q_slice] = value
    rng = np.random.default_rng(5)
    v = rng.normal(size=model.nv)
    v_whole = np.zeros(whole.nv)
    for joint in model.joints:
        v_whole[whole.joints[joint.name].v_slice] = v[joint.v_slice]
    names = [actuator.name for actuator in model.actuators]
    u = rng.normal(size=len(names))
    ours, theirs = lw.Drives(model, u), lw.Drives(whole, u, names=names)
    x = rng.uniform(-0.2, 0.2, ours.nx)
    tau = np.array(ours.force(0.0, q, v, x, ()), float)
    tau_whole = np.array(theirs.force(0.0, q_whole, v_whole, x, ()), float)
    for joint in model.joints:
        assert np.allclose(tau[joint.v_slice], tau_whole[whole.joints[joint.name].v_slice], atol=1e-13)


def test_what_has_no_counterpart_is_said_once_and_listed(tmp_path: Path) -> None:
    text = """<mujoco><option density="1.2"/><worldbody><body name="b" gravcomp="1"><joint name="j" stiffness="1 2"/>
    <geom size="1"/><site name="s"/></body><body name="m" mocap="true"/></worldbody>
    <actuator><muscle name="biceps" joint="j" lengthrange="0 1"/><adhesion name="gecko" body="b" ctrlrange="0 1"/>
    </actuator>
    <sensor><rangefinder name="ray" site="s"/><touch name="skin" site="s"/></sensor>
    </mujoco>"""
    with pytest.warns(lw.errors.ModelWarning) as caught:
        model = lw.loads(text)
    (warning,) = caught
    assert isinstance(warning.message, lw.errors.ModelWarning)
    for word in ("'gecko' (adhesion", "rangefinder ('ray')", "mocap: 'm'", "not linear"):
        assert word in "; ".join(warning.message.left_out)
    said = "<string>: 4 things are left out; the left_out of this warning lists them"
    assert str(warning.message) == said
    assert [actuator.name for actuator in model.actuators] == ["biceps"]
    assert [sensor.name for sensor in model.sensors] == ["skin"]
    (tmp_path / "two words.xml").write_text(text)
    with pytest.warns(
        lw.errors.ModelWarning, match=r"^\S.*: 4 things are left out; `linkwise check .*two words.xml` lists them$"
    ):
        lw.load(tmp_path / "two words.xml")
    problems = check_file(tmp_path / "two words.xml")
    listed = [each.what.removeprefix("left out: ") for each in problems if each.what.startswith("left out: ")]
    assert sorted(listed) == sorted(warning.message.left_out)
    assert [each.line for each in problems if "'gecko'" in each.what] == [3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<mujoco>\n<worldbody>\n<body nmae="x"/></worldbody></mujoco>',
            "<string>:3: .*unrecognized attribute: 'nmae'",
        ),
        ("<mujoco>\n<worldbody>\n\n<body><joint/></body></worldbody></mujoco>", "<string>:4: .*mass and inertia"),
        ('<mujoco>\n<extension><plugin plugin="x"/></extension></mujoco>', "<string>:2: <extension>: plugins run code"),
        ('<mujoco><worldbody>\n<flexcomp name="f"/></worldbody></mujoco>', "<string>:2: .*flexes are not supported"),
        ('<mujoco>\n<include file="/etc/passwd"/></mujoco>', "<string>:2: <include>: this address leads out"),
        ('<mujoco><asset>\n<mesh file="../../etc/x.stl"/></asset></mujoco>', "<string>:2: <mesh>: "),
        ('<mujoco><asset>\n<mesh file="x.dae"/></asset></mujoco>', "<string>:2: this kind of mesh"),
        ('<mujoco><worldbody>\n<replicate count="99999"><geom size="1"/></replicate></worldbody></mujoco>', "too many"),
        ('<mujoco><worldbody>\n<body pos="nan 0 0"/></worldbody></mujoco>', "<string>:2: .*not a number that"),
        (
            '<mujoco><asset>\n<hfield name="h" nrow="999999999" ncol="9" size="1 1 1 1"/></asset></mujoco>',
            ":2: .*heights",
        ),
        ('<mujoco><compiler>\n<lengthrange inttotal="1e12"/></compiler></mujoco>', ":2: .*muscles takes too long"),
        ('<mujoco><compiler>\n<lengthrange timestep="1e-9"/></compiler></mujoco>', ":2: .*muscles takes too long"),
        ('<mujoco><sensor>\n<user dim="2000000000"/></sensor></mujoco>', ":2: .*'dim' of <user> is not a number that"),
        ("<mujocoinclude/>", "part of a model"),
        ("<mujoco><tendon><fixed/></tendon></mujoco>", "MuJoCo's compiler refuses"),
        (
            '<mujoco><worldbody><body><joint name="j"/><geom size="1"/></body></worldbody><tendon>\n'
            '<fixed armature="1"><joint joint="j" coef="1"/></fixed></tendon></mujoco>',
            "<string>:2: tendon 'tendon0' has an armature",
        ),
    ],
)
def test_refusals_name_the_line(text: str, message: str) -> None:
    with pytest.raises(lw.errors.ModelFileError, match=message):
        lw.loads(text)


def test_names_of_what_has_none() -> None:
    """Bodies, actuators and the like without a name get one that no other has."""
    text = """<mujoco><worldbody><body><joint/><geom size="1"/></body><body name="body1"><joint name="body1_joint"/>
    <geom size="1"/><site name="body1"/></body></worldbody>
    <actuator><motor joint="body1_joint"/><motor name="actuator0" joint="body1_joint"/></actuator></mujoco>"""
    model = lw.loads(text)
    assert [body.name for body in model.bodies] == ["body1_", "body1"]
    assert [joint.name for joint in model.joints] == ["body1__joint", "body1_joint"]
    assert [actuator.name for actuator in model.actuators] == ["actuator0_", "actuator0"]
    assert [frame.name for frame in model.frames] == ["body1_site"]


def test_floating_frees_the_one_body_that_stands() -> None:
    text = """<mujoco><worldbody><body name="hull" pos="0 0 1"><geom size="1"/><body name="arm"><joint name="j"/>
    <geom size="1"/></body></body></worldbody></mujoco>"""
    model = lw.loads(text, floating=True)
    assert model.nv == 7
    assert np.allclose(model.pose(model.configurations["initial"], "hull")[:3, 3], [0, 0, 1])


def test_options_of_the_file_count() -> None:
    flags = 'gravity="disable" spring="disable" damper="disable" clampctrl="disable" equality="disable"'
    model = lw.loads(EVERYTHING.replace('<option gravity="0.3 -0.2 -9.7"/>', f"<option><flag {flags}/></option>"))
    assert model.gravity == (0.0, 0.0, 0.0)
    assert not model.joint_constants.stiffness.any()
    assert not model.joint_constants.damping.any()
    assert model.springs == ()
    assert not np.isfinite(model.actuators["m_hip"].control_range).any()
    with pytest.warns(lw.errors.ModelWarning) as caught:
        assert lw.loads(EVERYTHING.replace("<option ", '<option actuatorgroupdisable="0" ')).actuators == ()
    assert "a group that is switched off" in left_out(caught)


def test_meshes_are_found_beside_the_file_that_names_them(tmp_path: Any) -> None:
    for folder in ("assets/parts", "assets/geometry"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "assets" / "geometry" / "t.stl").write_bytes(_tetrahedron())
    part = '<mujocoinclude><mesh name="t" file="../geometry/t.stl"/></mujocoinclude>'
    (tmp_path / "assets" / "parts" / "meshes.xml").write_text(part)
    main = tmp_path / "m.xml"
    main.write_text(
        '<mujoco><asset><include file="assets/parts/meshes.xml"/></asset>'
        '<worldbody><body><joint/><geom type="mesh" mesh="t"/></body></worldbody></mujoco>'
    )
    theirs = mujoco.MjModel.from_xml_path(str(main))
    assert lw.load(main).bodies[0].mass == pytest.approx(float(theirs.body_mass[1]), rel=1e-12)


def test_files_are_read_from_the_given_folders_only(tmp_path: Any) -> None:
    stl = _tetrahedron()
    (tmp_path / "main" / "parts").mkdir(parents=True)
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "t.stl").write_bytes(stl)
    (tmp_path / "main" / "parts" / "arm.xml").write_text(
        '<mujocoinclude><body name="arm"><joint/><geom type="mesh" mesh="t"/></body></mujocoinclude>'
    )
    main = tmp_path / "main" / "m.xml"
    main.write_text(
        '<mujoco><compiler meshdir="../meshes"/><asset><mesh file="t.stl" scale="2 2 2"/>'
        '<texture name="x" type="2d" file="/etc/hostname"/></asset>'
        '<worldbody><include file="parts/arm.xml"/></worldbody></mujoco>'
    )
    with pytest.raises(lw.errors.ModelFileError, match=r"m\.xml:1: <mesh>: this address leads out"):
        lw.load(main)
    model = lw.load(main, search=[tmp_path])
    assert model.mass == pytest.approx(1000 * 8 / 6, rel=1e-6)
    (shape,) = model.bodies["arm"].visuals
    assert shape.mesh == str(tmp_path / "meshes" / "t.stl")
    assert shape.scale == (2.0, 2.0, 2.0)
    assert np.allclose(shape.placement, np.eye(4), atol=1e-7)


def test_attached_models(tmp_path: Any) -> None:
    (tmp_path / "hand.xml").write_text(
        '<mujoco model="hand"><worldbody><body name="palm"><joint name="j"/><geom size="0.1"/></body></worldbody>'
        "</mujoco>"
    )
    main = tmp_path / "m.xml"
    main.write_text(
        '<mujoco><asset><model name="hand" file="hand.xml"/></asset><worldbody><body name="arm"><joint name="j"/>'
        '<geom size="0.1"/><frame pos="1 0 0"><attach model="hand" body="palm" prefix="r_"/></frame></body></worldbody>'
        "</mujoco>"
    )
    model = lw.load(main)
    assert [joint.name for joint in model.joints] == ["j", "r_j"]
    assert np.allclose(model.pose(model.neutral(), "r_palm")[:3, 3], [1, 0, 0])


def test_models_that_grow_without_end(tmp_path: Any) -> None:
    """Few lines can ask for any number of bodies."""
    seed = '<body name="x"><geom size="1"/></body>'
    (tmp_path / "0.xml").write_text(f'<mujoco model="m0"><worldbody>{seed}</worldbody></mujoco>')
    for k in range(1, 9):
        inner = f'<asset><model name="m" file="{k - 1}.xml"/></asset><worldbody><replicate count="50"><frame>'
        inner += '<attach model="m" prefix="p"/></frame></replicate></worldbody>'
        (tmp_path / f"{k}.xml").write_text(f'<mujoco model="m{k}">{inner}</mujoco>')
    with pytest.raises(lw.errors.ModelFileError, match="too many elements"):
        lw.load(tmp_path / "8.xml")
    circle = '<mujoco><asset><model name="m" file="c.xml"/></asset></mujoco>'
    (tmp_path / "c.xml").write_text(circle)
    with pytest.raises(lw.errors.ModelFileError, match="too many files"):
        lw.load(tmp_path / "c.xml")


def _tetrahedron() -> bytes:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "<f4")
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(np.zeros(3, "<f4").tobytes() + corners[list(face)].tobytes() + b"\0\0" for face in faces)
    return bytes(80) + np.array(len(faces), "<u4").tobytes() + body


def test_a_missing_file_is_one_error(tmp_path: Path) -> None:
    """Not the end of a chain of places that were searched before."""
    (tmp_path / "ball.xml").write_text('<mujoco><asset><mesh file="ball.stl"/></asset></mujoco>')
    with pytest.raises(lw.errors.ModelFileError, match=r"ball\.xml:1: <mesh>: the file was not found") as told:
        lw.load(tmp_path / "ball.xml")
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__


MOVING = """
<mujoco model="thrown"><worldbody>
  <body name="trunk" pos="0 0 5"><freejoint/><geom type="box" size=".2 .1 .05" mass="5"/>
    <body name="leg"><joint name="hip" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5"/>
      <body name="foot" pos="0 0 -.3"><joint name="ankle" type="ball"/><geom type="sphere" size=".03" mass=".1"/></body>
    </body>
  </body>
</worldbody><keyframe><key name="still" qpos="0 0 1 1 0 0 0 0 1 0 0 0"/>
<key name="start" qpos="0 0 2 .8 .6 0 0 .3 1 0 0 0" qvel="1 2 3 .1 .2 .3 .4 .5 .6 .7"/></keyframe></mujoco>"""


def test_motions_begin_with_the_velocity_of_their_keyframe(tmp_path):
    model = lw.loads(MOVING)
    there = mujoco.MjModel.from_xml_string(MOVING)
    q, v = from_mujoco(model, there.key_qpos[1], there.key_qvel[1])
    np.testing.assert_allclose(model.configurations.velocity("start"), v, atol=1e-15)
    assert model.configurations.velocity("still") is None and model.configurations.velocity("initial") is None
    motion = lw.simulate(model, duration=0.01)
    np.testing.assert_allclose(np.r_[motion.q[0], motion.v[0]], np.r_[q, v], atol=1e-15)
    np.testing.assert_array_equal(lw.simulate(model, model.start, duration=0.01).v[0], 0.0)
    for ending in (".lw.json", ".xml"):
        model.save(tmp_path / f"again{ending}")
        again = lw.load(tmp_path / f"again{ending}")
        np.testing.assert_allclose(again.configurations.velocity("start"), v, atol=1e-14)
        assert again.configurations.velocity("still") is None
    mirrored = model.mirrored("xz").configurations.velocity("start")
    np.testing.assert_allclose(mirrored, model.mirrored_state("xz", q, v)[1], atol=1e-15)
    assert model.with_configuration("start", q).configurations.velocity("start") is None
    swung = model.with_configuration("start", q, {"hip": [2.0]})
    np.testing.assert_array_equal(swung.configurations.velocity("start"), 2.0 * np.eye(10)[6])
