"""Closures at the nodes of flexible bodies, and relations of their joints."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LinkwiseError
from tests.flexible.lagrange import slope
from tests.flexible.mechanisms import small_beam, state


def propped():
    """A flexible beam on a hinge, whose tip is pinned to a rocker."""
    beam = small_beam(modes=(1, 1), axial_modes=1, torsion_modes=0)
    b = lw.ModelBuilder("propped")
    b.add_body("beam", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    b.add_body(
        "rocker",
        joint=lw.Spherical(),
        placement=lw.transform(xyz=(2.0, 0.0, -1.0)),
        mass=1.0,
        com=(0, 0, 0.5),
        inertia=np.diag([0.1, 0.1, 0.02]),
    )
    b.add_closure("pin", "rocker", lw.transform(xyz=(0, 0, 1.0)), "beam", joint=lw.Spherical(), node_b="tip")
    return b.build()


def test_closed_at_a_node():
    model = propped()
    q0, v0 = state(model, 1, 0.3)
    q = model.assemble(0.1 * (q0 - model.neutral()) + model.neutral())
    assert np.abs(model.closure_error(q)).max() < 1e-12
    v = model.constraints.project_velocity(q, v0)
    tip, end = model.pose(q, "beam", node="tip"), model.pose(q, "rocker") @ lw.transform(xyz=(0, 0, 1.0))
    np.testing.assert_allclose(tip[:3, 3], end[:3, 3], atol=1e-11)
    tau = np.random.default_rng(0).normal(size=model.nv)
    vdot = model.forward_dynamics(q, v, tau)
    # Against the full system of 𝓜, c and Jacobians of the two points.
    J = model.jacobian(q, "beam", node="tip")[3:] - model.jacobian(q, "rocker", (0, 0, 1.0))[3:]
    J_rate = model.jacobian_rate(q, v, "beam", node="tip")[3:] - model.jacobian_rate(q, v, "rocker", (0, 0, 1.0))[3:]
    n, m = model.nv, len(J)
    K = np.block([[model.mass_matrix(q), J.T], [J, np.zeros((m, m))]])
    right = np.concatenate([tau - model.bias_force(q, v), -J_rate @ v])
    np.testing.assert_allclose(vdot, np.linalg.solve(K, right)[:n], rtol=1e-8, atol=1e-8)
    for solver in ("kkt", "multipliers"):
        np.testing.assert_allclose(model.with_closure_solver(solver).forward_dynamics(q, v, tau), vdot, rtol=1e-7)


def test_a_loop_within_one_flexible_body():
    """Two nodes of one beam on a string of fixed length: it can move, since the beam bends."""
    b = lw.ModelBuilder("bow", gravity=(0, 0, 0))
    b.add_body("beam", flexible=small_beam(modes=(2, 0), axial_modes=0, torsion_modes=0))
    b.add_closure("string", "beam", None, "beam", None, joint=lw.closures.Distance(1.9), node_a="root", node_b="tip")
    model = b.build()
    q = model.assemble(np.array([0.3, 0.1]))
    assert np.linalg.norm(model.pose(q, "beam", node="tip")[:3, 3]) == pytest.approx(1.9, abs=1e-10)


def test_relations_are_about_the_joint():
    beam = small_beam(modes=(1, 0), axial_modes=0, torsion_modes=0)
    b = lw.ModelBuilder("geared")
    b.add_body("one", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    b.add_body("two", parent="one", at="tip", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    b.add_coupling("gear", lw.closures.Coupling.gear("one_joint", "two_joint", 2.0))
    model = b.build()
    q, v = np.array([0.05, 0.4, 0.02, 0.8]), np.array([0.1, 0.5, 0.2, 1.0])
    error = model.closure_error(q)
    J = np.array([slope(model, model.closure_error, q, unit)[0] for unit in np.eye(4)])
    assert J[0] == J[2] == 0.0
    assert J[1] != 0.0
    vdot = model.forward_dynamics(q, v, np.zeros(4))
    assert abs(J @ vdot) < 1e-9
    assert error.shape == (1,)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda b, beam: b.add_body("x", flexible=beam, mass=1.0), "mass of the flexible body 'x' is its own"),
        (lambda b, beam: b.add_body("x", flexible="beam"), "flexible body that is none"),
        (lambda b, beam: b.add_body("x", parent="beam", at="top", mass=1.0), "no node of this name"),
        (lambda b, beam: b.add_body("x", parent="stone", at="tip", mass=1.0), "which is rigid"),
        (lambda b, beam: b.add_body("x", parent="world", at="tip", mass=1.0), "which is rigid"),
        (lambda b, beam: b.add_frame("x", "stone", node="tip"), "which is rigid"),
        (lambda b, beam: b.add_body("x", joint=lw.Revolute(), flexible=beam, mimic=lw.Mimic("j")), "cannot follow"),
        (
            lambda b, beam: b.add_body("x", flexible=lw.FlexibleBody.beam(1.0, 1, 1, 1, 1, modes=0, axial_modes=0)),
            "has no modes",
        ),
    ],
)
def test_what_cannot_be_built(build, text):
    beam = small_beam(modes=(1, 0), axial_modes=0, torsion_modes=0)
    b = lw.ModelBuilder("wrong")
    b.add_body("beam", joint=lw.Revolute(), flexible=beam)
    b.add_body("stone", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0))
    with pytest.raises(LinkwiseError, match=text):
        build(b, beam)


def test_what_is_for_rigid_bodies_only_says_so():
    beam = small_beam(modes=(1, 0), axial_modes=0, torsion_modes=0)
    b = lw.ModelBuilder("one")
    b.add_body("beam", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    model = b.build()
    q = model.neutral()
    with pytest.raises(LinkwiseError, match="no parameter of this name"):
        model.with_parameters(["beam.mass"])
    with pytest.raises(LinkwiseError, match="no node of this name"):
        model.pose(q, "beam", node="top")
    with pytest.raises(LinkwiseError, match="has no nodes"):
        model.with_closure("x", "world", None, "beam", joint=lw.Spherical(), node_a="tip")


@pytest.mark.parametrize("states", [(), (3,)])
def test_operators_of_closures_at_nodes(states):
    """A, J, Λ and U at a node where its deformation has taken it; one state, a batch, and symbols."""
    model = propped()
    q0, v0 = state(model, 1, 0.3)
    guess = 0.1 * (q0 - model.neutral()) + model.neutral()
    q = model.assemble(np.stack([model.integrate(guess, 0.1 * i * v0) for i in range(3)]))
    q, v = (q, np.stack([v0, 2 * v0, -v0])) if states else (q[0], v0)
    ops = model.operators(q, v)
    J_c = model.constraints.jacobian(q)
    np.testing.assert_allclose((ops.A @ ops.J()).dense(), J_c, atol=1e-12)
    np.testing.assert_allclose(ops.U.value, -model.constraints.bias(q, v), atol=1e-10)
    expected = J_c @ np.linalg.solve(model.mass_matrix(q), np.swapaxes(J_c, -1, -2))
    np.testing.assert_allclose((ops.A @ ops.Lambda @ ops.A.T).dense(), expected, rtol=1e-9, atol=1e-9)


def test_compiled_operators_of_closures_at_nodes():
    model = propped()
    q0, _ = state(model, 1, 0.3)
    q = model.assemble(0.1 * (q0 - model.neutral()) + model.neutral())

    def pulled(model, q):
        ops = model.operators(q)
        return (ops.A @ ops.J()).dense()

    found = lw.compile(pulled, model, inputs={"q": "q"})(q)
    np.testing.assert_allclose(found, model.constraints.jacobian(q), atol=1e-12)
