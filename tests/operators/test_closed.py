"""Operators of closed systems: A, Λ, U and Rodriguez 1989 eq. 3.13, on random trees, against the solvers and NumPy."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.operators import RULES
from tests.closures.mechanisms import BETWEEN, RELATIONS, EagerModel, T, at_state, closed_tree, with_closure
from tests.operators.checks import difference, largest
from tests.random_trees import random_tree
from tests.seeds import seeds

TOLERANCE = 1e-10
CASES = [
    ["revolute"],
    ["spherical"],
    ["weld"],
    ["spherical", "revolute"],
    ["weld", "spherical"],
    ["gear", "revolute"],
    ["whole", "skate", "distance"],
]


def case_of(kinds, seed):
    return closed_tree(seed, kinds, n=8)


def two_steps(ops):
    """𝓜⁻¹ - 𝓜⁻¹J_c*(AΛA*)⁻¹J_c𝓜⁻¹: free accelerations, and what the multipliers take from them."""
    mobility, J_c = ops.mass_matrix.inv(), ops.A @ ops.J()
    S = ops.A @ ops.Lambda @ ops.A.T
    return mobility - mobility @ J_c.T @ S.inv() @ J_c @ mobility


def accelerations(ops, mobility, tau):
    """β' with the velocities' part U of the constraints."""
    S = ops.A @ ops.Lambda @ ops.A.T
    moved = ops.mass_matrix.inv() @ ops.J().T @ ops.A.T @ S.inv() @ ops.U
    return np.asarray(mobility @ (ops.vector(tau) - ops.C) + moved)


@pytest.mark.parametrize("kind", [*BETWEEN, *RELATIONS])
def test_rows_of_every_kind(kind):
    case = case_of([kind], 2)
    ops = case.model.operators(case.q, case.v, t=T)
    J_c = case.model.constraints.jacobian(case.q, t=T, v=case.v)
    assert largest((ops.A @ ops.J()).dense() - J_c) < TOLERANCE * largest(J_c)
    bias = case.model.constraints.bias(case.q, case.v, t=T)
    assert largest(ops.U.value + bias) < TOLERANCE * (1.0 + largest(bias))


@pytest.mark.parametrize("kinds", CASES)
def test_admittance_at_the_points_of_closure(kinds):
    """Λ = J𝓜⁻¹J*, AΛA* = J_c𝓜⁻¹J_c*: by sweeps, and by LAPACK."""
    case = case_of(kinds, 3)
    ops = case.model.operators(case.q, case.v, t=T)
    mass = case.model.mass_matrix(case.q)
    J = ops.J().dense()
    Lambda = J @ np.linalg.solve(mass, J.T)
    assert largest(ops.Lambda.dense() - Lambda) < TOLERANCE * largest(Lambda)
    J_c = case.model.constraints.jacobian(case.q, t=T, v=case.v)
    S, expected = ops.A @ ops.Lambda @ ops.A.T, J_c @ np.linalg.solve(mass, J_c.T)
    assert largest(S.dense() - expected) < TOLERANCE * largest(expected)
    # An inverse where there is one; else what is one on the range of S.
    for solved in (S.inv() @ expected, S.inv().dense() @ expected):
        assert largest(expected @ solved - expected) < 1e-9 * largest(expected)


@pytest.mark.parametrize("kinds", CASES)
@pytest.mark.parametrize("seed", seeds(1, of=2))
def test_closed_forward_dynamics(kinds, seed):
    """Rodriguez 1989 eq. 3.13 and its two steps are the solvers' accelerations, and rewrite each other."""
    case = case_of(kinds, seed)
    ops = case.model.operators(case.q, case.v, t=T)
    steps = two_steps(ops)
    whole = steps.simplify().rewrite("closed_mobility")
    assert whole.name == "(I − HψK)* D⁻½* (I − D⁻½HψBA* (AΛA*)⁻¹ AB*ψ*H*D⁻½*) D⁻½ (I − HψK)"
    assert whole.rewrite("closed_mobility", reverse=True) == steps.simplify()
    assert "Rodriguez 1989 eq. 3.13" in whole.explain()
    expected = case.model.forward_dynamics(*case.state, t=T)
    for mobility in (steps, steps.simplify(), whole):
        found = accelerations(ops, mobility, case.tau)
        assert largest(found - expected) < TOLERANCE * largest(expected)


