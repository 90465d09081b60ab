"""Ensembles: what is drawn, what is kept, and that a member is the same wherever it runs."""

import inspect
import pickle

import numpy as np
import pytest
import scipy.stats as st

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError, UnknownNameError
from linkwise.studies.designs import Seeds, make_design
from linkwise.studies.fingerprint import fingerprint
from linkwise.studies.outcomes import STATUS
from linkwise.studies.running import run_study
from linkwise.studies.study import Study
from tests.studies import studies

# SciPy has had two kinds of distributions since 1.15; before, the older one stands in for the newer.
NEWER = hasattr(st, "Uniform")
UNIFORM = st.Uniform(a=0.5, b=1.5) if NEWER else st.uniform(0.5, 1.0)
NORMAL = st.Normal(mu=1.0, sigma=2.0) if NEWER else st.norm(1.0, 2.0)


@pytest.fixture(scope="module")
def arm():
    return samples.planar_arm()


def test_signatures_agree():
    """`ensemble` is `run_study` of a `Study`: an argument of one is that of the other, with the same default."""
    whole = inspect.signature(lw.ensemble).parameters
    for part in (Study, run_study):
        for name, parameter in inspect.signature(part).parameters.items():
            assert name == "study" or parameter == whole[name], name


# Members are the same wherever they stand.
@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("rk4", {"dt": 1e-3}),
        ("generalized_alpha", {"dt": 1e-3}),
        ("euler", {"dt": 1e-3}),
        ("dop853", {}),
        ("rodas4", {"rtol": 1e-5}),
        ("dopri5", {}),
    ],
)
def test_a_member_alone_is_the_same_to_the_last_bit(method, more):
    events = lw.Event(lambda t, q, v, p: q[0] - 0.1, name="passes")
    arguments = studies.panda_study(37, 0.1, keep=["final", "events", "q", "tau", "energy"], events=events)
    results = lw.ensemble(**(arguments | {"method": method, "output_times": [0.03, 0.0777, 0.1], **more}), batch=16)
    assert results.counts == {"done": 37}
    assert all(results.check(member) for member in (0, 15, 16, 36))
    again = results.replay(36)
    assert again.q.tobytes() == results["q"][36].tobytes()
    assert again.energy.tobytes() == results["energy"][36].tobytes()


def test_results_do_not_depend_on_blocks_threads_or_neighbours():
    arguments = studies.panda_study(50)
    whole = lw.ensemble(**arguments, batch=50, threads=2)
    for batch in (1, 7, 32):
        other = lw.ensemble(**arguments, batch=batch, threads=1)
        for name in (*whole.inputs, *whole.outcomes):
            assert whole[name].tobytes() == other[name].tobytes(), (name, batch)


def test_closed_members_do_not_depend_on_neighbours():
    """Closing what is open by rounding takes more steps for some than for others."""
    model = samples.four_bar()
    rng = np.random.default_rng(0)
    q0 = np.array([model.assemble(np.array([a, -a, a])) for a in rng.uniform(-0.5, 0.5, 11)])
    q0[::2] += 1e-8 * rng.standard_normal(q0[::2].shape)
    q0[1::2] += 1e-15 * np.array([1.0, 2.0, -1.0])  # closed, to rounding: alone, they stay as they are
    results = lw.ensemble(model, {"q0": q0}, duration=0.05, method="rk4", dt=1e-3, batch=11)
    assert all(results.check(member) for member in range(11))


# What is drawn.
@pytest.mark.parametrize("design", ["random", "latin", "sobol", "saltelli"])
def test_any_range_of_a_design_can_be_drawn_alone(design):
    made = make_design(design, 5000, 3, Seeds(5))
    again = make_design(design, 5000, 3, Seeds(5))
    whole = made.points(0, 5000)
    assert whole.shape == (5000, 3)
    assert ((whole > 0) & (whole < 1)).all()
    for start, stop in ((4711, 4712), (1000, 3000), (0, 1), (4999, 5000), (1024, 2048)):
        assert np.array_equal(again.points(start, stop), whole[start:stop])
    assert not np.array_equal(make_design(design, 5000, 3, Seeds(6)).points(0, 5), whole[:5])


