"""Contents of the two files: JSON to plain values and back, with the line on which a value stands, and large arrays.

Strict JSON: no NaN, no keys that come twice, bounded depth. Floats are written by ``repr``, which is exact.

Arrays are in an archive beside the file: plain numbers only, nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import KeysView, Sequence
from typing import Any

import numpy as np

from linkwise.errors import ModelFileError

Path = tuple[str | int, ...]

_WIDTH = 120
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_LONGEST_SEARCHED = 2_000_000


def decoded(content: bytes, file: str) -> str:
    """The text of a file in UTF-8; `file` is its name in the message where it is not."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelFileError(
            "the encoding of this file cannot be read", file=file, line=line, do="save it as UTF-8"
        ) from None


def parse_json(content: bytes, file: str) -> Any:
    """The value of a text; `file` is its name in the messages."""
    text = decoded(content, file)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            line = _line_of_key(text, twice)
            raise ModelFileError("a key comes twice in one object", file=file, line=line, got=repr(twice)[:80])
        return found

    def refuse(constant: str) -> float:
        raise ModelFileError("this number is not finite", file=file, line=_line_of_key(text, constant), got=constant)

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise ModelFileError(f"this is not JSON: {error.msg}", file=file, line=error.lineno) from None
    except RecursionError:
        raise ModelFileError("the file is nested too deeply", file=file, line=1) from None
    except ValueError as error:  # a whole number of thousands of digits
        raise ModelFileError("a number cannot be read", file=file, line=1, got=str(error)[:100]) from None


def shown_path(path: Path) -> str:
    """A place in a file: ``$.bodies[3].joint.axis``."""
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key[:80]}" for key in path)


def line_of(text: str, path: Path) -> int | None:
    """The line on which a value begins; None where the text is too long to be searched."""
    if len(text) > _LONGEST_SEARCHED:
        return None
    tokens = list(_TOKEN.finditer(text))
    at = 0

    def skip(at: int) -> int:
        """The token after the value that begins here."""
        depth = 0
        while at < len(tokens):
            token = tokens[at].group()
            depth += (token in "{[") - (token in "}]")
            at += 1
            if depth <= 0:
                return at
        return at

    for key in path:
        if at >= len(tokens) or tokens[at].group() not in "{[":
            break
        inside = at + 1
        count = 0
        while inside < len(tokens) and tokens[inside].group() not in "}]":
            if tokens[inside].group() == ",":
                inside += 1
                continue
            if isinstance(key, int):
                if count == key:
                    break
                count += 1
                inside = skip(inside)
            else:
                if _string(tokens[inside].group()) == key:
                    inside += 2  # past the key and its colon
                    break
                inside = skip(inside + 2)
        else:
            break  # no such key: the line of the object
        at = inside
    return text.count("\n", 0, tokens[min(at, len(tokens) - 1)].start()) + 1 if tokens else 1


def written(value: object, indent: int = 0) -> str:
    """A value as text: what fits on a line stands on one."""
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    deep = any(isinstance(each, dict) or _nested(each) for each in inner)
    if not isinstance(value, (dict, list)) or not value or (len(flat) + indent <= _WIDTH and not deep):
        return flat
    if isinstance(value, list) and all(isinstance(each, (int, float)) for each in value):
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [
            f"{pad}{json.dumps(key, ensure_ascii=False)}: {written(each, indent + 2)}" for key, each in value.items()
        ]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + written(each, indent + 2) for each in value) + "\n" + " " * indent + "]"


def _nested(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value)


def _string(token: str) -> str | None:
    try:
        found = json.loads(token)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _line_of_key(text: str, key: str) -> int:
    places: Sequence[int] = [text.find(form) for form in (json.dumps(key), json.dumps(key, ensure_ascii=False), key)]
    found = [place for place in places if place >= 0]
    return text.count("\n", 0, found[0]) + 1 if found else 1


LARGEST_ARCHIVE = 400 * 1024 * 1024
"""Bytes, packed and unpacked. A body of 100 modes and 20 nodes has 9 MB."""


class ArrayStore:
    """Arrays by their keys."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._keys: dict[bytes, str] = {}

    def put(self, array: np.ndarray) -> str:
        """Keep an array; the key of an equal one that is there already."""
        mark = hashlib.sha256(repr(array.shape).encode() + array.tobytes()).digest()
        key = self._keys.setdefault(mark, f"a{len(self._keys)}")
        self._arrays[key] = array
        return key

    def get(self, key: str) -> np.ndarray | None:
        """The array, or None."""
        return self._arrays.get(key)

    def keys(self) -> KeysView[str]:
        """All keys."""
        return self._arrays.keys()

    def __len__(self) -> int:
        return len(self._arrays)

    def content(self) -> bytes:
        """The archive."""
        stream = io.BytesIO()
        np.savez_compressed(stream, **self._arrays)  # type: ignore[arg-type]  # takes them for allow_pickle
        return stream.getvalue()

    @classmethod
    def read(cls, content: bytes, file: str) -> ArrayStore:
        """From the bytes of an archive."""
        store = cls()
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
                if size > LARGEST_ARCHIVE or len(archive.infolist()) > 100_000:
                    raise ModelFileError(
                        "the archive unpacks to too much", file=file, got=f"{size} bytes", allowed=f"{LARGEST_ARCHIVE}"
                    )
                for entry in archive.infolist():
                    name = entry.filename.removesuffix(".npy")
                    with archive.open(entry) as packed:
                        store._arrays[name] = _plain(packed.read(entry.file_size), name, file)
        except ModelFileError:
            raise
        except Exception as error:  # a broken archive fails in many ways: zlib, headers of arrays, numbers too large
            raise ModelFileError(
                "this is not an archive of plain arrays", file=file, got=f"{type(error).__name__}: {str(error)[:100]}"
            ) from None
        return store


def _plain(content: bytes, name: str, file: str) -> np.ndarray:
    """The array in the bytes of an ``.npy`` file; its head must fit its size before anything is made of it."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    head = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = head(stream)
    left = len(content) - stream.tell()
    if dtype != np.float64 or fortran or math.prod(shape) * 8 != left or any(n < 0 for n in shape):
        raise ModelFileError(
            "an array does not hold plain numbers",
            file=file,
            got=f"{name!r}: {dtype}, shape {shape}, {left} bytes",
            allowed="float64, rows first",
        )
    return np.frombuffer(content, np.float64, offset=stream.tell()).reshape(shape)
