"""Plain text and JSON for the terminal."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

_LABEL = re.compile(r"^(got|allowed|do): +")


def print_json(value: object) -> None:
    """Valid JSON: arrays as lists; infinities and NaN, which JSON does not have, as null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False))


def plain(value: object) -> object:
    """Value in lists, dicts, numbers and strings."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (np.floating, np.integer)):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def number(value: float, digits: int = 4) -> str:
    """A number for a table; ``-`` where there is none."""
    return "-" if not math.isfinite(value) else f"{value:.{digits}g}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns under their names: the first to the left, numbers to the right."""
    body = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *body]) for i in range(len(header))]
    right = [
        bool(body) and all(_is_number(row[i]) for row in body) and any(row[i] != "-" for row in body)
        for i in range(len(header))
    ]
    lines = []
    for row in [list(header), *body]:
        cells = [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell in ("-", "")
    return True


def matrix(values: ArrayLike) -> str:
    """A matrix, four digits each, in columns."""
    rows = [[f"{x:.4g}" if abs(x) > 1e-14 else "0" for x in row] for row in np.atleast_2d(values)]
    width = max((len(cell) for row in rows for cell in row), default=0)
    return "\n".join("  " + "  ".join(cell.rjust(width) for cell in row) for row in rows)


def one_line(error: BaseException) -> str:
    """A message of four parts in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    lines = [_LABEL.sub(r"\1: ", line.strip()) for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[0] if len(lines) == 1 else f"{lines[0]} ({'; '.join(lines[1:])})"