def test_designs_are_what_they_say():
    latin = make_design("latin", 100, 2, Seeds(0)).points(0, 100)
    for column in latin.T:  # one member in each slice
        assert sorted((column * 100).astype(int)) == list(range(100))
    n = 256
    errors = {}
    for design in ("random", "sobol"):
        x = make_design(design, n, 2, Seeds(0)).points(0, n)
        errors[design] = abs((x[:, 0] * x[:, 1]).mean() - 0.25)
    assert errors["sobol"] < 2e-3 < errors["random"]
    A, B, first, second = make_design("saltelli", 40, 2, Seeds(0)).points(0, 4)
    assert np.array_equal(first, [B[0], A[1]])
    assert np.array_equal(second, [A[0], B[1]])


def test_inputs_of_every_kind(arm):
    model = arm.with_parameters(["link3.mass"])
    rows = np.arange(3000.0).reshape(1000, 3)
    inputs = {
        "q0": st.multivariate_normal([0.0, 1.0, 2.0], 0.01 * np.eye(3)),
        "v0": rows,
        "link3.mass": UNIFORM,
        "gust": [0.0, st.norm(1.0, 0.1)],
        "gains": st.uniform([0.0, 10.0, 20.0], 1.0),
        "own": lambda rng: rng.uniform(5.0, 6.0, 2),
        "one": 7.0,
    }
    study = Study(model, inputs, 1000, seed=2)
    batch = study.batch(0, 1000)
    assert batch.p.shape == (1000, 1 + 2 + 3 + 2 + 1)
    assert study.inputs.places()["gains"] == slice(3, 6)
    assert np.array_equal(batch.v0, rows)
    assert st.kstest(batch.p[:, 0], st.uniform(0.5, 1.0).cdf).pvalue > 1e-3
    assert st.kstest(batch.p[:, 2], st.norm(1.0, 0.1).cdf).pvalue > 1e-3
    assert st.kstest(batch.q0[:, 1], st.norm(1.0, 0.1).cdf).pvalue > 1e-3
    assert (batch.p[:, 1] == 0.0).all()
    assert (np.floor(batch.p[:, 3:6]) == [0, 10, 20]).all()
    assert (np.floor(batch.p[:, 6:8]) == 5).all()
    assert (batch.p[:, 8] == 7.0).all()
    alone = study.batch(711, 712)
    assert np.array_equal(alone.p[0], batch.p[711])
    assert np.array_equal(alone.q0[0], batch.q0[711])


def test_a_grid_of_values(arm):
    inputs = lw.studies.grid({"kp": [10.0, 20.0], "q0": [[0.1, 0, 0], [0.2, 0, 0], [0.3, 0, 0]]})
    control = lambda t, q, v, p: [-p[0] * a for a in q]  # noqa: E731
    results = lw.ensemble(arm, inputs, control=control, duration=0.1)
    assert results.members == 6
    assert results["kp"].tolist() == [10, 10, 10, 20, 20, 20]
    one = lw.simulate(arm, [0.2, 0, 0], duration=0.1, control=control, p=[20.0], output_times=[0.1])
    assert np.array_equal(results["q_final"][4], one.q[0])


