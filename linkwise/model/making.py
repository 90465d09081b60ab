"""How a model comes by its functions: which text, how its sweeps run, and the shortest way to call it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.algorithms.catalogue import INPUTS, Trees
from linkwise.algorithms.closed_catalogue import EVERY
from linkwise.algorithms.closure_solvers import BY_NUMBERS
from linkwise.errors import UnknownNameError
from linkwise.functions.call_arrays import is_one_state, is_plain_batch
from linkwise.functions.function import CompiledFunction
from linkwise.model.formulas import check_classes
from linkwise.model.memory import Memory, shadow
from linkwise.spatial.scalar import is_exact

if TYPE_CHECKING:
    from linkwise.model.base import Group
    from linkwise.model.model import Model

ANSWERED_BY_SOLVERS = ("forward_dynamics", "constraint_forces", "project_velocity", "impulse")
"""Functions that a closure solver answers: of one that looks at numbers, these run outside the compiled code."""


FUNCTIONS = {text.method: name for name, text in EVERY.items() if text.method}
"""Functions of the catalogue, by the names of the methods in groups that they are: ``constraints.rate``."""


class CatalogueMethod(NamedTuple):
    """The method, of a model or of one of its groups, that is a function of the catalogue."""

    group: str | None
    name: str
    method: Callable[..., Any]

    def owner(self, model: Model) -> Model | Group:
        """The model, or its group that has the method."""
        return model if self.group is None else getattr(model, self.group)


METHODS: dict[str, CatalogueMethod] = {}
"""By function of the catalogue; :mod:`linkwise.model.model` fills it."""


def list_methods(model: type[Model], *groups: type[Group]) -> None:
    """Put the methods of a model and of its groups down as the functions of the catalogue that they are."""
    kinds = {group.attribute: group for group in groups}
    for function, text in EVERY.items():
        group, _, name = (text.method or function).rpartition(".")
        if method := getattr(kinds[group] if group else model, name, None):
            METHODS[function] = CatalogueMethod(group or None, name, method)


def method_of(model: Model, function: str) -> Callable[..., Any]:
    """The method of a model, or of one of its groups, that is this function of the catalogue; or has this name."""
    *groups, name = (EVERY[function].method or function if function in EVERY else function).split(".")
    for group in groups:
        model = getattr(model, group)
    return getattr(model, name)  # type: ignore[no-any-return]


def made(model: Model, name: str, optional: tuple[str, ...], static: dict[str, Any]) -> CompiledFunction:
    """A function of the catalogue for this model; see :meth:`Model.function` for the arguments."""
    name = FUNCTIONS.get(name, name)
    if name not in EVERY:
        raise UnknownNameError("function", name, EVERY)
    text = EVERY[name]
    names = (*text.inputs, *(n for n in text.optional if n in optional), *(("p",) if model._parameter_names else ()))

    def run(*flat: Sequence[Any]) -> Any:
        check_classes(model)
        given = dict(zip(names, flat, strict=True))
        exact = any(is_exact(x) for array in flat for x in array)
        plain = model._exact_trees if exact else model._trees
        trees = Trees(model, given.pop("p", None), exact) if model._parameter_names else plain
        arguments = [given.get(n) for n in (*text.inputs, *text.optional)]
        result = text.function(trees, *arguments, **static)
        return np.empty(text.empty, object) if isinstance(result, list) and not result else result

    doc = (METHODS[name].method.__doc__ or "") if name in METHODS else ""
    inputs = [(n, INPUTS[n].shape(model)) for n in names]
    charts = {n: model._chart for n in names if INPUTS[n].divided == "q"}
    if model.closure_solver in BY_NUMBERS and model.closures and name in ANSWERED_BY_SOLVERS:
        from linkwise.model.state_by_state import solved_by_numbers

        return solved_by_numbers(model, name, run, inputs, doc, charts)
    if model._rolls:
        from linkwise.functions.rolled.choose import rolled_function

        return rolled_function(model, name, run, inputs, doc, static, charts)
    return CompiledFunction(name, run, inputs, doc, charts)


def install(model: Model, name: str, function: CompiledFunction, arrays: Sequence[Any]) -> None:
    """Shadow a method, on this object, by a builtin for calls like the one just served, which hands back others."""
    if name not in METHODS:
        return
    _, attribute, method = METHODS[name]
    owner = METHODS[name].owner(model)
    if getattr(type(owner), attribute) is not method:  # a subclass has its own
        return
    shadows = Memory.of(model).table("serve one state")  # by name
    one_state = is_one_state(arrays, function.inputs)
    if name in shadows and (shadows[name] or not one_state):
        return
    if one_state or is_plain_batch(arrays, function.inputs):
        bound = method.__get__(owner)
        shown = _without_annotations(inspect.signature(bound))
        fast = function.builtin(bound, attribute, shown, one_state=one_state)
        shadows[name] = one_state or fast is None
        if fast is not None:
            shadow(owner, attribute, fast)


def _without_annotations(signature: inspect.Signature) -> str:
    """A signature as builtin functions can show it."""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))
