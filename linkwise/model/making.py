"""The functions of a model: their texts, the way their sweeps run, and the shortest way to call them.

Functions that belong to a mechanism are taken as they are when a model is built. A model is frozen, and its functions
are traced one by one, whenever they are first asked for. Were a function of a joint or a closure asked each time, one
that reads what changes would make one model two.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from linkwise.algorithms.catalogue import INPUTS, Trees
from linkwise.algorithms.closure_solvers import BY_NUMBERS
from linkwise.contact.catalogue import EVERY
from linkwise.errors import ModelError, UnknownNameError
from linkwise.functions.call_arrays import is_one_state, is_plain_batch
from linkwise.functions.frozen import FrozenFunction, freeze, is_of_the_user, name_of
from linkwise.functions.function import CompiledFunction, Relay
from linkwise.joints import Joint
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.mechanism.closures.constraint import Closure, Relation
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from linkwise.memoized import Memory, once, shadow
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar, is_exact
from linkwise.spatial.vectors import Motion, Vec

if TYPE_CHECKING:
    from linkwise.mechanism.mechanism import Mechanism
    from linkwise.model.compiled_methods import Group
    from linkwise.model.model import Model


Kind = Joint | Closure | Relation
Sizes = Mapping[str, int | None]
Function = Callable[..., Scalar | Flat]
Nested = Sequence[Flat]
Instance = JointInstance | ClosureInstance | RelationInstance


def with_formulas(mechanism: Mechanism) -> dict[str, tuple[Any, ...]]:
    """The joints and the closures, where functions of the user's have a part in them, with their formulas."""
    found: dict[str, tuple[Any, ...]] = {}
    for field in ("joints", "closures"):
        instances = getattr(mechanism, field)
        if any(_has_functions(instance.type) for instance in instances):
            found[field] = tuple(
                replace(each, type=_frozen(each.type, _sizes(mechanism, each))) if _has_functions(each.type) else each
                for each in instances
            )
    return found


def _has_functions(kind: Kind) -> bool:
    """Whether a joint type or a constraint, or one inside it, has functions of the user's."""
    if kind.functions:
        return True
    return (hasattr(kind, "closure") or hasattr(kind, "joint")) and any(map(_has_functions, _inside(kind).values()))


def _inside(kind: Kind) -> dict[str, Joint | Closure]:
    """A closure in another, or the joint that it or a mirror image is of."""
    found = [(name, inner) for name in ("closure", "joint") if (inner := getattr(kind, name, None)) is not None]
    return {name: inner for name, inner in found if isinstance(inner, (Joint, Closure))}


def _frozen(kind: Any, sizes: Sizes) -> Any:
    """A copy of a joint type or a constraint with formulas in the place of functions."""
    changed = copy(kind)
    for name, arguments in kind.functions.items():
        function = getattr(kind, name)
        if callable(function) and not isinstance(function, FrozenFunction):
            timed = getattr(kind, "time_dependent", True)
            taken = {argument: sizes.get(argument) for argument in arguments if timed or argument != "t"}
            object.__setattr__(changed, name, _formula(function, taken))
    for name, inner in _inside(kind).items():
        object.__setattr__(changed, name, _frozen(inner, {"q": inner.nq} if isinstance(inner, Joint) else sizes))
    return changed


def _formula(function: Function, sizes: Sizes) -> Function:
    """The formulas of a function; itself, where it cannot be traced: what needs them then says what is wrong."""
    try:
        return replace(freeze(_of_lists(function), sizes), __name__=name_of(function))
    except Exception:  # whatever a user's function raises; it will raise it again
        return function


def _of_lists(function: Function) -> Function:
    """The function with its vectors as lists, as joints and closures give them."""
    return lambda *given: function(*(list(each) if np.ndim(each) else each for each in given))


def _sizes(mechanism: Mechanism, instance: Instance) -> Sizes:
    """Numbers in the q and v that functions of a joint or a relation take."""
    if isinstance(instance.type, Joint):
        return {"q": instance.type.nq}
    if isinstance(instance.type, Closure):
        return {}
    if instance.joints is None:
        return {"q": mechanism.nq, "v": mechanism.nv}
    joints = [mechanism.joints[k] for k in instance.joints]
    return {"q": sum(joint.nq for joint in joints), "v": sum(joint.nv for joint in joints)}


def _all(kind: Kind) -> Iterator[Any]:
    """A joint type or a constraint, and those inside it."""
    yield kind
    for inner in _inside(kind).values():
        yield from _all(inner)


# Classes of the user's own, whose methods are asked at every trace.
def check_classes(mechanism: Mechanism) -> None:
    """Refuse a mechanism in which a joint or a closure of a class of the user's says something else than it did."""
    for what, instances in (("joint", mechanism.joints), ("closure", mechanism.closures)):
        for instance in instances:
            if not any(is_of_the_user(each.__class__) for each in _all(instance.type)):
                continue
            text, sizes = _text(mechanism, instance)
            said = freeze(_of_lists(text), sizes)
            before = Memory.of(mechanism).table("formulas of classes").setdefault((what, instance.name), said)
            if said != before:
                raise ModelError(
                    f"the {what} {instance.name!r} has changed since the model was first used",
                    got=f"other formulas of {type(instance.type).__name__}, which reads what has changed",
                    allowed="a class whose methods depend on their arguments and on constants only",
                    do="build the model again, or make what changes a run-time parameter",
                )


def _text(mechanism: Mechanism, instance: Instance) -> tuple[Function, Sizes]:
    """All that a joint or a closure says, as one function."""
    kind = instance.type
    if isinstance(kind, Joint):

        def joint(q: Flat, v: Flat) -> Nested:
            R, p = kind.transform(q).matrix()
            columns = [list(column) for column in kind.subspace(q)]
            moved = [list(kind.rate(q, v)), list(kind.integrate(q, v))]
            return [*R.m, list(p), *columns, list(kind.subspace_rate(q, v)), *moved]

        return joint, {"q": kind.nq, "v": kind.nv}
    if isinstance(kind, Closure):

        def closure(R: Flat, p: Flat, V: Flat, t: Scalar) -> Nested:
            X = RelativePose(Mat3([R[0:3], R[3:6], R[6:9]]), Vec.of(p))
            return [list(kind.residual(X, t)), list(kind.rate_residual(X, Motion.of(V), t))]

        return closure, {"R": 9, "p": 3, "V": 6, "t": None}

    def relation(q: Flat, v: Flat, t: Scalar) -> Nested:
        return [list(kind.residual(q, t)), list(kind.rate_residual(q, v, t))]

    return relation, {**_sizes(mechanism, instance), "t": None}


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
