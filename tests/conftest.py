"""What every test may count on, whatever started it."""

from __future__ import annotations

import signal

from hypothesis import settings

# Under nohup, or in the background of a script, SIGINT is ignored from the start: tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is not a defect: the time limits of single examples are no test of ours.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
