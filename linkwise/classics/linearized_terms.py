"""Terms that the six algorithms of Jain 1993 share: links referred to one inertially fixed point (Jain 1993 §2, (3.4)).

There φ has identities for blocks, so that velocities, accelerations, forces and composite inertias are plain sums.

DIFFERS FROM PAPER: gravity enters as an acceleration of the base; the links are numbered base to tip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms.kinematics import Placed
from linkwise.classics.requirements import joint_types, no_armature, no_mimics, serial
from linkwise.joints import Revolute
from linkwise.mechanism.tree import Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec


class MHat:
    """M̂ = ½(Ṁ - Q[MV]) = [[A, 0], [-c~, 0]] with M̂V = ṀV (2.7), or a sum of such.

    DIFFERS FROM PAPER: algorithm 1 prints A = ω~(½ tr(J) 1 - J) - m p~u~; (2.7) holds with ω~(J - ½ tr(J) 1) - m p~u~.
    """

    __slots__ = ("A", "c")

    def __init__(self, A: Mat3, c: Vec) -> None:
        self.A = A
        self.c = c

    @classmethod
    def of(cls, M: RigidInertia, V: Motion) -> MHat:
        """Of one link."""
        half = sum(M.J.m[i][i] for i in range(3)) * 0.5
        less = Mat3.build(lambda i, j: M.J.m[i][j] - half if i == j else M.J.m[i][j])
        turning = Mat3([list(V.ang.cross(less.column(j))) for j in range(3)]).T
        h, u = M.h, V.lin
        along = h.dot(u)
        A = Mat3.build(lambda i, j: turning.m[i][j] - u[i] * h[j] + (along if i == j else 0.0))
        return cls(A, u * M.m + V.ang.cross(h))

    def __add__(self, other: MHat) -> MHat:
        return MHat(self.A + other.A, self.c + other.c)

    def __matmul__(self, y: Motion) -> Force:
        return Force(self.A @ y.ang, y.ang.cross(self.c))

    def transposed(self, y: Motion) -> Vec:
        """M̂* y: a couple, the linear part is zero."""
        return self.A.transpose_times(y.ang) + self.c.cross(y.lin)

    def columns(self) -> tuple[Force, Force, Force]:
        """The three columns that are not zero."""
        x, y, z = (Force(self.A.column(i), Vec.unit(i).cross(self.c)) for i in range(3))
        return x, y, z


@dataclass(frozen=True, slots=True)
class Referred:
    """One link about the inertial point: H*, Ḣ*, Ḧ*, V, α, M and M̂."""

    H: Motion
    H_dot: Motion
    H_ddot: Motion
    V: Motion
    alpha: Motion
    M: RigidInertia
    M_hat: MHat


def referred(tree: Tree, q: Flat, v: Flat, vdot: Flat, method: str) -> list[Referred]:
    """The base-to-tip recursion (3.4), for a serial chain of hinges."""
    no_mimics(tree, method)
    serial(tree, method)
    joint_types(tree, method, [Revolute])
    no_armature(tree, method)
    frame = Placed(Mat3.identity(), Vec.zero())
    V, alpha = Motion.zero(), Motion(Vec.zero(), -tree.gravity)
    links = []
    for link in tree:
        frame = link.phi(q).carry(frame)
        (s,) = link.S(q)
        axis = frame.R @ s.ang
        H = Motion(axis, frame.p.cross(axis))
        (rate,), (acceleration,) = link.rates(v), link.rates(vdot)
        V = V + H * rate
        H_dot = V.cross(H)  # (2.13)
        alpha = alpha + H * acceleration + H_dot * rate
        H_ddot = alpha.cross(H) + V.cross(H_dot)
        M = Transform.rigid(frame.R, frame.p).congruence(link.inertia)
        links.append(Referred(H, H_dot, H_ddot, V, alpha, M, MHat.of(M, V)))
    return links


def outboard_forces(links: Sequence[Referred]) -> list[Force]:
    """f(k), the force across every hinge: f(k) = f(k-1) + M(k)α(k) + M̂(k)V(k) (2.9)."""
    forces: list[Force] = []
    f = Force.zero()
    for k in reversed(links):
        f = f + k.M @ k.alpha + k.M_hat @ k.V
        forces.append(f)
    return forces[::-1]


def tilde_H_f(k: Referred, f: Force) -> Force:
    """H̃f: S[H*] f.

    DIFFERS FROM PAPER: (2.14) defines H̃ = S*[H*]; the proof of lemma 3.1 (A.13) has -Q[f]H* = S[H*]f here.
    """
    return k.H.cross_force(f)
