"""Two tiers of code: first calls are answered at once, optimised code follows, and numbers do not tell which."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.memoized import once
from linkwise.targets import cache
from linkwise.targets.llvm import kernel, tiers
from linkwise.targets.llvm.binding import IN_ORDER, NOT_AGAIN, optimising
from tests.machine import PATIENCE

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
    for thread in list(tiers._workshop.threads):
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


@pytest.mark.parametrize("longest", [0, 10**9], ids=["interpreted", "compiled"])
def test_both_tiers_round_alike(empty, monkeypatch, longest):
    monkeypatch.setenv("LINKWISE_CACHE", "0")
    monkeypatch.setattr(kernel, "_LONG_NODES", longest)
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


def test_a_call_on_its_way_is_taken_over(empty, monkeypatch):
    """Blocks of a loop are replaced while it runs: here all of them, and the results are what they were."""
    monkeypatch.setattr(kernel, "_LONG_NODES", 0)
    arm = samples.seven_joint_arm()
    run = partial(lw.simulate, arm, Q[0], V[0], duration=0.05, method="rk4", dt=1e-2)
    monkeypatch.setenv("LINKWISE_TIER", "both")
    first = run().q
    (library,) = (x for x in tiers._libraries.values() if "linkwise_program" in x._addresses)
    library.settle()
    words = library._quick.words
    assert words and all(word[0] for word in words.values())
    entries = dict(zip(library._entries.gated, library._words, strict=True))
    library._words[0] = library._held[0]["linkwise_program"]  # back into the loop that calls by these words
    assert entries["linkwise_program"] != library._words[0]
    np.testing.assert_array_equal(run().q, first)


def test_products_are_fused_as_llvm_fuses_them(empty, monkeypatch):
    """Random sums and differences of products, negated ones, products read twice: bits of compiled code."""
    steps = np.random.default_rng(8).integers([1, 1, 0], [25, 25, 8], size=(200, 3)).tolist()

    def text(_, x):
        values = [*x]
        for back, further, kind in steps:
            a, b = values[-min(back, len(values))], values[-min(further, len(values))]
            m = a * b
            kinds = (m, a + b, a - b, -(a * x[0]) + -b, -m + 0.3, 0.5 * a - b * x[1], 2.0 * a, -(-m + -(b * x[2])))
            values.append(kinds[kind])
            if len(values) % 40 == 0:
                values += [*x]  # so that numbers stay of one size
        return values[-60:]

    monkeypatch.setenv("LINKWISE_CACHE", "0")
    monkeypatch.setattr(kernel, "_LONG_NODES", 0)
    x = np.random.default_rng(9).uniform(-0.5, 0.5, size=(64, 12))
    found = []
    for tier in ("quick", "optimised"):
        monkeypatch.setenv("LINKWISE_TIER", tier)
        monkeypatch.setattr(tiers, "_libraries", type(tiers._libraries)())
        found.append(lw.compile(text, ARM, {"x": 12})(x))
    assert np.isfinite(found[0]).all()
    np.testing.assert_array_equal(*found)


def test_products_are_fused_wherever_values_wait(empty, monkeypatch):
    """Negated products of a long body: they would be rounded, were they put aside on their way to the sum."""
    monkeypatch.setenv("LINKWISE_CACHE", "0")
    monkeypatch.setattr(kernel, "_LONG_NODES", 0)
    found = []
    for tier in ("quick", "optimised"):
        monkeypatch.setenv("LINKWISE_TIER", tier)
        monkeypatch.setattr(tiers, "_libraries", type(tiers._libraries)())
        robot = samples.quadruped()
        v = np.random.default_rng(0).normal(size=(16, robot.nv))
        found.append(robot.linearize_inverse(np.tile(robot.neutral(), (16, 1)), v, v))
    for quick, optimised in zip(*found, strict=True):
        np.testing.assert_array_equal(quick, optimised)


def test_nobody_waits_for_what_another_thread_optimises(empty, monkeypatch):
    monkeypatch.setenv("LINKWISE_TIER", "both")
    held, enough = threading.Event(), threading.Event()

    def busy():
        with optimising.turn(frozenset({NOT_AGAIN})):
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


@pytest.mark.parametrize("alike", [True, False])
def test_modules_with_the_same_switches_are_optimised_at_the_same_time(alike):
    """Two threads meet in their turns; with other switches, the second begins when the first has ended."""
    first, second = frozenset({NOT_AGAIN}), frozenset({NOT_AGAIN if alike else IN_ORDER})
    both, order = threading.Event(), []

    def other():
        with optimising.turn(second):
            both.set()
            order.append("second")

    with optimising.turn(first):
        assert optimising.must_wait(second) is not alike
        thread = threading.Thread(target=other)
        thread.start()
        assert both.wait(60 * PATIENCE if alike else 0.1) is alike
        order.append("first")
    thread.join()
    assert order == (["second", "first"] if alike else ["first", "second"])


def test_jobs_go_on_beside_each_other(empty, monkeypatch):
    """Two modules of unlike switches wait for a third: the one that need not wait for it comes first."""
    monkeypatch.setattr(tiers, "cores", lambda: 2)
    beside, done, libraries = threading.Barrier(2), [], []

    class Known:
        def take_over(self, code):
            done.append(code)

    def compiled(name, module):
        with optimising.turn(module.switches):
            if name != "unlike":
                beside.wait(60 * PATIENCE)  # until both of one kind are at it
        return name

    for name in ("one", "unlike", "another"):
        libraries.append(Known())
        module = tiers.Module("", in_order=name == "unlike")
        tiers._workshop.submit(
            tiers._CompilationJob(libraries[-1], lambda module=module: module, partial(compiled, name))
        )
    for thread in list(tiers._workshop.threads):
        thread.join()
    assert sorted(done) == ["another", "one", "unlike"]
    assert not beside.broken


def test_who_wants_to_wait_can(empty, monkeypatch):
    monkeypatch.setenv("LINKWISE_TIER", "both")
    monkeypatch.setattr(tiers, "_SHORT", 0)
    function = own(wait=True)
    function(Q[:, :4].copy())
    function.jacobian("x")(Q[:, :4].copy())
    assert len(list(empty.iterdir())) == len(tiers._libraries) >= 2  # optimised code is what the cache has
    assert all(len(library._held) == 1 for library in tiers._libraries.values())


def test_a_library_that_nobody_needs_is_not_optimised(empty, monkeypatch):
    """Nor does it wait for others, with a program in hand: models made and dropped without end would fill memory."""
    made, looks = [], []
    monkeypatch.setattr(tiers, "others_make", lambda: looks.append(1) is None)
    library = tiers.Library(tiers.EntryPoints({}), code=None)
    job = tiers._CompilationJob(library, lambda: made.append(1), made.append)
    del library
    job.go_on()
    assert job.done.is_set()
    assert not made
    assert len(looks) == 1


@pytest.mark.parametrize("hurried", [False, True])
def test_optimising_gives_way_to_first_answers(empty, monkeypatch, hurried):
    monkeypatch.setattr(tiers, "_LONGEST_WAIT", 10**6)
    order = []

    class Known:
        def take_over(self, code):
            order.append("optimised")

    library = Known()
    job = tiers._CompilationJob(library, lambda: tiers.Module(""), lambda module: None)

    def go_on():
        while not job.done.is_set():
            job.go_on()

    thread = threading.Thread(target=go_on)

    def make():
        """A value during whose making a library is to be optimised."""
        thread.start()
        if hurried:
            job.wait()  # else each would wait for the other
        else:
            assert not job.done.wait(0.1)
        order.append("made")

    once({}, "value", make)
    thread.join()
    assert order == (["optimised", "made"] if hurried else ["made", "optimised"])


def test_an_unknown_tier_is_refused(empty, monkeypatch):
    monkeypatch.setenv("LINKWISE_TIER", "fast")
    with pytest.raises(lw.InputError, match="LINKWISE_TIER"):
        samples.seven_joint_arm().gravity_force(Q)


SCRIPT = """
import os, sys
import numpy as np
import linkwise as lw
from linkwise import samples
from linkwise.targets.llvm import kernel, tiers
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
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    kept = len(list(cache.folder().iterdir()))
    assert kept >= (3 if argument == "fork" else 1)
