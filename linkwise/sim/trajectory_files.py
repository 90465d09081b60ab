"""Trajectories as tables, and in files: ``.npz``, ``.csv``, ``.mat``, which are read back, and logs for ROS."""

from __future__ import annotations

import csv
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from linkwise.array_types import Array
from linkwise.errors import InputError, LinkwiseError, message, require_extra
from linkwise.model.model import Model
from linkwise.sim.events import Occurrence
from linkwise.sim.tables import csv_table
from linkwise.sim.trajectory import Jumps, Trajectory

if TYPE_CHECKING:
    from pandas import DataFrame
    from xarray import Dataset

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


def as_pandas(trajectory: Trajectory) -> DataFrame:
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


def as_xarray(trajectory: Trajectory) -> Dataset:
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


_FORMAT = "linkwise trajectory 1"
_SIDES = ("q", "v", "q_after", "v_after")


def save(trajectory: Trajectory, target: Path) -> Path:
    """Write a trajectory; the ending of the name says how."""
    if target.suffix in _TABLES:
        _TABLES[target.suffix][0](trajectory, target)
        return target
    if target.suffix not in (".mcap", *_SCENES):
        raise _unknown_type(target, [*_TABLES, ".mcap", *_SCENES])
    if trajectory.batch_shape:
        raise InputError(
            f"a {target.suffix} file holds one motion",
            got=f"a batch {trajectory.batch_shape}",
            do="choose one: motion[0].save(…)",
        )
    if target.suffix == ".mcap":
        save_mcap(trajectory, target)
    else:
        from linkwise.viz.scenes import save_scene

        save_scene(trajectory, target)
    return target


def read(source: Path) -> dict[str, Any]:
    """Contents of a file, as the arguments of :class:`Trajectory`."""
    if source.suffix not in _TABLES:
        raise _unknown_type(source, list(_TABLES))
    return _TABLES[source.suffix][1](source)


def _unknown_type(path: Path, known: Sequence[str]) -> InputError:
    return InputError("no such file type", got=repr(path.suffix), allowed=f"{', '.join(known[:-1])} or {known[-1]}")


def _no_trajectory(source: Path, error: Exception) -> InputError:
    return InputError("this file is not a trajectory", got=f"{source}: {error}")


def _save_npz(trajectory: Trajectory, target: Path) -> None:
    about, arrays = _contents(trajectory)
    np.savez_compressed(target, about=np.array(json.dumps(about)), **arrays)


def _save_mat(trajectory: Trajectory, target: Path) -> None:
    """For MATLAB and Octave: names that are words there, times as a column, what else there is as JSON."""
    from scipy.io import savemat

    about, arrays = _contents(trajectory)
    words = {name: re.sub(r"\W", "_", name)[:31] for name in arrays}
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    told = {**about, "words": words, "shapes": shapes}
    columns = {f"names_{name}": np.array(names, object) for name, names in trajectory.columns.items() if names}
    values = {words[name]: array for name, array in arrays.items()}
    savemat(target, {**values, **columns, "about": json.dumps(told)}, oned_as="column", do_compression=True)


