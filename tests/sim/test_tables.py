"""Tables over time: what is between the instants, inside kernels and out of them, and what it costs in accuracy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from linkwise import samples
from linkwise.targets.llvm.device import HostedProgram
from linkwise.targets.llvm.program_kernel import ProgramKernel
from linkwise.trace.program import Buffer, Program, Seek
from tests.sim.mechanisms import double_pendulum, pendulum, slider

METHODS = ["dop853", "dopri5", "rk56", "cash_karp", "rodas4", "rk4", "variational", "generalized_alpha"]
FIXED = ("rk4", "variational", "euler", "generalized_alpha")
TIMES = np.array([0.0, 0.31, 0.7, 1.05])
FORCES = np.array([[1.0], [3.0], [-2.0], [4.0]])


def run(model, q0, method="dop853", **more):
    options = {"dt": 0.013} if method in FIXED else {"rtol": 1e-10}
    return lw.simulate(model, q0, duration=more.pop("duration", 2.0), method=method, **{**options, **more})


def impulse(table, t):
    """∫τ dt from 0, from the polynomials."""
    total = 0.0
    for begin, end, origin, _, *c in table.rows()[0]:
        a, b = max(begin, 0.0), min(end, t)
        if b > a:
            total += sum(ck * ((b - origin) ** (k + 1) - (a - origin) ** (k + 1)) / (k + 1) for k, ck in enumerate(c))
    return total


def pairs(first, second, quick):
    """All pairs; those that are not among the quick ones are slow, for each is a kernel of its own."""
    slow = pytest.mark.slow
    return [pytest.param(a, b, marks=() if (a, b) in quick else slow) for a in first for b in second]


QUICK = [("dop853", "held"), ("dopri5", "linear"), ("rodas4", "cubic"), ("rk4", "held"), ("rk4", "cubic")]


@pytest.mark.parametrize(("method", "kind"), pairs(METHODS, ["held", "linear", "cubic"], QUICK))
def test_momentum_is_the_impulse(method, kind):
    """m v = ∫τ dt, for jumps and kinks that lie on no grid."""
    table = lw.Table(TIMES, FORCES, kind)
    traj = run(slider(), [0.0], method, control=lw.Torque(TIMES, FORCES, kind))
    # Order two integrates straight lines exactly, and cubics to h²/24 or h²/12 times the range of their slope, 60 N/s.
    second = {"variational": 0.013**2 / 24.0 * 60.0, "generalized_alpha": 0.013**2 / 12.0 * 60.0}
    tol = second.get(method, 1e-9) if kind == "cubic" else 1e-9
    np.testing.assert_allclose(2.0 * traj.v[:, 0], [impulse(table, t) for t in traj.t], atol=tol)
    inside = ~np.isin(traj.t, TIMES)
    np.testing.assert_allclose(traj.tau[inside], table(traj.t[inside]), atol=1e-12)


def swing(t, y, force):
    return [y[1], -9.81 * np.cos(y[0]) + force(t)]


def reference(table, q0, duration):
    """SciPy's Dormand–Prince from instant to instant."""
    y, knots = np.array([q0, 0.0]), [t for t in table.times if 0.0 < t < duration]
    for a, b in zip([0.0, *knots], [*knots, duration], strict=True):
        row = table.rows()[0][np.searchsorted(table.times, 0.5 * (a + b))]
        force = np.polynomial.Polynomial(row[4:])
        options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}
        y = solve_ivp(lambda t, y, f=force, o=row[2]: swing(t, y, lambda t: f(t - o)), (a, b), y, **options).y[:, -1]
    return y


