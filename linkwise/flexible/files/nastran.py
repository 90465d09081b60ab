"""Matrices and grids from Nastran's files: results put together, and bulk data.

Of bulk data GRID and DMIG cards are read, in small fields (8 columns), large fields (16) and free fields (commas).
By hand, and not by pyyeti as OP4 is: its cards know no line, which a message about a file that people write needs, and
it ends a card, and with it loses entries in silence, where a comment or a continuation of the other width follows.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError, ModelFileError, UnknownNameError
from linkwise.flexible.files.matrix_files import (
    LARGEST_MATRIX,
    MatrixModel,
    lines_of,
    model_of,
    number,
    read_bytes,
    whole,
)
from linkwise.flexible.files.nastran_output import is_op2, read_op2, read_op4
from linkwise.flexible.structure import Matrix, NodeKey


@dataclass
class DirectMatrix:
    """A DMIG matrix: entries by ((node, component), (node, component)), and its form (6 is symmetric)."""

    form: int
    line: int
    entries: dict[tuple[tuple[int, int], tuple[int, int]], float] = field(default_factory=dict)


@dataclass
class BulkData:
    """Positions of the grids by number, scalar points, and matrices by name."""

    grids: dict[int, tuple[float, float, float]]
    scalar_points: set[int]
    matrices: dict[str, DirectMatrix]


@dataclass
class _Card:
    line: int
    name: str
    fields: list[str]
    """Fields after the name, continuation lines joined, each to its full number of fields."""


def read_bulk(path: str | os.PathLike[str], content: bytes | None = None) -> BulkData:
    """GRID, SPOINT and DMIG cards; every other card is passed over."""
    data = BulkData({}, set(), {})
    for card in _cards(path, content):
        if card.name == "GRID":
            _grid(card, data, path)
        elif card.name == "SPOINT":
            data.scalar_points |= {whole(text, path, card.line) for text in card.fields if text.isdigit()}
        elif card.name == "DMIG":
            _dmig(card, data, path)
    return data


def _cards(path: str | os.PathLike[str], content: bytes | None) -> Iterator[_Card]:
    card: _Card | None = None
    for line, raw in lines_of(path, content):
        text = raw.split("$", 1)[0].rstrip()
        if not text:
            continue
        name, fields, continued = _fields(text)
        if continued:
            if card is not None:
                card.fields += fields
            continue
        if card is not None:
            yield card
        card = _Card(line, name, fields) if name in ("GRID", "SPOINT", "DMIG") else None
    if card is not None:
        yield card


def _fields(text: str) -> tuple[str, list[str], bool]:
    """Name, fields, and whether the line continues the card before."""
    if "," in text:
        parts = [part.strip() for part in text.split(",")]
        name = parts[0].upper()
        count = 4 if "*" in name else 8
        fields = [*parts[1 : 1 + count], *[""] * (1 + count - len(parts))]
    else:
        text = text.expandtabs(8)
        name = text[:8].strip().upper()
        width, count = (16, 4) if "*" in name else (8, 8)
        fields = [text[8 + width * k : 8 + width * (k + 1)].strip() for k in range(count)]
    continued = name == "" or name[0] in "+*"
    return name.rstrip("*").strip(), fields, continued


def _grid(card: _Card, data: BulkData, path: str | os.PathLike[str]) -> None:
    fields = [*card.fields, *[""] * 8][:8]
    grid = whole(fields[0], path, card.line, what="the number of a GRID")
    for what, text in (("its position (CP)", fields[1]), ("its displacements (CD)", fields[5])):
        if text not in ("", "0", "-1"):
            raise ModelFileError(
                f"GRID {grid} uses a coordinate system of its own for {what}",
                file=path,
                line=card.line,
                got=f"coordinate system {text}",
                allowed="the basic one (0)",
                do="write grids and matrices in the basic coordinate system",
            )
    if grid in data.grids:
        raise ModelFileError(f"GRID {grid} is there twice", file=path, line=card.line)
    x, y, z = (number(text, path, card.line) if text else 0.0 for text in fields[2:5])
    data.grids[grid] = (x, y, z)


def _dmig(card: _Card, data: BulkData, path: str | os.PathLike[str]) -> None:
    name, fields = card.fields[0].upper(), card.fields[1:]
    if fields and fields[0] == "0":
        if name in data.matrices:
            raise ModelFileError(f"the matrix {name} begins twice", file=path, line=card.line)
        form = whole(fields[1], path, card.line, what="the form of a matrix")
        kind = whole(fields[2], path, card.line, what="the type of a matrix")
        if kind not in (1, 2):
            raise ModelFileError(
                f"the matrix {name} is not real", file=path, line=card.line, got=kind, allowed="type 1 or 2"
            )
        data.matrices[name] = DirectMatrix(form, card.line)
        return
    if name not in data.matrices:
        raise ModelFileError(f"a column of the matrix {name} comes before its header", file=path, line=card.line)
    matrix = data.matrices[name]
    column = _place(fields[0], fields[1], path, card.line)
    # After the column's place comes an empty field, then groups of row, component, value, nothing.
    rest = fields[3:]
    for k in range(0, len(rest), 4):
        group = [*rest[k : k + 4], "", "", ""]
        if not group[0]:
            continue
        place = _place(group[0], group[1], path, card.line)
        if (place, column) in matrix.entries:
            raise ModelFileError(
                f"an entry of the matrix {name} is there twice", file=path, line=card.line, got=f"{place} {column}"
            )
        matrix.entries[place, column] = number(group[2], path, card.line)
        if len(matrix.entries) > 100 * LARGEST_MATRIX:
            raise ModelFileError(f"the matrix {name} is too large", file=path, line=card.line)


def _place(grid: str, component: str, path: str | os.PathLike[str], line: int) -> tuple[int, int]:
    node = whole(grid, path, line, what="the number of a grid")
    part = whole(component, path, line, what="a component") if component else 0
    if not 0 <= part <= 6:
        raise ModelFileError(
            "a component is not possible", file=path, line=line, got=part, allowed="1 to 6, 0 for scalar points"
        )
    return node, part


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
