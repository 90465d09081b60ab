"""Schema of a native file, as records; ``docs/guide/native_file.md`` has it to be read.

A change that older readers would misunderstand needs a new VERSION, and a way to read the old one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from linkwise.errors import InputError, LinkwiseError
from linkwise.files.native.equipment_schema import ACTUATOR, FIELD, SENSOR, SPRING
from linkwise.files.native.kinds import (
    REQUIRED,
    Document,
    Field,
    FilePlace,
    Json,
    ListOf,
    Number,
    Numbers,
    OrNone,
    Pose,
    RecordKind,
    RowKind,
    TableKind,
    Tagged,
    Tensor,
    TextKind,
    ValueKind,
    Whole,
    kind_of,
)
from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.flexible.integrals import ModalIntegrals
from linkwise.flexible.mode_choice import BOUNDARIES
from linkwise.flexible.reduction import Reduction
from linkwise.joints import Joint, joint_types
from linkwise.mechanism import closures
from linkwise.mechanism.bodies_and_joints import IDENTITY, Part
from linkwise.mechanism.contacts import ContactRules, ContactScene, Ground
from linkwise.mechanism.description import FIRST_PAIR_BIT, SIZES, Geometry, JointLimits, Mimic, NamedPair, Picture
from linkwise.mechanism.materials import Material

FORMAT = "linkwise model"
VERSION = 1
"""Of the files written; read are this one and those before."""

_NONE: tuple[object, ...] = ()
_PLACEMENT = (Pose(), IDENTITY)
_PER_FREEDOM: dict[str, Field] = {
    **{name: (Numbers(low=0.0), None) for name in ("damping", "friction", "stiffness")},
    "rest": (Numbers(), None),
}
_MOST_BITS = 4096  # of what shapes are and touch: a file has up to a thousand pairs of its own
_DEEPEST = 24  # names and numbers on the way to a value
_SAME = 1e-12  # how far an axis may be from length one: the rounding of numbers


class _Key(ValueKind[str | int]):
    """The name or number of a node."""

    def write(self, value: str | int, to: Document) -> Json:
        return value if isinstance(value, str) else int(value)

    def read(self, at: FilePlace) -> str | int:
        return TextKind().read(at) if isinstance(at.value, str) else Whole(-(2**31)).read(at)


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


def _of(kind: type, **fields: Field) -> tuple[type, RecordKind]:
    return kind, RecordKind(fields, lambda **given: _exact(kind, **given))


class _Constant(ValueKind[Any]):
    """A constant of a joint: a number, several, a text, or another joint."""

    def write(self, value: Any, to: Document) -> Json:
        if isinstance(value, Joint):
            return {"type": value.word, **_constants(type(value)).write(value.constants(), to)}
        found: Json = list(value) if isinstance(value, tuple) else value
        return found

    def read(self, at: FilePlace) -> Any:
        if isinstance(at.value, dict):
            if len(at.path) > _DEEPEST:
                at.fail("joints within joints go too deep", allowed="a few")
            return _JointTagged(RecordKind({}), "kind", {}, lambda joint: None).read(at)["kind"]
        if isinstance(at.value, list):
            return Numbers().read(at)
        if at.value is None or isinstance(at.value, (bool, str)):
            return at.value
        return at.value if isinstance(at.value, int) and abs(at.value) < 2**31 else Number().read(at)


def _constants(kind: type[Joint]) -> RecordKind:
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

    return RecordKind({name: (_Constant(), REQUIRED) for name in kind.constant_names()}, made)


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

    def tagged(self, own: object) -> tuple[str, object]:
        joint = own.joint if isinstance(own, closures.JointClosure) else own
        return (joint.word, joint.constants()) if isinstance(joint, Joint) else super().tagged(own)

    def records(self) -> Mapping[str, RecordKind]:
        return {**super().records(), **{word: _constants(kind) for word, kind in joint_types().items()}}


_AXIS = (Numbers(3), REQUIRED)

CLOSURES: dict[str, tuple[type, RecordKind]] = {
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


RELATIONS: dict[str, tuple[type, RecordKind]] = {
    "polynomial": (
        closures.PolynomialCoupling,
        RecordKind(
            {
                "joints": (ListOf(TextKind()), REQUIRED),
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
        RecordKind(
            {
                "joints": (ListOf(TextKind()), REQUIRED),
                "coefficients": (Numbers(), REQUIRED),
                "offset": (Number(), 0.0),
            },
            _coupling,
        ),
    ),
}


class _Friction(ValueKind[float | tuple[float, float]]):
    """Two coefficients; one of them where both are the same."""

    def write(self, value: float | tuple[float, float], to: Document) -> Json:
        return [float(mu) for mu in (value if isinstance(value, tuple) else (value, value))]

    def read(self, at: FilePlace) -> float | tuple[float, float]:
        first, second = Numbers(2).read(at)
        return first if first == second else (first, second)


class _Stiffness(ValueKind[float]):
    """Null where it is infinite."""

    def write(self, value: float, to: Document) -> Json:
        return None if math.isinf(value) else float(value)

    def read(self, at: FilePlace) -> float:
        return math.inf if at.value is None else Number(0.0).read(at)


RecordKind.of(
    Material,
    friction=(_Friction(), REQUIRED),
    stiffness=_Stiffness(),
    priority=Whole(-(2**31)),
    directions=Whole(1, 7),
    **{name: Number(0.0) for name in ("torsion", "rolling", "restitution", "threshold", "damping")},
)
RecordKind.of(Picture)
RecordKind.of(NamedPair, bit=Whole(FIRST_PAIR_BIT, _MOST_BITS))


def _geometry(**given: Any) -> Geometry:
    kind = given["kind"]
    count = SIZES.get(kind, 0)
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


_BITS = Whole(0, 2**_MOST_BITS)
GEOMETRY = RecordKind.of(
    Geometry,
    _geometry,
    name=(TextKind(empty=True), REQUIRED),
    label=(TextKind(empty=True), ""),
    size=(Numbers(), _NONE),
    mesh=(OrNone(TextKind()), None),
    scale=(Numbers(3), (1.0, 1.0, 1.0)),
    placement=_PLACEMENT,
    source=None,
    faces=ListOf(Numbers(3)),
    contype=_BITS,
    conaffinity=_BITS,
)

PART = RecordKind.of(
    Part,
    placement=_PLACEMENT,
    mass=(Number(0.0), 0.0),
    com=(Numbers(3), (0.0, 0.0, 0.0)),
    inertia=(Numbers(6), (0.0,) * 6),
)
LIMITS = RecordKind.of(JointLimits, velocity=Number(0.0), effort=Number(0.0))
RecordKind.of(Mimic)

JOINT = _JointTagged(
    RecordKind(
        {
            "name": (TextKind(), REQUIRED),
            "limits": (ListOf(LIMITS), _NONE),
            "armature": (Numbers(low=0.0), None),
            **_PER_FREEDOM,
            "mimic": (kind_of(Mimic | None), None),
        }
    ),
    "kind",
    {},
    lambda joint: (reason := _joint_unstored(joint["kind"])) and f"joint {joint['name']!r}: {reason}",
)

_ANY_NUMBER = Whole(-(2**31))
_LIST = (Numbers(), _NONE)
RecordKind.of(FlexibleNode, number=_ANY_NUMBER, position=Tensor(1), Gamma=Tensor(2), Lambda=Tensor(2), Q=Tensor(3))
RecordKind.of(
    ModalIntegrals, mass=Number(0.0), **{name: Tensor(len(shape)) for name, shape in ModalIntegrals.shapes(1).items()}
)
RecordKind.of(
    Reduction,
    kept_hz=_LIST,
    dropped_hz=_LIST,
    effective_mass=_LIST,
    static_error=(ListOf(RowKind(_Key(), Number())), _NONE),
)
RecordKind.of(FlexibleBody, boundary=TextKind(tuple(BOUNDARIES)), stiffness=Tensor(2), damping=Tensor(2))
BODY = RecordKind(
    {
        "name": (TextKind(), REQUIRED),
        "parent": (TextKind(), "world"),
        "placement": _PLACEMENT,
        "joint_frame": _PLACEMENT,
        "node": (Whole(), 0),
        "joint": (JOINT, REQUIRED),
        "parts": (ListOf(PART), _NONE),
        "flexible": (kind_of(FlexibleBody | None), None),
        "visuals": (ListOf(GEOMETRY), _NONE),
        "collisions": (ListOf(GEOMETRY), _NONE),
    }
)

FRAME = RecordKind(
    {"name": (TextKind(), REQUIRED), "body": (TextKind(), "world"), "placement": _PLACEMENT, "node": (Whole(), 0)}
)

PLACE = RecordKind({"body": (TextKind(), "world"), "placement": _PLACEMENT, "node": (Whole(), 0)})


def _unstored(value: Mapping[str, Any]) -> str | None:
    kind = value["kind"]
    if isinstance(kind, closures.JointClosure):
        reason = _joint_unstored(kind.joint)
        return reason and f"closure {value['name']!r}: {reason}"
    known = {each for each, _ in (*CLOSURES.values(), *RELATIONS.values())}
    if type(kind) not in known or callable(getattr(kind, "length", None)):
        return f"closure {value['name']!r}: {type(kind).__name__} holds a function, which is a program"
    return None


CLOSURE = _JointTagged(
    RecordKind(
        {
            "name": (TextKind(), REQUIRED),
            "a": (PLACE, REQUIRED),
            "b": (PLACE, REQUIRED),
            "limits": (ListOf(LIMITS), _NONE),
            **_PER_FREEDOM,
        }
    ),
    "kind",
    CLOSURES,
    _unstored,
)
RELATION = Tagged(RecordKind({"name": (TextKind(), REQUIRED)}), "kind", RELATIONS, _unstored)


class _ClosingType(ValueKind[dict[str, Any]]):
    """A closure between two places, or a relation between joints."""

    def write(self, value: dict[str, Any], to: Document) -> Json:
        return (CLOSURE if "a" in value else RELATION).write(value, to)

    def read(self, at: FilePlace) -> dict[str, Any]:
        if isinstance(at.value, dict) and at.value.get("type") in ("weld", "planar"):  # as files had it once
            names = {"normal": "axis"}
            at = replace(at, value={names.get(k, k): "fixed" if x == "weld" else x for k, x in at.value.items()})
        related = isinstance(at.value, dict) and at.value.get("type") in list(RELATIONS)
        return (RELATION if related else CLOSURE).read(at)


REFERENCE = RecordKind({"q": (Numbers(), REQUIRED), "t": (Number(), 0.0), "independent": (ListOf(Whole()), _NONE)})

ARCHIVE = RecordKind({"file": (TextKind(), REQUIRED), "sha256": (TextKind(), REQUIRED)})


RecordKind.of(Ground, placement=_PLACEMENT, shape=(GEOMETRY, REQUIRED))
RecordKind.of(
    ContactRules,
    **{name: Number(0.0) for name in ("tolerance", "recovery", "overlap", "friction_speed", "smoothing")},
)
RecordKind.of(ContactScene, rules=(kind_of(ContactRules), REQUIRED))

MODEL = RecordKind(
    {
        "format": (TextKind((FORMAT,)), REQUIRED),
        "version": (Whole(1), REQUIRED),
        "name": (TextKind(), REQUIRED),
        "gravity": (Numbers(3), REQUIRED),
        "arrays": (OrNone(ARCHIVE), None),
        "bodies": (ListOf(BODY), REQUIRED),
        "base_parts": (ListOf(PART), _NONE),
        "base_visuals": (ListOf(GEOMETRY), _NONE),
        "base_collisions": (ListOf(GEOMETRY), _NONE),
        "contact_excludes": (ListOf(RowKind(TextKind(), TextKind())), _NONE),
        "contact_scene": (kind_of(ContactScene | None), None),
        "frames": (ListOf(FRAME), _NONE),
        "closures": (ListOf(_ClosingType()), _NONE),
        "closure_solver": (TextKind(), "auto"),
        "closure_reference": (OrNone(REFERENCE), None),
        "parameters": (ListOf(TextKind()), _NONE),
        "actuators": (ListOf(ACTUATOR), _NONE),
        "sensors": (ListOf(SENSOR), _NONE),
        "springs": (ListOf(SPRING), _NONE),
        "fields": (ListOf(FIELD), _NONE),
        "configurations": (TableKind(Numbers()), {}),
        "velocities": (TableKind(Numbers()), {}),
        "sweeps": (TextKind(("auto", "rolled", "unrolled")), "auto"),
    }
)
