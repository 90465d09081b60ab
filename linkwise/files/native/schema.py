"""Schema of a native file, as records; ``docs/guide/native_file.md`` has it to be read.

A change that older readers would misunderstand needs a new VERSION, and a way to read the old one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from linkwise.errors import InputError, LinkwiseError
from linkwise.files.native.equipment_schema import ACTUATOR, FIELD, SENSOR, SPRING
from linkwise.files.native.kinds import (
    REQUIRED,
    At,
    Document,
    Flag,
    Kind,
    ListOf,
    Number,
    Numbers,
    OrNone,
    Pose,
    Record,
    Row,
    Table,
    Tagged,
    Tensor,
    Text,
    Whole,
)
from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.flexible.choice import BOUNDARIES
from linkwise.flexible.integrals import ModalIntegrals
from linkwise.flexible.reduction import Reduction
from linkwise.joints import Joint, joint_types
from linkwise.mechanism import closures
from linkwise.mechanism.bodies_and_joints import IDENTITY, Part
from linkwise.mechanism.contacts import ContactRules, ContactScene, Ground
from linkwise.mechanism.description import Geometry, JointLimits, Mimic, Picture
from linkwise.mechanism.description import Kind as ShapeKind
from linkwise.mechanism.materials import Material

FORMAT = "linkwise model"
VERSION = 1
"""Of the files written; read are this one and those before."""

_ONE = (1.0, 1.0, 1.0)
_NONE: tuple[Any, ...] = ()
_DEEPEST = 24  # names and numbers on the way to a value
_SAME = 1e-12  # how far an axis may be from length one: the rounding of numbers


class _Key(Kind):
    """The name or number of a node."""

    def write(self, value: Any, to: Document) -> Any:
        return value if isinstance(value, str) else int(value)

    def read(self, at: At) -> Any:
        return Text().read(at) if isinstance(at.value, str) else Whole(-(2**31)).read(at)


def _exact(make: Callable[..., Any], **given: Any) -> Any:
    """An object with these numbers to the last bit: what its class would make of length one is that already."""
    made = make(**given)
    for name, value in given.items():
        own = getattr(made, name)
        if own == value:
            continue
        if not isinstance(value, tuple) or max(abs(a - b) for a, b in zip(own, value, strict=True)) > _SAME:
            raise InputError(f"the {name} is not of length one", got=str(value), do=f"write {list(own)}")
        object.__setattr__(made, name, value)
    return made


def _of(kind: type, **fields: tuple[Kind, Any]) -> tuple[type, Record]:
    return kind, Record(fields, lambda **given: _exact(kind, **given))


class _Constant(Kind):
    """A constant of a joint: a number, several, a text, or another joint."""

    def write(self, value: Any, to: Document) -> Any:
        if isinstance(value, Joint):
            return {"type": value.word, **_constants(type(value)).write(value.constants(), to)}
        return list(value) if isinstance(value, tuple) else value

    def read(self, at: At) -> Any:
        if isinstance(at.value, dict):
            if len(at.path) > _DEEPEST:
                at.fail("joints within joints go too deep", allowed="a few")
            return _JointTagged(Record({}), "kind", {}, lambda joint: None).read(at)["kind"]
        if isinstance(at.value, list):
            return Numbers().read(at)
        if at.value is None or isinstance(at.value, (bool, str)):
            return at.value
        return at.value if isinstance(at.value, int) and abs(at.value) < 2**31 else Number().read(at)


def _constants(kind: type[Joint]) -> Record:
    def made(**given: Any) -> Joint:
        try:
            joint: Joint = _exact(kind.from_constants, **given)
        except LinkwiseError:
            raise
        except Exception as error:  # whatever a class of the user's raises
            raise InputError(
                f"a {kind.word} joint cannot have these constants", got=f"{type(error).__name__}: {error}"[:200]
            ) from None
        return joint

    return Record({name: (_Constant(), REQUIRED) for name in kind.constant_names()}, made)


def _joint_unstored(joint: Joint) -> str | None:
    """Why a joint cannot be written by the constants that its constructor takes."""
    if joint.functions:
        return f"{joint!r} is a program"
    if joint_types().get(joint.word) is not type(joint):
        return f"{joint!r} is of a class whose name {joint.word!r} another has taken"
    for name in joint.constant_names():
        value = getattr(joint, name, _constants)
        reason = _joint_unstored(value) if isinstance(value, Joint) else None
        if reason is not None:
            return reason
        several = value if isinstance(value, tuple) else (value,)
        if not all(x is None or isinstance(x, (str, bool, int, float, Joint)) for x in several):
            return f"{joint!r} is a program: its {name} is no constant"
        if name in ("type", *JOINT.common.fields):
            return f"its constant {name!r} is named like what every joint has"
    return None


class _JointTagged(Tagged):
    """A joint, or a closure by what a joint leaves free: every type that is there is known by its word."""

    def tagged(self, own: Any) -> tuple[str, Any]:
        joint = own.joint if isinstance(own, closures.JointClosure) else own
        return (joint.word, joint.constants()) if isinstance(joint, Joint) else super().tagged(own)

    def records(self) -> Mapping[str, Record]:
        return {**super().records(), **{word: _constants(kind) for word, kind in joint_types().items()}}


_AXIS = (Numbers(3), REQUIRED)

CLOSURES: dict[str, tuple[type, Record]] = {
    "point_on_plane": _of(closures.PointOnPlane, normal=_AXIS),
    "distance": _of(closures.Distance, length=(Number(), REQUIRED)),
    "rolling": _of(
        closures.Rolling,
        radius=(Number(), REQUIRED),
        axis=(OrNone(Numbers(3)), None),
        normal=(Numbers(3), (0.0, 0.0, 1.0)),
    ),
}


def _coupling(joints: tuple[str, ...], coefficients: tuple[float, ...], offset: float) -> closures.Coupling:
    if len(set(joints)) != len(coefficients) or len(joints) != len(coefficients):
        raise InputError("a coupling has one coefficient for each joint, each once", got=f"{joints}, {coefficients}")
    return closures.Coupling(dict(zip(joints, coefficients, strict=True)), offset)


def _polynomial(
    joints: tuple[str, ...],
    left: tuple[float, ...],
    right: tuple[float, ...],
    polynomial: tuple[float, ...],
    start: float,
) -> closures.PolynomialCoupling:
    n = len(left)
    if len(set(joints)) != n + len(right) or len(joints) != n + len(right):
        raise InputError("a coupling has one coefficient for each joint, each once", got=f"{joints}, {left}, {right}")
    sides = dict(zip(joints[:n], left, strict=True)), dict(zip(joints[n:], right, strict=True))
    return closures.PolynomialCoupling(*sides, polynomial, start)


RELATIONS: dict[str, tuple[type, Record]] = {
    "polynomial": (
        closures.PolynomialCoupling,
        Record(
            {
                "joints": (ListOf(Text()), REQUIRED),
                "left": (Numbers(), REQUIRED),
                "right": (Numbers(), REQUIRED),
                "polynomial": (Numbers(), REQUIRED),
                "start": (Number(), 0.0),
            },
            _polynomial,
        ),
    ),
    "coupling": (
        closures.Coupling,
        Record(
            {"joints": (ListOf(Text()), REQUIRED), "coefficients": (Numbers(), REQUIRED), "offset": (Number(), 0.0)},
            _coupling,
        ),
    ),
}


class _MaterialRecord(Record):
    """A material: two coefficients of friction, and no stiffness where it is rigid."""

    def write(self, value: Any, to: Document) -> Any:
        stiffness = None if value.is_rigid else value.stiffness
        return super().write({**vars(value), "friction": value.coefficients, "stiffness": stiffness}, to)


def _material(friction: tuple[float, float], stiffness: float | None, **given: Any) -> Material:
    mu = friction[0] if friction[0] == friction[1] else friction
    return Material(mu, stiffness=math.inf if stiffness is None else stiffness, **given)


MATERIAL = _MaterialRecord(
    {
        "friction": (Numbers(2), REQUIRED),
        "torsion": (Number(0.0), 0.0),
        "rolling": (Number(0.0), 0.0),
        "restitution": (Number(0.0), 0.0),
        "threshold": (Number(0.0), 0.01),
        "impact": (Text(("newton", "poisson")), "newton"),
        "stiffness": (OrNone(Number(0.0)), None),
        "damping": (Number(0.0), 0.0),
        "law": (Text(("linear", "hunt_crossley")), "linear"),
        "direction": (Numbers(3), (1.0, 0.0, 0.0)),
        "name": (Text(), ""),
        "combining": (Text(("mean", "larger")), "mean"),
        "priority": (Whole(), 0),
    },
    _material,
)

PICTURE = Record(
    {"file": (Text(), REQUIRED), "repeat": (Numbers(2), (1.0, 1.0)), "uniform": (Flag(), False)},
    Picture,
)

GEOMETRY = Record(
    {
        "kind": (Text(get_args(ShapeKind)), REQUIRED),
        "size": (Numbers(), _NONE),
        "mesh": (OrNone(Text()), None),
        "scale": (Numbers(3), _ONE),
        "placement": (Pose(), IDENTITY),
        "name": (Text(), REQUIRED),
        "rgba": (OrNone(Numbers(4)), None),
        "vertices": (ListOf(Numbers(3)), _NONE),
        "faces": (ListOf(Numbers(3)), _NONE),
        "heights": (ListOf(Numbers()), _NONE),
        "contype": (Whole(), 1),
        "conaffinity": (Whole(), 1),
        "material": (OrNone(MATERIAL), None),
        "compliance": (OrNone(Numbers(2)), None),
        "texture": (OrNone(PICTURE), None),
    },
    lambda **given: _geometry(**given),
)
_SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "heightfield": 2}


def _geometry(**given: Any) -> Geometry:
    kind = given["kind"]
    count = _SIZES.get(kind, 0)
    if len(given["size"]) != count or (kind == "mesh") != (given["mesh"] is not None):
        raise InputError(
            f"a shape of kind {kind!r} has {count} numbers as its size, and a mesh if it is one",
            got=f"size {given['size']}, mesh {given['mesh']!r}"[:100],
        )
    faces = tuple((int(a), int(b), int(c)) for a, b, c in given.pop("faces"))
    if any(not 0 <= k < len(given["vertices"]) for face in faces for k in face):
        raise InputError(
            "a face of a terrain names a vertex that is not there", allowed=f"{len(given['vertices'])} vertices"
        )
    return Geometry(**given, faces=faces)


PART = Record(
    {
        "name": (Text(), REQUIRED),
        "placement": (Pose(), IDENTITY),
        "mass": (Number(0.0), 0.0),
        "com": (Numbers(3), (0.0, 0.0, 0.0)),
        "inertia": (Numbers(6), (0.0,) * 6),
        "node": (Whole(), 0),
    },
    Part,
)

LIMITS = Record(
    {
        "lower": (Number(), -math.inf),
        "upper": (Number(), math.inf),
        "velocity": (Number(0.0), math.inf),
        "effort": (Number(0.0), math.inf),
    },
    JointLimits,
)

MIMIC = Record({"joint": (Text(), REQUIRED), "multiplier": (Number(), 1.0), "offset": (Number(), 0.0)}, Mimic)

JOINT = _JointTagged(
    Record(
        {
            "name": (Text(), REQUIRED),
            "limits": (ListOf(LIMITS), _NONE),
            "armature": (Numbers(low=0.0), None),
            "damping": (Numbers(low=0.0), None),
            "friction": (Numbers(low=0.0), None),
            "stiffness": (Numbers(low=0.0), None),
            "rest": (Numbers(), None),
            "mimic": (OrNone(MIMIC), None),
        }
    ),
    "kind",
    {},
    lambda joint: (reason := _joint_unstored(joint["kind"])) and f"joint {joint['name']!r}: {reason}",
)

NODE = Record(
    {
        "number": (Whole(-(2**31)), REQUIRED),
        "name": (OrNone(Text()), None),
        "position": (Tensor(1), REQUIRED),
        "Gamma": (Tensor(2), REQUIRED),
        "Lambda": (Tensor(2), REQUIRED),
        "Q": (Tensor(3), REQUIRED),
    }
)

_INTEGRAL_AXES = {
    "h0": 1, "h1": 2, "S0": 2, "X": 3, "J0": 2, "J1": 3, "J2": 4, "A0": 2, "A1": 3, "Me": 2, "a": 3, "B": 4,
}  # fmt: skip
INTEGRALS = Record(
    {"mass": (Number(0.0), REQUIRED)} | {name: (Tensor(axes), REQUIRED) for name, axes in _INTEGRAL_AXES.items()}
)

REDUCTION = Record(
    {
        "boundary": (Text(), REQUIRED),
        "dofs": (Whole(), REQUIRED),
        "kept_hz": (Numbers(), _NONE),
        "dropped_hz": (Numbers(), _NONE),
        "effective_mass": (Numbers(), _NONE),
        "static_error": (ListOf(Row(_Key(), Number())), _NONE),
        "gain_error": (OrNone(Number()), None),
        "contributions": (ListOf(Row(Number(), Number(), Flag())), _NONE),
    },
    Reduction,
)


def _flexible(nodes: tuple[dict[str, Any], ...], integrals: dict[str, Any], **given: Any) -> FlexibleBody:
    K = given["stiffness"]
    m = len(K)
    sizes = {1: (3,), 2: (3, m), 3: (3, m, m), 4: (3, 3, m, m)}
    shapes = {name: sizes[axes] for name, axes in _INTEGRAL_AXES.items()} | {
        "S0": (3, 3), "J0": (3, 3), "X": (3, 3, m), "J1": (3, 3, m), "Me": (m, m),
    }  # fmt: skip
    found = {f"the integral {name}": (integrals[name], shape) for name, shape in shapes.items()}
    found |= {name: (given[name], (m, m)) for name in ("stiffness", "damping")}
    for k, node in enumerate(nodes):
        wanted = (("position", (3,)), ("Gamma", (3, m)), ("Lambda", (3, m)), ("Q", (3, m, m)))
        found |= {f"{name} of node {k}": (node[name], shape) for name, shape in wanted}
    for name, (array, shape) in found.items():
        if array.shape != shape:
            raise InputError(f"{name} has the wrong shape", got=str(array.shape), allowed=f"{shape}: {m} modes")
    if not m or integrals["mass"] == 0.0:
        raise InputError("a flexible body has modes and a mass", got=f"{m} modes, {integrals['mass']} kg")
    numbers = [node["number"] for node in nodes]
    names = [node["name"] for node in nodes if node["name"] is not None]
    if len(set(numbers)) < len(numbers) or len(set(names)) < len(names):
        raise InputError("two nodes of a flexible body have one name", got=f"{numbers[:12]}, {names[:12]}")
    return FlexibleBody(
        nodes=tuple(FlexibleNode(**node) for node in nodes), integrals=ModalIntegrals(**integrals), **given
    )


FLEXIBLE = Record(
    {
        "boundary": (Text(tuple(BOUNDARIES)), REQUIRED),
        "stiffening": (Flag(), REQUIRED),
        "nodes": (ListOf(NODE), REQUIRED),
        "stiffness": (Tensor(2), REQUIRED),
        "damping": (Tensor(2), REQUIRED),
        "integrals": (INTEGRALS, REQUIRED),
        "reduction": (OrNone(REDUCTION), None),
        "held": (Whole(), 0),
    },
    _flexible,
)

BODY = Record(
    {
        "name": (Text(), REQUIRED),
        "parent": (Text(), "world"),
        "placement": (Pose(), IDENTITY),
        "joint_frame": (Pose(), IDENTITY),
        "node": (Whole(), 0),
        "joint": (JOINT, REQUIRED),
        "parts": (ListOf(PART), _NONE),
        "flexible": (OrNone(FLEXIBLE), None),
        "visuals": (ListOf(GEOMETRY), _NONE),
        "collisions": (ListOf(GEOMETRY), _NONE),
    }
)

FRAME = Record(
    {"name": (Text(), REQUIRED), "body": (Text(), "world"), "placement": (Pose(), IDENTITY), "node": (Whole(), 0)}
)

PLACE = Record({"body": (Text(), "world"), "placement": (Pose(), IDENTITY), "node": (Whole(), 0)})


def _unstored(value: dict[str, Any]) -> str | None:
    kind = value["kind"]
    if isinstance(kind, closures.JointClosure):
        reason = _joint_unstored(kind.joint)
        return reason and f"closure {value['name']!r}: {reason}"
    known = {each for each, _ in (*CLOSURES.values(), *RELATIONS.values())}
    if type(kind) not in known or callable(getattr(kind, "length", None)):
        return f"closure {value['name']!r}: {type(kind).__name__} holds a function, which is a program"
    return None


CLOSURE = _JointTagged(
    Record(
        {
            "name": (Text(), REQUIRED),
            "a": (PLACE, REQUIRED),
            "b": (PLACE, REQUIRED),
            "limits": (ListOf(LIMITS), _NONE),
            "damping": (Numbers(low=0.0), None),
            "friction": (Numbers(low=0.0), None),
            "stiffness": (Numbers(low=0.0), None),
            "rest": (Numbers(), None),
        }
    ),
    "kind",
    CLOSURES,
    _unstored,
)
RELATION = Tagged(Record({"name": (Text(), REQUIRED)}), "kind", RELATIONS, _unstored)


class _Closing(Kind):
    """A closure between two places, or a relation between joints."""

    def write(self, value: Any, to: Document) -> Any:
        return (CLOSURE if "a" in value else RELATION).write(value, to)

    def read(self, at: At) -> Any:
        if isinstance(at.value, dict) and at.value.get("type") in ("weld", "planar"):  # as files had it once
            names = {"normal": "axis"}
            at = replace(at, value={names.get(k, k): "fixed" if x == "weld" else x for k, x in at.value.items()})
        related = isinstance(at.value, dict) and at.value.get("type") in list(RELATIONS)
        return (RELATION if related else CLOSURE).read(at)


REFERENCE = Record({"q": (Numbers(), REQUIRED), "t": (Number(), 0.0), "independent": (ListOf(Whole()), _NONE)})

ARCHIVE = Record({"file": (Text(), REQUIRED), "sha256": (Text(), REQUIRED)})


GROUND = Record(
    {
        "placement": (Pose(), IDENTITY),
        "material": (OrNone(MATERIAL), None),
        "velocity": (Numbers(3), (0.0, 0.0, 0.0)),
        "spin": (Numbers(3), (0.0, 0.0, 0.0)),
        "shape": (GEOMETRY, REQUIRED),
        "name": (Text(), "ground"),
    },
    Ground,
)

_USUAL = ContactRules()
CONTACT_RULES = Record(
    {
        "solver": (Text(("auto", "dual")), _USUAL.solver),
        **{name: (Whole(), getattr(_USUAL, name)) for name in ("sweeps", "polish", "rounds", "passes")},
        **{
            name: (Number(0.0), getattr(_USUAL, name))
            for name in ("tolerance", "recovery", "overlap", "friction_speed", "smoothing")
        },
        "backward": (Text(("exact", "smooth")), _USUAL.backward),
        **{name: (Flag(), getattr(_USUAL, name)) for name in ("joint_limits", "joint_friction")},
    },
    ContactRules,
)

_TWO_NAMES = Row(Text(), Text())
CONTACT_SCENE = Record(
    {
        "grounds": (ListOf(GROUND), _NONE),
        "material": (OrNone(MATERIAL), None),
        "materials": (ListOf(Row(Text(), MATERIAL)), _NONE),
        "only": (OrNone(ListOf(Text())), None),
        "between": (OrNone(ListOf(_TWO_NAMES)), None),
        "exclude": (ListOf(_TWO_NAMES), _NONE),
        "rules": (CONTACT_RULES, REQUIRED),
        "softness": (Text(("rigid", "file")), "rigid"),
    },
    ContactScene,
)

MODEL = Record(
    {
        "format": (Text((FORMAT,)), REQUIRED),
        "version": (Whole(1), REQUIRED),
        "name": (Text(), REQUIRED),
        "gravity": (Numbers(3), REQUIRED),
        "arrays": (OrNone(ARCHIVE), None),
        "bodies": (ListOf(BODY), REQUIRED),
        "base_parts": (ListOf(PART), _NONE),
        "base_visuals": (ListOf(GEOMETRY), _NONE),
        "base_collisions": (ListOf(GEOMETRY), _NONE),
        "contact_excludes": (ListOf(Row(Text(), Text())), _NONE),
        "contact_scene": (OrNone(CONTACT_SCENE), None),
        "frames": (ListOf(FRAME), _NONE),
        "closures": (ListOf(_Closing()), _NONE),
        "closure_solver": (Text(), "auto"),
        "closure_reference": (OrNone(REFERENCE), None),
        "parameters": (ListOf(Text()), _NONE),
        "actuators": (ListOf(ACTUATOR), _NONE),
        "sensors": (ListOf(SENSOR), _NONE),
        "springs": (ListOf(SPRING), _NONE),
        "fields": (ListOf(FIELD), _NONE),
        "configurations": (Table(Numbers()), {}),
        "sweeps": (Text(("auto", "rolled", "unrolled")), "auto"),
    }
)
