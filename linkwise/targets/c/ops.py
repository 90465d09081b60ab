"""The op table of C: how each operation of a program is written, as an expression of its arguments.

One row per operation, in the order of :data:`linkwise.trace.ops.OPS`. ``{f}`` is the suffix of the functions
of ``math.h`` in single precision.
"""

from __future__ import annotations

import math
import struct

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
