"""Later calls of simulate begin where their options were checked: the same results, and the same refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError


def arm() -> lw.Model:
    return samples.planar_arm(3).with_parameters(["link3.mass"])


CALLS: dict[str, dict[str, Any]] = {
    "one": {"q0": [0.1, 0.2, 0.3]},
    "batch": {"q0": np.linspace(0.0, 0.5, 12).reshape(4, 3)},
    "single": {"q0": np.full((4, 3), 0.2, np.float32), "v0": np.zeros(3, np.float32), "p": np.ones(1, np.float32)},
    "parameter": {"q0": [0.1, 0.2, 0.3], "p": [0.7]},
    "more parameters": {"q0": [0.1, 0.2, 0.3], "p": [0.7, 3.0]},
    "times": {"q0": [0.1, 0.2, 0.3], "output_times": [0.02, 0.05]},
    "fast": {"q0": [0.1, 0.2, 0.3], "v0": [3.0, 0.0, -3.0]},
}


@pytest.mark.parametrize("method", ["rk4", "dop853", "variational"])
def test_any_order_of_calls_gives_what_each_gives_first(method: str) -> None:
    options: dict[str, Any] = {"duration": 0.1, "dt": 0.01, "method": method}
    first = {name: lw.simulate(arm(), **call, **options) for name, call in CALLS.items()}
    model = arm()
    for name in (*CALLS, *reversed(CALLS)):
        found = lw.simulate(model, **CALLS[name], **options)
        assert np.array_equal(found.t, first[name].t) and np.array_equal(found.q, first[name].q), name
        assert found.q.dtype == first[name].q.dtype and np.array_equal(found.energy, first[name].energy), name


def test_options_are_told_apart() -> None:
    model = arm()
    calls = [{"dt": 0.01}, {"dt": 0.02}, {"save_every": 5, "dt": 0.01}, {"t0": 3.0, "dt": 0.01}, {"method": "rk4"}]
    for _ in range(2):
        steps = [lw.simulate(model, [0.1, 0.2, 0.3], duration=0.1, **{"method": "euler", **call}) for call in calls]
        assert [len(each.t) for each in steps] == [11, 6, 3, 11, 101]
        assert steps[3].t[0] == 3.0 and steps[4].method == "rk4"


@pytest.mark.parametrize(
    "wrong", [{"duration": True}, {"save_every": True}, {"dt": True}, {"rtol": True}, {"threads": True}]
)
def test_what_equals_a_number_and_is_none_is_refused_after_it(wrong: dict[str, Any]) -> None:
    model = arm()
    right: dict[str, Any] = {"duration": 1, "dt": 1, "save_every": 1, "threads": 1, "method": "rk4", "rtol": 1e-3}
    for _ in range(2):
        lw.simulate(model, [0.1, 0.2, 0.3], **right)
        with pytest.raises(InputError):
            lw.simulate(model, [0.1, 0.2, 0.3], **(right | wrong))


def test_starts_are_looked_at_in_every_call() -> None:
    model, limited = samples.planar_arm(3), samples.seven_joint_arm()
    call: dict[str, Any] = {"duration": 0.02, "dt": 0.01, "method": "rk4"}
    for _ in range(2):
        lw.simulate(model, [0.1, 0.2, 0.3], **call)
        lw.simulate(limited, **call)
        with pytest.raises(InputError, match="beyond joint limits"):
            lw.simulate(limited, limited.limits.upper + 0.1, **call)
        with pytest.raises(InputError, match="finite"):
            lw.simulate(model, [0.1, np.nan, 0.3], **call)
        with pytest.raises(InputError, match="wrong shape"):
            lw.simulate(model, [0.1, 0.3], **call)
        with pytest.warns(lw.errors.InputWarning, match="degrees"):
            lw.simulate(model, [90.0, 0.2, 0.3], **call, limits="ignore")
        with pytest.raises(InputError, match="time would stand still"):
            lw.simulate(model, [0.1, 0.2, 0.3], **call, t0=1e18)


def test_controls_are_read_anew_in_every_call() -> None:
    model, gain = samples.planar_arm(3), [1.0]
    found = []
    for gain[0] in (1.0, 50.0, 1.0):
        motion = lw.simulate(
            model, [0.1, 0.2, 0.3], duration=0.1, dt=0.01, method="rk4", control=lambda t, q, v: -gain[0] * q
        )
        found.append(motion.q)
    assert np.array_equal(found[0], found[2]) and np.abs(found[0] - found[1]).max() > 1e-3


def test_many_options_do_not_pile_up() -> None:
    model = samples.planar_arm(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(80):
            lw.simulate(model, [0.1], duration=0.1, dt=0.05, t0=float(k), method="rk4")
    assert len(vars(model)["_ready_simulations"]) <= 40


def test_options_without_a_hash_are_read_anew() -> None:
    for released in (["loop"], []):
        model = samples.four_bar(1)
        names = [model.closures[0].name] if released else []
        calls = [lw.simulate(model, duration=0.02, dt=0.01, method="rk4", released=names) for _ in range(2)]
        assert np.array_equal(calls[0].q, calls[1].q)


def test_masked_arrays_are_refused() -> None:
    hidden = np.ma.masked_array([0.1, 0.2, 0.3], mask=[False, True, False])
    with pytest.raises(InputError, match="not made of real numbers"):
        lw.simulate(samples.planar_arm(3), hidden, duration=0.01, method="rk4")
