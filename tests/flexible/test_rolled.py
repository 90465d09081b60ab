"""Sweeps as loops over links some of which deform: the same numbers as written out, and time linear in the links."""

import numpy as np
import pytest

import linkwise as lw
from tests.catalogue_methods import method_of
from tests.flexible.mechanisms import arm, panels, small_beam, state, tree


def near(a, b, tolerance=1e-11):
    parts = zip(a, b, strict=True) if isinstance(a, tuple) else [(a, b)]
    for x, y in parts:
        assert np.abs(np.asarray(x) - np.asarray(y)).max() <= tolerance * max(1.0, np.abs(y).max())


FUNCTIONS = {
    "qva": ("inverse_dynamics", "forward_dynamics", "linearize_inverse", "linearize_forward", "joint_wrenches"),
    "qv": ("bias_force", "kinetic_energy", "momentum", "mass_product", "mass_solve", "integrate", "configuration_rate"),
    "q": ("mass_matrix", "mass_matrix_inverse", "gravity_force", "potential_energy", "poses", "center_of_mass",
          "centroidal_momentum_matrix", "centroidal_inertia"),
}  # fmt: skip


@pytest.mark.parametrize("make", [pytest.param(tree, marks=pytest.mark.slow), arm, panels])
def test_every_function(make):
    """Flexible and rigid links of several kinds, with different numbers of modes."""
    model = make()
    rolled = model.with_sweeps("rolled")
    q, v = state(model, 1)
    given = {"q": q, "v": v, "a": np.random.default_rng(0).normal(size=model.nv)}
    left_out = () if make is tree else ("linearize_inverse", "linearize_forward")  # seconds of compilation each
    for inputs, names in FUNCTIONS.items():
        for name in names:
            if name not in left_out:
                arguments = [given[letter] for letter in inputs]
                near(method_of(rolled, name)(*arguments), method_of(model, name)(*arguments))


@pytest.mark.parametrize("make", [tree, panels])
def test_places(make):
    model = make()
    rolled = model.with_sweeps("rolled")
    q, v = state(model, 2)
    flexible = next(body for body in model.bodies if body.modes)
    for body, node in ((model.bodies[-1].name, None), (flexible.name, flexible.flexible.nodes[-1].key)):
        near(rolled.pose(q, body, node=node), model.pose(q, body, node=node))
        near(rolled.velocity(q, v, body, node=node), model.velocity(q, v, body, node=node))
        near(rolled.jacobian(q, body, node=node), model.jacobian(q, body, node=node))
        near(rolled.jacobian_rate(q, v, body, node=node), model.jacobian_rate(q, v, body, node=node))
        near(rolled.operational.admittance(q, body, node=node), model.operational.admittance(q, body, node=node))


def chain(n):
    """Flexible links, one on the tip of the other, hanging down."""
    beam = small_beam(modes=(2, 0), axial_modes=0, torsion_modes=0, elements=4)
    b = lw.ModelBuilder("chain")
    for k in range(n):
        where = {"placement": lw.transform(rpy=(0, np.pi / 2, 0))} if k == 0 else {"parent": f"{k - 1}", "at": "tip"}
        b.add_body(f"{k}", joint=lw.Revolute(axis=(0, 0, 1)), flexible=beam, **where)
    return b.build()


def test_a_chain_of_a_hundred():
    model = chain(100)
    assert model._rolls
    rng = np.random.default_rng(0)
    q, v = 0.05 * rng.normal(size=(2, 3, model.nv))
    tau = rng.normal(size=(3, model.nv))
    vdot = model.forward_dynamics(q, v, tau)
    size = np.abs(model.bias_force(q, v)).max()  # of the forces that balance
    assert np.abs(model.inverse_dynamics(q, v, vdot) - tau).max() < 1e-10 * size
    written_out = model.with_sweeps("unrolled").inverse_dynamics(q[0], v[0], vdot[0])
    assert np.abs(written_out - tau[0]).max() < 1e-10 * size
    kinds = model._trees.fast.links
    assert len({link.deforming for link in kinds}) == 2  # the first, on the world, and all others


def test_the_program_does_not_grow_with_the_chain():
    """Links of one kind are one piece of code: what grows is a table, and the work, in proportion."""
    short, long = (chain(n).with_sweeps("rolled").function("forward_dynamics").rolled_program for n in (10, 40))
    assert short.operations == long.operations
