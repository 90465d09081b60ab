"""How fast linkwise is, beside other libraries, on the machine at hand."""

import os

# What is timed is optimised code, from the first call on; first calls themselves are measured by bench.startup.
os.environ.setdefault("LINKWISE_TIER", "optimised")
