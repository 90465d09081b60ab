"""Nastran's OUTPUT2 files: the matrices among their data blocks, 4- and 8-byte integers, either byte order.

pyyeti reads them. By hand is what it takes on trust, so that a damaged file is an error and not other numbers: that the
records are whole, and that sizes are possible.
"""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np
from scipy import sparse

from linkwise.errors import ModelFileError, require_extra
from linkwise.flexible.files.matrix_files import LARGEST_MATRIX

__all__ = ["is_op2", "read_op2"]

_LARGEST_DENSE = 2**26  # entries of a matrix


def is_op2(content: bytes) -> bool:
    """Whether this is OUTPUT2: it begins with a record of one integer, where OUTPUT4 has one of six."""
    return _byte_order(content) is not None


def read_op2(path: str | os.PathLike[str], content: bytes) -> dict[str, Any]:
    """Every real matrix of the file by its name in capitals, sparse; complex ones are there as None."""
    op2 = require_extra("pyyeti.nastran.op2", "fem")
    _check_records(content, path)
    found: dict[str, Any] = {}
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


def _check_records(content: bytes, path: str | os.PathLike[str]) -> None:
    """Each record has its length before and behind it, and the last one ends with the file."""
    length = struct.Struct(f"{_byte_order(content)}i")
    at = 0
    while at < len(content):
        size = length.unpack_from(content, at)[0] if at + 4 <= len(content) else -1
        end = at + 4 + size
        if size < 0 or end + 4 > len(content) or length.unpack_from(content, end)[0] != size:
            raise ModelFileError(
                "this is not an OUTPUT2 file that can be read", file=path, got=f"a record at byte {at} is not whole"
            )
        at = end + 4
