"""What is written to a native file is read again to the last bit, and what cannot be is refused with its name."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.files.native import schema
from linkwise.files.native.contents import line_of
from linkwise.mechanism import closures
from linkwise.mechanism.bodies_and_joints import IDENTITY, Body, Frame, JointInstance
from linkwise.mechanism.changed_copies import Configurations
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.mechanism import Mechanism
from tests.files.recording import robot_files
from tests.seeds import usual


@cache
def everything() -> lw.Model:
    """A mechanism with one of everything that can be stored."""
    b = lw.ModelBuilder("every thing", gravity=(0.1, -0.0, -9.81))
    place = lw.transform(xyz=(0.1, 0.2, 0.3), rpy=(0.3, -0.2, 0.9))
    shape = lw.Geometry("box", (1.0, 2.0, 3.0), None, (1.0, 1.0, 1.0), tuple(map(tuple, place.tolist())), "x")
    kinds = [
        lw.Revolute((1, 2, 3)), lw.Prismatic((0, 1, 0)), lw.Helical(0.1, (3, 1, 2)), lw.Cylindrical((1, 1, 0)),
        lw.Universal((1, 0, 0.1), (0, 1, 0)), lw.Planar((1, 2, 2)), lw.Spherical(), lw.Free(), lw.Revolute((0, 0, 1)),
    ]  # fmt: skip
    parent = "world"
    for k, kind in enumerate(kinds):
        b.add_body(
            f"b{k}", parent, kind, place, 1.0 + k / 7, (0.1, 0.0, k / 3), np.diag([0.1, 0.2, 0.21]),
            armature=0.1 / 3, damping=0.2, friction=0.3, joint_frame=place if k % 2 else None,
            stiffness=0.0 if kind.nq != kind.nv else 5.5, rest=1 / 3, visuals=[shape], collisions=[shape],
            limits=lw.JointLimits(-1, 2, 3, 4) if kind.nq == kind.nv else lw.JointLimits(velocity=2.0),
        )  # fmt: skip
        b.add_body(f"w{k}", f"b{k}", lw.Fixed(), place, 0.1, (0, 0, 0.1), np.eye(3) / 300, visuals=[shape])
        parent = f"w{k}" if k % 3 else "world"
    b.add_body("m", "b0", lw.Revolute(), place, 1.0, mimic=lw.Mimic("b0_joint", -1.5, 0.25))
    beam = lw.FlexibleBody.beam(2.0, 1e6, (1e3, 2e3), 1e3, 1.2, elements=6, modes=2)
    b.add_body("beam", "world", lw.Revolute((0, 1, 0)), place, flexible=beam)
    b.add_body("load", "beam", lw.Revolute((0, 0, 1)), place, 0.5, (0.1, 0, 0), np.eye(3) / 100, at="tip")
    b.add_body("plate", "beam", lw.Fixed(), None or np.eye(4), 0.1, (0, 0, 0), np.eye(3) / 1000, at=3)
    b.add_body("base", "world", lw.Fixed(), place, 5.0, visuals=[shape])
    b.add_frame("tool", "load", place)
    b.add_frame("mark", "beam", place, node="tip")
    for k, closing in enumerate(
        [
            lw.Fixed(), lw.Revolute((1, 2, 3)), lw.Prismatic((0, 3, 1)), lw.Helical(0.3, (0, 1, 1)),
            lw.Cylindrical((1, 2, 0)), lw.Universal(), lw.Planar((1, 1, 1)), lw.Spherical(),
            lw.closures.PointOnPlane((1, 2, 3)),
            lw.closures.Distance(1 / 3), lw.closures.Rolling(0.1, (1, 2, 2)), lw.closures.Rolling(0.2),
        ]
    ):  # fmt: skip
        b.add_closure(f"c{k}", "b3", place, "load", place, joint=closing)
    b.add_closure("tip", "world", None, "beam", place, joint=lw.Spherical(), node_b="tip")
    b.add_coupling("gear", lw.closures.Coupling({"b0_joint": 1.0, "b8_joint": -1 / 3}, 0.1))
    b.add_actuator(
        lw.equipment.Actuator(
            "motor", lw.equipment.JointTransmission({"b0_joint": 2.0, "b1_joint": -1 / 3}), force_range=(-1, 2)
        )
    )
    filtered = lw.equipment.Activation("filter", 0.1, (-math.inf, 2.0))
    b.add_actuator(
        lw.equipment.Actuator(
            "jet",
            lw.equipment.FrameTransmission("tool", (0, 0, 0, 1 / 3, 0, 0)),
            (1, 2, 3),
            (3, 2, 1),
            activation=filtered,
        )
    )
    b.add_sensor(lw.equipment.Sensor("gyro", "gyroscope", "tool", noise=0.1))
    b.add_sensor(lw.equipment.Sensor("where", "frame_position", "tool", "b3", cutoff=2.0))
    b.add_sensor(lw.equipment.Sensor("push", "actuator_force", "motor"))
    b.add_spring(lw.equipment.Spring("band", lw.equipment.JointTransmission({"b0_joint": 1.0}), 10.0, 0.1, (-0.1, 0.2)))
    b.add_configuration("home", {"b0_joint": 1 / 3})
    b.add_actuator(
        lw.equipment.Actuator(
            "rope", lw.equipment.PathTransmission(((("tool", "b3"), 1.0), (("b3", "mark", "w0"), 0.5)))
        )
    )
    b.add_coupling("cam", lw.closures.PolynomialCoupling({"b1_joint": 1.0}, {"b8_joint": 2.0}, (0.1, 0.2, 1 / 3), 0.1))
    model = b.build().with_parameters(["b0.mass", "beam.stiffness", "gravity"]).with_sweeps("unrolled")
    return model.with_closure_solver("kkt")


def same(a: lw.Model, b: lw.Model) -> bool:
    """To the last bit, and down to the sign of zeros; meshes aside, which are named as seen from the file."""

    def parts(model: lw.Model) -> list[str]:
        np.set_printoptions(threshold=10**9, floatmode="unique")
        return [repr(_plain(getattr(model, each.name))) for each in fields(model)]

    return parts(a) == parts(b)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        own = [_plain(getattr(value, each.name)) for each in fields(value) if each.name != "source"]
        return type(value).__name__, own
    if isinstance(value, Configurations):
        return {name: _plain(q) for name, q in value.items()}
    return value


def test_everything_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    model = everything()
    path = tmp_path / "every.lw.json"
    model.save(path)
    again = lw.load(path)
    assert same(model, again)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["every.lw.json", "every.lw.npz"]
    again.save(tmp_path / "twice.lw.json")
    once, twice = (p.read_text() for p in (path, tmp_path / "twice.lw.json"))
    assert once.replace("every.lw.npz", "twice.lw.npz") == twice


def test_dynamics_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    model = samples.flexible_arm()
    model.save(tmp_path / "arm.lw.json")
    again = lw.load(tmp_path / "arm.lw.json")
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), rng.normal(size=model.nv)
        assert np.array_equal(model.forward_dynamics(q, v, tau), again.forward_dynamics(q, v, tau))
        assert np.array_equal(model.inverse_dynamics(q, v, tau), again.inverse_dynamics(q, v, tau))


def test_the_reference_of_a_solver_comes_back(tmp_path: Path) -> None:
    model = samples.slider_crank()
    model = model.with_closure_solver("embedding")
    model.save(tmp_path / "m.lw.json")
    assert same(model, lw.load(tmp_path / "m.lw.json"))


@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
@pytest.mark.parametrize("part", usual([0], *range(1, 6)))
def test_every_robot_comes_back(part: int, tmp_path: Path) -> None:
    """All files of example-robot-data; equal data to the last bit, hence the same programs."""
    read = 0
    for file in (robot_files() + robot_files(".sdf"))[part::6]:
        try:
            model = lw.load(file, allow_unphysical=True)
        except lw.LinkwiseError:
            continue
        model.save(tmp_path / "r.lw.json")
        assert same(model, lw.load(tmp_path / "r.lw.json")), file.name
        read += 1
    assert not robot_files() or read > 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
@pytest.mark.parametrize("file", robot_files() + robot_files(".sdf"), ids=lambda file: file.name)
def test_every_robot_moves_the_same(file: Path, tmp_path: Path) -> None:
    try:
        model = lw.load(file, allow_unphysical=True)
    except lw.LinkwiseError:
        pytest.skip("refused for its reason")
    model.save(tmp_path / "r.lw.json")
    again = lw.load(tmp_path / "r.lw.json")
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(10)])
    v, tau = rng.normal(size=(2, 10, model.nv))
    for name in ("inverse_dynamics", "forward_dynamics"):
        a, b = (getattr(each, name)(q, v, tau) for each in (model, again))
        assert np.array_equal(a, b, equal_nan=True)
    assert np.array_equal(model.mass_matrix(q), again.mass_matrix(q))


def test_programs_are_refused_with_their_names(tmp_path: Path) -> None:
    def turn(q: Any) -> Any:
        c, s = lw.math.cos(q[0]), lw.math.sin(q[0])
        return [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

    b = lw.ModelBuilder("own")
    b.add_body("a", joint=lw.CustomJoint(turn, 1), mass=1.0, com=(0.1, 0, 0))
    b.add_body("b", "a", joint=lw.Revolute(), mass=1.0, com=(0.1, 0, 0))
    b.add_coupling("drive", lw.closures.Prescribed("b_joint", lambda t: t))
    b.add_closure("rod", "b", None, "world", None, joint=lw.closures.Distance(lambda t: 1 + t))
    b.add_coupling("bound", lambda q: q[0])
    with pytest.raises(lw.ModelError, match="cannot be stored") as caught:
        b.build().save(tmp_path / "own.lw.json")
    assert all(name in str(caught.value) for name in ("a_joint", "drive", "rod", "bound"))
    assert not list(tmp_path.iterdir())


def test_scenes_of_contact_are_kept(tmp_path) -> None:
    """Every rule, materials of any priority, and the bits of a file's own pairs, of which there may be many."""
    b = lw.ModelBuilder("ball")
    shape = Geometry("sphere", (0.1,), None, (1.0,) * 3, IDENTITY, "ball", contype=1 << 40, conaffinity=1 << 200)
    b.add_body("ball", "world", lw.Free(), mass=1.0, inertia=np.eye(3), collisions=[shape])
    rules = lw.ContactRules(solver="primal", passive=True, points=9)
    soft = lw.Material(friction=(0.3, 0.5), stiffness=1e4, priority=-2)
    model = b.build().with_contacts(lw.Ground(material=soft), rules=rules)
    model.save(tmp_path / "ball.lw.json")
    again = lw.load(tmp_path / "ball.lw.json")
    assert again._contact_scene == model._contact_scene
    assert again.bodies["ball"].collisions == (shape,)


