"""The modal integrals: what a deformable body's inertia needs, as polynomials in the modal coordinates.

A particle at x⁰ (from the root node, in root axes) is carried by the modal coordinates η to

    x(η) = x⁰ + Γ(x⁰) η + ½ η* Q(x⁰) η,

with Γ 3×m the shapes and Q 3×m×m, symmetric in its last two, the second-order part (foreshortening). With V = [ω; v] the
motion of the root frame, the particle moves by v + ω×x + (Γ + η*Q) η̇, and the kinetic energy is

    T(η, η̇, V) = ½ η̇*Me η̇ + ω*A(η) η̇ + v*P(η) η̇ + ½ ω*J(η) ω + v·(ω×h(η)) + ½ m v·v

    h(η) = h0 + h1 η + ½ η*h2 η        first moment ∫x dm
    P(η) = h1 + h2 η                   ∂h/∂η
    J(η) = J0 + J1 η + ½ η*J2 η        second moments about the root, ∫(|x|² 1 - x x*) dm
    A(η) = A0 + A1 η                   ∫ x × ∂x/∂η dm: column i is A0[:, i] + Σⱼ A1[:, i, j] ηⱼ
    Me                                 modal masses ∫Γ*Γ dm

**Orders.** T is complete to second order in η and η̇ together, for any V. So the equations of motion are complete to first
order in the deformation: J and h carry η² (their gradients are the centrifugal and gravity forces on the modes, and with
Q in them the geometric stiffening), A and P carry η (they stand beside η̇), Me none. What is dropped, ∫Γ×Q, ∫QQ, ∫ΓQ, is
of third order and more, and would need tensors with m³ and m⁴ entries. The truncated T is a function like any other: a
recursion that differentiates *it* conserves energy and momenta exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

__all__ = ["Array", "ModalIntegrals", "Samples", "SecondOrder", "modal_integrals", "pairs", "unpaired"]

_ROUNDING = 1e-12
"""Entries below this share of what they could be are rounding, and are made zero: a program then leaves them out."""


def pairs(m: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The index pairs i <= j of a symmetric m×m array, in the order in which second-order fields are stored."""
    rows, columns = np.triu_indices(m)
    return rows, columns


def unpaired(packed: Array, m: int) -> Array:
    """Symmetric m×m arrays from their entries i <= j on the last axis."""
    full = np.zeros((*packed.shape[:-1], m, m))
    i, j = pairs(m)
    full[..., i, j] = packed
    full[..., j, i] = packed
    return full


@dataclass(frozen=True)
class Samples:
    """Points of a body with what they weigh and how the modes move them; ∫f g dm = f* W g exactly, for the fields in use.

    W is diagonal for quadrature points (``weight`` of shape (n,)), or the mass matrix of a nodal interpolation (n×n, sparse).
    """

    position: Array
    """(n, 3)"""
    shapes: Array
    """(n, 3, m): Γ"""
    second: Array | None
    """(n, 3, m (m + 1) / 2): Q by `pairs`; None where the source has none."""
    weight: Any

    def weighted(self, field: Array) -> Array:
        """W applied to fields of shape (n, ...)."""
        flat = field.reshape(len(field), -1)
        product = self.weight[:, None] * flat if getattr(self.weight, "ndim", 2) == 1 else self.weight @ flat
        return np.asarray(product).reshape(field.shape)


@dataclass(frozen=True)
class SecondOrder:
    """The mass integrals of Q: ∫Q dm (3, m, m) and ∫x⁰_a Q_b dm (3, 3, m, m)."""

    mean: Array
    moment: Array


@dataclass(frozen=True)
class ModalIntegrals:
    """The coefficients of T(η, η̇, V), as the module's text defines them. All arrays are read-only."""

    mass: float
    h0: Array
    """(3,)"""
    h1: Array
    """(3, m)"""
    h2: Array
    """(3, m, m), symmetric in the last two"""
    J0: Array
    """(3, 3)"""
    J1: Array
    """(3, 3, m)"""
    J2: Array
    """(3, 3, m, m), symmetric in the first two and in the last two"""
    A0: Array
    """(3, m)"""
    A1: Array
    """(3, m, m): A(η)[:, i] = A0[:, i] + Σⱼ A1[:, i, j] ηⱼ; not symmetric"""
    Me: Array
    """(m, m)"""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                frozen = np.array(value, dtype=float)
                frozen.setflags(write=False)
                object.__setattr__(self, field.name, frozen)

    def first_moment(self, eta: Array) -> Array:
        """h(η)."""
        return self.h0 + self.h1 @ eta + 0.5 * (self.h2 @ eta) @ eta

    def rotational_inertia(self, eta: Array) -> Array:
        """J(η), about the root."""
        return self.J0 + self.J1 @ eta + 0.5 * (self.J2 @ eta) @ eta

    def mass_matrix(self, eta: Array) -> Array:
        """The (m+6)×(m+6) matrix of T in the order [η̇; ω; v]: T = ½ x* M(η) x."""
        m = len(self.Me)
        h = self.first_moment(eta)
        h_cross = np.array([[0, -h[2], h[1]], [h[2], 0, -h[0]], [-h[1], h[0], 0]])
        A = self.A0 + self.A1 @ eta
        P = self.h1 + self.h2 @ eta
        M = np.zeros((m + 6, m + 6))
        M[:m, :m] = self.Me
        M[m : m + 3, :m], M[:m, m : m + 3] = A, A.T
        M[m + 3 :, :m], M[:m, m + 3 :] = P, P.T
        M[m : m + 3, m : m + 3] = self.rotational_inertia(eta)
        M[m : m + 3, m + 3 :], M[m + 3 :, m : m + 3] = h_cross, h_cross.T
        M[m + 3 :, m + 3 :] = self.mass * np.eye(3)
        return M


