"""Outputs of a motion for others: files, tables, figures, pages, films."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from linkwise.sim.trajectory import Trajectory


class Outputs:
    """The ways out of a trajectory, as methods. What writes, draws or shows has its arrays copied to the host first."""

    if TYPE_CHECKING:

        def on_host(self) -> Trajectory:
            """The same motion with all its arrays in NumPy."""

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

        return save(self.on_host(), Path(path))

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: a row for each time, columns as in a CSV file, ``q:joint1``, …, ``energy``.

        The index is ``time``; of a batch ``(batch0, …, time)``. Needs the package pandas.
        """
        from linkwise.sim.trajectory_tables import as_pandas

        return as_pandas(self.on_host())

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with the dimensions time, joint coordinates and freedoms (needs the package xarray)."""
        from linkwise.sim.trajectory_tables import as_xarray

        return as_xarray(self.on_host())

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

        return plot(self.on_host(), what, joints, nodes)

    # Seen. The drawing lies above this layer and is imported by name where it is used.
    def view(
        self,
        *others: Trajectory,
        sensors: Mapping[str, ArrayLike] | None = None,
        beside: float | None = None,
        follow: bool | str | None = None,
        markers: Sequence[Any] = (),
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
        motions = tuple(motion.on_host() for motion in (self, *others))
        page = import_module("linkwise.viz.player").Player(motions, sensors, beside, follow, markers, port, open)
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
        markers: Sequence[Any] = (),
        show: Sequence[str] | None = None,
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
                cones", "mass centres", …. If not given: where bodies touch, contact points and forces.
        """
        save: Any = import_module("linkwise.viz.recording").save_html
        choices = {"dark": dark, "follow": follow, "markers": markers, "show": show}
        written: Path = save(self.on_host(), path, fps=fps, most_faces=most_faces, **choices)
        return written

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
        return import_module("linkwise.viz.inline").embedded_motion(
            self.on_host(), height, fps=fps, most_faces=most_faces, follow=follow
        )

    def save_video(
        self,
        path: str | Path,
        *,
        fps: float = 25.0,
        speed: float = 1.0,
        size: tuple[int, int] = (640, 480),
        camera: Any = None,
        follow: bool | str | None = None,
        markers: Sequence[Any] = (),
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
            progress: as for :func:`linkwise.simulate`.
        """
        save: Any = import_module("linkwise.viz.video").save_video
        choices = {"camera": camera, "follow": follow, "markers": markers, "progress": progress}
        written: Path = save(self.on_host(), path, fps=fps, speed=speed, size=size, **choices)
        return written

    def _repr_html_(self) -> str | None:
        """In a notebook: a picture of the motion and its facts; None where it cannot be drawn."""
        html: str | None = import_module("linkwise.viz.inline").motion_picture(self.on_host())
        return html
