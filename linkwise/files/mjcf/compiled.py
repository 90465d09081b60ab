"""The document to MuJoCo's compiled model: defaults, orientations, inertias of shapes and meshes are resolved by it."""

from __future__ import annotations

import re
import warnings
from typing import Any, SupportsInt

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelFileError, require_extra
from linkwise.files.mjcf.document import PICTURE, MujocoDocument, Spot
from linkwise.mechanism.description import FIRST_PAIR_BIT
from linkwise.spatial import quaternions

WITHIN = {"equality": "constraint", "frictionloss": "constraint", "limit": "constraint", "contact": "constraint"}
"""Switches that are off where another one is."""

_LINE = re.compile(r"\bline (\d+)")
_PREFIX = re.compile(r"^(?:XML )?(?:Error|ParseXML): *", re.IGNORECASE)
_MOST_BODIES = 20_000
_OLDEST = 4


@dataclass(eq=False)
class Compiled:
    """MuJoCo's model, and where its elements were written.

    Args:
        mj: the module ``mujoco``.
        model: an ``MjModel``.
        document: what it was made from.
        notes: what MuJoCo warned about.
        colliding: contype and conaffinity of the geoms that collide, by their numbers.
    """

    mj: Any
    spec: Any
    model: Any
    document: MujocoDocument
    notes: list[str]
    colliding: dict[int, tuple[int, int]]

    def __post_init__(self) -> None:
        attached = bool(self.document.parts)  # their lines are of other texts
        self._lines = {
            kind: {} if attached else {int(each.id): _line(each.info) for each in elements}
            for kind, elements in (
                ("body", self.spec.bodies),
                ("joint", self.spec.joints),
                ("site", self.spec.sites),
                ("camera", self.spec.cameras),
                ("equality", self.spec.equalities),
                ("actuator", self.spec.actuators),
                ("sensor", self.spec.sensors),
                ("tendon", self.spec.tendons),
                ("key", self.spec.keys),
            )
        }

    def spot(self, kind: str, index: int) -> Spot:
        """The file and line of an element."""
        return self.document.spot(self._lines[kind].get(index))

    def at(self, kind: str, index: int) -> tuple[int, str | None]:
        """The line of an element, and its file where that is not the main one."""
        file, line = self.spot(kind, index)
        return line, None if file == self.document.where[0][0] else file

    def written(self, kind: str, index: int) -> str:
        """The name of an element as the file has it, or nothing."""
        code = getattr(self.mj.mjtObj, f"mjOBJ_{kind.upper()}")
        return self.mj.mj_id2name(self.model, int(code), int(index)) or ""

    def name(self, kind: str, index: int) -> str:
        """The name of an element; its kind and number where it has none, unlike those that the file has."""
        written = self.written(kind, index)
        if written:
            return written
        code, own = int(getattr(self.mj.mjtObj, f"mjOBJ_{kind.upper()}")), f"{kind}{index}"
        while self.mj.mj_name2id(self.model, code, own) >= 0:
            own += "_"
        return own

    def word(self, kind: str, number: SupportsInt) -> str:
        """The word for a member of one of MuJoCo's enumerations: ``word("mjtJoint", 3)`` is "hinge"."""
        member: str = getattr(self.mj, kind)(int(number)).name
        return member.partition("_")[2].lower()

    def joint_type(self, joint: int) -> str:
        """One of free, ball, slide, hinge."""
        return self.word("mjtJoint", self.model.jnt_type[joint])

    def is_single(self, joint: int) -> bool:
        """Whether a joint has one freedom."""
        return self.joint_type(joint) in ("hinge", "slide")

    def is_off(self, what: str) -> bool:
        """Whether the file switches something off, say gravity or spring, or all that it is part of."""
        own = int(getattr(self.mj.mjtDisableBit, f"mjDSBL_{what.upper()}"))
        return bool(int(self.model.opt.disableflags) & own) or (what in WITHIN and self.is_off(WITHIN[what]))

    @property
    def is_passive_off(self) -> bool:
        """Whether nothing passive acts: the fluid and the compensation of gravity go with springs and dampers."""
        return self.is_off("spring") and self.is_off("damper")

    def mesh_path(self, index: int) -> str | None:
        """The path of a mesh's file; None where the mesh is in the model itself."""
        own = {int(each.id): each.file for each in self.spec.meshes}.get(index, "")
        path = self.document.meshes.get(own.rpartition("/")[2])
        return None if path is None else str(path)

    def picture(self, material: int) -> str | None:
        """The file of the picture that a material has; None where it has none."""
        role = int(self.mj.mjtTextureRole.mjTEXROLE_RGB)
        texture = int(self.model.mat_texid[material, role])
        if texture < 0:
            return None
        _, ours, number = self.written("texture", texture).rpartition(PICTURE)
        return self.document.pictures[ours + number]

    def fail(self, what: str, kind: str, index: int, **parts: object) -> ModelFileError:
        """An error at an element."""
        file, line = self.spot(kind, index)
        return ModelFileError(what, file=file, line=line, **parts)


