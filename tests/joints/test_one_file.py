"""A joint written in one file is simulated, closed, mirrored, saved, loaded, exported and shown: no other knows of it.

The two joints here are not the library's: a slide along an arc, which says nothing but how it moves, and a screw that
slides on its thread, which has an axis and says itself in the words of files.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import joints
from linkwise.joints import Joint, Mirrored, SeriesJoint
from linkwise.mechanism.closures import RelativePose, closure_of
from linkwise.mechanism.editing.locking import joint_pose
from linkwise.spatial.transforms import Shift, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec
from linkwise.viz.posing import freedoms_of, is_closed, moved
from tests.random_trees import ALL, random_joint

SIGNS = ((-1.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, -1.0))


class Arc(lw.Joint):
    """A slide along an arc in the x-z plane, without a turn. q: way along the arc in m."""

    nq = 1
    nv = 1
    fixed_axes = False

    def __init__(self, radius: float) -> None:
        self.radius = float(radius)

    def neutral(self) -> tuple[float, ...]:
        return (0.0,)

    def transform(self, q: Sequence[Any]) -> Transform:
        a, r = q[0] * (1.0 / self.radius), self.radius
        return Transform(Shift(Vec(lw.math.sin(a) * r, 0.0, (1.0 - lw.math.cos(a)) * r)))

    def subspace(self, q: Sequence[Any]) -> tuple[Motion, ...]:
        a = q[0] * (1.0 / self.radius)
        return (Motion(Vec.zero(), Vec(lw.math.cos(a), 0.0, lw.math.sin(a))),)

    def subspace_rate(self, q: Sequence[Any], v: Sequence[Any]) -> Motion:
        a, w = q[0] * (1.0 / self.radius), v[0] * v[0] * (1.0 / self.radius)
        return Motion(Vec.zero(), Vec(-(lw.math.sin(a) * w), 0.0, lw.math.cos(a) * w))


class ThreadSlide(lw.Joint):
    """A screw whose nut slides too. q: [angle in rad, slide in m]."""

    nq = 2
    nv = 2
    symmetry = "axis"

    def __init__(self, pitch: float, axis: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        self.pitch = float(pitch)
        x, y, z = (np.array(axis) / np.linalg.norm(axis)).tolist()
        self.axis = (x, y, z)

    def neutral(self) -> tuple[float, ...]:
        return (0.0, 0.0)

    def transform(self, q: Sequence[Any]) -> Transform:
        return Transform(Shift(Vec(0.0, 0.0, q[0] * self.pitch + q[1])), Turn.by(2, q[0]))

    def subspace(self, q: Sequence[Any]) -> tuple[Motion, ...]:
        return (Motion(Vec.unit(2), Vec(0.0, 0.0, self.pitch)), Motion(Vec.zero(), Vec.unit(2)))

    def series(self) -> tuple[SeriesJoint, ...]:
        turn, slide = SeriesJoint("turn", self.axis), SeriesJoint("slide", self.axis, freedom=1)
        return (turn, slide, SeriesJoint("slide", self.axis, ratio=self.pitch))


class Gimbal(lw.Spherical):
    """A ball with a motion of its own, so that nothing that Spherical says of its motion holds: it is told 0.2 off."""

    def transform(self, q: Sequence[Any]) -> Transform:
        return Transform(Shift(Vec(0.0, 0.0, 0.2)), *super().transform(q).factors)


BODY: dict[str, Any] = {"mass": 2.0, "com": (0.1, 0.05, 0.2), "inertia": np.diag([0.3, 0.4, 0.2])}
OWN = [Arc(0.7), ThreadSlide(0.05, (1.0, 2.0, 2.0)), Gimbal()]


def tree(*kinds: lw.Joint, armature: float = 0.0) -> lw.Model:
    b = lw.ModelBuilder("own")
    parent = "world"
    for k, kind in enumerate((*kinds, lw.Revolute((0, 1, 0.3)))):
        place = lw.transform(xyz=(0.1, 0.2, 0.3 * k), rpy=(0.2, -0.3, 0.5 * k))
        b.add_body(f"b{k}", parent, kind, place, joint_name=f"j{k}", armature=armature, **BODY)
        parent = f"b{k}"
    return b.build()


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: type(kind).__name__)
def test_simulated(kind: lw.Joint) -> None:
    lw.check_joint(kind)
    model = tree(kind)
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng) * 0.5, rng.normal(size=model.nv)
    motion = lw.simulate(model, q, v, duration=0.5)
    assert np.ptp(motion.energy) < 1e-6 * max(1.0, np.abs(motion.energy).max())


def slider_crank(opened_at_arc: bool) -> lw.Model:
    """A crank, a coupler and a carriage on an arc; the loop is opened at the arc, or at the crank's pin."""
    y, arc = lw.Revolute((0, 1, 0)), Arc(0.9)
    out, pin = lw.transform(xyz=(0.3, 0, 0)), lw.transform(xyz=(0.8, 0, 0))
    b = lw.ModelBuilder("arc")
    if opened_at_arc:
        b.add_body("crank", "world", y, **BODY)
        b.add_body("coupler", "crank", y, out, **BODY)
        b.add_body("carriage", "coupler", y, lw.transform(xyz=(0.5, 0, 0)), **BODY)
        b.add_closure("loop", "world", pin, "carriage", None, joint=arc)
    else:
        b.add_body("carriage", "world", arc, pin, **BODY)
        b.add_body("coupler", "carriage", y, joint_frame=lw.transform(xyz=(0.5, 0, 0)), **BODY)
        b.add_body("crank", "coupler", y, joint_frame=out, **BODY)
        b.add_closure("loop", "world", None, "crank", None, joint=y)
    return b.build()


