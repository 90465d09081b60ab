"""Changed copies of a model (joints locked, others attached, bodies taken away, mirrored), and models in files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import ModelError
from linkwise.joints import Joint
from linkwise.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from linkwise.model.model import Model


class Editing(Mechanism):
    """Methods that return changed copies."""

    def locked(self, joints: Iterable[str] | Mapping[str, ArrayLike | None] | str, at: ArrayLike | None = None) -> Self:
        """A copy in which some joints stand still. Their bodies become part of those that carry them.

        The names of these bodies stay known as frames. Joints that follow a locked one are locked with it; couplings,
        actuators and springs go on with the joints that are left; closures between what no longer moves must hold, and
        go. The equations of motion are those of the model with the rows of these joints left out.

        >>> from linkwise.samples import planar_arm
        >>> planar_arm(3).locked({"joint2": 0.5}).nv
        2

        Args:
            joints: names, or a dict of their coordinates (rad or m; nq numbers for joints of several).
            at: a configuration (nq) from which the coordinates are taken that are not given; else the zero position.
        """
        from linkwise.mechanism.editing.locking import locked

        return locked(self, joints, at)

    def attach(
        self,
        other: Model,
        at: str = "world",
        placement: ArrayLike | None = None,
        *,
        joint: Joint | None = None,
        prefix: str = "",
        node: str | int | None = None,
    ) -> Self:
        """A copy that carries another model: a gripper on an arm, an arm on a satellite.

        Everything that the other has comes along: frames, closures, actuators, sensors, configurations. Gravity stays
        that of this model.

        >>> from linkwise.samples import planar_arm
        >>> planar_arm(2).attach(planar_arm(3), at="link2", prefix="finger_").nv
        5

        Args:
            other: the model whose world is fixed to a place on this one.
            at: name of a body or frame of this model.
            placement: 4×4 pose of the other's world there; that place itself if not given.
            joint: what stays free between the two; nothing if not given. The body in between has the prefix, or the
                other's name, as its name.
            prefix: put before all names of the other.
            node: of a flexible body, the node at which it is attached.
        """
        from linkwise.mechanism.editing.attaching import attach

        return attach(self, other, at, placement, joint, prefix, node)

    def with_payload(
        self,
        at: str,
        mass: float,
        com: Sequence[float] = (0.0, 0.0, 0.0),
        inertia: ArrayLike = ((0.0,) * 3,) * 3,
        *,
        name: str = "payload",
        node: str | int | None = None,
    ) -> Self:
        """A copy with a mass fixed to a body or frame.

        Args:
            at: name of a body or frame.
            mass: kg.
            com: mass centre in its frame, m.
            inertia: 3×3 about the mass centre, its axes, kg m².
            name: of the payload, for ``with_body``, ``with_parameters(["payload.mass"])`` and ``without``.
            node: of a flexible body, the node that carries it.
        """
        from linkwise.mechanism.editing.attaching import with_payload

        return with_payload(self, at, mass, com, np.asarray(inertia), name, node)

    def with_frame(
        self, name: str, at: str, placement: ArrayLike | None = None, *, node: str | int | None = None
    ) -> Self:
        """A copy with one more named place on a body or frame.

        Args:
            name: the frame's name, unlike any other body or frame.
            at: name of a body or frame, or "world".
            placement: 4×4 pose in its frame, or in that of the node; that frame itself if not given.
            node: of a flexible body, a node by name or number; the root if not given.
        """
        from linkwise.mechanism.editing.attaching import with_frame

        return with_frame(self, name, at, placement, node)

    def without(self, *names: str) -> Self:
        """A copy without some bodies and all that hangs on them, or without some closures or couplings.

        Frames, closures, couplings, actuators, springs and sensors of what is gone are gone with it.

        Args:
            names: of moving bodies, of parts welded to one (a payload), which go alone, or of closures and couplings.
        """
        from linkwise.mechanism.editing.attaching import without

        parts = {part.name for body in self.bodies for part in body.parts} | {body.name for body in self.bodies}
        left, closing = self, {closure.name for closure in self.closures}
        for name in names:
            if name in closing and name in parts:
                raise ModelError(
                    f"{name!r} is both a body and a closure",
                    do="give one of them another name first: model.renamed({…})",
                )
            if name in closing:
                left = left._without_closure(name)
        others = tuple(name for name in names if name not in closing)
        return without(left, others) if others or not names else left

    def mirrored(self, plane: str = "xz") -> Self:
        """The mirror image: a right hand from a left one. Names stay; see :meth:`renamed`.

        Joints of one freedom keep their coordinates: a hinge turns by the same angle about the reflected axis. What
        becomes of a state in general, :meth:`mirrored_state` says.

        Args:
            plane: "xz" (left and right), "yz" or "xy", through the world's origin.
        """
        from linkwise.mechanism.editing.mirroring import mirrored

        return mirrored(self, plane)

    def mirrored_state(self, plane: str, q: ArrayLike, v: ArrayLike | None = None) -> tuple[Array, Array | None]:
        """The configuration (..., nq) and velocity, acceleration or forces (..., nv) that the mirror image has.

        Args:
            plane: as for :meth:`mirrored`.
            q: configuration (..., nq) of this model.
            v: velocity, acceleration or joint forces (..., nv) of this model.
        """
        from linkwise.mechanism.editing.mirroring import mirrored_state

        return mirrored_state(self, plane, q, v)

    def renamed(
        self, names: Mapping[str, str] | Callable[[str], str] | None = None, *, name: str | None = None
    ) -> Self:
        """A copy with other names for bodies, frames, joints, closures, actuators, sensors and springs, or for itself.

        Args:
            names: a dict from old to new names, or a function that gives the new one of each.
            name: of the model.
        """
        from linkwise.mechanism.editing.renaming import renamed

        changed = self if names is None else renamed(self, names)
        return changed if name is None else replace(changed, name=str(name))


class Files(Mechanism):
    """Methods that write files. What they lie in is imported where it is used: most models are never written."""

    def save(self, path: str | os.PathLike[str]) -> list[str]:
        """Write the model to a file, and return what that cannot say: for a native file, nothing.

        A native file, ``name.lw.json``, has everything; :func:`linkwise.load` reads it again, bit by bit. Large arrays
        (those of flexible bodies) go into an archive beside it, ``name.lw.npz``. What is a program cannot be stored and
        is refused with its name: joints and closures that hold functions.

        In a URDF file joints of several freedoms become joints of one in series; loops go into a side file,
        ``name.loops.yaml``, for ``load(..., loops=...)``. In an MJCF file, for MuJoCo, closures and joints that follow
        others become equality constraints, which MuJoCo meets softly. In both, joints for which the format has no words
        (:meth:`linkwise.Joint.series`) are fixed at zero, and flexible bodies are refused.

        >>> import linkwise as lw
        >>> from linkwise.samples import stanford_arm
        >>> stanford_arm().save("arm.lw.json")
        []
        >>> lw.load("arm.lw.json") == stanford_arm()
        True

        Args:
            path: a name that ends in ``.lw.json``, ``.urdf``, or (MJCF) ``.xml`` or ``.mjcf``.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".urdf":
            from linkwise.files.writing.urdf import write_urdf

            return write_urdf(self, path)
        if suffix in (".xml", ".mjcf"):
            from linkwise.files.writing.mjcf import write_mjcf

            return write_mjcf(self, path)
        from linkwise.files.native import save

        save(self, path)
        return []
