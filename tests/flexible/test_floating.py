"""Bodies in frames that float: a root that turns with the modes, in a joint that lets it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from tests.flexible.slider_crank import (
    END,
    START,
    START_ACCELERATIONS,
    closed,
    ours,
    printed_accelerations,
    slider_crank,
    theirs,
)

CHORD = [("root", "tx"), ("root", "ty"), ("root", "tz"), ("root", "rx"), ("tip", "ty"), ("tip", "tz")]
TUBE = {"length": 1.2, "EA": 3e4, "EI": (30.0, 20.0), "GJ": 9.0, "mass_per_length": 0.8}


def swinging(body, joint=None, **more):
    b = lw.ModelBuilder("swinging")
    b.add_body("rod", joint=joint or lw.Revolute(axis=(0, 0, 1)), flexible=body, **more)
    b.add_body("bob", parent="rod", at="tip", mass=0.3)
    return b.build().with_gravity((0, -9.81, 0))


# ------------------------------------------------------------------------------------------------ the IVP test set


@pytest.fixture(scope="module")
def crank():
    return slider_crank()


def test_the_printed_equations(crank):
    """At the printed start, at the published end and at states around: accelerations of the printed equations."""
    rng = np.random.default_rng(0)
    p1 = 0.7
    states = [closed(START), END.copy()]
    for _ in range(3):
        q, w = rng.normal(size=4) * (2e-4, 2e-5, 1e-5, 1e-5), rng.normal(size=4) * (0.3, 0.1, 0.01, 0.01)
        length = 0.3 + q[3]
        p2 = -np.arcsin(0.15 * np.sin(p1) / length)
        v2 = -(0.15 * np.cos(p1) * 150.0 + np.sin(p2) * w[3]) / (length * np.cos(p2))
        x3 = 0.15 * np.cos(p1) + length * np.cos(p2)
        v3 = -0.15 * np.sin(p1) * 150.0 - length * np.sin(p2) * v2 + np.cos(p2) * w[3]
        states.append(np.array([p1, p2, x3, *q, 150.0, v2, v3, *w]))
    for y in states:
        expected, _ = printed_accelerations(y)
        t = y[0] / 150.0
        vdot = crank.forward_dynamics(ours(crank, y[:7]), ours(crank, y[7:]), np.zeros(7), t=t)
        np.testing.assert_allclose(theirs(crank, vdot), expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max())
    found, _ = printed_accelerations(START)
    np.testing.assert_allclose(found, START_ACCELERATIONS, rtol=1e-6, atol=1e-6)


def test_the_published_end_values(crank):
    """Coordinates and rates at t = 0.1 s, each to 1e-6, absolute beside those below 1.

    (The published rates of the stretching, which has frequencies up to 25 000 rad/s, are right to no more: integrations
    of the printed equations with tolerances from 1e-10 to 3e-14 agree, and differ from these as ours does.)
    """
    y = closed(START)
    run = lw.simulate(
        crank,
        ours(crank, y[:7]),
        ours(crank, y[7:]),
        duration=0.1,
        method="dop853",
        output_times=[0.0, 0.1],
        rtol=1e-10,
        atol=1e-12,
    )
    got = np.concatenate([theirs(crank, run.q[-1]), theirs(crank, run.v[-1])])
    np.testing.assert_allclose(got, END, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(got[:5], END[:5], rtol=1e-6, atol=0)


def test_along_the_motion_of_the_printed_equations(crank):
    """SciPy integrates the printed equations in index-1 form; the same motion."""
    y = closed(START)
    solved = solve_ivp(
        lambda t, x: np.concatenate([x[7:], printed_accelerations(x)[0]]),
        (0.0, 0.01),
        y,
        method="DOP853",
        rtol=1e-10,
        atol=1e-13,
    )
    run = lw.simulate(
        crank,
        ours(crank, y[:7]),
        ours(crank, y[7:]),
        duration=0.01,
        method="dop853",
        output_times=[0.0, 0.01],
        rtol=1e-11,
        atol=1e-13,
    )
    got = np.concatenate([theirs(crank, run.q[-1]), theirs(crank, run.v[-1])])
    np.testing.assert_allclose(got, solved.y[:, -1], rtol=1e-6, atol=1e-9)


def test_the_mass_block_of_the_functions_is_another():
    """8/15 in the place of 8: other end values, so that those above do tell the two apart."""
    model = slider_crank(as_printed=False)
    y = closed(START)
    vdot = model.forward_dynamics(ours(model, y[:7]), ours(model, y[7:]), np.zeros(7), t=0.0)
    assert np.abs(theirs(model, vdot) - START_ACCELERATIONS).max() > 1.0


# -------------------------------------------------------------------------------------------- frames of finite elements


def test_modes_of_a_beam_on_two_supports():
    """(nπ)² sqrt(EI/μL⁴) in both planes; the ends turn, and stay on the chord."""
    beam = lw.FlexibleBody.beam(**TUBE, elements=16, modes=(2, 2), axial_modes=0, held=CHORD)
    bending = [(n * np.pi) ** 2 * np.sqrt(EI / (0.8 * 1.2**4)) / (2 * np.pi) for n in (1, 2) for EI in (30.0, 20.0)]
    np.testing.assert_allclose(beam.frequencies, sorted(bending), rtol=1e-4)
    root, tip = beam.node("root"), beam.node("tip")
    assert beam.held == 1 and beam.nodes[0].name == "frame"
    np.testing.assert_allclose(root.Gamma, 0.0, atol=1e-12)
    np.testing.assert_allclose(tip.Gamma[1:], 0.0, atol=1e-12)
    assert (np.abs(root.Lambda[1:]).max(axis=0) > 1.0).all()


SOMEHOW = [("root", "tx"), ("root", "ty"), ("tip", "tz"), (1, "tz"), (1, "rx"), ("tip", "ty")]
"""A frame in which the root moves along z."""


@pytest.mark.parametrize(("held", "joint"), [(CHORD, lw.Spherical()), (SOMEHOW, lw.Free())])
def test_every_frame_is_the_same_body(held, joint):
    """All dofs kept: the same frequencies on the joint, whichever frame the deformation is told in."""
    kinds = {"clamped": {}, "floating": {"held": held}}
    found = {}
    for name, choice in kinds.items():
        beam = lw.FlexibleBody.beam(**TUBE, elements=2, rotary_inertia=0.01, boundary="nodal", **choice)
        model = swinging(beam, joint).with_gravity((0, 0, 0))
        rest = model.neutral()
        M = model.mass_matrix(rest)
        stiff = model.function("gravity_force").jacobian("q")(rest)
        squared = np.linalg.eigvals(np.linalg.solve(M, stiff)).real
        found[name] = np.sort(squared)[joint.nv :]
    np.testing.assert_allclose(found["floating"], found["clamped"], rtol=1e-7)


def test_a_swing_in_either_frame():
    """A pendulum that bends as it swings: the tip's path, and the energy, in the two frames."""
    paths = []
    for choice in ({}, {"held": CHORD}):
        beam = lw.FlexibleBody.beam(**TUBE, elements=8, modes=(5, 0), axial_modes=0, **choice)
        model = swinging(beam)
        rest = model.neutral()
        run = lw.simulate(model, rest, duration=0.4, method="rk4", dt=2e-5, output_times=np.linspace(0, 0.4, 9))
        total = model.kinetic_energy(run.q, run.v) + model.potential_energy(run.q)
        np.testing.assert_allclose(total, total[0], atol=1e-7)
        paths.append(model.pose(run.q, "rod", node="tip")[:, :3, 3])
    moved = np.abs(paths[0] - paths[0][0]).max()
    assert moved > 0.5
    np.testing.assert_allclose(paths[0], paths[1], atol=1e-4)


