"""Springs, dampers, friction and controls in what linearises and balances: as in the motion that is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

import linkwise as lw
from linkwise.samples import planar_arm
from tests.derivatives.differences import relative

HINGE = lw.Revolute(axis=(0, 1, 0))
ROD: dict[str, Any] = {"mass": 1.0, "inertia": np.diag([1 / 12, 1 / 12, 1e-3])}
SMOOTH = lw.JointRules(friction_speed=0.5)  # differences of motions need friction that bends slowly


def pendulum(**parts: Any) -> lw.Model:
    b = lw.ModelBuilder("pendulum")
    b.add_body("rod", joint=HINGE, com=(0, 0, -0.5), joint_name="pin", **ROD, **parts)
    return b.build()


def four_bar(**parts: Any) -> lw.Model:
    b = lw.ModelBuilder("four-bar")
    b.add_body("left", joint=HINGE, com=(0, 0, 0.5), **ROD, **parts)
    b.add_body("top", "left", HINGE, lw.transform(xyz=(0, 0, 1)), com=(0.5, 0, 0), **ROD)
    b.add_body("right", joint=HINGE, placement=lw.transform(xyz=(1, 0, 0)), com=(0, 0, 0.5), **ROD)
    ends = lw.transform(xyz=(1, 0, 0)), lw.transform(xyz=(0, 0, 1))
    b.add_closure("pin", body_a="top", placement_a=ends[0], body_b="right", placement_b=ends[1], joint=HINGE)
    return b.build()


def tendon_arm() -> lw.Model:
    """Two links and a ball, with springs of every kind: at joints, across two joints, along a tendon."""
    b = lw.ModelBuilder("arm")
    b.add_body("upper", joint=HINGE, com=(0, 0, -0.5), joint_name="a", stiffness=7.0, damping=0.4, rest=0.2, **ROD)
    below = lw.transform(xyz=(0, 0, -1))
    b.add_body("lower", "upper", HINGE, below, com=(0, 0, -0.5), joint_name="b", friction=0.6, damping=0.2, **ROD)
    b.add_body("bob", "lower", lw.Spherical(), below, mass=0.5, com=(0.1, 0, -0.2), inertia=0.02 * np.eye(3))
    b.add_frame("hook", "world", lw.transform(xyz=(0.8, 0.1, 0.2)))
    b.add_frame("eye", "lower", lw.transform(xyz=(0.05, 0, -0.7)))
    b.add_spring(
        lw.equipment.Spring("across", lw.equipment.JointTransmission({"a": 1.0, "b": -2.0}), stiffness=3.0, damping=0.3)
    )
    way = lw.equipment.PathTransmission(((("hook", "eye"), 1.0),))
    b.add_spring(lw.equipment.Spring("tendon", way, stiffness=20.0, damping=0.5, rest=(0.4, 0.4)))
    return b.build()


def differences(model: lw.Model, q: Any, v: Any, dt: float, **given: Any) -> np.ndarray:
    """∂x(dt)/∂x(0) of simulated motions, by differences, as changes in the tangent space at the end."""
    n, h = model.nv, 1e-5
    base = lw.simulate(model, q, v, duration=dt, rtol=1e-12, atol=1e-13, limits="ignore", **given)
    columns = []
    for k in range(2 * n):
        ends = []
        for sign in (h, -h):
            d = np.zeros(2 * n)
            d[k] = sign
            start = model.integrate(q, d[:n]), np.asarray(v, float) + d[n:]
            end = lw.simulate(model, *start, duration=dt, rtol=1e-12, atol=1e-13, limits="ignore", **given)
            ends.append(np.concatenate([model.difference(base.q[-1], end.q[-1]), end.v[-1]]))
        columns.append((ends[0] - ends[1]) / (2 * h))
    return np.stack(columns, axis=1)


def test_a_damped_hinge_has_its_closed_form() -> None:
    k, c = 50.0, 3.0
    inertia, weight = 1 / 12 + 0.25, 9.81 * 0.5
    A, B = pendulum(stiffness=k, damping=c).state_space([0.0], [0.0], [0.0])
    np.testing.assert_allclose(A, [[0, 1], [-(k + weight) / inertia, -c / inertia]], rtol=1e-14)
    np.testing.assert_allclose(B, [[0], [1 / inertia]], rtol=1e-14)
    discrete = pendulum(stiffness=k, damping=c).state_space([0.0], [0.0], [0.0], dt=0.1)
    np.testing.assert_allclose(discrete.A, scipy.linalg.expm(0.1 * A), rtol=1e-12)


def test_friction_is_smooth_and_can_be_left_out() -> None:
    model = pendulum(friction=0.3)
    inertia = 1 / 12 + 0.25
    assert model.state_space([0.0], [0.0], [0.0]).A[1, 1] == pytest.approx(-0.3 / 1e-2 / inertia)
    assert model.state_space([0.0], [0.0], [0.0], rules=SMOOTH).A[1, 1] == pytest.approx(-0.3 / 0.5 / inertia)
    assert model.state_space([0.0], [0.0], [0.0], rules=lw.JointRules(friction=False)).A[1, 1] == 0.0
    assert model.passive_force([0.0], [10.0])[0] == pytest.approx(-0.3)


def test_forward_dynamics_takes_all_joint_forces() -> None:
    model = pendulum(stiffness=50.0, damping=3.0)
    q, v = [0.3], [1.0]
    start = lw.simulate(model, q, v, duration=1e-3)
    np.testing.assert_allclose(model.forward_dynamics(q, v, model.passive_force(q, v)), start.vdot[0], rtol=1e-13)
    assert abs(model.forward_dynamics(q, v, [0.0]) - start.vdot[0])[0] > 10.0


def test_batches_single_precision_and_symbols() -> None:
    model = tendon_arm()
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng, 4).reshape(2, 2, -1), rng.normal(size=(2, 2, model.nv))
    whole = model.passive_force(q, v)
    for place in np.ndindex(2, 2):
        np.testing.assert_allclose(model.passive_force(q[place], v[place]), whole[place], rtol=1e-12)
    single = model.passive_force(q.astype(np.float32), v.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, whole, rtol=1e-4, atol=1e-4)
    power = lw.compile(lambda m, q, v: m.passive_force(q, v) @ v, model, inputs={"q": "q", "v": "v"})
    np.testing.assert_allclose(power(q, v), (whole * v).sum(-1), rtol=1e-12)


def test_as_the_simulation_has_them() -> None:
    """Of springs at joints, across joints and along tendons: the accelerations of a simulated motion."""
    model = tendon_arm()
    rng = np.random.default_rng(1)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    motion = lw.simulate(model, q, v, duration=0.5)
    found = model.forward_dynamics(motion.q, motion.v, model.passive_force(motion.q, motion.v))
    assert relative(found, motion.vdot) < 1e-12


def test_as_mujoco_has_them(tmp_path: Path) -> None:
    """Stiffness, damping, tendons and friction of joints that slide; the state space against transition matrices."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option timestep="1e-4" integrator="Euler"><flag contact="disable"/></option><worldbody>
      <site name="hook" pos="0.8 0.1 0.2"/>
      <body name="upper"><joint name="a" axis="0 1 0" stiffness="7" damping="0.4" springref="12"/>
        <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="1"/>
        <body name="lower" pos="0 0 -1"><joint name="b" axis="0 1 0" stiffness="2" damping="0.2" frictionloss="0.3"/>
          <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.05" mass="1"/><site name="eye" pos="0.05 0 -0.7"/>
        </body></body></worldbody>
      <tendon><spatial name="t" stiffness="20" damping="0.5" springlength="0.4"><site site="hook"/><site site="eye"/>
        </spatial></tendon></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(text)
    path = tmp_path / "arm.xml"
    path.write_text(text, encoding="utf-8")
    ours = lw.load(path)
    data = mujoco.MjData(theirs)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, v = rng.uniform(-1, 1, 2), rng.choice([-1.0, 1.0], 2) * rng.uniform(0.5, 2.0, 2)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        theirs_all = data.qfrc_passive + data.qfrc_constraint  # friction is a constraint there
        np.testing.assert_allclose(ours.passive_force(q, v), theirs_all, rtol=1e-7)

    def rates(h: float) -> np.ndarray:
        theirs.opt.timestep = h
        A = np.zeros((4, 4))
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mjd_transitionFD(theirs, data, 1e-6, True, A, None, None, None)
        return (A - np.eye(4)) / h

    limit = 2 * rates(1e-4) - rates(2e-4)
    found = ours.state_space(q, v, np.zeros(2)).A
    assert relative(found, limit) < 1e-4
    assert relative(ours.state_space(q, v, np.zeros(2), rules=lw.JointRules(damping=False)).A, limit) > 1e-2


