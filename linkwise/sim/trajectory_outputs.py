"""Outputs of a motion for others: files, tables, figures, pages, films."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import output_path
from linkwise.errors import InputError, UnknownNameError, no_attribute, require_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from xarray import Dataset

    from linkwise.sim.trajectory import Trajectory
    from linkwise.viz.markers import Markers
    from linkwise.viz.raster import Camera


class Outputs:
    """The ways out of a trajectory, as methods. What writes, draws or shows has its arrays copied to the host first."""

    if TYPE_CHECKING:

        def on_host(self) -> Trajectory:
            """The same motion with all its arrays in NumPy."""
    else:

        def __getattr__(self, name: str) -> Any:
            written = name.removeprefix("to_") in ("csv", "glb", "mat", "mcap", "npz", "usd")
            place = f'motion.save("name.{name.removeprefix("to_")}")' if written else None
            raise no_attribute(f"{type(self).__name__!r} object", name, place)

    # Files and tables.
    def save(self, path: str | Path) -> Path:
        """Write to a file, as its ending says.

        ``.npz``, ``.csv`` and ``.mat`` (MATLAB, Octave) are read back with the same numbers. All arrays but poses are
        kept, in npz and mat also forces on bodies, events, status, counts of steps, method and note. The model is not.
        A CSV file cannot hold events: a warning says so where there are any.

        Of one motion also, for other programs: ``.mcap`` (ROS 2 messages of joints and transforms: Foxglove,
        PlotJuggler; extra ``ros``), ``.glb`` (glTF with animation) and ``.usd``, ``.usda``, ``.usdc`` (Omniverse,
        Blender; extra ``usd``).
        """
        from linkwise.sim.trajectory_files import save

        return save(self.on_host(), output_path(path))

    def to_pandas(self) -> DataFrame:
        """A ``pandas.DataFrame``: a row for each time, columns as in a CSV file, ``q:joint1``, …, ``energy``.

        The index is ``time``; of a batch ``(batch0, …, time)``. Needs the package pandas.
        """
        from linkwise.sim.trajectory_files import as_pandas

        return as_pandas(self.on_host())

    def to_xarray(self) -> Dataset:
        """An ``xarray.Dataset`` with the dimensions time, joint coordinates and freedoms (needs the package xarray)."""
        from linkwise.sim.trajectory_files import as_xarray

        return as_xarray(self.on_host())

    def plot(
        self,
        what: Sequence[str] = ("q", "v", "tau", "energy"),
        joints: Sequence[str] | None = None,
        nodes: Sequence[tuple[str, str | int]] | None = None,
    ) -> Figure:
        """A matplotlib figure, one panel for each quantity; the states of a batch are drawn over each other.

        Args:
            what: some of q, v, x, vdot, tau, energy, contact (what presses on each body that is touched), closure_error
                (the largest residual), active, modes (the modal coordinates of flexible bodies) and deflection (of
                nodes, in the axes of their body's root).
            joints: names of columns to draw, e.g. joints; all if not given.
            nodes: (body, node) pairs for ``deflection``; the last node of each flexible body if not given.
        """
        return plot(self.on_host(), what, joints, nodes)

    # Seen. The drawing lies above this layer and is imported by name where it is used.
    def view(
        self,
        *others: Trajectory,
        sensors: Mapping[str, ArrayLike] | None = None,
        beside: float | None = None,
        follow: bool | str | None = None,
        markers: Sequence[Markers] = (),
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
            follow: what the camera follows of this motion: the name of a body, ``"mass centre"`` or True, ``"nothing"``
                or False; None: the mass centre of a model that can go anywhere.
            markers: arrows, discs and cones at this motion's samples: :class:`linkwise.viz.markers.Markers`.
            port: to begin with (8080); the next free one where it is in use, 0 for any.
            open: whether to open the browser; None: where there is a terminal and a screen.

        Returns:
            The page: ``url``, ``play()``, ``pause()``, ``seek(t)``, ``close()``, ``wait()``; it ends with the program.
        """
        from linkwise.viz.player import Player

        motions = tuple(motion.on_host() for motion in (self, *others))
        page = Player(motions, sensors, beside, follow, markers, port, open)
        page.announce()
        return page

    def save_html(
        self,
        path: str | Path,
        *,
        fps: float = 30.0,
        most_faces: int | None = None,
        dark: bool = False,
        follow: bool | str | None = None,
        markers: Sequence[Markers] = (),
        show: Sequence[str] | None = None,
        progress: bool | Callable[[float], None] | None = None,
    ) -> Path:
        """Write one file that plays the motion in any browser, without a network and without this program.

        It takes 0.8 MB for the page, the meshes, and some hundred bytes for each body and picture.

        Args:
            path: ``.html``.
            fps: pictures for each second.
            most_faces: triangles of the model, surfaces being simplified to that; as they are if None.
            dark: on a dark page.
            follow: what the camera follows, as for :meth:`view`.
            markers: arrows, discs and cones, as for :meth:`view`.
            show: titles of what is shown besides the bodies, as the viewer has them: "contact forces", "friction
                cones", "mass centres", …. Bodies are see-through where some of it lies inside them. If not given:
                where bodies touch, contact points and forces, and bodies as they are.
            progress: as for :func:`linkwise.simulate`.
        """
        from linkwise.viz.recording import save_html

        return save_html(
            self.on_host(),
            path,
            fps=fps,
            most_faces=most_faces,
            dark=dark,
            follow=follow,
            markers=markers,
            show=show,
            progress=progress,
        )

    def embed(
        self,
        height: int = 420,
        *,
        fps: float = 30.0,
        most_faces: int | None = 20_000,
        follow: bool | str | None = None,
    ) -> Any:
        """The player as a part of another page, with nothing outside it: a notebook shows it, a report includes it.

        Args:
            height: in pixels.
            fps: pictures for each second.
            most_faces: triangles of the model, surfaces being simplified to that; as they are if None.
            follow: what the camera follows, as for :meth:`view`.

        Returns:
            An object whose ``html`` is an ``<iframe>`` element, about 1 MB.
        """
        from linkwise.viz.recording import embedded_motion

        return embedded_motion(self.on_host(), height, fps=fps, most_faces=most_faces, follow=follow)

    def save_video(
        self,
        path: str | Path,
        *,
        fps: float = 25.0,
        speed: float = 1.0,
        size: tuple[int, int] = (640, 480),
        camera: Camera | None = None,
        follow: bool | str | None = None,
        markers: Sequence[Markers] = (),
        show: Sequence[str] = (),
        progress: bool | Callable[[float], None] | None = None,
    ) -> Path:
        """Write a video, or an animated GIF.

        Drawn without a browser or a graphics card: flat shading, four samples for each pixel, a floor with shadows;
        surfaces are simplified to some 30 000 triangles. A batch shows its first 60 states.

        Args:
            path: ``.mp4``, ``.webm``, ``.mkv`` or ``.mov``, which need the program ffmpeg; ``.gif`` needs nothing.
            fps: pictures for each second.
            speed: seconds of the motion for each second of the video.
            size: width and height, even numbers of pixels.
            camera: a :class:`linkwise.viz.raster.Camera`; one that sees all of it, or goes along, if not given.
            follow: what the camera follows, as for :meth:`view`; it keeps its distance.
            markers: arrows, discs and cones, as for :meth:`view`.
            show: of contact: "contact points", "contact forces", "friction cones"; bodies are then see-through.
            progress: as for :func:`linkwise.simulate`.
        """
        from linkwise.viz.video import save_video

        seen = self.on_host()
        return save_video(
            seen,
            path,
            fps=fps,
            speed=speed,
            size=size,
            camera=camera,
            follow=follow,
            markers=markers,
            show=show,
            progress=progress,
        )

    def _repr_html_(self) -> str | None:
        """In a notebook: a picture of the motion and its facts; None where it cannot be drawn."""
        from linkwise.viz.recording import motion_picture

        return motion_picture(self.on_host())


Curves = list[tuple[str, Array]]
_UNITS = {
    "q": "q [rad, m]",
    "v": "v [rad/s, m/s]",
    "vdot": "v̇ [rad/s², m/s²]",
    "tau": "τ [N m, N]",
    "x": "x",
    "active": "active",
    "energy": "energy [J]",
    "contact": "pressing [N]",
    "closure_error": "closure error [m, 1]",
    "modes": "η",
    "deflection": "deflection [m]",
}


_BY_THE_WHOLE = ("energy", "contact", "closure_error", "modes", "deflection")
"""Quantities that are not of single joints."""


def _is_of(column: str, joint: str) -> bool:
    """Whether a column is that of a joint, or one of several of it."""
    return column == joint or column.startswith(f"{joint}[")


def plot(
    run: Trajectory,
    what: Sequence[str],
    joints: Sequence[str] | None = None,
    nodes: Sequence[tuple[str, str | int]] | None = None,
) -> Figure:
    """A matplotlib figure with a panel for each quantity; as :meth:`Trajectory.plot` says."""
    what = (what,) if isinstance(what, str) else tuple(what)
    for name in what:
        if name not in _UNITS:
            raise UnknownNameError("quantity to draw", name, list(_UNITS))
    by_joint = [name for name in what if name not in _BY_THE_WHOLE]
    if joints is not None and by_joint:
        known = list(dict.fromkeys(column for name in by_joint for column in run.columns[name]))
        for joint in [joints] if isinstance(joints, str) else joints:
            if not any(_is_of(column, joint) for column in known):
                raise UnknownNameError("joint to draw", joint, known)
    require_extra("matplotlib", "viz")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        len(what), 1, sharex=True, squeeze=False, figsize=(8.0, 2.2 * len(what) + 0.6), layout="constrained"
    )
    for axis, name in zip(axes[:, 0], what, strict=True):
        curves = _curves(run, name, joints, nodes)
        for n, (label, values) in enumerate(curves):
            lines = axis.plot(run.t, values.reshape(-1, len(run.t)).T, color=f"C{n % 10}", lw=1.0)
            lines[0].set_label(label)
        axis.set_ylabel(_UNITS[name])
        if 1 < len(curves) <= 12:
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small", frameon=False)
        axis.grid(alpha=0.3)
    axes[-1, 0].set_xlabel("t [s]")
    return figure