def _read_mat(source: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        file = loadmat(source)
        about = json.loads(str(file["about"].item()))
        arrays = {name: _as_saved(file[word], about["shapes"][name]) for name, word in about["words"].items()}
    except (OSError, KeyError, ValueError, NotImplementedError) as error:
        raise _no_trajectory(source, error) from error
    return _arguments(about, arrays)


def _as_saved(array: Array, shape: Sequence[int]) -> Array:
    """An array with the axes that it had: MATLAB knows none of less than two, and pads words."""
    if array.dtype.kind == "U":
        array = np.char.rstrip(array)
    return array.reshape(shape)


def _contents(trajectory: Trajectory) -> tuple[dict[str, object], dict[str, Any]]:
    """Facts about a trajectory, and its arrays by name."""
    about: dict[str, object] = {
        "format": _FORMAT,
        "method": trajectory.method,
        "note": trajectory.note,
        "columns": trajectory.columns,
        "reasons": [[list(state), reason] for state, reason in trajectory.reasons.items()],
    }
    arrays: dict[str, Array] = {"t": trajectory.t, **tabled(trajectory), **_event_arrays(trajectory.events)}
    arrays |= {"steps": np.asarray(trajectory.steps), "rejected": np.asarray(trajectory.rejected)}
    arrays["status"] = np.asarray(trajectory.status, dtype=np.str_)
    known = trajectory.values()
    arrays |= {name: array for name, array in known.items() if _is_explanation(name)}
    if trajectory.p is not None:
        arrays["p"] = trajectory.p
    if trajectory.jumps is not None:
        arrays |= trajectory.jumps.arrays()
    return about, arrays


def _is_explanation(name: str) -> bool:
    """Whether values are forces, works or contacts that tables have no columns for."""
    return name in ("f_ext", "field", "work") or name.startswith(("force:", "contact_"))


def _read_npz(source: Path) -> dict[str, Any]:
    try:
        with np.load(source, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            arrays = {name: file[name] for name in file.files}
    except (OSError, KeyError, ValueError) as error:
        raise _no_trajectory(source, error) from error
    return _arguments(about, arrays)


def _arguments(about: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Arguments of :class:`Trajectory` from what :func:`_contents` gave."""
    events = _events(arrays)
    status = arrays["status"]
    counts = {name: arrays.get(name, np.array(0)) for name in ("steps", "rejected")}
    return {
        **{name: arrays[name] for name in ("t", "q", "v", "x")},
        "p": arrays.get("p"),
        "jumps": Jumps.from_arrays(arrays),
        "events": events,
        **{name: count if count.ndim else int(count) for name, count in counts.items()},
        "reasons": {tuple(state): str(reason) for state, reason in about.get("reasons", ())},
        "derived": {name: a for name, a in arrays.items() if name in DERIVED or _is_explanation(name)},
        "status": str(status) if status.ndim == 0 else status,
        "note": about["note"],
        "method": about["method"],
        "columns": about["columns"],
    }


def _event_arrays(events: Sequence[Occurrence]) -> dict[str, Array]:
    """Events as arrays, under names for a file; the impulses of all in one row, with how many each has (-1: None)."""
    if not events:
        return {}
    impulses = [event.impulses for event in events]
    found = {
        "name": np.array([event.name for event in events], np.str_),
        "t": np.array([event.t for event in events]),
        "state": np.array([event.state for event in events], np.int64).reshape(len(events), -1),
        **{side: np.array([getattr(event, side) for event in events]) for side in _SIDES},
        "impulses": np.concatenate([np.empty(0), *(np.ravel(each) for each in impulses if each is not None)]),
        "impulse_counts": np.array([-1 if each is None else np.size(each) for each in impulses]),
    }
    return {f"event_{name}": values for name, values in found.items()}


def _events(arrays: Mapping[str, Array]) -> list[Occurrence]:
    """Events read back from what :func:`_event_arrays` made, found among other arrays."""
    if "event_t" not in arrays:
        return []
    counts = arrays["event_impulse_counts"]
    ends = np.cumsum(np.maximum(counts, 0))
    return [
        Occurrence(
            str(arrays["event_name"][k]),
            float(arrays["event_t"][k]),
            tuple(arrays["event_state"][k].tolist()),
            **{side: arrays[f"event_{side}"][k] for side in _SIDES},
            impulses=None if counts[k] < 0 else arrays["event_impulses"][ends[k] - counts[k] : ends[k]],
        )
        for k in range(len(counts))
    ]


def _save_csv(trajectory: Trajectory, target: Path) -> None:
    if trajectory.events:
        warnings.warn(
            message(
                "a CSV file cannot hold events",
                got=f"{len(trajectory.events)} events, which are not in {target.name}",
                do="save as .npz, which brings them back",
            ),
            stacklevel=4,
        )
    t, p, batch = trajectory.t, trajectory.p, trajectory.batch_shape
    head = ["t"] if not batch else [f"state {'x'.join(map(str, batch))}", "t"]
    flat = []
    for name, array in tabled(trajectory).items():
        head += labels(trajectory, name)
        size = 1 if name == "energy" else array.shape[-1]
        flat.append(array.reshape(math.prod(batch), len(t), size))
    if p is not None and p.shape[-1]:  # the same in every row of a state
        head += [f"p:{k}" for k in range(p.shape[-1])]
        rows = p.reshape(math.prod(batch), 1, -1)
        flat.append(np.broadcast_to(rows, (len(rows), len(t), rows.shape[-1])))
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        table = np.concatenate(flat, axis=-1)
        for state in range(table.shape[0]):
            for time, row in zip(t.tolist(), table[state].tolist(), strict=True):
                numbers = [repr(float(x)) for x in (time, *row)]
                writer.writerow([state, *numbers] if batch else numbers)


def _read_csv(source: Path) -> dict[str, Any]:
    try:
        head, table = csv_table(source)
        batch: tuple[int, ...] = ()
        if head[0].startswith("state "):
            batch = tuple(int(n) for n in head[0].removeprefix("state ").split("x"))
            head, table = head[1:], table[:, 1:]
        if head[0] != "t":
            raise ValueError(f"the first column is {head[0]!r}")
        table = table.reshape(*batch, -1, len(head))
    except (ValueError, IndexError) as error:
        raise _no_trajectory(source, error) from error
    arrays: dict[str, Array] = {}
    columns: dict[str, list[str]] = {}
    for name in ("q", "v", "x", "vdot", "tau", "active", "p"):
        places = [k for k, column in enumerate(head) if column.startswith(f"{name}:")]
        columns[name] = [head[k].split(":", 1)[1] for k in places]
        arrays[name] = table[..., places]
    derived = {name: arrays[name] for name in ("vdot", "tau", "active") if columns[name]}
    if "energy" in head:
        derived["energy"] = table[..., head.index("energy")]
    t = table[(0,) * len(batch)][:, 0] if table.size else table[..., 0].reshape(-1)
    p = arrays["p"][..., 0, :] if columns.pop("p") and len(t) else None
    states = {name: arrays[name] for name in ("q", "v", "x")}
    return {"t": t, **states, "p": p, "derived": derived, "columns": columns}


_TABLES: dict[str, tuple[Callable[[Trajectory, Path], None], Callable[[Path], dict[str, Any]]]] = {
    ".npz": (_save_npz, _read_npz),
    ".csv": (_save_csv, _read_csv),
    ".mat": (_save_mat, _read_mat),
}
"""Writer and reader of the files that are read back, by their endings."""
_SCENES = (".glb", ".usd", ".usda", ".usdc")


_PARTS = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/Transform": "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    "geometry_msgs/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform"
    ),
}
"""Fields of the messages that others are made of."""

_JOINT_STATE = "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort"
_TRANSFORMS = "geometry_msgs/TransformStamped[] transforms"


def save_mcap(trajectory: Trajectory, target: Path) -> None:
    """Write one motion of one state."""
    writing: Any = require_extra("mcap_ros2.writer", "ros")
    model = trajectory._with_model("messages for ROS")
    single = [joint for joint in model.joints if joint.nv == 1 and joint.nq == 1 and joint.mimic is None]
    at_q, at_v = [joint.q_slice.start for joint in single], [joint.v_slice.start for joint in single]
    names = [joint.name for joint in single]
    efforts = trajectory.tau if "tau" in trajectory.values() else None
    poses = trajectory.poses
    turns = Rotation.from_matrix(poses[..., :3, :3].reshape(-1, 3, 3)).as_quat().reshape(*poses.shape[:2], 4)
    with target.open("wb") as file:
        writer = writing.Writer(file)
        states = writer.register_msgdef("sensor_msgs/msg/JointState", _definition(_JOINT_STATE))
        places = writer.register_msgdef("tf2_msgs/msg/TFMessage", _definition(_TRANSFORMS))
        for k, t in enumerate(trajectory.t.tolist()):
            nanoseconds = round(t * 1e9)
            seconds, rest = divmod(nanoseconds, 10**9)
            head = {"stamp": {"sec": seconds, "nanosec": rest}, "frame_id": "world"}
            state = {
                "header": head,
                "name": names,
                "position": trajectory.q[k, at_q].tolist(),
                "velocity": trajectory.v[k, at_v].tolist(),
                "effort": [] if efforts is None else efforts[k, at_v].tolist(),
            }
            transforms = [
                {
                    "header": head,
                    "child_frame_id": body.name,
                    "transform": {
                        "translation": dict(zip("xyz", poses[k, i, :3, 3].tolist(), strict=True)),
                        "rotation": dict(zip("xyzw", turns[k, i].tolist(), strict=True)),
                    },
                }
                for i, body in enumerate(model.bodies)
            ]
            when = {"log_time": nanoseconds, "publish_time": nanoseconds, "sequence": k}
            writer.write_message(topic="/joint_states", schema=states, message=state, **when)
            writer.write_message(topic="/tf", schema=places, message={"transforms": transforms}, **when)
        writer.finish()


def _definition(fields: str) -> str:
    """A message's definition with those of all that it is made of."""
    needed: list[str] = []
    waiting = [fields]
    while waiting:
        for line in waiting.pop().splitlines():
            kind = line.split()[0].removesuffix("[]")
            if kind in _PARTS and kind not in needed:
                needed.append(kind)
                waiting.append(_PARTS[kind])
    return "\n".join([fields, *(f"{'=' * 80}\nMSG: {kind}\n{_PARTS[kind]}" for kind in needed)]) + "\n"
