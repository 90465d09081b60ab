"""``trajectory.view()``: motions in the browser, to be played, with their numbers beside them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.sim.touched import contacts_of
from linkwise.sim.trajectory import Trajectory
from linkwise.viz.figure import Ghosts, ModelFigure, furnish
from linkwise.viz.looks import looks_of
from linkwise.viz.markers import MarkerNodes, Markers, Touches
from linkwise.viz.overlays import ShownState
from linkwise.viz.page import FRAME, LINES, Page
from linkwise.viz.panels import BodyTree, SavePanel, ShowPanel
from linkwise.viz.solids import Colour
from linkwise.viz.stage import NOTHING, WORLD, followed

if TYPE_CHECKING:
    import viser

MOST_GHOSTS = 5000
_GLANCES = 12
"""Instants of a motion at which it is looked where it is, for the camera."""
_MOST_GLANCED = 170
"""States of a batch that are looked at then."""
_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")
_MOST_POINTS = 400
"""Samples in a plot: more than the panel has pixels."""
_MOST_LINES = 12
TINTS: tuple[Colour | None, ...] = (None, (228, 120, 60), (70, 150, 90), (150, 90, 190))
"""Tints of several motions shown together: the first has its own colours."""


def checked(trajectory: Trajectory) -> Trajectory:
    """A trajectory that can be shown: with its model, and with samples."""
    trajectory._with_model("view")
    if len(trajectory.t) == 0:
        raise InputError("this trajectory has no samples", got="0 samples", do="simulate for longer")
    return trajectory


def sampled(trajectory: Trajectory, fps: float, speed: float = 1.0) -> Trajectory:
    """The motion at evenly spaced times for pictures, between the samples where there are fewer."""
    start, end = float(trajectory.t[0]), float(trajectory.t[-1])
    count = max(2, round((end - start) * fps / speed) + 1) if end > start else 1
    times = np.linspace(start, end, count)
    if "vdot" in trajectory._values and not trajectory.batch_shape and trajectory.jumps is None:
        return trajectory.at(times) if len(trajectory.t) > 1 else trajectory.picked(np.zeros(count, int), times)
    before = np.clip(np.searchsorted(trajectory.t, times + 1e-12) - 1, 0, len(trajectory.t) - 1)
    found = trajectory.picked(before, times)
    if trajectory.jumps is not None or len(trajectory.t) < 2:
        return found
    return found.with_samples(times, _straight(trajectory, before, times), found.v, found.x, lambda: found._values)


def _straight(trajectory: Trajectory, k: Array, t: Array) -> Array:
    """q (..., n, nq) at times (n), each on the straight way from its sample k to the next: as far as pictures need."""
    model = trajectory._with_model("view")
    following = np.minimum(k + 1, len(trajectory.t) - 1)
    length = trajectory.t[following] - trajectory.t[k]
    share = np.clip((t - trajectory.t[k]) / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
    q = np.asarray(trajectory.q[..., k, :], float)
    way = model.difference(q, np.asarray(trajectory.q[..., following, :], float))
    return np.asarray(model.integrate(q, share[:, None] * way))


class Player(Page):
    """The page of one or several motions; see :meth:`linkwise.Trajectory.view`.

    Args:
        motions: one trajectory, of one state or a batch, or several of single states.
        sensors: name to readings (T, n) at the samples of the first motion, to be plotted too.
        beside: how far apart several motions are, m; 0 for all in one place. None: as wide as they are.
        follow: what the camera follows of the first motion, as for :func:`linkwise.view`.
        markers: arrows, discs and cones beside the bodies of the first motion.
        port: see :func:`linkwise.viz.page.start_server`.
        open: whether to open the browser.
    """

    def __init__(
        self,
        motions: Sequence[Trajectory],
        sensors: Mapping[str, ArrayLike] | None = None,
        beside: float | None = None,
        follow: bool | str | None = None,
        markers: Sequence[Markers] = (),
        port: int | None = None,
        open: bool | None = None,
    ) -> None:
        self.motions = [checked(motion) for motion in motions]
        if len(self.motions) > 1 and any(motion.batch_shape for motion in self.motions):
            raise InputError(
                "a batch is shown alone", got=f"{len(self.motions)} trajectories", do="show traj[0] beside"
            )
        models = [motion._with_model("view") for motion in self.motions]
        target = followed(models[0], follow)
        fitting = [each.checked(len(self.motions[0].t)) for each in markers]
        looks = [looks_of(model) for model in models]
        super().__init__(" | ".join(dict.fromkeys(model.name for model in models)), port, open)
        self.target = target
        first = self.motions[0]
        self.t = float(first.t[0])
        self.start = min(float(motion.t[0]) for motion in self.motions)
        self.end = max(float(motion.t[-1]) for motion in self.motions)
        self.playing = False
        self._last = self._marked = 0.0
        batch = first.batch_shape
        self.leaders = [motion[(0,) * len(batch)] if batch else motion for motion in self.motions]
        self._contacts = [contacts_of(leader) for leader in self.leaders]
        gap = beside if beside is not None else (1.6 * max(look.size for look in looks) if len(models) > 1 else 0.0)
        self.figures = [
            ModelFigure(
                self.server.scene, model, look, f"{WORLD}/model{k or ''}", (0.0, k * gap, 0.0),
                tint=TINTS[k % len(TINTS)] if gap == 0.0 else None, opacity=0.6 if k and gap == 0.0 else 1.0,
            )
            for k, (model, look) in enumerate(zip(models, looks, strict=True))
        ]  # fmt: skip
        self.ghosts: Ghosts | None = None
        if batch:
            count = min(int(np.prod(batch)), MOST_GHOSTS)
            self.ghosts = Ghosts(self.server.scene, models[0], looks[0], count)
        self.markers = [MarkerNodes(self.server.scene, each, looks[0].size) for each in fitting]
        self._show()
        self._furnish()
        self._controls()
        tabs = self.server.gui.add_tab_group()
        with tabs.add_tab("Plots"):
            self._plots(sensors or {})
        with tabs.add_tab("Bodies"):
            self.tree = BodyTree(self, self.figures[0], lambda _: self.tree.update(self.moments()[0]))
        with tabs.add_tab("Show"):
            self.shown = ShowPanel(self, self.figures, self.moments)
            for marks in self.markers:
                self.shown.add_switch(marks.markers.name, partial(self._switch, marks))
        with tabs.add_tab("Save"):
            SavePanel(self, models[0].name, self._document)

    # Times and moments.
    def index(self, motion: Trajectory) -> int:
        """The sample at or before the time shown."""
        return int(np.clip(np.searchsorted(motion.t, self.t + 1e-9, side="right") - 1, 0, len(motion.t) - 1))

    def moments(self) -> list[ShownState]:
        """State of each motion at the time shown."""
        found = []
        for motion, contacts in zip(self.leaders, self._contacts, strict=True):
            k = self.index(motion)
            tau = motion._values.get("tau")
            outside = motion.f_ext
            p = None if motion.model_parameters is None else motion.model_parameters[0]
            found.append(
                ShownState(
                    float(motion.t[k]),
                    self._between(motion, k),
                    motion.v[k],
                    None if tau is None else tau[k],
                    None if outside is None else outside[k],
                    p,
                    None if contacts is None else Touches.of(contacts, k),
                )
            )
        return found

    def _between(self, motion: Trajectory, k: int) -> Array:
        """q at the time shown (..., nq), on the way from one sample to the next."""
        if abs(self.t - motion.t[k]) < 1e-9:
            return np.asarray(motion.q[..., k, :], float)
        return _straight(motion, np.array([k]), np.array([self.t]))[..., 0, :]

    def _show(self) -> None:
        for figure, moment in zip(self.figures, self.moments(), strict=True):
            if np.isfinite(moment.q).all():
                figure.show(moment.q, p=moment.p)
        for marks in self.markers:
            marks.show(self.index(self.motions[0]))
        if self.ghosts is not None:
            motion = self.motions[0]
            q = self._between(motion, self.index(motion))
            q = q.reshape(-1, q.shape[-1])[: self.ghosts.count]
            p = motion.model_parameters
            self.ghosts.show(q, None if p is None else p.reshape(-1, p.shape[-1])[: self.ghosts.count])

    def _furnish(self) -> None:
        """A floor, and a camera that sees where the motions go."""
        ways, middle = [], None
        for figure, motion in zip(self.figures, self.motions, strict=True):
            times = np.linspace(0, len(motion.t) - 1, _GLANCES).astype(int)
            q = np.moveaxis(np.asarray(motion.q[..., times, :], float), -2, 0).reshape(
                len(times), -1, motion.q.shape[-1]
            )
            q = q[:, :_MOST_GLANCED]
            poses = figure.model.poses(np.where(np.isfinite(q).all(axis=-1, keepdims=True), q, figure.model.neutral()))
            ways.append(figure.looks.corners(poses).reshape(len(times), -1, 3) + figure.offset)
            if self.target is not None and middle is None:
                middle = self.target.place(poses[:, 0]) + figure.offset
        furnish(self.stage, self.figures, np.concatenate(ways, axis=1), middle)

    # Controls.
    def _controls(self) -> None:
        gui = self.server.gui
        self.button = gui.add_button("Play", icon="player-play")
        length = max(self.end - self.start, 1e-9)
        self.slider = gui.add_slider("time [s]", self.start, self.start + length, length / 2000.0, self.t)
        self.speed = gui.add_dropdown("speed", _SPEEDS, initial_value="1")
        self.loop = gui.add_checkbox("loop", True)

        async def scrubbed(event: viser.GuiEvent[viser.GuiSliderHandle[float]]) -> None:
            if event.client is not None:
                value = float(self.slider.value)
                self.worker.post("scrub", lambda: self._scrub(value))

        self.connect(self.button.on_click, "play", self.toggle)
        self.slider.on_update(scrubbed)

    def play(self) -> None:
        """Begin to play, from the start if it is at the end."""
        self.worker.call(lambda: None if self.playing else self.toggle())

    def pause(self) -> None:
        """Stay where it is."""
        self.worker.call(lambda: self.toggle() if self.playing else None)

    def seek(self, t: float) -> None:
        """Show the motion at a time, s, and pause."""
        self.worker.call(lambda: self._scrub(float(t)))

    # Everything below runs in the worker.
    def _document(self) -> str:
        """A page of the first motion."""
        from linkwise.viz.recording import motion_html

        follow = NOTHING if self.target is None else self.target.name
        return motion_html(self.motions[0], follow=follow, markers=[each.markers for each in self.markers])

    def toggle(self) -> None:
        """Play, or pause."""
        self.playing = not self.playing
        self.button.label = "Pause" if self.playing else "Play"
        self.button.icon = "player-pause" if self.playing else "player-play"
        if self.playing and self.t >= self.end:
            self.t = self.start
        self._last = time.perf_counter()
        self.worker.every(FRAME, self._tick if self.playing else None)

    def _scrub(self, t: float) -> None:
        if self.playing:
            self.toggle()
        self.t = min(max(t, self.start), self.end)
        self.draw()

    def _tick(self) -> None:
        now = time.perf_counter()
        self.advance(now - self._last)
        self._last = now

    def advance(self, seconds: float) -> None:
        """Move on by so many seconds of the clock on the wall."""
        self.t += seconds * float(self.speed.value)
        if self.t > self.end:
            if self.loop.value and self.end > self.start:
                self.t = self.start + (self.t - self.start) % (self.end - self.start)
            else:
                self.t = self.end
                if self.playing:
                    self.toggle()
        self.draw()

    def _switch(self, marks: MarkerNodes, visible: bool) -> None:
        marks.switch(visible, self.index(self.motions[0]))

    def draw(self) -> None:
        """Draw the time shown, everywhere."""
        with self.server.atomic():  # what is seen together is of one instant
            self._show()
            self.keep_in_view(self.figures[0])
            self.shown.update()
        self.tree.update(self.moments()[0])
        self.slider.value = self.t
        self._mark()

    # Plots.
    def _plots(self, sensors: Mapping[str, ArrayLike]) -> None:
        self.plots: list[tuple[viser.GuiUplotHandle, tuple[Array, ...], tuple[float, float]]] = []
        for title, names, columns in self._quantities(sensors):
            self._plot(title, names, columns)

    def _quantities(self, sensors: Mapping[str, ArrayLike]) -> list[tuple[str, list[str], list[Array]]]:
        found = []
        several = len(self.motions) > 1
        motions = self.leaders if not self.motions[0].batch_shape else [self.leaders[0]]
        times = motions[0].t
        units = {"q": "q [rad, m]", "v": "v [rad/s, m/s]", "tau": "τ [N m, N]", "x": "states of elements"}
        for name, title in units.items():
            names: list[str] = []
            columns: list[Array] = []
            for n, motion in enumerate(motions):
                values = motion.values().get(name)
                if values is None or not values.shape[-1]:
                    continue
                for k, column in enumerate(motion.columns[name][: max(1, _MOST_LINES // len(motions))]):
                    names.append(f"{column} ({n + 1})" if several else column)
                    columns.append(np.interp(times, motion.t, values[:, k]))
            if columns:
                found.append((title, names, columns))
        energies = [np.interp(times, m.t, m._values["energy"]) for m in motions if "energy" in m._values]
        if energies:
            found.append(("energy [J]", [f"energy ({n + 1})" for n in range(len(energies))], energies))
        if motions[0]._with_model("view").closures:
            largest = np.abs(motions[0].closure_error).max(axis=-1, initial=0.0)
            found.append(("closure error", ["largest"], [largest]))
        for name, readings in sensors.items():
            table = np.asarray(readings, float)
            table = table[:, None] if table.ndim == 1 else table
            if table.ndim != 2 or len(table) != len(times):
                raise InputError(
                    f"the readings of {name!r} do not fit", got=str(table.shape), allowed=f"({len(times)}, n)"
                )
            found.append((name, [f"{name}[{k}]" for k in range(table.shape[1])], list(table.T[:_MOST_LINES])))
        return found

    def _plot(self, title: str, names: list[str], columns: list[Array]) -> None:
        times = np.asarray(self.leaders[0].t, float)
        if len(times) < 2:
            return
        pick = np.unique(np.linspace(0, len(times) - 1, min(len(times), _MOST_POINTS)).astype(int))
        table = np.array([np.nan_to_num(column[pick]) for column in columns])
        low, high = float(table.min()), float(table.max())
        margin = 0.05 * (high - low) or 1.0
        lines = ({"label": "t"}, *(
            {"label": name, "stroke": LINES[k % len(LINES)], "width": 1.2, "scale": "y"}
            for k, name in enumerate(names)
        ))  # fmt: skip
        cursor = {"label": "now", "stroke": "#999999", "width": 1.0, "scale": "y", "spanGaps": True}
        data = (times[pick], *table)
        span = (low - margin, high + margin)
        handle = self.server.gui.add_uplot(
            self._with_cursor(data, span),
            (*lines, cursor),
            title=title,
            scales={"x": {"time": False}, "y": {"range": span}},
            axes=({}, {"size": 62}),
            aspect=1.9,
        )
        self.plots.append((handle, data, span))

    def _with_cursor(self, data: tuple[Array, ...], span: tuple[float, float]) -> tuple[Array, ...]:
        """Two samples more, both at the time shown, between which a line of its own goes from below to above."""
        k = int(np.searchsorted(data[0], self.t))
        columns = [np.insert(column, k, [np.interp(self.t, data[0], column)] * 2) for column in data]
        line = np.full(len(data[0]) + 2, np.nan)
        line[k : k + 2] = span
        return (*columns, line)

    def _mark(self) -> None:
        """Move the line in every plot to the time shown."""
        if time.perf_counter() - self._marked < 0.2 and self.playing:
            return
        self._marked = time.perf_counter()
        for handle, data, span in self.plots:
            handle.data = self._with_cursor(data, span)
