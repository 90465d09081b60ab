"""The camera that follows, surfaces that bend, and what can be taken away, in a real browser."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.viz.viewer import view
from tests.viz.test_stage import falling, walker

pytest.importorskip("viser")

GAP = """([upper, lower]) => new Promise((done) => {
    const nodes = window.__viserMutable.nodeRefFromName, gaps = [], places = [];
    const look = () => {
        const skin = nodes[upper], joint = nodes[lower];
        const bones = skin.children.filter((child) => child.isBone);
        const a = bones[bones.length - 1].matrixWorld.elements, b = joint.matrixWorld.elements;
        gaps.push(Math.hypot(a[12] - b[12], a[13] - b[13], a[14] - b[14]));
        places.push(b[12] + b[13] + b[14]);
        gaps.length < 15 ? requestAnimationFrame(look) : done([gaps, places]);
    };
    requestAnimationFrame(look);
})"""
"""Over some pictures: the way from the last bone of a surface to the origin of the body that hangs there."""


def test_flexible_links_do_not_tear_while_they_play(tab):
    """In every picture the next link begins where the surface of the one before ends."""
    model = samples.flexible_arm()
    motion = lw.simulate(model, model.neutral(), duration=1.0, method="rodas4")
    with motion.view(port=0, open=False) as page:
        figure = page.figures[0]
        page.worker.call(lambda: page.shown._exaggerate(30.0))
        tab.open(page.url, f"{figure.name_of(0)}/bent0")
        page.seek(0.5)
        tab.until("(n) => window.__viserMutable.nodeRefFromName[n].children.some((c) => c.isBone)",
                  f"{figure.name_of(0)}/bent0")  # fmt: skip
        page.play()
        tab.moves_from(figure.name_of(1), figure.poses[1, :3, 3], 1e-3)
        gaps, places = tab.page.evaluate(GAP, [f"{figure.name_of(0)}/bent0", figure.name_of(1)])
        page.pause()
        assert max(gaps) < 1e-5 and np.ptp(places) > 1e-3


def test_a_saved_page_follows_without_a_server(tab, tmp_path):
    motion = falling(walker())
    path = motion.save_html(tmp_path / "fall.html", fps=10)
    name = "/world/model/0: trunk"
    tab.open(path.as_uri(), name)
    tab.page.keyboard.press("Space")  # pause
    tab.page.locator("input").first.fill("1.55")  # between two pictures
    tab.wait_for_pose(name, motion.poses[150, 0, :3, 3], 1e-4)
    X = motion.poses[150, 0]
    x, y = tab.on_screen(name, X[:3, :3].T @ (motion.model.center_of_mass(motion.q[150]) - X[:3, 3]))
    box = tab.page.locator("canvas").first.bounding_box()
    assert abs(x - box["x"] - box["width"] / 2) < 2 and abs(y - box["y"] - box["height"] / 2) < 2


def test_levers_plots_recordings_and_files(tab, tmp_path):
    b = lw.ModelBuilder("driven rod")
    b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), joint_name="pin")
    b.add_actuator(lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"pin": 1.0}), control_range=(-9, 9)))
    model = b.build()
    with view(model, port=0, open=False) as page:
        tab.open(page.url, page.figure.name_of(0))
        tab.choose("Live")
        tab.type_into("motor", 3.0)
        tab.while_not(lambda: page.run.u[0] == 3.0)
        tab.press("Record")
        tab.press("Run")
        tab.while_not(lambda: page.run.t > 0.2)
        tab.press("Pause")
        tab.press("Stop recording")
        tab.while_not(lambda: not page.run.recording)
        page.worker.call(lambda: page.live.toggle_signal("q pin"))
        tab.page.get_by_text("q pin").first.wait_for()
        motion = page.recording
        np.testing.assert_allclose(motion._values["tau"][1:], 3.0)
        whole = lw.simulate(model, [0.0], duration=motion.t[-1], dt=1e-3, method="rk4", control=lw.Drives(model, u=3.0))
        np.testing.assert_allclose(motion.q[-1], whole.q[-1], atol=1e-6)
        tab.choose("Save")
        for button, suffix, start in (("Screenshot", "png", b"\x89PNG"), ("Save page", "html", b"<!")):
            with tab.page.expect_download() as found:
                tab.press(button)
            target = tmp_path / f"x.{suffix}"
            found.value.save_as(target)
            assert found.value.suggested_filename == f"driven_rod.{suffix}"
            assert target.read_bytes().lower().startswith(start.lower())
        assert "__VISER_EMBED_DATA__" in target.read_text(encoding="utf-8")
