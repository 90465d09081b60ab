"""A block of members, run together: the unit of work, of storage and of repetition.

A member that cannot be run harms no other: where a batch raises an exception its halves are run, and so on, until those
members stand alone that cause it.

Members by repeating a compiled step run on a GPU where the process that runs them has one.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np

from linkwise import targets
from linkwise.array_types import Array
from linkwise.checks import check_choice
from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError, require_extra
from linkwise.functions.function import CompiledFunction, compile
from linkwise.functions.many_steps import rollout
from linkwise.memoized import Memory
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import NamedNumbers
from linkwise.studies.fingerprint import this_gpu, this_machine
from linkwise.studies.outcomes import DONE, ERROR, EVENT, FAILED, MAX_STEPS, MOMENTS, ZENO, merged
from linkwise.studies.study import Batch, Study

_CODES = {"done": DONE, "event": EVENT, "failed": FAILED, "max_steps": MAX_STEPS, "zeno": ZENO}
_PILOT = 8  # members that are run first, to learn shapes and times
SECONDS_THERE = 0.4  # that a block should take on a worker: a hundred times what it costs to hand it over
SECONDS_HERE = 1.0  # and in this process, where nobody waits for work and only progress and storing come between
_MOST_BYTES = 32e6  # results of a block, or samples of its motions while they are looked at
_SMALLEST, _LARGEST = 16, 65536


@dataclass(frozen=True)
class Task:
    """Members start … stop - 1 of a study with their inputs; block ``number`` of it, or a part of one."""

    number: int
    start: int
    stop: int
    inputs: Mapping[str, Array]

    def halves(self) -> tuple[Task, Task]:
        """Two tasks with half of the members each."""
        middle = (self.start + self.stop) // 2
        here = middle - self.start
        first, second = ({k: v[part] for k, v in self.inputs.items()} for part in (slice(0, here), slice(here, None)))
        return Task(self.number, self.start, middle, first), Task(self.number, middle, self.stop, second)


@dataclass
class MemberBlock:
    """Results of members start … stop - 1 (n): rows of outcomes, how each ended, and why some did not."""

    number: int
    start: int
    stop: int
    rows: dict[str, Array]
    moments: dict[str, Array]
    status: Array
    reasons: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0
    machine: str = ""

    def as_template(self) -> Template:
        """The shapes that all blocks of the study have."""
        return Template(
            {name: (rows.shape[1:], rows.dtype) for name, rows in self.rows.items()},
            {name: (value.shape, value.dtype) for name, value in self.moments.items()},
        )


@dataclass(frozen=True)
class Template:
    """Shapes and types of all outcomes: for each name those of one member's row, or of a block's moments."""

    rows: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
    moments: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]

    def empty(self, name: str, n: int) -> Array:
        """Rows without results: NaN, zero or False."""
        shape, dtype = self.rows[name]
        return np.full((n, *shape), np.nan if np.dtype(dtype).kind == "f" else 0, dtype)

    def fit(self, block: MemberBlock) -> MemberBlock:
        """The block with a row for each outcome and member; those that could not be run have none of their own yet."""
        n = block.stop - block.start
        for name, (shape, dtype) in self.rows.items():
            rows = block.rows.setdefault(name, self.empty(name, n))
            if rows.shape != (n, *shape):
                raise InputError(
                    f"the outcome {name!r} has another shape than before",
                    got=f"{rows.shape[1:]} in block {block.number}",
                    allowed=f"{shape}",
                )
            if rows.dtype != dtype:
                block.rows[name] = rows.astype(dtype)
        for name, (shape, dtype) in self.moments.items():
            block.moments.setdefault(name, np.full(shape, 0.0 if name.endswith(".count") else np.nan, dtype))
        return block


def run_task(study: Study, task: Task, threads: int = 1) -> MemberBlock:
    """Run some members; whatever happens to one of them is recorded, and the others are unharmed."""
    start = time.perf_counter()
    batch = Batch(study, np.arange(task.start, task.stop), task.inputs, threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they would say is recorded, member by member
        block = _isolated(batch, task)
    block.seconds = time.perf_counter() - start
    on_gpu = getattr(study.run, "on_gpu", None)
    block.machine = this_machine() + (f"; {this_gpu()}" if on_gpu is not None and on_gpu() else "")
    return block


def _isolated(batch: Batch, task: Task) -> MemberBlock:
    try:
        return _attempted(batch, task)
    except MemoryError:
        raise
    except Exception as error:  # whatever a user's function raises, or a state that is refused
        n = task.stop - task.start
        if n == 1:
            status = np.array([ERROR], np.int8)
            return MemberBlock(task.number, task.start, task.stop, {}, {}, status, {task.start: _reason(error)})
        first, second = task.halves()
        here = first.stop - task.start
        return joined(_isolated(batch.part(slice(0, here)), first), _isolated(batch.part(slice(here, n)), second))


def _attempted(batch: Batch, task: Task) -> MemberBlock:
    study, n = batch.study, len(batch)
    found = batch.simulate() if study.run is None else study.run(batch)
    if isinstance(found, Trajectory):
        status = np.asarray(found.status)
        if (status == "interrupted").any():
            raise KeyboardInterrupt
        rows, moments = study.keep.of(found)
        codes = np.zeros(n, np.int8)
        for name, code in _CODES.items():
            codes[status == name] = code
        reasons = {
            task.start + k: why.replace(f"state {k} of the batch", f"member {task.start + k}", 1)
            for (k,), why in found.reasons.items()
        }
        _blanked(rows, study.keep.measures, codes >= FAILED)
    else:
        rows, moments, reasons = _checked_rows(found, n), {}, {}
        codes = np.full(n, DONE, np.int8)
        for name, values in rows.items():
            if values.dtype.kind == "f":
                lost = ~np.isfinite(values.reshape(n, -1)).all(axis=1)
                codes[lost] = FAILED
                reasons |= {task.start + int(k): f"{name} is not finite" for k in np.flatnonzero(lost)}
    owned = {name: np.ascontiguousarray(values) for name, values in rows.items()}
    return MemberBlock(task.number, task.start, task.stop, owned, moments, codes, reasons)


def _blanked(rows: dict[str, Array], names: Iterable[str], lost: Array) -> None:
    """No numbers for members that have no result: a measure of part of a motion would pass for one of the whole."""
    if lost.any():
        for name in names:
            if rows[name].dtype.kind == "f":
                rows[name] = np.array(rows[name])
                rows[name][lost] = np.nan


def _checked_rows(found: object, n: int) -> dict[str, Array]:
    if not isinstance(found, Mapping) or not found:
        raise InputError(
            "the run function returned something else than outcomes",
            got=type(found).__name__,
            allowed="a trajectory, or arrays by name with a row for each member",
        )
    rows = {str(name): np.asarray(values) for name, values in found.items()}
    for name, values in rows.items():
        if values.ndim == 0 or len(values) != n or values.dtype.kind not in "fiub":
            raise InputError(
                f"the outcome {name!r} of the run function is not a row of numbers for each member",
                got=f"shape {values.shape}, dtype {values.dtype}",
                allowed=f"({n}, ...)",
            )
    return rows


def _reason(error: Exception) -> str:
    """Reason of a failure and its place in the code, in a few lines."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({frame.filename.rpartition('/')[2]}:{frame.lineno})" for frame in last)
    return f"{type(error).__name__}: {error}"[:1000] + place


