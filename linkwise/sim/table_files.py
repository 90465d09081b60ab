"""Tables in CSV files: the time first, then a number in each column."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError


def read_columns(path: str | Path) -> tuple[Array, dict[str, Array]]:
    """Times (T), and the other columns (T) by name; by their numbers, "1", "2", …, where the file names none."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a CSV file", got=str(error)) from None
    names = [text.strip() for text in lines[0]] if lines and not _is_number(lines[0][0]) else []
    body = lines[1:] if names else lines
    if not body or len(body[0]) < 2:
        raise InputError(
            f"{path} holds no table", got=f"{len(body)} lines of numbers", allowed="a line `t,joint,…`, then numbers"
        )
    names = names or [str(k) for k in range(len(body[0]))]
    values = np.empty((len(body), len(names)))
    for k, line in enumerate(body):
        number = k + (2 if len(lines) > len(body) else 1)
        if len(line) != len(names):
            raise InputError(
                f"{path}:{number}: the line is of another length", got=f"{len(line)} entries", allowed=f"{len(names)}"
            )
        for j, text in enumerate(line):
            if not _is_number(text):
                raise InputError(f"{path}:{number}: {names[j]} is not a number", got=repr(text), allowed="e.g. 0.5")
            values[k, j] = float(text)
    if len(set(names)) < len(names):
        raise InputError(f"{path} names a column twice", got=", ".join(names))
    return values[:, 0], {name: values[:, j] for j, name in enumerate(names) if j}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
