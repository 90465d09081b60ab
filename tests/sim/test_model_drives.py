"""The actuators, springs and sensors of a model in simulation: against MuJoCo's own, and against themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw

CRANE = """
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option integrator="RK4" timestep="0.0005"><flag contact="disable" constraint="disable"/></option>
  <worldbody>
    <site name="hook" pos="0.3 0.1 2"/>
    <body name="hull" pos="0 0 1"><freejoint/><geom type="box" size="0.3 0.2 0.1"/>
      <body name="arm" pos="0.3 0 0"><joint name="yaw" axis="0 0 1" damping="0.2"/>
        <joint name="pitch" axis="0 1 0" stiffness="5" springref="0.2" armature="0.1"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.5 0 0"/>
        <body name="load" pos="0.5 0 0"><joint name="swivel" type="ball" stiffness="1" damping="0.1"/>
          <geom size="0.1" pos="0 0 -0.2"/><site name="end" pos="0 0 -0.2"/></body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum" stiffness="3" damping="0.1"><joint joint="yaw" coef="1"/>
      <joint joint="pitch" coef="-0.5"/></fixed>
    <spatial name="rope" stiffness="4" springlength="0.1"><site site="hook"/><site site="end"/></spatial>
  </tendon>
  <actuator>
    <position name="servo" joint="yaw" kp="10" kv="1" forcerange="-3 3"/>
    <general name="slow" joint="pitch" dyntype="filter" dynprm="0.05" gear="2"/>
    <intvelocity name="creep" joint="yaw" kp="2" actrange="-0.02 0.02"/>
    <motor name="winch" tendon="rope" gear="2"/>
    <motor name="jet" site="end" gear="1 0 2 0 0.1 0"/>
  </actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def crane() -> Any:
    pytest.importorskip("mujoco")
    return lw.loads(CRANE)


def test_the_same_motion_as_mujocos(crane: lw.Model) -> None:
    import mujoco

    from linkwise.files.mjcf import from_mujoco, to_mujoco

    m = mujoco.MjModel.from_xml_string(CRANE)
    data = mujoco.MjData(m)
    rng = np.random.default_rng(0)
    q = crane.integrate(crane.configurations["initial"], rng.uniform(-0.3, 0.3, crane.nv))
    v, u = rng.uniform(-0.5, 0.5, crane.nv), rng.uniform(-1, 1, m.nu)
    data.qpos[:], data.qvel[:] = to_mujoco(crane, q, v)
    data.ctrl[:] = u
    for _ in range(200):
        mujoco.mj_step(m, data)
    rules = lw.JointRules(friction=False, limits="ignore")
    motion = lw.simulate(crane, q, v, duration=data.time, control=lw.Drives(crane, u), rules=rules)
    there = from_mujoco(crane, data.qpos, data.qvel)
    # MuJoCo stops an activation at the end of its range by cutting it off after a step: first order there.
    assert np.abs(crane.difference(there.q, motion.q[-1])).max() < 1e-6
    assert np.abs(there.v - motion.v[-1]).max() < 1e-5
    assert np.allclose(data.act, motion.x[-1], atol=1e-5)


def test_without_the_kink_the_motion_agrees_closely(crane: lw.Model) -> None:
    import mujoco

    from linkwise.files.mjcf import from_mujoco

    m = mujoco.MjModel.from_xml_string(CRANE)
    data = mujoco.MjData(m)
    u = np.array([0.1, 0.3, 0.05, 0.2, 0.4])
    data.ctrl[:] = u
    for _ in range(200):
        mujoco.mj_step(m, data)
    rules = lw.JointRules(friction=False, limits="ignore")
    start = crane.configurations["initial"]
    motion = lw.simulate(crane, start, duration=data.time, control=lw.Drives(crane, u), rules=rules)
    there = from_mujoco(crane, data.qpos, data.qvel)
    assert np.abs(crane.difference(there.q, motion.q[-1])).max() < 1e-9
    assert np.abs(there.v - motion.v[-1]).max() < 1e-9


