"""Programs as CUDA: one state per thread, compiled when first called.

:mod:`~linkwise.targets.cuda.source` writes the text of a kernel, from which nothing but Python is needed;
:mod:`~linkwise.targets.cuda.runtime` compiles and launches it through CuPy, imported only there;
:mod:`~linkwise.targets.cuda.exchange` takes the arrays of other libraries and gives results back in kind.
"""
