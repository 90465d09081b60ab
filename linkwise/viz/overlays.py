"""Overlays, shown besides the bodies: axes, frames, mass centres, inertias, names, closures, forces.

An overlay makes its nodes when it is first shown. Those that are fixed to bodies hang on the bodies' nodes and cost
nothing while things move; closures and forces are drawn anew at each moment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.joints.directions import turn_z_to
from linkwise.mechanism.bodies_and_joints import Body
from linkwise.mechanism.closures.instances import ClosureInstance
from linkwise.model.model import Model
from linkwise.viz.figure import ModelFigure
from linkwise.viz.looks import outlines_of
from linkwise.viz.solids import Colour, sphere
from linkwise.viz.stage import add_arrows

if TYPE_CHECKING:
    import viser

    from linkwise.viz.markers import Touches

TURN: Colour = (210, 60, 60)
SLIDE: Colour = (60, 120, 220)
MASS: Colour = (240, 200, 40)
INERTIA: Colour = (150, 90, 190)
CONTACT: Colour = (60, 170, 90)
OPEN: Colour = (230, 30, 30)
SHUT: Colour = (40, 160, 90)
OTHER: Colour = (30, 110, 160)
OUTSIDE: Colour = (230, 120, 20)
HOLDING: Colour = (120, 60, 200)


@dataclass
class ShownState:
    """A state, and what acts in it; what is not known is None.

    Args:
        t: time, s.
        q: configuration (nq).
        v: velocity (nv).
        tau: joint forces (nv).
        f_ext: forces on bodies (n_bodies, 6), in their frames.
        p: run-time parameters of the model.
        touches: contact points that press.
    """

    t: float
    q: Array
    v: Array | None = None
    tau: Array | None = None
    f_ext: Array | None = None
    p: Array | None = None
    touches: Touches | None = None


class Overlay(ABC):
    """One kind of thing to be shown or hidden."""

    title: ClassVar[str]
    inside: ClassVar[bool] = False
    """Whether most of it is within bodies, and seen only through them."""

    def __init__(self, figure: ModelFigure) -> None:
        self.figure, self.model, self.size = figure, figure.model, figure.looks.size
        self.handles: list[viser.SceneNodeHandle] | None = None
        self.visible = False

    @classmethod
    def applies(cls, model: Model) -> bool:
        """Whether there is anything to show."""
        return True

    def show(self, visible: bool, moment: ShownState) -> None:
        """Show or hide it."""
        self.visible = visible
        if visible and self.handles is None:
            self.handles = self.made()
        for handle in self.handles or ():
            handle.visible = visible
        self.update(moment)

    def update(self, moment: ShownState) -> None:
        """Draw it as it is at a moment, if it is shown; nothing to do for what hangs on bodies."""
        return

    def redraw(self, points: Array) -> None:
        """Give the one node of an overlay other points (k, ...); without any it is hidden."""
        if self.handles:
            self.handles[0].visible = bool(len(points))
            if len(points):
                self.handles[0].points = points.astype(np.float32)

    @abstractmethod
    def made(self) -> list[viser.SceneNodeHandle]:
        """Nodes of the overlay."""

    def below(self, body: int, what: str) -> str:
        """A name for a node that hangs on a body's."""
        return f"{self.figure.name_of(body)}/{what}"


class JointAxes(Overlay):
    """Arrows along the axes that joints turn about (red) and slide along (blue)."""

    title = "joint axes"
    inside = True

    def made(self) -> list[viser.SceneNodeHandle]:
        return [
            add_arrows(self.figure.scene, self.below(body.index, "axes"), *arrows, 0.8 * self.size)
            for body in self.model.bodies
            if (arrows := joint_arrows(self.model, body, 0.12 * self.size)) is not None
        ]


def joint_arrows(model: Model, body: Body, length: float) -> tuple[Array, Array] | None:
    """Points (k, 2, 3) and colours (k, 3) of a joint's axes in its body's frame; None for a joint with all freedoms.

    Axes that a joint moves in its body (the first of a universal joint) are drawn as they are in the zero position.
    """
    joint = model.joints[body.index].type
    if joint.nv in (0, 6):
        return None
    about_z = np.eye(3) if joint.axis is None else turn_z_to(joint.axis)
    X = np.array(body.joint_frame)
    points, colours = [], []
    for column in joint.subspace(joint.neutral()):
        w, v = (np.array([float(a) for a in part], float) for part in (column.ang, column.lin))
        turns = bool(np.abs(w).max() > 0.0)
        direction = X[:3, :3] @ about_z @ (w if turns else v)
        d = length * direction / np.linalg.norm(direction)
        points.append([X[:3, 3] - 0.5 * d, X[:3, 3] + d] if turns else [X[:3, 3], X[:3, 3] + d])
        colours.append(TURN if turns else SLIDE)
    return np.array(points), np.array(colours, np.uint8)