@pytest.mark.filterwarnings("ignore:.*redundant")
def test_closed_in_a_loop() -> None:
    """The loop moves as the same one does that is opened elsewhere, with the joint in the tree."""
    ends = []
    for opened in (True, False):
        model = slider_crank(opened)
        q = model.assemble(model.neutral())
        motion = lw.simulate(model, q, np.zeros(model.nv), duration=0.4)
        last = motion.q[-1]
        ends.append([model.pose(last, name) for name in ("crank", "coupler", "carriage")])
        assert np.abs(ends[-1][2][:3, 3] - (0.8, 0, 0)).max() > 0.02
    np.testing.assert_allclose(ends[0], ends[1], atol=2e-6)


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: type(kind).__name__)
@pytest.mark.parametrize("plane", ["yz", "xz", "xy"])
def test_mirrored(kind: lw.Joint, plane: str) -> None:
    model = tree(kind)
    image = model.mirrored(plane)
    S = np.diag([*SIGNS[("yz", "xz", "xy").index(plane)], 1.0])
    rng = np.random.default_rng(1)
    q, v = model.random_configuration(rng) * 0.7, rng.normal(size=model.nv)
    q_image, v_image = model.mirrored_state(plane, q, v)
    for name in ("b0", "b1"):
        np.testing.assert_allclose(image.pose(q_image, name), S @ model.pose(q, name) @ S, atol=1e-13)
    tau = rng.normal(size=model.nv)
    vdot = model.forward_dynamics(q, v, tau)
    _, signs = model.mirrored_state(plane, q, np.ones(model.nv))
    np.testing.assert_allclose(image.forward_dynamics(q_image, v_image, tau * signs), vdot * signs, rtol=1e-9)
    back = image.mirrored(plane)
    np.testing.assert_allclose(back.pose(q, "b1"), model.pose(q, "b1"), atol=1e-13)


def test_saved_and_loaded(tmp_path: Path) -> None:
    for number, model in enumerate((tree(*OWN), tree(*OWN).mirrored("xz"), slider_crank(True))):
        path = tmp_path / f"m{number}.lw.json"
        model.save(path)
        again = lw.load(path)
        assert [joint.type for joint in again.joints] == [joint.type for joint in model.joints]
        assert [closure.type for closure in again.closures] == [closure.type for closure in model.closures]
        q = model.random_configuration(0)
        assert np.array_equal(again.mass_matrix(q), model.mass_matrix(q))
    text = (tmp_path / "m0.lw.json").read_text()
    with pytest.raises(lw.errors.ModelFileError, match="not known"):
        lw.loads(text.replace('"threadslide"', '"someoneelses"'))
    with pytest.raises(lw.errors.ModelFileError, match="cannot have these constants"):
        lw.loads(text.replace('"radius": 0.7', '"radius": "wide"'))
    deep = "0.7"
    for _ in range(100):
        deep = '{"type": "mirrored", "signs": [1, 1, -1], "joint": ' + deep + "}"
    for wrong, says in ((deep, "too deep"), ('{"type": "mirrored", "signs": [1, 1, -1], "joint": 2}', "cannot have")):
        with pytest.raises(lw.errors.ModelFileError, match=says):
            lw.loads(text.replace('"radius": 0.7', f'"radius": {wrong}'))


