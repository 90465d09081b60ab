"""Files that a model is read from: where those are that it names (meshes, included models, macros), and their bytes.

A file may name others as ``package://name/…``, ``model://name/…``, ``file://…``, a relative or an absolute path. All of
them are looked for in one list of folders, in this order:

1. the folder of the file that names them;
2. the packages that this folder lies in: ancestors with a ``package.xml`` or a ``model.config``;
3. the folders that the caller gave (``load(..., search=[...])``, ``--search``);
4. those of the environment variables ``LINKWISE_MODEL_PATH``, ``ROS_PACKAGE_PATH``, ``AMENT_PREFIX_PATH`` (their
   ``share``), ``GZ_SIM_RESOURCE_PATH``, ``GAZEBO_MODEL_PATH`` and ``SDF_PATH``, separated as in ``PATH``;
5. for ``package://`` and ``model://`` only: the packages beside those of 2.

In each, ``package://name/rest`` is ``folder/name/rest``, or ``folder/rest`` where the folder is that package, by its
own name or by that in its ``package.xml``. A relative path is ``folder/path``.

Nothing outside these folders is opened, not through ``..``, an absolute path or a symbolic link either, and nothing is
fetched.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, MissingExtraError, ModelFileError, require_extra
from linkwise.mechanism.description import Geometry, Source

MODEL_PATH = "LINKWISE_MODEL_PATH"
"""The environment variable of linkwise's own with folders to search, separated as in PATH."""
_VARIABLES = {
    MODEL_PATH: "",
    "ROS_PACKAGE_PATH": "",
    "AMENT_PREFIX_PATH": "share",
    "GZ_SIM_RESOURCE_PATH": "",
    "GAZEBO_MODEL_PATH": "",
    "SDF_PATH": "",
}
"""Variables of the environment, and the folder below each of their entries that has the packages."""
_MARKS = ("package.xml", "model.config")
_LONGEST = 4000
_NAME = re.compile(rb"<name>\s*([^<>\s]{1,200})\s*</name>")


