"""Flexible bodies in the recursion: against Lagrange's equations written densely, and relations that must hold."""

import pickle
from dataclasses import replace

import mpmath
import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.cli import main
from tests.flexible.lagrange import Dense, node_pose, slope
from tests.flexible.mechanisms import arm, panels, small_beam, state, tree

MODELS = {"arm": arm, "tree": tree, "panels": panels}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def close(a, b, tolerance=1e-10):
    assert np.abs(np.asarray(a) - np.asarray(b)).max() <= tolerance * max(1.0, np.abs(b).max())


def test_mass_matrix_is_the_dense_one(model):
    q, _ = state(model)
    close(model.mass_matrix(q), Dense(model).mass_matrix(q))


def test_forces_are_lagranges(model):
    q, v = state(model)
    close(model.bias_force(q, v), Dense(model).bias_force(q, v), 2e-10)


def test_energies(model):
    q, v = state(model)
    dense = Dense(model)
    close(model.kinetic_energy(q, v), 0.5 * v @ dense.mass_matrix(q) @ v)
    close(model.potential_energy(q), dense.potential_energy(q))


def test_forward_undoes_inverse(model):
    q, v = state(model, 1)
    vdot = np.random.default_rng(5).normal(size=model.nv)
    close(model.forward_dynamics(q, v, model.inverse_dynamics(q, v, vdot)), vdot, 1e-9)


def test_mass_matrix_is_the_slope_of_inverse_dynamics(model):
    q, v = state(model, 2)
    columns = [model.inverse_dynamics(q, v, unit) - model.bias_force(q, v) for unit in np.eye(model.nv)]
    M = model.mass_matrix(q)
    close(np.transpose(columns), M)
    close(model.mass_matrix_inverse(q) @ M, np.eye(model.nv))
    x = np.random.default_rng(3).normal(size=model.nv)
    close(model.mass_product(q, x), M @ x)
    close(M @ model.mass_solve(q, x), x)


def test_gravity_force_is_the_slope_of_the_potential(model):
    q, _ = state(model, 3)
    numeric = [slope(model, model.potential_energy, q, unit) for unit in np.eye(model.nv)]
    close(model.gravity_force(q), numeric)


def test_poses_of_bodies_and_nodes(model):
    q, _ = state(model, 4)
    close(model.poses(q), Dense(model).poses(q))
    for body in model.bodies:
        if body.flexible is not None:
            end = body.flexible.nodes[-1].key
            whole = model.pose(q, body.name) @ node_pose(body.flexible, end, q[body.q_slice])
            close(model.pose(q, body.name, node=end), whole)
            close(model.pose(q, body.name, node="root"), model.pose(q, body.name))


def test_velocities_and_jacobians_of_nodes(model):
    q, v = state(model, 5)
    ends = [(body.name, body.flexible.nodes[-1].key) for body in model.bodies if body.flexible is not None]
    names = [(model.bodies[-1].name, None), ends[-1]]
    for name, node in names:
        J = model.jacobian(q, name, node=node)
        close(J @ v, model.velocity(q, v, name, node=node))
        rate = slope(model, lambda x, name=name, node=node: model.pose(x, name, node=node), q, v)
        R = model.pose(q, name, node=node)[:3, :3]
        W = rate[:3, :3] @ R.T
        close(J @ v, [W[2, 1], W[0, 2], W[1, 0], *rate[:3, 3]])
        J_rate = slope(model, lambda x, name=name, node=node: model.jacobian(x, name, node=node), q, v)
        close(model.jacobian_rate(q, v, name, node=node), J_rate)
        close(model.operational.admittance(q, name, node=node), J @ np.linalg.solve(model.mass_matrix(q), J.T), 1e-9)


def test_momentum_is_that_of_the_pieces(model):
    q, v = state(model, 6)
    total = sum(own[-1, -1] for _, _, own in Dense(model).pieces(q))
    close(model.momentum(q, v)[3:], total * slope(model, model.center_of_mass, q, v))
    close(model.mass, total)
    A = model.centroidal.momentum_matrix(q)
    close(A @ v, model.centroidal.momentum(q, v))


def test_linearisations():
    model = chain(small_beam(modes=(1, 1), axial_modes=0, torsion_modes=0, damping=0.03))
    q, v = state(model, 7)
    tau = np.random.default_rng(1).normal(size=model.nv)
    lin = model.linearize_forward(q, v, tau)
    vdot = lin.vdot
    close(vdot, model.forward_dynamics(q, v, tau), 1e-9)
    inverse = model.linearize_inverse(q, v, vdot)
    units = np.eye(model.nv)
    by_q = np.transpose([slope(model, lambda x: model.inverse_dynamics(x, v, vdot), q, u) for u in units])
    by_v = np.transpose([slope(model, lambda x: model.inverse_dynamics(q, x, vdot), v, u) for u in units])
    close(inverse.dq, by_q, 1e-9)
    close(inverse.dv, by_v, 1e-9)
    close(lin.dq, -np.linalg.solve(model.mass_matrix(q), inverse.dq), 1e-9)
    dq, dv, dtau = np.random.default_rng(8).normal(size=(3, model.nv))
    close(model.perturb_inverse(q, v, vdot, dq, dv, dtau), inverse.dq @ dq + inverse.dv @ dv + inverse.dvdot @ dtau)


