"""Derivatives of compiled functions, themselves compiled functions.

Each derivative is a program made from the program of the function by :mod:`linkwise.trace.derivatives` or
:mod:`linkwise.trace.derivatives`; values that both need are computed once, values that nothing needs are dropped.

An input that is a configuration is differentiated in its tangent space: a direction is a velocity, so a derivative has
nv columns, also where q has more numbers (quaternions) or other ones (planar joints).
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from linkwise import targets
from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.functions.call_arrays import results_like
from linkwise.functions.frozen import ANY_SCALAR
from linkwise.functions.function import Chart, CompiledFunction, check_names
from linkwise.memoized import cached_property
from linkwise.spatial import scalar
from linkwise.spatial.dual import Dual
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.trace.block import Block
from linkwise.trace.derivatives import Cotangent, Tangent
from linkwise.trace.program import Program
from linkwise.trace.recorded import (
    Recorded,
    code_cotangents,
    code_has_reverse,
    code_jacobian,
    code_tangents,
    code_values,
    refuse_again,
)
from linkwise.trace.tracer import Traced

Mode = Literal["forward", "reverse"]


class Jacobian(CompiledFunction):
    """A function that may multiply long matrices in loops: not in a thread of a GPU, which has no memory for them."""

    def program_for(self, target: targets.Target) -> Block | Program:
        """Program that a target writes."""
        return self._written_out if target.name == "cuda" else self.program

    @cached_property
    def _written_out(self) -> Block | Program:
        return self._trace(products=False)[0]


def jacobian(f: CompiledFunction, name: str, mode: Mode | None = None) -> CompiledFunction:
    """∂f/∂(input ``name``): each output gains a last axis, or two for an input that is a matrix."""
    check_names(f, [name])
    shape = _tangent_shape(f, name)
    columns = math.prod(shape)
    outputs = f.program.outputs
    rows = sum(array.size for array in outputs)
    chosen = mode or ("reverse" if rows < columns and code_has_reverse(f.differentiable) else "forward")
    if chosen not in ("forward", "reverse"):
        raise InputError("no such mode of differentiation", got=repr(mode), allowed='"forward", "reverse" or None')

    def forward(*flat: Flat) -> list[Matrix]:
        moved = _jacobian(f, flat, _unit_directions(f, flat, name))
        return [[[x.get(k, 0.0) for k in range(columns)] for x in array] for array in moved]

    def reverse(*flat: Flat) -> list[Matrix]:
        weights: list[list[Cotangent]] = []
        row = 0
        for array in outputs:
            weights.append([{row + i: 1.0} for i in range(array.size)])
            row += array.size
        back = _cotangents(f, flat, weights)
        position = _position(f, name)
        by_row = [_pulled(f, name, flat, [x.get(k, 0.0) for x in back[position]]) for k in range(rows)]
        starts = [sum(array.size for array in outputs[:i]) for i in range(len(outputs))]
        return [by_row[start : start + array.size] for start, array in zip(starts, outputs, strict=True)]

    text = forward if chosen == "forward" else reverse

    def shaped(*flat: Flat) -> object:
        return f.as_result(
            [
                results_like((*array.shape, *shape), [x for row in matrix for x in row])
                for matrix, array in zip(text(*flat), outputs, strict=True)
            ],
        )

    return Jacobian(f"{f.name}_jacobian_{name}", shaped, f.inputs, _doc("The Jacobian", f, name), f.charts)


def jacobians(f: CompiledFunction, names: Sequence[str]) -> CompiledFunction:
    """∂f/∂(each input), a named tuple ``(dq, dv, …)``, of a function that returns one array.

    All are carried through the function together, by forward mode: what they share is computed once.
    """
    check_names(f, names)
    if len(f.program.outputs) != 1 or not names:
        raise InputError(
            f"{f.name} has no Jacobians that are one array each",
            got=f"{len(f.program.outputs)} outputs, {len(names)} inputs",
            allowed="a function that returns one array, and the names of inputs",
            do="jacobian(name) takes functions of several outputs",
        )
    (output,) = f.program.outputs
    shapes = [_tangent_shape(f, name) for name in names]
    # Its fields are named after the inputs, which mypy wants to know beforehand.
    kind = namedtuple("Jacobians", [f"d{name}" for name in names])  # type: ignore[misc]

    def text(*flat: Flat) -> object:
        directions: list[list[Tangent]] = [[{} for _ in values] for values in flat]
        first = 0
        for name, shape in zip(names, shapes, strict=True):
            place = _position(f, name)
            units = _unit_directions(f, flat, name)[place]
            directions[place] = [{first + k: x for k, x in unit.items()} for unit in units]
            first += math.prod(shape)
        (moved,) = _jacobian(f, flat, directions)
        found, first = [], 0
        for shape in shapes:
            own = range(first, first + math.prod(shape))
            found.append(results_like((*output.shape, *shape), [x.get(k, 0.0) for x in moved for k in own]))
            first = own.stop
        return kind(*found)

    doc = _doc("The Jacobians", f, ", ".join(names))
    return Jacobian(f"{f.name}_jacobians_{'_'.join(names)}", text, f.inputs, doc, f.charts)


def gradient(f: CompiledFunction, name: str) -> CompiledFunction:
    """∇f: for a scalar output the vector of its derivatives, for any other the transposed Jacobian."""
    whole = jacobian(f, name)
    axes = len(_tangent_shape(f, name))

    def text(*flat: Flat) -> object:
        results = whole.text(*flat)
        arrays = results if f.result_type is not None else [results]
        return f.as_result([_axes_first(array, axes) for array in arrays])

    return CompiledFunction(f"{f.name}_gradient_{name}", text, f.inputs, _doc("The gradient", f, name), f.charts)


def hessian(f: CompiledFunction, name: str, other: str | None = None) -> CompiledFunction:
    """∂²f/∂(``name``)∂(``other``): the Jacobian's Jacobian; the axis of ``other`` comes last."""
    first = jacobian(f, name)
    second = jacobian(first, other or name, "forward" if math.prod(_tangent_shape(f, other or name)) else None)
    doc = _doc("Second derivatives", f, f"{name}, {other or name}")
    return CompiledFunction(f"{f.name}_hessian_{name}_{other or name}", second.text, f.inputs, doc, f.charts)


