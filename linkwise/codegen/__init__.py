"""Programs to code, for this machine and others. Nothing here knows what a robot is.

Each target is a folder: a table over :data:`linkwise.tracing.ops.OPS` (``ops.py``), a program as text (``source.py``),
what the rest of the library asks of it (``target.py``), and whatever it takes to run the result.
:mod:`~linkwise.codegen.targets` finds them. What targets share is beside them: loops around programs
(:mod:`~linkwise.tracing.program`, :mod:`~linkwise.codegen.hosted`), many steps (:mod:`~linkwise.codegen.steps`), the
cache of compiled objects and the threads.
"""