@dataclass(frozen=True)
class SearchPath:
    """The folders in which the files are that one file names.

    Args:
        home: the folder of that file; None where there is none, and relative paths start from the other folders.
        given: what the caller gave, resolved.
    """

    home: Path | None
    given: tuple[Path, ...] = ()

    @classmethod
    def of(cls, file: str | os.PathLike[str] | None, search: Iterable[str | os.PathLike[str]] = ()) -> SearchPath:
        """For a file (None: a text), with the folders that the caller gave."""
        if isinstance(search, (str, bytes, os.PathLike)):
            raise InputError("search must be a list of folders", got=repr(search), do=f"search=[{str(search)!r}]")
        home = None if file is None else Path(file).resolve().parent
        return cls(home, tuple(Path(folder).expanduser().resolve() for folder in search))

    def within(self, folder: Path | None) -> SearchPath:
        """That of an included file in another folder: what this file finds it finds too."""
        if folder is None or folder == self.home:
            return self
        return SearchPath(folder, self.given if self.home is None else (self.home, *self.given))

    def source(self, file: str | None) -> Source:
        """Record of a file that was found."""
        if file is None:
            return Source(None, tuple(map(str, self.given)))
        path = Path(file).resolve()
        return Source(str(path), tuple(map(str, self.within(path.parent).given)))

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders in which files may be opened, in the order in which they are looked for."""
        own = () if self.home is None else (self.home,)
        return tuple(dict.fromkeys((*own, *self._packages(), *self.given, *_of_environment())))

    def find(self, uri: str) -> Path:
        """The file or folder that an address names.

        Raises:
            ModelFileError: there is none, or it lies elsewhere; the message lists the places.
        """
        scheme, separator, rest = uri.partition("://")
        if not separator:
            scheme, rest = "", uri
        if scheme not in ("", "file", "model", "package") or "\0" in uri or len(uri) > _LONGEST:
            raise ModelFileError(
                "this address cannot be followed: nothing is fetched from elsewhere",
                got=_shown(uri),
                allowed="package://name/path, model://name/path, file://path, or a path",
                do="download it into a folder, give that as search=[folder], and write model://name",
            )
        folders = self.folders
        looked: list[Path] = []
        for allowed, candidate in self._candidates(scheme, rest, folders):
            try:
                path = candidate.resolve()
            except (OSError, RuntimeError, ValueError):  # too long, a circle of links
                continue
            if not any(path.is_relative_to(folder) for folder in allowed):
                if scheme in ("model", "package") and ".." not in Path(rest).parts and not candidate.is_symlink():
                    continue
                raise ModelFileError(
                    "this address leads out of the folders that were given",
                    got=f"{_shown(uri)}, which is {_shown(str(path))}",
                    allowed=_listed(folders),
                    do=f"load(..., search=[{str(path.parent)!r}]) if you trust the file",
                )
            if exists(path):
                return path
            looked.append(path)
        raise ModelFileError(
            "the file was not found",
            got=_shown(uri),
            allowed="one of: " + "; ".join(map(str, looked[:12])) if looked else f"a file in {_listed(folders)}",
            do=f"load(..., search=[folder]), --search, or the environment variable {MODEL_PATH}",
        )

    def _candidates(self, scheme: str, rest: str, folders: tuple[Path, ...]) -> Iterator[tuple[tuple[Path, ...], Path]]:
        """Places to look at, each with the folders that it may lie in."""
        if scheme not in ("model", "package"):
            if Path(rest).is_absolute():
                yield folders, Path(rest)
            else:
                for folder in folders:
                    yield folders, folder / rest
            return
        rest = rest.lstrip("/")
        name, _, inside = rest.partition("/")
        for folder in folders:
            yield folders, folder / rest
            if name and _is_package(folder, name):
                yield folders, folder / inside
        if name not in ("", ".", ".."):
            for package in self._packages():
                beside = package.parent / name
                if any((beside / mark).is_file() for mark in _MARKS):
                    yield (beside.resolve(),), beside / inside

    def _packages(self) -> tuple[Path, ...]:
        """The packages that the folder of the file lies in, the innermost first."""
        if self.home is None:
            return ()
        around = (self.home, *self.home.parents)
        return tuple(folder for folder in around if any((folder / mark).is_file() for mark in _MARKS))


def mesh_file(geometry: Geometry) -> Path:
    """The file of a mesh, found where the file that names it would have it (see :mod:`linkwise.files.resources`).

    A geometry made in Python, with no source, names its mesh as any program names a file.

    Raises:
        InputError: it is not a mesh.
        ModelFileError: the file is not there, or lies outside the folders that may be read; the message lists them.
    """
    if geometry.mesh is None:
        raise InputError("this shape has no file", got=geometry.kind, allowed="a geometry of kind 'mesh'")
    return _named_file(geometry, "mesh", geometry.mesh)


def picture_file(geometry: Geometry) -> Path:
    """The file of the picture on a shape, found as its mesh is by :func:`mesh_file`.

    Raises:
        InputError: there is no picture on it.
        ModelFileError: the file is not there, or lies outside the folders that may be read; the message lists them.
    """
    if geometry.texture is None:
        raise InputError("this shape has no picture", got=geometry.kind, allowed="a geometry with a texture")
    return _named_file(geometry, "picture", geometry.texture.file)


def _named_file(geometry: Geometry, what: str, named: str) -> Path:
    source = geometry.source
    if source is None:
        path = Path(named.removeprefix("file://"))
        if not path.is_file():
            raise ModelFileError(f"the {what} of {geometry.name!r} was not found", got=str(path))
        return path
    try:
        found = SearchPath.of(source.file, source.search).find(named)
        if not found.is_file():
            raise ModelFileError("this is not a file", got=str(found))
    except ModelFileError as error:
        raise ModelFileError(
            f"the {what} of {geometry.name!r}: {error.what}",
            file=source.file or "<string>",
            **error.parts,
        ) from None
    return found


def _of_environment() -> tuple[Path, ...]:
    found = []
    for variable, below in _VARIABLES.items():
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            if not entry.startswith(("http:", "https:")):
                found.append(_resolved(entry, below))
    return tuple(found)


@lru_cache(256)
def _resolved(entry: str, below: str) -> Path:
    return (Path(entry).expanduser() / below).resolve()


def _is_package(folder: Path, name: str) -> bool:
    """Whether a folder is the package of this name."""
    if folder.name == name:
        return True
    try:
        with (folder / "package.xml").open("rb") as stream:
            written = _NAME.search(stream.read(65536))
    except OSError:
        return False
    return written is not None and written[1] == name.encode()


def exists(path: Path) -> bool:
    """Whether there is such a file; a name that none can have has none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _listed(folders: Iterable[Path]) -> str:
    return ", ".join(map(str, folders)) or f"nothing: no folders were given (search, {MODEL_PATH})"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:197] + "...")


