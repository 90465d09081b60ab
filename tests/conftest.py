"""What every test may count on, whatever started it."""

from __future__ import annotations

import gc
import os
import signal
import sys

from hypothesis import settings

# One tier of compiled code: what a test measures or counts must not depend on when another thread is ready. The quick
# one takes LLVM a tenth of the time and rounds alike (tests/targets/llvm/test_tiers.py).
os.environ.setdefault("LINKWISE_TIER", "quick")

# Importing linkwise takes twice as long without bytecode, and hundreds of processes that tests start do it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Under nohup, or in the background of a script, SIGINT is ignored from the start: tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is not a defect: the time limits of single examples are no test of ours.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """Leave what was imported alone from here on: the collector would go through all of it again and again."""
    gc.collect()
    gc.freeze()
