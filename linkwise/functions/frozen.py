"""Functions as they were at one moment: traced, and run again on any scalars without asking Python for them.

A function may read what changes: a global, an array, an attribute of an object. Whatever is made of a frozen one, now
or later, is made of the same formulas.

Functions that do more than compute are noticed, and refused. What is traced runs once for a simulation, and is a
formula from then on. A function that counts its calls, appends to a list or draws random numbers would do so while it
is traced and never again. So it is traced twice: both traces must be alike, and what it refers to must be as it was.
"""

from __future__ import annotations

import inspect
import operator
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.memoized import cached_property
from linkwise.spatial import scalar
from linkwise.spatial.dual import Dual, parts_of_level
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.calls import CallingTracer
from linkwise.trace.passes import remove_dead
from linkwise.trace.program_derivatives import called, program_tangents
from linkwise.trace.recorded import Code, Recorded, code_values
from linkwise.trace.replay import NUMBERS, Table
from linkwise.trace.tracer import Traced

Structure = Any  # the place of a number among the results; for lists and dicts a structure for each part; None


def _logic(operation: Callable[..., Scalar], in_casadi: str) -> Callable[..., Scalar]:
    """An operation on truth values, for which CasADi has no operators."""

    def function(*conditions: Scalar) -> Scalar:
        if any(type(x).__module__.startswith("casadi") for x in conditions):
            return getattr(sys.modules["casadi"], in_casadi)(*conditions)
        return operation(*conditions)

    return function


ANY_SCALAR: Table = {
    **NUMBERS,
    "div": operator.truediv,
    **{name: getattr(scalar, name) for name in ("sqrt", "sin", "cos", "exp", "log", "atan2")},
    "min": scalar.minimum,
    "max": scalar.maximum,
    **{name: _logic(NUMBERS[name], f"logic_{name}") for name in ("and", "or", "not")},
    "hold": scalar.hold,
    "select": scalar.where,
}
"""Operations on the scalars of any library, as a function itself would have done them."""


@dataclass(frozen=True)
class FrozenFunction:
    """The formulas of a function of scalars and of flat vectors; equal to another where the formulas are.

    Args:
        program: from the arguments, by name, to all numbers of the result; with all that was computed on the way.
        structure: of the result: a number, parts in lists or dicts, or None.
        called: programs with loops that the function calls on its way, by fingerprint, and with which values.
        original: the function, asked again where it calls any: such formulas can be compared, and not run.
    """

    program: Block
    structure: Structure
    called: tuple[object, ...] = ()
    original: Callable[..., object] | None = field(default=None, compare=False)
    __name__: str = field(default="", compare=False)

    @property
    def runs(self) -> bool:
        """Whether its formulas run on other scalars; if not, the function is asked for them again."""
        return self.original is None

    @cached_property
    def _needed(self) -> Block:
        return remove_dead(self.program)

    @cached_property
    def _hash(self) -> int:
        return hash((self.program.nodes, self.program.results, repr(self.structure)))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<the formulas of {self.__name__}>"

    def __getstate__(self) -> dict[str, object]:
        """State without what follows from it; a hash is another in another process."""
        return {name: value for name, value in vars(self).items() if name not in ("_hash", "_needed")}

    @property
    def __signature__(self) -> inspect.Signature:
        """One argument for each input."""
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(spec.name, kind) for spec in self.program.inputs])

    def __call__(self, *arguments: Scalar | Flat) -> Any:
        """The result for scalars of any kind; vectors as lists."""
        if self.original is not None:
            return self.original(*arguments)
        inputs = self.program.inputs
        flat = [list(given) if spec.shape else (given,) for spec, given in zip(inputs, arguments, strict=True)]
        return _put(run_again(self._needed, flat)[0], self.structure)


