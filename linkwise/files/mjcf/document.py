"""An MJCF file made safe: one text without includes, and the files that it names as bytes in memory.

MuJoCo's own parser is written in C++ and would open any file that a model names. So it never gets to see a path: files
are read here, inside the folders that were given, and it is handed bytes under names of our own. What says nothing
about the mechanics (skins, lights, visual settings) is taken out, and one white pixel stands for each picture, which
leaves less to go wrong; what would run code or cannot be a mechanism of rigid bodies (plugins, flexes) is refused by
name.

Each element is written on a line of its own, and `Document.where` has the file and line that it came from.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn
from xml.sax.saxutils import quoteattr

from linkwise.dataclass import dataclass, field
from linkwise.errors import ModelFileError
from linkwise.files.resources import LARGEST_FILE, SearchPath, read_bytes
from linkwise.files.values import shown
from linkwise.files.xml import DEEPEST, XmlElement, parse

Spot = tuple[str, int]
"""A file and a line in it."""

_MOST_ELEMENTS = 300_000
_MOST_COPIES = 4_000  # in a whole model: the parser takes time with their square
_LARGEST_COUNT = 1000.0
_LARGEST_NUMBER = 1e30
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf|nan", re.ASCII | re.IGNORECASE)

_DROPPED = {"visual", "statistic", "custom", "size", "skin", "layer", "light"}
"""Says nothing about the mechanics. Each is left out with everything inside."""
_REFUSED = {
    "plugin": "plugins run code of their own, and are not supported",
    "extension": "plugins run code of their own, and are not supported",
    "flex": "deformable flexes are not supported",
    "flexcomp": "deformable flexes are not supported",
    "composite": "composite objects are not supported",
}
PICTURE = "picture "
"""Names of ours for pictures begin so; those of models that are attached have a prefix before it."""
_MOST_FILES = 1000
_LARGEST_ASSETS = 8 * LARGEST_FILE
_ASSETS = {"mesh": (".stl", ".obj", ".msh"), "hfield": (".png", ".bin", ".hf", "")}
"""Endings of the files that elements name. Of heights all but pictures are of MuJoCo's own binary kind."""
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_HEIGHTS = 2048
_MOST_STEPS = 100_000
_COUNTS = ("dim", "num", "actdim", "nsample")
"""Attributes for which memory is set aside."""
_DIRECTORIES = ("meshdir", "texturedir", "assetdir", "strippath")


@dataclass(eq=False)
class MujocoDocument:
    """Document for MuJoCo to read.

    Args:
        text: the model, without includes and paths.
        where: for each line of the text, where it came from.
        parts: the texts of the models that this one attaches, by the name that the text has for them.
        assets: the bytes of files of meshes and height fields, likewise.
        meshes: for each mesh, by its name in the text, the path of its file.
        pictures: for each texture that is a picture in a file, by its name in the text, that file.
    """

    text: str
    where: list[Spot]
    parts: dict[str, bytes] = field(default_factory=dict)
    assets: dict[str, bytes] = field(default_factory=dict)
    meshes: dict[str, Path] = field(default_factory=dict)
    pictures: dict[str, str] = field(default_factory=dict)

    def spot(self, line: int | None) -> Spot:
        """File and line that a line of the text came from; the start of the file where there is none."""
        if line is None or not 1 <= line <= len(self.where):
            return self.where[0]
        return self.where[line - 1]


def read_document(root: XmlElement, file: str, places: SearchPath) -> MujocoDocument:
    """Gather what the file consists of.

    Raises:
        ModelFileError: a file cannot be read or lies outside the folders, or something is refused.
    """
    reader = _Reader(places)
    text, where, _ = reader.whole(root, file)
    return MujocoDocument(text, where, reader.parts, reader.assets, reader.meshes, reader.pictures)


