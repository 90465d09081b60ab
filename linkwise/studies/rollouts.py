"""Members by repeating a compiled step: on a GPU where the process that runs them has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from linkwise import targets
from linkwise.array_types import Array
from linkwise.errors import InputError, require_extra
from linkwise.functions.function import CompiledFunction, compile
from linkwise.functions.many_steps import rollout
from linkwise.memoized import Memory
from linkwise.spatial.scalar import NamedNumbers
from linkwise.studies.study import Batch


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
        if device not in ("auto", "cpu", "gpu"):
            raise InputError("no such device", got=repr(device), allowed='"auto", "cpu" or "gpu"')
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