@pytest.mark.parametrize(
    ("method", "kind"), pairs(METHODS[:5], ["held", "linear"], [("dop853", "held"), ("dopri5", "linear")])
)
def test_adaptive_methods_keep_their_tolerance(method, kind):
    rng = np.random.default_rng(1)
    table = lw.Table(np.cumsum(rng.uniform(0.01, 0.1, 20)), rng.normal(size=(20, 1)) * 5.0, kind)
    expected = reference(table, 0.3, 1.0)
    for rtol in (1e-6, 1e-9):
        traj = lw.simulate(
            pendulum(), [0.3], duration=1.0, method=method, rtol=rtol, control=lw.Torque(pendulum(), table)
        )
        assert np.abs([traj.q[-1, 0] - expected[0], traj.v[-1, 0] - expected[1]]).max() < 100.0 * rtol
        assert traj.rejected < 10  # nothing is found out by failing


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("variational", 2), ("generalized_alpha", 2), ("rk4", 4)])
def test_fixed_steps_keep_their_order_at_jumps(method, order):
    table = lw.Table(np.array([0.0, 0.1234, 0.2711, 0.4567]), [[2.0], [-5.0], [8.0], [0.0]], "held")
    expected = reference(table, 0.3, 0.6)
    errors = []
    sizes = np.array([30, 60, 120])
    for n in sizes:
        traj = lw.simulate(
            pendulum(), [0.3], duration=0.6, method=method, dt=0.6 / n, control=lw.Torque(pendulum(), table)
        )
        errors.append(np.hypot(traj.q[-1, 0] - expected[0], traj.v[-1, 0] - expected[1]))
    assert -np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(order, abs=0.4)


@pytest.mark.parametrize(
    "method", ["dop853", pytest.param("rk4", marks=pytest.mark.slow), pytest.param("rodas4", marks=pytest.mark.slow)]
)
def test_each_member_of_a_batch_has_its_own_table(method):
    rng = np.random.default_rng(2)
    times = np.sort(rng.uniform(0.0, 1.0, (2, 5, 7)), axis=-1)
    values = rng.normal(size=(2, 5, 7, 2))
    model = double_pendulum()
    options = {"duration": 1.0, "method": method, "output_times": np.linspace(0.0, 1.0, 5), "dt": 0.01, "rtol": 1e-8}
    batch = lw.simulate(model, [0.1, 0.2], control=lw.Torque(times, values), **options)
    assert batch.q.shape == (2, 5, 5, 2)
    for index in np.ndindex(2, 5):
        single = lw.simulate(model, [0.1, 0.2], control=lw.Torque(times[index], values[index]), **options)
        np.testing.assert_allclose(batch.q[index], single.q, atol=1e-12)
        np.testing.assert_allclose(batch.tau[index], single.tau, atol=1e-12)
    with pytest.raises(lw.InputError, match="batches"):
        lw.simulate(model, np.zeros((3, 2)), control=lw.Torque(times, values), **options)


def test_single_precision_and_times_on_the_grid():
    """Instants that are multiples of the step to rounding only add no steps."""
    times = np.arange(11) * 0.1
    control = lw.Torque(times, np.sin(times)[:, None], "held")
    wide = lw.simulate(slider(), [0.0], duration=1.0, method="rk4", dt=0.05, control=control)
    narrow = lw.simulate(slider(), np.zeros(1, np.float32), duration=1.0, method="rk4", dt=0.05, control=control)
    assert narrow.q.dtype == np.float32
    np.testing.assert_allclose(narrow.v, wide.v, atol=1e-6)
    assert 2.0 * wide.v[-1, 0] == pytest.approx(0.1 * np.sin(times[:-1]).sum(), abs=1e-14)


def test_targets_may_be_tables():
    model = double_pendulum()
    times = np.linspace(0.0, 1.0, 6)
    path = lw.Table(times, np.column_stack([times, times**2]), "cubic")
    traj = lw.simulate(model, [0.0, 0.0], duration=1.0, control=lw.PD(model, path, kp=4e3, kd=4e2, gravity=True))
    other = lw.simulate(
        model, [0.0, 0.0], duration=1.0, output_times=traj.t,
        control=lw.PD(model, lambda t, p: [t, t * t], kp=4e3, kd=4e2, gravity=True),
    )  # fmt: skip
    np.testing.assert_allclose(traj.q, other.q, atol=1e-7)  # a cubic through a parabola is the parabola


def test_tables_of_one_kind_are_compiled_once():
    from linkwise.memoized import Memory

    model = slider()
    for scale in (1.0, 2.0):
        traj = run(model, [0.0], control=lw.Torque(TIMES, scale * FORCES), duration=0.3)
        assert traj.tau[0, 0] == scale
    assert len(Memory.of(model).table("simulation plans")) == 1