class _Reader:
    """Walks through a file, its includes and the models that it attaches; nothing outside the folders of ``places``.

    Attributes:
        assets: the bytes of files of meshes and height fields, each under a name of ours.
        meshes: for each of these names, the path of the file.
    """

    def __init__(self, places: SearchPath) -> None:
        self.places = places
        self.assets: dict[str, bytes] = {}
        self.meshes: dict[str, Path] = {}
        self.parts: dict[str, bytes] = {}
        self.pictures: dict[str, str] = {}
        self._files = self._size = self._asset_size = 0

    def whole(self, root: XmlElement, file: str, depth: int = 0) -> tuple[str, list[Spot], int]:
        """The text of one model, where its lines came from, and how many elements it stands for."""
        if root.tag != "mujoco":
            self.fail("this is a part of a model, to be included by another file", root, file, got=f"<{root.tag[:40]}>")
        return _Writer(self, root, file, depth).written()

    def part(self, element: XmlElement, file: str, depth: int) -> tuple[str, int]:
        """Read a model that this one attaches, and return our name for it and the number of its elements."""
        root, name, path = self.included(element, file, None, depth + 1)
        outer, self.places = self.places, self.places.within(path.parent)
        text, _, size = self.whole(root, name, depth + 1)
        self.places = outer
        ours = f"{len(self.parts)}.xml"
        self.parts[ours] = text.encode()
        return ours, size

    def included(self, element: XmlElement, file: str, home: Path | None, depth: int) -> tuple[XmlElement, str, Path]:
        """The root of another XML file, its name for messages, and its path."""
        name = element.attributes.get("file", "")
        if not name.strip():
            self.fail(f"<{element.tag}> names no file", element, file, do=f'write <{element.tag} file="..."/>')
        path = self.found(name, element, file, home)
        self._files += 1
        if self._files > _MOST_FILES or depth > 20:
            self.fail("too many files include each other", element, file, allowed=f"at most {_MOST_FILES}, 20 deep")
        content = self.read(path, element, file, LARGEST_FILE)
        self._size += len(content)
        if self._size > LARGEST_FILE:
            self.fail("the included files are too large to be a model", element, file, allowed=f"{LARGEST_FILE} bytes")
        return parse(content, str(path)), str(path), path

    def asset(self, element: XmlElement, file: str, home: Path | None, folder: str, strip: bool) -> str:
        """Read the file of a mesh or height field, named by a file in the folder `home`; return our name for it."""
        name, known = _named(element, strip), _ASSETS[element.tag]
        suffix = Path(name).suffix.lower()
        if suffix not in known:
            what = f"this kind of {element.tag} cannot be read"
            self.fail(what, element, file, got=shown(name), allowed=", ".join(filter(None, known)))
        path = self.found(_joined(folder, name), element, file, home)
        content = self.read(path, element, file, LARGEST_FILE)
        if element.tag == "hfield":
            self.check_heights(content, suffix, element, file)
        self._asset_size += len(content)
        if self._asset_size > _LARGEST_ASSETS:
            self.fail("the meshes are too large to be a model", element, file, allowed=f"{_LARGEST_ASSETS} bytes")
        ours = f"{len(self.assets)}{suffix}"
        self.assets[ours] = content
        self.meshes[ours] = path
        return ours

    def check_heights(self, content: bytes, suffix: str, element: XmlElement, file: str) -> None:
        """A file of heights says how many there are before it has them: no more than can be used, and all of them."""
        if suffix == ".png":
            is_whole = content.startswith(_PNG) and len(content) >= 24
            columns, rows = struct.unpack(">II", content[16:24]) if is_whole else (0, 0)
        else:
            rows, columns = struct.unpack("<ii", content[:8]) if len(content) >= 8 else (0, 0)
            is_whole = len(content) == 8 + 4 * rows * columns
        if not is_whole or not 2 <= min(rows, columns) <= max(rows, columns) <= _MOST_HEIGHTS:
            self.fail(
                "the file of this <hfield> has no heights that can be read",
                element,
                file,
                got=f"{len(content)} bytes for {rows} rows of {columns}",
                allowed=f"a PNG picture, or two integers and as many floats; 2 to {_MOST_HEIGHTS} rows and columns",
            )

    def picture(self, element: XmlElement, home: Path | None, folder: str, strip: bool) -> str:
        """The file of a picture, which is not read: its path where it is found, or as written.

        The mechanics do not need it, so one that is missing is no error here, but where the model is drawn.
        """
        name = _joined(folder, _named(element, strip))
        try:
            return str(self.search(name, home))
        except ModelFileError:
            return name

    def found(self, name: str, element: XmlElement, file: str, home: Path | None) -> Path:
        """The path of a file beside the main one, or beside `home`, or in the other folders."""
        name = name.replace("\\", "/")
        try:
            path = self.search(name, home)
        except ModelFileError as error:
            self.fail(f"<{element.tag}>: {error.what}", element, file, **error.parts)
        if not path.is_file():
            self.fail(f"<{element.tag}> names what is not a file", element, file, got=shown(name))
        return path

    def search(self, name: str, home: Path | None) -> Path:
        """A file beside the main one or the one that includes it: the format knows the first only, authors forget."""
        with suppress(ModelFileError):
            return self.places.find(name)
        return self.places.within(home).find(name)

    def read(self, path: Path, element: XmlElement, file: str, largest: int) -> bytes:
        """Its content, at most so many bytes."""
        try:
            return read_bytes(path, suffixes=(".xml",), largest=largest)
        except ModelFileError as error:
            self.fail(f"<{element.tag}>: {error.what}", element, file, got=error.got, allowed=error.allowed)

    def fail(
        self, what: str, at: XmlElement, file: str, *, got: object = None, allowed: object = None, do: object = None
    ) -> NoReturn:
        """Raise a `ModelFileError` at an element."""
        raise ModelFileError(what, file=file, line=at.line, got=got, allowed=allowed, do=do) from None


