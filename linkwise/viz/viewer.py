"""``lw.view(model)``: a model in the browser, to be moved by sliders, by the mouse, and by its own dynamics."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import LinkwiseError, require_extra
from linkwise.kinematics.goals import Reach
from linkwise.model.model import Model, checked_model
from linkwise.sim.trajectory import Trajectory
from linkwise.viz.figure import ModelFigure, SurfaceHandle, furnish, pose_of, quaternions
from linkwise.viz.live import LiveRun
from linkwise.viz.live_panel import LivePanel
from linkwise.viz.looks import looks_of
from linkwise.viz.page import Page
from linkwise.viz.panels import BodyTree, SavePanel, ShowPanel
from linkwise.viz.posing import Freedom, PointGoal, freedoms_of, is_closed, moved, numbers, resting, settled
from linkwise.viz.recording import model_html, motion_html
from linkwise.viz.stage import NOTHING, followed
from linkwise.viz.textures import Happened

if TYPE_CHECKING:
    import viser

MOST_COMPILED = 60
"""Freedoms of a model whose inverse kinematics are one compiled program; it takes minutes to compile for a thousand."""
MOST_SLIDERS = 100
"""Most sliders on a page: browsers are slow with more."""


def view(
    model: Model,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    control: object = None,
    follow: bool | str | None = None,
    port: int | None = None,
    open: bool | None = None,
) -> Viewer:
    """Show a model in the browser, on a page that this program serves to this machine alone.

    There is a slider for each freedom; a closed mechanism follows the one that is moved. A click on a body, in the
    scene or in the tree, shows its numbers and a handle to move it by; dragging a body with Ctrl held draws it after
    the mouse. The same page simulates: then dragging pulls with a spring.

    >>> page = lw.view(model)              # doctest: +SKIP
    >>> page.q = model.random_configuration()   # doctest: +SKIP
    >>> page.close()                       # doctest: +SKIP

    Args:
        model: the mechanism.
        q: the configuration to start with (nq); the neutral one, moved into joint limits and closed, if not given.
        v: velocity (nv) with which a simulation starts; at rest if not given.
        control: what acts in the simulation, as for :func:`linkwise.simulate`.
        follow: what the camera follows: the name of a body, ``"mass centre"`` or True, ``"nothing"`` or False; None:
            the mass centre of a model that can go anywhere.
        port: to begin with (8080); the next free one where it is in use, 0 for any.
        open: whether to open the browser; None: where there is a terminal and a screen.

    Returns:
        The page: ``url``, ``q``, ``close()``, ``wait()``; it ends with the program. In a notebook it shows itself.
    """
    checked_model(model)
    viewer = Viewer(model, q, v, control, follow, port, open)
    viewer.announce()
    return viewer


class Viewer(Page):
    """The page of one model; see :func:`view`."""

    def __init__(
        self,
        model: Model,
        q: ArrayLike | None,
        v: ArrayLike | None,
        control: object,
        follow: bool | str | None,
        port: int | None,
        open: bool | None,
    ) -> None:
        require_extra("viser", "viz")
        target = followed(model, follow)
        start = resting(model, q)
        run = LiveRun(model, start, None if v is None else numbers("v", v, model.nv), control)
        looks = looks_of(model)
        super().__init__(model.name, port, open)
        self.run, self.model = run, run.model
        model = run.model
        self.moment = run.at_rest(start)
        scene, gui = self.server.scene, self.server.gui
        self.handle: viser.TransformControlsHandle | None = None
        self._held = False
        self._grip: tuple[int, Array] | None = None
        self.figure = ModelFigure(scene, model, looks)
        self.figure.show(start)
        self.target = target
        poses = self.figure.poses[None]
        furnish(self.stage, [self.figure], looks.corners(poses), None if target is None else target.place(poses))
        self.freedoms = freedoms_of(model, looks.size)
        tabs = gui.add_tab_group()
        with tabs.add_tab("Pose"):
            self._pose_panel()
        with tabs.add_tab("Bodies"):
            self.tree = BodyTree(self, self.figure, self._chosen)
        with tabs.add_tab("Show"):
            self.shown = ShowPanel(self, [self.figure], lambda: [self.moment])
        if model.nv:
            with tabs.add_tab("Live"):
                self.live = LivePanel(self, run)
        with tabs.add_tab("Save"):
            SavePanel(self, model.name, self._document)
        self.figure.on_each(self._draggable)

    @property
    def q(self) -> Array:
        """The configuration that is shown (nq); set it to show another one. A closed mechanism must be closed in it."""
        self.sync()
        return self.moment.q.copy()

    @q.setter
    def q(self, q: ArrayLike) -> None:
        wanted = resting(self.model, q)
        self.worker.call(lambda: self.put(wanted))

    @property
    def recording(self) -> Trajectory | None:
        """The motion that was recorded last; None where none was."""
        motion: Trajectory | None = self.worker.call(lambda: self.run.recorded_motion)
        return motion

    @property
    def is_running(self) -> bool:
        """Whether a simulation runs."""
        return bool(self.model.nv) and self.live.running

    # Everything below runs in the worker.
    def _document(self) -> str:
        """A page of the recording, or of the model as it is shown."""
        follow = NOTHING if self.target is None else self.target.name
        motion = self.run.recorded_motion
        return (
            model_html(self.model, self.moment.q, follow=follow)
            if motion is None
            else motion_html(motion, follow=follow)
        )

    def put(self, q: Array) -> None:
        """Show a configuration at rest."""
        self.run.reset(q)
        self.moment = self.run.at_rest(q)
        self.draw()

    def draw(self, sliders: bool = True) -> None:
        """Draw the moment, everywhere."""
        with self.server.atomic():
            self.figure.show(self.moment.q, p=self.moment.p)
            if self._grip is None and not self._held:  # a hand that moves things needs ground that stays
                self.keep_in_view(self.figure)
            self.shown.update()
            self._place_handle()
        self.tree.update(self.moment)
        if sliders:
            self.show_values()

    def show_values(self) -> None:
        """Move the sliders to where they should be."""
        for freedom, slider in zip(self.freedoms, self.sliders, strict=False):
            value = min(max(freedom.get(self.moment.q), slider.min), slider.max)
            if abs(value - slider.value) > 0.25 * freedom.step:
                slider.value = value
        if self.model.closures:
            error = np.abs(self.model.closure_error(self.moment.q)).max(initial=0.0)
            self.closed.content = f"Closures: largest residual {error:.2g}."

    def _pose_panel(self) -> None:
        gui = self.server.gui
        buttons = gui.add_button_group("", ("neutral", "random", "start"))
        start = self.moment.q

        async def pressed(event: viser.GuiEvent[viser.GuiButtonGroupHandle]) -> None:
            chosen = event.target.value
            self.worker.post("pose", lambda: self._pose(chosen, start))

        buttons.on_click(pressed)
        if self.model.closures:
            self.closed = gui.add_markdown("Closures: closed.")
        self.sliders = []
        if len(self.freedoms) > MOST_SLIDERS:
            gui.add_markdown(f"*The first {MOST_SLIDERS} of {len(self.freedoms)} freedoms; drag bodies for the rest.*")
        for freedom in self.freedoms[:MOST_SLIDERS]:
            value = min(max(freedom.get(start), freedom.low), freedom.high)
            slider = gui.add_slider(freedom.label, freedom.low, freedom.high, freedom.step, value)
            slider.on_update(self._slid(freedom, slider))
            self.sliders.append(slider)

    def _slid(self, freedom: Freedom, slider: viser.GuiSliderHandle[float]) -> Happened:
        async def changed(event: viser.GuiEvent[viser.GuiSliderHandle[float]]) -> None:
            if event.client is not None:  # not by us
                value = float(slider.value)
                self.worker.post(("slider", freedom.place), lambda: self._slide(freedom, value))

        return changed

    def _slide(self, freedom: Freedom, value: float) -> None:
        if self.is_running:
            return
        found = moved(self.model, self.moment.q, freedom.set(self.moment.q, value), freedom.place)
        if found is None:
            self.say(f"{freedom.label} = {value:.4g}: the mechanism cannot be closed there.")
            self.show_values()
            return
        self.put(found)

    def _pose(self, chosen: str, start: Array) -> None:
        if chosen == "start":
            self.put(start)
        elif chosen == "neutral":
            self.put(resting(self.model))
        else:
            q = self.model.random_configuration()
            self.put(self.model.assemble(q) if self.model.closures else q)

    # Handles and the mouse.
    def _chosen(self, index: int | None) -> None:
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        if index is not None and self.model.nv:
            self.handle = self.server.scene.add_transform_controls(
                f"{self.figure.root}/handle", scale=self._handle_size(index), depth_test=False
            )
            self.handle.on_update(self._handled)
            self._place_handle()
            threading.Thread(target=self._prepare, args=(index, self.moment.q), daemon=True).start()
        self.tree.update(self.moment)

    def _handle_size(self, index: int) -> float:
        """Size of a handle whose arrows stick out of the body: what lies inside a surface cannot be taken hold of."""
        size, reach = self.figure.looks.size, self.figure.looks.reach(index)
        return float(np.clip(1.2 * reach, 0.15 * size, 0.5 * size))

    def _prepare(self, index: int, q: Array) -> None:
        """Compile what the first drag of a body will ask for, before the mouse waits for it."""
        X = self.model.pose(q, self.model.bodies[index].name)
        with contextlib.suppress(LinkwiseError):  # the drag itself would say so
            self._reached(q, index, np.zeros(3), X[:3, 3], X[:3, :3])

    def _place_handle(self) -> None:
        if self.handle is not None and self.tree.selected is not None and not self._held:
            X = self.figure.poses[self.tree.selected]
            self.handle.position, self.handle.wxyz = X[:3, 3], quaternions(X)

    async def _handled(self, event: viser.TransformControlsEvent) -> None:
        wxyz, position, phase = np.array(event.target.wxyz), np.array(event.target.position), event.phase
        self.worker.post("handle end" if phase == "end" else "handle", lambda: self._follow(wxyz, position, phase))

    def _follow(self, wxyz: Array, position: Array, phase: str) -> None:
        index = self.tree.selected
        if index is None:
            return
        self._held = phase != "end"
        if self.is_running:
            self.live.pull(index, np.zeros(3), position if self._held else None)
        else:
            self.reach(index, np.zeros(3), position, pose_of(wxyz, position)[:3, :3])
        if phase == "end":
            self._place_handle()

    def _draggable(self, index: int, handle: SurfaceHandle) -> None:
        async def dragged(event: viser.SceneNodeDragEvent[viser.MeshHandle]) -> None:
            shift, phase = self.stage.shift, event.phase
            start, end = np.array(event.start_position) - shift, np.array(event.end_position) - shift
            key = "drag" if phase == "update" else f"drag {phase}"
            self.worker.post(key, lambda: self._drag(index, start, end, phase))

        handle.on_drag("left", modifier="cmd/ctrl")(dragged)

    def _drag(self, index: int, start: Array, end: Array, phase: str) -> None:
        if phase == "start" or self._grip is None or self._grip[0] != index:
            X = self.figure.poses[index]
            self._grip = (index, X[:3, :3].T @ (start - X[:3, 3]))
            self.run.hold = None
        point = self._grip[1]
        if self.is_running:
            self.live.pull(index, point, None if phase == "end" else end)
        else:
            self.reach(index, point, end)
        if phase == "end":
            self._grip = None
            self.draw()

    def reach(self, index: int, point: Array, position: Array, rotation: Array | None = None) -> None:
        """Draw a point of a body towards a place: inverse kinematics, with closures kept closed."""
        if self.is_running or not self.model.nv:
            return
        found = self._reached(self.moment.q, index, point, position, rotation)
        if is_closed(self.model, found):
            self.put(found)

    def _reached(self, q: Array, index: int, point: Array, position: Array, rotation: Array | None) -> Array:
        name = self.model.bodies[index].name
        if rotation is not None and not self.model.closures and self.model.nv <= MOST_COMPILED:
            goal = Reach(name, position=position, rotation=rotation)
            found = np.asarray(self.model.inverse_kinematics(goal, q0=q, starts=0).q)
        else:  # a point that was not known before, closures, many links: little to compile while the mouse waits
            found = settled(self.model, q, [PointGoal(name, point, position, rotation)])
        return found if is_closed(self.model, found) else settled(self.model, found)
