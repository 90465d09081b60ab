"""LLVM: programs as machine code of this processor, for batches, for one state, for loops over links and over time.

:mod:`~linkwise.targets.llvm.ops` is the table of operations, :mod:`~linkwise.targets.llvm.source` a program's module,
:mod:`~linkwise.targets.llvm.kernel` what runs it.
"""