class _Writer:
    """Writes one model, an element on a line."""

    def __init__(self, reader: _Reader, root: XmlElement, file: str, depth: int) -> None:
        self.reader, self.root, self.file, self.depth = reader, root, file, depth
        self.lines: list[str] = []
        self.where: list[Spot] = []
        self.seen: set[Path] = set()
        # Lines with files of meshes, heights and pictures, whose folder is known at the end, and with materials, which
        # name textures.
        self.late: list[tuple[int, XmlElement, str, Path | None]] = []
        self.textures: dict[str, str] = {}  # names of pictures in this model to ours
        self.folder, self.picture_folder, self.strip = "", "", False
        self.elements = self.attached = self.largest_part = self.copied = self.including = 0

    def written(self) -> tuple[str, list[Spot], int]:
        self.element(self.root, self.file, None, 0, 1)
        self.elements += self.attached * self.largest_part
        self.check_count(self.root, self.file)
        for line, element, file, home in sorted(self.late, key=lambda each: each[1].tag != "texture"):
            attributes = dict(element.attributes)
            if element.tag == "texture":
                attributes = self.picture(element, file, home)
            elif element.tag == "material":
                attributes["texture"] = self.textures.get(attributes["texture"], "")
                if not attributes["texture"]:  # painted by MuJoCo's compiler, or around all six sides
                    del attributes["texture"]
            else:
                attributes["file"] = self.reader.asset(element, file, home, self.folder, self.strip)
                attributes.setdefault("name", _stem(element))
                attributes.pop("content_type", None)  # the ending says it, by which the content was checked
            self.lines[line] = _tag(element.tag, attributes, element.tag == "material" and bool(element.children))
        return "\n".join(self.lines) + "\n", self.where, self.elements

    def picture(self, element: XmlElement, file: str, home: Path | None) -> dict[str, str]:
        """Attributes of a texture of one white pixel, by a name of ours, for a picture in a file."""
        ours = f"{PICTURE}{len(self.reader.pictures)}"
        self.textures[element.attributes.get("name") or _stem(element)] = ours
        self.reader.pictures[ours] = self.reader.picture(element, home, self.picture_folder, self.strip)
        return {"name": ours, "type": "2d", "builtin": "flat", "rgb1": "1 1 1", "width": "1", "height": "1"}

    def check_count(self, element: XmlElement, file: str) -> None:
        """No more elements than a model can have, copies and attached models included."""
        if self.elements > _MOST_ELEMENTS:
            self.reader.fail("the model has too many elements", element, file, allowed=f"at most {_MOST_ELEMENTS}")

    def element(self, element: XmlElement, file: str, home: Path | None, level: int, copies: int) -> None:
        """Write one element and all inside; what is included stands in its place."""
        reader = self.reader
        self.elements += copies
        self.check_count(element, file)
        if level > DEEPEST:
            reader.fail("the elements are nested too deeply", element, file, allowed=f"at most {DEEPEST} levels")
        tag = element.tag
        if tag in _REFUSED:
            reader.fail(f"<{tag}>: {_REFUSED[tag]}", element, file, do="take it out of the file")
        if tag in _DROPPED or (tag == "texture" and not _is_picture(element)):
            return
        if tag == "include":
            self.include(element, file, home, level, copies)
            return
        if tag == "replicate":
            copies *= self.count(element)
            self.copied += copies
            if self.copied > _MOST_COPIES:
                reader.fail("too many copies", element, file, got=self.copied, allowed=f"at most {_MOST_COPIES}")
        self.attached += copies if tag == "attach" else 0
        self.put(element, file, home, bool(element.children))
        for child in element.children:
            self.element(child, file, home, level + 1, copies)
        if element.children:
            self.lines.append(f"</{tag}>")
            self.where.append((file, element.line))

    def include(self, element: XmlElement, file: str, home: Path | None, level: int, copies: int) -> None:
        root, name, path = self.reader.included(element, file, home, self.depth + self.including + 1)
        if path in self.seen:
            self.reader.fail("a file is included twice", element, file, got=shown(element.attributes["file"]))
        self.seen.add(path)
        self.including += 1
        for child in root.children:
            self.element(child, name, path.parent, level, copies)
        self.including -= 1

    def put(self, element: XmlElement, file: str, home: Path | None, is_open: bool) -> None:
        attributes = dict(element.attributes)
        self.check(element, file)
        edit = _EDITS.get(element.tag)
        if edit is not None:
            edit(self, element, attributes, file)
        if element.tag in _ASSETS and "file" in attributes:
            if is_open:
                self.reader.fail(f"a <{element.tag}> has elements inside", element.children[0], file)
            self.late.append((len(self.lines), element, file, home))
        if element.tag == "texture" or (element.tag == "material" and "texture" in attributes):
            self.late.append((len(self.lines), element, file, home))
        self.lines.append(_tag(element.tag, attributes, is_open))
        self.where.append((file, element.line))

    def check(self, element: XmlElement, file: str) -> None:
        """No number that is none, or beyond all mechanisms: the parser lets them through."""
        for name, text in element.attributes.items():
            if name in ("name", "class", "childclass", "file", "model"):
                continue
            most = _MOST_STEPS if name in _COUNTS else _LARGEST_NUMBER
            for word in text.split():
                if _NUMBER.fullmatch(word) and not abs(float(word)) <= most:
                    if word.lower().lstrip("+-") == "inf" and ("range" in name or name == "springlength"):
                        continue
                    self.reader.fail(
                        f"the attribute {name!r} of <{element.tag}> is not a number that a mechanism can have",
                        element,
                        file,
                        got=shown(text),
                        allowed=f"finite numbers, at most {most:g}",
                    )

    def count(self, element: XmlElement) -> int:
        """Number of copies of an element; the parser refuses what is no number."""
        try:
            return max(int(element.attributes.get("count", "1")), 1)
        except ValueError:
            return 1

    # What is changed in an element.
    def compiler(self, element: XmlElement, attributes: dict[str, str], file: str) -> None:
        """Folders are ours to look in."""
        for name in ("assetdir", "meshdir"):
            if name in attributes:
                self.folder = attributes[name]
        for name in ("assetdir", "texturedir"):
            if name in attributes:
                self.picture_folder = attributes[name]
        self.strip = attributes.get("strippath", str(self.strip)).lower() == "true"
        for name in _DIRECTORIES:
            attributes.pop(name, None)

    def mesh(self, element: XmlElement, attributes: dict[str, str], file: str) -> None:
        numbers = [float(word) for word in attributes.get("params", "").split() if _NUMBER.fullmatch(word)]
        if any(not abs(number) <= _LARGEST_COUNT for number in numbers):
            self.reader.fail("the parameters of a mesh are too large", element, file, got=shown(attributes["params"]))

    def lengthrange(self, element: XmlElement, attributes: dict[str, str], file: str) -> None:
        """MuJoCo simulates how far muscles reach, in so many steps."""
        total, step = (self.number(attributes, *of) for of in (("inttotal", 10.0), ("timestep", 0.01)))
        if not 0.0 < total <= _MOST_STEPS * step:
            allowed = f"inttotal and timestep above zero, of at most {_MOST_STEPS} steps"
            self.reader.fail("the search for lengths of muscles takes too long", element, file, allowed=allowed)

    @staticmethod
    def number(attributes: dict[str, str], name: str, otherwise: float) -> float:
        """The number of an attribute; what is none the parser says."""
        text = attributes.get(name, "").strip()
        return float(text) if _NUMBER.fullmatch(text) else otherwise

    def hfield(self, element: XmlElement, attributes: dict[str, str], file: str) -> None:
        """Heights that no file has are zeros, as many as are asked for."""
        for name in ("nrow", "ncol"):
            if self.number(attributes, name, 0.0) > _MOST_HEIGHTS:
                said, got = f"2 to {_MOST_HEIGHTS} rows and columns", shown(attributes[name])
                self.reader.fail("this <hfield> has too many heights", element, file, got=got, allowed=said)

    def model(self, element: XmlElement, attributes: dict[str, str], file: str) -> None:
        """A model to be attached: its file becomes a text of ours."""
        if "file" in attributes:
            attributes["file"], size = self.reader.part(element, file, self.depth + self.including)
            self.largest_part = max(self.largest_part, size)
            attributes.setdefault("name", _stem(element))
            attributes.pop("content_type", None)


