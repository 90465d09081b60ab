"""A study: a model, what differs from member to member, how they are run and what is kept of each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_count
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, SaturationWarning
from linkwise.memoized import cached_property
from linkwise.model.model import Model, checked_model
from linkwise.sim.closed_states import captures_of
from linkwise.sim.disturbances import as_loads
from linkwise.sim.elements import as_elements
from linkwise.sim.events import as_events
from linkwise.sim.frozen_elements import frozen_element, frozen_event
from linkwise.sim.simulate import simulate
from linkwise.sim.trajectory import Trajectory
from linkwise.studies.designs import NAMES, Design, QmcEngine, Seeds, make_design
from linkwise.studies.fingerprint import fingerprint, model_fingerprint
from linkwise.studies.inputs import Inputs
from linkwise.studies.outcomes import Keep, Kept, Measure, as_keep

Run = Callable[["Batch"], Trajectory | Mapping[str, ArrayLike]]
"""Runs members: gives their motions, or arrays by name with a row for each."""

_SAMPLES = 101  # where measures look at the motion and no times are asked for
_OWN = ("q0", "v0", "x0", "p", "progress", "out", "threads")  # what the study gives to `simulate` itself


@dataclass(frozen=True)
class Batch:
    """Some members, as a run function gets them; n of them.

    Args:
        study: the study that they belong to.
        members: their numbers (n).
        inputs: for each input its rows (n, size).
        threads: how many threads may be used.
    """

    study: Study
    members: Array
    inputs: Mapping[str, Array]
    threads: int = 1

    def __len__(self) -> int:
        return len(self.members)

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self.study.model

    @property
    def q0(self) -> Array:
        """Configurations at the start (n, nq); the model's own if the study says nothing else."""
        return self.inputs["q0"] if "q0" in self.inputs else np.tile(self.model.start, (len(self), 1))

    @property
    def v0(self) -> Array | None:
        """Velocities at the start (n, nv); None: at rest."""
        return self.inputs.get("v0")

    @property
    def x0(self) -> Array | None:
        """States of the actuators at the start (n, nx); None: their own choice."""
        return self.inputs.get("x0")

    @property
    def p(self) -> Array | None:
        """Run-time parameters (n, np); None: the nominal ones."""
        return self.study.inputs.parameters(self.inputs, len(self))

    def rng(self, k: int) -> np.random.Generator:
        """Random numbers of the k-th member of this batch, its own wherever it runs."""
        return self.study.seeds.member(int(self.members[k]))

    def simulate(self, **changes: Any) -> Trajectory:
        """Run :func:`linkwise.simulate` with the study's settings, some of them changed."""
        settings = {**self.study.settings, **changes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SaturationWarning)  # the note has it; blocks would each say it again
            return simulate(
                self.model, self.q0, self.v0, x0=self.x0, p=self.p, progress=False, threads=self.threads, **settings
            )

    def part(self, chosen: slice) -> Batch:
        """Some of them."""
        rows = {name: values[chosen] for name, values in self.inputs.items()}
        return Batch(self.study, self.members[chosen], rows, self.threads)