LARGEST_FILE = 64 * 1024 * 1024
"""Bytes. The largest robots known are below 1 MB; anything this long is not a robot, or is meant to hurt."""


def read_bytes(path: str | os.PathLike[str], *, suffixes: tuple[str, ...], largest: int = LARGEST_FILE) -> bytes:
    """The content of a file, at most `largest` bytes.

    Args:
        path: the file.
        suffixes: those of model files, for the suggestions when the path is wrong.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError("the path of a model file must be a string or a path", got=f"{path!r} ({type(path).__name__})")
    if isinstance(path, str) and path.lstrip().startswith("<"):
        raise InputError(
            "this is the text of a model, not the path of a file",
            got=repr(path[:60]),
            do="use linkwise.loads(text)",
        )
    if "\0" in os.fspath(path):
        raise InputError("the path of a model file cannot contain a null character", got=repr(path))
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(largest + 1)
    except FileNotFoundError:
        raise ModelFileError("there is no such file", file=path, do=_near(Path(path), suffixes)) from None
    except IsADirectoryError:
        raise ModelFileError(
            "this is a folder, not a model file", file=path, do=_inside(Path(path), suffixes)
        ) from None
    except PermissionError:
        raise ModelFileError(
            "no permission to read this file", file=path, do="change its permissions, or copy it"
        ) from None
    except OSError as error:
        raise ModelFileError(f"cannot read this file: {error.strerror or error}", file=path) from None
    if len(content) > largest:
        raise ModelFileError(
            "the file is too large to be a model",
            file=path,
            got=f"more than {largest} bytes",
            allowed=f"at most {largest} bytes",
        )
    if not content.strip():
        raise ModelFileError("the file is empty", file=path)
    return content


def _near(path: Path, suffixes: tuple[str, ...]) -> str:
    import difflib

    folder = path.parent
    if not folder.is_dir():
        return f"check the path: there is no folder {str(folder)!r} (seen from {str(Path.cwd())!r})"
    names = _names(folder)
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    near = near or [name for name in names if name.endswith(suffixes)][:5]
    if not near:
        return f"check the path (seen from {str(Path.cwd())!r}); its folder holds no model file"
    return "did you mean " + " or ".join(repr(str(folder / name)) for name in near) + "?"


def _inside(folder: Path, suffixes: tuple[str, ...]) -> str:
    names = [name for name in _names(folder) if name.endswith(suffixes)]
    if not names:
        return "give the path of a file"
    return "did you mean " + " or ".join(repr(str(folder / name)) for name in names[:5]) + "?"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


_SUFFIXES = (".stl", ".obj", ".dae", ".glb", ".ply", ".off")
_LARGEST = 256 * 1024 * 1024
"""Bytes."""


def points_of_mesh(shape: Geometry) -> FloatArray:
    """The vertices (n, 3) of a mesh as its file has them, m before its scale.

    Raises:
        ModelFileError: the file is not there, or cannot be read; what to do instead is said.
    """
    way_out = (
        "give the file's folder to lw.load(…, search=[…]); or name the bodies that touch, model.with_contacts(…, "
        "only=[…]); or give the body another shape for contact"
    )
    try:
        path = mesh_file(shape)
    except ModelFileError as error:
        raise ModelFileError(error.what, file=error.file, got=error.got, allowed=error.allowed, do=way_out) from None
    suffix = path.suffix.lower()
    content = read_bytes(path, suffixes=_SUFFIXES, largest=_LARGEST)
    trimesh: Any = require_extra("trimesh", "viz")
    try:
        scene = trimesh.load_scene(io.BytesIO(content), file_type=suffix[1:], process=False, skip_materials=True)
        found: FloatArray = np.asarray(scene.to_geometry().vertices, float).reshape(-1, 3)
    except (MissingExtraError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file makes a reader do
        told = f"{type(error).__name__}: {error}"[:200]
        raise ModelFileError("this mesh cannot be read for contact", file=path, got=told, do=way_out) from error
    if not len(found) or not np.isfinite(found).all():
        raise ModelFileError("this mesh has no vertices that contact could use", file=path, do=way_out)
    return found
