"""Energies and momenta of a model."""

from __future__ import annotations

from typing import Any, Unpack

from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.model.base import ByName, Group, Methods


class Energies(Methods):
    """Energy, momentum, mass centre."""

    def kinetic_energy(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Any:
        """½ v*𝓜v (...), in J."""
        return self._run("kinetic_energy", q, v, others=others)

    def potential_energy(self, q: ArrayLike, **others: Unpack[ByName]) -> Any:
        """Energy of the moving bodies in the field of gravity (...), in J; zero with all mass at the world's origin."""
        return self._run("potential_energy", q, others=others)

    def center_of_mass(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Mass centre of the moving bodies (..., 3) in the world, m; NaN where none has mass."""
        return self._run("center_of_mass", q, others=others)

    def momentum(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Total momentum (..., 6) = [angular about the world's origin; linear], world axes."""
        return self._run("momentum", q, v, others=others)


class Centroidal(Group):
    """Momentum and inertia of the whole about its mass centre, in world axes."""

    attribute = "centroidal"

    def momentum(self, q: ArrayLike, v: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Total momentum (..., 6) = [angular about the mass centre; linear], world axes; NaN where nothing has mass."""
        return self.model._run("centroidal_momentum", q, v, others=others)

    def momentum_matrix(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """A(q) (..., 6, nv): the centroidal momentum is A v; NaN where nothing has mass."""
        return self.model._run("centroidal_momentum_matrix", q, others=others)

    def inertia(self, q: ArrayLike, **others: Unpack[ByName]) -> Array:
        """Inertia of the whole, frozen in this configuration (..., 6, 6), about the mass centre, world axes.

        NaN where nothing has mass.
        """
        return self.model._run("centroidal_inertia", q, others=others)
