"""The report page: one file that fetches nothing, with members that play."""

import re

import numpy as np
import pytest
import scipy.stats as st

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError
from linkwise.papers.animation import SCRIPT
from tests.studies import studies


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    q0 = st.norm(0.5, 0.1)
    results = lw.ensemble(
        samples.planar_arm(), {"q0": [q0, 0.0, 0.0], "v0": [st.norm(), 0.0, 0.0]}, 64 * 4, design="saltelli", seed=1,
        duration=0.3, keep=["final", {"speed": studies.speed}], failure=lambda t: np.abs(t.v[:, -1, 0]) > 8.0,
    )  # fmt: skip
    path = results.report(tmp_path_factory.mktemp("report") / "page.html", count=2)
    return results, path, path.read_text(encoding="utf-8")


def test_it_says_what_was_found(page):
    results, _, text = page
    for heading in ("How members ended", "Distributions", "Sensitivity", "The worst members", "What made this"):
        assert f"<h2>{heading}</h2>" in text
    assert str(results.failure_rate().hits) in text
    first, second = results.worst("speed", 2)
    assert f"member {first}: " in text
    assert f"member {second}: " in text
    assert results.manifest["model"]["hash"] in text


def test_it_fetches_nothing_and_runs_what_draws_motions(page):
    text = page[2]
    assert text.count("<script") == 1 and f"<script>{SCRIPT}</script>" in text
    links = re.findall(r'(?:src|href)="(.*?)"', text)
    assert all(link.startswith(("#", "page_members/")) for link in links)


def test_members_play(page, chromium):
    """In a browser: the drawing moves, and stands still after a click on its button."""
    tab = chromium.new_page(viewport={"width": 960, "height": 600}, reduced_motion="no-preference")
    tab.goto(page[1].as_uri())
    tab.locator(".gallery .motion").first.scroll_into_view_if_needed()
    picture = "() => document.querySelector('.gallery canvas').toDataURL()"
    first = tab.evaluate(picture)
    tab.wait_for_function(f"first => ({picture})() !== first", arg=first, polling=50)
    tab.locator(".gallery button").first.click()
    still = tab.evaluate(picture)
    tab.wait_for_timeout(200)
    assert tab.evaluate(picture) == still
    tab.close()


def test_an_unfinished_ensemble_has_no_report(tmp_path):
    def stop(fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lw.ensemble(samples.planar_arm(), {}, 20, duration=0.1, batch=4, store=tmp_path / "s", progress=stop)
    with pytest.raises(InputError, match="not finished"):
        lw.studies.open(tmp_path / "s").report(tmp_path / "page.html")
