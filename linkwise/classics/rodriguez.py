"""Rodriguez 1987: forward dynamics as a Kalman filter (inward) and a Bryson-Frazier smoother (outward). O(n).

Jain 1991 §5, §6. The spatial forces are the state of a linear process driven by white noise of covariance M, with
transition φ and observation H, observed as T: 𝓜 = HφMφ*H* is the covariance of the observations. Then z is the
one-step prediction of the state, P its error covariance (the Riccati equation 42), K the predictor gain, ψ the
filter's transition, ε the innovations, D their covariance, and the smoother's co-state is the spatial acceleration:

    filter, inward      z(p) = Σ ψ(p,k) z(k) + K(p,k) T(k) + …,   P(p) = Σ ψPψ* + M
    smoother, outward   λ(k) = ψ*(p,k) λ(p) + H* D⁻¹ε + …,        β'(k) = D⁻¹ε(k) - K*(p,k) λ(p)
    smoothed state      f(k) = z(k) + P(k) λ(k)

A rotor is noise of the measurement: its inertia J stands beside HPH* in D and as KJK* in the covariance. Known inputs
b and Pa (lemma 6.5) carry the velocities: what λ leaves out of α is the joint's own a. Trees, all joints.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.requirements import no_mimics
from linkwise.classics.terms import Eliminated, base_acceleration, eliminate, velocity_terms
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.scalar import Flat, Scalar, minus
from linkwise.spatial.vectors import Force, Motion, weighted_sum


@dataclass(frozen=True)
class Prediction:
    """z and P, for the state before its own observation is used."""

    z: Force
    P: ArticulatedInertia

    def __add__(self, other: Prediction) -> Prediction:
        return Prediction(self.z + other.z, self.P + other.P)


@dataclass(frozen=True, slots=True)
class Filtered:
    """One step of the filter: the prediction, the innovation by its covariance D⁻¹ε, and the gain K(parent, k)."""

    prediction: Prediction
    gains: Eliminated
    nu: list[Scalar]
    K: list[Force]

    def psi_star(self, link: Link, q: Flat, co_state: Motion) -> Motion:
        """ψ*(parent, k) λ = (I - H*G*) φ* λ."""
        moved = link.phi(q).T @ co_state
        return moved - self.gains.H_star(self.gains.apply_G_star(moved))

    def K_star(self, co_state: Motion) -> list[Scalar]:
        """K*(parent, k) λ(parent)."""
        return [co_state.dot(k) for k in self.K]


class Smoothed(NamedTuple):
    """Accelerations v̇, and the smoothed states: the spatial force f(k) through every joint, in its link's axes."""

    vdot: list[Scalar]
    f: list[Force]


def kalman_filter(tree: Tree, q: Flat, v: Flat, tau: Flat) -> Field[Filtered]:
    """From the tips to the base."""
    terms = velocity_terms(tree, q, v)

    def step(link: Link, predicted: Prediction) -> tuple[Prediction, Filtered]:
        phi, T = link.phi(q), link.rates(tau)
        P = predicted.P + link.inertia.articulated()
        z = predicted.z + P @ terms[link].a + terms[link].b
        gains = eliminate(P, link.S(q), link.armature)
        K = [phi @ g for g in gains.G]
        eps = minus(T, gains.H(z))
        # ψz + KT = φ(z - GHz) + KT
        next_z = phi @ (z - gains.apply_G(gains.H(z))) + weighted_sum(K, T, Force.zero())
        filtered = Filtered(Prediction(z, P), gains, gains.apply_D_inverse(eps), K)
        return Prediction(next_z, phi.congruence(gains.P_plus)), filtered

    return inward(tree, step, Prediction(Force.zero(), ArticulatedInertia.zero()))


def smooth(tree: Tree, q: Flat, v: Flat, tau: Flat) -> Smoothed:
    """From the base to the tips, on what the filter left."""
    no_mimics(tree, "Rodriguez")
    filtered = kalman_filter(tree, q, v, tau)
    terms = velocity_terms(tree, q, v)

    def step(link: Link, parent: tuple[Motion, list[Scalar], Force]) -> tuple[Motion, list[Scalar], Force]:
        here, co_state = filtered[link], parent[0]
        vdot = minus(here.nu, here.K_star(co_state))
        relative = here.psi_star(link, q, co_state) + here.gains.H_star(here.nu)
        f = here.prediction.z + here.prediction.P @ relative
        return relative + terms[link].a, vdot, f

    states = outward(tree, step, (base_acceleration(tree), [], Force.zero())).values
    return Smoothed(tree.generalized(Field([vdot for _, vdot, _ in states])), [f for _, _, f in states])


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ of the smoother."""
    return smooth(tree, q, v, tau).vdot
