"""Shooting: beside linear-quadratic formulas, SciPy's optimisers, finite differences, and steps of simulations."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize

import linkwise as lw
from linkwise.samples import planar_arm

N, DT = 20, 0.1


def cart(effort=np.inf):
    b = lw.ModelBuilder("cart", gravity=(0, 0, 0))
    b.add_body("cart", joint=lw.Prismatic((1, 0, 0)), mass=2.0, limits=lw.JointLimits(effort=effort))
    return b.build()


def spun(u, q0, v0):
    """Where Euler steps of the cart lead, by hand."""
    qs, vs = [q0], [v0]
    for each in u:
        vs.append(vs[-1] + DT * each / 2.0)
        qs.append(qs[-1] + DT * vs[-1])
    return np.array(qs), np.array(vs)


def test_linear_quadratic_problem_takes_one_iteration_and_has_the_gains_of_riccatis_equation():
    problem = lw.control.Shooting(cart(), 200, DT, running=lambda m, q, v, u: np.array([q[0], 0.5 * v[0], 0.1 * u[0]]))
    plan = problem.solve([1.0], [0.2])
    A, B = np.array([[1.0, DT], [0.0, 1.0]]), np.array([[DT * DT / 2.0], [DT / 2.0]])
    P = solve_discrete_are(A, B, np.diag([1.0, 0.25]), [[0.01]])
    K = -np.linalg.solve(0.01 + B.T @ P @ B, B.T @ P @ A)
    assert (plan.status, plan.iterations) == ("done", 1)
    np.testing.assert_allclose(plan.gains[0], K, rtol=1e-9)
    x = np.array([1.0, 0.2])
    assert plan.cost == pytest.approx(0.5 * x @ P @ x, rel=1e-9)
    A_s, B_s = problem.linearized(plan.q[:-1], plan.v[:-1], plan.u)
    assert A_s.shape == (200, 2, 2)
    np.testing.assert_allclose(A_s[7], A, atol=1e-14)
    np.testing.assert_allclose(B_s[7], B, atol=1e-14)


def test_efforts_are_limited_and_the_end_is_met_as_scipy_finds():
    strongest = 2.6
    plan = lw.control.shoot(
        cart(strongest),
        [0.0],
        steps=N,
        dt=DT,
        running=lambda m, q, v, u: u,
        end_zero=lambda m, q, v: np.array([q[0] - 1.0, v[0]]),
        limits=True,
    )
    found = minimize(
        lambda u: 0.5 * u @ u,
        np.zeros(N),
        jac=lambda u: u,
        bounds=[(-strongest, strongest)] * N,
        constraints={
            "type": "eq",
            "fun": lambda u: [x[-1] - goal for x, goal in zip(spun(u, 0.0, 0.0), (1.0, 0.0), strict=True)],
        },
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    assert plan.status == "done" and plan.excess <= 1e-6
    assert np.isclose(np.abs(found.x).max(), strongest)  # else this test tests nothing
    np.testing.assert_allclose(plan.u[:, 0], found.x, atol=2e-4)
    assert plan.cost == pytest.approx(found.fun, rel=1e-5)


def test_speeds_stay_below_and_the_end_is_inside_its_set_as_scipy_finds():
    """Limits along the way, and a terminal set that is not a point: within 0.1 of the goal, at rest."""

    def fastest(model, q, v, u):
        return v - 0.6

    problem = lw.control.Shooting(
        cart(),
        N,
        DT,
        running=lambda m, q, v, u: u,
        below=fastest,
        end_below=lambda m, q, v: np.array([0.9 - q[0], q[0] - 1.1]),
        end_zero=lambda m, q, v: v,
    )
    plan = problem.solve([0.0])
    conditions = [
        {"type": "ineq", "fun": lambda u: 0.6 - spun(u, 0.0, 0.0)[1][:-1]},
        {"type": "ineq", "fun": lambda u: spun(u, 0.0, 0.0)[0][-1] - 0.9},
        {"type": "eq", "fun": lambda u: spun(u, 0.0, 0.0)[1][-1]},
    ]
    found = minimize(
        lambda u: 0.5 * u @ u,
        np.zeros(N),
        jac=lambda u: u,
        constraints=conditions,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert plan.status == "done" and plan.excess <= 1e-6
    assert np.isclose(plan.v.max(), 0.6, atol=1e-5) and plan.q[-1, 0] == pytest.approx(0.9, abs=1e-5)
    assert plan.cost == pytest.approx(found.fun, rel=1e-4)
    again = problem.solve([0.0], start=plan)
    assert again.status == "done" and again.iterations <= 2


def test_limits_that_cannot_be_kept_are_said():
    plan = lw.control.shoot(
        cart(0.1), [0.0], steps=5, dt=DT, running=lambda m, q, v, u: u, end_zero=lambda m, q, v: q - 1.0, limits=True
    )
    assert plan.status != "done" and plan.excess > 0.01


def arm_costs():
    goal = np.array([0.8, -0.6])

    def running(model, q, v, u):
        return np.concatenate([0.1 * u, 0.05 * v])

    def terminal(model, q, v):
        return np.concatenate([10.0 * (q - goal), 3.0 * v])

    return {"running": running, "terminal": terminal}


def spent(model, step, u, q, v, running, terminal):
    """Cost of controls, in NumPy."""
    total = 0.0
    for each in u:
        total += 0.5 * np.sum(running(model, q, v, each) ** 2)
        q, v = step(q, v, each)
    return total + 0.5 * np.sum(terminal(model, q, v) ** 2)


def test_arm_reaches_the_same_motion_from_rest_and_from_states_that_do_not_fit_together():
    model = planar_arm(2)
    problem = lw.control.Shooting(model, N, 0.05, **arm_costs())
    plan = problem.solve([0.1, 0.2])
    line = np.linspace([0.1, 0.2], [0.8, -0.6], N + 1)
    other = problem.solve([0.1, 0.2], start=(line, np.zeros_like(line), np.zeros((N, 2))))
    assert plan.status == other.status == "done"
    np.testing.assert_allclose(other.u, plan.u, atol=1e-4)
    assert other.cost == pytest.approx(plan.cost, rel=1e-9)

    def euler(q, v, u):
        v = v + 0.05 * model.forward_dynamics(q, v, u + model.passive_force(q, v))
        return q + 0.05 * v, v

    def cost(u):
        return spent(model, euler, u.reshape(N, 2), np.array([0.1, 0.2]), np.zeros(2), **arm_costs())

    assert cost(plan.u.ravel()) == pytest.approx(plan.cost, rel=1e-12)
    no_better_nearby(cost, plan.u.ravel())


def no_better_nearby(cost, u):
    """By central differences along some directions."""
    for direction in np.random.default_rng(0).normal(size=(5, u.size)):
        slope = (cost(u + 1e-6 * direction) - cost(u - 1e-6 * direction)) / 2e-6
        curvature = (cost(u + 1e-4 * direction) + cost(u - 1e-4 * direction) - 2.0 * cost(u)) / 1e-8
        assert curvature > 0.0
        assert abs(slope) < 1e-6 * curvature  # the best along this line is within 1e-6 of it


def test_plan_is_the_best_start_of_the_next_one():
    problem = lw.control.Shooting(planar_arm(2), N, 0.05, **arm_costs())
    plan = problem.solve([0.1, 0.2])
    again = problem.solve([0.1, 0.2], start=plan)
    assert again.iterations == 0
    later = plan.shifted()
    assert later.t[0] == pytest.approx(0.05)
    assert problem.solve(later.q[0], later.v[0], start=later).iterations <= plan.iterations
    assert plan.motion.q.shape == (N + 1, 2)


def test_runge_kutta_steps_are_those_of_simulate_and_exact_costs_may_be_numbers():
    model = planar_arm(2)

    def running(model, q, v, u, goal):
        return 0.01 * (u @ u) + 0.1 * (1.0 - lw.math.cos(q[0] - goal[0]))

    problem = lw.control.Shooting(model, N, 0.05, running=running, method="rk4", goal=1)
    plan = problem.solve([0.1, 0.2], goal=[0.7])
    assert plan.status == "done"
    held = lw.Torque(plan.t, np.concatenate([plan.u, plan.u[-1:]]), "held")
    motion = lw.simulate(model, [0.1, 0.2], duration=plan.t[-1], dt=0.05, method="rk4", control=held)
    np.testing.assert_allclose(motion.q[-1], plan.q[-1], atol=1e-11)


def test_attitudes_turn_in_their_tangent_space():
    """A free body with torques about two axes: no better controls nearby, by differences of what they cost."""
    b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Spherical(), mass=10.0, inertia=np.diag([1.0, 2.0, 3.0]))
    model = b.build()
    goal = model.integrate(model.neutral(), [0.6, -0.3, 0.4])

    def running(model, q, v, u):
        return np.concatenate([0.3 * u, 0.1 * v])

    def terminal(model, q, v):
        return np.concatenate([5.0 * model.difference(goal, q), 5.0 * v])

    steps = 8
    problem = lw.control.Shooting(model, steps, 0.2, running=running, terminal=terminal)
    q0, v0 = model.integrate(model.neutral(), [0.1, 0.2, 0.0]), np.array([0.2, -0.1, 0.3])
    plan = problem.solve(q0, v0)
    assert plan.status == "done" and plan.gap < 1e-9

    def euler(q, v, u):
        v = v + 0.2 * model.forward_dynamics(q, v, u)
        return model.integrate(q, 0.2 * v), v

    def cost(u):
        return spent(model, euler, u.reshape(steps, 3), q0, v0, running, terminal)

    assert cost(plan.u.ravel()) == pytest.approx(plan.cost, rel=1e-10)
    no_better_nearby(cost, plan.u.ravel())


def test_branches_that_nothing_couples_are_solved_apart_and_together_alike():
    b = lw.ModelBuilder("two arms")
    for side in "ab":
        for k, parent in ((1, "world"), (2, f"{side}1")):
            b.add_body(
                f"{side}{k}", parent, lw.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.3), inertia=0.05 * np.eye(3)
            )
    model = b.build()
    goal = np.array([0.3, 0.1, -0.4, 0.2])

    def solved(coupling):
        def running(model, q, v, u):
            return np.array([*(0.1 * u), coupling * (q[0] - q[2])])

        def terminal(model, q, v):
            return np.concatenate([5.0 * (q - goal), v])

        problem = lw.control.Shooting(model, N, 0.05, running=running, terminal=terminal)
        return problem, problem.solve(np.zeros(4))

    apart, plan = solved(0.0)
    together, other = solved(1e-9)
    assert [len(problem.steps.by_groups[1]) for problem in (apart, together)] == [2, 1]
    assert not plan.gains[:, :2, 2:4].any() and plan.gains[:, :2, :2].all()
    np.testing.assert_allclose(plan.u, other.u, atol=1e-5)
    np.testing.assert_allclose(plan.gains, other.gains, atol=1e-5)


def test_wrong_problems_are_answered():
    model = planar_arm(2)
    problems = {
        "not a model": {"model": "arm"},
        "steps is not": {"steps": None},
        "goal is not": {"goal": -2},
        "no such step": {"method": "heun"},
        "running is not a function": {"running": None},
    }
    good = {"model": model, "steps": 5, "dt": 0.1, "running": lambda m, q, v, u: u}
    for words, wrong in problems.items():
        with pytest.raises(lw.InputError, match=words):
            lw.control.Shooting(**{**good, **wrong})
    problem = lw.control.Shooting(model, 5, 0.1, running=lambda m, q, v, u: u)
    with pytest.raises(lw.InputError, match="goal does not fit"):
        problem.solve([0.0, 0.0], goal=[1.0])
    with pytest.raises(lw.InputError, match="wrong shape"):
        problem.solve([0.0, 0.0, 0.0])
    with pytest.raises(lw.InputError, match="q0 is not finite"):
        problem.solve([0.0, np.nan])
    with pytest.raises(lw.InputError, match=r"not \(q, v, u\)"):
        problem.solve([0.0, 0.0], start=(np.zeros((6, 2)), np.zeros((6, 2))))
    with pytest.raises(lw.InputError, match="ends before"):
        problem.solve([0.0, 0.0]).shifted(9)
    with pytest.raises(lw.InputError, match="not convex"):
        lw.control.shoot(model, [0.0, 0.0], steps=5, dt=0.1, running=lambda m, q, v, u: lw.math.sqrt(u[0] - 1e9))


def test_a_model_without_limits_has_none_to_keep():
    given = {"steps": 5, "dt": 0.1, "running": lambda m, q, v, u: u, "terminal": lambda m, q, v: q - 1.0}
    plain = lw.control.shoot(planar_arm(2), [0.0, 0.0], **given)
    limited = lw.control.shoot(planar_arm(2), [0.0, 0.0], limits=True, **given)
    np.testing.assert_array_equal(plain.u, limited.u)


def test_an_end_that_cannot_be_reached_leaves_the_cost_of_the_motion():
    """The limits' share is not in it, with the weight at its largest either."""
    given = {"steps": 5, "dt": 0.1, "running": lambda m, q, v, u: u, "terminal": lambda m, q, v: q - 1.0}
    free = lw.control.shoot(planar_arm(2), [0.0, 0.0], **given)
    plan = lw.control.shoot(planar_arm(2), [0.0, 0.0], end_zero=lambda m, q, v: 0.0 * q[:1] + 1.0, **given)
    assert plan.status == "stuck" and plan.excess == 1.0
    assert plan.cost == pytest.approx(free.cost, rel=1e-3)


