"""Contact in pages: points that press, their forces, cones of friction; and a ground under live simulations."""

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.viz.live import LiveRun, methods_of
from linkwise.viz.markers import Touches, cones
from linkwise.viz.recording import motion_html
from tests.contact.scenes import G, block, placed

pytest.importorskip("viser")


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return block().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))


@pytest.fixture(scope="module")
def motion(model: lw.Model) -> lw.Trajectory:
    return lw.simulate(model, placed(0.2), [0, 0, 0, 1.0, 0, 0], duration=0.4, dt=0.002, method="moreau")


def test_points_that_press(motion: lw.Trajectory) -> None:
    assert len(Touches.of(motion.contacts, 1).points) == 0  # it flies
    there = Touches.of(motion.contacts, len(motion.t) - 1)
    np.testing.assert_allclose(there.points[:, 2], 0.0, atol=1e-9)
    np.testing.assert_allclose(there.forces.sum(axis=0)[2], G, rtol=1e-9)
    np.testing.assert_allclose(there.friction, 0.5)


def test_forces_lie_within_cones(motion: lw.Trajectory) -> None:
    """Lines of a cone have the slope of friction."""
    touches = Touches.of(motion.contacts, len(motion.t) - 1)
    lines = cones(touches, 0.1)
    spokes = lines[: len(lines) // 2]
    way = spokes[:, 1] - spokes[:, 0]
    np.testing.assert_allclose(np.hypot(way[:, 0], way[:, 1]), 0.5 * way[:, 2], atol=1e-12)


def test_points_of_a_pile() -> None:
    b = lw.ModelBuilder("stack")
    for k in range(9):
        b.add_body(f"box {k}", joint=lw.Free(), shape=lw.shapes.box((0.1, 0.1, 0.1), density=1000))
    pile = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    q0 = np.concatenate([[1, 0, 0, 0, 0, 0, 0.1 * k + 0.05] for k in range(9)])
    stack = lw.simulate(pile, q0, duration=0.004, dt=0.002)
    there = Touches.of(stack.contacts, len(stack.t) - 1)
    np.testing.assert_allclose(np.abs(there.forces[:, 2]).sum(), 45 * G, rtol=1e-6)
    np.testing.assert_allclose(np.abs(there.normals[:, 2]), 1.0)
    assert len(motion_html(stack, fps=100)) > len(motion_html(stack, fps=100, show=()))


def test_the_player_shows_them(motion: lw.Trajectory) -> None:
    with motion.view(port=0, open=False) as page:
        for title in ("contact points", "contact forces", "friction cones"):
            assert title in page.shown.switches
        overlays = {overlay.title: overlay for overlay in page.shown.overlays[0]}
        page.seek(0.4)
        for title in ("contact points", "contact forces", "friction cones"):
            page.worker.call(lambda title=title: overlays[title].show(True, page.moments()[0]))
        arrows = np.asarray(overlays["contact forces"].handles[0].points)
        whole = (arrows[:, 1] - arrows[:, 0]).sum(axis=0)
        np.testing.assert_allclose(whole[2], 0.33 * overlays["contact forces"].size, rtol=1e-3)  # the weight
        assert np.abs(np.asarray(overlays["contact points"].handles[0].points)[:, 2]).max() < 1e-3
        page.seek(0.0)
        assert not overlays["contact forces"].handles[0].visible


def test_saved_pages_have_them(motion: lw.Trajectory, tmp_path: Path) -> None:
    bare = len(motion_html(motion, fps=10, show=()))
    assert len(motion_html(motion, fps=10)) > bare
    written = motion.save_html(tmp_path / "block.html", fps=10, show=["contact forces", "friction cones"])
    assert written.stat().st_size > bare
    with pytest.raises(lw.LinkwiseError, match="contact forces"):
        motion.save_html(tmp_path / "block.html", show=["contact force"])


def test_live_on_the_ground_and_pushed_by_the_mouse(model: lw.Model) -> None:
    assert methods_of(model) == ("moreau",)
    run = LiveRun(model, placed(0.05), dt=0.002)
    run.advance(0.5)
    assert abs(run.q[6] - 0.05) < 1e-9
    touches = run.moment.touches
    assert touches is not None
    np.testing.assert_allclose(touches.forces.sum(axis=0), [0, 0, G], atol=1e-9)
    run.take(0, np.zeros(3), run.q[4:] + np.array([0.02, 0, 0]))  # a gentle pull, which friction holds
    run.advance(0.2)
    assert abs(run.q[4]) < 1e-9
    run.take(0, np.zeros(3), run.q[4:] + np.array([0.5, 0, 0]))
    run.advance(0.5)
    assert run.q[4] > 0.05
    assert abs(run.q[6] - 0.05) < 1e-3
