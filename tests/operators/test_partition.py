"""Closed systems in two parts (Rodriguez 1989 §2.3, 3): two arms that hold one body, against the whole and counted."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.articulated import articulate, pull, solve
from linkwise.algorithms.catalogue import Trees
from linkwise.algorithms.inverse_dynamics import needed_forces
from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.sweeps import Field
from linkwise.operators.partition import alternative_step_D, step_D
from linkwise.spatial.vectors import Force
from linkwise.trace.readable import count
from linkwise.trace.tracer import trace
from tests.closures.mechanisms import EagerModel

EXACT = 1e-14


def two_arms_and_a_load(weld=True):
    rng = np.random.default_rng(3)
    builder = lw.ModelBuilder("two arms")
    joint = lw.Fixed() if weld else lw.Spherical()

    def body(name, parent, joint, xyz):
        com, moments = rng.uniform(-0.1, 0.1, 3), np.diag(rng.uniform(0.1, 0.2, 3))
        builder.add_body(name, parent, joint, lw.transform(xyz=xyz), mass=1.0, com=com, inertia=moments)

    for side, x in (("left", -0.5), ("right", 0.5)):
        for k in range(7):
            axis = rng.normal(size=3)
            parent = f"{side}{k - 1}" if k else "world"
            body(f"{side}{k}", parent, lw.Revolute(axis=axis / np.linalg.norm(axis)), (0, 0, 0.4) if k else (x, 0, 0))
    body("load", "world", lw.Free(), (0, 0, 2.0))
    for side, x in (("left", -0.3), ("right", 0.3)):
        builder.add_closure(
            f"{side} grip", f"{side}6", lw.transform(xyz=(0, 0, 0.2)), "load", lw.transform(xyz=(x, 0, 0)), joint=joint
        )
    return EagerModel.of(builder.build())


@pytest.fixture(scope="module", params=[True, False], ids=["weld", "ball"])
def case(request):
    model = two_arms_and_a_load(request.param)
    rng = np.random.default_rng(0)
    bent = model.neutral()
    bent[:14] = rng.uniform(-0.5, 0.5, 14)
    q = model.assemble(bent)
    v, tau = rng.normal(size=(2, model.nv))
    v = model.constraints.project_velocity(q, v)
    ops = model.operators(q, v)
    return model, q, v, tau, ops, ops.partition(["load"])


def steps(case):
    """A, B, C of both columns."""
    _, _, _, tau, ops, parts = case
    P, S = parts.primary, parts.secondary
    T = ops.vector(tau) - ops.C
    free = ops.mass_matrix.inv() @ T
    return P, S, np.asarray(T), free, np.asarray(P.J @ free), np.asarray(S.J @ free)


def test_the_parts_make_up_the_whole(case):
    _, _, _, _, ops, parts = case
    P, S = parts.primary, parts.secondary
    whole, apart = (ops.A @ ops.J()).dense(), (P.A @ P.J).dense() + (S.A @ S.J).dense()
    np.testing.assert_allclose(apart, whole, atol=EXACT * np.abs(whole).max())
    assert sorted(P.freedoms + S.freedoms) == list(range(ops.mass_matrix.shape[0]))
    assert not P.J.dense()[:, S.freedoms].any() and not S.J.dense()[:, P.freedoms].any()
    total = (ops.A @ ops.Lambda @ ops.A.T).dense()
    both = (P.A @ P.Lambda @ P.A.T).dense() + (S.A @ S.Lambda @ S.A.T).dense()
    np.testing.assert_allclose(both, total, atol=EXACT * np.abs(total).max())
    # the definition Λ_P = J_P 𝓜⁻¹ J_P*, by NumPy
    J, inverse = P.J.dense(), np.linalg.inv(ops.mass_matrix.dense())
    np.testing.assert_allclose(P.Lambda.dense(), J @ inverse @ J.T, rtol=1e-9, atol=1e-9)


def test_steps_of_two_columns(case):
    """Steps A–F, both forms of D, against the library's own solution."""
    model, q, v, tau, ops, _ = case
    P, S, T, free, alpha_P, alpha_S = steps(case)
    U = ops.U.value
    f = step_D(*(x.dense() for x in (P.A, P.Lambda, S.A, S.Lambda)), alpha_P, alpha_S, U)
    vdot = np.asarray(free) - np.asarray(ops.mass_matrix.inv() @ (P.J.T @ P.A.T + S.J.T @ S.A.T) @ np.array(f, float))
    whole = np.linalg.solve((ops.A @ ops.Lambda @ ops.A.T).dense(), np.asarray(ops.A @ ops.J() @ free) - U)
    assert np.abs(np.array(f, float) - whole).max() < EXACT * np.abs(whole).max()
    expected = model.forward_dynamics(q, v, tau)
    assert np.abs(vdot - expected).max() < 1e-12 * np.abs(expected).max()
    mine = S.freedoms
    J_c_S, M_S = (S.A @ S.J).dense()[:, mine], ops.mass_matrix.dense()[np.ix_(mine, mine)]
    other, beta = alternative_step_D(P.A.dense(), P.Lambda.dense(), J_c_S, M_S, alpha_P, T[mine], U)
    assert np.abs(np.array(other, float) - whole).max() < 1e-13 * np.abs(whole).max()
    assert np.abs(np.array(beta, float) - expected[mine]).max() < 1e-12 * np.abs(expected).max()


