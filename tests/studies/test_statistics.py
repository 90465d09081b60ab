"""Shares, intervals and Sobol indices against closed forms and against SciPy."""

import numpy as np
import pytest
import scipy.stats as st

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError
from linkwise.studies.outcomes import rate


@pytest.mark.parametrize(("count", "members"), [(0, 10), (3, 10), (10, 10), (17, 4000)])
@pytest.mark.parametrize(("ours", "theirs"), [("exact", "exact"), ("wilson", "wilson")])
def test_intervals_are_scipys(count, members, ours, theirs):
    found = rate(count, members, 0.9, ours)
    expected = st.binomtest(count, members).proportion_ci(0.9, theirs)
    assert np.allclose([found.low, found.high], [expected.low, expected.high], rtol=1e-9, atol=1e-13)


def test_the_interval_of_a_rare_event():
    """Of 1 in n the lower bound solves (1 - p)ⁿ = 1 - α/2, of 0 in n the upper one (1 - p)ⁿ = α/2."""
    n = 10**6
    assert np.isclose(rate(1, n, 0.9).low, -np.expm1(np.log(0.95) / n), rtol=1e-12)
    assert np.isclose(rate(0, n, 0.9).high, -np.expm1(np.log(0.05) / n), rtol=1e-12)


def slider():
    """A mass with a spring and a damper, pushed by forces that are constant on pieces of time."""
    b = lw.ModelBuilder("slider", gravity=(0, 0, 0))
    b.add_body("mass", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0)
    return b.build()


PIECES, DURATION, STIFFNESS, DAMPING = 8, 2.0, 4.0, 0.8


def push(t, q, v, p):
    """The piece that t lies in; the last one from its start on."""
    force = p[0]
    for k in range(1, PIECES):
        force = lw.math.where(t >= k * DURATION / PIECES, p[k], force)
    return [force - STIFFNESS * q[0] - DAMPING * v[0]]


def final_deviation():
    """Standard deviation of q(T) for q₀ ~ N(0, 0.2²) and pieces ~ N(0, 1): the system is linear, so it is exact."""
    from scipy.linalg import expm

    A = np.array([[0.0, 1.0], [-STIFFNESS, -DAMPING]])
    augmented = np.zeros((3, 3))
    augmented[:2, :2], augmented[1, 2] = A, 1.0
    step = expm(augmented * DURATION / PIECES)
    phi, gamma = step[:2, :2], step[:2, 2]
    P = np.diag([0.2**2, 0.0])
    for _ in range(PIECES):
        P = phi @ P @ phi.T + np.outer(gamma, gamma)
    return float(np.sqrt(P[0, 0]))


@pytest.mark.parametrize("design", ["random", "sobol"])
def test_the_failure_rate_of_a_linear_system_with_gaussian_disturbances(design):
    limit = 0.5
    deviation = final_deviation()
    exact = 2.0 * st.norm.sf(limit / deviation)
    results = lw.ensemble(
        slider(), {"q0": st.norm(0.0, 0.2), "force": [st.norm()] * PIECES}, 20_000 if design == "random" else 2**14,
        design=design, seed=4, duration=DURATION, method="rk4", dt=DURATION / PIECES / 8, control=push,
        failure=lambda trajectory: np.abs(trajectory.q[:, -1, 0]) > limit, keep="final",
        output_times=[DURATION],
    )  # fmt: skip
    found = results.failure_rate(0.99)
    assert found.low < exact < found.high
    assert found.high - found.low < 0.02
    assert abs(results.moments("q_final").std[0] / deviation - 1.0) < 0.02


def test_the_interval_covers_as_often_as_it_says():
    """Two thousand ensembles: the exact interval covers at least 95 % of the time."""
    exact = 0.07
    counts, often = np.unique(np.random.default_rng(0).binomial(500, exact, 2000), return_counts=True)
    covered = {}
    for method in ("exact", "wilson"):
        found = [rate(int(count), 500, 0.95, method) for count in counts]
        covered[method] = np.average([r.low <= exact <= r.high for r in found], weights=often)
    assert covered["exact"] > 0.945
    assert abs(covered["wilson"] - 0.95) < 0.02


def ishigami(batch):
    x = batch.inputs["x"]
    return {"y": np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])}


def test_sobol_indices_of_ishigami():
    """Its indices are known (Ishigami and Homma 1990), a = 7, b = 0.1."""
    a, b, pi = 7.0, 0.1, np.pi
    V1, V2, V13 = 0.5 * (1 + b * pi**4 / 5) ** 2, a**2 / 8, b**2 * pi**8 * (1 / 18 - 1 / 50)
    V = V1 + V2 + V13
    results = lw.ensemble(
        samples.planar_arm(), {"x": [st.uniform(-pi, 2 * pi)] * 3}, 2**12 * 5, design="saltelli", seed=1, run=ishigami
    )
    found = results.sobol_indices("y")
    assert found.names == ("x[0]", "x[1]", "x[2]")
    assert np.allclose(found.first, [V1 / V, V2 / V, 0.0], atol=0.02)
    assert np.allclose(found.total, [(V1 + V13) / V, V2 / V, V13 / V], atol=0.02)
    assert (found.first_interval[:, 0] < found.first).all()
    assert (found.first < found.first_interval[:, 1]).all()
    y = results["y"].reshape(-1, 5)
    theirs = st.sobol_indices(func={"f_A": y[:, :1].T, "f_B": y[:, 1:2].T, "f_AB": y[:, 2:].T[:, None]}, n=2**12)
    assert np.allclose(found.first, theirs.first_order, atol=1e-3)
    assert np.allclose(found.total, theirs.total_order, atol=1e-3)
    with pytest.raises(InputError, match="Saltelli"):
        lw.ensemble(samples.planar_arm(), {"x": [st.norm()] * 3}, 20, run=ishigami).sobol_indices("y")
