"""Names that a C compiler accepts and that do not hide anything the generated code uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from linkwise.trace.block import Block
from linkwise.trace.program import Program


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
