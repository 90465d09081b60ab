"""Workers that run members: this process, a pool of processes, a Dask cluster. All take tasks and give blocks back.

A place that loses a process while it was at work says so; whoever drives it decides what to do (see
:mod:`linkwise.studies.running`).
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import pickle
import queue
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event as ProcessEvent
from typing import Any

from linkwise.errors import InputError, LinkwiseError, require_extra
from linkwise.studies.member_blocks import MemberBlock, Task, run_task
from linkwise.studies.study import Study

_PATIENCE = 20.0  # s without a scheduler
_ASK_EVERY = 2.0  # s between questions how many workers there are
_KEPT = 4  # studies that a worker process remembers
_GUARDED = '    if __name__ == "__main__":\n        found = lw.ensemble(..., workers=2)'


class ClusterError(LinkwiseError):
    """The cluster that was running an ensemble is gone."""


class WorkerError(LinkwiseError):
    """No process could run members of an ensemble."""


class Workers(ABC):
    """Runs tasks of one study, some at a time."""

    def capacity(self) -> int:
        """Tasks to hand in before asking for one back."""
        return 1

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Hand in a task."""

    @abstractmethod
    def next(self) -> tuple[Task, MemberBlock | None]:
        """Wait for a task to be finished; None instead of its block if its process died."""

    def close(self) -> None:
        """Let go of everything; tasks that are not finished are dropped."""
        return


class ThisProcess(Workers):
    """This process, with threads."""

    def __init__(self, study: Study, threads: int) -> None:
        self.study, self.threads = study, threads
        self._waiting: deque[Task] = deque()

    def submit(self, task: Task) -> None:
        """See :meth:`Workers.submit`."""
        self._waiting.append(task)

    def next(self) -> tuple[Task, MemberBlock | None]:
        """See :meth:`Workers.next`."""
        task = self._waiting.popleft()
        return task, run_task(self.study, task, self.threads)


class Pool(Workers):
    """Several processes on this machine: for controls that run in Python, which threads cannot share.

    Where a process dies the executor gives up all of them, and it is not known which task was to blame: those that were
    under way are run again one by one.
    """

    def __init__(self, study: Study, workers: int) -> None:
        self._payload, self._key = packed(study), study.hash
        # Not forked: threads of this process may hold locks that no one would ever open again in the copy.
        self._context = multiprocessing.get_context("spawn")
        self._came_up = self._context.Event()
        self._workers = workers
        self._tasks: dict[Future[MemberBlock], Task] = {}
        self._suspects: deque[Task] = deque()
        self._executor = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers, mp_context=self._context, initializer=_begin_worker, initargs=(self._came_up,)
        )

    def capacity(self) -> int:
        """Twice as many as there are processes."""
        return 2 * self._workers

    def submit(self, task: Task) -> None:
        """See :meth:`Workers.submit`."""
        if self._suspects:
            self._suspects.append(task)
            return
        try:
            self._tasks[self._executor.submit(run_remote, self._key, self._payload, task)] = task
        except BrokenProcessPool:
            self._suspects.append(self._begun(task))

    def next(self) -> tuple[Task, MemberBlock | None]:
        """See :meth:`Workers.next`."""
        while True:
            if self._suspects and not self._tasks:
                return self._alone(self._suspects.popleft())
            done, _ = wait(self._tasks, return_when=FIRST_COMPLETED)
            for future in done:
                task = self._tasks.pop(future)
                try:
                    return task, future.result()
                except BrokenProcessPool:
                    self._suspects.append(self._begun(task))

    def _begun(self, task: Task) -> Task:
        """A task that was lost with its process; an error where no process has ever begun, and no task is to blame."""
        if self._came_up.is_set():
            return task
        script = getattr(sys.modules.get("__main__"), "__file__", None) or "no file: a session, or a script from stdin"
        raise WorkerError(
            "the worker processes of ensemble(workers=…) end before they begin: each of them imports this script first",
            got=f"{script}; stderr says what they met with",
            allowed=f"a file that only defines things when it is imported\n{_GUARDED}",
            do="put what runs under the guard, or leave workers= out: threads of this process need none",
        ) from None

    def _alone(self, task: Task) -> tuple[Task, MemberBlock | None]:
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._executor = self._new()
        try:
            return task, self._executor.submit(run_remote, self._key, self._payload, task).result()
        except BrokenProcessPool:
            if not self._suspects:
                self._executor = self._new()
            return self._begun(task), None

    def close(self) -> None:
        """See :meth:`Workers.close`."""
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        self._executor.shutdown(wait=not self._tasks, cancel_futures=True)
        if self._tasks:  # interrupted: nobody waits for what is still at work
            for process in processes:
                process.terminate()


