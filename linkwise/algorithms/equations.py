"""The equations of all constraints at one state: residuals, their rates, and the pulls J_c* of their multipliers.

From the residual texts alone (:mod:`linkwise.mechanism.closures.constraint`): dual numbers along unit twists or joint
axes give the rows of J_c, dual numbers along the motion give ė and the part of ë without v̇. Nothing is differentiated
by hand.

How one place moves relative to another, pose, twist and acceleration, is a motion in time near this instant. Whatever
is said of two frames (that they coincide, that one turns about the other's axis, that their distance is fixed) is a
function of this relative motion. Followed along it by dual numbers, such a function gives its own rates.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.kinematics import Place, Placed, at_rest, next_motion, placed, velocities
from linkwise.algorithms.link_variation import tangent_direction
from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.sweeps import Field, only_at, outward
from linkwise.dataclass import dataclass, field
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.constraint import Closure
from linkwise.mechanism.closures.instances import RelationInstance
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.dual import Dual, derivative, new_level, parts_of_level
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.transforms import Rotation, Shift, Transform
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True)
class Between:
    """A closure between two places of a tree."""

    type: Closure
    a: Place
    b: Place


Constraint = Between | RelationInstance


@dataclass
class Equations:
    """Equations between places first, then those between rates, of one constraint or of several in a row."""

    residual: list[Scalar] = field(default_factory=list)
    """e, of the equations between places."""
    rate: list[Scalar] = field(default_factory=list)
    """ė of those, and the residual of those between rates: zero on a motion that obeys."""
    bias: list[Scalar] = field(default_factory=list)
    """Second derivative (the first, of rates) for v̇ = 0: J_c v̇ = -bias."""
    forces: list[tuple[Link, list[Force]]] = field(default_factory=list)
    """On links, one force for each equation."""
    efforts: list[tuple[Link, Matrix]] = field(default_factory=list)
    """On joints, for each axis one number for each equation."""
    wrenches: list[Force] = field(default_factory=list)
    """On frame b, at its origin and in its axes, one for each equation; zero for relations of joints."""
    points: list[tuple[Place, list[Force]]] = field(default_factory=list)
    """On frames that move, at their origins and in their axes, one force for each equation."""

    @property
    def count(self) -> int:
        """Number of equations."""
        return len(self.rate)


def equations(
    tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar = 0.0, *, closed: bool = False
) -> tuple[list[Equations], Pulls]:
    """The equations of each constraint, and the pulls of all of them together.

    ``closed``: only what accelerations obey in a closed state is asked for: turns are told by their sines, and of
    equations that join two origins there is no residual and no rate.
    """
    motions = LinkMotions(tree, q, v)
    each = [
        _between(motions, c, t, closed) if isinstance(c, Between) else _of_joints(tree, q, v, c, t) for c in constraints
    ]
    return each, _pulls(tree, each)


def _pulls(tree: Tree, each: Sequence[Equations]) -> Pulls:
    """All pulls side by side."""
    count = sum(e.count for e in each)
    still = Force.zero()
    forces: dict[int, list[Force]] = {}
    efforts: dict[int, Matrix] = {}
    most = max((len(axes) for e in each for _, axes in e.efforts), default=0)
    start = 0
    for e in each:
        for link, own in e.forces:
            row = forces.setdefault(link.index, [still] * count)
            for k, force in enumerate(own, start):
                row[k] = force if row[k] is still else row[k] + force
        named: set[int] = set()
        for link, axes in e.efforts:
            wide = efforts.setdefault(link.index, [[0.0] * count for _ in range(most)])
            again = link.index in named  # a relation may name a joint more than once
            named.add(link.index)
            for row_of_axis, axis in zip(wide, axes, strict=False):
                for k, effort in enumerate(axis, start):
                    row_of_axis[k] = row_of_axis[k] + effort if again else effort
        start += e.count
    on_links = [(tree.links[index], tuple(row)) for index, row in forces.items()]
    on_axes = [(tree.links[index], wide) for index, wide in efforts.items()]
    return Pulls(
        count,
        [only_at(tree, on_links, (still,) * count)] if on_links else [],
        [only_at(tree, on_axes, [[0.0] * count for _ in range(most)])] if on_axes else [],
    )


def _between(motions: LinkMotions, closure: Between, t: Scalar, closed: bool) -> Equations:
    joined = closed and closure.type.joins_origins
    X = relative_motion(motions.of(closure.a), motions.of(closure.b), joined=joined)
    residual, rate, bias = _in_time(closure.type, X, t, closed)
    on_b, on_a = _rows(closure.type, X, t, closed)
    made = Equations(residual, rate, bias, wrenches=on_b)
    for place, own in ((closure.b, on_b), (closure.a, on_a)):
        if place.link is not None:
            made.points.append((place, own))
            made.forces.append((place.link, [place.phi(motions.q) @ f for f in own]))
    return made


def _in_time(
    closure: Closure, X: RelativeMotion, t: Scalar, closed: bool
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """e; ė and the rates' residuals; ë and their rates: along the motion with v̇ = 0."""
    first, second = new_level(), new_level()
    R, p, V, s = X.in_time(first, second)
    pose = RelativePose(R, p, closed=closed)
    value, slope = parts_of_level(closure.residual(pose, t + s), second)
    e, e_dot = parts_of_level(value, first)
    _, e_ddot = parts_of_level(slope, first)
    g, g_slope = parts_of_level(closure.rate_residual(pose, V, t + s), second)
    rates, _ = parts_of_level(g, first)
    rates_dot, _ = parts_of_level(g_slope, first)
    return e, [*e_dot, *rates], [*e_ddot, *rates_dot]


