"""Which shapes meet: as MuJoCo decides for the same file; and what files bring along."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact.geometry.selection import meetings
from linkwise.errors import ModelError, ModelFileError, UnknownNameError
from linkwise.files.urdf import read_excludes

MJCF = """<mujoco><option gravity="0 0 -9.81"/>
<worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <geom name="post" type="box" size=".1 .1 .1" pos="3 0 0"/>
  <body name="base" pos="0 0 1"><freejoint/><geom name="g0" type="sphere" size=".2"/>
    <geom name="g1" size=".1" contype="2"/>
    <body name="upper" pos="0 0 -.3"><joint axis="0 1 0"/><geom name="g2" type="capsule" size=".05 .1"/>
      <body name="lower" pos="0 0 -.3"><joint axis="0 1 0"/><geom name="g3" type="ellipsoid" size=".05 .1 .1"/>
        <body name="foot" pos="0 0 -.1"><geom name="g4" type="cylinder" size=".05 .02" conaffinity="2"/></body>
      </body></body>
    <body name="arm" pos=".3 0 0"><joint axis="1 0 0"/><geom name="g5" type="box" size=".1 .1 .1"/>
      <geom name="seen" type="sphere" size=".3" contype="0" conaffinity="0"/></body>
  </body>
  <body name="ball" pos="2 0 1"><freejoint/><geom name="g6" size=".1"/></body>
</worldbody>
<contact><exclude body1="arm" body2="lower"/><exclude body1="ball" body2="upper"/></contact></mujoco>"""

SDF = """<sdf version="1.9"><world name="w">
<model name="ground"><static>true</static><link name="g"><collision name="c"><geometry><plane><normal>0 1 0</normal>
<size>1 1</size></plane></geometry></collision></link></model>
<model name="m"><link name="a"><collision name="c"><geometry><ellipsoid><radii>.1 .2 .3</radii></ellipsoid></geometry>
<surface><contact><collide_bitmask>0x02</collide_bitmask></contact></surface></collision></link></model></world></sdf>"""


def links(pairs):
    return sorted(tuple(sorted((pair.a.shape.name, pair.b.shape.name))) for pair in pairs)


def _mujoco_pairs():
    """The filter of MuJoCo's documentation (Computation, Collision detection, Selection), on its compiled model."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_string(MJCF)
    weld, excluded = m.body_weldid, {int(s) for s in m.exclude_signature}
    found = []
    for i, j in combinations(range(m.ngeom), 2):
        a, b = m.geom_bodyid[i], m.geom_bodyid[j]
        wa, wb = weld[a], weld[b]
        pa, pb = weld[m.body_parentid[wa]], weld[m.body_parentid[wb]]
        meets = (m.geom_contype[i] & m.geom_conaffinity[j]) or (m.geom_contype[j] & m.geom_conaffinity[i])
        related = wa == wb or (wa != 0 and wb != 0 and (wa == pb or wb == pa))
        if meets and not related and not {(a << 16) + b, (b << 16) + a} & excluded:
            # What is fixed in the world has the names of its shapes.
            found.append(tuple(sorted(m.body(int(k)).name if k else m.geom(g).name for g, k in ((i, a), (j, b)))))
    return sorted(found)


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    pytest.importorskip("mujoco")
    path = tmp_path_factory.mktemp("files") / "robot.xml"
    path.write_text(MJCF)
    return lw.load(path)


def test_the_pairs_are_those_of_mujoco(robot):
    assert links(meetings(robot)) == _mujoco_pairs()
    assert len(meetings(robot)) > 12


def test_a_file_brings_its_floor_its_bits_and_its_excluded_pairs(robot, tmp_path):
    assert [shape.kind for shape in robot._base_collisions] == ["plane", "box"]
    excluded = {frozenset(pair) for pair in robot._contact_excludes}
    assert excluded == {frozenset(("arm", "lower")), frozenset(("ball", "upper"))}
    assert [(s.contype, s.conaffinity) for s in robot.bodies["base"].collisions] == [(1, 1), (2, 1)]
    assert {s.kind for s in robot.bodies["lower"].collisions} == {"ellipsoid", "cylinder"}
    robot.save(tmp_path / "robot.lw.json")
    again = lw.load(tmp_path / "robot.lw.json")
    assert links(meetings(again)) == links(meetings(robot))
    assert again._base_collisions == robot._base_collisions
    written = tmp_path / "written.xml"
    assert any("alone do not touch: here 'foot' is one body" in loss for loss in robot.save(written))
    again, before = (Counter((p.a.body, p.b.body) for p in meetings(m)) for m in (lw.load(written), robot))
    foot, arm = (
        robot.bodies["lower"].index,
        robot.bodies["arm"].index,
    )
    assert before - again == Counter([(foot, arm)])
    assert not again - before


def test_only_some_links_and_more_excludes(robot):
    for pair in meetings(robot, only=["foot"]):
        assert "foot" in (pair.a.shape.name, pair.b.shape.name) or "lower" in pair.name
    feet = meetings(robot, only=["foot"], excludes=[("foot", "ball")])
    assert all("ball" not in pair.name for pair in feet)
    assert len(meetings(robot, adjacent=True)) > len(meetings(robot))
    with pytest.raises(UnknownNameError, match="'foots'"):
        meetings(robot, only=["foots"])


