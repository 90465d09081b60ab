"""The files that a file includes: found on a search path, never outside the folders that were given, never fetched."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from linkwise.errors import LinkwiseError, ModelFileError
from linkwise.files.opening import LARGEST_FILE, read_bytes
from linkwise.files.resources import SearchPath
from linkwise.files.values import Values, shown
from linkwise.files.xml import Element, parse

__all__ = ["Library"]

_MOST_FILES = 1000
_DEEPEST = 20


@dataclass(eq=False)
class Library:
    """The included files: where they are looked for, and those read so far.

    Args:
        search: the folders, as the file itself has them.
    """

    search: SearchPath
    files: int = 0
    size: int = 0
    parsed: dict[Path, tuple[Element, int]] = field(default_factory=dict)

    @property
    def home(self) -> Path | None:
        """The folder of the file itself; None where there is no file."""
        return self.search.home

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
        try:
            return self.search.within(home).find(uri)
        except ModelFileError as error:
            values.fail(f"an included model: {error.what}", at, got=error.got, allowed=error.allowed, do=error.do)

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


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdecimal() and len(part) < 6)