def test_every_field_is_stored() -> None:
    """A field that is added to the model must be added to the file: where records are not made from the classes."""
    derived = {"index", "q_slice", "v_slice", "source"}
    for kind, stored in (
        (Frame, schema.FRAME.fields),
        (Body, schema.BODY.fields),
        (JointInstance, schema.JOINT.common.fields),
        (Mechanism, schema.MODEL.fields),
    ):
        names = {each.name for each in fields(kind)} - derived - {"type", "joints"}
        assert {{"_parameter_names": "parameters"}.get(name, name).lstrip("_") for name in names} <= set(stored), kind
    functions = {"JointFunction", "RateFunction", "Prescribed", "PrescribedFrame", "PointOnCurve", "PointOnSurface"}
    abstract = {
        "Closure",
        "Relation",
        "RelativePose",
        "ClosureInstance",
        "RelationInstance",
        "JointClosure",
        "closure_of",
    }
    of_runs = {"CapturedClosure"}  # made by events while a simulation runs
    every = {getattr(closures, name) for name in set(closures.__all__) - functions - abstract - of_runs}
    assert every == {kind for kind, _ in (*schema.CLOSURES.values(), *schema.RELATIONS.values())}


@pytest.fixture
def plain(tmp_path: Path) -> Any:
    everything().save(tmp_path / "e.lw.json")
    return json.loads((tmp_path / "e.lw.json").read_text())