def _rows(closure: Closure, X: RelativeMotion, t: Scalar, closed: bool) -> tuple[list[Force], list[Force]]:
    """For each equation the forces on b and on a, at their origins and in their axes, whose power is its rate.

    Equations between places speak in a's axes, those between rates in b's: there most of a row's numbers are constant.
    """
    places: Matrix = []
    rates: Matrix = []
    still = RelativePose(X.R, X.p, closed=closed)
    for i in range(6):
        level = new_level()
        displaced = RelativePose(*X.displaced(i, level), closed=closed)
        places.append(parts_of_level(closure.residual(displaced, t), level)[1])
        level = new_level()
        V = Motion.of([Dual(x, 1.0 if i == j else 0.0, level) for j, x in enumerate(X.V)])
        rates.append(parts_of_level(closure.rate_residual(still, V, t), level)[1])
    back, turn, shift = Rotation(X.R.T), Rotation(X.R), Shift(X.p)
    in_a = [Force.of(row) for row in zip(*places, strict=True)]
    in_b = [Force.of(row) for row in zip(*rates, strict=True)]
    on_b = [*(back.force_in(row) for row in in_a), *in_b]
    return on_b, [-shift.force_in(row) for row in (*in_a, *map(turn.force_in, in_b))]


def _of_joints(tree: Tree, q: Flat, v: Flat, relation: RelationInstance, t: Scalar) -> Equations:
    links = joints_of(tree, relation)
    first, second = new_level(), new_level()
    s = Dual(Dual(0.0, 1.0, first), 1.0, second)
    own, rates, moving = [], [], []
    for _, part in links:
        own.append(part.coordinates(q))
        rates.append(part.rates(v))
        moving += _in_time_of(part, own[-1], rates[-1], s)
    flat_rates = [x for part in rates for x in part]
    value, slope = parts_of_level(relation.type.residual(moving, t + s), second)
    e, e_dot = parts_of_level(value, first)
    _, e_ddot = parts_of_level(slope, first)
    g, g_slope = parts_of_level(relation.type.rate_residual(moving, flat_rates, t + s), second)
    made = Equations(e, [*e_dot, *parts_of_level(g, first)[0]], [*e_ddot, *parts_of_level(g_slope, first)[0]])
    made.wrenches = [Force.zero()] * made.count
    for k, (link, part) in enumerate(links):
        axes = [_along_axis(relation, own, rates, t, k, i, tangent_direction(part, q, i)) for i in range(part.joint.nv)]
        still = [[0.0] * made.count] * (link.joint.nv - part.joint.nv)  # its modes, if the relation is not about them
        made.efforts.append((link, [*still, *axes]))
    return made


def joints_of(tree: Tree, relation: RelationInstance) -> list[tuple[Link, Link]]:
    """The links that a relation speaks of, each with what of it is meant: its joint.

    If the relation is about the whole of q, all links with coordinates of their own, modes included.
    """
    if relation.joints is not None:
        return [(tree.links[k], tree.links[k].hinge) for k in relation.joints]
    own = sorted((link for link in tree.links if not link.is_mimic), key=lambda link: link.q_start)
    return [(link, link) for link in own]


def _in_time_of(link: Link, own: Flat, rates: Flat, s: Scalar) -> list[Scalar]:
    """A joint's coordinates as functions of the time s elapsed, for v̇ = 0."""
    q_dot = link.joint.rate(own, rates)
    _, q_ddot = derivative(lambda x: link.joint.rate(x, rates), own, q_dot)
    half = s * s * 0.5
    return [x + s * a + half * b for x, a, b in zip(own, q_dot, q_ddot, strict=True)]


def _along_axis(
    relation: RelationInstance,
    own: Sequence[Flat],
    rates: Sequence[Flat],
    t: Scalar,
    which: int,
    axis: int,
    direction: Flat,
) -> list[Scalar]:
    """The derivative of each equation along one axis of one of its joints."""

    def moved(parts: Sequence[Flat], tangents: Flat, level: int) -> list[Scalar]:
        changed = [Dual(x, d, level) for x, d in zip(parts[which], tangents, strict=True)]
        return [x for k, part in enumerate(parts) for x in (changed if k == which else part)]

    level = new_level()
    _, of_places = parts_of_level(relation.type.residual(moved(own, direction, level), t), level)
    level = new_level()
    unit = [1.0 if axis == j else 0.0 for j in range(len(rates[which]))]
    flat_own = [x for part in own for x in part]
    _, of_rates = parts_of_level(relation.type.rate_residual(flat_own, moved(rates, unit, level), t), level)
    return [*of_places, *of_rates]