def jvp(f: CompiledFunction, names: Sequence[str] = ()) -> CompiledFunction:
    """The product of the Jacobian with directions: takes f's inputs, then a direction ``d_name`` for each name."""
    names = tuple(names) or tuple(name for name, _ in f.inputs)
    check_names(f, names)
    cut = len(f.inputs)

    def text(*flat: Flat) -> object:
        given = dict(zip(names, flat[cut:], strict=True))
        directions: list[list[Tangent]] = []
        for (name, _), own in zip(f.inputs, flat, strict=False):
            rate = _pushed(f, name, own, given[name]) if name in given else [0.0] * len(own)
            directions.append([{0: x} for x in rate])
        moved = _tangents(f, flat[:cut], directions)
        return f.as_result(
            [
                results_like(spec.shape, [x.get(0, 0.0) for x in array])
                for array, spec in zip(moved, f.program.outputs, strict=True)
            ],
        )

    inputs = [*f.inputs, *((_new_name(f, "d", name), _tangent_shape(f, name)) for name in names)]
    return CompiledFunction(f"{f.name}_jvp", text, inputs, _doc("The derivative along", f, ", ".join(names)), f.charts)


def vjp(f: CompiledFunction, names: Sequence[str] = ()) -> CompiledFunction:
    """The product of weights with the Jacobian: takes f's inputs, then a weight ``w_output`` for each output."""
    names = tuple(names) or tuple(name for name, _ in f.inputs)
    check_names(f, names)
    cut = len(f.inputs)
    kind = tuple_of(names)

    def text(*flat: Flat) -> object:
        weights: list[list[Cotangent]] = [[{0: x} for x in array] for array in flat[cut:]]
        back = _cotangents(f, flat[:cut], weights)
        results = []
        for name in names:
            position = _position(f, name)
            flat_back = [x.get(0, 0.0) for x in back[position]]
            results.append(results_like(_tangent_shape(f, name), _pulled(f, name, flat, flat_back)))
        return results[0] if len(names) == 1 else kind(*results)

    inputs = [*f.inputs, *((_new_name(f, "w", array.name), array.shape) for array in f.program.outputs)]
    doc = _doc("Weights carried back", f, ", ".join(names))
    return CompiledFunction(f"{f.name}_vjp", text, inputs, doc, f.charts)


