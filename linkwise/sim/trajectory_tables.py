"""A trajectory as tables: names of columns, and the data frames of other packages."""

from __future__ import annotations

from typing import Any

from linkwise.array_types import Array
from linkwise.errors import LinkwiseError
from linkwise.model.model import Model
from linkwise.sim.trajectory import Trajectory

DERIVED = ("vdot", "tau", "energy", "active")
"""Columns of tables besides the states, where they are known."""


def column_names(trajectory: Trajectory) -> dict[str, list[str]]:
    """A name for each number of q, v, x, vdot, tau and active: the joint's, the closure's, or its place."""
    model = trajectory.model
    q = [f"{k}" for k in range(trajectory.q.shape[-1])]
    v = [f"{k}" for k in range(trajectory.v.shape[-1])]
    if model is not None:
        q, v = coordinate_names(model), list(model.freedom_names)
    closures = [] if model is None else [closure.name for closure in model.closures]
    x = [f"{k}" for k in range(trajectory.x.shape[-1])]
    return {"q": q, "v": v, "x": x, "vdot": v, "tau": v, "active": closures}


def coordinate_names(model: Model) -> list[str]:
    """A name for each number of q: its joint's, with an index where it has several."""
    names = [""] * model.nq
    for joint in model._independent:
        names[joint.q_slice] = [joint.name] if joint.nq == 1 else [f"{joint.name}[{k}]" for k in range(joint.nq)]
    return names


def tabled(trajectory: Trajectory) -> dict[str, Array]:
    """Columns of a table, arrays with a time axis by name: states first; vectors last but for the energy (..., T)."""
    known = trajectory.values()
    return {name: known[name] for name in ("q", "v", "x", *DERIVED) if name in known}


def labels(trajectory: Trajectory, name: str) -> list[str]:
    """The heads of the columns of one of these arrays, e.g. ``q:joint1``."""
    return ["energy"] if name == "energy" else [f"{name}:{column}" for column in trajectory.columns[name]]


def as_pandas(trajectory: Trajectory) -> Any:
    """A ``pandas.DataFrame``; see :meth:`Trajectory.to_pandas`."""
    try:
        import pandas
    except ImportError as error:
        raise LinkwiseError("to_pandas needs the package pandas", do="pip install pandas") from error
    t, batch = trajectory.t, trajectory.batch_shape
    names = [f"batch{k}" for k in range(len(batch))]
    ranges = [range(n) for n in batch]
    index = pandas.MultiIndex.from_product([*ranges, t], names=[*names, "time"]) if names else t
    columns: dict[str, Array] = {}
    for name, array in tabled(trajectory).items():
        columns.update(zip(labels(trajectory, name), array.reshape(len(index), -1).T, strict=True))
    return pandas.DataFrame(columns, index=index if names else pandas.Index(t, name="time"))


def as_xarray(trajectory: Trajectory) -> Any:
    """An ``xarray.Dataset``; see :meth:`Trajectory.to_xarray`."""
    try:
        import xarray
    except ImportError as error:
        raise LinkwiseError("to_xarray needs the package xarray", do="pip install xarray") from error
    axes = [f"batch{k}" for k in range(len(trajectory.batch_shape))]
    ends = {"q": "coordinate", "x": "state", "active": "closure"}
    data = {
        name: ((*axes, "time") if name == "energy" else (*axes, "time", ends.get(name, "freedom")), array)
        for name, array in tabled(trajectory).items()
    }
    columns = trajectory.columns
    names = {"coordinate": columns["q"], "freedom": columns["v"], "state": columns["x"]}
    if "active" in data:
        names["closure"] = columns["active"]
    return xarray.Dataset(data, coords={"time": trajectory.t, **names}, attrs={"method": trajectory.method})
