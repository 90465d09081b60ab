"""Two tiers of code: first calls are answered at once, optimised code follows, and numbers do not tell which."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.targets import cache
from linkwise.targets.llvm import tiers
from linkwise.targets.llvm.binding import optimising

ARM = samples.seven_joint_arm()
rng = np.random.default_rng(4)
Q, V, W = rng.normal(size=(3, 11, ARM.nv))


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty cache, and no library of this process known; at the end, nothing left to be optimised."""
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    monkeypatch.setattr(tiers, "_libraries", type(tiers._libraries)())
    yield tmp_path
    if (thread := tiers._workshop._thread) is not None:
        thread.join()


def batch_library():
    """The library of the only kernel for batches."""
    (found,) = (library for library in tiers._libraries.values() if "linkwise_batch" in library._addresses)
    return found


def own(**options):
    """A function with every operation that has code of its own."""

    def text(_, x):
        m = lw.math
        inside = m.tanh(x[0]) * x[1] - x[2] * m.exp(-x[0]) + m.atan2(x[1], x[2]) * m.log(1.0 + x[3] * x[3])
        return [inside, m.where(x[0] > 0.0, m.sqrt(abs(x[1])), -(x[2] * x[3]) + x[0]), m.sin(x[0]) / m.cos(x[3])]

    return lw.compile(text, ARM, {"x": 4}, **options)


def results(tier, monkeypatch):
    """Numbers of a tier: of one state, of batches in both precisions, of a function with loops, of derivatives."""
    monkeypatch.setenv("LINKWISE_TIER", tier)
    monkeypatch.setattr(tiers, "_libraries", type(tiers._libraries)())
    arm = samples.seven_joint_arm()
    x = np.concatenate([Q, V], axis=-1)[:, :4].copy()
    rolled = arm.with_sweeps("rolled")
    yield own()(x)
    yield own()(x[0])
    yield arm.inverse_dynamics(Q, V, W)
    yield arm.forward_dynamics(Q[0], V[0], W[0])
    yield arm.forward_dynamics(*(a.astype(np.float32) for a in (Q, V, W)))
    yield from arm.linearize_forward(Q, V, W)
    yield rolled.forward_dynamics(Q, V, W)
    yield lw.simulate(arm, Q[0], V[0], duration=0.05, method="rk4", dt=1e-2).q


def test_both_tiers_round_alike(empty, monkeypatch):
    monkeypatch.setenv("LINKWISE_CACHE", "0")
    for quick, optimised in zip(results("quick", monkeypatch), results("optimised", monkeypatch), strict=True):
        np.testing.assert_array_equal(quick, optimised)


def test_optimised_code_takes_over(empty, monkeypatch):
    monkeypatch.setenv("LINKWISE_TIER", "both")
    monkeypatch.setattr(tiers, "_SHORT", 0)
    arm = samples.seven_joint_arm()
    first = arm.forward_dynamics(Q, V, W)
    library = batch_library()
    gate = library["linkwise_batch"]
    library.settle()
    assert len(library._held) == 3  # quick code, gates, optimised code
    assert library["linkwise_batch"] == gate
    assert list(empty.iterdir())
    np.testing.assert_array_equal(arm.forward_dynamics(Q, V, W), first)


def test_nobody_waits_for_what_another_thread_optimises(empty, monkeypatch):
    monkeypatch.setenv("LINKWISE_TIER", "both")
    held, enough = threading.Event(), threading.Event()

    def busy():
        with optimising:
            held.set()
            enough.wait()

    thread = threading.Thread(target=busy)
    thread.start()
    held.wait()
    try:
        result = samples.seven_joint_arm().inverse_dynamics(Q, V, W)
        library = batch_library()
        assert not list(empty.iterdir())
    finally:
        enough.set()
        thread.join()
    library.settle()
    np.testing.assert_array_equal(result, ARM.inverse_dynamics(Q, V, W))


def test_who_wants_to_wait_can(empty, monkeypatch):
    monkeypatch.setenv("LINKWISE_TIER", "both")
    monkeypatch.setattr(tiers, "_SHORT", 0)
    function = own(wait=True)
    function(Q[:, :4].copy())
    function.jacobian("x")(Q[:, :4].copy())
    assert len(list(empty.iterdir())) == len(tiers._libraries) >= 2  # optimised code is what the cache has
    assert all(len(library._held) == 1 for library in tiers._libraries.values())


def test_a_library_that_nobody_needs_is_not_optimised(empty, monkeypatch):
    made = []
    library = tiers.Library(tiers.Entries({}), code=None)
    job = tiers._Job(library, lambda: made.append(1))
    del library
    job.run()
    assert job.done.is_set()
    assert not made


def test_an_unknown_tier_is_refused(empty, monkeypatch):
    monkeypatch.setenv("LINKWISE_TIER", "fast")
    with pytest.raises(lw.InputError, match="LINKWISE_TIER"):
        samples.seven_joint_arm().gravity_force(Q)


SCRIPT = """
import os, sys
import numpy as np
import linkwise as lw
from linkwise import samples
from linkwise.targets.llvm import tiers
tiers._SHORT = 0
arm = samples.seven_joint_arm()
q = np.ones((3, 7))
first = arm.linearize_forward(q, q, q).dq
arm.mass_matrix(q)
arm.coriolis_matrix(q, q)
if "fork" in sys.argv:
    child = os.fork()
    for library in list(tiers._libraries.values()):
        library.settle()
    assert np.array_equal(arm.linearize_forward(q, q, q).dq, first)
    assert all(len(library._held) == 3 for library in tiers._libraries.values())
    if child:
        assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("argument", ["leave", "fork"])
def test_processes_fork_and_end_while_code_is_optimised(empty, argument):
    if argument == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    environment = {**os.environ, "LINKWISE_TIER": "both"}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, argument]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    kept = len(list(cache.folder().iterdir()))
    assert kept >= (3 if argument == "fork" else 1)
