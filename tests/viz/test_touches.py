"""Contact in pages: points that press, their forces, cones of friction; and a ground under live simulations."""

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.viz.live import LiveRun, methods_of
from linkwise.viz.looks import looks_of
from linkwise.viz.markers import ContactForceArrows, ContactPointDots, FrictionCones, Touches, cones, shortened
from linkwise.viz.recording import motion_html
from linkwise.viz.stage import floor_height
from linkwise.viz.video import pictures
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
        np.testing.assert_allclose(whole[2], overlays["contact forces"].size, rtol=1e-3)  # the weight
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


def test_videos_have_them(model: lw.Model, motion: lw.Trajectory) -> None:
    last, size = Touches.of(motion.contacts, len(motion.t) - 1), 0.2
    tips = [solid.vertices[:, 2].max() for solid in ContactForceArrows.solids(last, model, size)]
    np.testing.assert_allclose(np.sum(tips), size, rtol=1e-6)  # the weight is as long as the model
    dots = [solid.vertices.mean(axis=0) for solid in ContactPointDots.solids(last, model, size)]
    np.testing.assert_allclose(sorted(map(tuple, dots)), sorted(map(tuple, last.points)), atol=1e-4)
    for cone in FrictionCones.solids(last, model, size):
        away = np.hypot(*np.ptp(cone.vertices, axis=0)[:2]) / np.sqrt(2)
        np.testing.assert_allclose(away, 2 * 0.5 * np.ptp(cone.vertices[:, 2]), rtol=1e-6)
    plain, marked = (
        list(pictures(motion, 5.0, 1.0, 64, 48, show=show)[1]) for show in ((), ["contact points", "contact forces"])
    )
    assert (plain[-1] != marked[-1]).any()
    with pytest.raises(lw.LinkwiseError, match="contact forces"):
        pictures(motion, 5.0, 1.0, 64, 48, show=["mass centres"])


def test_blows_have_arrows_that_end() -> None:
    ways = shortened(np.array([[0.0, 3.0, 4.0], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]]), 2.0)
    np.testing.assert_allclose(ways, [[0.0, 1.2, 1.6], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]])


def test_what_solvers_leave_does_not_press() -> None:
    """A capsule that two pads lift: the points that it had on the floor are open, and not drawn."""
    b = lw.ModelBuilder("gripper")
    pad = lw.shapes.box((0.02, 0.05, 0.03), mass=0.1)
    b.add_body("hand", joint=lw.Prismatic(axis=(0, 0, 1)), mass=0.3)
    for side, x in (("left", -1.0), ("right", 1.0)):
        b.add_body(side, "hand", lw.Prismatic(axis=(-x, 0, 0)), lw.transform(xyz=(0.03 * x, 0, 0)), shape=pad)
    capsule = lw.shapes.capsule(0.02, ends=((0, -0.03, 0), (0, 0.03, 0)), mass=0.045)
    b.add_body("capsule", joint=lw.Free(), shape=capsule)
    between = [("left", "capsule"), ("right", "capsule")]
    model = b.build().with_contacts(lw.Ground(), only=["capsule"], between=between, material=lw.Material(friction=0.5))
    force = np.array([6.0, 2.0, 2.0, *[0.0] * 6])
    motion = lw.simulate(
        model, [0.02, 0, 0, 1, 0, 0, 0, 0, 0, 0.02], duration=0.4, dt=0.002, control=lambda t, q, v, p: force
    )
    assert motion.q[-1, 9] > 0.03
    lifted = motion.t > 0.2
    assert (motion.contacts.impulse[lifted][:, 4:, 0] > 0.0).any()  # some 1e-22 N s
    assert not motion.contacts.presses[lifted][:, 4:].any()
    assert (motion.contacts.mode[lifted][:, 4:] == 0).all()
    assert 2 <= len(Touches.of(motion.contacts, -1).points) <= 4


def test_ground_is_drawn_where_it_is(model: lw.Model) -> None:
    """Level planes are the floor, at their height; others are squares in them."""

    def height(*grounds: lw.Ground) -> float | None:
        touching = model.with_contacts(*grounds)
        return floor_height(touching, looks_of(touching), 0.0, 0.0)

    assert height(lw.Ground(lw.transform(xyz=(0, 0, -0.7)))) == -0.7
    assert height(lw.Ground(lw.transform(xyz=(0, 0, 0.4)))) == 0.4
    place = lw.transform(xyz=(0, 0, 0.5), rpy=(0, 0.4, 0))
    assert height(lw.Ground(place)) is None
    assert height(lw.Ground(place), lw.Ground()) == 0.0
    squares = looks_of(model.with_contacts(lw.Ground(place))).ground
    assert len(squares) == 2
    for solid in squares:
        np.testing.assert_allclose((solid.vertices - place[:3, 3]) @ place[:3, 2], 0.0, atol=1e-12)


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


def test_the_floor_of_a_file_is_there_to_be_touched() -> None:
    """Where nothing was said of contact, live simulations take that of the file, and it can be seen."""
    text = """<mujoco><worldbody><geom type="plane" size="1 1 .1"/>
      <body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""
    with lw.view(lw.loads(text), port=0, open=False) as page:
        for title in ("contact points", "contact forces", "friction cones"):
            assert title in page.shown.switches
