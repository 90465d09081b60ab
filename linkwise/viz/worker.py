"""One thread that does all the work of a page, in order.

What the browser asks for arrives on other threads, and often faster than it can be done. It is left here under a name;
what is left twice under one name before its turn is done once, the latest. So nothing needs a lock, nothing piles up,
and a page that is closed is closed.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from linkwise.errors import LinkwiseError

Action = Callable[[], Any]


class Worker:
    """The thread; it ends with the program, or with :meth:`close`.

    Args:
        name: of the thread.
        report: what to do with the message of an error that a user can cause; others are printed with a traceback.
    """

    def __init__(self, name: str, report: Callable[[str], None]) -> None:
        self._wake = threading.Condition()
        self._waiting: dict[Any, Action] = {}
        self._tick: Action | None = None
        self._period = 0.0
        self._due = 0.0
        self._closed = False
        self._report = report
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, key: Any, action: Action) -> None:
        """Do this soon; instead of what waits under the same key, if something does."""
        with self._wake:
            self._waiting.pop(key, None)  # its turn is that of the latest: a drag that begins after another has ended
            self._waiting[key] = action
            self._wake.notify()

    def every(self, period: float, tick: Action | None) -> None:
        """Do this each so many seconds, from now on; None ends it."""
        with self._wake:
            self._tick, self._period, self._due = tick, period, time.monotonic()
            self._wake.notify()

    def call(self, action: Action) -> Any:
        """Do this in its turn, and wait for what comes of it."""
        if threading.current_thread() is self._thread:
            return action()
        done = threading.Event()
        outcome: dict[str, Any] = {}

        def run() -> None:
            try:
                outcome["value"] = action()
            except BaseException as error:  # handed to the caller
                outcome["error"] = error
            done.set()

        self.post(object(), run)
        while not done.wait(0.1):
            if not self._thread.is_alive():
                raise LinkwiseError("this page is closed")
        if "error" in outcome:
            raise outcome["error"]
        return outcome["value"]

    @property
    def is_alive(self) -> bool:
        """Whether it still works."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End after what is being done; what waits is dropped."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10.0)

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._closed and not self._waiting:
                    left = None if self._tick is None else self._due - time.monotonic()
                    if left is not None and left <= 0.0:
                        break
                    self._wake.wait(left)
                if self._closed:
                    return
                actions, self._waiting = list(self._waiting.values()), {}
                if self._tick is not None and time.monotonic() >= self._due:
                    actions.append(self._tick)
                    self._due = max(self._due + self._period, time.monotonic())  # late ticks are not made up for
            for action in actions:
                self._do(action)

    def _do(self, action: Action) -> None:
        try:
            action()
        except LinkwiseError as error:
            self._report(str(error))
        except Exception:  # a defect of ours must not end the page in silence
            traceback.print_exc(file=sys.stderr)
            self._report("something went wrong; the terminal has the details")
