"""The modal integrals: what a deformable body's inertia needs, whatever the number of its nodes.

A particle at x⁰ (from the root node, in root axes) is carried by the modal coordinates η to

    x(η) = x⁰ + Γ(x⁰) η + ½ η* Q(x⁰) η,

with Γ 3×m the shapes and Q 3×m×m, symmetric in its last two, the second-order part (foreshortening). The motion of the
root frame is V = [ω; v]; the particle moves by v + ω×x + (Γ + η*Q) η̇ in root axes.

**What is kept.** T complete to second order in η and η̇ together, for any V: then the equations of motion are
complete to first order in the deformation, with the centrifugal, Coriolis and gravity forces on the modes and,
through Q, geometric stiffening. To that order only ∫Q dm and ∫x⁰_a Q_b dm count, and these stay the same when Q is
replaced by its best affine approximation over the mass, Q(x⁰) ≈ a + B x⁰. So the mass moves as

    x̂(η) = y + d,   y = x⁰ + Γη,   d = a(η) + B(η) x⁰,   a(η) = ½ η*aη,  B(η) = ½ η*Bη,

and T = ½∫|v + ω×x̂ + dx̂/dt|² dm with *nothing* dropped: the mass matrix is that of a moving mass at every η, so it can
never lose its definiteness, as one cut off at some power of η does already at small deflections (a root that turns
against its modes has little inertia left). Only the integrals below are needed; ∫ΓQ and ∫QQ, with m³ and m⁴ entries,
are not.

**T(η, η̇, V)** = ½ η̇*M(η) η̇ + ω*A(η) η̇ + v*P(η) η̇ + ½ ω*J(η) ω + v·(ω×h(η)) + ½ m v·v, with

    a' = aη (3×m), B' = Bη (3×3×m)          derivatives of a(η) and B(η)
    h_y = h0 + h1 η                         ∫y
    Y   = S0 + (Xη)*                        ∫y x⁰*,  (Xη)_ab = ∫x⁰_a (Γη)_b
    h   = h_y + m a(η) + B(η) h0            ∫x̂
    Z   = Y + a(η) h0* + B(η) S0            ∫x̂ x⁰*
    P_i = h1_i + m a'_i + B'_i h0           ∂h/∂η_i
    D   = h_y a(η)* + Y B(η)*               ∫y d*
    E   = m a a* + a (B h0)* + (B h0) a* + B S0 B*      ∫d d*, all at η
    J   = J0 + J1 η + ½ η*J2 η + [D + D* + E],           with [S] = tr(S) 1 - S
    A_i = A0_i + Σⱼ A1_ij ηⱼ + ⟨a h1_i* + B X_i⟩ + ⟨h a'_i* + Z B'_i*⟩,   with ⟨W⟩_c = ε_cab W_ab
    M_ij = Me_ij + N_ij + N_ji + m a'_i·a'_j + a'_i·B'_j h0 + a'_j·B'_i h0 + tr(B'_i S0 B'_j*),
           N_ij = h1_i·a'_j + Σ_bc X_cbi B'_bcj

and J0 = [S0], J1 = [∫x⁰Γ* + Γx⁰*], J2 = [∫Γ_iΓ_j* + Γ_jΓ_i*], A0_i = ∫x⁰×Γ_i, A1_ij = ∫Γ_j×Γ_i, Me = ∫Γ*Γ. Without
second order (a = B = 0) this is the linear body. For a slender beam along x only a_x and B_xx are not zero.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from linkwise.array_types import FloatArray
from linkwise.dataclass import Field, dataclass, fields

_ROUNDING = 1e-12
"""Entries below this share of what they could be are rounding, and are made zero: a program then leaves them out."""


def pairs(m: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The index pairs i <= j of a symmetric m×m array, in the order in which second-order fields are stored."""
    rows, columns = np.triu_indices(m)
    return rows, columns


def unpaired(packed: FloatArray, m: int) -> FloatArray:
    """Symmetric m×m arrays from their entries i <= j on the last axis."""
    full = np.zeros((*packed.shape[:-1], m, m))
    i, j = pairs(m)
    full[..., i, j] = packed
    full[..., j, i] = packed
    return full


@dataclass(frozen=True)
class Samples:
    """Points of a body with what they weigh and how the modes move them.

    ∫f g dm = f* W g exactly, for the fields in use. W is diagonal for quadrature points (``weight`` of shape (n,)), or
    the mass matrix of a nodal interpolation (n×n, sparse).
    """

    position: FloatArray
    """(n, 3)"""
    shapes: FloatArray
    """(n, 3, m): Γ"""
    second: FloatArray | None
    """(n, 3, m (m + 1) / 2): Q by `pairs`; None where the source has none."""
    weight: FloatArray | sparse.csr_array

    def weighted(self, field: FloatArray) -> FloatArray:
        """W applied to fields of shape (n, ...)."""
        flat = field.reshape(len(field), -1)
        product = self.weight[:, None] * flat if getattr(self.weight, "ndim", 2) == 1 else self.weight @ flat
        return np.asarray(product).reshape(field.shape)