def joined(a: MemberBlock, b: MemberBlock) -> MemberBlock:
    """Two neighbouring blocks as one; where one has no rows of an outcome, those of the other decide its shape."""
    rows: dict[str, Array] = {}
    for name in {**a.rows, **b.rows}:
        known = a.rows.get(name, b.rows.get(name))
        assert known is not None
        template = Template({name: (known.shape[1:], known.dtype)}, {})
        parts = [block.rows.get(name, template.empty(name, block.stop - block.start)) for block in (a, b)]
        rows[name] = np.concatenate(parts)
    moments = a.moments or b.moments
    if a.moments and b.moments:
        moments = {}
        for name in [key.removesuffix(".count") for key in a.moments if key.endswith(".count")]:
            sides = [{what: block.moments[f"{name}.{what}"] for what in MOMENTS} for block in (a, b)]
            moments |= {f"{name}.{what}": np.asarray(value) for what, value in merged(*sides).items()}
    status = np.concatenate([a.status, b.status])
    machine = a.machine if a.machine == b.machine else f"{a.machine}; {b.machine}"
    return MemberBlock(
        a.number, a.start, b.stop, rows, moments, status, a.reasons | b.reasons, a.seconds + b.seconds, machine
    )


def pilot(
    study: Study, threads: int, size: int | None = None, seconds_each: float = SECONDS_HERE
) -> tuple[Template, int]:
    """Run a few members to learn the shapes of outcomes and, unless it is given, how many members make a good block.

    What no member can be run with is wrong for all, and raised.
    """
    count = min(_PILOT, study.members)

    def timed(n: int) -> tuple[MemberBlock, float]:
        batch = study.batch(0, n)
        start = time.perf_counter()
        block = run_task(study, Task(0, 0, n, batch.inputs), threads)
        return block, time.perf_counter() - start

    block, seconds = timed(count)
    if (block.status == ERROR).all():
        batch = study.batch(0, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _attempted(batch, Task(0, 0, 1, batch.inputs))  # raises what it raised
    template = block.as_template()
    if size is not None:
        return template, size
    # The first run has compiled. What a member adds counts, not what a call costs.
    few_seconds = min(seconds, timed(count)[1]) if seconds < 5.0 else seconds
    many = 4 * _PILOT
    if few_seconds > 0.05 or study.members < 8 * many:
        return template, _block_size(study, template, few_seconds / count, seconds_each)
    several = min(timed(many)[1] for _ in range(2))
    return template, _block_size(
        study, template, max(several - few_seconds, 0.02 * several) / (many - count), seconds_each
    )


def _block_size(study: Study, template: Template, seconds: float, seconds_each: float) -> int:
    row = sum(np.dtype(dtype).itemsize * int(np.prod(shape, dtype=int)) for shape, dtype in template.rows.values())
    samples = 8 * (study.model.nq + study.model.nv) * np.size(study.settings.get("output_times", 0))
    size = min(seconds_each / max(seconds, 1e-9), _MOST_BYTES / max(row, samples, 1))
    whole = 2 ** int(np.log2(max(_SMALLEST, min(size, _LARGEST))))
    return int(min(whole, study.members))


class Rollouts:
    """A run function for :func:`linkwise.ensemble`: ``run=Rollouts(step, 1000)``.

    Members start at q0 and v0, and a step is repeated by :func:`linkwise.rollout`; outcomes are ``q_final`` and
    ``v_final``. What runs on a GPU agrees with a CPU to rounding, not to the last bit: a block's record says where it
    ran, and ``device`` can settle it for all.

    Args:
        step: ``step(model, q, v, p)``, traced; returns the next state, {"q": ..., "v": ...}.
        steps: how often.
        device: "gpu", "cpu", or "auto": a GPU where there is one.
        single: whether to compute in float32.
    """

    def __init__(
        self,
        step: Callable[..., NamedNumbers],
        steps: int,
        *,
        device: Literal["auto", "cpu", "gpu"] = "auto",
        single: bool = False,
    ) -> None:
        check_choice("device", device, ("auto", "cpu", "gpu"))
        self.step, self.steps, self.device, self.single = step, int(steps), device, bool(single)

    def __call__(self, batch: Batch) -> dict[str, Array]:
        """Final states of some members."""
        model, n = batch.model, len(batch)
        dtype = np.float32 if self.single else np.float64
        v0, p = batch.v0, batch.p
        given = [
            np.ascontiguousarray(rows, dtype)
            for rows in (
                batch.q0,
                np.zeros((n, model.nv)) if v0 is None else v0,
                np.tile(model.parameters.nominal, (n, 1)) if p is None else p,
            )
        ]
        run = rollout(self._compiled(batch, given[2].shape[1]), self.steps)
        if not self.on_gpu():
            q, v = run(*given, threads=batch.threads)
            return {"q_final": q, "v_final": v}
        cupy = require_extra("cupy", "cuda")
        q, v = run(*(cupy.asarray(rows) for rows in given))
        return {"q_final": cupy.asnumpy(q), "v_final": cupy.asnumpy(v)}

    def on_gpu(self) -> bool:
        """Whether this process runs members on a GPU."""
        return self.device == "gpu" or (self.device == "auto" and targets.target("cuda").available())

    def _compiled(self, batch: Batch, size: int) -> CompiledFunction:
        """The step as it is now; that of before, with all that was compiled of it, where its formulas are the same."""
        now = compile(self.step, batch.model, {"q": "q", "v": "v", "p": size}, name="step")
        return Memory.of(batch.model).recent("ensemble steps", now.program.fingerprint, lambda: now, most=4)