def multiplications(function, *arrays):
    """Of a text over arrays whose zeros are known and whose other entries are not."""
    given = [np.asarray(x, float) for x in arrays]

    def text(*flat):
        unknown = []
        for x, values in zip(flat, given, strict=True):
            entries = [a if b else 0.0 for a, b in zip(x, values.ravel(), strict=True)]
            unknown.append(np.array(entries, object).reshape(values.shape).tolist())
        out = function(*unknown)
        return [("out", (len(out),), out)]

    return count(trace("counted", text, [(f"x{i}", (x.size,)) for i, x in enumerate(given)])).M


def test_what_a_change_costs(case):
    """A closure changed touches step D alone, a secondary its own column; the alternative is a system of six."""
    model, ops = case[0], case[4]
    P, S, T, _, alpha_P, alpha_S = steps(case)
    A_P, Lambda_P, A_S, Lambda_S = (x.dense() for x in (P.A, P.Lambda, S.A, S.Lambda))
    changed = multiplications(step_D, A_P, Lambda_P, A_S, Lambda_S, alpha_P, alpha_S, ops.U.value)
    mine = S.freedoms
    J_c_S, M_S = (S.A @ S.J).dense()[:, mine], ops.mass_matrix.dense()[np.ix_(mine, mine)]
    alternative = multiplications(
        lambda *x: alternative_step_D(*x)[0], A_P, Lambda_P, J_c_S, M_S, alpha_P, T[mine], ops.U.value
    )
    tree = Trees(model).aligned

    def column(roots):
        """Steps A to C of one part: free accelerations, those of its points, and Λ."""
        chosen = [link for link in tree if list(tree.ancestors(link))[-1].name in roots]
        places = [place for place in ops.closing.places if place.link.index in {link.index for link in chosen}]

        def text(q, v, tau):
            axes = articulate(tree, q)
            free = solve(tree, q, axes, tau, needed_forces(tree, q, v, None, None))
            at = joined_pulls(tree, places)
            Lambda = pull(tree, q, axes, at)[1]
            out = [free[i] for link in chosen for i in range(link.v_start, link.v_start + link.joint.nv)]
            out += [x for row in Lambda for x in row]
            return [("out", (len(out),), out)]

        return count(trace("part", text, [("q", (tree.nq,)), ("v", (tree.nv,)), ("tau", (tree.nv,))])).M

    arms, load = column(["left0", "right0"]), column(["load"])
    print(f"primary A-C {arms}, secondary A-C {load}, step D {changed}, alternative {alternative}")
    assert 4 * load < arms
    assert changed < arms + load
    assert (alternative < changed) == (len(mine) < len(ops.U.value))  # it pays where the secondary is the smaller


def joined_pulls(tree, places):
    """Six unit forces at each point."""
    columns = [(place, k) for place in places for k in range(6)]
    forces = [
        [place.offset @ Force.of([float(i == k) for i in range(6)]) if place.link.index == link.index else Force.zero()
         for place, k in columns]
        for link in tree
    ]  # fmt: skip
    return Pulls(len(columns), [Field([tuple(row) for row in forces])])


def test_refusals(case):
    ops = case[4]
    with pytest.raises(lw.InputError, match="bodies on the base"):
        ops.partition(["left3"])
    with pytest.raises(lw.InputError, match="bodies on the base"):
        ops.partition([])
    with pytest.raises(lw.InputError, match="no point of closure"):
        ops.partition(["left0", "right0", "load"])
