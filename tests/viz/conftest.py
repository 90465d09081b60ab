"""Tabs of a real Chromium, for the tests of pages.

It draws in software, so viewports are small, scenes are tiny, and tests wait for the state of the scene, never for a
time.
"""

from __future__ import annotations

import pytest

from tests.viz.browser import Tab

VIEWPORT = {"width": 640, "height": 380}


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