def test_what_holds_a_function_is_not_saved(tmp_path: Path) -> None:
    model = tree(lw.CustomJoint(lambda q: np.eye(4).tolist(), n=1, name="nothing"), Arc(0.7))
    with pytest.raises(lw.LinkwiseError, match="is a program"):
        model.save(tmp_path / "m.lw.json")


def test_exported(tmp_path: Path) -> None:
    """By its words where it has some; otherwise it is fixed, and the list of losses says so."""
    model = tree(ThreadSlide(0.05, (1.0, 2.0, 2.0)))
    lost = model.save(tmp_path / "m.urdf")
    assert not any("motion" in each for each in lost)
    again = lw.load(tmp_path / "m.urdf")
    q = np.array([0.4, 0.3, -0.6])
    np.testing.assert_allclose(again.pose(q, "b1"), model.pose(q, "b1"), atol=1e-12)
    for name in ("arc.urdf", "arc.xml"):
        model = tree(Arc(0.7))
        said = " ".join(model.save(tmp_path / name))
        assert "'j0'" in said and "Arc" in said and "fixed at its zero position" in said
    found = lw.load(tmp_path / "arc.urdf")
    assert found.nv == 1
    np.testing.assert_allclose(found.pose([0.3], "b1"), model.pose([0.0, 0.3], "b1"), atol=1e-12)


