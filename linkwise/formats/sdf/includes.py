"""The files that a file includes: found on a search path, never outside the folders that were given, never fetched."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from linkwise.errors import InputError, LinkwiseError, ModelFileError
from linkwise.formats.files import LARGEST_FILE, read_bytes
from linkwise.formats.values import Values, shown
from linkwise.formats.xml import Element, parse

__all__ = ["MODEL_PATH", "Library"]

MODEL_PATH = "LINKWISE_MODEL_PATH"
"""The environment variable with folders for ``model://`` and ``package://``, separated as in PATH."""
_MOST_FILES = 1000
_DEEPEST = 20


@dataclass(eq=False)
class Library:
    """Where included files are looked for.

    Args:
        folders: for ``model://name`` and ``package://name``, in this order.
        home: the folder of the file itself; None where there is no file.
    """

    folders: tuple[Path, ...] = ()
    home: Path | None = None
    files: int = 0
    size: int = 0
    parsed: dict[Path, tuple[Element, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, file: str | None, model_path: Iterable[str | os.PathLike[str]] = ()) -> Library:
        """For a file (None: a text), with the folders that the caller gave and those of the environment."""
        if isinstance(model_path, (str, bytes, os.PathLike)):
            raise InputError(
                "model_path must be a list of folders", got=repr(model_path), do=f"model_path=[{str(model_path)!r}]"
            )
        given = [*model_path, *filter(None, os.environ.get(MODEL_PATH, "").split(os.pathsep))]
        home = None if file is None else Path(file).resolve().parent
        folders = [Path(folder).expanduser().resolve() for folder in given]
        return cls(tuple(folders) if home is None else (home, *folders), home)

    def open(self, uri: str, at: Element, values: Values, home: Path | None, depth: int) -> tuple[Element, str, Path]:
        """The root element of an included file, its name for messages, and its folder."""
        self.files += 1
        if depth > _DEEPEST:
            values.fail("files include each other too deeply, or in a circle", at, allowed=f"at most {_DEEPEST} levels")
        if self.files > _MOST_FILES:
            values.fail("too many files are included", at, allowed=f"at most {_MOST_FILES}")
        path = self._file(self._found(uri, at, values, home), at, values)
        if path not in self.parsed:
            try:
                content = read_bytes(path, suffixes=(".sdf",))
            except LinkwiseError as error:
                values.fail(f"the included file cannot be read: {error.what}", at, got=shown(uri))
            self.parsed[path] = parse(content, str(path)), len(content)
        root, size = self.parsed[path]
        self.size += size
        if self.size > LARGEST_FILE:
            values.fail("the included files are too large to be a model", at, allowed=f"{LARGEST_FILE} bytes together")
        return root, str(path), path.parent

    def _found(self, uri: str, at: Element, values: Values, home: Path | None) -> Path:
        scheme, separator, rest = uri.partition("://")
        if not separator:
            scheme, rest = "", uri
        if scheme not in ("", "file", "model", "package") or "\0" in uri:
            values.fail(
                "this include cannot be followed: nothing is fetched from elsewhere",
                at,
                got=shown(uri),
                allowed="model://name, or the path of a file beside this one",
                do="download the model into a folder, give that as model_path, and write model://name",
            )
        if scheme in ("model", "package"):
            candidates = [folder / rest for folder in self.folders]
        else:
            candidates = [] if home is None and not Path(rest).is_absolute() else [(home or Path()) / rest]
        for candidate in candidates:
            try:
                path = candidate.resolve()
            except (OSError, RuntimeError, ValueError):  # too long, a circle of links
                continue
            if not any(path.is_relative_to(folder) for folder in self.folders):
                values.fail(
                    "this include leads out of the folders that were given",
                    at,
                    got=shown(uri),
                    allowed=self._listed(),
                    do="add its folder to model_path if you trust the file",
                )
            if _exists(path):
                return path
        raise self._missing(uri, at, values)

    def _missing(self, uri: str, at: Element, values: Values) -> ModelFileError:
        return ModelFileError(
            "the included model was not found",
            file=values.file,
            line=at.line,
            got=shown(uri),
            allowed=f"a model in one of: {self._listed()}",
            do=f"load(..., model_path=[folder]), --model-path, or the environment variable {MODEL_PATH}",
        )

    def _file(self, path: Path, at: Element, values: Values) -> Path:
        """The file of a model's folder: what its model.config says for the newest version, or model.sdf."""
        if not path.is_dir():
            return path
        named = "model.sdf"
        config = path / "model.config"
        if config.is_file():
            try:
                root = parse(read_bytes(config, suffixes=(".config",)), str(config))
            except LinkwiseError as error:
                values.fail(f"the model.config of the included model cannot be read: {error.what}", at)
            files = [(_version(each.attributes.get("version", "")), each.text) for each in root.all("sdf") if each.text]
            if files:
                named = max(files)[1]
        inside = (path / named).resolve() if "\0" not in named and len(named) < 1000 else path
        if not inside.is_relative_to(path) or not inside.is_file():
            values.fail("the included folder has no model file", at, got=shown(str(path)), allowed=shown(named))
        return inside

    def _listed(self) -> str:
        return ", ".join(map(str, self.folders)) or f"nothing: no folders were given (model_path, {MODEL_PATH})"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdecimal() and len(part) < 6)