def test_a_mesh_whose_root_is_a_point():
    """Nodes without rotations: a root of one node holds three displacements, nodes apart from it the rest."""
    positions = np.array([[x, y, z] for x in (0.0, 0.5, 1.0) for y in (0.0, 0.1) for z in (0.0, 0.1)])
    rng = np.random.default_rng(1)
    n = len(positions)
    springs = [(i, j) for i in range(n) for j in range(i)]
    K = np.zeros((3 * n, 3 * n))
    for i, j in springs:
        line = positions[i] - positions[j]
        e = line / np.linalg.norm(line)
        k = rng.uniform(800.0, 1200.0) * np.outer(e, e)
        for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            K[3 * a : 3 * a + 3, 3 * b : 3 * b + 3] += sign * k
    M = np.kron(np.diag(rng.uniform(0.1, 0.2, n)), np.eye(3))
    pinned = [(0, "tx"), (0, "ty"), (0, "tz"), (8, "ty"), (8, "tz"), (2, "tz")]
    body = lw.FlexibleBody.from_arrays(positions, M, K, root=0, keep=[8], held=pinned, boundary="nodal")
    np.testing.assert_array_equal(body.node("root").Gamma, 0.0)
    free = np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real)[6:]
    found = np.sort((2 * np.pi * body.free_frequencies) ** 2)
    np.testing.assert_allclose(found, free, rtol=1e-8)


