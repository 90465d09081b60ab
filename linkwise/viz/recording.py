"""A motion in one file that plays in any browser, without a server and without a network; pictures in notebooks.

``viser`` records the messages that it would send to a page; the file has them and the page.
"""

from __future__ import annotations

import base64
import html
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_positive, output_path
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, LinkwiseError, ModelWarning
from linkwise.model.model import Model
from linkwise.sim.progress import Progress
from linkwise.sim.touched import contacts_of
from linkwise.sim.trajectory import Trajectory
from linkwise.viz.figure import THROUGH, Ghosts, ModelFigure, furnish
from linkwise.viz.looks import fewer, looks_of
from linkwise.viz.markers import (
    EVERY_OVERLAY,
    ContactForceArrows,
    ContactPointDots,
    MarkerNodes,
    Markers,
    Touches,
    overlays_named,
)
from linkwise.viz.overlays import ShownState
from linkwise.viz.page import start_server, stop_server
from linkwise.viz.player import checked, sampled
from linkwise.viz.posing import resting
from linkwise.viz.stage import PageStage, followed
from linkwise.viz.video import thumbnail

LARGEST = 40_000_000
"""Bytes of ghosts in a file, before compression; there are fewer of them where it would be more."""


def motion_html(
    trajectory: Trajectory,
    *,
    fps: float = 30.0,
    most_faces: int | None = None,
    dark: bool = False,
    closer: float = 1.0,
    follow: bool | str | None = None,
    markers: Sequence[Markers] = (),
    show: Sequence[str] | None = None,
    progress: bool | Callable[[float], None] | None = False,
) -> str:
    """A whole HTML document that plays a motion: about 0.8 MB for the page, then what the motion takes.

    Args:
        trajectory: of one state, or a batch, whose states become ghosts around the first.
        fps: pictures for each second of the motion.
        most_faces: triangles of the whole model, surfaces being simplified; all of them if None.
        dark: on a dark page.
        closer: how many times closer the camera stands than where it sees everything.
        follow: what the camera follows, as for :func:`linkwise.view`.
        markers: arrows, discs and cones, given for the samples of the motion.
        show: titles of what is shown besides the bodies, as the viewer has them: "contact points", "contact forces",
            "friction cones", "mass centres", …. Bodies are see-through where some of it lies inside them. If not given:
            where bodies touch, the first two, and bodies as they are.
        progress: as for :func:`linkwise.simulate`.
    """
    check_positive(fps=fps)
    motion = checked(trajectory)
    model = motion._with_model("save_html")
    target = followed(model, follow)
    looks = looks_of(model)
    shown = looks if most_faces is None else fewer(looks, most_faces)
    pictures = sampled(motion, fps)
    batch = motion.batch_shape
    leader = pictures.q[(0,) * len(batch)] if batch else pictures.q
    leader = leader[np.isfinite(leader).all(axis=-1)]
    if not len(leader):
        raise InputError("nothing of this motion can be shown", got="no finite q", do="look at trajectory.status")
    bar, server = Progress(progress, "pictures"), start_server(model.name, 0)
    try:
        stage = PageStage(server, dark)
        figure = ModelFigure(server.scene, model, shown)
        p = motion.model_parameters
        own = None if p is None else p.reshape(-1, p.shape[-1])
        figure.show(leader[0], None if own is None else own[0])
        ghosts = None
        if batch:
            count = int(np.prod(batch))
            most = max(1, LARGEST // (28 * max(len(model.bodies), 1) * len(pictures.t)))
            if count > most:
                _say_fewer(count, most)
            ghosts = Ghosts(server.scene, model, shown, min(count, most))
        poses = model.poses(leader[:: max(1, len(leader) // 20)], p=None if own is None else own[0])
        middle = None if target is None else target.place(poses)
        furnish(stage, [figure], shown.corners(poses), middle, closer)  # the camera sees all of the way
        marks = [MarkerNodes(server.scene, each.checked(len(motion.t)), shown.size) for each in markers]
        samples = np.searchsorted(motion.t, pictures.t + 1e-9, side="right") - 1
        contacts = contacts_of(motion[(0,) * len(batch)] if batch else motion)
        kinds = [ContactPointDots, ContactForceArrows] if show is None else overlays_named(show, EVERY_OVERLAY)
        overlays = [kind(figure) for kind in kinds if kind.applies(model) and (contacts or show is not None)]
        first = ShownState(float(pictures.t[0]), leader[0], p=None if own is None else own[0])
        for overlay in overlays:
            overlay.show(True, first)
        if show is not None and any(overlay.inside for overlay in overlays):
            figure.see_through(THROUGH)
        recorder = server.get_scene_serializer()
        for k in range(len(pictures.t)):
            if k < len(leader):
                figure.show(leader[k], None if own is None else own[0])
                stage.follow(None if target is None else target.place(figure.poses))
                if overlays:
                    moment = ShownState(float(pictures.t[k]), leader[k], p=first.p)
                    if contacts is not None:
                        moment.touches = Touches.of(contacts, int(np.clip(samples[k], 0, len(motion.t) - 1)))
                    for overlay in overlays:
                        overlay.update(moment)
            if ghosts is not None:
                q = pictures.q[..., k, :].reshape(-1, model.nq)[: ghosts.count]
                ghosts.show(q, None if own is None else own[: ghosts.count])
            for each in marks:
                each.show(int(samples[k]))
            recorder.insert_sleep(1.0 / fps)
            bar.update((k + 1) / len(pictures.t))
        document = str(recorder.as_html(dark_mode=dark))
    finally:
        bar.close()
        stop_server(server)
    title = f"<title>{html.escape(model.name)}</title>"
    return document.replace("<title>Viser</title>", title, 1)


def model_html(model: Model, q: ArrayLike | None = None, **choices: Any) -> str:
    """A whole HTML document that shows a model, standing still; the choices are those of :func:`motion_html`."""
    state = resting(model, q)
    at_rest = Trajectory([0.0], state[None], np.zeros((1, model.nv)), model=model)
    return motion_html(at_rest, fps=1.0, **choices)


def save_html(trajectory: Trajectory, path: str | Path, **choices: Any) -> Path:
    """Write :func:`motion_html` to a file."""
    target = output_path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError("no such file type", got=repr(target.suffix), allowed=".html")
    target.write_text(motion_html(trajectory, **choices), encoding="utf-8")
    return target


def embedded(document: str, height: int = 420, title: str = "motion") -> str:
    """An ``<iframe>`` with a whole document inside, for a report or a notebook; it needs no other file."""
    inside = html.escape(document, quote=True)
    return (
        f'<iframe title="{html.escape(title, quote=True)}" srcdoc="{inside}" loading="lazy" '
        f'style="width:100%;height:{int(height)}px;border:1px solid #ccc"></iframe>'
    )


def _say_fewer(count: int, most: int) -> None:
    warnings.warn(
        ModelWarning(
            "not all states of the batch are in the file, which would be too large",
            got=f"{count} states",
            allowed=f"the first {most} of them at these fps",
            do="fewer fps, or traj[some]",
        ),
        stacklevel=4,
    )


@dataclass(frozen=True)
class InlinePage:
    """Page that plays inside another.

    Args:
        html: an ``<iframe>`` element with everything in it.
    """

    html: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<Embedded: {len(self.html) / 1e6:.1f} MB of HTML>"


def embedded_motion(trajectory: Trajectory, height: int, **choices: Any) -> InlinePage:
    """The player of a motion; see :meth:`linkwise.Trajectory.embed`."""
    document = motion_html(trajectory, **choices)
    return InlinePage(embedded(document, height, trajectory._with_model("embed").name))


def model_picture(model: Model) -> str | None:
    """A picture of a model (some ten kB) and its facts; None where the extra ``viz`` is missing."""
    return _picture(model, lambda: resting(model), repr(model))


def motion_picture(trajectory: Trajectory) -> str | None:
    """A picture of the last state of a motion and its facts; None where the model or the extra ``viz`` is missing."""
    model = trajectory.model
    if model is None or not len(trajectory.t):
        return None
    states = trajectory.q.reshape(-1, len(trajectory.t), trajectory.q.shape[-1])[0]
    finite = states[np.isfinite(states).all(axis=-1)]
    return _picture(model, lambda: finite[-1], repr(trajectory)) if len(finite) else None


def _picture(model: Model, state: Callable[[], Array], text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            png = thumbnail(model, state(), 360, 270)
    except LinkwiseError:
        return None
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<figure style="margin:0"><img alt="{html.escape(model.name, quote=True)}" '
        f'src="data:image/png;base64,{data}"><figcaption>{html.escape(text)}</figcaption></figure>'
    )