def test_outside_of_a_table():
    hold, zero = (lw.Table([1.0, 2.0], [[3.0], [4.0]], outside=way) for way in ("hold", "zero"))
    np.testing.assert_array_equal(hold([0.0, 1.5, 2.0, 9.0])[:, 0], [3.0, 3.5, 4.0, 4.0])
    np.testing.assert_array_equal(zero([0.0, 1.5, 2.0, 9.0])[:, 0], [0.0, 3.5, 0.0, 0.0])
    jump = lw.Table([0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 5.0])
    np.testing.assert_array_equal(jump([0.5, 1.0, 1.5])[:, 0], [0.5, 5.0, 5.0])
    assert 2.0 * run(slider(), [0.0], control=lw.Torque(slider(), jump)).v[-1, 0] == pytest.approx(5.5)


def test_noise_repeats():
    first, second = (lw.Table.noise(1.0, 50.0, [0.1, 2.0], seed=7, batch=3) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)
    assert first.values.shape == (3, 51, 2)
    assert np.std(first.values, axis=(0, 1)) == pytest.approx([0.1, 2.0], rel=0.2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lw.Table([0.0, 1.0], [1.0]), "do not fit together"),
        (lambda: lw.Table([0.0, 1.0, 0.5], np.zeros((3, 1))), "1 s, then 0.5 s"),
        (lambda: lw.Table([0.0, 0.0], np.zeros((2, 1)), "held"), "do not increase"),
        (lambda: lw.Table([0.0, np.nan], np.zeros((2, 1))), "not finite"),
        (lambda: lw.Table([0.0, 1.0], np.zeros((2, 1)), "quadratic"), "kind of table"),
        (lambda: lw.Table("abc", [1.0]), "not made of numbers"),
        (lambda: lw.Torque(double_pendulum(), lw.Table(TIMES, FORCES)), "wrong length"),
        (lambda: lw.simulate(double_pendulum(), [0, 0], control=lw.Torque(TIMES, FORCES)), "wrong length"),
    ],
)
def test_mistakes(make, words):
    with pytest.raises(lw.InputError, match=words):
        make()


def test_csv(tmp_path):
    path = tmp_path / "forces.csv"
    path.write_text("t,a,b\n0,1,2\n1,3,4\n")
    table = lw.Table.from_csv(path, ["b", "a"])
    np.testing.assert_array_equal(table(0.5), [3.0, 2.0])
    path.write_text("0,1,2\n1,3,4\n")
    assert lw.Table.from_csv(path).size == 2
    for text, words in (("t,a\n0,x\n", r":2: a is not"), ("t,a\n0,1,2\n", "another length"), ("t\n", "no table")):
        path.write_text(text)
        with pytest.raises(lw.InputError, match=words):
            lw.Table.from_csv(path)
    with pytest.raises(lw.InputError, match=r"not a CSV|holds no table"):
        path.write_bytes(b"\xff\xfe\x00")
        lw.Table.from_csv(path)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("members", [1, 11])
def test_rows_are_found_alike_by_all_kernels(dtype, scalar, members):
    rng = np.random.default_rng(3)
    buffers = (Buffer("t", 1, load=True), Buffer("p", 9, load=True, store=True))
    routine = Program("look", buffers, (Seek("c", "t", "p", 2),), curves=(("c", 6),))
    curve = np.concatenate(
        [lw.Table(np.sort(rng.uniform(0, 1, 9)), rng.normal(size=9)).rows() for _ in range(members)]
    ).astype(dtype)
    t = rng.uniform(-0.2, 1.2, (11, 1)).astype(dtype)
    t[3] = np.nan
    found = []
    for kernel in (HostedProgram(routine, dtype), ProgramKernel.build(routine, dtype, single=scalar)):
        p = np.zeros((11, 9), dtype)
        kernel.run({"t": t, "p": p}, {"c": curve}, {}, 11)
        found.append(p.copy())
        for k in range(11):
            if k != 3:
                assert p[k, 2] <= t[k, 0] < p[k, 3]
        kernel.run({"t": t, "p": p}, {"c": curve}, {}, 11)
        np.testing.assert_array_equal(p, found[-1])
    np.testing.assert_array_equal(*found)