def _curves(
    run: Trajectory, name: str, joints: Sequence[str] | None, nodes: Sequence[tuple[str, str | int]] | None
) -> Curves:
    """Labels and values (..., T) of one panel."""
    if name == "energy":
        return [(name, run.energy)]
    if name == "contact":
        touched = run.contacts
        pressed = np.unique(touched._sides[touched.presses]).tolist()
        names = [run._with_model(name).bodies[k].name for k in pressed if k >= 0]
        return [(body, touched.pressing(body)) for body in names]
    if name == "closure_error":
        return [(name, np.abs(run.closure_error).max(axis=-1, initial=0.0))]
    if name == "modes":
        bodies = _flexible(run, name)
        return [(f"{b.name} {k + 1}", run.q[..., b.q_slice.start + k]) for b in bodies for k in range(b.modes)]
    if name == "deflection":
        return _deflections(run, nodes)
    columns = run.columns[name]
    chosen = [joints] if isinstance(joints, str) else joints
    shown = [k for k, column in enumerate(columns) if chosen is None or any(_is_of(column, j) for j in chosen)]
    if not shown and len(columns):
        raise InputError(f"no column of {name} has such a name", got=str(chosen), allowed=str(columns))
    return [(columns[k], getattr(run, name)[..., k]) for k in shown]


def _deflections(run: Trajectory, nodes: Sequence[tuple[str, str | int]] | None) -> Curves:
    """Each direction in which a node moves at all."""
    if nodes is None:
        nodes = [(body.name, body.flexible.nodes[-1].key) for body in _flexible(run, "deflection")]
    curves: Curves = []
    for body, node in nodes:
        moved = run.deflection(body, node)
        directions = [k for k in range(3) if np.abs(moved[..., k]).any()]
        curves += [(f"{body}:{node} {'xyz'[k]}", moved[..., k]) for k in directions]
    return curves


def _flexible(run: Trajectory, what: str) -> list[Any]:
    found = [body for body in run._with_model(what).bodies if body.modes]
    if not found:
        raise InputError(f"there is no {what} to draw", got="a model without flexible bodies")
    return found