def test_a_goal_of_one_solution():
    given = {"steps": 5, "dt": 0.1, "running": lambda m, q, v, u, goal: u}
    plan = lw.control.shoot(
        planar_arm(2), [0.0, 0.0], terminal=lambda m, q, v, goal: 9.0 * (q - goal), goal=[0.3, 0.2], **given
    )
    fixed = {"steps": 5, "dt": 0.1, "running": lambda m, q, v, u: u}
    same = lw.control.shoot(planar_arm(2), [0.0, 0.0], terminal=lambda m, q, v: 9.0 * (q - [0.3, 0.2]), **fixed)
    np.testing.assert_allclose(plan.q, same.q, atol=1e-9)


def test_a_block_is_pushed_over_the_floor_through_friction():
    """A plan by steps with contact: a simulation goes the same way, and no other controls near it cost less."""
    b = lw.ModelBuilder("pushed")
    b.add_body("slide", joint=lw.Prismatic((1, 0, 0)))
    b.add_body("block", "slide", lw.Prismatic((0, 0, 1)), shape=lw.shapes.box((0.1, 0.1, 0.1), mass=2.0))
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.3))
    start, goal, dt = ([0.0, 0.05], [0.1, 0.0]), np.array([0.5, 0.05]), 0.02
    plan = lw.control.shoot(
        model,
        *start,
        steps=20,
        dt=dt,
        method="moreau",
        running=lambda m, q, v, u: 0.05 * u,
        terminal=lambda m, q, v: np.concatenate([10.0 * (q - goal), v]),
        actuated=["slide_joint"],
    )
    assert plan.status == "done" and plan.v[1:, 0].min() > 0.0
    slid = lw.simulate(model, *start, duration=0.4, dt=dt, control=lw.Torque(plan.t, _forces(plan.u), "held"))
    np.testing.assert_allclose(slid.q, plan.q, atol=1e-12)

    def cost(u):
        q, v = start
        for each in u:
            q, v = model.contact_step(q, v, [each, 0.0], dt=dt)[:2]
        return 0.5 * (np.sum((0.05 * u) ** 2) + np.sum((10.0 * (q - goal)) ** 2) + v @ v)

    best = plan.u[:, 0]
    slopes = [(cost(best + e) - cost(best - e)) / 2e-4 for e in 1e-4 * np.eye(20)]
    assert cost(best) == pytest.approx(plan.cost, rel=1e-9) and np.abs(slopes).max() < 1e-6


def _forces(u):
    """Joint forces at the times of a plan, from pushes along the first joint."""
    return np.column_stack([[*u[:, 0], u[-1, 0]], np.zeros(len(u) + 1)])