@dataclass(frozen=True)
class SecondOrder:
    """The mass integrals of Q: ∫Q dm (3, m, m) and ∫x⁰_a Q_b dm (3, 3, m, m)."""

    mean: FloatArray
    moment: FloatArray


class Frozen:
    """A dataclass whose arrays cannot be written to, also after a journey by pickle."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # of every subclass

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray):
                own = np.array(value, dtype=float)
                own.setflags(write=False)
                object.__setattr__(self, each.name, own)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True, eq=False)
class ModalIntegrals(Frozen):
    """The coefficients of T(η, η̇, V), as the module's text defines them. All arrays are read-only."""

    mass: float
    h0: FloatArray
    """(3,): ∫x⁰"""
    h1: FloatArray
    """(3, m): ∫Γ"""
    S0: FloatArray
    """(3, 3): ∫x⁰x⁰*"""
    X: FloatArray
    """(3, 3, m): ∫x⁰_a Γ_bi"""
    J0: FloatArray
    """(3, 3)"""
    J1: FloatArray
    """(3, 3, m)"""
    J2: FloatArray
    """(3, 3, m, m), symmetric in the first two and in the last two"""
    A0: FloatArray
    """(3, m)"""
    A1: FloatArray
    """(3, m, m): A(η)[:, i] has Σⱼ A1[:, i, j] ηⱼ; antisymmetric in the last two"""
    Me: FloatArray
    """(m, m)"""
    a: FloatArray
    """(3, m, m), symmetric in the last two"""
    B: FloatArray
    """(3, 3, m, m), symmetric in the last two"""

    @staticmethod
    def shapes(m: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays for m modes."""
        each, both = (m,), (m, m)
        return {
            "h0": (3,), "h1": (3, *each), "S0": (3, 3), "X": (3, 3, *each), "J0": (3, 3), "J1": (3, 3, *each),
            "J2": (3, 3, *both), "A0": (3, *each), "A1": (3, *both), "Me": both, "a": (3, *both), "B": (3, 3, *both),
        }  # fmt: skip

    @property
    def h2(self) -> FloatArray:
        """(3, m, m): ∫Q = ∂²h/∂η², through which gravity acts on the second order."""
        second: FloatArray = self.mass * self.a + np.einsum("abij,b->aij", self.B, self.h0)
        return second

    @property
    def J_second(self) -> FloatArray:
        """(3, 3, m, m): ∂²J/∂η² at rest; with it the stiffness of a body that spins by ω is K - ½ω*J_secondω."""
        D = np.einsum("a,bij->abij", self.h0, self.a) + np.einsum("ac,bcij->abij", self.S0, self.B)
        second: FloatArray = self.J2 + _inertia(D + D.transpose(1, 0, 2, 3))
        return second

    def mass_matrix(self, eta: FloatArray) -> FloatArray:
        """The (m+6)×(m+6) matrix of T in the order [η̇; ω; v]: T = ½ x* M(η) x."""
        m, mass, h0, h1, S0, X = len(self.Me), self.mass, self.h0, self.h1, self.S0, self.X
        a_rate, B_rate = self.a @ eta, self.B @ eta
        a, B = 0.5 * a_rate @ eta, 0.5 * B_rate @ eta
        h_y, Y = h0 + h1 @ eta, S0 + (X @ eta).T
        h = h_y + mass * a + B @ h0
        Z = Y + np.outer(a, h0) + B @ S0
        B_rate_h0 = np.einsum("abi,b->ai", B_rate, h0)
        P = h1 + mass * a_rate + B_rate_h0

        D = np.outer(h_y, a) + Y @ B.T
        E = mass * np.outer(a, a) + np.outer(a, B @ h0) + np.outer(B @ h0, a) + B @ S0 @ B.T
        J = self.J0 + self.J1 @ eta + 0.5 * (self.J2 @ eta) @ eta + _inertia(D + D.T + E)

        of_d = np.einsum("a,bi->abi", a, h1) + np.einsum("ac,cbi->abi", B, X)
        of_rates = np.einsum("a,bi->abi", h, a_rate) + np.einsum("ac,bci->abi", Z, B_rate)
        A = self.A0 + self.A1 @ eta + _cross(of_d + of_rates)

        N = h1.T @ a_rate + np.einsum("cbi,bcj->ij", X, B_rate)
        mixed = a_rate.T @ B_rate_h0
        square = mass * a_rate.T @ a_rate + np.einsum("abi,bc,acj->ij", B_rate, S0, B_rate)
        full = np.zeros((m + 6, m + 6))
        full[:m, :m] = self.Me + N + N.T + mixed + mixed.T + square
        full[m : m + 3, :m], full[:m, m : m + 3] = A, A.T
        full[m + 3 :, :m], full[:m, m + 3 :] = P, P.T
        full[m : m + 3, m : m + 3] = J
        h_cross = np.array([[0, -h[2], h[1]], [h[2], 0, -h[0]], [-h[1], h[0], 0]])
        full[m : m + 3, m + 3 :], full[m + 3 :, m : m + 3] = h_cross, h_cross.T
        full[m + 3 :, m + 3 :] = mass * np.eye(3)
        return full


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
    GG = (G.reshape(n, 3 * m).T @ samples.weighted(G).reshape(n, 3 * m)).reshape(3, m, 3, m).transpose(0, 2, 1, 3)
    X = np.einsum("na,nbi->abi", Wx, G)
    if second is None:
        second = _second_order(samples, one_W, Wx)
    mass, h0, S0 = float(one_W.sum()), one_W @ x, x.T @ Wx
    a, B = _affine(mass, h0, S0, second)
    return ModalIntegrals(
        mass=mass,
        h0=h0,
        h1=np.einsum("n,nai->ai", one_W, G),
        S0=S0,
        X=X,
        J0=_inertia(S0),
        J1=_inertia(X + X.transpose(1, 0, 2)),
        J2=_inertia(GG + GG.transpose(0, 1, 3, 2)),
        A0=_cross(X),
        A1=_cross(GG.transpose(0, 1, 3, 2)),
        Me=np.einsum("aaij->ij", GG),
        a=a,
        B=B,
    )


def _affine(mass: float, h0: FloatArray, S0: FloatArray, second: SecondOrder) -> tuple[FloatArray, FloatArray]:
    """A + Bx⁰ with the integrals of Q: ∫(a + Bx⁰) = ∫Q and ∫x⁰(a + Bx⁰)* = ∫x⁰Q*; least norm for lines and sheets."""
    size = np.sqrt(max(np.trace(S0) / mass, np.finfo(float).tiny))
    gram = np.block([[np.array([[mass]]), h0[None] / size], [h0[:, None] / size, S0 / size**2]])
    values = np.concatenate([second.mean[None], second.moment / size])  # (4, 3, m, m): 1 and x⁰ against Q's components
    solved = np.tensordot(np.linalg.pinv(gram, rcond=1e-11, hermitian=True), values, axes=1)
    return solved[0], solved[1:].transpose(1, 0, 2, 3) / size


def without_rounding(integrals: ModalIntegrals) -> ModalIntegrals:
    """Integrals with entries that are nothing but rounding made zero, so that a program can leave them out.

    Each entry is compared with the largest that its kind can have: by Cauchy and Schwarz |∫f g dm|² <= ∫f² dm ∫g² dm.
    Q has no such bound; its entries are compared with the largest for the same pair of modes, lengths in units of the
    body's size. Integrals of two modes that are whole numbers but for rounding become whole: modes have a mass of one
    each, and the last bits of a machine's LAPACK must not decide whether a program multiplies by it.
    """
    modal = np.sqrt(np.maximum(np.diag(integrals.Me), 0.0))
    arm = np.sqrt(max(np.trace(integrals.J0) / 2.0, 0.0))
    weight = np.sqrt(integrals.mass)
    outer = np.outer(modal, modal)
    size = arm / weight
    second = np.maximum(
        np.abs(integrals.a).max(axis=0, initial=0.0), size * np.abs(integrals.B).max(axis=(0, 1), initial=0.0)
    )
    bounds: dict[str, ArrayLike] = {
        "h0": weight * arm,
        "h1": weight * modal,
        "S0": arm**2,
        "X": arm * modal,
        "J0": arm**2,
        "J1": arm * modal,
        "J2": outer,
        "A0": arm * modal,
        "A1": outer,
        "Me": outer,
        "a": second,
        "B": second / size,
    }
    cleaned = {name: zeroed(getattr(integrals, name), bound) for name, bound in bounds.items()}
    for name in ("J2", "A1", "Me"):
        whole = np.round(cleaned[name])
        cleaned[name] = whole + zeroed(cleaned[name] - whole, outer)
    return ModalIntegrals(mass=integrals.mass, **cleaned)


def zeroed(values: FloatArray, bound: ArrayLike) -> FloatArray:
    """The values with zeros where they are rounding beside the bound (broadcast over the last axes)."""
    return np.where(np.abs(values) <= _ROUNDING * np.asarray(bound), 0.0, values)


def _second_order(samples: Samples, one_W: FloatArray, Wx: FloatArray) -> SecondOrder:
    m = samples.shapes.shape[2]
    if samples.second is None:
        return SecondOrder(np.zeros((3, m, m)), np.zeros((3, 3, m, m)))
    return SecondOrder(
        mean=unpaired(np.einsum("n,nap->ap", one_W, samples.second), m),
        moment=unpaired(np.einsum("na,nbp->abp", Wx, samples.second), m),
    )


def _inertia(S: FloatArray) -> FloatArray:
    """tr(S) 1 - S on the first two axes."""
    inertia: FloatArray = np.multiply.outer(np.eye(3), np.einsum("aa...->...", S)) - S
    return inertia


def _cross(product: FloatArray) -> FloatArray:
    """ε_cab X_ab... : the vector of ∫ f × g from ∫ f_a g_b."""
    return np.stack([product[1, 2] - product[2, 1], product[2, 0] - product[0, 2], product[0, 1] - product[1, 0]])
