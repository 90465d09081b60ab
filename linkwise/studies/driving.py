"""Driver of a study to a full store: tasks go out for what is missing, blocks come back, none is lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from linkwise.sim.progress import Progress
from linkwise.studies.member_blocks import MemberBlock, Task, Template, joined
from linkwise.studies.outcomes import DIED
from linkwise.studies.store import AnyStore
from linkwise.studies.study import Study
from linkwise.studies.workers import Workers

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
            while running < place.capacity:
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

    def __exit__(self, kind: Any, *_: Any) -> None:
        """Put away what is left, also where the work was broken off: it has been computed."""
        try:
            for future in self._waiting:
                if kind is None:
                    future.result()
        finally:
            self._thread.shutdown(wait=True)


class Members:
    """The progress bar of an ensemble: members done, how many a second, and how long it will take."""

    def __init__(self, show: Any, label: str, total: int, done: int) -> None:
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
