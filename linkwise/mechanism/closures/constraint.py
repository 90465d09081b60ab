"""Interface of constraints, over any scalar: one residual text each; and functions of the user's own.

There are two families, and each may speak of places, of rates, or of both. These four signatures are all that a solver
calls:

=============================================  =======================================================================
``Closure.residual(X, t)``                     of the pose X of frame b in frame a
``Closure.rate_residual(X, V, t)``             of X and the twist V of b relative to a, [ω; v] at b's origin, b's axes
``Relation.residual(q, t)``                    of the coordinates q of the joints it names
``Relation.rate_residual(q, v, t)``            of those and their rates v
=============================================  =======================================================================

Each returns a list with one number for each name in ``equations`` (or ``rate_equations``), zero where the constraint
holds and nowhere else: for turns see :func:`linkwise.joints.directions.half_angle`. Nothing is written
about derivatives: J_c v, J_c and the part of ë without v̇ come from dual numbers run through these texts. So a text is
smooth near where it holds, and uses only arithmetic and the functions of :mod:`linkwise.spatial.scalar`. Equations in
metres come first, then pure numbers. The equations of a closure that are named after an axis measure along or about
that axis of frame a, with slope one where the closure holds: the multiplier of such an equation is the force or moment
on b along or about it, at b's origin; a bears the opposite.

A rate equation is one that no equation between places could stand for (rolling, a skate). It need not be linear in
the rates: its rows are its derivatives by them.

To add a kind, write one file with the methods below, in this order, and name it in ``closures/__init__.py``. What a
joint leaves free is said by the joint type itself (:meth:`linkwise.Joint.closing_residual`).
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import ClassVar, Self, TypeVar

from linkwise.errors import InputError
from linkwise.joints.directions import RelativePose
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Motion


class WithNumbers:
    """A constraint with fields that may be run-time parameters."""

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields that hold functions of the user's, with the names of their arguments; a model keeps their formulas."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """Their names; each is a number or several, or, where it cannot be a parameter now, something else."""
        return ()

    @property
    def kind(self) -> str:
        """The name of the kind, for messages."""
        return type(self).__name__

    def nominal(self, name: str) -> tuple[float, ...] | None:
        """The numbers of such a field; None if it has none (a length that is a function of time)."""
        value = getattr(self, name)
        if isinstance(value, (float, int)):
            return (float(value),)
        return tuple(value) if isinstance(value, tuple) else None

    def with_numbers(self, values: Mapping[str, Flat]) -> Self:
        """A copy in which such fields have other values, of any scalar, unchecked."""
        changed = copy(self)
        for name, value in values.items():
            several = isinstance(getattr(self, name), tuple)
            object.__setattr__(changed, name, tuple(value) if several else value[0])
        return changed


class Closure(WithNumbers, ABC):
    """A constraint between two frames, a and b. Frozen, hashable, comparable; kept by pickling."""

    @property
    def joins_origins(self) -> bool:
        """Whether the first three equations are X.p itself: the origins coincide. No other equation may look at X.p.

        How the two origins move apart can then be said in any axes, turning or not; see
        :func:`linkwise.algorithms.equations.relative_motion`.
        """
        return False

    @property
    @abstractmethod
    def equations(self) -> tuple[str, ...]:
        """A short name for each equation between places."""

    @property
    def rate_equations(self) -> tuple[str, ...]:
        """A short name for each equation between rates."""
        return ()

    @property
    def time_dependent(self) -> bool:
        """Whether the residual changes with t alone."""
        return False

    @abstractmethod
    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        """One number for each of ``equations``; all zero where the closure holds."""

    def rate_residual(self, X: RelativePose, V: Motion, t: Scalar) -> list[Scalar]:
        """One number for each of ``rate_equations``; V is the twist of b relative to a, in b's frame."""
        return []


class Relation(WithNumbers):
    """A constraint between joint coordinates, their rates, or both. Frozen, hashable, comparable; kept by pickling."""

    single_freedoms: ClassVar[bool] = False
    """Whether each joint named must have one freedom."""

    joints: tuple[str, ...] | None = None
    """The joints whose coordinates, one after the other, are q (and whose rates are v); None: those of the model.

    A joint that follows another has its own coordinate here.
    """
    equations: tuple[str, ...] = ()
    """A short name for each equation between places."""
    rate_equations: tuple[str, ...] = ()
    """A short name for each equation between rates."""
    time_dependent: bool = False
    """Whether a residual changes with t alone."""

    def residual(self, q: Flat, t: Scalar) -> list[Scalar]:
        """One number for each of ``equations``; all zero where the relation holds."""
        return []

    def rate_residual(self, q: Flat, v: Flat, t: Scalar) -> list[Scalar]:
        """One number for each of ``rate_equations``; all zero where the relation holds."""
        return []


FunctionT = TypeVar("FunctionT")


def checked_function(function: FunctionT, what: str, allowed: str) -> FunctionT:
    """The function, if it can be called."""
    if not callable(function):
        raise InputError(f"{what} is not a function", got=repr(function), allowed=allowed)
    return function


def arguments_of(function: Callable[..., object], what: str, allowed: Sequence[int], do: str) -> int:
    """Number of positional arguments without defaults that a function takes."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
        found = sum(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)
        got = f"{found} arguments"
    except (TypeError, ValueError):
        found, got = -1, "a function whose arguments are not known"
    if found not in allowed:
        raise InputError(f"{what} takes the wrong number of arguments", got=got, allowed=do)
    return found


def equation_names(equations: int | Sequence[str], what: str) -> tuple[str, ...]:
    """Names for the equations: those given, or numbers from 1."""
    if isinstance(equations, str):
        return (equations,)
    try:
        names = tuple(str(name) for name in (range(1, equations + 1) if isinstance(equations, int) else equations))
    except TypeError:
        names = ()
    if not names:
        raise InputError(
            f"{what} has no equations", got=repr(equations), allowed="their number (1, 2, …) or a name for each"
        )
    if len(set(names)) < len(names):
        raise InputError(f"two equations of {what} have one name", got=repr(names), allowed="each name once")
    return names


def values_of(
    function: Callable[..., Scalar | Flat], arguments: Sequence[Scalar | Flat], n: int, what: str
) -> list[Scalar]:
    """The n numbers a function returns; a single one need not be in a list."""
    try:
        result = function(*arguments)
        values = list(result) if hasattr(result, "__len__") else [result]
    except (TypeError, AttributeError, IndexError) as error:
        raise InputError(
            f"{what} failed",
            got=f"{type(error).__name__}: {error}",
            allowed="arithmetic and lw.math.sin, lw.math.cos, lw.math.sqrt, …, no branches on values (lw.math.where)",
            do="use lw.math.sin, lw.math.cos, … instead of math functions",
        ) from error
    if len(values) != n:
        raise InputError(f"{what} returned the wrong number of values", got=str(len(values)), allowed=str(n))
    return values
