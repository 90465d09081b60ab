"""What a simulation returns: states over time, and everything that follows from them."""

from __future__ import annotations

import csv
import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.codegen.home import Home
from linkwise.codegen.processor import PROCESSOR
from linkwise.errors import InputError, LinkwiseError
from linkwise.once import cached_property

if TYPE_CHECKING:
    from linkwise.model_api.model import Model
    from linkwise.sim.events import Occurrence
    from linkwise.sim.jumps import Jumps

Array = NDArray[Any]
Observe = Callable[[], Mapping[str, Array]]

_DERIVED = ("vdot", "tau", "energy", "active")
_FORMAT = "linkwise trajectory 1"


Method = TypeVar("Method", bound=Callable[..., Any])


def _on_the_host(method: Method) -> Method:
    """A method of what is in NumPy: called on anything else, it copies that first."""

    @functools.wraps(method)
    def on_host(self: Trajectory, *args: Any, **kwargs: Any) -> Any:
        return method(self.on_host(), *args, **kwargs)

    return cast(Method, on_host)


class Trajectory:
    """States of one mechanism over time; T samples, any leading batch axes.

    Where the action of an event moved a single state that is sampled at every step, two samples have the same time: the
    state before and the state after. Samples at given times, and those of a batch, do not show it; :meth:`at` knows it
    all the same.

    The arrays of a simulation on a GPU stay there: q, v, x, p and what follows from them are arrays of the library that
    the start was given in. Times, status, events and counts are on the host. :meth:`on_host` copies everything there;
    what writes, draws or shows a motion does so by itself.

    Attributes:
        t: times (T), s.
        q: configurations (..., T, nq).
        v: velocities (..., T, nv).
        x: states of actuators (..., T, nx).
        vdot: accelerations (..., T, nv).
        tau: joint forces of the actuators, after their limits (..., T, nv), in N m or N. Damping, friction, springs and
            joint limits are not in it.
        energy: kinetic, potential and spring energy (..., T), in J.
        closure_error: residuals of all closures (..., T, ·); zero where one is released.
        active: which closures are in force (..., T, n_closures).
        p: run-time parameters of the run (..., np), the model's first; None if not known: then the nominal ones count.
        events: what happened, in the order of time for each state.
        status: ``"done"``, ``"event"`` (a terminal one), ``"failed"``, ``"max_steps"`` or ``"interrupted"``; for a
            batch an array of them. Samples after the end of a state are NaN.
        steps, rejected: how many steps were made and how many were rejected, for each state.
        note: why something ran slower than it could, or ended early; or empty.
        reasons: for each state that did not reach its end, by its index in the batch, what stopped it.
        method: the integrator's name.
    """

    def __init__(
        self,
        t: ArrayLike,
        q: ArrayLike,
        v: ArrayLike,
        x: ArrayLike | None = None,
        *,
        p: ArrayLike | None = None,
        model: Model | None = None,
        jumps: Jumps | None = None,
        derived: Mapping[str, Array] | Observe | None = None,
        events: Sequence[Occurrence] = (),
        status: Any = "done",
        steps: Any = 0,
        rejected: Any = 0,
        note: str = "",
        reasons: Mapping[tuple[int, ...], str] | None = None,
        method: str = "",
        columns: Mapping[str, Sequence[str]] | None = None,
        storage: Any = None,
        home: Home = PROCESSOR,
    ) -> None:
        kept: Callable[[Any], Array] = np.asarray if home is PROCESSOR else lambda array: cast(Array, array)
        self.t, self.q, self.v = np.asarray(t), kept(q), kept(v)
        self.x = np.empty((*self.q.shape[:-1], 0)) if x is None else kept(x)
        self.p = None if p is None else kept(p)
        self.home = home
        self.model, self.jumps = model, jumps
        self.events = list(events)
        self.status, self.steps, self.rejected = status, steps, rejected
        self.note, self.method = note, method
        self.reasons = dict(reasons or {})
        self._derived = derived if derived is not None else {}
        self._columns = columns
        self.storage = storage

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and other processes: what follows from the states is computed first; the memory is not shared."""
        here = self.on_host()
        return {**here.__dict__, "_derived": dict(here._values), "storage": None}

    # Elsewhere than on the host.
    def on_host(self) -> Trajectory:
        """The same motion with all its arrays in NumPy; itself, if they are."""
        return self if self.home is PROCESSOR else self._moved(self.home.fetched, PROCESSOR)

    def at_home(self, home: Home) -> Trajectory:
        """The same motion, now on the host, with its arrays where a run keeps them."""
        return self if home is PROCESSOR else self._moved(lambda array: home.handed(home.brought(array)), home)

    def _moved(self, move: Callable[[Any], Any], home: Home) -> Trajectory:
        with (home if self.home is PROCESSOR else self.home).entered():
            derived = {name: move(values) for name, values in self._values.items()}
            p = None if self.p is None else move(self.p)
            return self.with_samples(self.t, move(self.q), move(self.v), move(self.x), derived, p=p, home=home)

    # What follows from the states, computed when first asked for.
    @cached_property
    def _values(self) -> Mapping[str, Array]:
        return self._derived() if callable(self._derived) else self._derived

    def _value(self, name: str) -> Array:
        values = self._values
        if name not in values:
            raise LinkwiseError(
                f"this trajectory has no {name}",
                got=f"only {', '.join(['t', 'q', 'v', *values])}",
                do=f'give it where the trajectory is made: derived={{"{name}": …}}',
            )
        return values[name]

    @property
    def vdot(self) -> Array:
        """Accelerations (..., T, nv)."""
        return self._value("vdot")

    @property
    def tau(self) -> Array:
        """Joint forces of the actuators, after their limits (..., T, nv), in N m or N."""
        return self._value("tau")

    @property
    def energy(self) -> Array:
        """Kinetic, potential and spring energy (..., T), in J."""
        return self._value("energy")

    @property
    def f_ext(self) -> Array | None:
        """Forces of elements on bodies (..., T, n_bodies, 6) in N m and N, in body frames; None if there are none."""
        flat = self._values.get("f_ext")
        return None if flat is None else flat.reshape(*flat.shape[:-1], -1, 6)

    @property
    def active(self) -> Array:
        """Which closures are in force (..., T, n_closures): 1, or 0 where one is released."""
        closures = self._with_model("active").closures
        known = self._values.get("active")
        if known is not None:
            return known
        return self._brought(np.ones((*self.q.shape[:-1], len(closures))))

    @cached_property
    def closure_error(self) -> Array:
        """Residuals of all closures at the samples (..., T, ·), see :meth:`Model.closure_error`; zero where released.

        Of each closure as many as it has equations between places.
        """
        if self.home is not PROCESSOR:
            return self._brought(self.on_host().closure_error)
        model = self._with_model("closure_error")
        counts = [len(closure.type.equations) for closure in model.closures]
        if not sum(counts):
            return np.zeros((*self.q.shape[:-1], 0))
        q = np.asarray(self.q, float)
        error = model.closure_error(q, np.broadcast_to(self.t, q.shape[:-1]).astype(float), p=self.model_parameters)
        return error * np.repeat(self.active > 0.5, counts, axis=-1)

    @cached_property
    def poses(self) -> Array:
        """4×4 poses of all bodies (..., T, n_bodies, 4, 4) in the world."""
        return self._with_model("poses").poses(self.q, p=self.model_parameters)

    def pose(self, body: str) -> Array:
        """4×4 pose of one body or frame (..., T, 4, 4) in the world."""
        return self._with_model("pose").pose(self.q, body, p=self.model_parameters)

    def deflection(self, body: str, node: str | int) -> Array:
        """How far a node of a flexible body is from its place at rest (..., T, 3), in the body's root axes, m."""
        if self.home is not PROCESSOR:
            return self._brought(self.on_host().deflection(body, node))
        model, p = self._with_model("deflection"), self.model_parameters
        at_rest = model.frame(body, node).node  # says what is wrong with a name
        root, there = model.pose(self.q, body, p=p), model.pose(self.q, body, node=node, p=p)
        apart = there[..., :3, 3] - root[..., :3, 3]
        seen: Array = np.einsum("...ji,...j->...i", root[..., :3, :3], apart)
        return seen - model.body(body).flexible.nodes[at_rest].position  # type: ignore[union-attr]  # it has nodes

    @property
    def model_parameters(self) -> Array | None:
        """The model's own run-time parameters (..., 1, np), as its functions take them for all samples, or None."""
        size = len(self._with_model("p").nominal_parameters)
        return None if self.p is None or not size else self.p[..., None, :size]

    def _brought(self, array: Array) -> Array:
        """An array of the host where the others are."""
        return cast(Array, self.home.handed(self.home.brought(array)))

    def _with_model(self, what: str) -> Model:
        if self.model is None:
            raise LinkwiseError(
                f"{what} needs the model, which a file does not hold", do="give it to Trajectory.load(path, model=…)"
            )
        return self.model

    # Shapes.
    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The leading axes: () for one state."""
        return self.q.shape[:-2]

    def __len__(self) -> int:
        """Samples."""
        return len(self.t)

    def __getitem__(self, index: Any) -> Trajectory:
        """One state of a batch, or some of them; a single one is cut where it ends."""
        if not self.batch_shape:
            raise InputError("this trajectory is not a batch", got=f"index {index!r}", do="take samples from traj.q")
        q = self.q[index]
        if q.ndim < 2 or q.shape[-2] != len(self.t):
            raise InputError("not an index of the batch", got=repr(index), allowed=f"axes {self.batch_shape}")
        keep = slice(None)
        if q.ndim == 2:
            ends = np.flatnonzero(np.isfinite(self.home.fetched(q)).all(axis=1))
            keep = slice(0, int(ends[-1]) + 1 if len(ends) else 0)
        values = {
            name: value[index][..., keep] if name == "energy" else value[index][..., keep, :]
            for name, value in self.values().items()
        }

        def pick(value: Any) -> Any:
            return value[index] if isinstance(value, np.ndarray) else value

        chosen = np.arange(math.prod(self.batch_shape)).reshape(self.batch_shape)[index]
        places = {tuple(int(i) for i in np.unravel_index(k, self.batch_shape)) for k in np.ravel(chosen)}
        status = pick(self.status)
        made = self.with_samples(self.t[keep], values.pop("q"), values.pop("v"), values.pop("x"), values)
        made.p = None if self.p is None else self.p[index]
        made.jumps = None if self.jumps is None else self.jumps.of(chosen)
        made.events = [event for event in self.events if event.state in places]
        made.status = str(status) if np.ndim(status) == 0 else status
        made.steps, made.rejected = pick(self.steps), pick(self.rejected)
        made.reasons = {
            place: self.reasons[old]
            for place, k in np.ndenumerate(chosen)
            if (old := tuple(int(i) for i in np.unravel_index(int(k), self.batch_shape))) in self.reasons
        }
        return made

    def with_samples(
        self,
        t: Array,
        q: Any,
        v: Any,
        x: Any,
        derived: Mapping[str, Array] | Observe,
        *,
        p: Any = None,
        home: Home | None = None,
    ) -> Trajectory:
        """The same motion with other samples; elsewhere, with p there, if a home is given."""
        return Trajectory(
            t,
            q,
            v,
            x,
            p=self.p if home is None else p,
            model=self.model,
            jumps=self.jumps,
            derived=derived,
            events=self.events,
            status=self.status,
            steps=self.steps,
            rejected=self.rejected,
            note=self.note,
            reasons=self.reasons,
            method=self.method,
            columns=self._columns,
            home=self.home if home is None else home,
        )

    def picked(self, k: Array, t: Array) -> Trajectory:
        """Some of the samples, by index, labelled with the times t; for arrays of the host."""

        def derived() -> dict[str, Array]:
            return {n: a[..., k] if n == "energy" else a[..., k, :] for n, a in self._values.items()}

        return self.with_samples(t, self.q[..., k, :], self.v[..., k, :], self.x[..., k, :], derived)

    def __repr__(self) -> str:
        span = f"{self.t[0]:g} … {self.t[-1]:g} s" if len(self.t) else "empty"
        batch = f", batch {self.batch_shape}" if self.batch_shape else ""
        state = self.status if isinstance(self.status, str) else ", ".join(sorted(set(np.ravel(self.status).tolist())))
        return f"<Trajectory: {len(self.t)} samples, {span}{batch}, {state}>"

    # Resampling.
    @property
    def end(self) -> float:
        """The last time at which the motion is known, s: that of the last sample, or of an event after it."""
        last = [] if self.jumps is None else [float(self.jumps.t.max(initial=-math.inf))]
        return max([float(self.t[-1]) if len(self.t) else -math.inf, *last])

    def values(self) -> dict[str, Array]:
        """Everything with a time axis but t, by name."""
        return {"q": self.q, "v": self.v, "x": self.x, **self._values}

    def at(self, t: ArrayLike) -> Trajectory:
        """The motion at other times (n), between the samples.

        Joints with q̇ = v follow the fifth-degree polynomial through q, v and v̇ of the neighbouring samples, quaternion
        joints a third-degree one in the chart around the sample before; v is of third degree. For full precision ask
        ``simulate`` for the times you need.

        The states before and after an event's action bound what is interpolated: nothing is drawn across a bounce. At
        the very time of the event the state is the one after. Where the samples are closed, so is what is between them.
        It is found on the host, wherever the arrays are.
        """
        if self.home is not PROCESSOR:
            return self.on_host().at(t).at_home(self.home)
        from linkwise.sim.resample import resampled

        times = np.atleast_1d(np.asarray(t, float))
        slack = 1e-9 * max(1.0, self.end - self.t[0] if len(self.t) else 0.0)
        if (
            not len(self.t)
            or not np.isfinite(times).all()
            or times.min(initial=np.inf) < self.t[0] - slack
            or times.max(initial=-np.inf) > self.end + slack
        ):
            raise InputError(
                "these times are outside the trajectory",
                got=f"{times.min():g} … {times.max():g} s" if len(times) else "no times",
                allowed=f"{self.t[0]:g} … {self.end:g} s" if len(self.t) else "none: it has no samples",
            )
        self._value("vdot")  # what is between samples follows from it
        return resampled(self, self._with_model("at"), times)

    # Tables and files.
    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """A name for each number of q, v, x, vdot, tau."""
        if self._columns is not None:
            return {name: list(values) for name, values in self._columns.items()}
        q = [f"{k}" for k in range(self.q.shape[-1])]
        v = [f"{k}" for k in range(self.v.shape[-1])]
        if self.model is not None:
            for joint in self.model.independent:
                for names, part in ((q, joint.q_slice), (v, joint.v_slice)):
                    size = part.stop - part.start
                    names[part] = [joint.name] if size == 1 else [f"{joint.name}[{k}]" for k in range(size)]
        closures = [] if self.model is None else [closure.name for closure in self.model.closures]
        x = [f"{k}" for k in range(self.x.shape[-1])]
        return {"q": q, "v": v, "x": x, "vdot": v, "tau": v, "active": closures}

    def _arrays(self) -> dict[str, Array]:
        """Everything with a time axis but t, vectors last."""
        found = {"q": self.q, "v": self.v, "x": self.x}
        return found | {name: self._values[name] for name in _DERIVED if name in self._values}

    @_on_the_host
    def save(self, path: str | Path) -> Path:
        """Write to ``.npz`` or ``.csv``; both read back the same numbers.

        All arrays but poses are kept, in npz also forces on bodies, both sides of events, status, method and note. The
        model and the names of events are not.
        """
        target = Path(path)
        if target.suffix == ".npz":
            about = {"format": _FORMAT, "method": self.method, "note": self.note, "columns": self.columns}
            arrays: dict[str, Any] = {"t": self.t, **self._arrays(), "status": np.asarray(self.status, dtype=np.str_)}
            if "f_ext" in self._values:
                arrays["f_ext"] = self._values["f_ext"]
            if self.p is not None:
                arrays["p"] = self.p
            if self.jumps is not None:
                arrays |= self.jumps.arrays()
            np.savez_compressed(target, about=np.array(json.dumps(about)), **arrays)
        elif target.suffix == ".csv":
            self._save_csv(target)
        else:
            raise InputError("no such file type", got=repr(target.suffix), allowed=".npz or .csv")
        return target

    def _save_csv(self, target: Path) -> None:
        arrays = self._arrays()
        columns = self.columns
        head = ["t"] if not self.batch_shape else [f"state {'x'.join(map(str, self.batch_shape))}", "t"]
        flat = []
        for name, array in arrays.items():
            if name == "energy":
                head.append("energy")
                array = array[..., None]
            else:
                head += [f"{name}:{column}" for column in columns[name]]
            flat.append(array.reshape(math.prod(self.batch_shape), len(self.t), array.shape[-1]))
        if self.p is not None and self.p.shape[-1]:  # the same in every row of a state
            head += [f"p:{k}" for k in range(self.p.shape[-1])]
            rows = self.p.reshape(math.prod(self.batch_shape), 1, -1)
            flat.append(np.broadcast_to(rows, (len(rows), len(self.t), rows.shape[-1])))
        with target.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(head)
            table = np.concatenate(flat, axis=-1)
            for state in range(table.shape[0]):
                for time, row in zip(self.t.tolist(), table[state].tolist(), strict=True):
                    numbers = [repr(float(x)) for x in (time, *row)]
                    writer.writerow([state, *numbers] if self.batch_shape else numbers)

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> Trajectory:
        """Read what :meth:`save` wrote. ``model`` is needed for poses and resampling only."""
        source = Path(path)
        if source.suffix == ".npz":
            try:
                with np.load(source, allow_pickle=False) as file:
                    about = json.loads(str(file["about"]))
                    arrays = {name: file[name] for name in file.files}
            except (OSError, KeyError, ValueError) as error:
                raise InputError("this file is not a trajectory", got=f"{source}: {error}") from error
            from linkwise.sim.jumps import Jumps

            status = arrays["status"]
            return cls(
                arrays["t"],
                arrays["q"],
                arrays["v"],
                arrays["x"],
                p=arrays.get("p"),
                model=model,
                jumps=Jumps.from_arrays(arrays),
                derived={name: arrays[name] for name in (*_DERIVED, "f_ext") if name in arrays},
                status=str(status) if status.ndim == 0 else status,
                note=about["note"],
                method=about["method"],
                columns=about["columns"],
            )
        if source.suffix == ".csv":
            return cls._load_csv(source, model)
        raise InputError("no such file type", got=repr(source.suffix), allowed=".npz or .csv")

    @classmethod
    def _load_csv(cls, source: Path, model: Model | None) -> Trajectory:
        with source.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        try:
            table = np.array(rows, float).reshape(len(rows), len(head))
            batch: tuple[int, ...] = ()
            if head[0].startswith("state "):
                batch = tuple(int(n) for n in head[0].removeprefix("state ").split("x"))
                head, table = head[1:], table[:, 1:]
            if head[0] != "t":
                raise ValueError(f"the first column is {head[0]!r}")
            table = table.reshape(*batch, -1, len(head))
        except (ValueError, IndexError) as error:
            raise InputError("this file is not a trajectory", got=f"{source}: {error}") from error
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
        return cls(t, arrays["q"], arrays["v"], arrays["x"], p=p, model=model, derived=derived, columns=columns)

    @_on_the_host
    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: a row for each time, columns as in a CSV file, ``q:joint1``, …, ``energy``.

        The index is ``time``; of a batch ``(batch0, …, time)``. Needs the package pandas.
        """
        try:
            import pandas
        except ImportError as error:
            raise LinkwiseError("to_pandas needs the package pandas", do="pip install pandas") from error
        names = [f"batch{k}" for k in range(len(self.batch_shape))]
        ranges = [range(n) for n in self.batch_shape]
        index = pandas.MultiIndex.from_product([*ranges, self.t], names=[*names, "time"]) if names else self.t
        columns: dict[str, Array] = {}
        for name, array in self._arrays().items():
            flat = array.reshape(len(index), -1)
            labels = ["energy"] if name == "energy" else [f"{name}:{column}" for column in self.columns[name]]
            columns.update(zip(labels, flat.T, strict=True))
        return pandas.DataFrame(columns, index=index if names else pandas.Index(self.t, name="time"))

    @_on_the_host
    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with the dimensions time, joint coordinates and freedoms (needs the package xarray)."""
        try:
            import xarray
        except ImportError as error:
            raise LinkwiseError("to_xarray needs the package xarray", do="pip install xarray") from error
        axes = [f"batch{k}" for k in range(len(self.batch_shape))]
        ends = {"q": "coordinate", "x": "state", "active": "closure"}
        data = {
            name: ((*axes, "time") if name == "energy" else (*axes, "time", ends.get(name, "freedom")), array)
            for name, array in self._arrays().items()
        }
        names = {"coordinate": self.columns["q"], "freedom": self.columns["v"], "state": self.columns["x"]}
        if "active" in data:
            names["closure"] = self.columns["active"]
        return xarray.Dataset(data, coords={"time": self.t, **names}, attrs={"method": self.method})

    @_on_the_host
    def plot(
        self,
        what: Sequence[str] = ("q", "v", "tau", "energy"),
        joints: Sequence[str] | None = None,
        nodes: Sequence[tuple[str, str | int]] | None = None,
    ) -> Any:
        """A matplotlib figure, one panel for each quantity; the states of a batch are drawn over each other.

        Args:
            what: some of q, v, x, vdot, tau, energy, closure_error (the largest residual), active, modes (the modal
                coordinates of flexible bodies) and deflection (of nodes, in the axes of their body's root).
            joints: names of columns to draw, e.g. joints; all if not given.
            nodes: (body, node) pairs for ``deflection``; the last node of each flexible body if not given.
        """
        from linkwise.sim.plotting import plot

        return plot(self, what, joints, nodes)

    # Seen. The drawing lies above this layer and is imported by name where it is used.
    @_on_the_host
    def view(
        self,
        *others: Trajectory,
        sensors: Mapping[str, ArrayLike] | None = None,
        beside: float | None = None,
        port: int | None = None,
        open: bool | None = None,
    ) -> Any:
        """Play the motion in the browser, on a page that this program serves to this machine alone.

        Play, pause, scrub, speed, loop; plots of q, v, tau, energy and sensors with a line at the time shown; the tree
        of bodies; forces, frames, closures. The states of a batch are ghosts, the first of them in full. Flexible
        bodies deform, more than they do if asked to.

        >>> page = traj.view()                                      # doctest: +SKIP
        >>> page = traj.view(other, beside=0.0)                     # doctest: +SKIP
        >>> page = traj.view(sensors={"imu": lw.IMU("hand").read(traj)})   # doctest: +SKIP

        Args:
            others: further motions of single states, to be shown beside this one.
            sensors: name to readings (T, n) at this motion's samples.
            beside: distance between motions, m; 0 shows them in one place, in different colours.
            port: to begin with (8080); the next free one where it is in use, 0 for any.
            open: whether to open the browser; None: where there is a terminal and a screen.

        Returns:
            The page: ``url``, ``play()``, ``pause()``, ``seek(t)``, ``close()``, ``wait()``; it ends with the program.
        """
        motions = (self, *(other.on_host() for other in others))
        page = import_module("linkwise.viz.player").Player(motions, sensors, beside, port, open)
        page.announce()
        return page

    @_on_the_host
    def save_html(
        self, path: str | Path, *, fps: float = 30.0, most_faces: int | None = None, dark: bool = False
    ) -> Path:
        """Write one file that plays the motion in any browser, without a network and without this program.

        It takes 0.8 MB for the page, the meshes, and some hundred bytes for each body and picture.

        Args:
            path: ``.html``.
            fps: pictures for each second.
            most_faces: triangles of the model, surfaces being simplified to that; as they are if None.
            dark: on a dark page.
        """
        save: Any = import_module("linkwise.viz.recording").save_html
        written: Path = save(self, path, fps=fps, most_faces=most_faces, dark=dark)
        return written

    @_on_the_host
    def embed(self, height: int = 420, *, fps: float = 30.0, most_faces: int | None = 20_000) -> Any:
        """The player as a part of another page, with nothing outside it: a notebook shows it, a report includes it.

        Args:
            height: in pixels.
            fps: pictures for each second.
            most_faces: triangles of the model, surfaces being simplified to that; as they are if None.

        Returns:
            An object whose ``html`` is an ``<iframe>`` element, about 1 MB.
        """
        return import_module("linkwise.viz.inline").embedded_motion(self, height, fps, most_faces)

    @_on_the_host
    def save_video(
        self,
        path: str | Path,
        *,
        fps: float = 25.0,
        speed: float = 1.0,
        size: tuple[int, int] = (640, 480),
        camera: Any = None,
        progress: bool | Callable[[float], None] | None = None,
    ) -> Path:
        """Write a video, or an animated GIF.

        Drawn without a browser or a graphics card: flat shading, four samples for each pixel, a floor, no shadows;
        surfaces are simplified to some 30 000 triangles. A batch shows its first 60 states.

        Args:
            path: ``.mp4``, ``.webm``, ``.mkv`` or ``.mov``, which need the program ffmpeg; ``.gif`` needs nothing.
            fps: pictures for each second.
            speed: seconds of the motion for each second of the video.
            size: width and height, even numbers of pixels.
            camera: a :class:`linkwise.viz.raster.Camera`; one that sees the whole motion if not given.
            progress: as for :func:`linkwise.simulate`.
        """
        save: Any = import_module("linkwise.viz.video").save_video
        written: Path = save(self, path, fps=fps, speed=speed, size=size, camera=camera, progress=progress)
        return written

    @_on_the_host
    def _repr_html_(self) -> str | None:
        """In a notebook: a picture of the motion and its facts; None where it cannot be drawn."""
        html: str | None = import_module("linkwise.viz.inline").motion_picture(self)
        return html
