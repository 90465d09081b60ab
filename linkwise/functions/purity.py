"""Functions that do more than compute: noticed when they are traced, and refused.

What is traced runs once for a simulation, and is a formula from then on. A function that counts its calls, appends to a
list or draws random numbers would do so while it is traced and never again. So it is traced twice: both traces must be
alike, and what it refers to must be as it was.
"""

from __future__ import annotations

import random
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.functions.frozen import FrozenFunction, freeze
from linkwise.trace.tracer import Traced

_DEPTH = 3
_NOT_DATA = {"linkwise", "numpy", *sys.stdlib_module_names} - {"__main__"}  # whose objects are taken as they are
_KEPT = "of one program was used in another"  # what the tracer says
_LARGE = 4096  # numbers in an array above which only some are compared


def frozen_alike(
    function: Callable[..., Any],
    what: str,
    sizes: Mapping[str, int | None],
    do: str,
    whose: Callable[..., Any] | None = None,
    known: Collection[FrozenFunction] = (),
) -> tuple[FrozenFunction | None, str]:
    """The formulas of a function of (t, q, v, …, p); or None, and why it cannot be traced, in a line.

    Args:
        function: takes vectors of these sizes.
        what: its name, for messages.
        sizes: of its arguments by name; None for a scalar.
        do: what to write instead, if it does more than compute.
        whose: the function whose surroundings are watched, if another than the one that is traced.
        known: formulas that this function has had before, when it was looked at with care; it is then traced once.

    Raises:
        InputError: it has effects, or draws random numbers.
    """
    before = None if known else _remembered(whose or function)
    first, reason = _trace(function, sizes)
    if first in known:
        return first, ""
    before = before or _remembered(whose or function)
    second = None if first is None else _trace(function, sizes)[0]
    after = _remembered(whose or function)
    kept = _KEPT in reason  # it was traced before, and has kept something of that
    _refuse_changes(what, before, after, do, alike=not kept and first == second)
    return first, reason


def checked_once(function: Callable[..., Any], what: str, call: Callable[[], Any]) -> None:
    """Call once, and refuse if that changes what the function refers to."""
    before = _remembered(function)
    call()
    _refuse_changes(what, before, _remembered(function), "pass in what changes, as an input", alike=True)


def _refuse_changes(
    what: str, before: dict[str, Hashable], after: dict[str, Hashable], do: str, *, alike: bool
) -> None:
    changed = sorted(name for name in before if before[name] != after.get(name, before[name]))
    if changed or not alike:
        got = f"calling it changes {', '.join(changed)}" if changed else "two calls give two results"
        raise InputError(
            f"{what} does more than compute: it is traced, and its effects would happen then and never again",
            got=got,
            allowed="a function whose result depends on its arguments only",
            do=do,
        )


def _trace(function: Callable[..., Any], sizes: Mapping[str, int | None]) -> tuple[FrozenFunction | None, str]:
    """The formulas of a function; why it cannot be traced, if it cannot."""
    try:
        return freeze(function, sizes), ""
    except InputError as error:
        if _KEPT not in str(error):
            raise
        return None, str(error).splitlines()[0]
    except Exception as error:  # whatever a user's function raises
        return None, f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _remembered(function: Any) -> dict[str, Hashable]:
    """Objects that a function refers to, by name, in a form that shows changes."""
    found: dict[str, Hashable] = {
        "the state of random": hash(random.getstate()),
        "the state of numpy.random": _state_of_numpy(),
    }
    call: Any = function if isinstance(function, types.FunctionType) else getattr(function, "__func__", None)
    if call is None:
        call = getattr(type(function), "__call__", None)  # noqa: B004  # the function itself, not whether there is one
        found["its own attributes"] = _shown(function, _DEPTH)
    elif getattr(function, "__self__", None) is not None:
        found["its own attributes"] = _shown(function.__self__, _DEPTH)
    code = getattr(call, "__code__", None)
    if code is None:
        return found
    for name in _names(code):
        if name in call.__globals__:
            found[f"the global {name!r}"] = _shown(call.__globals__[name], _DEPTH)
    for name, cell in zip(code.co_freevars, call.__closure__ or (), strict=True):
        try:
            found[f"the variable {name!r}"] = _shown(cell.cell_contents, _DEPTH)
        except ValueError:  # not yet set
            found[f"the variable {name!r}"] = None
    return found


def _names(code: types.CodeType) -> set[str]:
    """Global names that a function and those inside it mention."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _state_of_numpy() -> Hashable:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002  # functions may still use it
    return (name, hash(np.asarray(keys).tobytes()), *map(str, rest))


def _shown(value: Any, depth: int) -> Hashable:
    """Value that differs when another has been changed; of what is not known to be data, only which it is."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return (type(value).__name__, repr(value))
    if isinstance(value, Traced):
        return ("traced", id(value))
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return ("objects", value.shape, tuple(id(each) for each in value.flat))
        return ("array", value.shape, hash(np.ascontiguousarray(value.reshape(-1)[:_LARGE]).tobytes()))
    if isinstance(value, np.random.Generator):
        return ("generator", str(value.bit_generator.state))
    if isinstance(value, random.Random):
        return ("generator", hash(value.getstate()))
    if depth and isinstance(value, (list, tuple, deque)):
        return (len(value), *(_shown(each, depth - 1) for each in list(value)[:_LARGE]))
    if depth and isinstance(value, dict):
        return (len(value), *((_shown(k, 0), _shown(each, depth - 1)) for k, each in list(value.items())[:_LARGE]))
    if isinstance(value, set):
        return ("set", len(value))
    module = type(value).__module__.partition(".")[0]
    if depth and module not in _NOT_DATA and hasattr(value, "__dict__"):
        if isinstance(value, (type, types.ModuleType, types.FunctionType)):
            return ("same", id(value))
        return ("object", id(value), _shown(dict(vars(value)), depth - 1))
    return ("same", id(value))
