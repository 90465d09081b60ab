"""Processes die, and nothing is lost: a real Dask cluster, SIGKILL, and results that are the same to the last bit."""

import os
import signal
import time

import numpy as np
import pytest

import linkwise as lw
from linkwise.studies.member_blocks import pilot
from linkwise.studies.results import Results
from linkwise.studies.running import Members, drive, manifest_of, missing
from linkwise.studies.store import MemoryStore
from linkwise.studies.study import Study
from linkwise.studies.workers import ThisProcess
from tests.studies import studies

pytest.importorskip("distributed")
from tests.studies.cluster import Cluster, Killer


def run_with_faults(folder, arguments, workers, kills, scheduler_at):
    """On one cluster until its scheduler is killed, then on another; how many workers died, and the results."""
    died = 0
    with Cluster(folder / "first", workers) as cluster:
        killer = Killer(cluster, kills, seed=1, scheduler_at=scheduler_at)
        with pytest.raises(lw.studies.ClusterError, match=r"scheduler cannot be reached[\s\S]*resume=True"):
            lw.ensemble(**arguments, store=folder / "store", client=cluster.address, progress=killer)
        assert killer.scheduler_killed
        died += killer.kills
    left = killer.moments[killer.kills :]
    stored = len(lw.studies.open(folder / "store").store.finished())
    with Cluster(folder / "second", workers) as cluster:
        killer = Killer(cluster, 0, seed=2)
        killer.moments = left
        results = lw.ensemble(**arguments, store=folder / "store", client=cluster.address, progress=killer, resume=True)
        died += killer.kills
    return died, stored, results


def test_workers_and_the_scheduler_die(tmp_path):
    arguments = studies.panda_study(1500, duration=0.2, batch=100)
    died, stored, results = run_with_faults(tmp_path, arguments, workers=2, kills=2, scheduler_at=0.4)
    assert died == 2
    assert 0 < stored < 15
    assert results.counts == {"done": 1500}  # 0 lost
    assert results.store.finished() == list(range(15))  # 0 twice: a block has one place, and one record
    assert studies.same_bits(results, lw.ensemble(**arguments))


@pytest.mark.slow
def test_a_hundred_thousand_members_and_twenty_deaths(tmp_path, capsys):
    arguments = studies.panda_study(100_000, duration=2.0, batch=250)
    start = time.perf_counter()
    died, stored, results = run_with_faults(tmp_path, arguments, workers=4, kills=20, scheduler_at=0.5)
    faulty = time.perf_counter() - start
    start = time.perf_counter()
    plain = lw.ensemble(**arguments)
    with capsys.disabled():
        print(
            f"\n100000 members, {died} workers and the scheduler killed: {faulty:.0f} s; {stored} of 400 blocks stored "
            f"when the scheduler died; without faults, in one process: {time.perf_counter() - start:.0f} s"
        )
    assert died == 20
    assert results.counts == {"done": 100_000}
    assert results.store.finished() == list(range(400))
    assert studies.same_bits(results, plain)


class Mortal(ThisProcess):
    """Dies of one member, and now and then of none."""

    def __init__(self, study, fatal, accidents):
        super().__init__(study, threads=1)
        self.fatal, self.accidents = fatal, accidents

    def next(self):
        task, block = super().next()
        if task.start <= self.fatal < task.stop:
            return task, None
        if self.accidents and self.accidents.pop():
            return task, None
        return task, block


def test_a_member_that_kills_is_found_by_halving():
    study = Study(studies.panda(), {"x": np.arange(20.0)}, run=lambda batch: {"y": batch.inputs["x"][:, 0] ** 2})
    template, size = pilot(study, 1, 8)
    store = MemoryStore(manifest_of(study, size), {"x": 1}, template)
    place = Mortal(study, 13, [False, True, False, True, True, False, True])
    drive(place, missing(study, store, range(3)), store, template, Members(False, "", 20, 0))
    results = Results(store, study)
    assert results.counts == {"done": 19, "died": 1}
    assert results.failures[0].member == 13
    assert np.array_equal(np.delete(results["y"], 13), np.delete(np.arange(20.0) ** 2, 13))
    assert np.array_equal(results["x"], np.arange(20.0))


@pytest.mark.slow
def test_a_member_that_kills_its_process_is_found(tmp_path):
    """In a pool of processes: those beside it in its block have their results."""
    results = lw.ensemble(studies.panda(), {"fate": [0.0, 0.0, 1.0, 0.0]}, 4, run=deadly, batch=2, workers=1)
    assert results.counts == {"done": 3, "died": 1}
    assert [failure.member for failure in results.failures] == [2]
    assert "died" in results.failures[0].reason


def deadly(batch):
    if (batch.inputs["fate"] > 0.5).any() and os.environ.get("LINKWISE_PARENT") != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"fine": 1.0 - batch.inputs["fate"][:, 0]}


@pytest.fixture(autouse=True)
def _parent(monkeypatch):
    monkeypatch.setenv("LINKWISE_PARENT", str(os.getpid()))