def modal_integrals(samples: Samples, second: SecondOrder | None = None) -> ModalIntegrals:
    """Every integral over the samples.

    Args:
        samples: the body's points, from its root.
        second: the integrals of Q where they come from elsewhere than the samples.
    """
    x, G = samples.position, samples.shapes
    n, _, m = G.shape
    one_W = samples.weighted(np.ones((n, 1)))[:, 0]
    Wx = samples.weighted(x)
    GG = (G.reshape(n, 3 * m).T @ samples.weighted(G).reshape(n, 3 * m)).reshape(3, m, 3, m)
    xG = np.einsum("na,nbi->abi", Wx, G)
    if second is None:
        second = _second_order(samples, one_W, Wx)
    xx = x.T @ Wx
    xQ = second.moment
    # S = ∫x x* dm to second order; J = tr(S) 1 - S.
    S1 = xG + xG.transpose(1, 0, 2)
    S2 = GG.transpose(0, 2, 1, 3) + GG.transpose(0, 2, 3, 1)
    S2 = S2 + xQ + xQ.transpose(1, 0, 2, 3)
    A1 = _cross(np.einsum("ajbi->abij", GG) + xQ)
    return ModalIntegrals(
        mass=float(one_W.sum()),
        h0=one_W @ x,
        h1=np.einsum("n,nai->ai", one_W, G),
        h2=second.mean,
        J0=_inertia(xx),
        J1=_inertia(S1),
        J2=_inertia(S2),
        A0=_cross(xG),
        A1=A1,
        Me=np.einsum("aiaj->ij", GG),
    )


def without_rounding(integrals: ModalIntegrals) -> ModalIntegrals:
    """The same with entries that are nothing but rounding made zero, so that a program can leave them out.

    Each entry is compared with the largest that its kind can have: by Cauchy and Schwarz |∫f g dm|² <= ∫f² dm ∫g² dm.
    """
    modal = np.sqrt(np.maximum(np.diag(integrals.Me), 0.0))
    arm = np.sqrt(max(np.trace(integrals.J0) / 2.0, 0.0))
    weight = np.sqrt(integrals.mass)
    outer = np.outer(modal, modal)
    # What Q can contribute has no such bound: its own largest entry for the same pair of modes.
    of_h2 = np.abs(integrals.h2).max(axis=0, initial=0.0)
    bounds = {
        "h0": weight * arm,
        "h1": weight * modal,
        "h2": of_h2,
        "J0": arm**2,
        "J1": arm * modal,
        "J2": np.maximum(outer, np.abs(integrals.J2).max(axis=(0, 1), initial=0.0)),
        "A0": arm * modal,
        "A1": np.maximum(outer, np.abs(integrals.A1).max(axis=0, initial=0.0)),
        "Me": outer,
    }
    cleaned = {name: zeroed(getattr(integrals, name), bound) for name, bound in bounds.items()}
    return ModalIntegrals(mass=integrals.mass, **cleaned)


def zeroed(values: Array, bound: Any) -> Array:
    """The values with zeros where they are rounding beside the bound (broadcast over the last axes)."""
    return np.where(np.abs(values) <= _ROUNDING * np.asarray(bound), 0.0, values)


def _second_order(samples: Samples, one_W: Array, Wx: Array) -> SecondOrder:
    m = samples.shapes.shape[2]
    if samples.second is None:
        return SecondOrder(np.zeros((3, m, m)), np.zeros((3, 3, m, m)))
    return SecondOrder(
        mean=unpaired(np.einsum("n,nap->ap", one_W, samples.second), m),
        moment=unpaired(np.einsum("na,nbp->abp", Wx, samples.second), m),
    )


def _inertia(S: Array) -> Array:
    """tr(S) 1 - S on the first two axes."""
    trace = np.einsum("aa...->...", S)
    return np.multiply.outer(np.eye(3), trace) - S


def _cross(product: Array) -> Array:
    """ε_cab X_ab... : the vector of ∫ f × g from ∫ f_a g_b."""
    return np.stack([product[1, 2] - product[2, 1], product[2, 0] - product[0, 2], product[0, 1] - product[1, 0]])