@pytest.mark.parametrize("kinds", CASES)
@pytest.mark.parametrize("seed", seeds(1, of=2))
def test_the_rules_of_closed_systems_hold(kinds, seed):
    case = case_of(kinds, seed)
    ops = case.model.operators(case.q)
    rng = np.random.default_rng(seed)
    closed = [rule for rule in RULES.values() if rule.needs == "closures"]
    assert {rule.name for rule in closed} == {"closure_admittance", "closed_mobility"}
    for rule in closed:
        assert rule.holds_for(ops)
        left, right = rule.sides(ops)
        x, y = (rng.normal(size=(space.size, 5)) for space in (left.cols, left.rows))
        assert max(difference(left, right, x), difference(left.T, right.T, y)) < TOLERANCE, rule.name


@pytest.mark.parametrize("kinds", [["weld"], ["revolute"], ["spherical"], ["weld", "spherical"]])
def test_the_inverse_of_full_rank(kinds):
    """A floating chain can follow any motion of its last link, so that nothing is redundant."""
    rng = np.random.default_rng(5)
    types = ("spherical", "universal", "revolute")
    model = EagerModel.of(random_tree(rng, 8, types, floating=True, branching=0.0))
    q = model.random_configuration(rng)
    for i, (kind, body) in enumerate(zip(kinds, ("body7", "body3"), strict=False)):
        model = with_closure(model, q, rng, f"c{i}", kind, "world", body)
    case = at_state(model, q, rng)
    ops = model.operators(case.q, case.v)
    S = ops.A @ ops.Lambda @ ops.A.T
    condition = np.linalg.cond(S.dense())
    assert condition < 1e8
    assert largest(S.inv().dense() - np.linalg.inv(S.dense())) < 1e-14 * condition * largest(S.inv().dense())
    found, expected = accelerations(ops, two_steps(ops), case.tau), model.forward_dynamics(*case.state)
    assert largest(found - expected) < TOLERANCE * largest(expected)


def test_the_rules_fit_no_other_points():
    """Λ is the admittance at the points of closure; at others B*ΩB stays as it is."""
    case = case_of(["spherical"], 0)
    ops = case.model.operators(case.q)
    B = ops.B([case.model.bodies[-1].name])
    assert (B.T @ ops.Omega @ B).simplify() == B.T @ ops.Omega @ B
    assert (ops.B().T @ ops.Omega @ ops.B()).simplify() == ops.Lambda


@pytest.mark.parametrize("seed", seeds(1, of=3))
def test_the_root_is_one_factor_for_numbers_and_for_symbols(seed):
    model = random_tree(seed, 6, ("free", "spherical", "universal", "revolute"))
    q = model.random_configuration(seed)
    numbers, symbols = model.operators(q), model.operators(q.astype(object))
    root = numbers.D_inverse_root.dense()
    inverse = np.linalg.inv(numbers.D.dense())
    assert largest(root.T @ root - inverse) < TOLERANCE * largest(inverse)
    assert largest(np.triu(root, 1)) == 0.0
    for found in (symbols.D_inverse_root.dense(), symbols.D_inverse_root.T.dense().T):
        assert largest(found.astype(float) - root) < TOLERANCE * largest(root)


