"""The op table of CUDA: how each instruction is written, as an expression of its operands.

The names that begin with ``lw_`` are the device functions of ``device.cuh``.
"""

from __future__ import annotations

from linkwise.codegen.c.ops import TABLE as C_TABLE

TABLE: dict[str, str] = {
    **{op: C_TABLE[op] for op in ("add", "sub", "mul", "min", "max", "lt", "le", "eq", "and", "or", "not", "select")},
    "fma": "lw_fma({0}, {1}, {2})",
    "div": "lw_divide({0}, {1})",
    "abs": "lw_abs({0})",
    "sqrt": "lw_sqrt({0})",
    "atan2": "lw_atan2({0}, {1})",
    "exp": "lw_exp({0})",
    "log": "lw_log({0})",
}

# Not expressions of their own: a sign belongs to an operand, sin and cos come together.
ABSORBED = ("neg", "sin", "cos")
