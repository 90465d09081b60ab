"""The report: one file that needs nothing else, with every check of the papers' examples passed."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from linkwise import demo, models
from linkwise.report.motions import cycloidal


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return demo.make_report(tmp_path_factory.mktemp("report") / "demo.html").read_text(encoding="utf-8")


def test_all_checks_hold(page):
    assert page.count("<li>") == 12
    assert '<li class="no">' not in page


def test_four_figures_and_nothing_from_outside(page):
    assert page.count("<svg") == 4
    assert "<script" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "url(http" not in page


def test_ids_are_unique_and_tags_close(page):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'xlink:href="#([^"]+)"', page)) <= set(ids)

    class Balance(HTMLParser):
        open: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag, attrs):
            if tag != "meta":
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parser = Balance()
    parser.feed(page)
    assert parser.open == []


@pytest.mark.slow
def test_a_browser_draws_it(page, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no headless browser")
    import matplotlib.image

    (tmp_path / "demo.html").write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,3600"]
    picture = tmp_path / "demo.png"
    subprocess.run(
        [browser, *options, f"--screenshot={picture}", (tmp_path / "demo.html").as_uri()],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    pixels = matplotlib.image.imread(picture)[..., :3]
    inked = (pixels < 0.9).any(axis=2)
    assert 0.02 < inked.mean() < 0.3
    bands = inked.reshape(12, 300, -1).any(axis=(1, 2))
    assert bands.all(), "a part of the page is blank"
    assert not inked[:, -60:].any(), "something runs off the right edge"


def test_cycloidal_motion_is_consistent():
    model = models.stanford_arm()
    t = np.linspace(0, 10, 2001)
    q, v, vdot = cycloidal(model, demo.STANFORD_START, demo.STANFORD_END, t, 10.0)
    assert np.allclose(q[0], demo.STANFORD_START)
    assert np.allclose(q[-1], demo.STANFORD_END)
    assert np.allclose(np.gradient(q, t, axis=0)[5:-5], v[5:-5], atol=1e-5)
    assert np.allclose(np.gradient(v, t, axis=0)[5:-5], vdot[5:-5], atol=1e-5)


def test_stanford_arm_is_that_of_the_table():
    model = models.stanford_arm()
    # Stretched out: the slide at 90° is level, so the wrist is 0.6 m along it, beside the column at height 0.2 m.
    pose = model.pose(demo.STANFORD_START, "hand")
    assert np.allclose(pose[:3, 3], [-0.6, 0.1, 0.2])
    assert model.mass == pytest.approx(21.1)
    assert np.allclose(model.center_of_mass(np.zeros(6))[1], (6 * 0.1 + 4 * 0.1 + 2.1 * 0.1) / 21.1)


def test_the_force_table_is_inverse_dynamics() -> None:
    lines = demo.force_table().splitlines()
    assert len(lines) == 2 + 11
    last = [float(x) for x in lines[-1].split()]
    held = models.stanford_arm().gravity_force(demo.STANFORD_END)  # the motion ends at rest
    np.testing.assert_allclose(last[1:], held, atol=5.1e-5)
