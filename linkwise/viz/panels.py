"""Parts of a page's panel that several pages have: what to show, and the tree of bodies."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import require_extra
from linkwise.mechanism.bodies_and_joints import Body, JointInstance
from linkwise.model.model import Model
from linkwise.viz.figure import THROUGH, ModelFigure, SurfaceHandle
from linkwise.viz.markers import EVERY_OVERLAY
from linkwise.viz.overlays import ShownState, _Arrows
from linkwise.viz.page import Page
from linkwise.viz.stage import MASS_CENTRE, NOTHING, followed

if TYPE_CHECKING:
    import viser

MOST_LISTED = 150
"""Bodies in the tree; a page with more has a field to search in instead."""


class ShowPanel:
    """Switches for everything that can be shown besides the bodies."""

    def __init__(self, page: Page, figures: list[ModelFigure], moments: Callable[[], list[ShownState]]) -> None:
        self.page, self.figures, self.moments = page, figures, moments
        gui = page.server.gui
        model = figures[0].model
        self.overlays = [[kind(figure) for kind in EVERY_OVERLAY if kind.applies(figure.model)] for figure in figures]
        kinds = [kind for kind in EVERY_OVERLAY if kind.applies(model)]
        self.switches = {}
        for place, kind in enumerate(kinds):
            box = gui.add_checkbox(kind.title, False, hint=(kind.__doc__ or "").splitlines()[0])
            page.connect(box.on_update, f"show {place}", partial(self._switch, place, box))
            self.switches[kind.title] = box
        self.through = gui.add_checkbox("see-through bodies", False, hint="To see what is inside them.")
        page.connect(self.through.on_update, "through", self._see_through)
        self._stage_controls(model)
        bodies = gui.add_checkbox("bodies", True, hint="The bodies themselves.")
        page.connect(bodies.on_update, "bodies", lambda: self._bodies(bodies.value))
        scale = gui.add_slider("force scale (log10)", -2.0, 2.0, 0.1, 0.0, hint="How long the arrows of forces are.")
        page.connect(scale.on_update, "scale", lambda: self._scale(10.0**scale.value))
        if model._is_flexible:
            factor = gui.add_slider("exaggerate bending", 1.0, 50.0, 0.5, 1.0, hint="Deformations times this.")
            page.connect(factor.on_update, "exaggerate", lambda: self._exaggerate(factor.value))
            self.exaggeration = factor

    def _stage_controls(self, model: Model) -> None:
        gui, target = self.page.server.gui, self.page.target
        names = tuple(model.bodies.names)[:MOST_LISTED]
        self.follow = gui.add_dropdown(
            "follow",
            tuple(dict.fromkeys((NOTHING, MASS_CENTRE, *names, *(() if target is None else (target.name,))))),
            initial_value=NOTHING if target is None else target.name,
            hint="What the camera goes along with.",
        )
        self.page.connect(self.follow.on_update, "follow", self._follow)
        shadows = gui.add_checkbox("shadows", True, hint="Without them pictures are drawn faster.")
        self.page.connect(shadows.on_update, "shadows", lambda: self.page.stage.shade(shadows.value))

    def _follow(self) -> None:
        self.page.target = followed(self.figures[0].model, str(self.follow.value))
        self.page.keep_in_view(self.figures[0])

    def _switch(self, place: int, box: viser.GuiCheckboxHandle) -> None:
        if box.value and self.overlays[0][place].inside and not self.through.value:
            self.through.value = True
            self._see_through()
        for overlays, moment in zip(self.overlays, self.moments(), strict=True):
            overlays[place].show(box.value, moment)

    def add_switch(self, title: str, action: Callable[[bool], None]) -> None:
        """A switch more, for something that is shown at first."""
        box = self.page.server.gui.add_checkbox(title, True)
        self.page.connect(box.on_update, f"show {title}", lambda: action(bool(box.value)))

    def _see_through(self) -> None:
        for figure in self.figures:
            figure.see_through(THROUGH if self.through.value else 1.0)

    def _bodies(self, visible: bool) -> None:
        for figure in self.figures:
            for handle in (*figure.base_meshes, *(h for k in range(len(figure.nodes)) for h in figure.surfaces(k))):
                handle.visible = visible

    def _scale(self, factor: float) -> None:
        for overlays in self.overlays:
            for overlay in overlays:
                if isinstance(overlay, _Arrows):
                    overlay.scale = factor
        self.update()

    def _exaggerate(self, factor: float) -> None:
        for figure, moment in zip(self.figures, self.moments(), strict=True):
            figure.exaggeration = factor
            figure.show(moment.q, p=moment.p)
        self.update()

    def update(self) -> None:
        """Draw what is shown as it is now."""
        for overlays, moment in zip(self.overlays, self.moments(), strict=True):
            for overlay in overlays:
                overlay.update(moment)


class SavePanel:
    """Buttons for what can be taken away: a picture of what is seen, and a page that needs no program.

    Args:
        page: on which they are.
        name: of the files, without suffix.
        document: makes the page, as HTML.
    """

    def __init__(self, page: Page, name: str, document: Callable[[], str]) -> None:
        self.page, self.name, self.document = page, "".join(c if c.isalnum() else "_" for c in name), document
        gui = page.server.gui
        shot = gui.add_button("Screenshot", icon="camera", hint="A picture of what you see, as a PNG file.")
        save = gui.add_button("Save page", icon="download", hint="One file that plays in any browser.")
        self._connect(shot, self._screenshot)
        self._connect(save, self._save)

    def _connect(self, button: viser.GuiButtonHandle, action: Callable[[viser.ClientHandle], None]) -> None:
        async def clicked(event: viser.GuiEvent[viser.GuiButtonHandle]) -> None:
            client = event.client
            self.page.worker.post((button.label, client.client_id), lambda: action(client))

        button.on_click(clicked)

    def _screenshot(self, client: viser.ClientHandle) -> None:
        image = require_extra("PIL.Image", "viz")
        camera = client.camera
        pixels = client.get_render(camera.image_height, camera.image_width, transport_format="png", timeout=20.0)
        file = io.BytesIO()
        image.fromarray(pixels).save(file, "PNG", optimize=True)
        client.send_file_download(f"{self.name}.png", file.getvalue(), save_immediately=True)

    def _save(self, client: viser.ClientHandle) -> None:
        client.send_file_download(f"{self.name}.html", self.document().encode(), save_immediately=True)


class BodyTree:
    """The tree of bodies to click in; the one that is chosen shows its numbers.

    Args:
        page: on which it is.
        figure: whose bodies.
        chosen: called with the index of a body when it is clicked, or None.
    """

    def __init__(self, page: Page, figure: ModelFigure, chosen: Callable[[int | None], None] | None = None) -> None:
        self.page, self.figure, self.model = page, figure, figure.model
        self.selected: int | None = None
        self._chosen = chosen
        self.facts = page.server.gui.add_markdown("*Click a body, here or in the scene.*")
        self._top = self.facts.order
        if len(self.model.bodies) > MOST_LISTED:
            menu = page.server.gui.add_dropdown("body", ("none", *(body.name for body in self.model.bodies)))
            numbers = {body.name: body.index for body in self.model.bodies}
            page.connect(menu.on_update, "select", lambda: self.select(numbers.get(menu.value)))
        else:
            for body in self.model.bodies:
                self._button(body)
        figure.on_each(self._clickable)

    def _button(self, body: Body) -> None:
        hint = f"joint {self.model.joints[body.index].name}"
        button = self.page.server.gui.add_button(tree_label(self.model, body), color=(118, 132, 150), hint=hint)
        self.page.connect(button.on_click, "select", lambda: self.select(body.index, button.order + 0.5))

    def _clickable(self, index: int, handle: SurfaceHandle) -> None:
        self.page.connect(handle.on_click, "select", lambda: self.select(index))

    def select(self, index: int | None, place: float | None = None) -> None:
        """Mark a body in the scene and show its numbers; None for no body, or the one that is marked.

        Args:
            index: of the body.
            place: in the panel, where the numbers are to be seen: below what was clicked. None: above all.
        """
        if index == self.selected:
            index = None
        self.facts.order = self._top if place is None or index is None else place
        self.figure.mark(index, self.selected)
        self.selected = index
        if self._chosen is not None:
            self._chosen(index)

    def update(self, moment: ShownState) -> None:
        """The numbers of the chosen body at a moment."""
        if self.selected is not None:
            self.facts.content = facts(self.model, self.model.bodies[self.selected], moment, self.figure.poses)
        elif "Click" not in self.facts.content:
            self.facts.content = "*Click a body, here or in the scene.*"


def tree_label(model: Model, body: Body) -> str:
    """The name of a body, moved in by its place in the tree."""
    depth, parent = 0, body.parent
    while parent >= 0:
        depth, parent = depth + 1, model.bodies[parent].parent
    branches = sum(1 for other in model.bodies if other.parent == body.parent) > 1
    return "\u2003" * min(depth, 8) + ("├ " if branches else "└ " if depth else "") + body.name


def facts(model: Model, body: Body, moment: ShownState, poses: Array) -> str:
    """Facts about a body and its joint, as Markdown."""
    joint = model.joints[body.index]
    parent = model.bodies[body.parent].name if body.parent >= 0 else "world"
    place = ", ".join(f"{x:.4g}" for x in poses[body.index, :3, 3])
    kind = type(joint.type).__name__.lower()
    rows = [
        ("body", f"**{_safe(body.name)}** on {_safe(parent)}"),
        ("mass", f"{body.mass:.4g} kg"),
        ("at", f"{place} m"),
        ("joint", f"{_safe(joint.name)}, {kind}" + (f", follows {_safe(joint.mimic.joint)}" if joint.mimic else "")),
    ]
    if joint.nv:
        rows.append(("q", _listed(moment.q[joint.q_slice])))
        if moment.v is not None:
            rows.append(("v", _listed(moment.v[joint.v_slice])))
        if moment.tau is not None:
            rows.append(("τ", _listed(moment.tau[joint.v_slice])))
        rows += _limits(joint)
    if body.modes:
        rows.append(("modes η", _listed(moment.q[body.q_slice])))
    return "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)


def _limits(joint: JointInstance) -> list[tuple[str, str]]:
    found = []
    for limit in joint.limits:
        if np.isfinite([limit.lower, limit.upper]).any():
            found.append(("range", f"{limit.lower:.4g} … {limit.upper:.4g}"))
        if np.isfinite(limit.velocity):
            found.append(("most v", f"{limit.velocity:.4g}"))
        if np.isfinite(limit.effort):
            found.append(("most τ", f"{limit.effort:.4g}"))
    return found


def _listed(values: Array) -> str:
    return ", ".join(f"{x:.4g}" for x in np.atleast_1d(values))


def _safe(name: str) -> str:
    """A name from a file, with nothing that Markdown or HTML would take for more than letters."""
    return "".join(c if c.isalnum() or c in " _-.:" else f"&#{ord(c)};" for c in name)
