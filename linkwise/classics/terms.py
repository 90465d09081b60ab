"""Terms that several methods share: of velocities, of an eliminated joint, of closed loops, about mass centres.

Velocity-dependent terms come in the two meanings of "acceleration". Jain 1991 takes the rate of [ω; v] in the inertial
frame: α = φ*α(parent) + H*β' + a, f = Mα + b (eq. 13-16). Featherstone 2000 takes Featherstone's spatial acceleration:
a = a(parent) + hq̈ + ḣq̇, f = Ia + v ×* Iv (eq. 4, 5). A method uses the one or the other, never both. In either a base
at rest in a field of gravity accelerates upwards.

One joint eliminated from an articulated body: D, G, τ̄ and P⁺ of Jain 1991 eq. 33, 39 and 41.

Rotor inertias stand beside HPH* in D, where a filter has the covariance of its measurement noise.

Equations of closed loops on the bodies' accelerations, for the algorithms that treat bodies before joints.

A closure asks J_c v̇ = -bias; its forces λ act on the links as F λ, so that J_c v̇ = Σ F*(a - a₀), a the links' spatial
accelerations and a₀ those for v̇ = 0 (Featherstone 2000 eq. 15-17, Rodriguez 1989 eq. 2.16).

Links seen from their mass centres: the reference points of Saha 1999, where M = diag(I, m).

Two ways: a tree whose link frames sit at the mass centres (link axes, for the recursions), and every link in the axes
of the root (for the explicit matrices, in which B = [[1, 0], [c~, 1]]).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.equations import Constraint, equations
from linkwise.algorithms.factors import factorize
from linkwise.algorithms.kinematics import Placed, at_rest, combination, next_motion
from linkwise.algorithms.sweeps import Field, each, outward
from linkwise.classics.requirements import own_mass
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia, coordinate_axis
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, is_zero
from linkwise.spatial.transforms import Rotation, Shift, Transform
from linkwise.spatial.vectors import Force, Motion, Vec, weighted_sum


@dataclass(frozen=True, slots=True)
class Terms:
    """ω of a link, its Coriolis and centrifugal acceleration a and its gyroscopic force b."""

    omega: Vec
    a: Motion
    b: Force


def velocity_terms(tree: Tree, q: Flat, v: Flat) -> Field[Terms]:
    """a and b of Jain 1991 eq. 14 and 16 for every link, in its axes."""

    def step(link: Link, parent: Terms) -> Terms:
        alone = next_motion(link, RigidMotion(parent.omega, Vec.zero(), Vec.zero()), q, v, None)
        a = Motion(alone.omega_dot, alone.a)
        return Terms(alone.omega, a, link.inertia.wrench(RigidMotion(alone.omega, Vec.zero(), Vec.zero())))

    return outward(tree, step, Terms(Vec.zero(), Motion.zero(), Force.zero()))


@dataclass(frozen=True, slots=True)
class SpatialTerms:
    """Velocity v, velocity-product acceleration c = ḣq̇ and bias force p = v ×* Iv (Featherstone 2000 eq. 13)."""

    v: Motion
    c: Motion
    p: Force


def spatial_terms(tree: Tree, q: Flat, v: Flat) -> Field[SpatialTerms]:
    """v, c and p of Featherstone 2000 §3 for every link, in its axes at its origin."""

    def step(link: Link, parent: SpatialTerms) -> SpatialTerms:
        joint = combination(link.S(q), link.rates(v))
        V = link.phi(q).T @ parent.v + joint
        return SpatialTerms(V, V.cross(joint) + link.S_rate(q, v), V.cross_force(link.inertia @ V))

    return outward(tree, step, SpatialTerms(Motion.zero(), Motion.zero(), Force.zero()))


def base_acceleration(tree: Tree) -> Motion:
    """Of a base at rest in the field of gravity."""
    return Motion(Vec.zero(), -tree.gravity)


def gravity_in_links(tree: Tree, q: Flat) -> Field[Vec]:
    """The vector of gravity in the axes of every link."""
    return outward(tree, lambda link, parent: link.phi(q).rotate_back(parent), tree.gravity)


def remainder_forces(tree: Tree, q: Flat, v: Flat) -> Field[Force]:
    """Mα + b of every link when no joint accelerates, gravity included."""
    motion = outward(tree, lambda link, parent: next_motion(link, parent, q, v, None), at_rest(tree.gravity))
    return each(tree, lambda link: link.inertia.wrench(motion[link]))


@dataclass(frozen=True, slots=True)
class Eliminated:
    """Articulated inertia of a link that is left when its joint gives way."""

    S: tuple[Motion, ...]
    """H*, column by column."""
    D: Matrix
    D_inverse: Matrix
    U: list[Force]
    """PH*, column by column."""
    G: list[Force]
    """PH*D⁻¹, column by column."""
    P_plus: ArticulatedInertia
    """P⁺ = τ̄P = P - GHP."""

    def H(self, f: Force) -> list[Scalar]:
        """H f."""
        return [s.dot(f) for s in self.S]

    def H_star(self, x: Flat) -> Motion:
        """H* x."""
        return combination(self.S, x)

    def apply_D_inverse(self, x: Flat) -> list[Scalar]:
        """D⁻¹ x."""
        return [dot(row, x) for row in self.D_inverse]

    def apply_G(self, x: Flat) -> Force:
        """G x."""
        return weighted_sum(self.G, x, Force.zero())

    def apply_G_star(self, alpha: Motion) -> list[Scalar]:
        """G* α."""
        return [alpha.dot(g) for g in self.G]


def eliminate(P: ArticulatedInertia, S: tuple[Motion, ...], armature: Flat) -> Eliminated:
    """D = HPH* (+ rotors), G = PH*D⁻¹, P⁺ = P - G(PH*)*."""
    U = [P @ s for s in S]
    D = [[s.dot(u) if i <= j else 0.0 for j, u in enumerate(U)] for i, s in enumerate(S)]
    for i in range(len(S)):
        D[i][i] = D[i][i] + armature[i]
        for j in range(i):
            D[i][j] = D[j][i]
    D_inverse = [[1.0 / D[0][0]]] if len(S) == 1 else factorize(D).inverse()
    G = [weighted_sum(U, column, Force.zero()) for column in zip(*D_inverse, strict=True)]
    # P⁺H* = 0 (eq. 38): where H* is made of coordinate directions, the zeros are known.
    free = [coordinate_axis(s) for s in S]
    dead = {i for i in free if i is not None} if None not in free and all(map(is_zero, armature)) else set()
    return Eliminated(S, D, D_inverse, U, G, _less(P, U, G, dead))


def _less(P: ArticulatedInertia, U: list[Force], G: list[Force], dead: set[int]) -> ArticulatedInertia:
    def left(i: int, j: int, entry: Scalar) -> Scalar:
        if i in dead or j in dead:
            return 0.0
        for u, g in zip(U, G, strict=True):
            entry = entry - u[i] * g[j]
        return entry

    J, B, M = P.J.m, P.B.m, P.M.m
    return ArticulatedInertia(
        Sym3.build_symmetric(lambda i, j: left(i, j, J[i][j])),
        Mat3.build(lambda i, j: left(i, j + 3, B[i][j])),
        Sym3.build_symmetric(lambda i, j: left(i + 3, j + 3, M[i][j])),
    )


@dataclass(frozen=True)
class Loop:
    """Σ F*a = u, m equations."""

    forces: dict[int, list[Force]]
    """On each link by its index, one force for each equation."""
    u: list[Scalar]


def loops(tree: Tree, q: Flat, v: Flat, terms: Field[SpatialTerms], constraints: Sequence[Constraint]) -> list[Loop]:
    """One for each closure between two bodies, or a body and the world."""

    def coast(link: Link, parent: Motion) -> Motion:
        return link.phi(q).T @ parent + terms[link].c

    coasting = outward(tree, coast, base_acceleration(tree))
    found = []
    for e in equations(tree, q, v, constraints)[0]:
        if e.efforts:
            raise InputError(
                "closures of these methods are between bodies",
                got="a relation between joints",
                do="use model.forward_dynamics, which takes it",
            )
        forces: dict[int, list[Force]] = {}
        u = [-x for x in e.bias]
        for link, own in e.forces:
            known = forces.get(link.index)
            forces[link.index] = own if known is None else [a + b for a, b in zip(known, own, strict=True)]
            u = [x + coasting[link].dot(f) for x, f in zip(u, own, strict=True)]
        found.append(Loop(forces, u))
    return found


def at_mass_centres(tree: Tree, method: str) -> Tree:
    """The same mechanism with every link's frame moved to its mass centre."""
    own_mass(tree, method)
    centre = [link.inertia.h * (1.0 / link.inertia.m) for link in tree]

    def moved(link: Link) -> Link:
        p = centre[link.index]
        inner = Transform() if link.parent < 0 else Transform(Shift(-centre[link.parent]))
        inertia = Shift(-p).rigid_in(link.inertia)
        return replace(
            link,
            placement=inner.then(link.placement),
            tail=link.tail.then(Transform(Shift(p))),
            inertia=RigidInertia(inertia.m, Vec.zero(), inertia.J),
            to_body=Transform(Shift(-p)).then(link.to_body),
        )

    return replace(tree, links=tuple(moved(link) for link in tree))


