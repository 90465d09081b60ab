"""Large arrays, in an archive beside the file: plain numbers only, nothing is unpickled."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import KeysView

import numpy as np

from linkwise.errors import ModelFileError

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
        np.savez_compressed(stream, **self._arrays)  # type: ignore[arg-type]
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
