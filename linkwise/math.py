"""Functions of scalars, for functions that are compiled: numbers, traced scalars, dual numbers, symbols.

>>> from linkwise.math import *  # doctest: +SKIP
"""

from linkwise.spatial.scalar import absolute as abs
from linkwise.spatial.scalar import (
    acos,
    asin,
    atan,
    atan2,
    clip,
    cos,
    cosh,
    exp,
    hold,
    log,
    maximum,
    minimum,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    where,
)

__all__ = [
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "clip",
    "cos",
    "cosh",
    "exp",
    "hold",
    "log",
    "maximum",
    "minimum",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "where",
]
