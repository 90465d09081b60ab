"""Values, names and functions that the expressions of xacro files know: plain data, and tables.

Each function takes and gives plain data, and costs no more than its arguments are large: what could grow is bounded
before it is computed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import NoReturn, TypeAlias, cast

from linkwise.dataclass import dataclass
from linkwise.errors import ModelFileError

Value: TypeAlias = "bool | int | float | str | list[Value] | tuple[Value, ...] | dict[Value, Value] | None"
"""Data: all that an expression can give."""

LONGEST_TEXT = 100_000
MOST_ITEMS = 100_000
MOST_BITS = 4096
_LARGEST_FACTORIAL = 500
GRAMMAR = "numbers, strings, lists, dicts, arithmetic, comparisons, conditions, indices, properties, functions of math"


class Names(ABC):
    """Names that have a meaning: a scope of properties, or a namespace."""

    @abstractmethod
    def find(self, name: str) -> object:
        """The value, :class:`FileCall` or :class:`Names` of a name; KeyError where there is none."""


@dataclass(frozen=True)
class Namespace(Names):
    """Functions and constants under names."""

    members: Mapping[str, object]

    def find(self, name: str) -> object:
        """The member of this name."""
        return self.members[name]


@dataclass(frozen=True)
class FileCall:
    """A function that expressions may call.

    Args:
        call: takes and gives plain data, at a cost that grows no faster than its arguments.
        named: whether it takes arguments by name.
    """

    call: Callable[..., Value]
    named: bool = False


def plain(value: object) -> Value:
    """The value, if it is plain data."""
    if value is None or isinstance(value, (bool, int, float, str, list, tuple, dict)):
        return value
    return refuse(f"a value of the type {type(value).__name__}")


def refuse(what: str) -> NoReturn:
    """Raise the error for what expressions may not use."""
    raise ModelFileError(
        f"an expression uses {what}, which is refused",
        allowed=GRAMMAR,
        do="write the value out, or expand the file with the program xacro, if you trust it",
    )


def too_large(what: str, got: object, allowed: object) -> NoReturn:
    """Raise the error for what would grow without bounds."""
    raise ModelFileError(what, got=got, allowed=f"at most {allowed}")


def checked_text(text: str) -> str:
    """The text, if it is not too long."""
    if len(text) > LONGEST_TEXT:
        too_large("a list or text is too large", f"{len(text)} characters", f"{LONGEST_TEXT} characters")
    return text


def shortened(text: str) -> str:
    """The text, or its beginning, for a message."""
    return text if len(text) <= 200 else text[:197] + "..."


def power(base: float, exponent: float) -> object:
    """``base ** exponent``, if that is a real number and not too large."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and int(base).bit_length() * exponent > 2 * MOST_BITS:
        too_large("a whole number is too large", f"{base} ** {exponent}"[:80], f"{MOST_BITS} bits")
    result: object = base**exponent
    if isinstance(result, complex):
        raise ValueError("a root of a negative number")
    return result


def _range(*ends: int) -> list[Value]:
    found = range(*ends)
    if abs(found.stop - found.start) // abs(found.step) > MOST_ITEMS:
        too_large("a range is too long", f"range{ends}", f"{MOST_ITEMS} items")
    return list(found)


def _round(number: float, digits: int | None = None) -> float:
    if digits is not None and abs(digits) > 400:
        too_large("too many digits to round to", digits, "400")
    return round(number, digits)


def _numbers(items: Iterable[Value]) -> list[float]:
    found = list(items)
    if not all(isinstance(item, (int, float)) for item in found):
        raise TypeError("only numbers have a sum or a product")
    return cast("list[float]", found)


def _sum(items: Iterable[Value], start: Value = 0) -> float:
    return sum(_numbers((start, *items)))


def _product(items: Iterable[Value]) -> float:
    product: int | float = 1
    for number in _numbers(items):
        product *= number
        bounded(product)
    return product


