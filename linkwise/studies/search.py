"""Search on top of ensembles: candidates are members of one batch, so that a whole generation runs at once.

Every candidate meets the same scenarios (common random numbers): what differs between two costs is the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError, UnknownNameError, require_extra
from linkwise.functions.function import CompiledFunction
from linkwise.model.model import Model
from linkwise.sim.progress import Progress
from linkwise.studies.designs import Seeds
from linkwise.studies.outcomes import FAILED, Measure
from linkwise.studies.running import run_study
from linkwise.studies.study import Study

Together = Literal["mean", "worst"]

_LOST = 1e300  # the cost of a candidate without a result: worse than all others, and still a number


@dataclass
class Found:
    """Result of a search.

    Attributes:
        x: the best candidate (d).
        cost: its cost.
        values: the same by name.
        history: the best cost after each round.
        evaluations: simulations, or calls of the cost.
    """

    x: Array
    cost: float
    values: dict[str, Array]
    history: list[float] = field(default_factory=list)
    evaluations: int = 0


class Candidates:
    """The cost of candidates (n, d): each is simulated in every scenario, all in one ensemble.

    Args:
        model: the mechanism.
        over: for each input to choose, its bounds (low, high): two numbers, or two vectors.
        cost: a function of the trajectory of a batch that returns one number for each member.
        scenarios: inputs as of :func:`linkwise.ensemble`, that candidates have no hand in.
        count: how many scenarios.
        together: a candidate's cost is the mean of its scenarios', or the worst.
        seed: of the scenarios.
        where: ``client``, ``workers`` or ``threads``.
        settings: of :func:`linkwise.simulate`.
    """

    def __init__(
        self,
        model: Model,
        over: Mapping[str, tuple[ArrayLike, ArrayLike]],
        cost: Measure,
        scenarios: Mapping[str, object] | None = None,
        count: int = 1,
        *,
        together: Together = "mean",
        seed: int | None = 0,
        where: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        if together not in ("mean", "worst"):
            raise UnknownNameError("way to put scenarios together", together, ("mean", "worst"))
        self.model, self.cost, self.together, self.count = model, cost, together, int(count)
        self.where, self.settings = dict(where or {}), settings
        bounds = {
            name: np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, float)) for x in pair))
            for name, pair in over.items()
        }
        for name, (low, high) in bounds.items():
            if not (low < high).all() or not np.isfinite([low, high]).all():
                raise InputError(f"{name!r} has no room to search", got=f"{low} … {high}", allowed="low < high, finite")
        self.names = {name: len(low) for name, (low, _) in bounds.items()}
        self.low = np.concatenate([low for low, _ in bounds.values()])
        self.high = np.concatenate([high for _, high in bounds.values()])
        given = dict(scenarios or {})
        # Candidates are tables of the ensemble; scenarios are drawn once, and the same for all.
        self.scenarios = (
            Study(model, given, self.count, seed=seed, **settings).batch(0, self.count).inputs if given else {}
        )
        self.evaluations = 0
        self._batch: int | None = None

    def named(self, x: Array) -> dict[str, Array]:
        """A candidate (..., d) by name."""
        places = np.cumsum([0, *self.names.values()])
        return {name: x[..., a:b] for name, a, b in zip(self.names, places[:-1], places[1:], strict=True)}

    def __call__(self, x: Array) -> Array:
        """Costs (n) of candidates (n, d)."""
        n, k = len(x), self.count
        inputs = {name: np.repeat(values, k, axis=0) for name, values in self.named(x).items()}
        inputs |= {name: np.tile(values, (n, 1)) for name, values in self.scenarios.items()}
        study = Study(self.model, inputs, n * k, seed=0, keep={"cost": self.cost}, **self.settings)
        results = run_study(study, progress=False, batch=self._batch, **self.where)
        self._batch = results.store.size
        self.evaluations += n * k
        cost = np.asarray(results["cost"], float)
        cost[~np.isfinite(cost) | (results["status"] >= FAILED)] = _LOST
        by_candidate = cost.reshape(n, k)
        return np.asarray(by_candidate.mean(axis=1) if self.together == "mean" else by_candidate.max(axis=1))


def search(
    model: Model,
    over: Mapping[str, tuple[ArrayLike, ArrayLike]],
    cost: Measure,
    scenarios: Mapping[str, object] | None = None,
    count: int = 1,
    *,
    strategy: Literal["cma", "random"] = "cma",
    rounds: int = 30,
    population: int = 64,
    start: ArrayLike | None = None,
    together: Together = "mean",
    seed: int = 0,
    progress: bool | Callable[[float], None] | None = None,
    client: Any = None,
    workers: int | None = None,
    threads: int | None = None,
    **settings: Any,
) -> Found:
    """Choose inputs of a model, such as a controller's gains, by simulating many candidates at once.

    Args:
        model: the mechanism.
        over: what to choose: for each input its bounds (low, high), two numbers or two vectors. Names are those of
            :func:`linkwise.ensemble`: parameters of the model, or numbers at the end of ``p``. They come first in it,
            those of ``scenarios`` after.
        cost: a function of the :class:`Trajectory` of a batch that returns one number for each member.
        scenarios: what else differs, drawn once and the same for all candidates.
        count: how many scenarios each candidate meets.
        strategy: "cma" (covariance matrix adaptation, package `cma`, extra `ensemble`) or "random" (uniform in the
            bounds).
        rounds: generations.
        population: candidates in each.
        start: a candidate (d) to begin at; the middle of the bounds if not given.
        together: a candidate's cost is the "mean" of its scenarios', or the "worst".
        seed: everything random follows from it.
        progress: as in :func:`linkwise.ensemble`.
        client: as in :func:`linkwise.ensemble`; likewise ``workers`` and ``threads``.
        workers: see client.
        threads: see client.
        settings: of :func:`linkwise.simulate`.

    Returns:
        The best candidate of all that were tried.
    """
    where = {"client": client, "workers": workers, "threads": threads}
    costs = Candidates(model, over, cost, scenarios, count, together=together, seed=seed, where=where, **settings)
    if strategy not in ("cma", "random"):
        raise UnknownNameError("strategy of search", strategy, ("cma", "random"))
    proposals = (
        _CMA(costs, population, start, seed) if strategy == "cma" else _RandomSearch(costs, population, start, seed)
    )
    best = Found(np.full(len(costs.low), np.nan), np.inf, {})
    bar = Progress(progress, f"search {model.name}")
    try:
        for turn in range(rounds):
            x = proposals.ask()
            found = costs(x)
            proposals.tell(x, found)
            k = int(np.argmin(found))
            if found[k] < best.cost:
                best.x, best.cost, best.values = x[k].copy(), float(found[k]), costs.named(x[k].copy())
            best.history.append(best.cost)
            bar.update((turn + 1) / rounds, f"best cost {best.cost:.6g}, {costs.evaluations} simulations")
    finally:
        bar.close()
    best.evaluations = costs.evaluations
    if rounds and best.cost >= _LOST / costs.count:
        raise InputError(
            "no candidate of the search has a cost",
            got=f"{costs.evaluations} simulations, of each candidate at least one without a result",
            do="run lw.ensemble with values inside the bounds, and look at its failures",
        )
    return best


class _RandomSearch:
    """Uniform in the bounds, and the start itself in the first round."""

    def __init__(self, costs: Candidates, population: int, start: ArrayLike | None, seed: int) -> None:
        self.low, self.high, self.population = costs.low, costs.high, population
        self.rng = Seeds(seed).stream(4)
        self.start = None if start is None else _checked_start(start, costs)

    def ask(self) -> Array:
        """Candidates (n, d)."""
        x = self.rng.uniform(self.low, self.high, (self.population, len(self.low)))
        if self.start is not None:
            x[0], self.start = self.start, None
        return x

    def tell(self, x: Array, cost: Array) -> None:
        """Learn nothing."""


class _CMA:
    """Hansen's CMA-ES, in coordinates in which the bounds are 0 and 1."""

    def __init__(self, costs: Candidates, population: int, start: ArrayLike | None, seed: int) -> None:
        cma = require_extra("cma", "ensemble")
        self.low, self.size = costs.low, costs.high - costs.low
        middle = np.full(len(self.low), 0.5) if start is None else (_checked_start(start, costs) - self.low) / self.size
        number = int(Seeds(seed).stream(4).integers(1, 2**31))
        options = {"bounds": [0.0, 1.0], "popsize": population, "seed": number, "verbose": -9}
        # The package (4.5) does not search along a line: a second coordinate, which does nothing, makes it a plane.
        start_at = np.append(middle, 0.5) if len(middle) == 1 else middle
        self.engine = cma.CMAEvolutionStrategy(start_at, 0.25, options)
        self._asked: list[Array] = []

    def ask(self) -> Array:
        """Candidates (n, d)."""
        self._asked = self.engine.ask()
        return np.asarray(self.low + self.size * np.array(self._asked)[:, : len(self.low)])

    def tell(self, x: Array, cost: Array) -> None:
        """Learn from their costs."""
        self.engine.tell(self._asked, cost.tolist())