class Study:
    """Definition of an ensemble, all that decides its results; the arguments are those of :func:`linkwise.ensemble`.

    Frozen, with the formulas of its controls, forces and events, and pickled to wherever members run. Nothing in it
    depends on where that is or on how members are grouped: a member's result is the same to the last bit, alone or in
    any batch, on machines of one kind.

    Attributes:
        model: the mechanism.
        members: how many there are.
        inputs: what differs from member to member.
        seeds: where random numbers come from; ``seeds.entropy`` is the seed.
        settings: arguments of :func:`linkwise.simulate`.
        keep: what is kept.
    """

    def __init__(
        self,
        model: Model,
        inputs: Mapping[str, object] | None = None,
        members: int | None = None,
        *,
        design: QmcEngine | str = "random",
        seed: int | None = None,
        keep: Kept = "final",
        reduce: Mapping[str, str | Measure] | None = None,
        failure: str | Measure | None = None,
        run: Run | None = None,
        **settings: Any,
    ) -> None:
        checked_model(model)
        for name in settings:
            if name in _OWN:
                raise InputError(
                    f"{name} is not a setting of the simulation here",
                    do="put q0, v0, x0 and p into inputs=, and threads into lw.ensemble(threads=)",
                )
        if not isinstance(inputs, Mapping | None):
            raise InputError(
                "inputs are given by name",
                got=repr(inputs),
                allowed='{"q0": scipy.stats.norm(0, 0.1), …}, or None where no member differs',
                do="the number of members comes after them: lw.ensemble(model, {…}, 100)",
            )
        given = dict(inputs or {})
        self.model, self.members = model, _count(given, members)
        self.seeds = Seeds(seed)
        nx = sum(element.nx for element in as_elements(settings.get("control")))
        self.inputs = Inputs(model, given, self.members, {"x0": nx})
        self.design_name = design if isinstance(design, str) else type(design).__name__
        self._design_source = design
        self.run = run
        events = tuple(event.name for event in as_events(settings.get("events")))
        if settings.get("limits") == "stop":
            events = (*events, *_limit_names(model))
        self.keep: Keep = as_keep(keep, reduce, failure, events)
        self.settings = {**settings, **self._formulas(settings)}
        self._choose_samples()
        self.design  # noqa: B018  # what does not fit is said now
        for name in (*self.keep.measures, *self.keep.reduced, "failure", "status"):
            if name in given:
                raise InputError(f"{name!r} is an input and an outcome", do="give one of them another name")

    def _formulas(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Controls, forces and events with the formulas that they have now: the same wherever and whenever they run."""
        p = self.inputs.parameters({part.name: np.zeros((1, part.size)) for part in self.inputs.parts}, 1)
        events = as_events(settings.get("events"))
        acting = {
            "control": as_elements(settings.get("control")),
            "f_ext": as_loads(self.model, settings.get("f_ext")),
        }
        states = sum(each.nx + each.nh for each in (*acting["control"], *acting["f_ext"], *captures_of(events)))
        given = self.model, len(self.model.parameters.nominal) if p is None else p.shape[-1], states
        found: dict[str, object] = {}
        for name, parts in acting.items():
            frozen = tuple(frozen_element(part, *given) for part in parts)
            if any(a is not b for a, b in zip(parts, frozen, strict=True)):
                found[name] = frozen
        if events:
            found["events"] = tuple(frozen_event(event, *given) for event in events)
        return found

    def _choose_samples(self) -> None:
        """No more samples than are looked at: the last one, or a hundred."""
        settings = self.settings
        if self.run is not None or "output_times" in settings or "save_every" in settings:
            return
        t0, duration = float(settings.get("t0", 0.0)), float(settings.get("duration", 10.0))
        if math.isfinite(duration) and duration > 0.0:
            count = _SAMPLES if self.keep.needs_samples else 2
            times = t0 + duration * np.arange(count) / (count - 1.0)
            times[-1] = t0 + duration
            settings["output_times"] = times if self.keep.needs_samples else times[1:]

    @cached_property
    def design(self) -> Design:
        """Points of the members."""
        return make_design(self._design_source, self.members, self.inputs.dimensions, self.seeds)

    def __getstate__(self) -> dict[str, object]:
        """State without what inputs are drawn from: where members run, their inputs come with them."""
        state = {name: value for name, value in vars(self).items() if name not in ("design", "_design_source")}
        return {**state, "inputs": self.inputs.without_sources()}

    @cached_property
    def hash(self) -> str:
        """A fingerprint of everything that decides the results, but the number of members."""
        own = None if self.design_name in NAMES else getattr(self.design, "table", None)  # an engine of the caller's
        drawn = self.inputs.parts, self.design_name, own, self.seeds.entropy
        parts = self.model_hash, drawn, self.keep, self.run, self.settings
        return fingerprint(parts)

    @cached_property
    def model_hash(self) -> str:
        """A fingerprint of the mechanism."""
        return model_fingerprint(self.model)

    def batch(self, start: int, stop: int, threads: int = 1) -> Batch:
        """Members start … stop - 1."""
        return Batch(self, np.arange(start, stop), self.inputs.values(self.design, start, stop), threads)

    def replay(self, member: int, **changes: Any) -> Trajectory:
        """Run one member again, alone: the same motion, bit for bit.

        Args:
            member: its number.
            changes: other arguments of :func:`linkwise.simulate`, such as ``output_times``.
        """
        self.check_member(member)
        batch = self.batch(int(member), int(member) + 1)
        found = batch.simulate(**changes) if self.run is None or changes else self.run(batch)
        if not isinstance(found, Trajectory):
            raise InputError(
                "the run function of this study gives outcomes, not a motion",
                got=type(found).__name__,
                do="outcomes(member) runs it again for one member",
            )
        return found[0]

    def check_member(self, member: object) -> None:
        """Refuse a number that no member has."""
        if isinstance(member, bool) or not isinstance(member, (int, np.integer)) or not 0 <= member < self.members:
            raise InputError("there is no such member", got=repr(member), allowed=f"0 … {self.members - 1}")

    def __repr__(self) -> str:
        return f"<Study of {self.model.name!r}: {self.members} members, {self.design_name}, seed {self.seeds.entropy}>"


def _count(inputs: Mapping[str, object], members: int | None) -> int:
    """Number of members: as given, or as many as the longest table has rows."""
    if members is None:
        rows = [len(spec) for spec in inputs.values() if isinstance(spec, np.ndarray) and spec.ndim]
        if not rows:
            raise InputError(
                "how many members?", got="members=None", do="give members=, or an array with a row for each"
            )
        return max(rows)
    check_count(members=members)
    return int(members)


def _limit_names(model: Model) -> tuple[str, ...]:
    from linkwise.sim.joint_rules import JointRules
    from linkwise.sim.setup import limits_of

    return tuple(event.name for event in limits_of(model, JointRules(limits="stop"))[1])
