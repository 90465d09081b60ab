"""The op table of LLVM: how each operation of a program is written.

One row per operation, in the order of :data:`linkwise.trace.block.OPS`; behind them those of
:mod:`linkwise.targets.llvm.fusing`, which alone says what is fused. The transcendental ones are
not here: they are computed for many values at once, see :mod:`linkwise.targets.llvm.transcendental`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from linkwise.targets.llvm.ir import FunctionText, LaneShape

Writer = Callable[..., str]  # (function, shape, *argument names) -> name of the result


def _real(op: str) -> Writer:
    def write(f: FunctionText, t: LaneShape, a: str, b: str) -> str:
        return f.emit(f"{op} {t.real} {a}, {b}")

    return write


def _negate(f: FunctionText, t: LaneShape, a: str) -> str:
    return f.emit(f"fneg {t.real} {a}")


@cache
def _fma(t: LaneShape) -> tuple[str, str, str]:
    """Function that rounds a product and a sum once: the type of its values, its name, and its declaration."""
    real, name = t.real, f"{t.real} @llvm.fma.{t.mangled}"
    return real, name, f"declare {name}({real}, {real}, {real})"


def _fused(product: str = "", other: str = "") -> Writer:
    """A product and a sum rounded once, either of them negated first where it says ``fneg``: LLVM makes one of all."""

    def write(f: FunctionText, t: LaneShape, a: str, b: str, c: str) -> str:
        real, name, declaration = _fma(t)
        f.declare(declaration)
        a = f.emit(f"{product} {real} {a}") if product else a
        c = f.emit(f"{other} {real} {c}") if other else c
        return f.emit(f"call {name}({real} {a}, {real} {b}, {real} {c})")

    return write


def _intrinsic(name: str) -> Writer:
    def write(f: FunctionText, t: LaneShape, a: str) -> str:
        return f.call(t.real, f"llvm.{name}.{t.mangled}", [(t.real, a)])

    return write


def _compare(relation: str) -> Writer:
    def write(f: FunctionText, t: LaneShape, a: str, b: str) -> str:
        return f.emit(f"fcmp {relation} {t.real} {a}, {b}")

    return write


def _pick(relation: str) -> Writer:
    """min and max are a comparison and a choice, which is what the vector instructions do."""

    def write(f: FunctionText, t: LaneShape, a: str, b: str) -> str:
        holds = f.emit(f"fcmp {relation} {t.real} {a}, {b}")
        return f.emit(f"select {t.truth} {holds}, {t.real} {a}, {t.real} {b}")

    return write


def _truth(op: str) -> Writer:
    def write(f: FunctionText, t: LaneShape, a: str, b: str) -> str:
        return f.emit(f"{op} {t.truth} {a}, {b}")

    return write


def _not(f: FunctionText, t: LaneShape, a: str) -> str:
    true = "true" if t.lanes == 1 else "splat (i1 true)"
    return f.emit(f"xor {t.truth} {a}, {true}")


def _select(f: FunctionText, t: LaneShape, c: str, a: str, b: str) -> str:
    return f.emit(f"select {t.truth} {c}, {t.real} {a}, {t.real} {b}")


TABLE: dict[str, Writer] = {
    "add": _real("fadd"),
    "sub": _real("fsub"),
    "mul": _real("fmul"),
    "div": _real("fdiv"),
    "neg": _negate,
    "abs": _intrinsic("fabs"),
    "sqrt": _intrinsic("sqrt"),
    "min": _pick("olt"),
    "max": _pick("ogt"),
    "lt": _compare("olt"),
    "le": _compare("ole"),
    "eq": _compare("oeq"),
    "and": _truth("and"),
    "or": _truth("or"),
    "not": _not,
    "hold": lambda f, t, a: a,
    "select": _select,
    "fma": _fused(),
    "fms": _fused(other="fneg"),
    "fnma": _fused(product="fneg"),
    "fnms": _fused("fneg", "fneg"),
}
