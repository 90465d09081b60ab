"""A closed mechanism in a real browser: the mouse moves it, at rest and while it runs, and nothing comes apart."""

import numpy as np
import pytest

from linkwise import samples
from linkwise.viz.posing import CLOSED
from linkwise.viz.viewer import view

pytest.importorskip("viser")

COUPLER = 1


@pytest.fixture(scope="module")
def linkage():
    """A four-bar linkage, and the largest residual of all that it has shown."""
    with view(samples.four_bar(), port=0, open=False) as page:
        show = page.figure.show
        page.worst = 0.0

        def shown(q, p=None):
            page.worst = max(page.worst, float(np.abs(page.model.closure_error(q)).max()))
            show(q, p=p)

        page.figure.show = shown
        yield page


@pytest.fixture(scope="module")
def linkage_tab(open_tab, linkage):
    tab = open_tab()
    tab.open(linkage.url, linkage.figure.name_of(2))
    tab.until("() => window.__viserTestpoints.rendererInfo.render.calls > 3")
    return tab


def test_a_handle_moves_a_closed_mechanism(linkage_tab, linkage):
    tab, before = linkage_tab, linkage.q
    tab.choose("Bodies")
    tab.page.get_by_role("button", name=linkage.model.bodies[COUPLER].name).click()
    tab.until("() => window.__viserMutable.nodeRefFromName['/world/model/handle'] != null")
    tab.wait_for_pose("/world/model/handle", linkage.model.poses(linkage.q)[COUPLER, :3, 3])
    tab.until("() => window.__viserTestpoints.rendererInfo.render.calls > 10")
    size = linkage._handle_size(COUPLER)
    tip, far = (tab.on_screen("/world/model/handle", (share * size, 0.0, 0.0)) for share in (0.9, 2.0))
    with tab.dragging(tip, (far[0] - tip[0], far[1] - tip[1])) as until:  # along the arrow of x
        until(lambda: linkage.model.poses(linkage.q)[COUPLER, 0, 3] > 0.2)
    tab.while_not(lambda: not linkage._held)
    tab.shows(linkage.figure, linkage.model.poses(linkage.q))
    tab.wait_for_pose("/world/model/handle", linkage.model.poses(linkage.q)[COUPLER, :3, 3])  # it went back to its body
    assert linkage.worst < CLOSED and np.abs(linkage.q - before).max() > 0.1
    tab.page.get_by_role("button", name=linkage.model.bodies[COUPLER].name).click()  # no longer chosen


def test_a_point_of_a_closed_mechanism_follows_the_mouse(linkage_tab, linkage):
    tab = linkage_tab
    linkage.q = linkage.model.neutral()
    tab.shows(linkage.figure, linkage.model.poses(linkage.model.neutral()))
    with tab.dragging(tab.on_screen(linkage.figure.name_of(COUPLER), (0.7, 0, 0)), (60, 0), "Control") as until:
        until(lambda: np.abs(linkage.q).max() > 0.1)
    tab.while_not(lambda: linkage._grip is None)
    tab.shows(linkage.figure, linkage.model.poses(linkage.q))
    assert linkage.worst < CLOSED


def test_the_mouse_pulls_what_runs(linkage_tab, linkage):
    """Without gravity nothing moves but by the mouse; what it does is a spring's force, and it ends with the drag."""
    tab = linkage_tab
    linkage.q = linkage.model.neutral()
    tab.choose("Live")
    tab.page.get_by_label("gravity").uncheck()
    tab.press("Run")
    tab.page.get_by_text("Running at").wait_for()
    tab.shows(linkage.figure, linkage.model.poses(linkage.model.neutral()))
    assert not linkage.moment.v.any()
    with tab.dragging(tab.on_screen(linkage.figure.name_of(COUPLER), (0.7, 0, 0)), (60, 0), "Control") as until:
        until(lambda: np.abs(linkage.moment.q).max() > 0.1)
        assert linkage.run.hold.body == COUPLER and linkage.moment.f_ext[COUPLER, 3:].any()
        np.testing.assert_allclose(linkage.run.hold.point, [0.7, 0.0, 0.0], atol=0.1)
    tab.while_not(lambda: linkage.run.hold is None and not linkage.moment.f_ext.any())
    tab.press("Pause")
    tab.page.get_by_text("Paused at").wait_for()
    tab.shows(linkage.figure, linkage.model.poses(linkage.q))
    assert linkage.worst < CLOSED and tab.errors == []
