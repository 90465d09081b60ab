"""Motions in files for other programs, read back by those programs' own readers."""

import json
import struct

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.samples import planar_arm


@pytest.fixture(scope="module")
def motion():
    return lw.simulate(planar_arm(2), [0.5, -0.2], duration=0.2, dt=0.02, method="rk4")


def test_matlab_files_come_back_and_have_plain_names(motion, tmp_path):
    from scipy.io import loadmat

    path = motion.save(tmp_path / "motion.mat")
    file = loadmat(path)
    np.testing.assert_array_equal(file["q"], motion.q)
    assert file["t"].shape == (len(motion.t), 1)
    assert [str(name[0]) for name in file["names_q"].ravel()] == ["joint1", "joint2"]
    again = lw.Trajectory.load(path)
    for name in ("t", "q", "v", "tau", "energy"):
        np.testing.assert_array_equal(getattr(again, name), getattr(motion, name))
    assert (again.status, again.method, again.steps) == (motion.status, motion.method, motion.steps)


def test_batches_in_matlab_files(tmp_path):
    batch = lw.simulate(planar_arm(2), np.zeros((3, 2)), duration=0.1, dt=0.05, method="rk4")
    again = lw.Trajectory.load(batch.save(tmp_path / "batch.mat"))
    np.testing.assert_array_equal(again.q, batch.q)
    assert again.status.tolist() == batch.status.tolist()
    with pytest.raises(lw.InputError, match="one motion"):
        batch.save(tmp_path / "batch.glb")
    with pytest.raises(lw.InputError, match=r"\.usdc"):
        batch.save(tmp_path / "batch.pdf")


def test_ros_messages_are_read_by_their_own_reader(motion, tmp_path):
    reader = pytest.importorskip("mcap_ros2.reader")
    path = motion.save(tmp_path / "motion.mcap")
    messages = list(reader.read_ros2_messages(str(path)))
    states = [m.ros_msg for m in messages if m.channel.topic == "/joint_states"]
    places = [m.ros_msg for m in messages if m.channel.topic == "/tf"]
    assert len(states) == len(places) == len(motion.t)
    assert list(states[3].name) == ["joint1", "joint2"]
    np.testing.assert_array_equal([s.position for s in states], motion.q)
    np.testing.assert_array_equal([s.velocity for s in states], motion.v)
    np.testing.assert_array_equal([s.effort for s in states], motion.tau)
    assert states[3].header.stamp.nanosec == round(motion.t[3] * 1e9)
    last = places[-1].transforms[-1]
    pose = motion.poses[-1, -1]
    assert last.child_frame_id == motion.model.bodies[-1].name
    shift, turn = last.transform.translation, last.transform.rotation
    np.testing.assert_allclose([shift.x, shift.y, shift.z], pose[:3, 3], atol=1e-15)
    found = Rotation.from_quat([turn.x, turn.y, turn.z, turn.w]).as_matrix()
    np.testing.assert_allclose(found, pose[:3, :3], atol=1e-12)


def test_usd_stages_have_every_body_at_every_sample(motion, tmp_path):
    pxr = pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom

    assert pxr is not None
    for ending in (".usda", ".usdc"):
        path = motion.save(tmp_path / f"motion{ending}")
        stage = Usd.Stage.Open(str(path))
        assert UsdGeom.GetStageUpAxis(stage) == "Z"
        body = UsdGeom.Xformable(stage.GetPrimAtPath(f"/World/{motion.model.bodies[-1].name}"))
        for k in (0, 4, len(motion.t) - 1):
            time = motion.t[k] * stage.GetTimeCodesPerSecond()
            found = np.array(body.ComputeLocalToWorldTransform(time)).T
            np.testing.assert_allclose(found, motion.poses[k, -1], atol=1e-12)
        assert any(prim.IsA(UsdGeom.Mesh) for prim in stage.Traverse())
    motion.save(tmp_path / "motion.usda")  # over one that is there


def test_gltf_has_surfaces_and_an_animation_of_every_body(motion, tmp_path):
    path = motion.save(tmp_path / "motion.glb")
    data = path.read_bytes()
    magic, version, length, size, kind = struct.unpack("<4sIII4s", data[:20])
    assert (magic, version, length, kind) == (b"glTF", 2, len(data), b"JSON")
    document, numbers = json.loads(data[20 : 20 + size]), data[28 + size :]

    def values(accessor):
        spec = document["accessors"][accessor]
        view = document["bufferViews"][spec["bufferView"]]
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[spec["type"]]
        raw = numbers[view["byteOffset"] : view["byteOffset"] + view["byteLength"]]
        return np.frombuffer(raw, "<f4").reshape(-1, width)

    animation = document["animations"][0]
    assert len(animation["channels"]) == 2 * len(motion.model.bodies)
    number = next(k for k, node in enumerate(document["nodes"]) if node["name"] == motion.model.bodies[-1].name)
    for channel in animation["channels"]:
        if channel["target"]["node"] != number:
            continue
        sampler = animation["samplers"][channel["sampler"]]
        np.testing.assert_allclose(values(sampler["input"])[:, 0], motion.t, rtol=1e-6)
        found, poses = values(sampler["output"]), motion.poses[:, -1]
        if channel["target"]["path"] == "translation":
            np.testing.assert_allclose(found, poses[:, :3, 3], atol=1e-6)
        else:
            np.testing.assert_allclose(Rotation.from_quat(found).as_matrix(), poses[:, :3, :3], atol=1e-6)


def test_gltf_is_read_by_trimesh(motion, tmp_path):
    trimesh = pytest.importorskip("trimesh")
    scene = trimesh.load(motion.save(tmp_path / "motion.glb"))
    assert len(scene.geometry) >= len(motion.model.bodies)


def test_a_folder_that_is_not_there_is_said_before_anything_is_written(motion, tmp_path):
    for write, name in ((motion.save, "x.mcap"), (motion.save_html, "x.html"), (motion.save_video, "x.gif")):
        with pytest.raises(lw.InputError, match="no such folder"):
            write(tmp_path / "missing" / name)


def test_names_that_people_ask_for_say_the_right_one(motion):
    with pytest.raises(AttributeError, match=r'motion\.save\("name\.mcap"\)'):
        _ = motion.to_mcap
