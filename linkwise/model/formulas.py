"""Functions that belong to a mechanism, as they are when a model is built.

A model is frozen, and its functions are traced one by one, whenever they are first asked for. Were a function of a
joint or a closure asked each time, one that reads what changes would make one model two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import ModelError
from linkwise.functions.frozen import FrozenFunction, freeze, is_of_the_user, name_of
from linkwise.joints import Joint
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.mechanism.closures.base import Closure, Relation
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from linkwise.memoized import Memory
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Motion, Vec

if TYPE_CHECKING:
    from linkwise.mechanism.mechanism import Mechanism

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
