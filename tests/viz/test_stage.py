"""The camera follows what it is told to, the floor stays where the model's is, and nothing is lost from view."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError, UnknownNameError
from linkwise.viz.looks import looks_of
from linkwise.viz.markers import Markers
from linkwise.viz.raster import Camera, picture
from linkwise.viz.solids import box
from linkwise.viz.stage import MASS_CENTRE, NOTHING, floats, floor_height, followed, sky
from linkwise.viz.video import floor, pictures, shadow

pytest.importorskip("viser")


def walker(gravity=(0.0, 0.0, -9.81)):
    """A trunk that floats, with two legs."""
    b = lw.ModelBuilder("walker", gravity=gravity)
    b.add_body("trunk", joint=lw.Free(), mass=10.0, com=(0.1, 0, 0), inertia=np.diag([0.3, 0.25, 0.1]))
    for side, y in (("left", 0.1), ("right", -0.1)):
        b.add_body(
            f"{side} leg", parent="trunk", joint=lw.Revolute(axis=(0, 1, 0)), placement=lw.transform(xyz=(0, y, -0.3)),
            mass=3.0, com=(0, 0, -0.4), inertia=np.diag([0.2, 0.2, 0.01]),
        )  # fmt: skip
    return b.build()


def falling(model, seconds=2.0):
    q0 = model.neutral()
    q0[4:7] = (3.0, 0.0, 1.0)
    return lw.simulate(model, q0, duration=seconds, dt=0.01, method="rk4")


def sliders(*limits, mass=0.0):
    """A body on slides along x, z and a hinge, the slides without mass, as planar walkers are written."""
    b = lw.ModelBuilder("planar")
    parent = "world"
    for axis, limit in zip(((1, 0, 0), (0, 0, 1)), limits, strict=True):
        name = f"slide{axis.index(1)}"
        b.add_body(name, parent=parent, joint=lw.Prismatic(axis=axis), mass=mass, limits=limit)
        parent = name
    b.add_body("torso", parent=parent, joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, inertia=np.eye(3))
    return b.build()


def test_what_floats():
    assert floats(walker()) and floats(sliders(None, None))
    assert not floats(sliders(lw.JointLimits(-1.0, 1.0), None))  # a cart on its rail
    assert not floats(sliders(None, None, mass=1.0))  # a gantry: each slide is a part of it
    assert not floats(samples.stanford_arm()) and not floats(samples.four_bar())
    assert not floats(samples.stewart_platform())  # a free body, on legs that stand on the world


def test_the_mass_centre_is_the_models():
    model = walker()
    q = model.random_configuration(2)
    target = followed(model)
    assert target.name == MASS_CENTRE
    np.testing.assert_allclose(target.place(model.poses(q)), model.center_of_mass(q), atol=1e-12)
    body = followed(model, "left leg")
    np.testing.assert_allclose(body.place(model.poses(q)), model.pose(q, "left leg")[:3, 3])
    several = np.stack([q, model.neutral()])
    np.testing.assert_allclose(target.place(model.poses(several)), model.center_of_mass(several), atol=1e-12)
    assert followed(model, False) is None and followed(model, NOTHING) is None
    assert followed(samples.planar_arm()) is None and followed(samples.planar_arm(), True).name == MASS_CENTRE
    with pytest.raises(UnknownNameError, match="left leg"):
        followed(model, "left_leg")


def on_stage(page, figure, place):
    """A place of the model's world, in the scene of a page."""
    return np.asarray(page.stage.world.position) + figure.offset + place


def test_a_motion_stays_where_the_camera_looks():
    motion = falling(walker())
    with motion.view(port=0, open=False) as page:
        seen = []
        for t in (0.0, 1.0, 2.0):
            page.seek(t)
            place = motion.model.center_of_mass(motion.q[round(100 * t)])
            seen.append(on_stage(page, page.figures[0], place))
        np.testing.assert_allclose(seen, [page.server.initial_camera.look_at] * 3, atol=1e-9)
        assert page.stage.floor.position[2] == 0.0  # 20 m above the end
        page.shown.follow.value = NOTHING
        page.worker.call(page.shown._follow)
        page.seek(0.0)
        place = on_stage(page, page.figures[0], motion.model.center_of_mass(motion.q[0]))
        assert place[2] - seen[0][2] > 15.0  # it stands where it was left
        page.shown.follow.value = "left leg"
        page.worker.call(page.shown._follow)
        place = on_stage(page, page.figures[0], motion.model.pose(motion.q[0], "left leg")[:3, 3])
        np.testing.assert_allclose(place, page.server.initial_camera.look_at, atol=1e-9)


