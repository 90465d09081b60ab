"""Text of C that all writers share: operations, identifiers, lists over several lines, tables of constants, comments.

The table of operations says how each is written, as an expression of its arguments: one row per operation, in the order
of :data:`linkwise.trace.block.OPS`. ``{f}`` is the suffix of the functions of ``math.h`` in single precision.
"""

from __future__ import annotations

import math
import re
import struct
import textwrap
from collections.abc import Iterable, Sequence

from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.program import Program

TABLE: dict[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "abs": "fabs{f}({0})",
    "sqrt": "sqrt{f}({0})",
    "sin": "sin{f}({0})",
    "cos": "cos{f}({0})",
    "atan2": "atan2{f}({0}, {1})",
    "exp": "exp{f}({0})",
    "log": "log{f}({0})",
    "min": "({0} < {1}) ? {0} : {1}",
    "max": "({0} > {1}) ? {0} : {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "eq": "{0} == {1}",
    "and": "{0} && {1}",
    "or": "{0} || {1}",
    "not": "!{0}",
    "hold": "{0}",
    "select": "{0} ? {1} : {2}",
}


def rounded(value: float, bits: int) -> float:
    """A number as it is in a precision."""
    if bits == 64 or not math.isfinite(value):
        return value
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def literal(value: float, bits: int) -> str:
    """A number exactly: a short decimal for eighths, else hexadecimal; in parentheses if negative."""
    value = rounded(value, bits)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(value) if abs(value) < 1e6 and (8 * value).is_integer() else value.hex()
    text += "f" if bits == 32 else ""
    return f"({text})" if text.startswith("-") else text


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _words("""
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    and and_eq asm bitand bitor bool catch class compl const_cast constexpr decltype delete dynamic_cast explicit export
    false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    reinterpret_cast static_assert static_cast template this thread_local throw true try typeid typename using virtual
    wchar_t xor xor_eq main NAN INFINITY
""")

# What math.h declares, and what every C program has anyway: such a name would hide the function, or clash with it.
_MATH = _words("""
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma
    fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf
    nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn signbit sin sincos sinh sqrt
    tan tanh tgamma trunc y0 y1 yn gamma drem significand isnan isinf isfinite isnormal fpclassify
    abs labs llabs div ldiv lldiv abort exit free malloc calloc realloc printf puts index rindex time read write
""")

# What the generated code calls its own values, and what a kernel has besides its arrays.
_OWN = re.compile(
    r"[tw]\d*(_\d+)?|lw_.*|unused\d+|REAL|LW_.*|count|steps?|first|rows|lane|warp|inside|tile|frame|largest"
)


def identifier(name: str, taken: Iterable[str] = ()) -> str:
    """A C and C++ identifier as close to ``name`` as can be, and none of those already taken."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII) or "f"
    if text[0].isdigit() or text.startswith("_"):
        text = "x" + text
    while text in _KEYWORDS or text in taken or _MATH & {text, text[:-1]} or _OWN.fullmatch(text):
        text += "_"
    return text


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """One identifier for each name, all different."""
    found: list[str] = []
    for name in names:
        found.append(identifier(name, [*taken, *found]))
    return found


def function_name(program: Block | Program) -> str:
    """Name of the function of a program."""
    return identifier(program.name)


def array_names(program: Block | Program, function: str | None = None) -> tuple[list[str], list[str]]:
    """Names of the input and output parameters of a function."""
    taken = function_name(program) if function is None else function
    names = identifiers([a.name for a in (*program.inputs, *program.outputs)], [taken])
    return names[: len(program.inputs)], names[len(program.inputs) :]


_WIDTH = 100


def wrapped(head: str, parts: Sequence[str], tail: str, none: str = "void") -> list[str]:
    """A list of parameters or arguments on one line, or one a line."""
    line = head + (", ".join(parts) or none) + tail
    if len(line) <= _WIDTH:
        return [line]
    return [head, *(f"    {part}," for part in parts[:-1]), f"    {parts[-1]}{tail}"]


def literals(values: Iterable[float], bits: int) -> list[str]:
    """Numbers for an initialiser."""
    return [literal(float(value), bits).strip("()") for value in values]


def constants(kind: str, name: str, values: Sequence[str]) -> list[str]:
    """An array of constants."""
    filled = textwrap.wrap(", ".join(values) or "0", _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return [f"static const {kind} {name}[{max(1, len(values))}] = {{", *(f"    {line}" for line in filled), "};"]


def comment(name: str, real: str, arrays: Sequence[tuple[str, Sequence[tuple[str, str]]]], last: str) -> list[str]:
    """The comment above a function: the arrays it takes by titles, with a word on the size of each."""
    width = max((len(each) for _, rows in arrays for each, _ in rows), default=0)
    lines = [f"/* {name.replace('*/', '* /')}: generated by linkwise; do not edit.", " *"]
    for title, rows in arrays:
        lines.append(f" * {title} ({real}, SI units, row-major):")
        lines += [f" *   {each.ljust(width)}  {size}" for each, size in rows]
    *above, below = textwrap.wrap(last, _WIDTH - 6)
    return [*lines, " *", *(f" * {line}" for line in above), f" * {below} */"]


def shape_of(spec: ArraySpec) -> str:
    """The size of an array, and its shape where it is a matrix."""
    shape = " x ".join(map(str, spec.shape)) if spec.shape else "one number"
    return f"{spec.size}: {shape}" if len(spec.shape) > 1 else str(spec.size) if spec.shape else shape
