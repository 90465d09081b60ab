"""Abaqus: matrices of ``*MATRIX OUTPUT`` in the format MATRIX INPUT, and ``*NODE`` lines of an input file.

A line of a matrix is row node, row dof, column node, column dof, value; a symmetric matrix comes as one triangle.
Dofs are 1 to 6 as in Nastran. Rows of internal nodes (numbers below 1) belong to elements' inner variables. A support
that was left in the model is written as a huge number on the diagonal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from numpy.typing import ArrayLike

from linkwise.errors import ModelFileError
from linkwise.flexible.files.matrix_files import Entries, MatrixModel, Place, lines_of, model_of, number, whole

_SUPPORT = 1e35
"""Abaqus writes 1e36 for a fixed dof."""


def read_mtx(
    mass: str | os.PathLike[str], stiffness: str | os.PathLike[str], nodes: Mapping[int, ArrayLike]
) -> MatrixModel:
    """M and K with what their rows are; the nodes that they use."""
    M, K = _entries(mass), _entries(stiffness)
    missing = sorted({node for entries in (M, K) for pair in entries for node, _ in pair if node not in nodes})
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
        raise ModelFileError("nodes of the matrices have no position", file=stiffness, got=shown, do="give all nodes")
    return model_of(M, K, nodes, (True, True))


def _entries(path: str | os.PathLike[str]) -> Entries:
    entries: dict[tuple[Place, Place], float] = {}
    for line, text in lines_of(path):
        if not text.strip() or text.lstrip().startswith("*"):
            continue
        parts = text.replace(",", " ").split()
        if len(parts) != 5:
            raise ModelFileError(
                "this is not a line of a matrix",
                file=path,
                line=line,
                got=repr(text[:60]),
                allowed="node, dof, node, dof, value",
                do="write with *MATRIX OUTPUT, FORMAT=MATRIX INPUT",
            )
        i, a, j, b = (whole(part, path, line) for part in parts[:4])
        value = number(parts[4], path, line)
        if i < 1 or j < 1:
            raise ModelFileError(
                "the matrix has internal nodes, which have no place",
                file=path,
                line=line,
                got=repr(text[:60]),
                do="use elements without inner variables (no hybrid or incompatible ones)",
            )
        if not (1 <= a <= 6 and 1 <= b <= 6):
            raise ModelFileError(
                "this dof is not a displacement or a rotation", file=path, line=line, got=f"{a}, {b}", allowed="1 to 6"
            )
        if abs(value) >= _SUPPORT:
            raise ModelFileError(
                "the matrix holds a support",
                file=path,
                line=line,
                got=f"node {i}, dof {a}: {value:g}",
                do="write the matrices of the free structure, without boundary conditions",
            )
        if ((i, a), (j, b)) in entries:
            raise ModelFileError("an entry is there twice", file=path, line=line, got=repr(text[:60]))
        entries[(i, a), (j, b)] = value
    if not entries:
        raise ModelFileError("the file holds no matrix", file=path)
    return entries


def read_nodes(path: str | os.PathLike[str]) -> dict[int, tuple[float, float, float]]:
    """The nodes of an input file."""
    nodes: dict[int, tuple[float, float, float]] = {}
    reading = False
    for line, text in lines_of(path):
        stripped = text.strip()
        if not stripped or stripped.startswith("**"):
            continue
        if stripped.startswith("*"):
            keyword = stripped[1:].split(",")[0].strip().upper()
            reading = keyword == "NODE"
            if keyword == "SYSTEM":
                raise ModelFileError("the nodes are in a system of their own", file=path, line=line, got=stripped)
            continue
        if reading:
            parts = [part.strip() for part in stripped.split(",")]
            node = whole(parts[0], path, line, what="the number of a node")
            if node in nodes:
                raise ModelFileError(
                    f"node {node} is there twice", file=path, line=line, do="merge the parts of the assembly"
                )
            x, y, z = (number(part, path, line) if part else 0.0 for part in [*parts[1:4], "", "", ""][:3])
            nodes[node] = (x, y, z)
    if not nodes:
        raise ModelFileError("the file holds no *NODE lines", file=path)
    return nodes
