"""What a simulation returns: states over time, and everything that follows from them."""

from __future__ import annotations

import functools
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
        home: where the arrays are: the host, or a GPU.
    """

    home: Home = PROCESSOR

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

    def _at_home(self, home: Home) -> Trajectory:
        """The same motion, now on the host, with its arrays where a run keeps them."""
        return self if home is PROCESSOR else self._moved(lambda array: home.handed(home.brought(array)), home)

    def _moved(self, move: Callable[[Any], Any], home: Home) -> Trajectory:
        def moved(array: Any) -> Any:
            with (home if self.home is PROCESSOR else self.home).entered():
                return move(array)

        def derived() -> dict[str, Array]:
            return {name: moved(values) for name, values in self._values.items()}

        p = None if self.p is None else moved(self.p)
        return self.with_samples(self.t, moved(self.q), moved(self.v), moved(self.x), derived, p=p, home=home)

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
        with self.home.entered():
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
        from linkwise.sim.trajectory_states import chosen_states

        return chosen_states(self, index)

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
            return self.on_host().at(t)._at_home(self.home)
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
        from linkwise.sim.trajectory_tables import column_names

        if self._columns is not None:
            return {name: list(values) for name, values in self._columns.items()}
        return column_names(self)

    @_on_the_host
    def save(self, path: str | Path) -> Path:
        """Write to ``.npz`` or ``.csv``; both read back the same numbers.

        All arrays but poses are kept, in npz also forces on bodies, both sides of events, status, method and note. The
        model and the names of events are not.
        """
        from linkwise.sim.trajectory_files import save

        return save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, model: Model | None = None) -> Trajectory:
        """Read what :meth:`save` wrote. ``model`` is needed for poses and resampling only."""
        from linkwise.sim.trajectory_files import read

        return cls(**read(Path(path)), model=model)

    @_on_the_host
    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: a row for each time, columns as in a CSV file, ``q:joint1``, …, ``energy``.

        The index is ``time``; of a batch ``(batch0, …, time)``. Needs the package pandas.
        """
        from linkwise.sim.trajectory_tables import as_pandas

        return as_pandas(self)

    @_on_the_host
    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with the dimensions time, joint coordinates and freedoms (needs the package xarray)."""
        from linkwise.sim.trajectory_tables import as_xarray

        return as_xarray(self)

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
