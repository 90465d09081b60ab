"""Pages in a real browser: what it shows is what the model says."""

import sys
import time

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.viz.viewer import view
from tests.files.recording import robot_files

pytest.importorskip("viser")


@pytest.fixture(scope="module")
def arm():
    with view(samples.planar_arm(), port=0, open=False) as page:
        yield page


@pytest.fixture(scope="module")
def arm_tab(open_tab, arm):
    tab = open_tab()
    tab.open(arm.url, arm.figure.name_of(2))
    return tab


def test_a_slider_moves_the_robot(arm_tab, arm):
    arm_tab.shows(arm.figure, arm.model.poses(arm.model.neutral()))
    arm_tab.type_into(arm.freedoms[1].label, 0.7)
    arm_tab.shows(arm.figure, arm.model.poses(np.array([0.0, 0.7, 0.0])))
    np.testing.assert_allclose(arm.q, [0.0, 0.7, 0.0], atol=1e-9)


def test_a_drag_changes_q(arm_tab, arm):
    arm.q = [0.4, 0.5, 0.3]
    before = arm.q
    arm_tab.shows(arm.figure, arm.model.poses(before))
    arm_tab.until("() => window.__viserTestpoints.rendererInfo.render.calls > 3")
    with arm_tab.dragging(arm_tab.on_screen(arm.figure.name_of(2)), (48, -32), "Control") as until:
        until(lambda: np.abs(arm.q - before).max() > 0.02)
    arm_tab.while_not(lambda: arm._grip is None)
    arm_tab.shows(arm.figure, arm.model.poses(arm.q))


def test_the_simulation_advances(arm_tab, arm):
    arm.q = arm.model.neutral()
    arm_tab.shows(arm.figure, arm.model.poses(arm.model.neutral()))
    arm_tab.choose("Live")
    arm_tab.press("Run")
    arm_tab.page.get_by_text("Running at").wait_for()
    arm_tab.moves_from(arm.figure.name_of(2), arm.model.poses(arm.model.neutral())[2, :3, 3])
    arm_tab.press("Pause")
    arm_tab.page.get_by_text("Paused at").wait_for()
    assert arm.run.t > 0.0 and arm.moment.v.any()
    arm_tab.shows(arm.figure, arm.model.poses(arm.q))
    arm_tab.press("Reset")
    arm_tab.shows(arm.figure, arm.model.poses(arm.model.neutral()))
    assert arm_tab.errors == []


@pytest.mark.slow
def test_a_body_is_pushed_over_the_ground(tab):
    """A crate that the mouse lifts and draws aside lands on the floor, at rest; its contact forces are arrows."""
    tab.page.set_viewport_size({"width": 560, "height": 260})
    b = lw.ModelBuilder("crate")
    b.add_body("crate", joint=lw.Free(), shape=lw.shapes.box((0.4, 0.3, 0.2), density=100.0))
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    with view(model, [1, 0, 0, 0, 0, 0, 0.1], port=0, open=False) as page:
        page.worker.call(lambda: page.stage.shade(False))
        crate = page.figure.name_of(0)
        tab.open(page.url, crate)
        tab.choose("Show")
        tab.page.get_by_label("contact forces", exact=True).check()
        tab.choose("Live")
        page.worker.call(lambda: page.live._advance(0.01))  # what is compiled is compiled before the mouse comes
        tab.press("Run")
        tab.page.get_by_text("Running at").wait_for()
        tab.page.wait_for_timeout(2000)  # it is drawn some times before the mouse looks for it
        with tab.dragging(tab.on_screen(crate, (0.0, 0.0, 0.1)), (-60, -60), "Control") as until:
            until(lambda: np.linalg.norm(page.run.q[4:6]) > 0.1)
        tab.while_not(lambda: page._grip is None and np.abs(page.run.v).max() < 1e-6)
        np.testing.assert_allclose(page.run.q[6], 0.1, atol=1e-6)
        tab.until(
            "(n) => { const s = window.__viserSceneTree.getState()[n]; return s && s.visibility !== false; }",
            f"{page.figure.root}/contact forces",
        )
        arrows = next(overlay for overlay in page.shown.overlays[0] if overlay.title == "contact forces")
        ends = np.asarray(arrows.handles[0].points)
        np.testing.assert_allclose((ends[:, 1] - ends[:, 0]).sum(axis=0)[2], page.figure.looks.size, rtol=1e-3)


@pytest.mark.slow
def test_toggles_show_what_they_say(tab):
    with view(samples.four_bar(), port=0, open=False) as page:
        tab.open(page.url, page.figure.name_of(2))
        tab.choose("Show")
        for title in ("joint axes", "body frames", "mass centres", "inertia ellipsoids", "closures"):
            tab.page.get_by_label(title, exact=True).check()
        root = page.figure.root
        wanted = [
            *(f"{page.figure.name_of(2)}/{n}" for n in ("axes", "frame", "mass", "inertia")),
            f"{root}/closures/gaps",
        ]
        for name in wanted:
            tab.until(
                "(n) => { const s = window.__viserSceneTree.getState()[n]; return s && s.visibility !== false; }", name
            )
        tab.page.get_by_label("joint axes", exact=True).uncheck()
        tab.until("(n) => window.__viserSceneTree.getState()[n].visibility === false", wanted[0])


def file_of(name):
    return next(file for file in robot_files(".urdf") if file.name == name)


@pytest.mark.slow
def test_talos_with_its_meshes_is_there_in_five_seconds(chromium, open_tab):
    """From the file to every body in the scene of the browser; the best of three, for busy machines."""
    found = []
    for _ in range(3):
        tab = open_tab()
        tab.page.goto("about:blank")
        start = time.perf_counter()
        model = lw.load(file_of("talos_full_v2.urdf"), floating=True)
        with view(model, port=0, open=False) as page:
            assert page.figure.looks.missing == ()
            tab.open(page.url, page.figure.name_of(len(model.bodies) - 1))
            found.append(time.perf_counter() - start)
        tab.page.context.close()
    print(f"Talos: {min(found):.2f} s", file=sys.stderr)
    assert min(found) < 5.0