def at(value: Any, path: str) -> tuple[Any, Any]:
    keys = [int(key) if key.isdecimal() else key for key in path.split(".")]
    for key in keys[:-1]:
        value = value[key]
    return value, keys[-1]


@pytest.mark.parametrize(
    ("path", "new", "says"),
    [
        ("format", "other", "not a native model file"),
        ("version", 99, "newer linkwise"),
        ("gravity", [0, 0], "wrong length"),
        ("bodies.0.name", "world", "taken"),
        ("bodies.1.name", "b0", "taken"),
        ("bodies.1.parent", "nobody", "does not stand before"),
        ("bodies.0.parts.0.mass", -1, "not possible"),
        ("bodies.0.parts.0.mass", True, "not a number"),
        ("bodies.0.parts.0.node", 3, "no such node"),
        ("bodies.0.joint.axis", [0, 0, 2], "length one"),
        ("bodies.0.joint.axis", [0, 0, 0], "no direction"),
        ("bodies.0.joint.type", "revolut", "not known"),
        ("bodies.0.joint.colour", 1, "field is not known"),
        ("bodies.0.joint.armature", [1, 2], "each freedom"),
        ("bodies.0.joint.limits", [{"lower": 2, "upper": 1}], "above the upper"),
        ("bodies.0.placement", [[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], "not a rotation"),
        ("bodies.0.visuals.0.size", [1], "size"),
        ("bodies.9.joint.mimic.joint", "b4_joint", "follows another"),
        ("bodies.10.flexible.stiffness", [[1.0]], "wrong shape"),
        ("bodies.10.flexible.integrals.J2", {"array": "nothing"}, "no such array"),
        ("frames.0.body", "nobody", "no such body"),
        ("closures.0.a.body", "nobody", "no such body"),
        ("closures.0.b.body", "b3", "one rigid body"),
        ("closures.9.length", -1, "not possible"),
        ("closures.13.joints", ["b0_joint", "nobody"], "no moving joint"),
        ("closure_solver", "magic", "not known"),
        ("actuators.0.transmission.gears.0", ["nobody", [1]], "there is no joint"),
        ("sensors.0.target", "nobody", "there is no"),
        ("springs.0.rest", [2, 1], "leaves no room"),
        ("configurations.home", [1, 2], "is not possible"),
        ("parameters", ["b0.colour"], "there is no"),
        ("arrays.file", "../e.lw.npz", "beside the file"),
        ("arrays.sha256", "0", "not the one"),
        ("arrays.file", "gone.npz", "cannot be read"),
    ],
)
def test_what_is_wrong_is_named(plain: Any, tmp_path: Path, path: str, new: Any, says: str) -> None:
    inner, key = at(plain, path)
    inner[key] = new
    file = tmp_path / "e.lw.json"
    file.write_text(json.dumps(plain, indent=1))
    with pytest.raises(lw.errors.ModelFileError, match=says) as caught:
        lw.load(file)
    assert caught.value.file == str(file) and caught.value.line and "$" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"format": "linkwise model", "version": 1, "gravity": NaN}', "not finite"),
        ('{"format": "linkwise model", "format": 2}', "comes twice"),
        ("{", "not JSON"),
        ('{"a":' + "[" * 100000, "too deeply|not JSON"),
        ('{"format": "linkwise model", "version": ' + "9" * 5000 + "}", "cannot be read"),
        ('{"format": "linkwise model", "version": 1}', "missing"),
        ("{}", "not a native"),
    ],
)
def test_texts_that_are_none(text: str, says: str) -> None:
    with pytest.raises(lw.errors.ModelFileError, match=says) as caught:
        lw.loads(text)
    assert caught.value.line


