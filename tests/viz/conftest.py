"""A real Chromium, driven by Playwright, for the tests of pages.

The browser is a package of the operating system (Debian: ``apt-get install chromium``), not of Python: where it is not
found, or Playwright is not, these tests are skipped and say so. It draws in software, so viewports are small, scenes
are tiny, and tests wait for the state of the scene, never for a time.
"""

from __future__ import annotations

import os
import shutil

import pytest

from tests.viz.browser import ARGUMENTS, Tab

VIEWPORT = {"width": 640, "height": 380}


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `test`)")
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium (Debian: apt-get install chromium): pages are not tested in a browser")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, headless=True, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_tab(chromium):
    """Opens pages that remember what their consoles say; all are closed at the end of the file."""
    contexts = []

    def opened():
        contexts.append(chromium.new_context(viewport=VIEWPORT, device_scale_factor=1, reduced_motion="reduce"))
        return Tab(contexts[-1].new_page())

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def tab(open_tab):
    """A fresh page; its console must have said nothing bad."""
    opened = open_tab()
    yield opened
    opened.page.context.close()
    assert opened.errors == []