@pytest.mark.parametrize("with_control", [False, True])
def test_state_space_is_that_of_the_simulated_motion(with_control: bool) -> None:
    model = tendon_arm()
    rng = np.random.default_rng(3)
    q, v = model.integrate(model.neutral(), 0.3 * rng.normal(size=model.nv)), 0.5 * rng.normal(size=model.nv)
    pull = lw.BodyForce(model, "bob", [0, 0, 0, 1.0, 0, 2.0], frame="world")
    control = [lw.PD(model, model.neutral(), kp=4.0, kd=0.3), pull] if with_control else None
    dt = 0.05
    found = model.state_space(q, v, np.zeros(model.nv), dt=dt, control=control, rules=SMOOTH).A
    assert relative(found, differences(model, q, v, dt, control=control, rules=SMOOTH)) < 1e-6
    along = model.sensitivity(q, v, np.zeros((40, model.nv)), dt / 40, control=control, rules=SMOOTH)
    assert relative(along.dx0[-1], found) < 1e-6


def test_actuators_and_their_states_are_in_it() -> None:
    """A servo behind a filter: x = [q; v; a], against the matrix written down."""
    b = lw.ModelBuilder("servo")
    b.add_body("rod", joint=HINGE, com=(0, 0, -0.5), joint_name="pin", damping=0.5, **ROD)
    lag = lw.equipment.Activation("filter", time_constant=0.2)
    way = lw.equipment.JointTransmission({"pin": 2.0})
    b.add_actuator(lw.equipment.Actuator("servo", way, gain=(30.0, 0, 0), bias=(0, -30.0, -1.5), activation=lag))
    model = b.build()
    A, B = model.state_space([0.0], [0.0], [0.0], control=lw.Drives(model, u=0.0))
    inertia, weight = 1 / 12 + 0.25, 9.81 * 0.5
    stiff, loss = 30.0 * 4 + weight, 1.5 * 4 + 0.5
    middle = [-stiff / inertia, -loss / inertia, 60 / inertia]
    np.testing.assert_allclose(A, [[0, 1, 0], middle, [0, 0, -5]], rtol=1e-13)
    np.testing.assert_allclose(B, [[0], [1 / inertia], [0]], rtol=1e-13)
    with pytest.raises(lw.InputError, match="states of its own"):
        model.state_space([0.0], [0.0], [0.0], dt=0.1, control=lw.Drives(model, u=0.0))
    with pytest.raises(lw.InputError, match="depends on time"):
        model.sensitivity([0.0], [0.0], np.zeros((2, 1)), 0.1, control=lambda t, q, v, p: [lw.math.sin(t)])


