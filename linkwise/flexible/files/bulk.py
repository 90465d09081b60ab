"""Nastran bulk data: GRID and DMIG cards, in small fields (8 columns), large fields (16) and free fields (commas).

By hand, and not by pyyeti as OP4 is: its cards know no line, which a message about a file that people write needs, and
it ends a card, and with it loses entries in silence, where a comment or a continuation of the other width follows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from linkwise.dataclass import dataclass, field
from linkwise.errors import ModelFileError
from linkwise.flexible.files.matrix_files import LARGEST_MATRIX, lines_of, number, whole


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