class ValueAndGradient(NamedTuple):
    """The number that a function returns, and its gradient."""

    value: Array
    gradient: Array


def value_and_gradient(f: CompiledFunction, names: Sequence[str]) -> CompiledFunction:
    """A number and its gradient, what both need computed once; with several names, one gradient for each."""
    if not names:
        raise InputError("value_and_gradient needs the name of an input", allowed=", ".join(n for n, _ in f.inputs))
    check_names(f, names)
    if len(f.program.outputs) != 1 or f.program.outputs[0].size != 1:
        raise InputError(
            f"{f.name} does not return a single number, so it has no gradient",
            got=", ".join(f"{array.name} {array.shape}" for array in f.program.outputs),
            do="jacobian, jvp and vjp take functions of any shape",
        )
    kind: Any = ValueAndGradient if len(names) == 1 else tuple_of(("value", *(f"d_{name}" for name in names)))

    def text(*flat: Flat) -> object:
        ((number,),) = code_values(f.differentiable, flat, ANY_SCALAR)
        back = _cotangents(f, flat, [[{0: 1.0}]])
        gradients = []
        for name in names:
            own = [x.get(0, 0.0) for x in back[_position(f, name)]]
            gradients.append(results_like(_tangent_shape(f, name), _pulled(f, name, flat, own)))
        return kind(results_like(f.program.outputs[0].shape, [number]), *gradients)

    doc = _doc("The value and the gradient", f, ", ".join(names))
    return CompiledFunction(f"{f.name}_value_and_gradient_{'_'.join(names)}", text, f.inputs, doc, f.charts)


def componentwise(f: CompiledFunction) -> CompiledFunction:
    """Function that is differentiated number by number, configurations too."""
    if not f.charts:
        return f
    known: CompiledFunction | None = f.__dict__.get("_componentwise")
    if known is None:
        known = f.__dict__["_componentwise"] = CompiledFunction(f.name, f.text, f.inputs, f.__doc__ or "")
        known.origin = lambda: (componentwise, (f,))
    return known


def to_numbers(chart: Chart, size: int) -> CompiledFunction:
    """Direction of the numbers of q, from a configuration q and a direction of its tangent space."""
    inputs = [("q", (size,)), ("v", (chart.size,))]
    return CompiledFunction("rate", lambda q, v: list(chart.rate(q, v)), inputs)


def to_tangents(chart: Chart, size: int) -> CompiledFunction:
    """Derivatives in the tangent space of q, from a configuration q and derivatives by its own numbers."""
    text = CompiledFunction("pulled", lambda q, w: w, [("q", (size,)), ("w", (size,))], charts={"q": chart})
    return CompiledFunction("pulled", lambda q, w: _pulled(text, "q", [q], w), text.inputs)


def tuple_of(names: Sequence[str]) -> Any:
    """A named tuple of derivatives."""
    return namedtuple("Cotangents", list(names))