def compiled(document: MujocoDocument) -> Compiled:
    """Have MuJoCo read and compile the document.

    Raises:
        MissingExtraError: neither ``mujoco-core`` nor ``mujoco`` is installed.
        ModelFileError: what MuJoCo says is wrong, with the file and line.
    """
    mj = require_extra("mujoco", "mjcf")
    if int(mj.__version__.partition(".")[0]) < _OLDEST:
        raise InputError(
            "this version of MuJoCo is too old to read models with",
            got=f"mujoco {mj.__version__}",
            allowed=f"{_OLDEST}.0 or later",
            do='pip install --upgrade "linkwise[mjcf]"',
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            spec = mj.MjSpec.from_string(document.text, include=document.parts or None, assets=document.assets or None)
            if len(spec.bodies) > _MOST_BODIES:
                raise _refused(document, f"the model has more than {_MOST_BODIES} bodies")
            colliding = _without_contact(spec)
            model = spec.compile()
        except (ValueError, mj.FatalError, mj.UnexpectedError, RuntimeError, OverflowError, UnicodeError) as error:
            raise _refused(document, str(error)) from None
    _check_finite(document, model)
    notes = [str(each.message) for each in caught]
    return Compiled(mj, spec, model, document, notes, {int(geom.id): bits for geom, bits in colliding})


def _without_contact(spec: Any) -> list[tuple[Any, tuple[int, int]]]:
    """Take the geoms out of contact, so that no hulls of meshes are computed; returns those that were in it."""
    paired = _paired_bits(spec)
    geoms = [geom for geom in spec.geoms if geom.contype or geom.conaffinity or geom.name in paired]
    colliding = []
    for geom in geoms:
        contype, conaffinity = paired.get(geom.name, (0, 0))
        colliding.append((geom, (int(geom.contype) | contype, int(geom.conaffinity) | conaffinity)))
    if not spec.compiler.discardvisual:  # it discards what does not collide
        for geom in geoms:
            geom.contype = geom.conaffinity = 0
    return colliding


def _paired_bits(spec: Any) -> dict[str, tuple[int, int]]:
    """More contype and conaffinity of geoms by their names: each <pair> has a bit of its own, beyond a file's 32."""
    found: dict[str, tuple[int, int]] = {}
    for k, pair in enumerate(spec.pairs):
        bit = 1 << (FIRST_PAIR_BIT + k)
        for name, own in ((pair.geomname1, (bit, 0)), (pair.geomname2, (0, bit))):
            contype, conaffinity = found.get(name, (0, 0))
            found[name] = contype | own[0], conaffinity | own[1]
    return found


def _refused(document: MujocoDocument, text: str) -> ModelFileError:
    found = _LINE.search(text)
    file, line = document.spot(int(found[1]) if found else None)
    lines = [each.strip() for each in text.splitlines() if each.strip()] or ["no reason given"]
    what = lines[0]
    while _PREFIX.match(what):
        what = _PREFIX.sub("", what, count=1)
    element = next((each for each in lines[1:] if each.startswith("Element")), "")
    element = _LINE.sub("", element).strip(" ,")
    return ModelFileError(f"MuJoCo's compiler refuses this: {what}", file=file, line=line, got=element or None)


def _check_finite(document: MujocoDocument, model: Any) -> None:
    for name in (
        "body_pos",
        "body_quat",
        "body_ipos",
        "body_iquat",
        "body_mass",
        "body_inertia",
        "jnt_pos",
        "jnt_axis",
    ):
        if not np.isfinite(getattr(model, name)).all():
            raise _refused(document, f"{name} is not finite: numbers in the file are too large or too small")


def _line(info: str) -> int | None:
    found = _LINE.search(info or "")
    return int(found[1]) if found else None


def turn(quat_wxyz: ArrayLike, snap: float) -> FloatArray:
    """The rotation of a unit quaternion; exact zeros and ones where it is within `snap` of them."""
    R: FloatArray = np.array(quaternions.rotation_matrix(np.asarray(quat_wxyz, float).tolist()).m)
    snap = max(snap, 1e-15)
    R[np.abs(R) <= snap] = 0.0
    near = np.abs(np.abs(R) - 1.0) <= snap
    R[near] = np.sign(R[near])
    return R