def test_batches_are_states_side_by_side(model):
    states = [state(model, k) for k in range(5)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    tau = np.random.default_rng(2).normal(size=v.shape)
    one = np.array([model.forward_dynamics(a, b, c) for a, b, c in zip(q, v, tau, strict=True)])
    close(model.forward_dynamics(q, v, tau), one, 1e-12)


def test_external_forces_act_on_the_root(model):
    q, v = state(model, 9)
    f = np.random.default_rng(4).normal(size=(len(model.bodies), 6))
    J = []
    for body in model.bodies:
        R = model.pose(q, body.name)[:3, :3]
        J.append(np.kron(np.eye(2), R.T) @ model.jacobian(q, body.name))
    expected = sum(j.T @ x for j, x in zip(J, f, strict=True))
    close(model.bias_force(q, v) - model.bias_force(q, v, f), expected)
    close(model.external_force(q, f), expected)


def test_order_of_coordinates():
    model = arm()
    one, two = model.bodies["one"], model.bodies["two"]
    m = one.modes
    assert m == 5
    assert (one.q_slice, one.v_slice) == (slice(0, m), slice(0, m))
    assert model.joints["one_joint"].q_slice == slice(m, m + 1)
    assert two.q_slice == slice(m + 1, 2 * m + 1)
    assert model.joints["two_joint"].v_slice == slice(2 * m + 1, 2 * m + 2)
    assert model.bodies["load"].q_slice == slice(0, 0)
    assert model.nq == model.nv == 2 * m + 3
    assert np.all(model.neutral() == 0.0)


def test_stiff_limit_is_the_rigid_chain():
    """The accelerations' error falls with 1/stiffness once the beam has come to its quasi-static rest."""
    errors = []
    for factor in (1e4, 1e6, 1e8):
        beam = lw.FlexibleBody.beam(
            1.0, 2e3 * factor, (150.0 * factor, 90.0 * factor), 60.0 * factor, 1.2, modes=(2, 2), elements=4
        )
        stiff, rigid = chain(beam), chain(None, beam)
        q, v = np.array([0.4, -0.7]), np.array([0.9, 0.3])
        vdot = rigid.forward_dynamics(q, v, np.zeros(2))
        joints = [stiff.joints[name].v_slice.start for name in ("one_joint", "two_joint")]
        full_q, full_v, a = (np.zeros(stiff.nv) for _ in range(3))
        full_q[joints], full_v[joints] = q, v
        for _ in range(3):  # quasi-static deformation: the modes' own accelerations vanish
            a[joints] = vdot
            modal = np.setdiff1d(np.arange(stiff.nv), joints)
            residual = stiff.inverse_dynamics(full_q, full_v, a)[modal]
            K = np.zeros((stiff.nv, stiff.nv))
            for body in stiff.bodies:
                K[body.v_slice, body.v_slice] = body.flexible.stiffness
            full_q[modal] -= np.linalg.solve(K[np.ix_(modal, modal)], residual)
        errors.append(np.abs(stiff.forward_dynamics(full_q, full_v, np.zeros(stiff.nv))[joints] - vdot).max())
    assert errors[2] < 1e-6
    assert errors[0] / errors[1] == pytest.approx(100.0, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(100.0, rel=0.2)


def chain(flexible, like=None):
    b = lw.ModelBuilder("chain")
    body = {"flexible": flexible} if like is None else {"mass": like.mass, "com": like.com, "inertia": like.inertia}
    tip = {"at": "tip"} if like is None else {"placement": lw.transform(xyz=(1.0, 0, 0))}
    b.add_body("one", joint=lw.Revolute(axis=(0, 1, 0)), **body)
    b.add_body("two", parent="one", joint=lw.Revolute(axis=(0, 1, 0.5)), **tip, **body)
    return b.build()


def test_free_system_keeps_energy_and_momenta():
    """Ten seconds of a free flexible two-link system without damping or gravity."""
    beam = small_beam(modes=(1, 1), axial_modes=0, torsion_modes=0)
    b = lw.ModelBuilder("free", gravity=(0, 0, 0))
    b.add_body("one", joint=lw.Free(), flexible=beam)
    b.add_body("two", parent="one", at="tip", joint=lw.Revolute(axis=(0, 1, 0.5)), flexible=beam)
    model = b.build()
    rng = np.random.default_rng(0)
    q0, v0 = model.random_configuration(rng), 0.5 * rng.normal(size=model.nv)
    traj = lw.simulate(model, q0, v0, duration=10.0, rtol=1e-12, atol=1e-12)
    q, v = traj.q, traj.v
    energy = model.kinetic_energy(q, v) + model.potential_energy(q)
    momentum = model.momentum(q, v)
    assert np.abs(energy - energy[0]).max() < 1e-9 * energy[0]
    assert np.abs(momentum - momentum[0]).max() < 1e-9 * np.abs(momentum[0]).max()
    assert np.abs(traj.energy - energy).max() < 1e-12 * energy[0]
    assert np.ptp(q[:, model.bodies["one"].q_slice], axis=0).min() > 1e-3  # it does bend


def test_info_lists_modes(capsys):
    assert main(["info", "flexible_arm"]) == 0
    shown = capsys.readouterr().out
    assert "flexible body" in shown
    frequencies = samples.flexible_arm().bodies["upper"].flexible.held_frequencies
    assert f"{frequencies[0]:.2f}" in shown
    assert "point masses" not in shown


def test_names_of_modal_coordinates():
    model = samples.flexible_arm(modes=1)
    traj = lw.simulate(model, model.neutral(), duration=0.01)
    assert traj.columns["q"] == ["upper.eta[0]", "upper.eta[1]", "shoulder", "lower.eta[0]", "lower.eta[1]", "elbow"]


def test_damped_modes_lose_energy_at_the_rate_of_their_damping():
    model = samples.flexible_arm(modes=1, damping=0.05)
    q, v = state(model, 3)
    vdot = model.forward_dynamics(q, v, np.zeros(model.nv))
    h = 1e-5
    energies = [
        model.kinetic_energy(*after) + model.potential_energy(after[0])
        for after in ((q + s * h * v, v + s * h * vdot) for s in (-1, 1))
    ]
    lost = sum(v[b.v_slice] @ b.flexible.damping @ v[b.v_slice] for b in model.bodies)
    assert (energies[1] - energies[0]) / (2 * h) == pytest.approx(-lost, rel=1e-5)
    assert lost > 0.0


def test_models_travel_by_pickle():
    model = samples.flexible_arm(modes=1)
    q, v = state(model, 3)
    there = pickle.loads(pickle.dumps(model))
    close(there.forward_dynamics(q, v, v), model.forward_dynamics(q, v, v), 1e-14)


def test_more_digits_than_a_float():
    """The same text on mpmath numbers: what rounding leaves of the compiled one."""
    model = samples.flexible_arm(modes=1)
    q, v = state(model, 3)
    exact = model.inverse_dynamics(*(np.array([mpmath.mpf(x) for x in a], object) for a in (q, v, v)))
    close(model.inverse_dynamics(q, v, v), np.array([float(x) for x in exact]), 1e-13)


@pytest.mark.parametrize("sweeps", ["unrolled", "rolled"])
def test_stiffness_and_damping_as_parameters(sweeps):
    model = samples.flexible_arm(modes=1, damping=0.05).with_sweeps(sweeps)
    free = model.with_parameters(["upper.stiffness", "lower.loss", "payload.mass"])
    q, v = state(model, 3)
    close(free.bias_force(q, v), model.bias_force(q, v), 1e-13)
    upper, lower = model.bodies["upper"], model.bodies["lower"]
    p = np.array([3.0, 5.0, 1.0])
    change = np.zeros(model.nv)
    change[upper.v_slice] = 2.0 * upper.flexible.stiffness @ q[upper.q_slice]
    change[lower.v_slice] = 4.0 * lower.flexible.damping @ v[lower.v_slice]
    close(free.bias_force(q, v, p=p) - model.bias_force(q, v), change)
    eta = q[upper.q_slice]
    more = free.potential_energy(q, p=p) - model.potential_energy(q)
    close(more, eta @ upper.flexible.stiffness @ eta)


def test_frames_and_welded_bodies_on_nodes():
    b = lw.ModelBuilder("frames")
    beam = small_beam(modes=(1, 1), axial_modes=0, torsion_modes=0)
    place = lw.transform(xyz=(0.1, 0.2, 0.3), rpy=(0.1, 0.2, 0.3))
    b.add_body("beam", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    b.add_body("box", parent="beam", at="tip", placement=place, mass=1.0)
    b.add_frame("corner", "box", place)
    b.add_frame("end", "beam", place, node="tip")
    model = b.build()
    q, _ = state(model, 1)
    tip = model.pose(q, "beam", node="tip")
    close(model.pose(q, "box"), tip @ place)
    close(model.pose(q, "end"), tip @ place)
    close(model.pose(q, "corner"), tip @ place @ place)
    box = replace(model.bodies["beam"].parts[1], node=beam.nodes.index(beam.node("tip")))
    assert model.bodies["beam"].parts[1] == box
    assert model.mass == pytest.approx(beam.mass + 1.0)


def test_what_the_modes_do_not_have():
    model = samples.flexible_arm(modes=1)
    with pytest.raises(lw.InputError, match="is its own"):
        model.with_body("upper", mass=2.0)
    with pytest.raises(lw.InputError, match="have no armature"):
        model.with_joint_constants(armature=np.ones(model.nv))
    assert model.with_joint_constants(armature=0.3).joint_constants.armature.tolist() == [0.0, 0.0, 0.3, 0.0, 0.0, 0.3]


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = samples.flexible_arm(modes=1)
    figure = lw.simulate(model, model.neutral(), duration=0.05).plot()
    texts = [
        text.get_text() for axes in figure.axes for text in (axes.get_legend().get_texts() if axes.get_legend() else [])
    ]
    assert any("upper.eta[0]" in text for text in texts)
    pyplot.close(figure)
