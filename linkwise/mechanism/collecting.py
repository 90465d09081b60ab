"""Making a great many objects that all stay: the collector of cycles would look through them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 2000
"""Bodies from which the pause is worth it."""


@contextmanager
def paused(count: int) -> Iterator[None]:
    """No search for cycles meanwhile, where so many bodies are at work and it was on.

    What was made joins the objects that have long been there, else the next search would begin with all of it.
    """
    if count < MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # else others rely on what is frozen
            gc.freeze()
            gc.unfreeze()
        gc.enable()
