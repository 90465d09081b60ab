"""What every test may count on, whatever started it."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.viz.browser import ARGUMENTS

# One tier of compiled code: what a test measures or counts must not depend on when another thread is ready. The quick
# one takes LLVM a tenth of the time and rounds alike (tests/targets/llvm/test_tiers.py).
os.environ.setdefault("LINKWISE_TIER", "quick")

# Importing linkwise takes twice as long without bytecode, and hundreds of processes that tests start do it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Under nohup, or in the background of a script, SIGINT is ignored from the start: tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is not a defect: the time limits of single examples, and of drawing them, are no test of ours.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """Leave what was imported alone from here on: the collector would go through all of it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def chromium():
    """A real Chromium, driven by Playwright: one for a process, since two drivers do not stand beside each other.

    The browser is a package of the operating system, not of Python: where it is not found, or Playwright is not, the
    tests of pages are skipped and say so.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `test`)")
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium (Debian: apt-get install chromium): pages are not tested in a browser")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, headless=True, args=ARGUMENTS)
        yield browser
        browser.close()
