"""A new Runge–Kutta method is one entry in one table: everything else follows from its numbers."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.sim.tableaux import TABLEAUX, Tableau
from tests.sim.mechanisms import double_pendulum, mixed, pendulum

HEUN3 = Tableau(
    "heun3",
    order=3,
    nodes=(0.0, 1.0 / 3.0, 2.0 / 3.0),
    rows=({}, {0: 1.0 / 3.0}, {1: 2.0 / 3.0}),
    weights={0: 0.25, 2: 0.75},
)
BOGACKI_SHAMPINE = Tableau(
    "bs32",
    order=3,
    nodes=(0.0, 0.5, 0.75, 1.0),
    rows=({}, {0: 0.5}, {1: 0.75}, {0: 2.0 / 9.0, 1: 1.0 / 3.0, 2: 4.0 / 9.0}),
    weights={0: 2.0 / 9.0, 1: 1.0 / 3.0, 2: 4.0 / 9.0},
    error=({0: -5.0 / 72.0, 1: 1.0 / 12.0, 2: 1.0 / 9.0, 3: -1.0 / 8.0},),
    error_order=2,
)


@pytest.fixture
def added(monkeypatch):
    for tableau in (HEUN3, BOGACKI_SHAMPINE):
        monkeypatch.setitem(TABLEAUX, tableau.name, tableau)


@pytest.mark.parametrize("make", [double_pendulum, mixed])
def test_its_order_is_that_of_its_numbers(added, make):
    model = make()
    q0, v0 = model.random_configuration(4), np.linspace(-1.0, 1.0, model.nv)
    exact = lw.simulate(model, q0, v0, 0.5, rtol=1e-12, output_times=[0.5])
    sizes, errors = np.array([32, 64, 128]), []
    for n in sizes:
        motion = lw.simulate(model, q0, v0, 0.5, dt=0.5 / n, method="heun3", output_times=[0.5])
        errors.append(np.abs(motion.v - exact.v).max())
    assert -np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(3.0, abs=0.2)


def test_with_an_error_estimate_it_adapts_and_meets_output_times_and_events(added):
    model = double_pendulum()
    times = np.linspace(0.0, 1.0, 7)
    exact = lw.simulate(model, [0.5, 0.2], None, 1.0, rtol=1e-12, output_times=times)
    errors = []
    for rtol in (1e-4, 1e-7):
        motion = lw.simulate(model, [0.5, 0.2], None, 1.0, rtol=rtol, method="bs32", output_times=times)
        np.testing.assert_array_equal(motion.t, times)
        errors.append(np.abs(motion.q - exact.q).max())
    assert errors[1] < 1e-5
    assert errors[1] < 0.05 * errors[0]
    event = lw.Event(lambda t, q, v, p: q[0], terminal=True)
    ended = lw.simulate(model, [0.5, 0.2], None, 5.0, rtol=1e-8, method="bs32", events=event)
    assert ended.status == "event"
    assert abs(ended.q[-1, 0]) < 1e-12


def test_large_mechanisms_take_it_too(added):
    b = lw.ModelBuilder("chain")
    for k in range(4):
        at = lw.transform(xyz=(0, 0, -0.5 if k else 0.0))
        b.add_body(f"l{k}", f"l{k - 1}" if k else "world", lw.Revolute(axis=(0, 1, 0)), at, mass=1.0, com=(0, 0, -0.25))
    model = b.build()
    options = {"duration": 0.5, "method": "bs32", "rtol": 1e-8, "output_times": [0.25, 0.5]}
    rolled = lw.simulate(model.with_sweeps("rolled"), [0.5, 0.1, 0.2, 0.3], None, **options)
    np.testing.assert_allclose(rolled.q, lw.simulate(model, [0.5, 0.1, 0.2, 0.3], None, **options).q, atol=1e-9)


def test_it_is_listed_and_reached_from_the_command_line(added, capsys):
    with pytest.raises(lw.InputError, match=r"(?s)fixed step: .*heun3.*adaptive: .*bs32"):
        lw.simulate(pendulum(), [0.0], None, 1.0, method="heun4")
    arguments = ["simulate", "planar_arm", "--duration", "0.1", "--samples", "3", "--json", "--method"]
    assert main([*arguments, "bs32"]) == 0
    assert '"t"' in capsys.readouterr().out
    assert main([*arguments, "heun4"]) != 0
    assert "heun3" in capsys.readouterr().err


def test_another_method_under_the_same_name_is_another_method(monkeypatch):
    model, results = double_pendulum(), []
    for tableau in (HEUN3, BOGACKI_SHAMPINE):
        same = {name: getattr(tableau, name) for name in ("order", "nodes", "rows", "weights")}
        monkeypatch.setitem(TABLEAUX, "own", Tableau("own", **same))
        results.append(lw.simulate(model, [0.5, 0.2], None, 0.1, method="own", dt=0.05).q[-1])
    assert np.abs(results[0] - results[1]).max() > 1e-12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": (0.0, 0.5, 2.0 / 3.0)}, "stage 1"),
        ({"rows": ({}, {0: 1.0 / 3.0}, {1: 0.0, 2: 2.0 / 3.0})}, "stage 2"),
        ({"rows": ({}, {0: 1.0 / 3.0})}, "3 nodes"),
        ({"weights": {0: 0.25, 2: 0.5}}, "weights"),
        ({"error": ({0: 0.5},), "error_order": 2}, "error"),
        ({"error": ({0: 0.5, 1: -0.5},)}, "error_order"),
    ],
)
def test_slips_in_the_numbers_are_named(change, words):
    numbers = {name: getattr(HEUN3, name) for name in ("name", "order", "nodes", "rows", "weights")}
    with pytest.raises(lw.InputError, match=f"heun3.*{words}"):
        Tableau(**(numbers | change))
