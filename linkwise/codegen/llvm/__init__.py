"""LLVM: programs as machine code of this processor, for batches, for one state, for loops over links and over time.

:mod:`~linkwise.codegen.llvm.ops` is the table of operations, :mod:`~linkwise.codegen.llvm.source` a program's module,
:mod:`~linkwise.codegen.llvm.kernel` what runs it.
"""