@dataclass(frozen=True)
class PlaceMotion:
    """Pose and motion of a place, in its own axes; accelerations are those of v̇ = 0."""

    frame: Placed
    V: Motion
    motion: RigidMotion


class LinkMotions:
    """Poses and motions of all links; what is not asked for is never computed."""

    def __init__(self, tree: Tree, q: Flat, v: Flat) -> None:
        self.tree, self.q = tree, q
        self.frames: Field[Placed] = placed(tree, q)
        self.V: Field[Motion] = velocities(tree, q, v)
        rest = at_rest(tree.gravity)  # as in the forward dynamics itself; two places feel the same gravity
        self.motion: Field[RigidMotion] = outward(
            tree, lambda link, parent: next_motion(link, parent, q, v, None), rest
        )

    def of(self, place: Place) -> PlaceMotion:
        """The motion of a place on a link, or on the world."""
        frame = place.within(self.frames, self.q)
        if place.link is None:
            a = place.offset.rotate_back(-self.tree.root.rotate(self.tree.gravity))
            return PlaceMotion(frame, Motion.zero(), RigidMotion(Vec.zero(), Vec.zero(), a))
        phi = place.phi(self.q)
        motion: RigidMotion = phi.carry(self.motion[place.link])
        return PlaceMotion(frame, phi.T @ self.V[place.link], motion)


@dataclass(frozen=True)
class RelativeMotion:
    """Frame b seen from frame a: R and p, b's twist V in its own axes, and the rates of R, p and V for v̇ = 0."""

    R: Mat3
    p: Vec
    V: Motion
    R_ddot: Mat3
    p_dot: Vec
    p_ddot: Vec
    V_dot: Motion

    @property
    def phi(self) -> Transform:
        """φ(a, b)."""
        return Transform.rigid(self.R, self.p)

    @property
    def R_dot(self) -> Mat3:
        """R ω~."""
        return self.R.times(Mat3.cross(self.V.ang))

    def displaced(self, twist: int, level: int) -> tuple[Mat3, Vec]:
        """R and p as dual numbers along a unit twist of b, at its origin and in the axes of a."""
        xi = Motion.unit(twist)
        return _dual_matrix(self.R, Mat3.cross(xi.ang).times(self.R), level), _dual_vec(self.p, xi.lin, level)

    def in_time(self, first: int, second: int) -> tuple[Mat3, Vec, Motion, Scalar]:
        """R, p, V and the time elapsed as dual numbers of two levels: two rates come along (one, for V)."""
        s = Dual(Dual(0.0, 1.0, first), 1.0, second)
        half = s * s * 0.5
        R = Mat3.build(lambda i, j: self.R.m[i][j] + s * self.R_dot.m[i][j] + half * self.R_ddot.m[i][j])
        p = Vec.of([x + s * v + half * a for x, v, a in zip(self.p, self.p_dot, self.p_ddot, strict=True)])
        V = Motion.of([x + s * a for x, a in zip(self.V, self.V_dot, strict=True)])
        return R, p, V, s


def relative_motion(a: PlaceMotion, b: PlaceMotion, *, joined: bool = False) -> RelativeMotion:
    """Of b as seen from a.

    ``joined``: the origins are to coincide, and p̈ is the difference of their accelerations in the inertial frame, in
    a's axes. That it vanishes says the same as that the second derivative of p does, without p and ṗ; off the closed
    configurations too, where it speaks of the distance in inertial axes instead of those of a.
    """
    R_a, R_b = a.frame.R, b.frame.R
    R = R_a.T.times(R_b)
    p = Vec.zero() if joined else R_a.transpose_times(b.frame.p - a.frame.p)
    omega_a = R.transpose_times(a.V.ang)  # in b's axes
    omega = b.V.ang - omega_a
    omega_dot = b.motion.omega_dot - R.transpose_times(a.motion.omega_dot) + omega.cross(omega_a)
    p_dot = Vec.zero() if joined else R @ b.V.lin - a.V.lin - a.V.ang.cross(p)
    p_ddot = R @ b.motion.a - a.motion.shifted(p).a - (a.V.ang * 2.0).cross(p_dot)
    lin = R.transpose_times(p_dot)
    V_dot = Motion(omega_dot, R.transpose_times(p_ddot) - omega.cross(lin))
    E = RigidMotion(omega, omega_dot, Vec.zero()).E
    return RelativeMotion(R, p, Motion(omega, lin), R.times(E), p_dot, p_ddot, V_dot)


def _dual_vec(x: Vec, tangent: Vec, level: int) -> Vec:
    return Vec.of([Dual(a, d, level) for a, d in zip(x, tangent, strict=True)])


def _dual_matrix(x: Mat3, tangent: Mat3, level: int) -> Mat3:
    return Mat3.build(lambda i, j: Dual(x.m[i][j], tangent.m[i][j], level))