def test_a_four_bar_with_a_spring() -> None:
    """In its one freedom: A against differences of motions; its equilibrium is where it comes to rest."""
    model = four_bar(stiffness=60.0, damping=4.0, rest=0.4)
    q = model.statics.equilibrium(model.assemble([0.3, -0.3, 0.3])).q
    rest = lw.simulate(model, model.assemble([0.2, -0.2, 0.2]), duration=20.0).q[-1]
    np.testing.assert_allclose(q, rest, atol=1e-7)
    found = model.state_space(q, np.zeros(3), np.zeros(3))
    N = model.freedoms(q).basis[:, 0]
    dt, h, columns = 1e-2, 1e-4, []
    for d in ((h, 0.0), (0.0, h)):
        ends = []
        for sign in (1.0, -1.0):
            end = lw.simulate(
                model, model.assemble(q + sign * d[0] * N), model.constraints.project_velocity(q, sign * d[1] * N),
                duration=dt, rtol=1e-12, atol=1e-13,
            )  # fmt: skip
            place = model.freedoms(q).independent[0]
            ends.append([end.q[-1, place] - q[place], end.v[-1, place]])
        columns.append((np.array(ends[0]) - ends[1]) / (2 * h))
    assert relative(scipy.linalg.expm(dt * found.A), np.stack(columns, axis=1)) < 1e-5
    dx0 = model.sensitivity(q, np.zeros(3), np.zeros((4, 3)), dt / 4).dx0[-1]
    along = dx0 @ np.r_[N, 0 * N]
    place = model.freedoms(q).independent[0]
    np.testing.assert_allclose(along[[place, 3 + place]], scipy.linalg.expm(dt * found.A)[:, 0], rtol=1e-6)