class Dask(Workers):
    """The workers of a Dask cluster.

    The model and the settings travel with each task (some ten kilobytes) and are unpacked once in each process:
    nothing has to be on a worker before, so any worker may come or go at any time.
    """

    def __init__(self, study: Study, client: Any) -> None:
        distributed = require_extra("distributed", "ensemble")
        self._own = not isinstance(client, distributed.Client)
        if self._own and not isinstance(client, (str, distributed.deploy.Cluster)):
            raise InputError(
                "this is not a client of a Dask cluster",
                got=type(client).__name__,
                allowed='distributed.Client(...), a cluster, or an address: "tcp://host:8786"',
            )
        try:
            self.client = distributed.Client(client) if self._own else client
        except OSError as error:
            raise ClusterError(
                "no scheduler answers", got=f"{client}: {error}", do="start one: `dask scheduler`"
            ) from None
        self._payload, self._key = packed(study), study.hash
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._tasks: dict[object, Task] = {}
        self._serial = 0
        self._session = f"{time.time_ns():x}"
        self._killed = distributed.scheduler.KilledWorker
        self._gone: float | None = None
        self._threads, self._asked = 0, -_ASK_EVERY

    def capacity(self) -> int:
        """Twice as many as there are threads on the workers: the next is there when one is finished."""
        now = time.monotonic()
        if now - self._asked > _ASK_EVERY and self.client.status == "running":
            self._asked = now
            with contextlib.suppress(OSError):  # a connection that is being lost
                self._threads = sum(self.client.nthreads().values())
        return max(4, 2 * self._threads)

    def submit(self, task: Task) -> None:
        """See :meth:`Workers.submit`."""
        self._serial += 1
        key = f"linkwise-{self._key[:8]}-{self._session}-{self._serial}"
        future = self.client.submit(run_remote, self._key, self._payload, task, key=key, pure=False)
        self._tasks[future] = task
        future.add_done_callback(self._done.put)

    def next(self) -> tuple[Task, MemberBlock | None]:
        """See :meth:`Workers.next`."""
        while True:
            try:
                future = self._done.get(timeout=1.0)
            except queue.Empty:
                self._check_connection()
                continue
            task = self._tasks.get(future)
            if task is None:
                continue
            if future.status == "cancelled":  # the scheduler is new and knows nothing of it, or is gone
                self._check_connection(at_once=True)
            try:
                block = future.result(timeout=600.0)
            except self._killed:
                block = None
            except (TimeoutError, OSError) as error:
                self._check_connection(at_once=True)
                raise ClusterError("a result could not be fetched", got=f"{type(error).__name__}: {error}") from error
            del self._tasks[future]
            future.release()
            return task, block

    def _check_connection(self, at_once: bool = False) -> None:
        """Raise if the scheduler has been gone for a while."""
        if self.client.status == "running" and not at_once:
            self._gone = None
            return
        now = time.monotonic()
        self._gone = self._gone or now
        if at_once or now - self._gone > _PATIENCE or self.client.status in ("closing", "closed"):
            raise ClusterError(
                "the cluster's scheduler cannot be reached any more",
                got=f"{len(self._tasks)} blocks were under way",
                do="blocks that are stored are safe: start a cluster, and run the study again with resume=True",
            )

    def close(self) -> None:
        """See :meth:`Workers.close`."""
        with contextlib.suppress(Exception):  # whatever is left of a cluster that is gone
            if self._tasks and self.client.status == "running":
                self.client.cancel(list(self._tasks), force=True)
            if self._own:
                self.client.close(timeout=5)


def _begin_worker(came_up: ProcessEvent) -> None:
    """Say that this worker process is there, and end it when its parent is gone, however that ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="linkwise-parent", daemon=True).start()
    came_up.set()


def refuse_inside_import() -> None:
    """Raise in a process that is only importing the script of its parent, on the way to its own work."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise WorkerError(
            "ensemble(workers=…) is called again by a worker process, which imports the script of its parent",
            got=str(sys.argv[0]),
            allowed=f"a file that only defines things when it is imported\n{_GUARDED}",
            do="put what runs under the guard",
        )


def packed(study: Study) -> bytes:
    """A study as bytes, functions that were typed in a session included."""
    try:
        import cloudpickle

        dump: Callable[[object], bytes] = cloudpickle.dumps
    except ImportError:
        dump = pickle.dumps
    try:
        return dump(study)
    except Exception as error:
        raise InputError(
            "the study cannot be sent to another process",
            got=f"{type(error).__name__}: {error}",
            do="define its functions in a file of their own; cloudpickle (extra `ensemble`) sends lambdas too",
        ) from None


@functools.lru_cache(maxsize=_KEPT)
def _unpacked(key: str, payload: bytes) -> Study:
    study: Study = pickle.loads(payload)
    return study


def run_remote(key: str, payload: bytes, task: Task) -> MemberBlock:
    """Block of a task, run in a worker process, which unpacks a study once, so that what was compiled for it stays."""
    return run_task(_unpacked(key, payload), task)
