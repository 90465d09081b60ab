"""The bench compares like with like, and its timer counts what it should."""

import time

import numpy as np
import pytest

from bench.peers import QUANTITIES, Mujoco, Pinocchio, Sample, in_order
from bench.report import table
from bench.robots import ROBOTS
from bench.timing import Call, best_ns


def test_best_time_is_per_state():
    calls = [Call(time.sleep, (0.002,)), Call(time.sleep, (0.002,), states=10)]
    one, ten = best_ns(calls, rounds=3)
    assert one >= 1.99e6  # a sleep may last longer on a busy machine, but not shorter
    assert 1.99e5 <= ten < 1.99e6


def test_the_timed_statement_is_the_plain_call():
    seen = []
    Call(lambda *args, **kwargs: seen.append((args, kwargs)), (1, 2), {"out": 3}).timer().timeit(1)
    assert seen == [((1, 2), {"out": 3})]


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=lambda robot: robot.name)
def test_peers_agree(robot):
    pinocchio, mujoco = Pinocchio(robot), Mujoco(robot)
    assert set(pinocchio.joints) == set(mujoco.joints)
    sample = Sample.random(pinocchio.joints)
    for quantity in QUANTITIES:
        left, right = (in_order(p, quantity, p.single(quantity, sample)(), sample) for p in (pinocchio, mujoco))
        np.testing.assert_allclose(left, right, atol=1e-11 * np.abs(left).max())


def test_pinocchio_batch_fills_rows():
    peer = Pinocchio(ROBOTS["panda"])
    many = Sample.random(peer.joints, 5)
    out = np.empty_like(many.q)
    call = peer.batch("inverse_dynamics", many, 1, out)
    if call is None:
        pytest.skip("this Pinocchio was built without OpenMP")
    call()
    last = Sample(many.joints, many.q[-1], many.v[-1], many.w[-1])
    np.testing.assert_allclose(out[-1], peer.single("inverse_dynamics", last)(), atol=1e-12)


def test_table_aligns_and_shows_gaps():
    assert table(["", "ns"], [["a", 1234.5], ["bb", None]]) == "      ns\n--  ----\na   1234\nbb     -"
