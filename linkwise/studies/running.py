"""`lw.ensemble`: many runs of one model, here or on many machines, driven until the store is full."""

from __future__ import annotations

import functools
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from linkwise.checks import check_count
from linkwise.errors import InputError, require_extra
from linkwise.functions.function import checked_threads
from linkwise.model.model import Model
from linkwise.sim.progress import Progress
from linkwise.studies.designs import QmcEngine
from linkwise.studies.fingerprint import this_machine, versions
from linkwise.studies.member_blocks import SECONDS_HERE, SECONDS_THERE, MemberBlock, Task, Template, joined, pilot
from linkwise.studies.outcomes import DIED, ERROR, STATUS, Kept, Measure
from linkwise.studies.results import Results
from linkwise.studies.store import AnyStore, MemoryStore, Store, StoreError
from linkwise.studies.study import Run, Study
from linkwise.studies.workers import Dask, Pool, ThisProcess, WorkerError, Workers, refuse_inside_import

_ATTEMPTS = 2  # deaths of a process before its task is cut in half
_UNWRITTEN = 3  # blocks that wait for the disk


def missing(study: Study, store: AnyStore, only: Iterable[int]) -> Iterator[Task]:
    """Tasks for these blocks, their inputs drawn as they are asked for."""
    for number in only:
        start, stop = store.bounds(number)
        yield Task(number, start, stop, study.inputs.values(study.design, start, stop))


def drive(place: Workers, tasks: Iterator[Task], store: AnyStore, template: Template, bar: Members) -> None:
    """Run tasks to the end; returns when every block is stored."""
    running, deaths = 0, Counter[tuple[int, int]]()
    pieces: dict[int, list[tuple[Task, MemberBlock]]] = {}
    again: list[Task] = []
    with _StoreWriter(store) as writer:
        while True:
            while running < place.capacity():
                task = again.pop() if again else next(tasks, None)
                if task is None:
                    break
                place.submit(task)
                running += 1
            if not running:
                return
            task, block = place.next()
            running -= 1
            if block is None:
                retry = _next_try(task, deaths)
                again += retry
                if retry:
                    continue
                block = _dead(task)
            for whole, made in _whole(task, block, pieces, store):
                writer.put(template.fit(made), whole)
                bar.add(made)


def _next_try(task: Task, deaths: Counter[tuple[int, int]]) -> list[Task]:
    """Tasks to try next: the same; after some deaths its halves, which finds the member that kills; then none."""
    deaths[task.start, task.stop] += 1
    if deaths[task.start, task.stop] < _ATTEMPTS:
        return [task]
    return [] if task.stop - task.start == 1 else list(task.halves())


def _dead(task: Task) -> MemberBlock:
    why = "the process that ran it died, twice, also when it ran nothing else"
    return MemberBlock(task.number, task.start, task.stop, {}, {}, np.array([DIED], np.int8), {task.start: why})


def _whole(
    task: Task, block: MemberBlock, pieces: dict[int, list[tuple[Task, MemberBlock]]], store: AnyStore
) -> Iterator[tuple[Task, MemberBlock]]:
    """The block if it is whole, alone or with the pieces that came before it."""
    start, stop = store.bounds(task.number)
    found = sorted([*pieces.pop(task.number, []), (task, block)], key=lambda pair: pair[0].start)
    if sum(piece.stop - piece.start for piece, _ in found) < stop - start:
        pieces[task.number] = found
        return
    made = found[0][1]
    for _, more in found[1:]:
        made = joined(made, more)
    inputs = {name: np.concatenate([piece.inputs[name] for piece, _ in found]) for name in task.inputs}
    yield Task(task.number, start, stop, inputs), made


