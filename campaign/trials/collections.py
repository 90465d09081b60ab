"""Hundreds of compiled functions thrown away at once, in cycles, in any order, while others are being called."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np

import linkwise as lw
from campaign.trial import Log, Trial, said
from linkwise import samples

FUNCTIONS = 100
_TEXTS = (
    lambda m, q: 2.0 * q[0] + 1.0,
    lambda m, q: q * q,
    lambda m, q: (q[0] * q[1], q + 1.0),
    lambda m, q: {"a": q[0] - q[1], "b": q * 3.0},
)
_Q = np.array([0.5, 2.0, 3.0])
_RIGHT = ([2.0], _Q * _Q, [1.0, *(_Q + 1.0)], [-1.5, *(_Q * 3.0)])


class _Holder:
    """A thing in a cycle."""

    def __init__(self, function: Any) -> None:
        self.function, self.me = function, self


def _some_functions(model: lw.Model, rng: np.random.Generator, count: int) -> list[tuple[int, Any]]:
    made = []
    for _ in range(count):
        k = int(rng.integers(len(_TEXTS)))
        function = lw.compile(_TEXTS[k], model, inputs={"q": 3}, name="f")
        if rng.random() < 0.8:
            function(_Q)  # makes the single-state function, a builtin with its own machine code
        made.append((k, function))
    return made


def _call(k: int, function: Any) -> None:
    result = function(_Q)
    got = np.concatenate([np.ravel(x) for x in result]) if isinstance(result, tuple) else np.ravel(result)
    assert np.array_equal(got, np.ravel(_RIGHT[k])), "a function gives something else after a collection"


def collection(model: lw.Model, rng: np.random.Generator) -> None:
    """Make a hundred functions, tie them into cycles, keep a few, let the others go in one of several ways."""
    made = _some_functions(model, rng, FUNCTIONS)
    kept = [made[i] for i in rng.permutation(len(made))[:3]]
    way = int(rng.integers(4))
    singles = [function.single for _, function in made if vars(function).get("single") is not None]
    if way == 0:  # one large cycle
        holders = [_Holder(function) for _, function in made]
        for a, b in zip(holders, holders[1:] + holders[:1], strict=True):
            a.next = b  # type: ignore[attr-defined]
        del holders, a, b
    elif way == 1:  # a cycle for each, through the builtin itself
        for single in singles:
            holder = _Holder(single)
            holder.list = [holder, single]  # type: ignore[attr-defined]
        if singles:
            del holder, single
    elif way == 2:  # no cycles: freed one by one, in any order
        order = rng.permutation(len(made))
        while len(order):
            made[order[0]] = (0, None)
            order = order[1:]
    del singles
    made.clear()
    if way == 3:  # collected from another thread
        thread = threading.Thread(target=gc.collect)
        thread.start()
        for k, function in kept:
            _call(k, function)
        thread.join()
    else:
        gc.collect()
    for k, function in kept:
        _call(k, function)


class Collections(Trial):
    """Garbage collections."""

    name, unit, target, chunk = "collections", f"collections of {FUNCTIONS} compiled functions", 10**4, 40
    cached = True

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Make, drop, collect, call."""
        model = samples.stanford_arm()
        gc.disable()  # collections happen where the trial says so
        for number in log.numbers(numbers):
            try:
                collection(model, np.random.default_rng([seed, number]))
            except Exception as error:
                log.fail(number, said(error))