@dataclass(frozen=True, slots=True)
class CentredBody:
    """A link at its mass centre C in the axes of the root: columns p of its joint, inertia I about C, twist t."""

    C: Vec
    p: tuple[Motion, ...]
    M: RigidInertia
    t: Motion

    def twist_from(self, other: CentredBody, t: Motion) -> Motion:
        """B t: the twist of ``other`` carried to this body, B = [[1, 0], [c~, 1]], c from this C to the other's."""
        return Motion(t.ang, t.lin + (other.C - self.C).cross(t.ang))


def in_root_axes(tree: Tree, q: Flat, v: Flat, method: str) -> Field[CentredBody]:
    """Every link of the tree as a :class:`CentredBody`."""
    centred = at_mass_centres(tree, method)
    frames = outward(centred, lambda link, parent: link.phi(q).carry(parent), Placed(Mat3.identity(), Vec.zero()))

    def step(link: Link, parent: CentredBody | None) -> CentredBody:
        R, C = frames[link].R, frames[link].p
        p = tuple(Motion(R @ s.ang, R @ s.lin) for s in link.S(q))
        t = Motion.zero() if parent is None else Motion(parent.t.ang, parent.t.lin + (parent.C - C).cross(parent.t.ang))
        for column, rate in zip(p, link.rates(v), strict=True):
            t = t + column * rate
        return CentredBody(C, p, Rotation(R).rigid_in(link.inertia), t)

    return outward(centred, step, None)
