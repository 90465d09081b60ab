"""Several calls timed against each other, in one process, in turns.

On a shared machine the clock and the neighbours change from one second to the next. The calls therefore take turns,
some milliseconds each, for many rounds, and the best round of each counts: a disturbance can only make a round slower.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A function with its arguments, not yet called.

    Args:
        function: what is called.
        args: its positional arguments.
        kwargs: its keyword arguments.
        states: how many states of the mechanism one call handles.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    states: int = 1

    def __call__(self) -> Any:
        return self.function(*self.args, **self.kwargs)

    def timer(self) -> timeit.Timer:
        """A timer whose loop holds the plain call ``f(a0, a1, k=...)`` and nothing else."""
        names = {f"a{k}": value for k, value in enumerate(self.args)}
        keywords = {f"k_{key}": value for key, value in self.kwargs.items()}
        arguments = ", ".join([*names, *(f"{key}=k_{key}" for key in self.kwargs)])
        return timeit.Timer(f"f({arguments})", globals={"f": self.function, **names, **keywords})


def best_ns(calls: Sequence[Call], *, rounds: int = 30, seconds_each: float = 0.01) -> list[float]:
    """The best time of each call, in nanoseconds per state.

    Args:
        calls: what is timed; they take turns.
        rounds: how many turns each takes.
        seconds_each: how long a turn lasts, about; a call that takes longer is made once a turn.
    """
    timers = [call.timer() for call in calls]
    repeats = [_repeats(timer, seconds_each) for timer in timers]
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, (timer, repeat) in enumerate(zip(timers, repeats, strict=True)):
            best[k] = min(best[k], timer.timeit(repeat) / repeat)
    return [1e9 * seconds / call.states for seconds, call in zip(best, calls, strict=True)]


def _repeats(timer: timeit.Timer, seconds: float) -> int:
    """How many calls fill the time; the warm-up call, where compilation may happen, is not counted."""
    timer.timeit(1)
    repeat = 1
    while (taken := timer.timeit(repeat)) < seconds / 10:
        repeat *= 10
    return max(1, round(repeat * seconds / taken))