def test_a_model_that_runs_stays_where_the_camera_looks():
    model = walker()
    with lw.view(model, port=0, open=False) as page:
        for _ in range(5):
            page.worker.call(lambda: page.live._advance(0.1))
        assert page.moment.q[6] < -1.0
        com = model.center_of_mass(page.moment.q)
        np.testing.assert_allclose(on_stage(page, page.figure, com), page.server.initial_camera.look_at, atol=1e-9)
    with lw.view(model, follow=False, port=0, open=False) as page:
        page.worker.call(lambda: page.live._advance(0.1))
        np.testing.assert_array_equal(page.stage.world.position, np.zeros(3))


def test_the_ground_does_not_move_under_a_hand():
    model = walker()
    with lw.view(model, port=0, open=False) as page:
        page._grip = (0, np.zeros(3))
        page.worker.call(lambda: page.reach(0, np.zeros(3), np.array([0.5, 0.0, 0.0])))
        np.testing.assert_array_equal(page.stage.shift, np.zeros(3))
        page.worker.call(lambda: page._drag(0, np.zeros(3), np.array([0.5, 0.0, 0.0]), "end"))
        assert page.stage.shift[0] == pytest.approx(-0.5, abs=0.02)


def test_an_orbit_is_seen_from_near():
    """A satellite of some metres, 7000 km from the origin, in space: no floor."""
    model = walker(gravity=(0, 0, 0))
    a = np.linspace(0.0, 2.0, 40)
    q = np.tile(model.neutral(), (40, 1))
    q[:, 4:6] = 7e6 * np.stack([np.cos(a), np.sin(a)], -1)
    motion = lw.Trajectory(a, q, np.zeros((40, model.nv)), model=model)
    with motion.view(port=0, open=False) as page:
        camera = page.server.initial_camera
        assert np.linalg.norm(camera.position - camera.look_at) < 10.0 and page.stage.floor is None
        page.seek(2.0)
        place = on_stage(page, page.figures[0], model.center_of_mass(q[-1]))
        np.testing.assert_allclose(place, camera.look_at, atol=1e-6)
    _, frames = pictures(motion, 1.0, 1.0, 64, 48)
    for frame in frames:
        assert np.abs(frame.astype(int) - sky(False, 48, 64, 1.0)).max() > 40  # something is there


def test_the_floor_is_where_the_model_stands():
    def height(model, start=0.0, lowest=0.0):
        return floor_height(model, looks_of(model), start, lowest)

    assert height(walker(), -0.7, -20.0) == -0.7 and height(walker(), 0.4, -20.0) == 0.0
    assert height(walker((0, 0, 0))) is None
    assert height(samples.planar_arm(), 0.0, -2.5) == -2.5  # it hangs on nothing that can be seen
    b = lw.ModelBuilder("on a foot")
    place = tuple(tuple(row) for row in np.eye(4).tolist())
    b.add_body("foot", joint=lw.Fixed(), visuals=[lw.Geometry("box", (0.2, 0.2, 0.1), None, (1, 1, 1), place, "foot")])
    b.add_body("arm", parent="foot", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(1, 0, 0))
    assert height(b.build(), 0.0, -1.0) == pytest.approx(-0.05)  # whatever the arm does


def test_lines_of_the_floor_stay_in_the_world():
    motion = falling(walker())
    with motion.view(port=0, open=False) as page:
        stage = page.stage
        for x in (0.0, 3.3, 47.0):
            page.worker.call(lambda x=x: stage.follow((x, -x, 0.0)))
            at = np.asarray(stage.floor.position)[:2]
            np.testing.assert_allclose(at / (5 * stage.cell), np.round(at / (5 * stage.cell)), atol=1e-9)
            assert np.abs(at - (x, -x)).max() < 5 * stage.cell


