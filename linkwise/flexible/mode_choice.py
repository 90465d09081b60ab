"""Choice of modes: the keywords that the constructors of flexible bodies take besides the model itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from linkwise.dataclass import dataclass, fields
from linkwise.errors import InputError, UnknownNameError
from linkwise.flexible.structure import NodeKey, Region

Boundary = Literal["cantilever", "free", "craig-bampton", "nodal"]
Places = str | Sequence[NodeKey] | Mapping[str, Region]
"""Nodes by their names or numbers, or new names of nodes or regions."""
Component = tuple[NodeKey, str]
"""A node and a component of its motion, "tx" … "rz"."""
BOUNDARIES = ("cantilever", "free", "craig-bampton", "nodal")


class BasisChoice(TypedDict, total=False):
    """The keywords that say what the modes of a body are; `Choice` tells what each means."""

    up_to_hz: float | None
    boundary: Boundary
    interfaces: Places
    residuals: str | Sequence[NodeKey]
    inputs: Sequence[Component]
    outputs: Sequence[Component]
    rank_by: Literal["static", "peak"]
    damping: ArrayLike
    stiffening: bool
    held: Sequence[Component] | None


class ModeChoice(BasisChoice, total=False):
    """Keywords that choose modes, and their number."""

    modes: int | None


@dataclass(frozen=True)
class Choice:
    """Choice of the modes that a body keeps, and their damping.

    Args:
        modes: how many. By default, those below `up_to_hz`; 10 where neither is given. A beam takes them per plane.
        up_to_hz: keep every mode below this frequency.
        boundary: what the modes are.

            - ``"cantilever"``: modes of the body held at its root node. The usual choice for a body whose tip is free.
            - ``"free"``: modes of the free body, made relative to the root (the root's own rigid motion in the mode
              is taken off), so that they vanish there as the others do. For bodies whose root moves freely, as a
              satellite's hub.
            - ``"craig-bampton"``: static shapes of a unit motion of each interface, and modes with the interfaces held.
              For bodies that carry others at the interfaces. `modes` counts the latter only.
            - ``"nodal"``: every dof of the model, no reduction. For small models.
        interfaces: nodes where other bodies will sit: names or numbers, or a mapping of names to nodes or regions. A
            region moves as a rigid piece.
        residuals: nodes to add residual vectors for: the static shapes under a unit force and moment there, as far as
            the modes do not hold them already. With them the static deflection under loads at these nodes is exact.
        inputs: pairs (node, component) where forces act, with components "tx" … "rz". With `outputs`, modes are kept
            by what they contribute to the way from inputs to outputs, instead of in the order of their frequencies.
        outputs: pairs (node, component) that are measured.
        rank_by: "static", by the static gain |c b| / ω²; "peak", by the height of the resonance |c b| / (2ζω²).
        damping: a damping ratio ζ for all modes, one for each, or the m×m matrix D.
        stiffening: whether to find the second-order part Q, without which a body that spins grows softer instead of
            stiffer. It takes m (m + 1) / 2 static solutions.
        held: six pairs (node, component) that hold the body's frame: these components vanish in every mode. By default
            all six of the root. A pinned beam along x in its chord's frame, whose ends turn, has ("root", "tx"), "ty",
            "tz", "rx" and ("tip", "ty"), "tz"; its modes ("cantilever") are those of a beam on two supports. Nodes are
            the root, interfaces, or nodes of the model that have that component themselves.
    """

    modes: int | None = None
    up_to_hz: float | None = None
    boundary: Boundary = "cantilever"
    interfaces: Places = ()
    residuals: str | Sequence[NodeKey] = ()
    inputs: Sequence[Component] = ()
    outputs: Sequence[Component] = ()
    rank_by: Literal["static", "peak"] = "static"
    damping: ArrayLike = 0.0
    stiffening: bool = True
    held: Sequence[Component] | None = None

    def __post_init__(self) -> None:
        if self.boundary not in BOUNDARIES:
            raise UnknownNameError("boundary", self.boundary, BOUNDARIES)
        if self.rank_by not in ("static", "peak"):
            raise UnknownNameError("ranking", self.rank_by, ("static", "peak"))
        if bool(len(self.inputs)) != bool(len(self.outputs)):
            raise InputError(
                "modes are ranked by the way from inputs to outputs: one of them is missing",
                got=f"{len(self.inputs)} inputs, {len(self.outputs)} outputs",
                do="give both, e.g. inputs=[('tip', 'tz')], outputs=[('tip', 'tz')]",
            )
        if self.up_to_hz is not None and not (np.isfinite(self.up_to_hz) and self.up_to_hz > 0):
            raise InputError("up_to_hz is not a frequency", got=repr(self.up_to_hz), allowed="Hz, > 0")
        if self.boundary == "craig-bampton" and not len(self.interfaces):
            raise InputError(
                "Craig–Bampton modes need interfaces", got="none", do='name them, e.g. interfaces=("tip",)'
            )

    @property
    def count(self) -> int | None:
        """`modes` as one number, checked."""
        if self.modes is None:
            return None if self.up_to_hz is not None else 10
        return mode_count(self.modes, "modes")


def choice_from(given: Mapping[str, Any]) -> Choice:
    """The choice that keywords make; an unknown one is named."""
    known = [field.name for field in fields(Choice)]
    for name in given:
        if name not in known:
            raise UnknownNameError("argument", name, known)
    return Choice(**given)


def mode_count(value: object, name: str) -> int:
    """A number of modes."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(f"{name} is not a number of modes", got=repr(value), allowed="an integer >= 0")
    return int(value)
