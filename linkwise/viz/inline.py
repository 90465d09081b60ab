"""Pictures in notebooks: a light one of a model or a motion by itself, and the whole player where it is asked for."""

from __future__ import annotations

import base64
import html
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import LinkwiseError
from linkwise.model.model import Model
from linkwise.sim.trajectory import Trajectory


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
    from linkwise.viz.recording import embedded, motion_html

    document = motion_html(trajectory, **choices)
    return InlinePage(embedded(document, height, trajectory._with_model("embed").name))


def model_picture(model: Model) -> str | None:
    """A picture of a model (some ten kB) and its facts; None where the extra ``viz`` is missing."""
    from linkwise.viz.viewer import resting

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
    from linkwise.viz.video import thumbnail

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