_EDITS: dict[str, Callable[[_Writer, XmlElement, dict[str, str], str], None]] = {
    "compiler": _Writer.compiler,
    "hfield": _Writer.hfield,
    "lengthrange": _Writer.lengthrange,
    "mesh": _Writer.mesh,
    "model": _Writer.model,
}


def _is_picture(element: XmlElement) -> bool:
    """Whether a texture is one picture in a file; the others are painted by MuJoCo, or are around all six sides."""
    return element.attributes.get("type") == "2d" and "file" in element.attributes


def _stem(element: XmlElement) -> str:
    """Name of what is in a file and has none of its own."""
    return Path(_named(element, False)).stem


def _named(element: XmlElement, strip: bool) -> str:
    """The file that an element names, without its folder where that is asked for."""
    name = element.attributes["file"].replace("\\", "/")
    return name.rpartition("/")[2] if strip else name


def _tag(tag: str, attributes: dict[str, str], is_open: bool = False) -> str:
    inside = "".join(f" {name}={quoteattr(_one_line(value))}" for name, value in attributes.items())
    return f"<{tag}{inside}{'' if is_open else '/'}>"


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()) if "\n" in text or "\r" in text else text


def _joined(folder: str, name: str) -> str:
    folder = folder.replace("\\", "/")
    if not folder or name.startswith("/") or "://" in name:
        return name
    return f"{folder.rstrip('/')}/{name}"
