"""Forward dynamics by conjugate gradients: 𝓜p is one inverse dynamics, and n steps are enough. O(n²).

Jain 1991 §4 eq. 30: plain (Walker and Orin 1982, method 4), and preconditioned by Γ = HRH*, the block diagonal of 𝓜. On
floats the iteration stops where the residual has vanished; on other scalars it takes all n steps, without rounding an
exact solver. Trees, all joints, mimics too (plain).

DIFFERS FROM PAPER: eq. 30 prints γ_k = z*_{k-1}z_{k-1} / r*_{k-2}r_{k-2}, which loses conjugacy as soon as Γ ≠ I;
with γ_k = r*_{k-1}z_{k-1} / r*_{k-2}z_{k-2} the directions are conjugate (a test shows both). And n steps end the
search only in exact arithmetic: on floats we go on, up to 10 n, until the residual is at rounding.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.factors import factorize
from linkwise.algorithms.sweeps import Field, each
from linkwise.classics.mass_matrices import composite_inertias
from linkwise.classics.newton_euler import bias_free, mass_times
from linkwise.classics.requirements import no_mimics
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot

_ROUNDING = 1e-28  # r*Γ⁻¹r against its first value: the square of some ten times the unit roundoff


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ by conjugate gradients, Γ = I."""
    return conjugate_gradients(lambda p: mass_times(tree, q, p), list, bias_free(tree, q, v, tau))


def forward_dynamics_preconditioned(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ by conjugate gradients, Γ = HRH*."""
    no_mimics(tree, "preconditioned conjugate gradient")
    return conjugate_gradients(
        lambda p: mass_times(tree, q, p), block_diagonal_solver(tree, q), bias_free(tree, q, v, tau)
    )


def block_diagonal_solver(tree: Tree, q: Flat) -> Callable[[Flat], list[Scalar]]:
    """z with HRH* z = r, joint by joint."""
    R = composite_inertias(tree, q)

    def block(link: Link) -> Matrix:
        S = link.S(q)
        forces = [R[link] @ s for s in S]
        gamma = [[s.dot(f) for f in forces] for s in S]
        for i, J in enumerate(link.armature):
            gamma[i][i] = gamma[i][i] + J
        return gamma

    factors = each(tree, lambda link: factorize(block(link)))
    return lambda r: tree.generalized(Field([factors[link].solve(link.rates(r)) for link in tree]))


def conjugate_gradients(
    apply: Callable[[Flat], list[Scalar]], precondition: Callable[[Flat], list[Scalar]], b: Flat
) -> list[Scalar]:
    """x with A x = b for a symmetric positive A given by its action (Jain 1991 eq. 30, mended)."""
    x: list[Scalar] = [0.0] * len(b)
    r, p = list(b), [0.0] * len(b)
    exact = all(isinstance(value, float) for value in b)
    rz_before: Scalar = None
    first: Scalar = None
    for _ in range(10 * len(b) if exact else len(b)):
        z = precondition(r)
        rz = dot(r, z)
        first = rz if first is None else first
        if exact and rz <= _ROUNDING * first:
            break
        p = z if rz_before is None else [a + rz / rz_before * d for a, d in zip(z, p, strict=True)]
        Ap = apply(p)
        s = rz / dot(p, Ap)
        x = [a + s * d for a, d in zip(x, p, strict=True)]
        r = [a - s * d for a, d in zip(r, Ap, strict=True)]
        rz_before = rz
    return x
