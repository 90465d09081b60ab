"""The report in a browser: nothing runs off a phone's screen, animations play, and the robot is drawn."""

from __future__ import annotations

import pytest

from linkwise.papers import demo

pytestmark = pytest.mark.slow
WIDE = """() => [...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll, pre, svg")
  && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return demo.make_report(tmp_path_factory.mktemp("report") / "demo.html")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_a_browser_draws_it(report, chromium, width, scheme):
    tab = chromium.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    errors: list[str] = []
    asked: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(report.as_uri())
    tab.wait_for_timeout(3000)
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert tab.evaluate(WIDE) == []
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"
    assert dark == (scheme == "dark")
    motion = tab.locator(".motion").first
    motion.scroll_into_view_if_needed()
    before = motion.locator("output").inner_text()
    tab.wait_for_timeout(800)
    after = motion.locator("output").inner_text()
    assert before != after, "the animation stands still"
    motion.locator("button").click()
    held = motion.locator("output").inner_text()
    tab.wait_for_timeout(400)
    assert motion.locator("output").inner_text() == held
    inked = motion.locator("canvas").evaluate(
        "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x, i) => i % 4 == 3 && x > 0)"
    )
    assert inked
    assert tab.frames[1].locator("canvas").count() >= 1, "the robot has no picture"
    assert errors == []
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in asked)
    tab.close()
