"""Motions in files, as :class:`linkwise.sim.trajectory.Trajectory` writes them, or as people do.

CSV has a header ``t,q:joint,…,v:joint,…``; npz has arrays t, q, v, vdot, tau, of which any but t may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array, FloatArray
from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.sim.tables import csv_table
from linkwise.sim.trajectory import Trajectory
from linkwise.sim.trajectory_files import coordinate_names

if TYPE_CHECKING:
    from linkwise.model.model import Model


QUANTITIES = ("q", "v", "vdot", "tau", "energy")
FILES = (".csv", ".npz")


@dataclass
class MotionTable:
    """Times, and for each quantity its names and its numbers (instants, names)."""

    t: FloatArray
    columns: dict[str, tuple[list[str], FloatArray]] = field(default_factory=dict)

    def add(self, quantity: str, names: Sequence[str], values: ArrayLike) -> None:
        """Put a quantity beside the others."""
        self.columns[quantity] = (list(names), np.asarray(values, float).reshape(len(self.t), len(names)))

    def values(self, quantity: str) -> FloatArray | None:
        """The numbers of a quantity, None if it is not there."""
        return self.columns[quantity][1] if quantity in self.columns else None


def check_suffix(path: str | None, allowed: Sequence[str], what: str) -> None:
    """Refuse a file that we could not write, before the work is done."""
    if path is None:
        return
    if Path(path).suffix not in allowed:
        raise InputError(f"{what} has an unknown kind of file", got=path, allowed=", ".join(allowed))
    if not Path(path).resolve().parent.is_dir():
        raise InputError(f"the folder of {what} does not exist", got=path, do=f"mkdir {Path(path).parent}")


def read(path: str, bare: str | None = None) -> MotionTable:
    """A file that `write` (or a careful person) wrote; columns named as joints only are of the quantity ``bare``."""
    if Path(path).suffix == ".npz":
        return _read_npz(path)
    if Path(path).suffix == ".csv":
        return _read_csv(path, bare)
    raise InputError("unknown kind of motion file", got=path, allowed=", ".join(FILES))


def _read_npz(path: str) -> MotionTable:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.array(file[name]) for name in file.files}
    except (ValueError, EOFError, KeyError) as error:
        raise InputError(f"{path} is not an npz file", got=str(error)) from None
    if "t" not in arrays:
        raise InputError(f"{path} has no times", got=", ".join(arrays) or "nothing", allowed="arrays t, q, v, …")
    table = MotionTable(_finite(arrays["t"].reshape(-1), path))
    for quantity in QUANTITIES:
        if quantity not in arrays:
            continue
        values = arrays[quantity]
        if values.shape[:1] != table.t.shape:
            raise InputError(
                f"{path}: {quantity} does not fit t", got=str(values.shape), allowed=f"({len(table.t)}, …)"
            )
        values = values.reshape(len(table.t), -1)
        names = _names(arrays).get(quantity, [str(i) for i in range(values.shape[1])])
        table.add(quantity, names, _finite(values, path))
    return table


def _names(arrays: dict[str, Array]) -> dict[str, list[str]]:
    """The names that a trajectory's own file has for its columns."""
    try:
        found = json.loads(str(arrays["about"]))["columns"]
    except (KeyError, TypeError, ValueError):
        return {}
    return {str(quantity): [str(name) for name in names] for quantity, names in found.items()}


def _read_csv(path: str, bare: str | None) -> MotionTable:
    header, values = csv_table(path, first="t")
    if not len(values):
        raise InputError(f"{path} has no data", allowed="a header and at least one line")
    table = MotionTable(_finite(values, path)[:, 0])
    found: dict[str, list[tuple[str, int]]] = {}
    for place, cell in enumerate(header[1:], 1):
        quantity, has_name, name = cell.partition(":")
        if bare is not None and not has_name and quantity not in QUANTITIES:
            quantity, name = bare, cell
        if quantity not in QUANTITIES:
            raise InputError(
                f"{path}: unknown column", got=repr(cell), allowed=", ".join(f"{q}:joint" for q in QUANTITIES)
            )
        found.setdefault(quantity, []).append((name, place))
    for quantity, places in found.items():
        table.add(quantity, [name for name, _ in places], values[:, [place for _, place in places]])
    return table


def _finite(values: FloatArray, path: str) -> FloatArray:
    if not np.issubdtype(values.dtype, np.number) or not np.isfinite(values).all():
        raise InputError(f"{path} has numbers that are not finite", do="remove the lines with inf or nan")
    return values.astype(float)


def in_order(model: Model, table: MotionTable, quantity: str, path: str) -> Array | None:
    """The numbers of a quantity in the model's own order: by name, or as they stand if the file has no names."""
    if quantity not in table.columns:
        return None
    names, values = table.columns[quantity]
    wanted = coordinate_names(model) if quantity == "q" else list(model.freedom_names)
    if set(names) == set(wanted):
        return values[:, [names.index(name) for name in wanted]]
    if len(names) == len(wanted) and all(name == "" or name.isdigit() for name in names):
        return values
    missing = [name for name in wanted if name not in names]
    unknown = [name for name in names if name not in wanted]
    raise InputError(
        f"{path}: the columns of {quantity} are not those of model {model.name!r}",
        got="no " + ", ".join(missing) if missing else "unknown " + ", ".join(unknown),
        allowed=", ".join(f"{quantity}:{name}" for name in wanted),
    )


def motion_of(path: str, model: Model) -> Trajectory:
    """A motion in a file: with all that a trajectory wrote if it has the model's own columns, or a table with these."""
    table = read(path)
    wanted = {"q": coordinate_names(model), "v": list(model.freedom_names)}
    if Path(path).suffix == ".npz" and all(table.columns.get(each, ([],))[0] == wanted[each] for each in wanted):
        return Trajectory.load(path, model)
    return trajectory_of(table, path, model)


def trajectory_of(table: MotionTable, path: str, model: Model | None = None) -> Trajectory:
    """The motion in a table; with a model, in that model's order, and at rest where v is missing."""
    found = {
        quantity: values if model is None or quantity == "energy" else in_order(model, table, quantity, path)
        for quantity, (_, values) in table.columns.items()
    }
    known = {quantity: values for quantity, values in found.items() if values is not None}
    if "energy" in known:
        known["energy"] = known["energy"][:, 0]
    if model is not None and "q" not in known:
        raise InputError(f"{path} has no configurations", allowed="columns q:joint")
    q, v = (known.pop(each, np.zeros((len(table.t), 0 if model is None else model.nv))) for each in ("q", "v"))
    columns = None if model is not None else {quantity: names for quantity, (names, _) in table.columns.items()}
    return Trajectory(table.t, q, v, model=model, derived=known, columns=columns)
