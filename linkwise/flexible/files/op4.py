"""Nastran's OUTPUT4 files: text and binary, dense and sparse, 4- and 8-byte integers, either byte order.

A matrix is a header (columns, rows, form, type, name) and then records by column: the first row and the values in dense
form; strings of values, each with its length and first row, in sparse form. Lengths count words; a double is two words
where integers have four bytes, and in sparse text. A last record past the last column ends the matrix. A negative
number of rows marks BIGMAT, where a string's length and row take a word each. Types: 1 and 2 real, 3 and 4 complex,
single and double.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from linkwise.errors import ModelFileError
from linkwise.flexible.files.reading import LARGEST_MATRIX, lines_of, number, read_bytes, whole

__all__ = ["read_op4"]

_FORMAT = re.compile(r"(?:1P,)?\s*(\d+)[ED](\d+)\.\d+", re.IGNORECASE)


def read_op4(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Every real matrix of the file by its name in capitals, sparse; complex ones are there as None."""
    content = read_bytes(path)
    if len(content) < 16:
        raise ModelFileError("the file is too short for OP4", file=path, got=f"{len(content)} bytes")
    for order in "<>":
        for integer in (4, 8):
            # The header is one Fortran record: four integers and a name as long as two.
            if struct.unpack_from(order + "i", content)[0] == 6 * integer:
                return dict(_binary(content, order, integer, path))
    return dict(_text(content, path))


class _Entries:
    """The entries of one matrix as they come."""

    def __init__(self, name: str, columns: int, rows: int, kind: int, fail: Callable[[str, object], Exception]) -> None:
        if not (0 <= columns <= LARGEST_MATRIX and 0 <= rows <= LARGEST_MATRIX):
            raise fail(f"matrix {name!r} has an impossible size", f"{rows} × {columns}")
        if kind not in (1, 2, 3, 4):
            raise fail(f"matrix {name!r} has an unknown type", kind)
        self.name, self.shape, self.complex = name, (rows, columns), kind > 2
        self._fail = fail
        self._row: list[Any] = []
        self._column: list[Any] = []
        self._value: list[Any] = []

    def add(self, column: int, row: int, values: Any) -> None:
        """Values downwards from a row, counted from 1."""
        if self.complex:
            return
        if not (row >= 1 and row - 1 + len(values) <= self.shape[0] and 1 <= column <= self.shape[1]):
            raise self._fail(
                f"matrix {self.name!r} has entries outside", f"row {row}, column {column}, {len(values)} values"
            )
        self._row.append(np.arange(row - 1, row - 1 + len(values)))
        self._column.append(np.full(len(values), column - 1))
        self._value.append(np.asarray(values, dtype=float))

    def matrix(self) -> sparse.csr_array | None:
        if self.complex:
            return None
        if not self._row:
            return sparse.csr_array(self.shape)
        values, rows, columns = (np.concatenate(each) for each in (self._value, self._row, self._column))
        if not np.isfinite(values).all():
            raise self._fail(f"matrix {self.name!r} is not finite", "infinity or not a number")
        result = sparse.csr_array((values, (rows, columns)), shape=self.shape)
        result.eliminate_zeros()
        return result


# -------------------------------------------------------------------------------------------------------------- binary


