"""How a model comes by its functions: which text, how its sweeps run, and the shortest way to call it."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from linkwise.algorithms.catalogue import INPUTS, Trees
from linkwise.algorithms.closure_solvers import BY_NUMBERS
from linkwise.contact.catalogue import EVERY
from linkwise.errors import UnknownNameError
from linkwise.functions.call_arrays import is_one_state, is_plain_batch
from linkwise.functions.function import CompiledFunction, Relay
from linkwise.memoized import Memory, once, shadow
from linkwise.model.formulas import check_classes
from linkwise.spatial.scalar import Flat, is_exact

if TYPE_CHECKING:
    from linkwise.model.base import Group
    from linkwise.model.model import Model

Method = Callable[..., Any]
"""A method of a model, or of one of its groups."""

ANSWERED_BY_SOLVERS = ("forward_dynamics", "constraint_forces", "project_velocity", "impulse")
"""Functions that a closure solver answers: of one that looks at numbers, these run outside the compiled code."""


FUNCTIONS = {text.method: name for name, text in EVERY.items() if text.method}
"""Functions of the catalogue, by the names of the methods in groups that they are: ``constraints.rate``."""


class CatalogueMethod(NamedTuple):
    """The method, of a model or of one of its groups, that is a function of the catalogue."""

    group: str | None
    name: str
    method: Method

    def owner(self, model: Model) -> Model | Group:
        """The model, or its group that has the method."""
        return model if self.group is None else getattr(model, self.group)


METHODS: dict[str, CatalogueMethod] = {}
"""By function of the catalogue; :mod:`linkwise.model.model` fills it."""


def list_methods(model: type[Model], *groups: type[Group]) -> None:
    """Put the methods of a model and of its groups down as the functions of the catalogue that they are, made quick."""
    kinds = {group.attribute: group for group in groups}
    for function, text in EVERY.items():
        group, _, name = (text.method or function).rpartition(".")
        method: Method | None = getattr(kinds[group] if group else model, name, None)
        if method is not None:
            method.__doc__ = _with_arguments(method)
            METHODS[function] = CatalogueMethod(group or None, name, method)
            for owner in (kinds[group] if group else model).__mro__:
                if name in vars(owner) and vars(owner)[name] is method:
                    setattr(owner, name, QuickMethod(function, method))


def method_of(model: Model, function: str) -> Method:
    """The method of a model, or of one of its groups, that is this function of the catalogue; or has this name."""
    *groups, name = (EVERY[function].method or function if function in EVERY else function).split(".")
    owner: object = model
    for group in groups:
        owner = getattr(owner, group)
    method: Method = getattr(owner, name)
    return method


_MEANINGS = {name: given.meaning for name, given in INPUTS.items() if given.meaning} | {
    "body": "name of a body or frame.",
    "node": "of a flexible body, by name or number.",
    "reference": 'how the six numbers are written: ``"mixed"``, ``"local"`` or ``"world"``, as in :meth:`velocity`.',
    "order": "2 for second derivatives as well.",
    "out": "array to fill; a tuple of them where several are returned.",
    "threads": "threads to split a batch over.",
}
"""Of the arguments of methods, where a docstring says nothing of its own."""


def _with_arguments(method: Method) -> str:
    """The docstring of a method with all of its arguments, those of the catalogue as that says."""
    before, _, rest = inspect.cleandoc(method.__doc__ or "").partition("\n\nArgs:\n")
    own, _, after = rest.partition("\n\n") if rest else ("", "", "")
    if not rest:
        before, _, after = before.partition("\n\nExample:")
        after = f"Example:{after}" if after else ""
    said = {each.partition(":")[0].strip(): each for each in re.split(r"\n(?=    \w)", own)}
    known = said | {name: f"    {name}: {text}" for name, text in _MEANINGS.items() if name not in said}
    listed = [known[name] for name in inspect.signature(method).parameters if name in known]
    return "\n\n".join(filter(None, (before, "Args:\n" + "\n".join(listed) if listed else "", after)))


def made(model: Model, name: str, optional: tuple[str, ...], static: Mapping[str, object]) -> CompiledFunction:
    """A function of the catalogue for this model; see :meth:`Model.function` for the arguments."""
    name = FUNCTIONS.get(name, name)
    if name not in EVERY:
        raise UnknownNameError("function", name, EVERY)
    text = EVERY[name]
    names = (*text.inputs, *(n for n in text.optional if n in optional), *(("p",) if model._parameter_names else ()))

    def run(*flat: Flat) -> object:
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
    if model._closure_solver in BY_NUMBERS and model.closures and name in ANSWERED_BY_SOLVERS:
        from linkwise.model.null_space import SolvedByNumbers

        return SolvedByNumbers(name, run, inputs, doc, charts, model=model)
    if model._rolls:
        from linkwise.functions.rolled.choose import rolled_function

        return rolled_function(model, name, run, inputs, doc, static, charts)
    return CompiledFunction(name, run, inputs, doc, charts)


class QuickMethod:
    """A method for which, from its first call on, a builtin function stands on its owner, wherever it was taken.

    Args:
        function: the function of the catalogue that it is.
        method: of a model, or of one of its groups.
    """

    def __init__(self, function: str, method: Method) -> None:
        self.function, self.method = function, method

    def __get__(self, owner: Model | Group | None, kind: type) -> Method:
        """The plain function for a class; for a model or a group a method that may be kept."""
        if owner is None:
            return self.method
        bound: Method = self.method.__get__(owner)
        name = self.method.__name__
        if getattr(kind, name) is not self.method:  # a subclass has its own, and asks for this one by super()
            return bound
        memory = Memory.of(vars(owner).get("model", owner))
        taken = once(memory.table(_TAKEN), self.function, lambda: TakenMethod(bound))
        method: Method = vars(owner).setdefault(name, taken)
        return method


_TAKEN = "methods that were taken"


class TakenMethod(Relay):
    """A method of a model, whose calls go to a builtin function as soon as there is one."""

    __name__: str

    def __init__(self, bound: Method) -> None:
        super().__init__(bound)
        functools.update_wrapper(self, bound)
        self.__signature__ = inspect.signature(bound)  # not that of the function, which has the model in it
        self._serves_one_state: bool | None = None  # None: serves nothing yet
        self._at_names: dict[str, Method] = {}

    @property
    def __self__(self) -> Model | Group:
        """The model or its group, as of any bound method."""
        return self.ordinary.__self__  # type: ignore[attr-defined,no-any-return]

    def __get__(self, *_: object) -> Self:
        """Itself: it is bound already."""
        return self

    def serve(self, function: CompiledFunction, arrays: Sequence[object]) -> None:
        """Go to a builtin from here on, for calls with arrays like these; it hands back others."""
        one_state = is_one_state(arrays, function.inputs)
        if self._serves_one_state or (self._serves_one_state is False and not one_state):
            return
        if one_state or is_plain_batch(arrays, function.inputs):
            builtin = function.builtin(self.ordinary, self.__name__, self._shown, one_state=one_state)
            self._serves_one_state = one_state or builtin is None
            self._stand_in(builtin)

    def serve_at(self, name: str, function: CompiledFunction) -> None:
        """Go to a builtin that knows this place by its name, from the second call for it on."""
        if name not in self._at_names:
            self._at_names[name] = function.quick
        elif self._serves_one_state is None:
            self._serves_one_state = True
            from linkwise.targets.llvm.kernel import function_by_name

            table, arrays = self._at_names, len(function.inputs)
            self._stand_in(
                function_by_name(table, arrays, self.ordinary, self.__name__, self._shown, self.__doc__ or "")
            )

    @property
    def _shown(self) -> str:
        """The signature, as builtin functions can show it: without annotations."""
        signature = inspect.signature(self.ordinary)
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        return str(signature.replace(parameters=plain, return_annotation=signature.empty))

    def _stand_in(self, builtin: Method | None) -> None:
        if builtin is not None:
            self.go_to(builtin)
            shadow(self.__self__, self.__name__, builtin)

    def __reduce__(self) -> tuple[Any, ...]:
        """As any bound method is pickled."""
        return getattr, (self.__self__, self.__name__)


def install(model: Model, name: str, function: CompiledFunction, arrays: Sequence[object]) -> None:
    """After a call by a method of the model: have the next one like it answered without a detour."""
    taken = Memory.of(model).table(_TAKEN).get(name)
    if taken is not None:
        taken.serve(function, arrays)


def install_at(model: Model, name: str, body: str, function: CompiledFunction) -> None:
    """The same for a function of a place."""
    taken = Memory.of(model).table(_TAKEN).get(name)
    if taken is not None:
        taken.serve_at(body, function)