def test_exported_to_mujoco(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    kind = ThreadSlide(0.05, (1.0, 2.0, 2.0))
    model = tree(kind, armature=0.1).with_configuration("there", [0.4, 0.3, -0.6])
    model.save(tmp_path / "m.xml")
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(theirs)
    mujoco.mj_resetDataKeyframe(theirs, data, 0)
    mujoco.mj_kinematics(theirs, data)
    pose = model.pose(model.configurations["there"], "b1")
    np.testing.assert_allclose(data.body("b1").xpos, pose[:3, 3], atol=1e-12)
    np.testing.assert_allclose(data.body("b1").xmat.reshape(3, 3), pose[:3, :3], atol=1e-12)


def test_shown() -> None:
    model = tree(*OWN)
    freedoms = freedoms_of(model, 3.0)
    assert [each.place for each in freedoms] == list(range(model.nv))
    assert [each.label for each in freedoms] == ["j0", "j1[0]", "j1[1]", "j2[0]", "j2[1]", "j2[2]", "j3"]
    assert [freedoms[k].high for k in range(3)] == [3.0, pytest.approx(math.pi), 3.0]  # slides: the model's size
    q = model.random_configuration(0)
    for each in freedoms:
        assert each.get(each.set(q, 0.2)) == pytest.approx(0.2, abs=1e-9)
    closed = slider_crank(True)
    q = closed.assemble(closed.neutral())
    handle = freedoms_of(closed, 1.0)[0]
    found = moved(closed, q, handle.set(q, handle.get(q) + 0.1), handle.place)
    assert found is not None and is_closed(closed, found)


def test_read_by_an_encoder() -> None:
    model = tree(Arc(0.7))
    motion = lw.simulate(model, [0.1234, 0.1234], [0.0, 0.0], duration=0.01, dt=0.01, method="rk4")
    read = lw.Encoder(counts=100).read(motion)[0]
    np.testing.assert_allclose(read, [0.12, round(0.1234 / (2 * np.pi / 100)) * 2 * np.pi / 100])  # per m, per turn


def test_a_subclass_takes_no_words_away() -> None:
    """Files are read as they were before somebody else's hinge was there; it is saved under its own name."""

    class Hinge(lw.Revolute):
        """A hinge of another name."""

    assert joints.joint_types("urdf")["revolute"] is lw.Revolute and joints.joint_types()["revolute"] is lw.Revolute
    text = (
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="a"/>'
        '<child link="b"/></joint></robot>'
    )
    assert type(lw.loads(text).joints[0].type) is lw.Revolute
    assert joints.joint_types()[Hinge.word] is Hinge
    with pytest.raises(lw.InputError, match="taken"):
        type("Other", (lw.Revolute,), {"word": "revolute"})


# The answers that a joint has by default hold for the library's types too.
@pytest.mark.parametrize("kind", ALL)
def test_defaults_say_what_the_types_say(kind: str) -> None:
    rng = np.random.default_rng(3)
    joint = random_joint(rng, kind, 0.0)
    for signs in SIGNS:
        lw.check_joint(Mirrored(joint, signs))
        by_default, own = Joint.mirrored(joint, signs), joint.mirrored(signs)
        S = np.diag([*signs, 1.0])
        q = np.array(joint.random(rng, [-1.0] * joint.nq, [1.0] * joint.nq))
        for image in (by_default, own):
            tail = np.eye(4) if image.tail is None else np.array(image.tail)
            there = joint_pose(image.joint, q * (image.q_signs or 1.0))
            np.testing.assert_allclose(tail @ there @ tail.T, S @ joint_pose(joint, q) @ S, atol=1e-13)
    if joint.nv == 6:
        with pytest.raises(lw.InputError, match="nothing to close"):
            closure_of(joint)
        return
    X = RelativePose.from_matrix(joint_pose(joint, q).tolist())
    assert np.abs(Joint.closing_residual(joint, X)).max() < 1e-12
    assert len(Joint.closing_residual(joint, X)) == len(joint.closing_equations()) == 6 - joint.nv
    assert np.abs(closure_of(joint).residual(X, 0.0)).max() < 1e-12
    off = joint_pose(joint, q)
    off[:3, 3] += (0.3, -0.2, 0.5) if joint.nv != 5 else 0.0
    off = off @ joint_pose(lw.Revolute((1.0, -2.0, 0.5)), [0.4])
    assert np.abs(Joint.closing_residual(joint, RelativePose.from_matrix(off.tolist()))).max() > 1e-3


CONCRETE = {name for name in joints.__all__ if isinstance(getattr(joints, name), type)} - {
    "Handle", "Joint", "MirrorImage", "SeriesJoint",
}  # fmt: skip
ALLOWED = {
    "linkwise/mechanism/regroup.py": "hinges in large numbers, as arrays at once",
}


def switches(module: ast.Module) -> Iterator[int]:
    """Lines that decide by a concrete joint type: isinstance, comparisons with it or its name, tables by it."""

    def named(at: ast.AST) -> bool:
        return any(
            (isinstance(x, ast.Name) and x.id in CONCRETE)
            or (isinstance(x, ast.Attribute) and x.attr in CONCRETE)
            or (isinstance(x, ast.Constant) and x.value in CONCRETE)
            for x in ast.walk(at)
        )

    for at in ast.walk(module):
        if (
            isinstance(at, ast.Call)
            and isinstance(at.func, ast.Name)
            and at.func.id in ("isinstance", "issubclass")
            and named(at.args[1])
        ):
            yield at.lineno
        if isinstance(at, ast.Compare) and any(map(named, (at.left, *at.comparators))):
            yield at.lineno
        if isinstance(at, ast.Dict) and any(key is not None and named(key) for key in at.keys):
            yield at.lineno
        if isinstance(at, ast.MatchClass) and named(at.cls):
            yield at.lineno


def test_no_other_module_asks_for_a_joint_type() -> None:
    root = Path(lw.__file__).parent
    found = [
        f"{path.relative_to(root.parent)}:{line}"
        for path in sorted(root.rglob("*.py"))
        if path.parent != root / "joints" and str(path.relative_to(root.parent)) not in ALLOWED
        if any(name in (text := path.read_text(encoding="utf-8")) for name in CONCRETE)
        for line in switches(ast.parse(text))
    ]
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(j, Free)",
        "isinstance(j.type, (joints.Free, Planar))",
        "type(j) is joints.Revolute",
        "type(j) in (Revolute, Helical)",
        "type(j).__name__ == 'Free'",
        "{Revolute: 1}",
        "match j:\n    case Revolute(): pass",
    ],
)
def test_such_a_switch_is_found(text: str) -> None:
    assert list(switches(ast.parse(text)))
