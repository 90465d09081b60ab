"""Calls of compiled functions as other libraries see them: batches, several results, inputs by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.functions.function import CompiledFunction


def batch_shape(f: CompiledFunction, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common leading axes of the arguments."""
    leading = [shape[: len(shape) - len(core)] for shape, (_, core) in zip(shapes, f.inputs, strict=True)]
    return np.broadcast_shapes(*leading)


def as_tuple(f: CompiledFunction, result: Any) -> tuple[Any, ...]:
    """The outputs of a call, one or several."""
    return (result,) if f.result_type is None else tuple(result)


def as_result(f: CompiledFunction, arrays: Sequence[Any]) -> Any:
    """Arrays as a call returns them."""
    return arrays[0] if f.result_type is None else f.result_type._make(arrays)


def names_of(f: CompiledFunction, places: Sequence[int]) -> tuple[str, ...]:
    """Names of inputs by their places."""
    return tuple(f.inputs[k][0] for k in places)