@pytest.mark.parametrize("frames", ["body", "link"])
def test_symbols_and_batches(frames):
    """Compiled into one kernel, one state after another, and a batch at once."""
    case = closed_tree(4, ["revolute", "gear"], n=6, compiled=True)
    model = case.model

    def dynamics(model, q, v, tau):
        ops = model.operators(q, v, frames=frames)
        return accelerations(ops, two_steps(ops).simplify().rewrite("closed_mobility"), tau)

    states = [case.state]
    rng = np.random.default_rng(0)
    while len(states) < 3:  # near the first, and closed too
        along = model.constraints.project_velocity(case.q, rng.normal(size=model.nv))
        q = model.assemble(model.integrate(case.q, 0.1 * along))
        states.append((q, model.constraints.project_velocity(q, rng.normal(size=model.nv)), rng.normal(size=model.nv)))
    q, v, tau = (np.array(column) for column in zip(*states, strict=True))
    expected = model.forward_dynamics(q, v, tau)
    assert largest(dynamics(model, q, v, tau) - expected) < TOLERANCE * largest(expected)
    compiled = lw.compile(dynamics, model, inputs={"q": "q", "v": "v", "tau": "v"})
    assert largest(compiled(q, v, tau) - expected) < TOLERANCE * largest(expected)
    assert model.operators(q, v).A.dense().shape == (3, 6, 6 * model.operators(q, v).B().shape[1] // 6)


@pytest.mark.parametrize("model", [samples.four_bar(2), samples.bricard()], ids=["four-bar", "bricard"])
def test_redundant_closures_leave_the_accelerations_unique(model):
    q = model.assemble(model.neutral() + (0.4 * np.array([1, -1, 1, -1, 1]) if model.nq == 5 else 0.0))
    v = model.constraints.project_velocity(q, np.ones(model.nv))
    tau = np.linspace(-1.0, 1.0, model.nv)
    expected = model.with_closure_solver("nullspace").forward_dynamics(q, v, tau)
    for at in ((q, v), (q.astype(object), v.astype(object))):
        ops = model.operators(*at)
        found = accelerations(ops, two_steps(ops), tau).astype(float)
        assert largest(found - expected) < TOLERANCE * largest(expected)


def test_the_steps_of_the_paper():
    """Steps A–F of Rodriguez 1989 §3, one by one, with the papers' sign of the multipliers."""
    case = case_of(["revolute", "spherical"], 6)
    ops = case.model.operators(case.q, case.v)
    A, J, mobility = ops.A, ops.J(), ops.mass_matrix.inv()
    free = mobility @ (ops.vector(case.tau) - ops.C)
    f = (A @ ops.Lambda @ A.T).inv() @ (A @ J @ free - ops.U)
    vdot = np.asarray(free - mobility @ J.T @ A.T @ f)
    expected = case.model.forward_dynamics(*case.state)
    assert largest(vdot - expected) < TOLERANCE * largest(expected)
    forces = case.model.constraint_forces(*case.state).multipliers
    assert largest(f.value + forces) < 1e-8 * largest(forces)


def test_mistakes_are_named():
    model = samples.stanford_arm()
    ops = model.operators(model.neutral())
    assert not ops.has_closures
    for letter in (lambda: ops.A, lambda: ops.Lambda, lambda: ops.B(), lambda: ops.J()):
        with pytest.raises(lw.InputError, match="no closures"):
            letter()
    with pytest.raises(lw.InputError, match="does not hold for this mechanism"):
        ops.mass_matrix.rewrite("closed_mobility")
    case = case_of(["spherical"], 0)
    ops = case.model.operators(case.q)
    with pytest.raises(lw.InputError, match="needs the velocity"):
        ops.U  # noqa: B018
    with pytest.raises(lw.InputError, match="no rule gives the inverse"):
        ops.Lambda.inv() @ np.zeros(ops.Lambda.shape[0])


def flexible_arm():
    beam = lw.FlexibleBody.beam(length=1.0, EA=3e4, EI=(14.0, 14.0), GJ=10.0, mass_per_length=1.2, elements=4, modes=3)
    builder = lw.ModelBuilder("arm")
    builder.add_body("beam", "world", lw.Revolute((0, 1, 0)), flexible=beam)
    builder.add_body("load", "beam", lw.Revolute((0, 1, 0)), at="tip", mass=1.0, com=(0.2, 0, 0), inertia=np.eye(3))
    return builder


def test_closures_beyond_a_flexible_body():
    builder = flexible_arm()
    ends = lw.transform(xyz=(0.8, 0, 0)), lw.transform(xyz=(1.3, 0, 0))
    builder.add_closure("pin", "load", ends[0], "world", ends[1], joint=lw.Spherical())
    model = EagerModel.of(builder.build())
    q = model.assemble(model.neutral() + np.r_[0.5, -1.0, np.zeros(model.nq - 2)])
    v = model.constraints.project_velocity(q, np.ones(model.nv))
    ops = model.operators(q, v)
    J_c = model.constraints.jacobian(q)
    assert largest((ops.A @ ops.J()).dense() - J_c) < TOLERANCE * largest(J_c)


def test_couplings_on_a_flexible_body_are_refused():
    coupled = flexible_arm()
    coupled.add_coupling("brake", lw.closures.Prescribed(coupled.build().joints[1].name, lambda t: 0.2 * t))
    model = coupled.build()
    ops = model.operators(model.neutral(), np.zeros(model.nv))
    with pytest.raises(lw.InputError, match="flexible body 'beam'"):
        ops.A  # noqa: B018
