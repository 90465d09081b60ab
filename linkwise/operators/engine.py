"""What runs the operators of one state: the interface of the two engines.

The operators know of each other only that they are block diagonal, shifted towards the parents (E), or a sweep
(I - E)⁻¹. An engine knows the blocks of one state (or of a batch) and how to run these three over the links; what a
stacked vector looks like meanwhile is its own affair (``Value``).

The blocks by name, for every link k with parent p (000 eq. 18, 24, 53; 004 eq. A.3):

=============  =========================================  =====================================
diagonal       H, M, R, P, D, G, tau, tau_bar, Upsilon    and ``armature``, ``D_inverse``, ``M_inverse``, …
shift          E_phi, E_psi, K                            φ(p,k), φ(p,k) τ̄(k), φ(p,k) G(k)
sweep          phi, psi                                   (I - E_φ)⁻¹, (I - E_ψ)⁻¹
=============  =========================================  =====================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.kinematics import Place
from linkwise.model.tree import Tree
from linkwise.operators.spaces import Space

Value = Any  # a stacked vector as the engine keeps it
Array = Any

INNER = {"E_phi": None, "phi": None, "E_psi": "tau_bar", "psi": "tau_bar", "K": "G"}
"""What each shift or sweep does to a link's vector before φ(p,k) takes it to the parent."""


class Engine(ABC):
    """The blocks of one state or batch, and how to run them."""

    tree: Tree
    links: Space
    joints: Space
    batch: tuple[int, ...]
    dtype: Any
    owner: Any
    """The ``Operators`` whose letters this engine runs."""

    @abstractmethod
    def enter(self, space: Space, array: Array) -> Value:
        """The value of stacked vectors (..., size), one for each state or one for all."""

    @abstractmethod
    def leave(self, space: Space, value: Value) -> Array:
        """The array (..., size) of a value."""

    @abstractmethod
    def run(self, function: Callable[[Value], Value], space_in: Space, space_out: Space, x: Array) -> Array:
        """Apply a linear function to vectors (..., size) or to columns (..., size, r), of the same form again."""

    @abstractmethod
    def zero(self, space: Space) -> Value:
        """The stacked vector of zeros."""

    @abstractmethod
    def add(self, x: Value, y: Value) -> Value:
        """The sum of two stacked vectors."""

    @abstractmethod
    def scale(self, c: Any, x: Value) -> Value:
        """A stacked vector times a number."""

    @abstractmethod
    def diagonal(self, name: str, x: Value, adjoint: bool) -> Value:
        """Block by block: X(k) x(k), or X*(k) x(k)."""

    @abstractmethod
    def shift(self, name: str, x: Value, adjoint: bool) -> Value:
        """E x: y(p) = Σ E(p,k) x(k) over the children k of p; or E*x: y(k) = E*(p,k) x(p)."""

    @abstractmethod
    def sweep(self, name: str, x: Value, adjoint: bool) -> Value:
        """(I - E)⁻¹ x, tips to base: z(p) = x(p) + Σ E(p,k) z(k); or its adjoint, base to tips."""

    @abstractmethod
    def pick(self, places: Sequence[Place], x: Value, adjoint: bool) -> Value:
        """B x: forces at places summed on their links; or B*x: the links' motions at the places (004 eq. 2.13)."""

    @abstractmethod
    def motion(self, name: str) -> Value:
        """A stacked vector of the velocity: ``V``, ``a``, ``b``, or ``f`` = Mφ*a + b."""

    @abstractmethod
    def block(self, name: str, k: int) -> Array:
        """The block (..., 6, 6) of link k: of a diagonal operator over the links, or (parent(k), k) of E_φ or E_ψ."""

    def is_matrix(self, x: Array) -> bool:
        """Whether an array holds columns (..., size, r) rather than one vector (..., size) for each state."""
        return int(x.ndim) == len(self.batch) + 2

    def dense(self, space: Space) -> Array:
        """The identity (..., size, size): its columns make an operator dense."""
        return np.broadcast_to(np.eye(space.size), (*self.batch, space.size, space.size))

    def tilde(self, name: str, x: Value, adjoint: bool) -> Value:
        """φ~ = φE_φ or ψ~ = ψE_ψ, the sweep without its own diagonal; φ~* = E_φ*φ*."""
        shift = {"phi": "E_phi", "psi": "E_psi"}[name]
        if adjoint:
            return self.shift(shift, self.sweep(name, x, True), True)
        return self.sweep(name, self.shift(shift, x, False), False)