# Forces from outside.
def test_forces_on_bodies_in_all_forms():
    model = samples.planar_arm(3)
    n, last = len(model.bodies), model.bodies[-1].name
    wrench = np.array([0.1, 0.2, 0.3, 1.0, -2.0, 0.5])
    f_ext = np.zeros((n, 6))
    f_ext[-1] = wrench
    options = {"duration": 0.5, "method": "rk4", "dt": 0.01}
    q0 = np.full(3, 0.2)
    expected = lw.simulate(model, q0, f_ext=f_ext, **options)
    a = expected.vdot[3] - model.forward_dynamics(expected.q[3], expected.v[3], np.zeros(3), f_ext)
    assert np.abs(a).max() < 1e-10
    others = [
        {"f_ext": {last: wrench}},
        {"f_ext": lambda t, q, v, p: f_ext},
        {"f_ext": lw.Table([0.0], f_ext.reshape(1, -1), "held")},
        {"control": lw.BodyForce(model, last, wrench)},
        {"control": lw.BodyForce(model, last, lw.Table([0.0, 9.0], [wrench, wrench]))},
    ]
    for given in others:
        np.testing.assert_allclose(lw.simulate(model, q0, **given, **options).q, expected.q, atol=1e-9)
    batch = lw.simulate(model, q0, f_ext=np.stack([f_ext, 0.0 * f_ext]), **options)
    np.testing.assert_allclose(batch.q[0], expected.q, atol=1e-12)
    assert np.abs(batch.q[1] - expected.q).max() > 1e-3
    with pytest.raises(lw.InputError, match="f_ext has the wrong shape"):
        lw.simulate(model, q0, f_ext=np.zeros((2, 6)), **options)


def test_a_force_in_the_world_does_the_work_of_a_potential():
    """A constant force in the world on a point of a body: energy + potential of the force is kept."""
    model = samples.planar_arm(2)
    last, force, point = model.bodies[-1].name, np.array([3.0, 1.0, 0.5]), np.array([0.2, 0.1, 0.0])
    wind = lw.BodyForce(model, last, [0, 0, 0, *force], frame="world", point=point)
    traj = lw.simulate(model, [0.3, -0.2], duration=2.0, control=wind, rtol=1e-11)
    place = model.pose(traj.q, last) @ np.append(point, 1.0)
    kept = traj.energy - place[:, :3] @ force
    assert np.ptp(kept) < 1e-8
    assert np.ptp(traj.energy) > 1e-2


def test_disturbances_know_no_effort_limits():
    b = lw.ModelBuilder("weak")
    b.add_body("a", joint=lw.Prismatic((1, 0, 0)), mass=1.0, limits=lw.JointLimits(effort=1.0))
    model = b.build()
    pushed = lw.simulate(model, [0.0], duration=1.0, control=lw.Torque(model, [5.0]))
    shoved = lw.simulate(model, [0.0], duration=1.0, control=lw.Disturbance(model, [5.0]))
    assert (pushed.v[-1, 0], shoved.v[-1, 0]) == (pytest.approx(1.0), pytest.approx(5.0))
    assert not shoved.tau.any()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(samples.flexible_arm, marks=pytest.mark.slow),
        samples.four_bar,
        pytest.param(lambda: samples.planar_arm(80), marks=pytest.mark.slow),
    ],
)
def test_closed_flexible_and_large_models(make):
    for model in (make(),):
        values = np.zeros((3, model.nv))
        values[:, 0] = [1.0, 5.0, 2.0]
        times = [0.0, 0.013, 0.05]
        q0 = model.assemble(model.neutral()) if model.closures else model.neutral()
        options = {"duration": 0.05, "method": "rk4", "dt": 0.001}
        table = lw.simulate(model, q0, control=lw.Torque(times, values), **options)

        def piecewise(t, q, v, p, model=model):
            first = lw.math.where(t < 0.013, 1.0 + 4.0 * t / 0.013, 5.0 - 3.0 * (t - 0.013) / 0.037)
            return [first, *([0.0] * (model.nv - 1))]

        traced = lw.simulate(model, q0, control=piecewise, **options)
        np.testing.assert_allclose(table.v[-1], traced.v[-1], atol=1e-6 * max(1.0, np.abs(traced.v[-1]).max()))


def test_the_rows_of_a_table_are_made_once_and_do_not_travel():
    table = lw.Table(TIMES, FORCES, "cubic")
    assert table.rows() is table.rows()
    assert not table.rows().flags.writeable
    again = pickle.loads(pickle.dumps(table))
    assert "_rows" not in vars(again)
    np.testing.assert_array_equal(again.rows(), table.rows())