class BodyAxes(Overlay):
    """The axes of each body's frame: x red, y green, z blue."""

    title = "body frames"
    inside = True

    def made(self) -> list[viser.SceneNodeHandle]:
        scene, length = self.figure.scene, 0.07 * self.size
        return [
            scene.add_frame(self.below(body.index, "frame"), axes_length=length, axes_radius=0.05 * length)
            for body in self.model.bodies
        ]


class MassCentres(Overlay):
    """A ball at each body's mass centre, larger for more mass."""

    title = "mass centres"
    inside = True

    def made(self) -> list[viser.SceneNodeHandle]:
        found = []
        heaviest = max((body.mass for body in self.model.bodies), default=1.0)
        for body in self.model.bodies:
            if body.mass > 0.0:
                ball = sphere(0.025 * self.size * max((body.mass / heaviest) ** (1 / 3), 0.2), 16)
                found.append(self.figure.add(self.below(body.index, "mass"), ball, color=MASS, position=body.com))
        return found


class Inertias(Overlay):
    """The homogeneous ellipsoid of each body's mass and inertia."""

    title = "inertia ellipsoids"

    def made(self) -> list[viser.SceneNodeHandle]:
        return [
            self.figure.add(self.below(k, "inertia"), solid, color=INERTIA, opacity=0.45)
            for k, solid in enumerate(self.figure.looks.ellipsoids)
            if solid is not None
        ]


class ContactShapes(Overlay):
    """The shapes that the file gives for contact."""

    title = "contact shapes"

    @classmethod
    def applies(cls, model: Model) -> bool:
        return any(body.collisions for body in model.bodies)

    def made(self) -> list[viser.SceneNodeHandle]:
        return [
            self.figure.add(self.below(k, f"contact{n}"), solid, color=CONTACT, wireframe=True)
            for k, solids in enumerate(outlines_of(self.model, self.size))
            for n, solid in enumerate(solids)
        ]


class BodyNames(Overlay):
    """The name of each body in its middle."""

    title = "names"

    def made(self) -> list[viser.SceneNodeHandle]:
        looks = self.figure.looks
        return [
            self.figure.scene.add_label(self.below(k, "name"), body.name, position=looks.middle(k))
            for k, body in enumerate(self.model.bodies)
        ]


class _Arrows(Overlay):
    """Arrows in the world that are drawn anew."""

    colour: ClassVar[Colour]
    weighs: ClassVar[float] = 0.33
    """Length of the arrow of a force like the weight of the whole, in sizes of the model."""
    scale = 1.0
    """Times that length."""

    @classmethod
    def of_newton(cls, model: Model, size: float) -> float:
        """Length of an arrow of one newton, m."""
        weight = model.mass * float(np.linalg.norm(model.gravity)) or model.mass * 9.81 or 1.0
        return cls.weighs * size / weight

    @property
    def metres_per_newton(self) -> float:
        """Length of an arrow of one newton, as it is drawn now."""
        return self.scale * self.of_newton(self.model, self.size)

    def made(self) -> list[viser.SceneNodeHandle]:
        nowhere = np.zeros((1, 2, 3), np.float32)
        return [add_arrows(self.figure.scene, f"{self.figure.root}/{self.title}", nowhere, self.colour, self.size)]

    def update(self, moment: ShownState) -> None:
        if not self.visible or not self.handles:
            return
        starts, ends = self.arrows(moment)
        keep = np.isfinite(ends).all(axis=-1) & (np.linalg.norm(ends - starts, axis=-1) > 1e-4 * self.size)
        self.redraw(np.stack([starts, ends], axis=1)[keep])

    @abstractmethod
    def arrows(self, moment: ShownState) -> tuple[Array, Array]:
        """Starts and ends (k, 3)."""


class OutsideForces(_Arrows):
    """Forces on bodies from outside: elements of a simulation, the mouse. On their lines of action."""

    title = "external forces"
    colour = OUTSIDE

    def arrows(self, moment: ShownState) -> tuple[Array, Array]:
        poses = self.figure.poses
        starts = poses[:, :3, 3]
        if moment.f_ext is None:
            return starts, starts
        wrenches = np.asarray(moment.f_ext)
        starts = starts + np.einsum("kij,kj->ki", poses[:, :3, :3], on_the_line(wrenches, self.size))
        forces = np.einsum("kij,kj->ki", poses[:, :3, :3], wrenches[:, 3:])
        return starts, starts + self.metres_per_newton * forces


