"""Nastran's files of matrices: OUTPUT2 and OUTPUT4; 4- and 8-byte integers, either byte order.

OUTPUT4 is text or binary, dense or sparse. pyyeti reads the matrices. By hand is what it takes on trust, so that a
damaged file is an error and not other numbers: that the records of a binary file are whole, that columns and rows lie
in their matrix, and that sizes are possible.
"""

from __future__ import annotations

import os
import struct
import warnings
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from linkwise.errors import ModelFileError, require_extra
from linkwise.flexible.files.matrix_files import LARGEST_MATRIX, read_bytes
from linkwise.flexible.structure import Matrix

_LARGEST_DENSE = 2**26  # entries of a matrix
"""Entries of a matrix that may be read into a dense array; larger ones are read entry by entry."""


def read_op4(path: str | os.PathLike[str]) -> dict[str, Matrix | None]:
    """Every real matrix of the file by its name in capitals, sparse; complex ones are there as None."""
    op4 = require_extra("pyyeti.nastran.op4", "fem")
    dense = _may_be_dense(read_bytes(path), path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that would be none in Python, and get another one
            read = op4.load(os.fspath(path), into="list", sparse=None if dense else True)
    except (ArithmeticError, LookupError, MemoryError, RuntimeError, ValueError, struct.error) as error:
        raise ModelFileError(
            "this is not an OP4 file that can be read", file=path, got=f"{type(error).__name__}: {error}"[:200]
        ) from None
    found: dict[str, Matrix | None] = {}
    for name, matrix, kind in zip(read[0], read[1], read[3], strict=True):
        rows, columns = matrix.shape
        _check_head(rows, columns, kind, path)
        found[name.upper()] = real = None if kind > 2 else sparse.csr_array(matrix)
        if real is not None and not np.isfinite(real.data).all():
            raise ModelFileError(f"matrix {name.upper()!r} is not finite", file=path)
    return found


def _check_head(rows: int, columns: int, kind: int, path: str | os.PathLike[str]) -> None:
    if not (0 <= columns <= LARGEST_MATRIX and 0 <= rows <= LARGEST_MATRIX):
        raise ModelFileError("a matrix has an impossible size", file=path, got=f"{rows} × {columns}")
    if kind not in (1, 2, 3, 4):
        raise ModelFileError("a matrix has an unknown type", file=path, got=kind, allowed="1 to 4")


def _may_be_dense(content: bytes, path: str | os.PathLike[str]) -> bool:
    """Whether dense matrices can be read as such: in a binary file whose records were checked, if not too large.

    Entry by entry, SciPy sees whether they lie in the matrix.
    """
    for order in "<>":
        for integer in (4, 8):
            # The header of a matrix is one record: four integers and a name as long as two.
            if content[:4] == struct.pack(order + "i", 6 * integer):
                return _largest(content, order, integer, path) <= _LARGEST_DENSE
    return False


def _largest(content: bytes, order: str, integer: int, path: str | os.PathLike[str]) -> int:
    """Entries of the largest matrix. Each has a header, and records of columns up to one past the last."""
    largest = rows = columns = words = 0
    dense: bool | None = None
    begun = False
    for at, body in _records(content, order, path):
        if len(body) < 3 * integer or (not begun and len(body) != 6 * integer):
            raise ModelFileError("a record has an impossible length", file=path, got=f"{len(body)} bytes at {at}")
        head = [int(each) for each in np.frombuffer(body, f"{order}i{integer}", 3 if begun else 4)]
        if not begun:
            columns, rows, _, kind = head
            rows = abs(rows)  # which are negative where lengths and rows of strings take a word each
            _check_head(rows, columns, kind, path)
            words = (2 if kind in (2, 4) and integer == 4 else 1) * (2 if kind > 2 else 1)
            largest, dense, begun = max(largest, rows * columns), None, True
            continue
        column, row, count = head
        if column > columns:
            begun = False
            continue
        dense = row > 0 if dense is None else dense
        inside = column >= 1 and dense == (row > 0) and 0 <= count * integer <= len(body) - 3 * integer
        if not inside or (dense and row - 1 + count // words > rows):
            got = f"row {row}, column {column}, {count} words at byte {at}"
            raise ModelFileError("a matrix has entries outside", file=path, got=got)
    if begun:
        raise ModelFileError("the file ends inside a matrix", file=path, got=f"{len(content)} bytes")
    return largest


def _records(content: bytes, order: str, path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Records as Fortran writes them, between two lengths in bytes, each with its place."""
    length, at = struct.Struct(order + "i"), 0
    while at < len(content):
        size = length.unpack_from(content, at)[0] if at + 4 <= len(content) else -1
        if size < 0 or at + 8 + size > len(content):
            raise ModelFileError("the file ends inside a record", file=path, got=f"{size} bytes at {at}")
        if length.unpack_from(content, at + 4 + size)[0] != size:
            raise ModelFileError("a record's two lengths differ", file=path, got=f"{size} bytes at {at}")
        yield at, content[at + 4 : at + 4 + size]
        at += size + 8


def is_op2(content: bytes) -> bool:
    """Whether this is OUTPUT2: it begins with a record of one integer, where OUTPUT4 has one of six."""
    return _byte_order(content) is not None


def read_op2(path: str | os.PathLike[str], content: bytes) -> dict[str, Matrix | None]:
    """Every real matrix of the file by its name in capitals, sparse; complex ones are there as None."""
    op2 = require_extra("pyyeti.nastran.op2", "fem")
    for _ in _records(content, str(_byte_order(content)), path):
        pass  # each is whole, and the last one ends with the file
    found: dict[str, Matrix | None] = {}
    try:
        with op2.OP2(os.fspath(path)) as file:
            for block in file.dblist:
                if block.dbtype <= 0:
                    continue
                rows, columns = block.size
                if not (0 < columns <= LARGEST_MATRIX and 0 < rows <= LARGEST_MATRIX):
                    raise ModelFileError("a matrix has an impossible size", file=path, got=f"{rows} × {columns}")
                if rows * columns > _LARGEST_DENSE:
                    raise ModelFileError(
                        f"matrix {block.name!r} is too large to be read from OUTPUT2",
                        file=path,
                        got=f"{rows} × {columns}",
                        do="write it with OUTPUT4, where it is sparse",
                    )
                matrix = file.rdop2mats([block.name])[block.name]
                found[block.name.upper()] = None if np.iscomplexobj(matrix) else sparse.csr_array(matrix)
    except (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError, struct.error) as error:
        raise ModelFileError(
            "this is not an OUTPUT2 file that can be read", file=path, got=f"{type(error).__name__}: {error}"[:200]
        ) from None
    for name, matrix in found.items():
        if matrix is not None and not np.isfinite(matrix.data).all():
            raise ModelFileError(f"matrix {name!r} is not finite", file=path)
    return found


def _byte_order(content: bytes) -> str | None:
    for order in "<>":
        if content[:4] in (struct.pack(order + "i", 4), struct.pack(order + "i", 8)):
            return order
    return None
