"""Players, recordings and videos, without a browser."""

import json
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError, LinkwiseError, ModelWarning
from linkwise.viz.figure import Ghosts
from linkwise.viz.looks import fewer, looks_of
from linkwise.viz.player import sampled
from linkwise.viz.raster import Camera, picture
from linkwise.viz.recording import embedded, motion_html
from linkwise.viz.solids import box, sphere
from linkwise.viz.video import thumbnail

pytest.importorskip("viser")


@pytest.fixture(scope="module")
def motion():
    return lw.simulate(samples.planar_arm(), [0.5, 0.0, 0.0], duration=1.0, method="rk4", dt=0.01)


def test_seek_shows_the_pose_of_that_time(motion):
    with motion.view(port=0, open=False) as page:
        for t in (0.0, 0.25, 1.0):
            page.seek(t)
            np.testing.assert_allclose(page.figures[0].poses, motion.poses[round(100 * t)], atol=1e-9)
        page.seek(0.255)
        between = motion.model.poses((motion.q[25] + motion.q[26]) / 2)
        np.testing.assert_allclose(page.figures[0].poses, between, atol=1e-9)


def test_play_goes_round_or_stops_at_the_end(motion):
    with motion.view(port=0, open=False) as page:
        page.worker.call(lambda: page.advance(0.7))
        assert page.t == pytest.approx(0.7)
        page.worker.call(lambda: page.advance(0.7))
        assert page.t == pytest.approx(0.4)
        page.loop.value = False
        page.play()
        page.worker.call(lambda: page.advance(5.0))
        assert page.t == 1.0 and not page.playing
        page.speed.value = "0.5"
        page.worker.call(lambda: page._scrub(0.0))
        page.worker.call(lambda: page.advance(0.2))
        assert page.t == pytest.approx(0.1)


def test_plots_have_everything_and_a_line_at_the_time(motion):
    sensors = {"encoder": lw.Encoder().read(motion)}
    with motion.view(sensors=sensors, port=0, open=False) as page:
        page.seek(0.5)
        titles = [handle.title for handle, _, _ in page.plots]
        assert titles == ["q [rad, m]", "v [rad/s, m/s]", "τ [N m, N]", "energy [J]", "encoder"]
        for handle, _, (low, high) in page.plots:
            line = np.isfinite(handle.data[-1])
            np.testing.assert_allclose(handle.data[0][line], 0.5)
            np.testing.assert_allclose(handle.data[-1][line], [low, high])
        np.testing.assert_allclose(page.plots[0][0].data[1][:10], motion.q[:10, 0])
    with pytest.raises(InputError, match="do not fit"):
        motion.view(sensors={"short": np.zeros(3)}, port=0, open=False)


def test_two_motions_beside_each_other_and_in_one_place(motion):
    with motion.view(motion, port=0, open=False) as page:
        a, b = page.figures
        assert np.abs(np.array(a.base.position) - b.base.position).max() > 0.5
    with motion.view(motion, beside=0.0, port=0, open=False) as page:
        a, b = page.figures
        np.testing.assert_allclose(a.base.position, b.base.position)
        assert a.meshes[0][0].color != b.meshes[0][0].color


def test_a_batch_is_ghosts(motion):
    model = samples.planar_arm()
    q0 = np.random.default_rng(0).normal(size=(2, 4, 3))
    batch = lw.simulate(model, q0, duration=0.1, method="rk4", dt=0.01, output_times=[0.0, 0.1])
    with batch.view(port=0, open=False) as page:
        assert page.ghosts.count == 8
        page.seek(0.1)
        poses = model.poses(batch.q[..., 1, :].reshape(-1, 3))
        for k, handle in page.ghosts.handles.items():
            np.testing.assert_allclose(handle.batched_positions, poses[:, k, :3, 3], atol=1e-6)
    with pytest.raises(InputError, match="shown alone"):
        batch.view(motion, port=0, open=False)


def test_a_bad_state_harms_only_its_own_ghost():
    class Scene:
        def add_batched_meshes_simple(self, name, *args, **keywords):
            return type("Handle", (), {})()

    model = samples.planar_arm()
    ghosts = Ghosts(Scene(), model, looks_of(model), 2)
    ghosts.show(np.array([[np.nan, 0.0, 0.0], [0.1, 0.2, 0.3]]))
    np.testing.assert_allclose(
        ghosts.handles[2].batched_positions[1], model.poses([0.1, 0.2, 0.3])[2, :3, 3], atol=1e-6
    )
    assert ghosts.handles[2].batched_positions[0].min() >= 1e6 and np.isfinite(ghosts.handles[2].batched_wxyzs).all()


