"""The table of operations of CUDA: how each instruction is written, in C++ and in PTX.

An expression of C++ has its operands as ``{0}``, ``{1}``, ``{2}``; the names that begin with ``lw_`` are the device
functions of ``device.cuh``. In PTX ``{type}`` is f32 or f64 and ``{out}`` the result; all have their rounding, so that
the assembler fuses nothing. What has no PTX is a function of C++ there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from linkwise.targets.c.ops import TABLE as C_TABLE


class Operation(NamedTuple):
    """One instruction in both languages."""

    cpp: str
    ptx: str | None = None


TABLE: Mapping[str, Operation] = MappingProxyType(
    {
        "add": Operation(C_TABLE["add"], "add.rn.{type} {out}, {0}, {1};"),
        "sub": Operation(C_TABLE["sub"], "sub.rn.{type} {out}, {0}, {1};"),
        "mul": Operation(C_TABLE["mul"], "mul.rn.{type} {out}, {0}, {1};"),
        "fma": Operation("lw_fma({0}, {1}, {2})", "fma.rn.{type} {out}, {0}, {1}, {2};"),
        "div": Operation("lw_divide({0}, {1})"),
        "abs": Operation("lw_abs({0})", "abs.{type} {out}, {0};"),
        "sqrt": Operation("lw_sqrt({0})", "sqrt.rn.{type} {out}, {0};"),
        "atan2": Operation("lw_atan2({0}, {1})"),
        "exp": Operation("lw_exp({0})"),
        "log": Operation("lw_log({0})"),
        "min": Operation(C_TABLE["min"], "setp.lt.{type} p, {0}, {1}; selp.{type} {out}, {0}, {1}, p;"),
        "max": Operation(C_TABLE["max"], "setp.gt.{type} p, {0}, {1}; selp.{type} {out}, {0}, {1}, p;"),
        "lt": Operation(C_TABLE["lt"], "setp.lt.{type} {out}, {0}, {1};"),
        "le": Operation(C_TABLE["le"], "setp.le.{type} {out}, {0}, {1};"),
        "eq": Operation(C_TABLE["eq"], "setp.eq.{type} {out}, {0}, {1};"),
        "and": Operation(C_TABLE["and"], "and.pred {out}, {0}, {1};"),
        "or": Operation(C_TABLE["or"], "or.pred {out}, {0}, {1};"),
        "not": Operation(C_TABLE["not"], "not.pred {out}, {0};"),
        "hold": Operation(C_TABLE["hold"], "mov.{type} {out}, {0};"),
        "select": Operation(C_TABLE["select"], "selp.{type} {out}, {1}, {2}, {0};"),
    }
)

ABSORBED = ("neg", "sin", "cos")
"""Operations that are no expressions of their own: a sign belongs to an operand, sin and cos come together."""

KEEP, KEEP_TRUTH = "mov.{type} {out}, {0};", "selp.{type} {out}, {one}, {zero}, {0};"
"""Instructions of PTX for a result that is no value of its own; a truth value becomes one or zero."""
