"""How a model comes by its functions: which text, how its sweeps run, and the shortest way to call it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.catalogue import INPUTS, Trees
from linkwise.contact.catalogue import EVERY
from linkwise.algorithms.closure_solvers import BY_NUMBERS
from linkwise.errors import UnknownNameError
from linkwise.functions.call_arrays import is_one_state, is_plain_batch
from linkwise.functions.function import CompiledFunction
from linkwise.model.formulas import check_classes
from linkwise.model.memory import Memory, shadow
from linkwise.spatial.scalar import is_exact

if TYPE_CHECKING:
    from linkwise.model.model import Model

ANSWERED_BY_SOLVERS = ("forward_dynamics", "constraint_forces", "project_velocity", "impulse")
"""Functions that a closure solver answers: of one that looks at numbers, these run outside the compiled code."""


def made(model: Model, name: str, optional: tuple[str, ...], static: dict[str, Any]) -> CompiledFunction:
    """A function of the catalogue for this model; see :meth:`Model.function` for the arguments."""
    if name not in EVERY:
        raise UnknownNameError("function", name, EVERY)
    text = EVERY[name]
    names = (*text.inputs, *(n for n in text.optional if n in optional), *(("p",) if model.parameter_names else ()))

    def run(*flat: Sequence[Any]) -> Any:
        check_classes(model)
        given = dict(zip(names, flat, strict=True))
        exact = any(is_exact(x) for array in flat for x in array)
        plain = model._exact_trees if exact else model._trees
        trees = Trees(model, given.pop("p", None), exact) if model.parameter_names else plain
        arguments = [given.get(n) for n in (*text.inputs, *text.optional)]
        result = text.function(trees, *arguments, **static)
        return np.empty(text.empty, object) if isinstance(result, list) and not result else result

    doc = getattr(getattr(type(model), name, None), "__doc__", None) or ""
    inputs = [(n, INPUTS[n].shape(model)) for n in names]
    charts = {n: model.chart for n in names if INPUTS[n].divided == "q"}
    if model.closure_solver in BY_NUMBERS and model.closures and name in ANSWERED_BY_SOLVERS:
        from linkwise.model.state_by_state import solved_by_numbers

        return solved_by_numbers(model, name, run, inputs, doc, charts)
    if model.rolls:
        from linkwise.functions.rolled.choose import rolled_function

        return rolled_function(model, name, run, inputs, doc, static, charts)
    return CompiledFunction(name, run, inputs, doc, charts)


def install(
    model: Model, name: str, method: Callable[..., Any], function: CompiledFunction, arrays: Sequence[Any]
) -> None:
    """Shadow the method, on this object, by a builtin for calls like the one just served, which hands back others."""
    shadows = Memory.of(model).table("serve one state")  # by name
    one_state = is_one_state(arrays, function.inputs)
    if name in shadows and (shadows[name] or not one_state):
        return
    if one_state or is_plain_batch(arrays, function.inputs):
        bound = method.__get__(model)
        shown = _without_annotations(inspect.signature(bound))
        fast = function.builtin(bound, name, shown, one_state=one_state)
        shadows[name] = one_state or fast is None
        if fast is not None:
            shadow(model, name, fast)


def _without_annotations(signature: inspect.Signature) -> str:
    """A signature as builtin functions can show it."""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))
