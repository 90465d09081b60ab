"""The bytes of a model file, or an error that says why they cannot be had and what lies near."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from linkwise.errors import InputError, ModelFileError

__all__ = ["LARGEST_FILE", "read_bytes"]

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