def _tangents(
    f: CompiledFunction, flat: Sequence[Flat], directions: Sequence[Sequence[Tangent]]
) -> list[list[Tangent]]:
    _refuse_duals(f, flat)
    return code_tangents(f.differentiable, flat, directions, ANY_SCALAR)


def _jacobian(
    f: CompiledFunction, flat: Sequence[Flat], directions: Sequence[Sequence[Tangent]]
) -> list[list[Tangent]]:
    """Tangents along many directions."""
    _refuse_duals(f, flat)
    for x in (x for array in flat for x in array[:1]):
        if isinstance(x, Traced) and not isinstance(f.program, Block):  # of straight-line code the order stays
            x.tracer.side_by_side = True
    return code_jacobian(f.differentiable_by_many, flat, directions, ANY_SCALAR)


def _cotangents(
    f: CompiledFunction, flat: Sequence[Flat], weights: Sequence[Sequence[Cotangent]]
) -> list[list[Cotangent]]:
    _refuse_duals(f, flat)
    return code_cotangents(f.differentiable, flat, weights, ANY_SCALAR)


def _refuse_duals(f: CompiledFunction, flat: Sequence[Flat]) -> None:
    """Dual numbers ask for a derivative more."""
    if any(isinstance(x, Dual) for array in flat for x in array) and isinstance(f.differentiable, Recorded):
        refuse_again(f.name)


def _new_name(f: CompiledFunction, letter: str, name: str) -> str:
    """``d_q``; where the function has such an input already, being a derivative itself, ``dd_q``, and so on."""
    known = {n for n, _ in f.inputs}
    word = letter
    while f"{word}_{name}" in known:
        word += letter
    return f"{word}_{name}"


def _position(f: CompiledFunction, name: str) -> int:
    return [n for n, _ in f.inputs].index(name)


def _tangent_shape(f: CompiledFunction, name: str) -> tuple[int, ...]:
    chart = f.charts.get(name)
    return dict(f.inputs)[name] if chart is None else (chart.size,)


def _pushed(f: CompiledFunction, name: str, values: Flat, direction: Flat) -> list[Scalar]:
    """A direction of the tangent space as one of the input's own numbers."""
    chart = f.charts.get(name)
    return list(direction) if chart is None else list(chart.rate(values, direction))


def _pulled(f: CompiledFunction, name: str, flat: Sequence[Flat], weights: Flat) -> list[Scalar]:
    """Derivatives with respect to the input's own numbers as ones in its tangent space."""
    chart = f.charts.get(name)
    if chart is None:
        return list(weights)
    total: list[Scalar] = []
    for rate in _chart_columns(chart, flat[_position(f, name)]):
        entry: Scalar = 0.0
        for r, w in zip(rate, weights, strict=True):
            if not scalar.is_zero(r) and not scalar.is_zero(w):
                entry = entry + r * w
        total.append(entry)
    return total


def _chart_columns(chart: Chart, values: Flat) -> list[list[Scalar]]:
    return [list(chart.rate(values, [1.0 if i == j else 0.0 for i in range(chart.size)])) for j in range(chart.size)]


def _unit_directions(f: CompiledFunction, flat: Sequence[Flat], name: str) -> list[list[Tangent]]:
    directions: list[list[Tangent]] = [[{} for _ in values] for values in flat]
    place = directions[_position(f, name)]
    chart = f.charts.get(name)
    if chart is None:
        for k, tangent in enumerate(place):
            tangent[k] = 1.0
        return directions
    for k, rate in enumerate(_chart_columns(chart, flat[_position(f, name)])):
        for tangent, x in zip(place, rate, strict=True):
            if not scalar.is_zero(x):
                tangent[k] = x
    return directions


def _axes_first(array: object, axes: int) -> Array:
    whole = np.asarray(array, dtype=object)
    return np.moveaxis(whole, range(whole.ndim - axes, whole.ndim), range(axes))


def _doc(what: str, f: CompiledFunction, names: str) -> str:
    return f"{what} of {f.name} with respect to {names}."
