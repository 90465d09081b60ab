"""Energies and momenta of a model."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from linkwise.model.base import Methods

Array = NDArray[Any]


class Energies(Methods):
    """Energy, momentum, mass centre."""

    def kinetic_energy(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Any:
        """½ v*𝓜v (...), in J."""
        return self._run("kinetic_energy", q, v, p=p, out=out, threads=threads)

    def potential_energy(
        self, q: ArrayLike, *, p: ArrayLike | None = None, out: Array | None = None, threads: int | None = None
    ) -> Any:
        """Energy of the moving bodies in the field of gravity (...), in J; zero with all mass at the world's origin."""
        return self._run("potential_energy", q, p=p, out=out, threads=threads)

    def center_of_mass(
        self, q: ArrayLike, *, p: ArrayLike | None = None, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """Mass centre of the moving bodies (..., 3) in the world, m; NaN where none has mass."""
        return self._run("center_of_mass", q, p=p, out=out, threads=threads)

    def momentum(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Total momentum (..., 6) = [angular about the world's origin; linear], world axes."""
        return self._run("momentum", q, v, p=p, out=out, threads=threads)

    def centroidal_momentum(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        p: ArrayLike | None = None,
        out: Array | None = None,
        threads: int | None = None,
    ) -> Array:
        """Total momentum (..., 6) = [angular about the mass centre; linear], world axes; NaN where nothing has mass."""
        return self._run("centroidal_momentum", q, v, p=p, out=out, threads=threads)

    def centroidal_momentum_matrix(
        self, q: ArrayLike, *, p: ArrayLike | None = None, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """A(q) (..., 6, nv): the centroidal momentum is A v; NaN where nothing has mass."""
        return self._run("centroidal_momentum_matrix", q, p=p, out=out, threads=threads)

    def centroidal_inertia(
        self, q: ArrayLike, *, p: ArrayLike | None = None, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """Inertia of the whole, frozen in this configuration (..., 6, 6), about the mass centre, world axes.

        NaN where nothing has mass.
        """
        return self._run("centroidal_inertia", q, p=p, out=out, threads=threads)