def freeze(function: Callable[..., object], sizes: Mapping[str, int | None]) -> FrozenFunction:
    """The formulas of a function of vectors of these sizes, by name; None for a scalar.

    Raises whatever the function raises.
    """
    tracer = CallingTracer(holds=True)
    arguments = []
    for name, size in sizes.items():
        flat = tracer.input(name, () if size is None else (size,))
        arguments.append(flat[0] if size is None else scalar_array(flat))
    given = tuple(tracer.inputs)
    numbers: list[int] = []
    result = function(*arguments)
    structure = None if result is None else _taken(result, tracer, numbers)
    outputs = (ArraySpec("result", (len(numbers),)),)
    program = Block("frozen", tuple(tracer.nodes), given, outputs, (tuple(numbers),))
    if not tracer.calls:
        return FrozenFunction(program, structure, __name__=name_of(function))
    called = tuple((call.program and call.program.fingerprint, call.arguments) for call in tracer.calls)
    return FrozenFunction(program, structure, called, function, name_of(function))


def name_of(thing: object) -> str:
    """The name of a function, or whatever else says what this is; the same in every process."""
    own = any("__repr__" in vars(base) for base in type(thing).__mro__[:-1])  # that of object tells an address
    return str(getattr(thing, "__name__", "") or (repr(thing) if own else type(thing).__name__))


@cache
def is_of_the_user(kind: Hashable) -> bool:
    """Whether a class, or one that it is made from, is not the library's."""
    bases: tuple[type, ...] = getattr(kind, "__mro__", ())
    return any(base.__module__.partition(".")[0] not in ("linkwise", "builtins", "abc") for base in bases)


def run_again(code: Code, arguments: Sequence[Flat]) -> list[list[Scalar]]:
    """The outputs of a program or a trace, flat, for flat vectors of any scalars."""
    if isinstance(code, Recorded):
        return code_values(code, arguments, ANY_SCALAR, run_again)
    level = max((x.level for array in arguments for x in array if isinstance(x, Dual)), default=None)
    if isinstance(code, Block) or level is None:
        return called(code, arguments, ANY_SCALAR)
    parts = [parts_of_level(array, level) for array in arguments]
    numbers = [values for values, _ in parts]
    rates = program_tangents(code, numbers, [[{0: x} for x in rate] for _, rate in parts], ANY_SCALAR, run_again)
    found = run_again(code, numbers)
    return [
        [Dual(x, rate.get(0, 0.0), level) for x, rate in zip(array, moved, strict=True)]
        for array, moved in zip(found, rates, strict=True)
    ]


def _taken(result: Any, tracer: CallingTracer, numbers: list[int]) -> Structure:
    """The structure of a result; its numbers are put behind those that are there."""
    if isinstance(result, Mapping):
        return {name: _taken(part, tracer, numbers) for name, part in result.items()}
    if _has_parts(result):
        return [_taken(part, tracer, numbers) for part in result]
    numbers.append(tracer.number(result[()] if isinstance(result, np.ndarray) else result))
    return len(numbers) - 1


def _has_parts(value: object) -> bool:
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def _put(found: Flat, structure: Structure) -> Any:
    """Numbers in their places."""
    if isinstance(structure, int):
        return found[structure]
    if isinstance(structure, dict):
        return {name: _put(found, part) for name, part in structure.items()}
    return None if structure is None else [_put(found, part) for part in structure]


_DEPTH = 3
_NOT_DATA = {"linkwise", "numpy", *sys.stdlib_module_names} - {"__main__"}  # whose objects are taken as they are
_KEPT = "of one program was used in another"  # what the tracer says
_LARGE = 4096  # numbers in an array above which only some are compared


def frozen_alike(
    function: Callable[..., object],
    what: str,
    sizes: Mapping[str, int | None],
    do: str,
    whose: Callable[..., object] | None = None,
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


def checked_once(function: Callable[..., object], what: str, call: Callable[[], object]) -> None:
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


def _trace(function: Callable[..., object], sizes: Mapping[str, int | None]) -> tuple[FrozenFunction | None, str]:
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


def _shown(value: object, depth: int) -> Hashable:
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
