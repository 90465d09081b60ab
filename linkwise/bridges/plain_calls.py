"""Calls of compiled functions as other libraries see them: batches, several results, inputs by place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.functions.function import CompiledFunction

Shape = tuple[int, ...]


def batch_shape(
    f: CompiledFunction,
    shapes: Sequence[Shape],
    broadcast: Callable[..., Shape] = np.broadcast_shapes,
) -> Shape:
    """The common leading axes of arguments of these shapes; raises where they do not fit the function."""
    cores = [core for _, core in f.inputs]
    ends = [tuple(shape[max(0, len(shape) - len(core)) :]) for shape, core in zip(shapes, cores, strict=False)]
    if ends == cores and len(shapes) == len(cores):
        try:
            return broadcast(*(s[: len(s) - len(core)] for s, core in zip(shapes, cores, strict=True)))
        except (TypeError, ValueError):
            pass
    f.general(*(np.zeros([int(n) for n in shape]) for shape in shapes))  # which says what is wrong
    raise AssertionError("unreachable")


def as_tuple(f: CompiledFunction, result: Any) -> tuple[Any, ...]:
    """The outputs of a call, one or several."""
    return (result,) if f.result_type is None else tuple(result)


def names_of(f: CompiledFunction, places: Sequence[int]) -> tuple[str, ...]:
    """Names of inputs by their places."""
    return tuple(f.inputs[k][0] for k in places)