def _checked_start(start: ArrayLike, costs: Candidates) -> Array:
    x = np.asarray(start, float)
    if x.shape != costs.low.shape or not ((x >= costs.low) & (x <= costs.high)).all():
        raise InputError("the start does not lie in the bounds", got=str(x), allowed=f"{costs.low} … {costs.high}")
    return x


def descend(
    cost: CompiledFunction,
    start: ArrayLike,
    data: Sequence[ArrayLike] = (),
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    scale: ArrayLike | None = None,
    rounds: int = 200,
    tolerance: float = 1e-12,
    threads: int | None = None,
) -> Found:
    """Go downhill along exact gradients (limited-memory BFGS), from one start or from many.

    Args:
        cost: from :func:`linkwise.compile`, to one number; its first input is what is looked for (d), the others are
            data. The cost of a candidate is the mean over all rows of the data, which run as one batch.
        start: where to begin (d), or several places (n, d); the best result counts.
        data: for each other input its rows (rows, ...).
        bounds: low and high, (d) or one number each.
        scale: typical sizes (d); those of the start if not given.
        rounds: steps, at most.
        tolerance: relative change of the cost below which it stops.
        threads: to split the data over.
    """
    from scipy.optimize import minimize

    name = cost.inputs[0][0]
    gradient = cost.gradient(name)
    given = [np.asarray(each, float) for each in data]
    starts = np.atleast_2d(np.asarray(start, float))
    sizes = np.broadcast_to(np.asarray(scale, float), starts.shape[1:]) if scale is not None else None
    best = Found(starts[0].copy(), np.inf, {})
    for first in starts:
        unit = np.where(first != 0.0, np.abs(first), 1.0) if sizes is None else sizes
        history: list[float] = []

        def both(z: Array, unit: Array = unit, history: list[float] = history) -> tuple[float, Array]:
            x = z * unit
            value = float(np.mean(cost(x, *given, threads=threads)))
            slope = np.atleast_2d(gradient(x, *given, threads=threads)).reshape(-1, len(x)).mean(axis=0)
            history.append(min(value, history[-1] if history else value))
            return value, slope * unit

        limits = None
        if bounds is not None:
            low, high = (np.broadcast_to(np.asarray(side, float), first.shape) / unit for side in bounds)
            limits = np.stack([low, high], axis=1)
        end = minimize(
            both, first / unit, jac=True, method="L-BFGS-B", bounds=limits,
            options={"maxiter": rounds, "ftol": tolerance, "gtol": 0.0},
        )  # fmt: skip
        best.evaluations += int(end.nfev)
        if end.fun < best.cost:
            best.x, best.cost, best.history = end.x * unit, float(end.fun), history
    best.values = {name: best.x}
    return best