def test_arguments_of_other_formats(tmp_path: Path) -> None:
    samples.stanford_arm().save(tmp_path / "a.lw.json")
    with pytest.raises(lw.InputError, match="finished model"):
        lw.load(tmp_path / "a.lw.json", floating=True)
    model = lw.load(tmp_path / "a.lw.json", gravity=(0, 0, 0), name="other")
    assert model.gravity == (0, 0, 0) and model.name == "other"
    with pytest.raises(lw.InputError, match=r"ends in \.lw\.json"):
        model.save(tmp_path / "a.json")
    with pytest.raises(lw.InputError, match="cannot be written"):
        model.save(tmp_path / "nowhere" / "a.lw.json")


def test_an_archive_that_lies_about_its_size(tmp_path: Path, plain: Any) -> None:
    import hashlib
    import io
    import zipfile

    head = b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a0.npy", head.ljust(127) + b"\n")
    (tmp_path / "e.lw.npz").write_bytes(stream.getvalue())
    plain["arrays"]["sha256"] = hashlib.sha256(stream.getvalue()).hexdigest()
    (tmp_path / "e.lw.json").write_text(json.dumps(plain))
    with pytest.raises(lw.errors.ModelFileError, match="plain"):
        lw.load(tmp_path / "e.lw.json")


