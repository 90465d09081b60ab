"""The bytes or lines of a file of matrices, and what is common to the formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from linkwise.dataclass import dataclass
from linkwise.errors import InputError, ModelFileError
from linkwise.flexible.nodal import Nodes
from linkwise.flexible.structure import MatrixLike, NodeKey

LARGEST_FILE = 2 * 1024**3
"""Bytes."""
LARGEST_MATRIX = 3_000_000
"""Rows or columns."""


@dataclass(frozen=True)
class MatrixModel:
    """Content of a file of matrices: positions by node, M and K, and what their rows are."""

    nodes: Nodes
    M: MatrixLike
    K: MatrixLike
    dofs: Sequence[tuple[NodeKey, int]] | None


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError("the path of a file must be a string or a path", got=f"{path!r} ({type(path).__name__})")
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelFileError(f"cannot read this file: {reason}", file=path, do="check the path") from None
    if len(content) > LARGEST_FILE:
        raise ModelFileError(
            "the file is too large", file=path, got=f"more than {LARGEST_FILE} bytes", allowed=f"at most {LARGEST_FILE}"
        )
    if not content.strip():
        raise ModelFileError("the file is empty", file=path)
    return content


def lines_of(path: str | os.PathLike[str], content: bytes | None = None) -> Iterator[tuple[int, str]]:
    """The lines of a text file, numbered from 1."""
    content = read_bytes(path) if content is None else content
    if b"\0" in content[:4096]:
        raise ModelFileError("this is a binary file; text was expected", file=path)
    return enumerate(content.decode("latin-1").splitlines(), start=1)


def number(text: str, path: str | os.PathLike[str], line: int) -> float:
    """A real number as Fortran programs write it: 1.5, 1.5D3, 1.5E3, and Nastran's 1.5+3."""
    cleaned = text.strip().upper().replace("D", "E")
    try:
        value = float(cleaned)
    except ValueError:
        for k in range(len(cleaned) - 1, 0, -1):
            if cleaned[k] in "+-" and cleaned[k - 1] != "E":
                cleaned = cleaned[:k] + "E" + cleaned[k:]
                break
        try:
            value = float(cleaned)
        except ValueError:
            raise ModelFileError("this is not a number", file=path, line=line, got=repr(text[:40])) from None
    if not np.isfinite(value):
        raise ModelFileError("this number is not finite", file=path, line=line, got=repr(text[:40]))
    return value


def whole(text: str, path: str | os.PathLike[str], line: int, *, what: str = "an integer") -> int:
    """An integer."""
    try:
        return int(text)
    except ValueError:
        raise ModelFileError(f"{what} was expected", file=path, line=line, got=repr(text[:40])) from None


Place = tuple[int, int]
"""A node and a component, 1 to 6."""
Entries = Mapping[tuple[Place, Place], float]


def model_of(M: Entries, K: Entries, positions: Mapping[int, ArrayLike], symmetric: Sequence[bool]) -> MatrixModel:
    """The model of matrices whose entries are given by their places; it has the nodes that they use.

    Args:
        M: entries of the mass matrix.
        K: entries of the stiffness matrix.
        positions: of all these nodes, and perhaps more.
        symmetric: of each, whether its entries may stand in one triangle only.
    """
    places = sorted({place for entries in (M, K) for pair in entries for place in pair})
    row = {place: k for k, place in enumerate(places)}
    matrices = []
    for entries, mirrored in zip((M, K), symmetric, strict=True):
        whole = dict(entries)
        if mirrored:
            whole |= {(j, i): value for (i, j), value in entries.items() if (j, i) not in entries}
        rows, columns = ([row[pair[side]] for pair in whole] for side in (0, 1))
        matrices.append(sparse.csr_array((list(whole.values()), (rows, columns)), shape=(len(row), len(row))))
    used = sorted({node for node, _ in places})
    return MatrixModel({node: positions[node] for node in used}, matrices[0], matrices[1], places)