def test_equilibria_and_holding_forces_know_the_springs() -> None:
    model = pendulum(stiffness=50.0, rest=0.4, friction=0.2)
    q = model.statics.equilibrium([0.3]).q
    assert 50.0 * (q[0] - 0.4) + 9.81 * 0.5 * np.sin(q[0]) == pytest.approx(0.0, abs=1e-9)
    controlled = model.statics.equilibrium([0.3], control=lw.PD(model, [1.0], kp=20.0, kd=1.0)).q
    assert 50 * (controlled[0] - 0.4) + 9.81 * 0.5 * np.sin(controlled[0]) == pytest.approx(20 * (1 - controlled[0]))
    held = model.statics.force([[0.1], [0.9]])
    assert model.statics.force(np.ones((2, 1), np.float32)).dtype == np.float32
    still = lw.simulate(model, [[0.1], [0.9]], duration=0.2, control=lambda t, q, v, p: p, p=held)
    np.testing.assert_allclose(still.q[:, -1], [[0.1], [0.9]], atol=1e-9)


def test_parameters_reach_tendons() -> None:
    """The place of a hook as a parameter: the force of its tendon follows, in simulations too."""
    model = tendon_arm().with_parameters(["lower.xyz"])
    p = model.parameters.nominal + np.array([0.1, 0.0, -0.2])
    q, v = model.neutral(), np.zeros(model.nv)
    assert np.abs(model.passive_force(q, v, p=p) - model.passive_force(q, v)).max() > 0.1
    start = lw.simulate(model, q, v, duration=1e-3, p=p)
    found = model.forward_dynamics(q, v, model.passive_force(q, v, p=p), p=p)
    np.testing.assert_allclose(found, start.vdot[0], rtol=1e-12)
    h = 1e-5
    along = model.sensitivity(q, v, np.zeros((4, model.nv)), 0.01, p=p, rules=SMOOTH)
    for k in range(3):
        d = np.eye(3)[k] * h
        ends = [model.sensitivity(q, v, np.zeros((4, model.nv)), 0.01, p=p + s * d, rules=SMOOTH) for s in (1, -1)]
        change = np.r_[model.difference(ends[1].q[-1], ends[0].q[-1]), ends[0].v[-1] - ends[1].v[-1]] / (2 * h)
        np.testing.assert_allclose(along.dp[-1][:, k], change, rtol=1e-5, atol=1e-8)


def test_a_regulator_feels_the_damping() -> None:
    """The cost that Riccati's equation promises is the cost of the simulated motion."""
    model = pendulum(stiffness=5.0, damping=2.0)
    A, B = model.state_space([0.0], [0.0], [0.0])
    S = scipy.linalg.solve_continuous_are(A, B, np.eye(2), np.eye(1))
    K = (B.T @ S)[0]
    motion = lw.simulate(
        model, [1e-3], [0.0], duration=20.0, output_times=np.linspace(0, 20, 20001),
        control=lambda t, q, v, p: [-(q[0] * float(K[0]) + v[0] * float(K[1]))],
    )  # fmt: skip
    cost = scipy.integrate.simpson(motion.q[:, 0] ** 2 + motion.v[:, 0] ** 2 + motion.tau[:, 0] ** 2, x=motion.t)
    assert cost == pytest.approx(1e-6 * S[0, 0], rel=1e-5)


def test_models_without_any_are_as_before() -> None:
    model = planar_arm(2)
    q, v, tau = [0.3, 0.4], [0.1, -0.2], [1.0, 2.0]
    np.testing.assert_array_equal(model.passive_force(q, v), [0.0, 0.0])
    lin = model.linearize_forward(q, v, tau)
    np.testing.assert_array_equal(model.state_space(q, v, tau).A[2:], np.c_[lin.dq, lin.dv])