class _StoreWriter:
    """Puts blocks away beside the work; a few may wait, no more."""

    def __init__(self, store: AnyStore) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="linkwise-store")
        self._waiting: list[Future[None]] = []

    def __enter__(self) -> _StoreWriter:
        return self

    def put(self, block: MemberBlock, task: Task) -> None:
        """Store a block soon; errors of earlier ones are raised here."""
        self._waiting.append(self._thread.submit(self.store.write, block, task.inputs))
        while len(self._waiting) > _UNWRITTEN or (self._waiting and self._waiting[0].done()):
            self._waiting.pop(0).result()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Put away what is left, also where the work was broken off: it has been computed."""
        try:
            for future in self._waiting:
                if kind is None:
                    future.result()
        finally:
            self._thread.shutdown(wait=True)


class Members:
    """The progress bar of an ensemble: members done, how many a second, and how long it will take."""

    def __init__(self, show: bool | Callable[[float], None] | None, label: str, total: int, done: int) -> None:
        self._bar = Progress(show, label)
        self.total, self.done, self.lost = total, done, 0
        self._before = done
        self._start = time.perf_counter()
        if done:
            self._bar.update(done / total, self.text())

    def add(self, block: MemberBlock) -> None:
        """One more block."""
        self.done += block.stop - block.start
        self.lost += len(block.reasons)
        self._bar.update(self.done / self.total, self.text())

    @property
    def rate(self) -> float:
        """Members a second, of this run."""
        return (self.done - self._before) / max(1e-9, time.perf_counter() - self._start)

    def text(self) -> str:
        """Text of the bar."""
        lost = f", {self.lost} without a result" if self.lost else ""
        left = (
            f", {(self.total - self.done) / self.rate:.0f} s left" if self.rate > 0 and self.done < self.total else ""
        )
        return f"{self.done} of {self.total}, {self.rate:.3g} a second{lost}{left}"

    def close(self) -> None:
        """Leave the line as it was."""
        self._bar.close()


class StoreWarning(UserWarning):
    """Warning that something in a store was damaged, and is made again."""


class StudyInterrupted(SystemExit, KeyboardInterrupt):
    """Ctrl-C during a study. Of a program that does not catch it, the last word is its one line: how to go on.

    Args:
        done: members that were run.
        members: of the study.
        folder: the store that keeps them; None where there is none.
        how: the way to go on, in a few words.
    """

    def __init__(self, done: int, members: int, folder: Path | None, how: str) -> None:
        kept = "nothing is kept without a store" if folder is None else f"they are safe in {str(folder)!r}; {how}"
        super().__init__(f"interrupted after {done} of {members} members; {kept}")
        self.done, self.members, self.folder = done, members, folder
        _show_as_one_line()


@functools.cache
def _show_as_one_line() -> None:
    """Have this interrupt shown as its line where nobody catches it.

    From Python 3.14 on whatever is a KeyboardInterrupt goes to ``sys.excepthook``, a SystemExit or not.
    """
    usual = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, StudyInterrupted):
            print(error, file=sys.stderr)
        else:
            usual(kind, error, trace)

    sys.excepthook = shown


def ensemble(
    model: Model,
    inputs: Mapping[str, object] | None = None,
    members: int | None = None,
    *,
    design: QmcEngine | str = "random",
    seed: int | None = None,
    keep: Kept = "final",
    reduce: Mapping[str, str | Measure] | None = None,
    failure: str | Measure | None = None,
    run: Run | None = None,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    client: Any = None,
    workers: int | None = None,
    threads: int | None = None,
    batch: int | None = None,
    progress: bool | Callable[[float], None] | None = None,
    **settings: Any,
) -> Results:
    """Simulate a model many times: Monte Carlo, parameter sweeps, data; here or on a cluster, and nothing is lost.

    >>> import linkwise as lw, scipy.stats as st
    >>> from linkwise import samples
    >>> arm = samples.planar_arm().with_parameters(["link3.mass"])
    >>> found = lw.ensemble(
    ...     arm, {"q0": st.norm(0.5, 0.1), "link3.mass": st.uniform(0.5, 1.0)}, 200, seed=1, duration=0.5,
    ...     keep={"fastest": lambda traj: abs(traj.v).max(axis=(1, 2))},
    ... )
    >>> found["fastest"].shape
    (200,)

    Args:
        model: the mechanism.
        inputs: what differs, by name: ``q0``, ``v0``, ``x0``; run-time parameters of the model by their own names
            (``"link3.mass"``); any other name adds to the end of ``p``, in the order given, for controls, events and
            disturbances to read. Each is numbers for all members, an array with a row for each, a frozen distribution
            of ``scipy.stats`` (for every number of it), a list of these, or a function of a random generator.
        members: how many; as many as the arrays have rows if not given.
        design: where they are drawn: "random", "latin" (hypercube), "sobol" (sequence), "saltelli" (for Sobol
            indices; members must be a multiple of d + 2), or an engine of ``scipy.stats.qmc``.
        seed: a whole number from which everything random follows; taken from the system if None, and recorded.
        keep: "final" (``q_final``, ``v_final``, ``t_final``), "events" (``NAME.count``, ``NAME.first``), channels at
            all ``output_times`` ("q", "v", "x", "vdot", "tau", "energy"), functions by name ``{"tip": f}`` of the
            :class:`Trajectory` of a batch that return a row for each member; or a list of these.
        reduce: channels or functions by name of which only mean, spread and extremes over all members are kept.
        failure: what counts as failed: the name of an event, or a function of the trajectory to truth values.
        run: a function of a :class:`Batch` to run instead of :func:`linkwise.simulate`; returns a trajectory, or
            arrays by name with a row for each member.
        store: a folder for results; in memory if not given. Written as blocks come in.
        resume: go on with a store that holds part of this very study; blocks that were damaged are run again.
        client: a Dask client, a cluster or an address: where to run.
        workers: so many processes on this machine instead. They import the script that calls: it runs under
            ``if __name__ == "__main__":``.
        threads: threads of this process; as many as there are processors if not given.
        batch: members that run together, a block; chosen by time and memory if not given. Results do not depend on it.
        progress: a bar on stderr; None: only on a terminal. A function is called with the fraction done.
        settings: of :func:`linkwise.simulate`: duration, dt, method, control, events, output_times, ...

    Returns:
        The results. Members that could not be run are in ``results.failures`` with the reason; no others are harmed.
        Ctrl-C ends with one line that says how to go on (:class:`~linkwise.studies.StudyInterrupted`, which is a
        ``KeyboardInterrupt``); what was stored is resumed.
    """
    study = Study(
        model, inputs, members, design=design, seed=seed, keep=keep, reduce=reduce, failure=failure, run=run, **settings
    )
    return run_study(
        study, store=store, resume=resume, client=client, workers=workers, threads=threads, batch=batch,
        progress=progress,
    )  # fmt: skip


def run_study(
    study: Study,
    *,
    store: str | os.PathLike[str] | None = None,
    resume: bool = False,
    client: Any = None,
    workers: int | None = None,
    threads: int | None = None,
    batch: int | None = None,
    progress: bool | Callable[[float], None] | None = None,
) -> Results:
    """Run a study; the arguments are those of :func:`ensemble`."""
    if client is not None and workers is not None:
        raise InputError("client and workers are two places to run at", do="give one of them")
    if workers is not None:
        refuse_inside_import()
    if store is not None:
        require_extra("zarr", "ensemble")  # before anything runs or is written
    here = client is None and workers is None
    split = (os.cpu_count() or 1) if threads is None and here else checked_threads(threads)
    if batch is not None:
        check_count(batch=batch)
    given, seconds = None if batch is None else int(batch), SECONDS_HERE if here else SECONDS_THERE
    goal: AnyStore | None = None
    try:
        template, size = pilot(study, split if here else 1, given, seconds)
        place = _place(study, client, workers, split)  # before the store: where no cluster answers, nothing is made
        try:
            if batch is None and not here:  # something for each to do
                size = max(1, min(size, -(-study.members // (4 * place.capacity()))))
            goal = _goal(study, store, resume, template, size)
            todo = sorted(set(range(goal.blocks)) - set(goal.finished()))
            bar = Members(progress, study.model.name, study.members, study.members - _members(goal, todo))
            try:
                drive(place, missing(study, goal, todo), goal, template, bar)
            finally:
                bar.close()
        finally:
            place.close()
    except KeyboardInterrupt as interrupt:
        done, folder = (0, None) if goal is None else (_members(goal, goal.finished()), goal.folder)
        how = f"to go on, make the same call with seed={study.seeds.entropy}, resume=True"
        raise StudyInterrupted(done, study.members, folder, how) from interrupt
    return _with_results(Results(goal, study))


def _with_results(results: Results) -> Results:
    """The results, if there are any: where no member could be run, something is wrong with all of them."""
    ends = results.counts
    if ends and set(ends) <= set(STATUS[ERROR:]):
        first = results.failures[0]
        raise WorkerError(
            "no member of the ensemble could be run",
            got=f"{', '.join(f'{n} {how}' for how, n in ends.items())}; member {first.member}: {first.reason}",
            do="run one here: without workers= and client=, members=1, batch=1; then begin with an empty store",
        )
    return results


def _members(goal: AnyStore, blocks: Sequence[int]) -> int:
    return sum(stop - start for start, stop in map(goal.bounds, blocks))


def _place(study: Study, client: Any, workers: int | None, threads: int) -> Workers:
    if client is not None:
        return Dask(study, client)
    return ThisProcess(study, threads) if workers is None else Pool(study, checked_threads(workers))


def _goal(study: Study, store: str | os.PathLike[str] | None, resume: bool, template: Template, size: int) -> AnyStore:
    """A new store, or one to go on with."""
    manifest = manifest_of(study, size)
    inputs = {part.name: part.size for part in study.inputs.parts}
    if store is None:
        if resume:
            raise InputError("there is nothing to resume without a store", do="give store=")
        return MemoryStore(manifest, inputs, template)
    if not resume:
        return Store.create(store, manifest, inputs, template)
    found = Store(store)
    _check_same(found.manifest, manifest)
    found.tidy()
    damaged = found.damaged()
    for number, why in damaged.items():
        found.discard(number)
        warnings.warn(StoreWarning(f"block {number} is run again\n{why}"), stacklevel=4)
    return found


def _check_same(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Check that only the very same study goes on in a store."""
    for key in ("members", "study", "seed", "versions"):
        if old[key] != new[key]:
            which = "the model" if key == "study" and old["model"]["hash"] != new["model"]["hash"] else f"the {key}"
            raise StoreError(
                f"this store holds another study: {which} differs",
                got=str(new[key]),
                allowed=str(old[key]),
                do="use another folder, or what made this one (seed= must be given); see its manifest.json",
            )


def manifest_of(study: Study, size: int) -> dict[str, Any]:
    """Record of what made the results, for people and for checks."""
    return {
        "study": study.hash,
        "model": {"name": study.model.name, "hash": study.model_hash, "nq": study.model.nq, "nv": study.model.nv},
        "members": study.members,
        "batch": size,
        "design": study.design_name,
        "drawn": study.inputs.labels,
        "seed": str(study.seeds.entropy),
        "seeds": "SeedSequence(seed).spawn: key (0, member // 1024) draws members, (1, member) belongs to one alone",
        "inputs": {part.name: {"kind": part.kind, "size": part.size} for part in study.inputs.parts},
        "settings": {name: _shown(value) for name, value in study.settings.items()},
        "keep": [*study.keep.names, *study.keep.measures],
        "versions": dict(versions()),
        "machine": this_machine(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _shown(value: object) -> object:
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, np.ndarray) and value.size <= 16:
        return value.tolist()
    if isinstance(value, np.ndarray):
        return (
            f"{len(value)} numbers from {value.flat[0]:g} to {value.flat[-1]:g}"
            if value.ndim == 1
            else str(value.shape)
        )
    return getattr(value, "__name__", None) or " ".join(repr(value).split())[:200]