def bounded(number: object) -> None:
    """Refuse whole numbers that are too large."""
    if isinstance(number, int) and number.bit_length() > MOST_BITS:
        too_large("a whole number is too large", f"more than {MOST_BITS} bits", f"{MOST_BITS} bits")


def _least_common(left: int, right: int) -> int:
    result = math.lcm(left, right)
    bounded(result)
    return result


def _counted(function: Callable[..., int], most: int) -> Callable[..., int]:
    """A function of combinatorics, whose cost grows with its argument and not with the digits of that."""

    def limited(*arguments: int) -> int:
        if any(abs(argument) > most for argument in arguments):
            too_large("a whole number is too large for this function", arguments, most)
        return function(*arguments)

    return limited


def _replace(text: str, old: str, new: str) -> str:
    if text.count(old) * len(new) > LONGEST_TEXT:
        too_large("a list or text is too large", f"{text.count(old)} times {len(new)} characters", LONGEST_TEXT)
    return text.replace(old, new)


def _join(separator: str, parts: Iterable[str]) -> str:
    found = list(parts)
    if len(found) * len(separator) > LONGEST_TEXT:
        too_large("a list or text is too large", f"{len(found)} parts", f"{LONGEST_TEXT} characters")
    return separator.join(found)


_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees dist erf erfc exp exp2 expm1 fabs floor"
    " fmod frexp fsum gamma gcd hypot isclose isfinite isinf isnan isqrt ldexp lgamma log log10 log1p log2 modf"
    " nextafter pow radians remainder sin sinh sqrt tan tanh trunc ulp"
)
MAP = FileCall(lambda: None)
"""Recognised by itself: its first argument is a function, which is no value."""
_PLAIN: dict[str, Callable[..., Value]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "divmod": divmod,
    "enumerate": lambda *items: list(enumerate(*items)),
    "float": float,
    "int": int,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "range": _range,
    "reversed": lambda items: list(reversed(items)),
    "round": _round,
    "sorted": sorted,
    "str": str,
    "sum": _sum,
    "tuple": tuple,
    "zip": lambda *lists: list(zip(*lists, strict=False)),
}
METHODS: dict[tuple[type, str], FileCall] = {
    **{
        (str, name): FileCall(getattr(str, name))
        for name in ("capitalize", "count", "endswith", "find", "lower", "lstrip", "rstrip", "split", "startswith")
    },
    (str, "strip"): FileCall(str.strip),
    (str, "title"): FileCall(str.title),
    (str, "upper"): FileCall(str.upper),
    (str, "replace"): FileCall(_replace),
    (str, "join"): FileCall(_join),
    (dict, "get"): FileCall(dict.get),
    (dict, "keys"): FileCall(lambda whole: list(whole)),
    (dict, "values"): FileCall(lambda whole: list(whole.values())),
    (dict, "items"): FileCall(lambda whole: list(whole.items())),
    (list, "count"): FileCall(list.count),
    (list, "index"): FileCall(list.index),
}


def builtin_names() -> dict[str, object]:
    """The functions and constants that every expression knows: those of `math`, and a few of Python's."""
    numbers: dict[str, object] = {name: FileCall(getattr(math, name)) for name in _MATH.split()}
    numbers |= {name: getattr(math, name) for name in ("e", "inf", "nan", "pi", "tau")}
    numbers |= {
        "comb": FileCall(_counted(math.comb, _LARGEST_FACTORIAL)),
        "factorial": FileCall(_counted(math.factorial, _LARGEST_FACTORIAL)),
        "lcm": FileCall(lambda *whole: reduce(_least_common, whole, 1)),
        "perm": FileCall(_counted(math.perm, _LARGEST_FACTORIAL)),
        "prod": FileCall(_product),
    }
    few: dict[str, object] = {name: FileCall(call) for name, call in _PLAIN.items()}
    few |= {"dict": FileCall(dict, named=True), "map": MAP}
    words = {"true": True, "false": False}
    return {**words, **numbers, **few, "math": Namespace(numbers), "python": Namespace(few)}
