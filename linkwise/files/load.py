"""`load` and `loads`: a model from a file, or from the text of one."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelFileError, ModelWarning
from linkwise.files.bodies import bodies_of, check_inertias
from linkwise.files.build import build, check_massless
from linkwise.files.file_description import Description
from linkwise.files.resources import LARGEST_FILE, SearchPath, read_bytes
from linkwise.files.topology import arrange
from linkwise.files.urdf import read_urdf
from linkwise.files.xml import XmlElement, parse
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.placement import ANGLE_SNAP
from linkwise.memoized import no_search_for_cycles
from linkwise.model.model import Model

_SUFFIXES = (".urdf", ".sdf", ".world", ".xml", ".xacro", ".lw.json")
_LARGEST_SIDE_FILE = 1024 * 1024
_NOT_TEXT = {".usd": "USD", ".usda": "USD", ".usdc": "USD", ".usdz": "USD", ".mjb": "compiled MuJoCo models"}


def load(
    path: str | os.PathLike[str],
    *,
    floating: bool = False,
    locked: Iterable[str] | Mapping[str, float | None] = (),
    gravity: Sequence[float] | None = None,
    name: str | None = None,
    frames: Mapping[str, tuple[str, ArrayLike]] | None = None,
    mimic: bool = True,
    angle_snap: float = ANGLE_SNAP,
    allow_unphysical: bool = False,
    search: Iterable[str | os.PathLike[str]] = (),
    loops: str | os.PathLike[str] | None = None,
    arguments: Mapping[str, object] | None = None,
    environment: Iterable[str] | Mapping[str, str] = (),
) -> Model:
    """Read a mechanism from a URDF, SDF, MJCF or native file, or from a xacro file.

    >>> model = load("panda.urdf", locked=["panda_finger_joint1"])  # doctest: +SKIP

    Loops of an SDF file become closures: the joint of a link that comes second in the file closes one. Gearboxes
    become couplings. Equalities of an MJCF file (extra ``mjcf``) become closures and couplings, its actuators and
    sensors ``model.actuators`` and ``model.sensors``, its keyframes ``model.configurations``.

    Args:
        path: the file. The meshes that it names are not opened, but for those of MJCF, where they have mass.
        floating: free the root link: a joint "root_joint" of six degrees of freedom between it and the world.
            Otherwise the root link is fixed to the world. Where the root link is named "world" it *is* the world,
            and the one link fixed to it is freed. Of an SDF file, every link is freed that no joint connects with the
            world; at the neutral position it is where the file has it.
        locked: joints to hold still: names (held at zero) or a dict of values, in rad or m. Their links become part
            of the bodies that carry them. A joint that mimics a locked one is locked with it; a joint that is locked
            itself no longer mimics.
        gravity: the acceleration of gravity in m/s²; that of the file, or ``(0, 0, -9.81)``, where it is not given.
        name: the model's name; the file's own where it is not given.
        frames: more named frames to put on the links: ``{"tool": ("hand", placement)}``, placement 4x4.
        mimic: whether joints that mimic others follow them. With False each has its own coordinate.
        angle_snap: an rpy angle this near (in rad) to a multiple of π/2 is taken to be that multiple, which turns
            roundings into exact zeros that cost nothing. 1e-5 catches files that write 1.5708.
        allow_unphysical: keep an inertia that no body can have, with a warning, where the file would be refused.
        search: folders in which the files are that this one names: included models and meshes, as ``package://name/…``,
            ``model://name/…`` or paths. They come after the file's own folder and before those of the environment; see
            :mod:`linkwise.files.resources`. Files outside these folders are not opened, and nothing is fetched.
        loops: a side file, YAML or JSON, with the loops that a URDF file cannot describe (:mod:`linkwise.files.loops`
            has what may be in it). It is read only where it is named here: a file of the same name beside the model
            is not.
        arguments: of a xacro file, values for its ``<xacro:arg>``. Such a file is a program, and is run only where this
            is given, ``{}`` if there is nothing to say; :mod:`linkwise.files.xacro` has what it can do and what not.
        environment: variables of the environment that a xacro file may read by ``$(env NAME)``: their names, or a dict
            of values to take instead. No others can be read.

    Raises:
        ModelFileError: the file cannot be read as a mechanism; the message has the line.
        UnknownNameError: `locked` names a joint that does not exist.

    Warns:
        ModelWarning: the file was read, but has an inertia that no body can have, or joints that move no mass, or
            something was left out.
    """
    asked = _Reading(floating, locked, gravity, name, frames, mimic, angle_snap, allow_unphysical, loops)
    content = read_bytes(path, suffixes=_SUFFIXES)
    file = os.fspath(path)
    places = SearchPath.of(file, search)
    said: list[ModelWarning] = []
    if file.lower().endswith(".xacro"):
        from linkwise.files.xacro import expand

        root, said = expand(content, file, arguments, places, environment)
    elif arguments is not None or environment:
        raise InputError(
            "arguments and environment are for xacro files", got=file, allowed="a file whose name ends in .xacro"
        )
    elif is_native(content):
        return asked.native(content, file, places)
    else:
        root = _parsed(content, file)
    model, notes = asked.model(root, file, places)
    for note in (*said, *notes):
        warnings.warn(note, stacklevel=2)
    return model


def loads(
    text: str | bytes,
    *,
    floating: bool = False,
    locked: Iterable[str] | Mapping[str, float | None] = (),
    gravity: Sequence[float] | None = None,
    name: str | None = None,
    frames: Mapping[str, tuple[str, ArrayLike]] | None = None,
    mimic: bool = True,
    angle_snap: float = ANGLE_SNAP,
    allow_unphysical: bool = False,
    search: Iterable[str | os.PathLike[str]] = (),
    loops: str | os.PathLike[str] | None = None,
) -> Model:
    """Read a mechanism from the text of a URDF, SDF or MJCF file; the arguments are those of `load`."""
    if not isinstance(text, (str, bytes)):
        raise InputError("the text of a model must be a string or bytes", got=type(text).__name__)
    content = _encoded(text) if isinstance(text, str) else text
    if len(content) > LARGEST_FILE:
        raise InputError("the text is too large to be a model", allowed=f"at most {LARGEST_FILE} bytes")
    if not content.strip():
        raise ModelFileError("the text is empty", file="<string>")
    asked = _Reading(floating, locked, gravity, name, frames, mimic, angle_snap, allow_unphysical, loops)
    file, places = "<string>", SearchPath.of(None, search)
    if is_native(content):
        return asked.native(content, file, places)
    if b"<" not in content:
        raise ModelFileError("this is not the text of a model", file=file, do="use linkwise.load(path) for a file")
    model, notes = asked.model(_parsed(content, file), file, places)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return model


def is_native(content: bytes) -> bool:
    """Whether this is the text of a native file: JSON begins with a brace, and XML does not."""
    return content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _parsed(content: bytes, file: str) -> XmlElement:
    suffix = Path(file).suffix.lower()
    if suffix in _NOT_TEXT:
        raise ModelFileError(
            f"not supported yet: {_NOT_TEXT[suffix]}",
            file=file,
            allowed="URDF, SDF, MJCF",
            do="convert the file to one of these, or describe the mechanism with ModelBuilder",
        )
    return parse(content, file)


def _describe(
    root: XmlElement, file: str, angle_snap: float, places: SearchPath
) -> tuple[Description, list[ModelWarning]]:
    """Description of a file, read by the reader of its format."""
    if not 0.0 <= angle_snap < math.pi / 4:
        raise InputError("angle_snap is out of range", got=angle_snap, allowed="0 <= angle_snap < pi/4, in rad")
    if root.tag in ("mujoco", "mujocoinclude"):
        from linkwise.files.mjcf import read_mjcf

        return read_mjcf(root, file, _stem(file), places, angle_snap)
    if root.tag == "sdf":
        from linkwise.files.sdf import Includes, read_sdf

        return read_sdf(root, file, name=_stem(file), library=Includes(places), snap=angle_snap)
    if root.tag != "robot":
        raise ModelFileError(
            "this is not a model file: its root element is unknown",
            file=file,
            line=root.line,
            got=f"<{root.tag[:40]}>",
            allowed="<robot> (URDF), <sdf> (SDF), <mujoco> (MJCF)",
        )
    return read_urdf(root, file, name=_stem(file), snap=angle_snap)


@dataclass(frozen=True)
class _Reading:
    """Arguments of `load`, which explains them."""

    floating: bool
    locked: Iterable[str] | Mapping[str, float | None]
    gravity: Sequence[float] | None
    name: str | None
    frames: Mapping[str, tuple[str, ArrayLike]] | None
    mimic: bool
    angle_snap: float
    allow_unphysical: bool
    loops: str | os.PathLike[str] | None

    def native(self, content: bytes, file: str, places: SearchPath) -> Model:
        """The model of a native file."""
        from linkwise.files.native import read_native

        given = {each: getattr(self, each) for each in ("floating", "locked", "frames", "loops")}
        given["mimic"] = not self.mimic
        if any(given.values()):
            raise InputError(
                "a native file is a finished model: these arguments are for other formats",
                got=", ".join(each for each, value in given.items() if value),
                do="change the model: model.locked([...]), model.with_closure(...)",
            )
        model = Model(**read_native(content, file, places.source(None if file == "<string>" else file)))
        model = model if self.gravity is None else model.with_gravity(self.gravity)
        return model if self.name is None else model.renamed(name=self.name)

    @no_search_for_cycles()
    def model(self, root: XmlElement, file: str, places: SearchPath) -> tuple[Model, list[ModelWarning]]:
        """The model of a parsed file and its side file."""
        description, notes = _describe(root, file, self.angle_snap, places)
        if self.loops is not None:
            from linkwise.files.loops import with_loops

            side = read_bytes(self.loops, suffixes=(".yaml", ".json"), largest=_LARGEST_SIDE_FILE)
            description = with_loops(description, side, os.fspath(self.loops))
        bodies = bodies_of(arrange(description), floating=self.floating, locked=self.locked, mimic=self.mimic)
        notes += check_inertias(bodies, description.file, allow_unphysical=self.allow_unphysical)
        notes += check_massless(bodies, description.file)
        field = self.gravity if self.gravity is not None else description.gravity or (0.0, 0.0, -9.81)
        builder = Builder(self.name or description.name, gravity=field)
        return Model(**build(builder, bodies, description, self.frames, places)), notes


def _encoded(text: str) -> bytes:
    """UTF-8 whatever encoding the text declares: once it is a string, the declaration is no longer true."""
    if text.startswith("<?xml"):
        declaration, end, rest = text.partition("?>")
        if end:
            text = "\n" * declaration.count("\n") + rest
    return text.encode("utf-8", errors="surrogatepass")


def _stem(file: str) -> str:
    return "robot" if file == "<string>" else Path(file).stem or "robot"