def test_free_modes_in_a_chord_frame():
    """Modes of the free body have its free frequencies in any frame."""
    found = [
        lw.FlexibleBody.beam(**TUBE, elements=6, modes=(2, 2), axial_modes=1, boundary="free", **choice).frequencies
        for choice in ({}, {"held": CHORD})
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_saved_and_loaded(tmp_path):
    beam = lw.FlexibleBody.beam(**TUBE, elements=6, modes=(1, 1), axial_modes=0, held=CHORD)
    beam.save(tmp_path / "beam.npz")
    assert lw.FlexibleBody.from_npz(tmp_path / "beam.npz").held == 1
    model = swinging(beam, lw.Spherical())
    model.save(tmp_path / "swing.lw.json")
    again = lw.load(tmp_path / "swing.lw.json")
    q = model.random_configuration(np.random.default_rng(0))
    np.testing.assert_array_equal(again.mass_matrix(q), model.mass_matrix(q))
    assert again.bodies["rod"].flexible.held == 1


# ------------------------------------------------------------------------------------------------------ what is refused


def test_joints_that_hold_what_turns():
    planar = lw.FlexibleBody.beam(**TUBE, elements=6, modes=(2, 0), axial_modes=0, held=CHORD)
    spatial = lw.FlexibleBody.beam(**TUBE, elements=6, modes=(1, 1), axial_modes=0, held=CHORD)
    for joint in (lw.Revolute(axis=(0, 0, 1)), lw.Spherical(), lw.Free(), lw.Planar()):
        swinging(planar, joint)
    about_z, about_y = (lw.Revolute(axis=axis) for axis in ((0, 0, 1), (0, 1, 0)))
    for body, joint in ((spatial, about_z), (planar, about_y), (planar, lw.Fixed())):
        with pytest.raises(lw.ModelError, match="does not leave free"):
            swinging(body, joint)
    with pytest.raises(lw.ModelError, match="does not leave free"):  # the pin is not on the root
        swinging(planar, joint_frame=lw.transform(xyz=(0.3, 0, 0)))
    with pytest.raises(lw.ModelError, match="does not leave free"):
        swinging(planar).locked({"rod_joint": 0.1})


def test_nothing_sits_on_a_frame_that_floats():
    b = lw.ModelBuilder("bare")
    b.add_body("rod", joint=lw.Spherical(), flexible=lw.FlexibleBody.beam(**TUBE, elements=4, modes=1, held=CHORD))
    b.add_body("bob", parent="rod", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0)
    with pytest.raises(lw.ModelError, match="no piece of that body"):
        b.build()
    model = swinging(lw.FlexibleBody.beam(**TUBE, elements=4, modes=1, axial_modes=0, held=CHORD), lw.Spherical())
    with pytest.raises(lw.ModelError, match="no piece of that body"):
        model.with_closure("pin", body_a="rod", body_b="world", joint=lw.Spherical())


@pytest.mark.parametrize(
    ("held", "what"),
    [
        (CHORD[:5], "six components"),
        ([*CHORD[:5], ("tip", "tx")], "can still move"),
        ([*CHORD[:5], ("tip", "up")], "component"),
        (7, "six components"),
    ],
)
def test_frames_that_are_not_held(held, what):
    with pytest.raises(lw.LinkwiseError, match=what):
        lw.FlexibleBody.beam(**TUBE, elements=4, modes=1, held=held)