def test_sensors_under_parameters_read_the_same(crane: lw.Model) -> None:
    """Frame by frame, where parameters are given; by sweeps over all bodies, where not."""
    kinds = ("gyroscope", "accelerometer", "velocimeter", "frame_position", "frame_orientation")
    sensors = [lw.equipment.Sensor(kind, kind, "end") for kind in kinds]
    sensors += [lw.equipment.Sensor("load", "subtree_linear_velocity", "load")]
    plain = crane.with_equipment(sensors=sensors)
    given = plain.with_parameters(["arm.mass"])
    start = crane.integrate(crane.configurations["initial"], 0.1 * np.ones(crane.nv))
    options: Any = {"v0": np.linspace(-1, 1, crane.nv), "duration": 0.02, "dt": 0.01, "method": "rk4"}
    one = lw.Instruments().read(lw.simulate(plain, start, **options))
    other = lw.Instruments().read(lw.simulate(given, start, p=given.parameters.nominal, **options))
    for name in one:
        assert np.allclose(one[name], other[name], atol=1e-10), name
    fixed = plain.with_equipment(sensors=[lw.equipment.Sensor("fixed", "accelerometer", "hook")])
    assert np.allclose(lw.Instruments().read(lw.simulate(fixed, start, **options))["fixed"], [0, 0, 9.81])


def _rod(**more: Any) -> lw.ModelBuilder:
    b = lw.ModelBuilder("rods", gravity=(0, 0, 0))
    b.add_body("a", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=np.eye(3), joint_name="a")
    b.add_body("b", "a", lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=np.eye(3), joint_name="b")
    b.add_actuator(lw.equipment.Actuator("m", lw.equipment.JointTransmission({"a": 2.0}), **more))
    b.add_actuator(lw.equipment.Actuator("n", lw.equipment.JointTransmission({"a": 1.0, "b": -1.0})))
    return b


def test_ways_to_say_u() -> None:
    model = _rod(control_range=(-1.0, 1.0)).build()
    wave = lw.simulate(model, [0, 0], duration=1.0, control=lambda t, q, v, p: [2 * t * 0.5 + 0.1, -0.1])
    function = lw.Drives(model, lambda t, q, v, p: [0.5 * t, 0.1])
    mapping = lw.Drives(model, {"m": lambda t, q, v, p: 0.5 * t, "n": 0.1})
    table = lw.Drives(model, [[0.0, 0.1], [0.25, 0.1], [0.5, 0.1]], times=[0.0, 0.5, 1.0])
    for drives in (function, mapping, table):
        motion = lw.simulate(model, [0, 0], duration=1.0, control=drives)
        assert np.allclose(motion.q[-1], wave.q[-1], atol=1e-8)
    only = lw.Drives(model, 3.0, names=["m"])
    assert only.force(0.0, np.zeros(2), np.zeros(2), (), ())[0] == 2.0  # u is held within its range


def test_tables_of_u() -> None:
    """Of any kind and length; sampled, read by sensors, and held at their time where a motion is linearised."""
    b = _rod(gain=(2.0, 1.0, 0.0))  # the force grows with the length: u has a say in the linear model
    b.add_sensor(lw.equipment.Sensor("force", "actuator_force", "m"))
    model = b.build()
    times = np.linspace(0.0, 1.0, 5001)
    values = np.stack([np.sin(3.0 * times), 0.1 + 0.0 * times], axis=1)
    wave = lw.Drives(model, lambda t, q, v, p: [lw.math.sin(3.0 * t), 0.1])
    given = {"duration": 1.0, "method": "dop853", "rtol": 1e-10}
    for tabled in (lw.Table(times, values), lw.Table(times[::50], values[::50], "cubic")):
        motion = lw.simulate(model, [0, 0], control=lw.Drives(model, tabled), **given)
        assert np.allclose(motion.q[-1], lw.simulate(model, [0, 0], control=wave, **given).q[-1], atol=1e-7)
    table = lw.Drives(model, values[::10], times=times[::10])
    motion = lw.simulate(model, [0, 0], control=table, **given)
    read = lw.Instruments(drives=table).read(motion)["force"][:, 0]
    assert np.allclose(read, (2.0 + 2.0 * motion.q[:, 0]) * np.sin(3.0 * motion.t), atol=1e-4)
    one, other = (
        lw.simulate(model, [0, 0], duration=1.0, control=lw.Sampled(model, control, rate=100.0))
        for control in (lw.Drives(model, lw.Table(times, values)), wave)
    )
    assert np.allclose(one.q[-1], other.q[-1], atol=1e-6)
    state = ([0.3, 0.2], [0.1, 0.0], [0.0, 0.0])
    held = lw.Drives(model, values[2500])
    stays = lw.Drives(model, lw.Table(times, values, "held"))
    for control in (table, stays):
        assert np.allclose(
            model.state_space(*state, control=control, t=0.5).A, model.state_space(*state, control=held).A
        )
        with pytest.raises(lw.InputError, match="depends on time"):
            model.sensitivity(*state[:2], np.zeros((2, 2)), 0.01, control=control)
    both = model.state_space(*state, control=table, t=np.array([0.0, 0.5])).A
    assert np.allclose(both[1], model.state_space(*state, control=held).A) and not np.allclose(both[0], both[1])


