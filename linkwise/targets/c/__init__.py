"""Programs as plain C: one self-contained file for a controller, and a test that shows it computes the right thing.

C99, no heap, no global state, nothing of the C library but ``math.h``. :func:`emit_c` writes the files,
:func:`c_source` returns the text of the function alone.
"""

from linkwise.targets.c.source import c_header, c_source
from linkwise.targets.c.target import emit_c

__all__ = ["c_header", "c_source", "emit_c"]