def on_the_line(wrenches: Array, farthest: float) -> Array:
    """The points (k, 3) of the lines of action of wrenches (k, 6) that are nearest to the origin: f × n / f².

    Zero where a line is farther away than `farthest`, m: that is a couple, not a force.
    """
    n, f = wrenches[:, :3], wrenches[:, 3:]
    squares = np.einsum("ki,ki->k", f, f)[:, None]
    points = np.cross(f, n) / np.where(squares > 0.0, squares, 1.0)
    return np.where(np.linalg.norm(points, axis=1, keepdims=True) <= farthest, points, 0.0)


class ClosureForces(_Arrows):
    """Forces of closures on the body of their second frame."""

    title = "constraint forces"
    colour = HOLDING

    @classmethod
    def applies(cls, model: Model) -> bool:
        return any(isinstance(closure, ClosureInstance) for closure in model.closures)

    def arrows(self, moment: ShownState) -> tuple[Array, Array]:
        m = self.model
        v = np.zeros(m.nv) if moment.v is None else moment.v
        tau = np.zeros(m.nv) if moment.tau is None else moment.tau
        wrenches = m.constraint_forces(moment.q, v, tau, moment.f_ext, t=np.float64(moment.t), p=moment.p).wrenches
        starts, ends = [], []
        for closure, wrench in zip(m.closures, wrenches, strict=True):
            if isinstance(closure, ClosureInstance):
                X = frames_of(self.figure, closure, moment.q)[1]
                starts.append(X[:3, 3])
                ends.append(X[:3, 3] + self.metres_per_newton * (X[:3, :3] @ wrench[3:]))
        return np.array(starts), np.array(ends)


class ClosureFrames(Overlay):
    """The two frames that each closure ties together, and a red line between them where it is open."""

    title = "closures"
    inside = True

    @classmethod
    def applies(cls, model: Model) -> bool:
        return any(isinstance(closure, ClosureInstance) for closure in model.closures)

    def made(self) -> list[viser.SceneNodeHandle]:
        scene, root = self.figure.scene, f"{self.figure.root}/closures"
        self.tied = [closure for closure in self.model.closures if isinstance(closure, ClosureInstance)]
        self.balls = [self._ball(n, side) for n in range(len(self.tied)) for side in range(2)]
        self.lines = scene.add_line_segments(
            f"{root}/gaps", np.zeros((len(self.tied), 2, 3), np.float32), OPEN, thickness=0.008 * self.size
        )
        return [*self.balls, self.lines]

    def _ball(self, n: int, side: int) -> viser.MeshHandle:
        """Ball at one frame of a closure: it hangs on the body, so that it moves with it in every picture."""
        body, placement, _ = self.tied[n].sides[side]
        name = f"closure {n} {'ab'[side]}"
        name = f"{self.figure.root}/{name}" if body < 0 else self.below(body, name)
        ball = sphere(0.014 * self.size, 12)
        return self.figure.add(name, ball, color=(SHUT, OTHER)[side], position=np.array(placement)[:3, 3])

    def update(self, moment: ShownState) -> None:
        if not self.visible or not self.handles:
            return
        ends = np.array([[X[:3, 3] for X in frames_of(self.figure, c, moment.q)] for c in self.tied])
        self.lines.points = ends.astype(np.float32)
        for n, closure in enumerate(self.tied):  # what is tied to a node moves in its body
            for side, (body, _, node) in enumerate(closure.sides):
                if body >= 0 and node:
                    X = self.figure.poses[body]
                    self.balls[2 * n + side].position = X[:3, :3].T @ (ends[n, side] - X[:3, 3])


def frames_of(figure: ModelFigure, closure: ClosureInstance, q: Array) -> tuple[Array, Array]:
    """The poses of a closure's two frames, as drawn."""
    q = figure.drawn(q)
    found = []
    for body, placement, node in closure.sides:
        X = np.eye(4) if body < 0 else figure.poses[body]
        flexible = None if body < 0 else figure.model.bodies[body].flexible
        if flexible is not None and node:
            key: Any = flexible.nodes[node].key
            X = figure.model.pose(q, figure.model.bodies[body].name, node=key)
        found.append(X @ np.array(placement))
    return found[0], found[1]


OVERLAYS: tuple[type[Overlay], ...] = (
    JointAxes,
    BodyAxes,
    MassCentres,
    Inertias,
    ContactShapes,
    BodyNames,
    ClosureFrames,
    OutsideForces,
    ClosureForces,
)
