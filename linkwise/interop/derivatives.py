"""What both libraries need: a function whose inputs are plain numbers, its product with weights, and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.compiled.function import CompiledFunction


def batch_shape(f: CompiledFunction, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The common leading axes of the arguments."""
    leading = [shape[: len(shape) - len(core)] for shape, (_, core) in zip(shapes, f.inputs, strict=True)]
    return np.broadcast_shapes(*leading)


def as_tuple(f: CompiledFunction, result: Any) -> tuple[Any, ...]:
    """The outputs of a call, one or several."""
    return (result,) if f.result_type is None else tuple(result)


def summed_to(array: Any, shape: tuple[int, ...]) -> Any:
    """A derivative with respect to the whole batch as one with respect to an argument that was broadcast."""
    extra = array.ndim - len(shape)
    if extra:
        array = array.sum(tuple(range(extra)))
    ones = tuple(k for k, n in enumerate(shape) if n == 1 and array.shape[k] != 1)
    return array.sum(ones).reshape(shape) if ones else array