def test_bending_is_exaggerated_with_all_that_hangs_on_it():
    model = samples.flexible_arm()
    q = 0.3 * model.random_configuration(0)
    motion = lw.Trajectory([0.0, 1.0], [q, q], np.zeros((2, model.nv)), model=model)
    with motion.view(port=0, open=False) as page:
        figure = page.figures[0]
        page.worker.call(lambda: page.shown._exaggerate(5.0))
        bent = q.copy()
        for body in model.bodies:
            bent[body.q_slice] *= 5.0
        np.testing.assert_allclose(figure.poses, model.poses(bent))
        upper, X = model.bodies[0], figure.poses[0]
        tip = X[:3, :3] @ figure.bent[0][0].bones[-1].position + X[:3, 3]
        np.testing.assert_allclose(tip, model.pose(bent, upper.name, node="tip")[:3, 3], atol=1e-12)
        assert np.abs(tip - model.pose(q, upper.name, node="tip")[:3, 3]).max() > 1e-3


def test_memory_does_not_grow_while_it_plays(motion):
    """What viser keeps for late comers is the latest of everything, so it has an end: a minute, by a fast clock."""
    with motion.view(port=0, open=False) as page:
        buffer = page.server._websock_server._broadcast_buffer
        page.worker.call(lambda: page.advance(1.0 / 30.0))
        for _ in range(30):
            page.worker.call(lambda: page.advance(1.0 / 30.0))
        kept = len(buffer.message_from_id)
        for _ in range(1800):
            page.worker.call(lambda: page.advance(1.0 / 30.0))
        assert len(buffer.message_from_id) <= kept + 10


def test_a_trajectory_without_a_model_says_what_to_do(motion):
    alone = lw.Trajectory(motion.t, motion.q, motion.v)
    for action in (alone.view, lambda: alone.save_html("x.html"), lambda: alone.save_video("x.gif"), alone.embed):
        with pytest.raises(LinkwiseError, match="needs the model"):
            action()
    assert alone._repr_html_() is None


def test_pictures_between_samples(motion):
    shown = sampled(motion, 30.0)
    assert len(shown.t) == 31
    np.testing.assert_allclose(shown.q[15], motion.q[50], atol=1e-9)


def test_html_is_one_file(motion, tmp_path):
    seen = []
    path = motion.save_html(tmp_path / "m.html", fps=10, progress=seen.append)
    assert seen == pytest.approx(np.arange(1, 12) / 11)
    text = path.read_text(encoding="utf-8")
    assert text.count("<html") == 1 and "<title>planar_arm</title>" in text and "__VISER_EMBED_DATA__" in text
    assert len(text) < 1_000_000
    assert "srcdoc=" in embedded(text, 300) and "height:300px" in embedded(text, 300)
    assert "iframe" in motion.embed(fps=5)._repr_html_() and "MB" in repr(motion.embed(fps=5))
    with pytest.raises(InputError, match="file type"):
        motion.save_html(tmp_path / "m.txt")
    with pytest.raises(InputError, match="fps"):
        motion.save_html(tmp_path / "m.html", fps=0)
    for save in (
        lambda: motion.save_html(tmp_path / "m.html", progress="yes"),
        lambda: motion.save_video(tmp_path / "m.gif", progress="yes"),
    ):
        with pytest.raises(InputError, match="progress is not one of the choices"):
            save()


def test_a_thousand_pictures_take_about_a_megabyte():
    model = samples.stanford_arm()
    motion = lw.simulate(model, model.neutral(), duration=33.3, method="rk4", dt=0.02)
    assert len(motion_html(motion)) < 1_900_000


def test_a_large_batch_is_cut_with_a_warning(monkeypatch):
    monkeypatch.setattr("linkwise.viz.recording.LARGEST", 28 * 3 * 2 * 5)
    q = np.zeros((10, 2, 3))
    batch = lw.Trajectory([0.0, 1.0], q, q, model=samples.planar_arm())
    with pytest.warns(ModelWarning, match="not all states"):
        motion_html(batch, fps=1.0)


