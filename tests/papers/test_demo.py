"""The report: one file that needs nothing else, with every check of the papers passed."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from linkwise import samples
from linkwise.papers import arm_figures, demo
from linkwise.papers.arm_figures import cycloidal

QUICK = (
    demo.opening_section,
    demo.unified_section,
    demo.linearization_section,
    demo.decoupled_section,
)
VOID = {"meta", "input", "br", "img", "link", "path", "use"}


@pytest.fixture(
    scope="module", params=[QUICK, pytest.param(demo.SECTIONS, marks=pytest.mark.slow)], ids=["quick", "whole"]
)
def sections(request):
    """The sections that compile little; all of them among the slow tests."""
    return request.param


@pytest.fixture(scope="module")
def page(tmp_path_factory, sections):
    shares = []
    folder = tmp_path_factory.mktemp("report")
    path = demo.make_report(folder / "demo.html", sections=sections, progress=shares.append)
    assert shares == sorted(shares)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def own(page):
    """The page without the 3-D player's document."""
    return re.sub(r'srcdoc="[^"]*"', "", page)


def test_all_checks_hold(page, sections):
    held, count = (int(x) for x in re.search(r"<b>(\d+) of (\d+)</b> checks", page).groups())
    assert held == count > (100 if sections == demo.SECTIONS else 60)
    assert '<li class="no">' not in page
    assert '<td class="no">' not in page


def test_machines_first_and_then_every_paper(own, sections):
    keys = ("see", "Jain 1991", "Jain 1993", "Saha 1999", "Featherstone 2000", "Rodriguez 1989")[: len(sections)]
    order = [own.index(f'id="s-{key}"') for key in keys]
    assert order == sorted(order)
    assert order[0] < own.index("<iframe") < own.rindex("<iframe") < own.index("How fast") < order[1]
    assert own.count("<iframe") == 3
    for printed in (
        "Table 1:",
        "Table 2:",
        "table 3",
        *(f"figure {k}" for k in (4, 7)),
        *(f"Figure {k}" for k in (5, 6, 8, 9)),
    ):
        assert printed in own, printed
    assert own.count('class="motion"') >= (10 if sections == demo.SECTIONS else 5)
    assert own.count("<svg") >= 15


def test_it_is_light_and_needs_nothing_from_outside(page, own):
    assert len(page) < 5e6  # three players
    assert not re.search(r'(src|href)="(https?:)?//', own)
    assert "url(http" not in own
    assert own.count("<script") == 1
    assert "prefers-color-scheme: dark" in own
    assert "darkMode:matchMedia" in page


def test_formulas_and_the_reason_why_counts_differ(own):
    assert own.count("<math>") > 20
    assert "seems to leave this first step out" in own


def test_figures_have_the_colours_of_the_page(own):
    """A colour of matplotlib's own would not follow day and night."""
    for svg in re.findall(r"<svg.*?</svg>", own, flags=re.DOTALL):
        assert set(re.findall(r"#[0-9a-fA-F]{6}\b", svg)) == set()


def test_ids_are_unique_and_tags_close(own):
    ids = re.findall(r'\bid="([^"]+)"', own)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'xlink:href="#([^"]+)"', own)) <= set(ids)

    class Balance(HTMLParser):
        open: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag, attrs):
            if tag not in VOID:
                self.open.append(tag)

        def handle_startendtag(self, tag, attrs):
            pass

        def handle_endtag(self, tag):
            if tag not in VOID:
                assert self.open.pop() == tag

    parser = Balance()
    parser.feed(own)
    assert parser.open == []


def test_cycloidal_motion_is_consistent():
    model = samples.stanford_arm()
    t = np.linspace(0, 10, 2001)
    q, v, vdot = cycloidal(model, arm_figures.STANFORD_START, arm_figures.STANFORD_END, t, 10.0)
    assert np.allclose(q[0], arm_figures.STANFORD_START)
    assert np.allclose(q[-1], arm_figures.STANFORD_END)
    assert np.allclose(np.gradient(q, t, axis=0)[5:-5], v[5:-5], atol=1e-5)
    assert np.allclose(np.gradient(v, t, axis=0)[5:-5], vdot[5:-5], atol=1e-5)


def test_stanford_arm_is_that_of_the_table():
    model = samples.stanford_arm()
    # Stretched out: the slide at 90° is level, so the wrist is 0.6 m along it, beside the column at height 0.2 m.
    pose = model.pose(arm_figures.STANFORD_START, "hand")
    assert np.allclose(pose[:3, 3], [-0.6, 0.1, 0.2])
    assert model.mass == pytest.approx(21.1)
    assert np.allclose(model.center_of_mass(np.zeros(6))[1], (6 * 0.1 + 4 * 0.1 + 2.1 * 0.1) / 21.1)


def test_the_force_table_is_inverse_dynamics() -> None:
    lines = demo.force_table().splitlines()
    assert len(lines) == 2 + 11
    last = [float(x) for x in lines[-1].split()]
    held = samples.stanford_arm().gravity_force(arm_figures.STANFORD_END)  # the motion ends at rest
    np.testing.assert_allclose(last[1:], held, atol=5.1e-5)
