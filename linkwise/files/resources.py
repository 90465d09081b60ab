"""Where the files are that a model file names: meshes, included models, macros.

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

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from linkwise.errors import InputError, ModelFileError
from linkwise.mechanism.description import Geometry, Source

__all__ = ["MODEL_PATH", "SearchPath", "exists", "mesh_file", "picture_file"]

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
        """Where files may be opened, in the order in which they are looked for."""
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
            got=error.got,
            allowed=error.allowed,
            do=error.do,
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