# What is kept.
def test_what_is_kept(arm):
    def fastest(trajectory):
        return np.abs(trajectory.v).max(axis=(1, 2))

    hit = lw.Event(lambda t, q, v, p: q[0] - 0.9, name="hit", terminal=True)
    results = lw.ensemble(
        arm, {"q0": [st.uniform(0.0, 1.0), 0.0, 0.0]}, 40, seed=0, duration=1.0, events=hit, failure="hit",
        keep=["final", "events", "steps", {"fastest": fastest}], reduce={"mean q": "q"}, batch=16,
    )  # fmt: skip
    plain = lw.simulate(
        arm, results["q0"], duration=1.0, events=hit, output_times=np.linspace(0, 1, 101), progress=False
    )
    ended = plain.status == "event"
    assert 0 < ended.sum() < 40
    assert np.array_equal(results["failure"], ended)
    assert np.array_equal(results["hit.count"], ended)
    assert results.counts == {"done": int((~ended).sum()), "event": int(ended.sum())}
    assert np.allclose(results["q_final"][ended, 0], 0.9, atol=1e-9)
    assert np.array_equal(results["t_final"][ended], results["hit.first"][ended])
    assert np.array_equal(results["q_final"][~ended], plain.q[~ended, -1])
    assert np.array_equal(results["steps"], plain.steps)
    assert results.failure_rate().hits == ended.sum()
    reduced = results.moments("mean q")
    assert np.allclose(reduced.mean[0], results["q0"].mean(axis=0), rtol=1e-13)
    kept = results.moments("t_final")
    assert np.isclose(kept.std, results["t_final"].std(ddof=1), rtol=1e-12)
    assert kept.most == results["t_final"].max()
    lowest = results.worst("t_final", 3, smallest=True)
    assert np.array_equal(results["t_final"][lowest], np.sort(results["t_final"])[:3])
    assert results.quantile("t_final", 0.5) == np.median(results["t_final"])
    assert "failure rate" in results.summary()


def test_a_bad_member_harms_no_other(arm):
    q0 = np.tile([0.3, 0.0, 0.0], (20, 1))
    q0[7, 1] = np.nan
    results = lw.ensemble(arm, {"q0": q0}, duration=0.1, method="rk4", dt=1e-2, batch=10)
    assert results.counts == {"done": 19, "failed": 1}
    (failure,) = results.failures
    assert (failure.member, failure.status) == (7, "failed")
    assert "member 7 diverged" in failure.reason
    assert np.isnan(results["q_final"][7]).all()
    good = lw.ensemble(arm, {"q0": [0.3, 0.0, 0.0]}, 1, duration=0.1, method="rk4", dt=1e-2)["q_final"][0]
    assert (np.delete(results["q_final"], 7, axis=0) == good).all()
    assert results.failure_rate().hits == 1
    assert results.failure_rate(without_result="left out").hits == 0


def test_an_exception_is_found_and_recorded(arm):
    def run(batch):
        if (batch.inputs["x"] == 5).any():
            raise ZeroDivisionError("five")
        return {"y": batch.inputs["x"][:, 0] ** 2, "mine": np.array([batch.rng(k).random() for k in range(len(batch))])}

    results = lw.ensemble(arm, {"x": np.arange(12.0)}, run=run, batch=12, seed=3)
    assert results.counts == {"done": 11, "error": 1}
    assert results.failures[0].member == 5
    assert "ZeroDivisionError: five" in results.failures[0].reason
    assert results["y"][6] == 36
    other = lw.ensemble(arm, {"x": np.arange(12.0)}, run=run, batch=5, seed=3)
    assert np.array_equal(results["mine"], other["mine"], equal_nan=True)  # a member's random numbers are its own


def test_what_is_wrong_for_all_is_raised(arm):
    with pytest.raises(InputError, match="no such method"):
        lw.ensemble(arm, {"q0": st.norm()}, 50, method="eular")
    with pytest.raises(InputError, match="row for each member"):
        lw.ensemble(arm, {"q0": st.norm()}, 50, duration=0.1, keep={"q": lambda trajectory: trajectory.q.mean()})
    with pytest.raises(UnknownNameError, match="thing to keep"):
        lw.ensemble(arm, {}, 5, keep="energi")
    with pytest.raises(UnknownNameError, match="event"):
        lw.ensemble(arm, {}, 5, failure="crash")
    with pytest.raises(InputError, match="wrong shape"):
        lw.ensemble(arm, {"q0": np.zeros((4, 3))}, 5)
    with pytest.raises(InputError, match="multiple of 5"):
        lw.ensemble(arm, {"q0": st.norm()}, 12, design="saltelli")
    with pytest.raises(InputError, match="into inputs="):
        lw.ensemble(arm, {}, 5, p=[1.0])
    with pytest.raises(InputError, match="inputs are given by name"):
        lw.ensemble(arm, 100, duration=0.1)
    with pytest.raises(InputError, match="how many members"):
        lw.ensemble(arm, {})
    with pytest.raises(InputError, match="no such member"):
        lw.ensemble(arm, {}, 5, duration=0.1).replay(5)