def test_batches_and_readings_of_drives() -> None:
    b = _rod(activation=lw.equipment.Activation("filter", 0.1))
    b.add_sensor(lw.equipment.Sensor("force", "actuator_force", "m"))
    b.add_sensor(lw.equipment.Sensor("length", "actuator_position", "n", noise=1e-3))
    b.add_sensor(lw.equipment.Sensor("speed", "actuator_velocity", "n", cutoff=0.05))
    model = b.build()
    drives = lw.Drives(model, lambda t, q, v, p: [p[0], 0.0])
    p = np.array([[0.5], [1.0], [2.0]])
    motion = lw.simulate(model, np.zeros((3, 2)), duration=0.5, control=drives, p=p, method="rk4", dt=0.01)
    readings = lw.Instruments(drives=drives).read(motion, rng=0)
    assert np.allclose(readings["force"][..., 0], motion.x[..., 0])
    assert np.allclose(motion.x[:, -1, 0], p[:, 0] * (1 - np.exp(-5.0)), rtol=1e-6)
    length = motion.q[..., :1] - motion.q[..., 1:]
    assert 1e-4 < np.abs(readings["length"] - length).max() < 1e-2
    assert np.abs(readings["speed"]).max() == 0.05
    assert "force" not in lw.Instruments().read(motion)
    with pytest.raises(lw.InputError, match="depends on its control"):
        lw.Instruments(["force"]).read(motion)


@pytest.mark.parametrize("method", ["dop853", "rodas4", "variational"])
def test_springs_keep_the_energy(method: str) -> None:
    b = _rod()
    b.add_frame("tip", "b", lw.transform(xyz=(0, 0, -1)))
    b.add_frame("wall", "world", lw.transform(xyz=(1, 0, 0)))
    b.add_spring(lw.equipment.Spring("band", lw.equipment.JointTransmission({"a": 1.0, "b": -0.5}), stiffness=3.0))
    b.add_spring(
        lw.equipment.Spring("slack", lw.equipment.JointTransmission({"b": 1.0}), stiffness=2.0, rest=(-0.1, 0.1))
    )
    b.add_spring(
        lw.equipment.Spring(
            "cord", lw.equipment.PathTransmission(((("wall", "tip"), 1.0),)), stiffness=2.0, rest=(0.5, 0.5)
        )
    )
    motion = lw.simulate(b.build(), [0.5, -0.3], [0.2, 0.4], duration=2.0, method=method, dt=0.002, rtol=1e-8)
    assert np.ptp(motion.energy) < (2e-5 if method == "variational" else 1e-6)
    assert np.ptp(motion.q[:, 0]) > 0.3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda model: lw.Drives(model.with_equipment(actuators=())), "has no actuators"),
        (lambda model: lw.Drives(model, {"k": 1.0}), "no actuator"),
        (lambda model: lw.Drives(model, 0.0, names=["k"]), "no actuator"),
        (lambda model: lw.Drives(model, [1.0]), "wrong length"),
        (lambda model: lw.Drives(model, [[1.0, 2.0]], times=[0.0, 1.0]), "do not fit"),
        (lambda model: lw.Drives(model, [[1.0, 2.0]] * 2, times=[1.0, 0.0]), "do not increase"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    with pytest.raises(lw.LinkwiseError, match=message):
        make(_rod().build())