def test_fewer_triangles():
    looks = looks_of(samples.stanford_arm())
    total = sum(len(solid.faces) for solids in looks.bodies for solid in solids)
    small = fewer(looks, total // 3)
    assert sum(len(solid.faces) for solids in small.bodies for solid in solids) < 0.6 * total


# Pictures drawn by ourselves.


def test_a_ball_covers_what_it_should():
    camera = Camera((0.0, -10.0, 0.0), (0.0, 0.0, 0.0), 200, 200, angle=2 * np.arctan(0.2))
    image = picture([sphere(1.0, 64).painted((200, 0, 0))], camera)
    covered = (image[:, :, 1] < 128).mean()  # a cone touching the ball: tangent 1/√99 at distance 1, of ±0.2
    assert covered == pytest.approx(np.pi * (1 / 99) / 0.16, rel=0.01)
    assert image[0, 0].tolist() == [255, 255, 255] and image[100, 100, 0] > 150 > image[100, 100, 1]


def test_what_is_in_front_hides_what_is_behind():
    camera = Camera((0.0, -5.0, 0.0), (0.0, 0.0, 0.0), 64, 64)
    red, blue = box(1, 1, 1).painted((255, 0, 0)), box(4, 1, 4).painted((0, 0, 255)).placed(lw.transform(xyz=(0, 2, 0)))
    for solids in ([red, blue], [blue, red]):
        image = picture(solids, camera)
        assert image[32, 32].argmax() == 0 and image[32, 8].argmax() == 2
    glass = box(1, 1, 1).painted((255, 0, 0), 0.5)
    mixed = picture([glass, blue], camera)[32, 32]
    assert mixed[0] > 60 and mixed[2] > 60


def test_a_triangle_behind_the_camera_is_not_drawn():
    camera = Camera((0.0, -5.0, 0.0), (0.0, 0.0, 0.0), 32, 32)
    behind = box(1, 1, 1).placed(lw.transform(xyz=(0, -8, 0)))
    assert (picture([behind], camera) == 255).all()


def test_thumbnails_and_notebooks(motion):
    model = samples.flexible_arm()
    png = thumbnail(model, model.random_configuration(0))
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and len(png) < 40_000
    for shown in (motion.model, motion):
        html = shown._repr_html_()
        assert html.startswith("<figure") and len(html) < 60_000 and "planar_arm" in html


def test_a_gif(motion, tmp_path):
    image = pytest.importorskip("PIL.Image")
    path = motion.save_video(tmp_path / "m.gif", fps=5, size=(96, 64), progress=False)
    with image.open(path) as gif:
        assert gif.n_frames == 6 and gif.size == (96, 64)


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="there is no ffmpeg")
def test_a_movie(motion, tmp_path):
    seen = []
    path = motion.save_video(tmp_path / "m.mp4", fps=5, speed=0.5, size=(96, 64), progress=seen.append)
    asked = [
        "ffprobe",
        "-v",
        "error",
        "-count_frames",
        "-show_entries",
        "stream=nb_read_frames,width,height",
        "-of",
        "json",
    ]
    found = json.loads(subprocess.run([*asked, str(path)], capture_output=True, check=True).stdout)["streams"][0]
    assert (found["width"], found["height"], int(found["nb_read_frames"])) == (96, 64, 11)
    assert seen[-1] == 1.0


def test_bad_videos(motion, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="kind of video"):
        motion.save_video(tmp_path / "m.txt")
    for bad in ({"size": (97, 64)}, {"fps": 0}, {"speed": np.inf}):
        with pytest.raises(InputError):
            motion.save_video(tmp_path / "m.gif", **bad)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(LinkwiseError, match="ffmpeg"):
        motion.save_video(tmp_path / "m.mp4")


@pytest.mark.slow
def test_memory_is_bounded_over_ten_minutes_of_play(motion):
    """18 000 pictures, as in ten minutes at 30 for each second, by a clock that waits for nothing."""
    resource = pytest.importorskip("resource")
    tracemalloc = pytest.importorskip("tracemalloc")
    with motion.view(port=0, open=False) as page:
        for _ in range(300):
            page.worker.call(lambda: page.advance(1.0 / 30.0))
        tracemalloc.start()
        start, rss = tracemalloc.get_traced_memory()[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        for _ in range(18_000):
            page.worker.call(lambda: page.advance(1.0 / 30.0))
        grown = tracemalloc.get_traced_memory()[0] - start
        tracemalloc.stop()
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss
    print(
        f"grown by {grown / 1e6:.2f} MB, rss by {more / 1e3:.1f} MB, in {time.perf_counter() - began:.0f} s",
        file=sys.stderr,
    )
    assert grown < 2e6


def test_a_motion_without_accelerations_is_shown_between_its_samples(tmp_path):
    """q and v from elsewhere are enough, for one state and for a batch."""
    model = samples.planar_arm()
    q = np.array([[0.0, 0.0, 0.0], [0.3, -0.6, 0.9]])
    given = lw.Trajectory([0.0, 1.0], q, np.zeros((2, 3)), model=model)
    pictures = sampled(given, 10.0)
    np.testing.assert_allclose(pictures.q, np.linspace(0.0, 1.0, 11)[:, None] * q[1], atol=1e-12)
    assert given.save_html(tmp_path / "given.html", fps=5).stat().st_size > 100_000
    batch = lw.Trajectory([0.0, 1.0], np.stack([q, 2 * q]), np.zeros((2, 2, 3)), model=model)
    np.testing.assert_allclose(sampled(batch, 10.0).q[1], 2 * pictures.q, atol=1e-12)
    with batch.view(port=0, open=False) as page:
        page.seek(0.5)
        halfway = model.poses(np.stack([0.5 * q[1], q[1]]))
        np.testing.assert_allclose(page.ghosts.handles[2].batched_positions, halfway[:, 2, :3, 3], atol=1e-6)


def test_a_motion_of_which_nothing_is_finite_is_refused(tmp_path):
    lost = lw.Trajectory([0.0, 1.0], np.full((2, 3), np.nan), np.zeros((2, 3)), model=samples.planar_arm())
    with pytest.raises(InputError, match="nothing of this motion"):
        lost.save_html(tmp_path / "lost.html")
    with lost.view(port=0, open=False) as page:
        page.seek(0.5)
