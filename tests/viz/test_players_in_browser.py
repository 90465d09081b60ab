"""Players, saved pages and ghosts in a real browser."""

import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from tests.files.recording import robot_files

pytest.importorskip("viser")


def test_play_and_scrub_show_the_right_pose(tab):
    motion = lw.simulate(samples.planar_arm(), [0.5, 0.0, 0.0], duration=1.0, method="rk4", dt=0.01)
    with motion.view(port=0, open=False) as page:
        figure = page.figures[0]
        tab.open(page.url, figure.name_of(2))
        tab.type_into("time [s]", 0.5)
        tab.wait_for_pose(figure.name_of(2), motion.poses[50, 2, :3, 3], 2e-3)
        page.sync()
        np.testing.assert_allclose(page.t, 0.5, atol=1e-3)
        tab.shows(figure, motion.model.poses(page.moments()[0].q))
        tab.press("Play")
        tab.moves_from(figure.name_of(2), motion.poses[50, 2, :3, 3])
        tab.press("Pause")
        tab.page.get_by_role("button", name="Play", exact=True).wait_for()
        page.sync()
        assert page.t != 0.5
        tab.shows(figure, motion.model.poses(page.moments()[0].q))


def test_a_saved_page_plays_without_a_server(tab, tmp_path):
    motion = lw.simulate(samples.planar_arm(), [0.5, 0.0, 0.0], duration=1.0, method="rk4", dt=0.01)
    path = motion.save_html(tmp_path / "motion.html", fps=10)
    tab.page.context.set_offline(True)
    name = "/world/model/2: link3"
    tab.open(path.as_uri(), name)
    tab.moves_from(name, tab.pose(name)[:3])  # it plays, so it listens too
    tab.page.keyboard.press("Space")  # pause
    tab.page.locator("input").first.fill("0.5")
    tab.wait_for_pose(name, motion.poses[50, 2, :3, 3], 1e-4)
    tab.page.locator("input").first.fill("0.2")  # backwards
    tab.wait_for_pose(name, motion.poses[20, 2, :3, 3], 1e-4)
    assert [url for url in tab.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.slow
def test_ghosts_take_one_draw_call_for_each_link(tab):
    model = samples.planar_arm()
    q = np.random.default_rng(0).normal(size=(1000, 3))
    motion = lw.Trajectory([0.0, 1.0], np.stack([q, q + 0.1], 1), np.zeros((1000, 2, 3)), model=model)
    with motion.view(port=0, open=False) as page:
        assert page.ghosts.count == 1000
        tab.open(page.url, "/world/ghosts/2")
        tab.until("() => window.__viserTestpoints.rendererInfo.render.calls > 5")
        tab.until("() => window.__viserTestpoints.rendererInfo.render.triangles > 1000")
        with_ghosts = tab.draw_calls
        page.worker.call(lambda: [setattr(handle, "visible", False) for handle in page.ghosts.handles.values()])
        tab.until("(n) => window.__viserTestpoints.rendererInfo.render.calls < n", with_ghosts)
        assert with_ghosts - tab.draw_calls <= len(model.bodies)


@pytest.mark.slow
def test_a_thousand_pandas(tab):
    """One draw call for each link and 28 bytes for each link and ghost in a picture."""
    model = lw.load(next(file for file in robot_files(".urdf") if file.name == "panda.urdf"))
    rng = np.random.default_rng(0)
    q = np.clip(0.3 * rng.normal(size=(1000, 2, model.nq)), model.limits.lower, model.limits.upper)
    motion = lw.Trajectory([0.0, 1.0], q, np.zeros((1000, 2, model.nv)), model=model)
    with motion.view(port=0, open=False) as page:
        page.worker.call(lambda: [setattr(h, "visible", False) for k in range(9) for h in page.figures[0].surfaces(k)])
        tab.open(page.url, "/world/ghosts/8")
        tab.until("() => window.__viserTestpoints.rendererInfo.render.triangles > 100000")
        with_ghosts = tab.draw_calls
        page.worker.call(lambda: [setattr(handle, "visible", False) for handle in page.ghosts.handles.values()])
        tab.until("() => window.__viserTestpoints.rendererInfo.render.triangles < 50000")
        calls = with_ghosts - tab.draw_calls
        print(f"1000 Pandas: {calls} draw calls", file=sys.stderr)
        assert calls <= len(model.bodies) == 9
