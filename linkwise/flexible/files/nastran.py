"""Matrices and grids from Nastran's files put together."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from linkwise.errors import InputError, ModelFileError, UnknownNameError
from linkwise.flexible.files.bulk import BulkData, read_bulk
from linkwise.flexible.files.matrix_files import MatrixModel, model_of, read_bytes
from linkwise.flexible.files.nastran_output import is_op2, read_op2, read_op4
from linkwise.flexible.structure import Matrix, NodeKey

_MASS = ("MAA", "MAAX", "MGG", "M2GG", "MXX", "M")
_STIFFNESS = ("KAA", "KAAX", "KGG", "K2GG", "KXX", "K")


def read_nastran(
    path: str | os.PathLike[str],
    bulk: str | os.PathLike[str] | None,
    mass: str | None,
    stiffness: str | None,
    dofs: Sequence[tuple[NodeKey, int]] | None,
) -> MatrixModel:
    """Nodes, M, K and what their rows are; arguments as `FlexibleBody.from_nastran` has them."""
    content = read_bytes(path)
    if _is_bulk(content):
        data = read_bulk(path, content)
        grids = data.grids or _grids(bulk, path)
        return _from_cards(path, data, grids, mass, stiffness)
    if bulk is None:
        raise InputError(
            "a file of matrices does not say where the grids are",
            got=os.fspath(path),
            do="give the bulk data: bulk='model.bdf'",
        )
    matrices = read_op2(path, content) if is_op2(content) else read_op4(path)
    M = _real(matrices, _chosen(matrices, mass, _MASS, "mass", path), path)
    K = _real(matrices, _chosen(matrices, stiffness, _STIFFNESS, "stiffness", path), path)
    data = read_bulk(bulk)
    grids = data.grids
    if dofs is None:
        if 6 * len(grids) != K.shape[0]:
            raise ModelFileError(
                "the matrices do not fit the grids",
                file=path,
                got=f"{K.shape[0]} rows for {len(grids)} grids and {len(data.scalar_points)} scalar points",
                allowed=f"{6 * len(grids)}: six for each grid, in the order of their numbers",
                do="say with dofs=[(grid, component), …] what the rows are",
            )
        dofs = [(grid, component) for grid in sorted(grids) for component in range(1, 7)]
    return MatrixModel({grid: grids[grid] for grid in sorted(grids)}, M, K, dofs)


def _is_bulk(content: bytes) -> bool:
    """Bulk data has cards; OUTPUT2 and OUTPUT4 begin with integers."""
    start = content[:65536].upper()
    return b"DMIG" in start or b"GRID" in start or b"BEGIN BULK" in start


def _grids(bulk: str | os.PathLike[str] | None, path: str | os.PathLike[str]) -> dict[int, tuple[float, float, float]]:
    if bulk is None:
        raise ModelFileError(
            "there are no GRID cards in the file", file=path, do="give the file that has them: bulk='model.bdf'"
        )
    return read_bulk(bulk).grids


def _from_cards(
    path: str | os.PathLike[str],
    data: BulkData,
    grids: dict[int, tuple[float, float, float]],
    mass: str | None,
    stiffness: str | None,
) -> MatrixModel:
    K = data.matrices[_chosen(data.matrices, stiffness, _STIFFNESS, "stiffness", path)]
    M = data.matrices[_chosen(data.matrices, mass, _MASS, "mass", path)]
    places = sorted({place for matrix in (M, K) for pair in matrix.entries for place in pair})
    for node, component in places:
        if component == 0:
            raise ModelFileError(
                "the matrices have scalar points, which have no place",
                file=path,
                got=f"point {node}",
                do="leave them out",
            )
        if node not in grids:
            raise ModelFileError(
                "a grid of the matrices is missing", file=path, got=f"grid {node}", do="add its GRID card"
            )
    for matrix in (M, K):
        if matrix.form not in (1, 6):
            raise ModelFileError(
                "a mass or stiffness matrix must be square", file=path, line=matrix.line, got=f"form {matrix.form}"
            )
    return model_of(M.entries, K.entries, grids, (M.form == 6, K.form == 6))


def _chosen(
    matrices: Collection[str], name: str | None, usual: Sequence[str], what: str, path: str | os.PathLike[str]
) -> str:
    if name is not None:
        if name.upper() not in matrices:
            raise UnknownNameError(f"matrix in {os.fspath(path)}", name, matrices)
        return name.upper()
    for each in usual:
        if each in matrices:
            return each
    raise ModelFileError(
        f"no {what} matrix under a usual name",
        file=path,
        got=", ".join(matrices) or "no matrices",
        allowed=", ".join(usual),
        do=f"name it: {what}='…'",
    )


def _real(matrices: dict[str, Matrix | None], name: str, path: str | os.PathLike[str]) -> Matrix:
    if matrices[name] is None:
        raise ModelFileError(f"the matrix {name} is complex", file=path, allowed="a real one")
    return matrices[name]
