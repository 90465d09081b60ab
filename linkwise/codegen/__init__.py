"""Programs to machine code. Nothing here knows what a robot is.

:mod:`~linkwise.codegen.llvm.kernel` is the way in; each target is a table over
:data:`linkwise.tracing.ops.OPS` plus the runtime that loads and calls the result.
"""
