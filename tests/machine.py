"""Of the machine that runs the tests: whether QEMU plays it."""

import os

import pytest

EMULATED = "QEMU_LD_PREFIX" in os.environ
"""Whether a lane runs on an emulated machine; the interpreter that ``tests/lanes/debian.py`` makes says so."""

PATIENCE = 20 if EMULATED else 1
"""How many times as long as elsewhere a process may take that is waited for."""


def real_machine(why: str) -> pytest.MarkDecorator:
    """Mark of tests that an emulated machine cannot pass, whatever the package does."""
    return pytest.mark.skipif(EMULATED, reason=f"QEMU plays this machine: {why}")
