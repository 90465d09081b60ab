"""What every test may count on, whatever started it."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# One tier of compiled code: what a test measures or counts must not depend on when another thread is ready.
os.environ.setdefault("LINKWISE_TIER", "optimised")

# Under nohup, or in the background of a script, SIGINT is ignored from the start: tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is not a defect: the time limits of single examples are no test of ours.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