def _binary(content: bytes, order: str, integer: int, path: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    whole_kind = order + ("i" if integer == 4 else "q")
    at = 0

    def fail(what: str, got: object) -> Exception:
        return ModelFileError(what, file=path, got=f"{got} (at byte {at})")

    def record() -> bytes:
        nonlocal at
        if at + 4 > len(content):
            raise fail("the file ends inside a matrix", "no further record")
        (length,) = struct.unpack_from(order + "i", content, at)
        if length < 0 or at + 8 + length > len(content):
            raise fail("the file ends inside a record", f"a record of {length} bytes")
        body = content[at + 4 : at + 4 + length]
        if struct.unpack_from(order + "i", content, at + 4 + length)[0] != length:
            raise fail("a record's two lengths differ", f"a record of {length} bytes")
        at += length + 8
        return body

    while at < len(content):
        head = record()
        if len(head) != 6 * integer:
            raise fail("this is not the header of a matrix", f"{len(head)} bytes")
        columns, rows, _form, kind = (int(each) for each in np.frombuffer(head, whole_kind, 4))
        name = head[4 * integer :].decode("latin-1").strip("\0 ").upper()
        entries = _Entries(name, columns, abs(rows), kind, fail)
        real = np.dtype(order + ("f4" if kind % 2 and integer == 4 else "f8"))
        words = max(real.itemsize // integer, 1)
        while True:
            body = record()
            if len(body) < 3 * integer:
                raise fail(f"a column of matrix {name!r} is too short", f"{len(body)} bytes")
            column, row, count = (int(each) for each in np.frombuffer(body, whole_kind, 3))
            if column > columns:
                break
            data = body[3 * integer :]
            if count < 0 or count * integer > len(data):
                raise fail(f"a column of matrix {name!r} is too short", f"{count} words in {len(data)} bytes")
            data = data[: count * integer]
            if row > 0:
                entries.add(column, row, np.frombuffer(data, real, count // words))
                continue
            place = 0
            while place < len(data):
                length, first, head_size = _string(data, place, whole_kind, integer, bigmat=rows < 0, fail=fail)
                place += head_size
                if length < 0 or place + length * integer > len(data):
                    raise fail(f"a string of matrix {name!r} is too long", f"{length} words")
                entries.add(column, first, np.frombuffer(data, real, length // words, place))
                place += length * integer
        yield name, entries.matrix()


def _string(
    data: bytes, place: int, kind: str, integer: int, *, bigmat: bool, fail: Callable[[str, object], Exception]
) -> tuple[int, int, int]:
    """Length in words, first row, and size in bytes of a string's head."""
    count = 2 if bigmat else 1
    if place + count * integer > len(data):
        raise fail("a string's head is cut off", f"{len(data) - place} bytes")
    head = [int(each) for each in np.frombuffer(data, kind, count, place)]
    if bigmat:
        return head[0] - 1, head[1], 2 * integer
    length = (head[0] >> 16) - 1
    return length, head[0] - ((length + 1) << 16), integer


# ---------------------------------------------------------------------------------------------------------------- text


class _Lines:
    """The lines of a text file, with what OP4 writes in them."""

    def __init__(self, content: bytes, path: str | os.PathLike[str]) -> None:
        self._lines = lines_of(path, content)
        self._path = path
        self._line = 0

    def fail(self, what: str, got: object) -> Exception:
        return ModelFileError(what, file=self._path, line=self._line, got=repr(got))

    def header(self) -> str | None:
        """The next line that is not empty, or None at the end of the file."""
        for line, text in self._lines:
            self._line = line
            if text.strip():
                return text
        return None

    def following(self) -> str:
        try:
            self._line, text = next(self._lines)
        except StopIteration:
            raise self.fail("the file ends inside a matrix", "no further line") from None
        return text

    def whole(self, text: str, what: str = "an integer") -> int:
        return whole(text, self._path, self._line, what=what)

    def integers(self, text: str, count: int) -> list[int]:
        """Integers apart from each other, or in fields of eight columns that touch."""
        parts = text.split()
        if len(parts) != count:
            parts = [text[8 * k : 8 * (k + 1)] for k in range(count)]
        return [self.whole(part) for part in parts]

    def values(self, count: int, per_line: int, size: int) -> list[float]:
        found: list[float] = []
        while len(found) < count:
            text = self.following()
            here = min(per_line, count - len(found))
            found += [number(text[size * k : size * (k + 1)], self._path, self._line) for k in range(here)]
        return found


def _text(content: bytes, path: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    lines = _Lines(content, path)
    while (head := lines.header()) is not None:
        # Columns and rows take eight columns each, or sixteen where the line ends so; form and type take eight.
        width = 16 if head.rstrip().upper().endswith("|I16") else 8
        columns, rows = lines.whole(head[:width]), lines.whole(head[width : 2 * width])
        kind = lines.whole(head[2 * width + 8 : 2 * width + 16], "the type of a matrix")
        rest = head[2 * width + 16 :]
        name = rest[:8].strip().upper()
        found = _FORMAT.search(rest[8:])
        per_line, size = (int(found[1]), int(found[2])) if found else (5, 16)
        if not (1 <= per_line <= 100 and 1 <= size <= 100):
            raise lines.fail("the number format is not possible", rest[8:])
        entries = _Entries(name, columns, abs(rows), kind, lines.fail)
        while True:
            column, row, count = lines.integers(lines.following(), 3)
            if column > columns:
                lines.following()
                break
            if not 0 <= count <= 4 * LARGEST_MATRIX:
                raise lines.fail(f"a column of matrix {name!r} has an impossible length", count)
            if row > 0:
                entries.add(column, row, lines.values(count, per_line, size))
                continue
            while count > 0:
                length, first, head_words = _text_string(lines, bigmat=rows < 0)
                count -= length + head_words
                if not 0 <= length <= 4 * LARGEST_MATRIX:
                    raise lines.fail(f"a string of matrix {name!r} has an impossible length", length)
                entries.add(column, first, lines.values(length // (1 if kind % 2 else 2), per_line, size))
        yield name, entries.matrix()


def _text_string(lines: _Lines, *, bigmat: bool) -> tuple[int, int, int]:
    """Length in words, first row, and words of a string's head."""
    text = lines.following()
    if bigmat:
        length, first = lines.integers(text, 2)
        return length - 1, first, 2
    packed = lines.whole(text, "the head of a string")
    length = (packed >> 16) - 1
    return length, packed - ((length + 1) << 16), 1