def test_lines_are_found() -> None:
    text = '{\n "a": [1, {"b": 2},\n {"c":\n 3}],\n "d": "}"\n}'
    assert [line_of(text, path) for path in ((), ("a",), ("a", 1, "b"), ("a", 2), ("a", 2, "c"), ("d",))] == [
        1, 2, 2, 3, 4, 5,
    ]  # fmt: skip


def test_meshes_are_found_from_the_new_place(tmp_path: Path) -> None:
    from linkwise.files import mesh_file

    (tmp_path / "robot").mkdir()
    (tmp_path / "saved").mkdir()
    (tmp_path / "robot" / "m.stl").write_text("solid")
    (tmp_path / "robot" / "r.urdf").write_text(
        '<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
        'iyz="0"/></inertial><visual><geometry><mesh filename="m.stl"/></geometry></visual></link></robot>'
    )
    model = lw.load(tmp_path / "robot" / "r.urdf", floating=True)
    model.save(tmp_path / "saved" / "r.lw.json")
    with pytest.raises(lw.errors.ModelFileError, match="leads out"):
        mesh_file(lw.load(tmp_path / "saved" / "r.lw.json").bodies[0].visuals[0])
    again = lw.load(tmp_path / "saved" / "r.lw.json", search=[tmp_path / "robot"])
    assert mesh_file(again.bodies[0].visuals[0]) == tmp_path / "robot" / "m.stl"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
def test_every_mjcf_comes_back(tmp_path: Path) -> None:
    """The models of the installed packages; meshes aside, which are named as seen from the new folder."""
    pytest.importorskip("mujoco")
    from tests.files.mujoco_of_mjcf import model_files

    def bare(model: lw.Model) -> lw.Model:
        def plain(shapes: Any) -> Any:
            return tuple(replace(shape, mesh=None) for shape in shapes)

        bodies = tuple(replace(b, visuals=plain(b.visuals), collisions=plain(b.collisions)) for b in model.bodies)
        return replace(model, bodies=bodies, base_visuals=plain(model.base_visuals))

    read = 0
    for name, (file, folder) in model_files().items():
        try:
            model = lw.load(file, search=[folder])
        except lw.LinkwiseError:
            continue
        model.save(tmp_path / "m.lw.json")
        assert same(bare(model), bare(lw.load(tmp_path / "m.lw.json"))), name
        read += 1
    assert read