def euler(model, q, v, p):
    v = v + 1e-3 * model.forward_dynamics(q, v, np.array([p[0], 0.0, 0.0]))
    return {"q": q + 1e-3 * v, "v": v}


@pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_rollouts_of_a_step(arm, device):
    if device == "gpu":
        from linkwise import targets

        if not targets.target("cuda").available():
            pytest.skip("there is no CUDA device")
    push = st.uniform(-1.0, 2.0)
    inputs = {"q0": st.norm(0.5, 0.1), "push": push}
    run = lw.studies.Rollouts(euler, 100, device=device)
    results = lw.ensemble(arm, inputs, 100, seed=1, run=run, batch=40)
    plain = lw.simulate(
        arm, results["q0"], p=results["push"][:, None], control=lambda t, q, v, p: [p[0], 0.0, 0.0], duration=0.1,
        dt=1e-3, method="euler", limits="ignore", progress=False,
    )  # fmt: skip
    assert np.allclose(results["q_final"], plain.q[:, -1], rtol=0, atol=1e-12)
    if device == "cpu":
        assert results.check(57)
    else:
        assert "NVIDIA" in results.store.record(0)["machine"]


# What it is known by.
def test_fingerprints(arm):
    other = samples.planar_arm()
    assert fingerprint(arm) == fingerprint(pickle.loads(pickle.dumps(other)))
    assert fingerprint(arm) != fingerprint(arm.with_gravity((0, 0, -9.8)))
    gain = 3.0

    def control(t, q, v, p):
        return [-gain * a for a in q]

    before = fingerprint(control)
    gain = 4.0
    assert fingerprint(control) != before
    hashes = {
        Study(arm, inputs, 5, seed=seed, duration=duration).hash
        for inputs in ({"q0": st.norm()}, {"q0": st.norm(0, 2)}, {"q0": st.multivariate_normal(np.zeros(3))},
                       {"q0": st.multivariate_normal(np.ones(3))}, {"q0": NORMAL})
        for seed in (0, 1)
        for duration in (1.0, 2.0)
    }  # fmt: skip
    assert len(hashes) == 20


def test_the_package_does_not_hide_the_function():
    import inspect

    import linkwise.studies

    assert inspect.isfunction(lw.ensemble)
    assert lw.studies is linkwise.studies
    assert "client" in inspect.signature(lw.ensemble).parameters


@pytest.mark.parametrize(
    "masses",
    [-1.0, np.linspace(-0.1, 1.0, 50), st.norm(1.0, 0.5), [st.uniform(-0.1, 1.0)]],
    ids=lambda m: type(m).__name__,
)
def test_masses_that_can_be_negative_are_refused(masses):
    model = samples.planar_arm().with_parameters(["link3.mass", "link3.com"])
    with pytest.raises(InputError, match=r"link3\.mass.*cannot be negative"):
        Study(model, {"link3.mass": masses}, 50, duration=0.01)
    for fine in (st.norm(1.0, 0.05), st.uniform(0.0, 1.0), 0.0):
        Study(model, {"link3.mass": fine}, 50, duration=0.01)
    Study(model, {"link3.com": -1.0}, 50, duration=0.01)


def test_members_whose_drawn_mass_is_negative_fail_alone():
    """Of a function of random numbers it is known when a member is drawn; the others run."""
    model = samples.planar_arm().with_parameters(["link3.mass"])
    drawn = {"link3.mass": lambda rng: rng.uniform(-0.2, 1.0)}
    found = lw.ensemble(model, drawn, 40, seed=3, duration=0.01, method="rk4", dt=5e-3)
    negative = np.asarray(found["link3.mass"]).reshape(40) < 0.0
    assert 0 < negative.sum() < 20
    assert np.array_equal(found["status"] == STATUS.index("error"), negative)
