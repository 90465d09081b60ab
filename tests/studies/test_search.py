"""Search: costs with a known minimum are found, by every strategy."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError, UnknownNameError


def slider():
    b = lw.ModelBuilder("slider", gravity=(0, 0, 0))
    b.add_body("mass", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0)
    return b.build()


def push(t, q, v, p):
    """A constant force for one second: q(1) = q0 + (force + gust)/2."""
    return [p[0] + p[1]]


def miss(trajectory):
    return (trajectory.q[:, -1, 0] - 1.0) ** 2


SETTINGS = {"control": push, "duration": 1.0, "method": "rk4", "dt": 0.1}


@pytest.mark.parametrize(("strategy", "close"), [("cma", 1e-3), ("random", 0.1)])
def test_the_force_that_gets_there(strategy, close):
    """Mean cost over gusts of mean m: the best force is 2 - m, and the least cost the gusts' variance / 4."""
    gusts = np.random.default_rng(0).normal(0.3, 0.5, 20)
    found = lw.studies.search(
        slider(), {"force": (-5.0, 5.0)}, miss, {"gust": gusts}, 20, strategy=strategy, rounds=15, population=12,
        seed=1, threads=1, **SETTINGS,
    )  # fmt: skip
    assert abs(found.x[0] - (2.0 - gusts.mean())) < close
    assert abs(found.cost - gusts.var() / 4) < close
    assert found.evaluations == 15 * 12 * 20
    assert found.history == sorted(found.history, reverse=True)
    again = lw.studies.search(
        slider(), {"force": (-5.0, 5.0)}, miss, {"gust": gusts}, 20, strategy=strategy, rounds=3, population=12,
        seed=1, threads=1, **SETTINGS,
    )  # fmt: skip
    assert again.history == found.history[:3]


def test_candidates_that_fail_are_the_worst():
    def cost(trajectory):
        q = trajectory.q[:, -1, 0]
        return np.where(q > 1.0, np.nan, (q - 2.0) ** 2)

    found = lw.studies.search(
        slider(),
        {"force": (-5.0, 5.0)},
        cost,
        {"gust": [0.0]},
        1,
        strategy="random",
        rounds=3,
        population=50,
        **SETTINGS,
    )
    assert 0.8 < found.x[0] / 2 <= 1.0


def test_what_is_wrong_is_said():
    with pytest.raises(InputError, match="no room"):
        lw.studies.search(slider(), {"force": (1.0, 1.0)}, miss)
    with pytest.raises(UnknownNameError, match="strategy"):
        lw.studies.search(slider(), {"force": (0.0, 1.0), "gust": (0.0, 1.0)}, miss, strategy="cmaes", **SETTINGS)
    with pytest.raises(InputError, match="in the bounds"):
        lw.studies.search(slider(), {"force": (0.0, 1.0), "gust": (0.0, 1.0)}, miss, start=[2.0, 0.0], **SETTINGS)


def test_downhill_along_exact_gradients():
    """Least squares in masses: the normal equations have the answer."""
    from linkwise import samples

    model = samples.planar_arm().with_parameters(["link1.mass", "link2.mass", "link3.mass"])
    rng = np.random.default_rng(0)
    q, v, vdot = rng.uniform(-1, 1, (3, 200, 3))
    measured = model.inverse_dynamics(q, v, vdot) + 0.01 * rng.standard_normal((200, 3))

    def misfit(model, masses, q, v, vdot, measured):
        error = model.inverse_dynamics(q, v, vdot, p=masses) - measured
        return (error * error).sum()

    cost = lw.compile(misfit, model, {"masses": "p", "q": "q", "v": "v", "vdot": "v", "measured": "v"})
    found = lw.studies.descend(cost, rng.uniform(0.1, 5.0, (2, 3)), (q, v, vdot, measured), bounds=(1e-3, 1e2))
    # Links are uniform rods, yet their inertias are not parameters: τ = A m + b.
    base = model.inverse_dynamics(q, v, vdot, p=np.zeros(3))
    A = np.stack([model.inverse_dynamics(q, v, vdot, p=e) - base for e in np.eye(3)], axis=-1).reshape(-1, 3)
    exact = np.linalg.lstsq(A, (measured - base).reshape(-1), rcond=None)[0]
    assert np.allclose(found.x, exact, rtol=1e-5)
