"""The files that an MJCF file names: found in the folders that were given, and read into memory."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from linkwise.errors import ModelFileError
from linkwise.files.opening import LARGEST_FILE, read_bytes
from linkwise.files.resources import SearchPath
from linkwise.files.values import shown
from linkwise.files.xml import Element, parse

__all__ = ["Sources"]

_MOST_FILES = 1000
_LARGEST_MESHES = 8 * LARGEST_FILE
_MESHES = (".stl", ".obj", ".msh")


class Sources:
    """Reads included files and meshes; nothing outside the folders of ``places``.

    Attributes:
        assets: the bytes of mesh files, each under a name of ours.
        meshes: for each of these names, the path of the file.
    """

    def __init__(self, places: SearchPath) -> None:
        self.places = places
        self.assets: dict[str, bytes] = {}
        self.meshes: dict[str, Path] = {}
        self._files = self._size = self._mesh_size = 0

    def included(self, element: Element, file: str, home: Path | None, depth: int) -> tuple[Element, str, Path]:
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

    def mesh(self, element: Element, file: str, home: Path | None, folder: str, strip: bool) -> str:
        """Read the file of a mesh, named by a file in the folder `home`, and return our name for it."""
        name = element.attributes["file"]
        if strip:
            name = name.replace("\\", "/").rpartition("/")[2]
        suffix = Path(name).suffix.lower()
        if suffix not in _MESHES:
            self.fail("this kind of mesh cannot be read", element, file, got=shown(name), allowed=", ".join(_MESHES))
        path = self.found(_joined(folder, name), element, file, home)
        content = self.read(path, element, file, LARGEST_FILE)
        self._mesh_size += len(content)
        if self._mesh_size > _LARGEST_MESHES:
            self.fail("the meshes are too large to be a model", element, file, allowed=f"{_LARGEST_MESHES} bytes")
        ours = f"{len(self.assets)}{suffix}"
        self.assets[ours] = content
        self.meshes[ours] = path
        return ours

    def picture(self, element: Element, home: Path | None, folder: str, strip: bool) -> str:
        """The file of a picture, which is not read: its path where it is found, or as written.

        Nobody needs it for the mechanics, so one that is missing is no error here; whoever draws says it.
        """
        name = element.attributes["file"]
        if strip:
            name = name.replace("\\", "/").rpartition("/")[2]
        name = _joined(folder, name).replace("\\", "/")
        for places in (self.places, self.places.within(home)):
            try:
                return str(places.find(name))
            except ModelFileError:
                continue
        return name

    def found(self, name: str, element: Element, file: str, home: Path | None) -> Path:
        """The path of a file beside the main one, or beside `home`, or in the other folders."""
        name = name.replace("\\", "/")
        try:
            path = self.places.find(name)
        except ModelFileError as error:
            if home is not None:
                return self.found_beside(name, element, file, home)
            self.fail(
                f"<{element.tag}>: {error.what}", element, file, got=error.got, allowed=error.allowed, do=error.do
            )
        if not path.is_file():
            self.fail(f"<{element.tag}> names what is not a file", element, file, got=shown(name))
        return path

    def found_beside(self, name: str, element: Element, file: str, home: Path) -> Path:
        """A file beside the one that includes it: the format looks beside the main file only, authors forget."""
        outer, self.places = self.places, self.places.within(home)
        try:
            return self.found(name, element, file, None)
        finally:
            self.places = outer

    def read(self, path: Path, element: Element, file: str, largest: int) -> bytes:
        """Its content, at most so many bytes."""
        try:
            return read_bytes(path, suffixes=(".xml",), largest=largest)
        except ModelFileError as error:
            self.fail(f"<{element.tag}>: {error.what}", element, file, got=error.got, allowed=error.allowed)

    def fail(
        self, what: str, at: Element, file: str, *, got: object = None, allowed: object = None, do: object = None
    ) -> NoReturn:
        """Raise a `ModelFileError` at an element."""
        raise ModelFileError(what, file=file, line=at.line, got=got, allowed=allowed, do=do)


def _joined(folder: str, name: str) -> str:
    folder, name = folder.replace("\\", "/"), name.replace("\\", "/")
    if not folder or name.startswith("/") or "://" in name:
        return name
    return f"{folder.rstrip('/')}/{name}"
