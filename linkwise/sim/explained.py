"""A motion explained: its forces and its energy by their causes, and what holds its closures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.algorithms.closed_system import ConstraintForces
from linkwise.array_types import Array
from linkwise.errors import LinkwiseError
from linkwise.sim.motion import CAUSES
from linkwise.targets.llvm.device import PROCESSOR

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.sim.trajectory import Jumps
    from linkwise.targets.device import Device


_ROUNDING = 1e-9  # of the largest energy, below which a work is not worth a word


class Forces(NamedTuple):
    """Joint forces (..., T, nv) by their cause, N m or N; forces on bodies as the joint forces J*f."""

    control: Any
    """Of actuators and controls, after their limits."""
    springs: Any
    """Of the springs of joints, across joints and along tendons."""
    damping: Any
    """Of dampers; that inside flexible bodies is part of their inertia forces."""
    friction: Any
    """Of dry friction, smoothed; with ``method="moreau"`` exact, the mean of the step before."""
    compensation: Any
    """Of what holds masses against gravity."""
    fluid: Any
    """Of a fluid around the bodies."""
    contact: Any
    """Of contacts: of compliant ones that were integrated as forces; with ``method="moreau"`` of all, J*λ/h of the step
    before."""
    limits: Any
    """Of the springs at joint limits, or of rigid ends."""
    closures: Any
    """Of closed loops, J_c*λ."""
    external: Any
    """Of forces and disturbances from outside."""

    @property
    def total(self) -> Any:
        """Their sum: what :meth:`Model.inverse_dynamics` of the motion needs."""
        return sum(self[1:], self[0])


class EnergyAccount(NamedTuple):
    """Energy gained since the first sample and the work of each cause, (..., T) in J; works add up to gains."""

    kinetic: Any
    """Gain of kinetic energy."""
    potential: Any
    """Gain of potential energy, in gravity and in the bending of flexible bodies."""
    work: dict[str, Any]
    """By their cause, as in :class:`Forces`. Damping has that inside flexible bodies too."""
    events: Any
    """Gain at events: by their actions, and by closures that took hold."""

    @property
    def unexplained(self) -> Any:
        """Part of the gains that the works do not explain: the error of the integration."""
        return self.kinetic + self.potential - self.events - sum(self.work.values())

    def __str__(self) -> str:
        """The last sample in one line, of one motion; the largest of a batch."""

        def last(values: Any) -> str:
            ends = np.ravel(np.asarray(values, float)[..., -1:])
            return f"{ends[np.argmax(np.abs(ends))] if len(ends) else 0.0:.3g} J"

        gains = {"kinetic": self.kinetic, "potential": self.potential}
        acted = {**{f"work of {cause}": work for cause, work in self.work.items()}, "events": self.events}
        size = max(float(np.nanmax(np.abs(values), initial=0.0)) for values in (*gains.values(), *acted.values()))
        told = {name: values for name, values in acted.items() if np.any(np.abs(values) > _ROUNDING * size)}
        listed = {**gains, **told, "unexplained": self.unexplained}
        return "energy gained: " + ", ".join(f"{name} {last(values)}" for name, values in listed.items())


class Explained:
    """Explanations of a motion by forces and energy, as methods of a trajectory."""

    t: Array
    q: Array
    v: Array
    home: Device
    jumps: Jumps | None

    def forces(self) -> Forces:
        """Joint forces at the samples by their cause, as :class:`Forces` lists them.

        Those that were integrated; their sum is ``model.inverse_dynamics(q, v, vdot)``.
        """
        control, values = self._value("force:control"), self._values
        none = control * 0.0
        return Forces(*(values.get(f"force:{cause}", none) for cause in CAUSES))

    def constraint_forces(self) -> ConstraintForces:
        """Forces that hold the closures at the samples: multipliers (..., T, m) and wrenches (..., T, n_closures, 6).

        As :meth:`Model.constraint_forces`, with all the forces that acted; zero for closures that are released.
        """
        if self.home is not PROCESSOR:
            return ConstraintForces(*(self._brought(part) for part in self.on_host().constraint_forces()))
        model: Model = self._with_model("constraint_forces")
        forces, known = self.forces(), self._values
        q, v, tau = (np.asarray(part, float) for part in (self.q, self.v, forces.total - forces.closures))
        t = np.broadcast_to(self.t, q.shape[:-1]).astype(float)
        given = {"t": t, "p": self.model_parameters, "active": known.get("active")}
        found: Any = model._run("constraint_forces", q, v, tau, **given)
        return ConstraintForces._make(found)

    def energy_account(self) -> EnergyAccount:
        """Where the energy came from and went: gains since the first sample, and the work of each cause until then.

        Of a motion that was simulated with ``account=True``, which integrates the works along with the motion.
        """
        if "work" not in self._values:
            raise LinkwiseError(
                "this trajectory has no account of its energy", do="lw.simulate(…, account=True) integrates the works"
            )
        if self.home is not PROCESSOR:
            here = self.on_host().energy_account()
            works = {cause: self._brought(work) for cause, work in here.work.items()}
            kinetic, potential, events = (self._brought(a) for a in (here.kinetic, here.potential, here.events))
            return EnergyAccount(kinetic, potential, works, events)
        model: Model = self._with_model("energy_account")
        p, work = self.model_parameters, np.asarray(self._value("work"), float)
        q, v = np.asarray(self.q, float), np.asarray(self.v, float)
        kinetic, potential = np.asarray(model.kinetic_energy(q, v, p=p)), np.asarray(model.potential_energy(q, p=p))
        kinetic, potential = (energy - energy[..., :1] for energy in (kinetic, potential))
        done = np.moveaxis(work - work[..., :1, :], -1, 0)
        return EnergyAccount(kinetic, potential, dict(zip(CAUSES, done, strict=True)), self._at_events(model))

    def _at_events(self, model: Model) -> Array:
        """The gain of energy at events until each sample (..., T)."""
        found = np.zeros(self.q.shape[:-1])
        if self.jumps is None:
            return found
        flat, speeds = found.reshape(-1, len(self.t)), self.v.reshape(-1, *self.v.shape[-2:])
        p = self.model_parameters
        for time, state, q, v in zip(
            self.jumps.t, self.jumps.state, self.jumps.sides["q"], self.jumps.sides["v"], strict=True
        ):
            own = None if p is None else p.reshape(-1, p.shape[-1])[state]
            before, after = np.asarray(model.kinetic_energy(q, v, p=own)) + np.asarray(model.potential_energy(q, p=own))
            # Of two samples at the time of an event, the first is before it.
            later = (self.t > time) | ((self.t == time) & ~(speeds[state] == v[0]).all(axis=-1))
            flat[state] += np.where(later, after - before, 0.0)
        return found

    # What the rest of a trajectory gives.
    if TYPE_CHECKING:
        model_parameters: Any
        on_host: Any
        _brought: Any
        _value: Any
        _values: Any
        _with_model: Any