def test_a_video_follows():
    """What falls is in the middle of every picture; of the first one only, where the camera stays."""
    motion = falling(walker())
    count, frames = pictures(motion, 1.0, 1.0, 64, 48, follow=True)
    drawn = list(frames)
    assert count == len(drawn) == 3

    def is_there(frame):
        return bool((frame[16:32, 24:40, 0] < 150).any())  # sky and floor are lighter there

    assert all(map(is_there, drawn))
    camera = Camera.seeing((2.5, -0.5, 0.0), (3.5, 0.5, 1.5), 64, 48)
    _, frames = pictures(motion, 1.0, 1.0, 64, 48, camera, follow=False)
    assert list(map(is_there, frames)) == [True, False, False]


def test_shadows_fall_on_the_floor_below():
    crate = box(1.0, 1.0, 1.0).placed(lw.transform(xyz=(0, 0, 2.0)))
    (flat,) = shadow([crate], 0.0)
    assert np.ptp(flat.vertices[:, 2]) < 1e-12 and 0.0 < flat.vertices[0, 2] < 0.01
    np.testing.assert_allclose(flat.vertices[:, :2].mean(axis=0), (0.4, 0.4), atol=1e-12)  # slanted by 0.2 of 2 m
    assert not len(shadow([crate], 5.0)[0].faces)  # below the floor there is none
    low, high = np.array([-1.0, -1, 0]), np.array([1.0, 1, 2])
    camera = Camera.seeing(low, high, 80, 60)
    bare = picture(floor(0.0, low, high), camera).astype(int)
    shaded = picture([*floor(0.0, low, high), flat], camera).astype(int)
    darker = (bare - shaded).max(axis=2) > 20
    assert 0.005 < darker.mean() < 0.2 and (bare - shaded).min() >= -1


# Markers.


def marked(motion):
    tip = motion.poses[:, -1, :3, 3][:, None]
    up = np.broadcast_to([0.0, 0.0, 0.5], tip.shape).copy()
    gone = tip.copy()
    gone[0] = np.nan
    return [
        Markers("force", "arrow", tip, up),
        Markers("contact", "disc", gone, up, radius=0.2, colour=(0, 200, 0)),
        Markers("cone", "cone", tip, up, radius=0.3, opacity=0.5),
    ]


def test_markers_are_where_they_are_said_to_be(tmp_path):
    motion = lw.simulate(samples.planar_arm(), [0.5, 0.0, 0.0], duration=0.2, method="rk4", dt=0.1)
    markers = marked(motion)
    with motion.view(markers=markers, port=0, open=False) as page:
        page.seek(0.1)
        arrow, disc, cone = (each.handle for each in page.markers)
        tip = motion.poses[1, -1, :3, 3]
        np.testing.assert_allclose(arrow.points, [[tip, tip + np.array([0, 0, 0.5])]], atol=1e-6)
        np.testing.assert_allclose(disc.batched_positions, [tip], atol=1e-6)
        np.testing.assert_allclose(cone.batched_scales, [[1, 1, 0.5]], atol=1e-6)
        page.seek(0.0)
        assert np.min(disc.batched_positions) >= 1e6  # there is none at the first sample
    (at_first,), (then,) = (markers[1].solids(k, 1.0) or [None] for k in (0, 1))
    assert at_first is None
    np.testing.assert_allclose(np.ptp(then.vertices, axis=0)[:2], 0.4, rtol=0.02)
    np.testing.assert_allclose(then.vertices.mean(axis=0), tip, atol=1e-9)
    (opening,) = markers[2].solids(1, 1.0)
    assert opening.vertices[:, 2].max() == pytest.approx(tip[2] + 0.5)
    assert motion.save_html(tmp_path / "m.html", markers=markers).stat().st_size > 100_000
    _, frames = pictures(motion, 10.0, 1.0, 64, 48, markers=markers)
    green = [((f[..., 1].astype(int) - f[..., 0]) > 60).sum() for f in frames]
    assert green[0] == 0 < green[1]


def test_bad_markers_say_what_is_wrong():
    with pytest.raises(InputError, match="do not fit"):
        Markers("f", "arrow", np.zeros((2, 1, 3)), np.zeros((2, 3)))
    with pytest.raises(InputError, match="kind of marker"):
        Markers("f", "ball", np.zeros((2, 1, 3)), np.zeros((2, 1, 3)))
    motion = lw.simulate(samples.planar_arm(), [0.5, 0.0, 0.0], duration=0.2, method="rk4", dt=0.1)
    with pytest.raises(InputError, match="fit the motion"):
        motion.view(markers=[Markers("f", "arrow", np.zeros((2, 1, 3)), np.zeros((2, 1, 3)))], port=0, open=False)