def test_edits_keep_shapes_and_pairs(robot):
    everything = sum(len(body.collisions) for body in robot.bodies) + len(robot._base_collisions)
    locked = robot.locked([joint.name for joint in robot.joints[1:]])
    assert sum(len(body.collisions) for body in locked.bodies) + len(locked._base_collisions) == everything
    assert any("hand" in pair for pair in robot.renamed({"arm": "hand"})._contact_excludes)
    seen = robot.mirrored("xy")._base_collisions[0]
    np.testing.assert_allclose(np.array(seen.placement)[:3, 2], (0, 0, -1))
    assert np.linalg.det(np.array(seen.placement)[:3, :3]) == pytest.approx(1.0)


def test_height_fields(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    heights = "0 1 0.5 0.25 0.75 0.1"
    text = f'''<mujoco><asset><hfield name="h" nrow="2" ncol="3" size="1 2 .5 .1" elevation="{heights}"/></asset>
    <worldbody><geom type="hfield" hfield="h"/><body name="b" pos=".3 .4 1"><freejoint/><geom size=".1"/></body>
    </worldbody></mujoco>'''
    path = tmp_path / "field.xml"
    path.write_text(text)
    (field,) = lw.load(path)._base_collisions
    assert field.size == (2.0, 4.0)
    m = mujoco.MjModel.from_xml_string(text)
    np.testing.assert_allclose(np.array(field.heights), 0.5 * m.hfield_data.reshape(2, 3))


GRAY = np.array([[0, 51, 102, 255], [10, 20, 30, 40], [200, 100, 50, 0]], np.uint8)


def png(pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("ending", ["png", "bin"])
def test_height_fields_in_files(tmp_path, ending):
    mujoco = pytest.importorskip("mujoco")
    numbers = GRAY.astype(np.float32)
    content = png(GRAY) if ending == "png" else struct.pack("<ii", *GRAY.shape) + numbers.tobytes()
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / f"hills.{ending}").write_bytes(content)
    path = tmp_path / "field.xml"
    path.write_text(f"""<mujoco><compiler meshdir="assets"/>
    <asset><hfield name="h" file="hills.{ending}" size="1 2 .5 .1"/></asset>
    <worldbody><geom type="hfield" hfield="h"/><body name="b" pos="0.1 0.2 1"><freejoint/><geom size=".1"/></body>
    </worldbody></mujoco>""")
    robot = lw.load(path)
    (field,) = robot._base_collisions
    m = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_allclose(np.array(field.heights), 0.5 * m.hfield_data.reshape(3, 4))
    assert np.ptp(field.heights) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.png", png(GRAY)[:20]),
        ("text.png", b"no picture, but long enough to have a head"),
        ("wide.png", png(GRAY)[:16] + struct.pack(">II", 100_000, 100_000) + png(GRAY)[24:]),
        ("short.bin", struct.pack("<ii", 3, 4) + bytes(44)),
        ("below.bin", struct.pack("<ii", -3, -4) + bytes(48)),
        ("film.gif", b"GIF89a"),
    ],
)
def test_files_without_heights_are_refused(tmp_path, name, content):
    pytest.importorskip("mujoco")
    (tmp_path / name).write_bytes(content)
    path = tmp_path / "field.xml"
    path.write_text(f"""<mujoco><asset><hfield name="h" file="{name}" size="1 2 .5 .1"/></asset>
    <worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>""")
    with pytest.raises(lw.errors.ModelFileError, match="hfield") as caught:
        lw.load(path)
    assert caught.value.line == 1 and caught.value.allowed


def test_sdf_planes_ellipsoids_and_bit_masks(tmp_path):
    path = tmp_path / "world.sdf"
    path.write_text(SDF)
    with pytest.warns(lw.errors.ModelWarning):
        world = lw.load(path)
    shapes = {s.kind: s for s in (*world._base_collisions, *(s for body in world.bodies for s in body.collisions))}
    np.testing.assert_allclose(np.array(shapes["plane"].placement)[:3, 2], (0, 1, 0), atol=1e-15)
    assert shapes["ellipsoid"].size == (0.1, 0.2, 0.3)
    assert (shapes["ellipsoid"].contype, shapes["ellipsoid"].conaffinity) == (2, 2)
    assert (shapes["plane"].contype, shapes["plane"].conaffinity) == (1, 1)


def test_grounds_do_not_move():
    b = lw.ModelBuilder("two floors")
    plane = lw.Geometry("plane", (), None, (1.0, 1.0, 1.0), tuple(map(tuple, np.eye(4).tolist())), "plate")
    b.add_body("plate", joint=lw.Free(), mass=1.0, inertia=np.eye(3), collisions=[plane])
    b.add_world_collision(plane)
    with pytest.raises(ModelError, match="cannot touch"):
        meetings(b.build())


def test_an_srdf_says_which_links_do_not_touch(robot, tmp_path):
    path = tmp_path / "robot.srdf"
    path.write_text('<robot name="r"><disable_collisions link1="foot" link2="ball" reason="Never"/></robot>')
    pairs = read_excludes(path)
    assert pairs == (("foot", "ball"),)
    left = Counter(links(meetings(robot))) - Counter(links(meetings(robot, excludes=pairs)))
    assert left == Counter([("ball", "foot")])
    path.write_text('<robot name="r">\n<disable_collisions link1="foot"/></robot>')
    with pytest.raises(ModelFileError, match="2: <disable_collisions> has no link2"):
        read_excludes(path)
