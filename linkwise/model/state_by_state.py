"""Functions of closed models that look at numbers, and so run outside the compiled code.

The pieces (𝓜, c, J_c, bias, ė) are compiled; the solution is :class:`~linkwise.model.null_space.NullSpace`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.closed_system import ConstraintForces, Impulse
from linkwise.functions.function import Chart, CompiledFunction
from linkwise.model.null_space import NullSpace
from linkwise.targets import check_on_host
from linkwise.targets.batch import HostBatch
from linkwise.targets.device import Device
from linkwise.trace.block import ArraySpec

if TYPE_CHECKING:
    from linkwise.model.model import Model


class SolvedByNumbers(CompiledFunction):
    """A function of a closed model whose solver tests ranks; on symbols, and for derivatives, its text."""

    def __init__(
        self,
        name: str,
        text: Callable[..., Any],
        inputs: Sequence[tuple[str, tuple[int, ...]]],
        doc: str,
        charts: Mapping[str, Chart],
        model: Model,
    ) -> None:
        super().__init__(name, text, inputs, doc, charts)
        self.model = model

    def builtin(self, *_: Any, **__: Any) -> None:
        """None: there is no program to call."""
        return

    def _evaluate(self, device: Device, arrays: Sequence[Any], out: Any, threads: int) -> list[Any]:
        """A batch at a time."""
        check_on_host(f"{self.name} with a solver that tests ranks runs", *arrays)
        batch = HostBatch(self.name, self.inputs, arrays)
        given = {
            name: np.broadcast_to(array, (*batch.shape, *shape))
            for (name, shape), array in zip(self.inputs, batch.arrays, strict=True)
        }
        result = self._solved(given, threads)
        values = result if isinstance(result, tuple) else (result,)
        specs = [ArraySpec("out", value.shape[len(batch.shape) :]) for value in values]
        results = batch.outputs(specs, out)
        for (_, target), value in zip(results, values, strict=True):
            target[...] = value
        return batch.finish(results)

    @property
    def result_type(self) -> type[Any] | None:
        """The kind of named tuple that is returned; None for a single array."""
        return {"constraint_forces": ConstraintForces, "impulse": Impulse}.get(self.name)

    def _solved(self, given: dict[str, Any], threads: int) -> Any:
        model, q, v = self.model, given["q"], given["v"]
        p, t = given.get("p"), given.get("t")
        system = NullSpace(
            model.mass_matrix(q, p=p, threads=threads),
            model.constraints.jacobian(q, t=t, v=v, p=p, threads=threads),
        )
        if self.name in ("forward_dynamics", "constraint_forces"):
            f = given["tau"] - model.bias_force(q, v, given.get("f_ext"), p=p, threads=threads)
            gamma = -model.constraints.bias(q, v, t=t, p=p, threads=threads)
            vdot, multipliers = (x[..., 0] for x in system.solve(f[..., None], gamma[..., None]))
            if self.name == "forward_dynamics":
                return vdot
            return ConstraintForces(multipliers, self._wrenches(given, multipliers))
        rates = model.constraints.rate(q, v, t=t, p=p, threads=threads)
        change, impulses = (x[..., 0] for x in system.solve(np.zeros_like(v)[..., None], -rates[..., None]))
        return v + change if self.name == "project_velocity" else Impulse(v + change, impulses)

    def _wrenches(self, given: dict[str, Any], multipliers: Any) -> Any:
        model = self.model
        p, t = given.get("p"), given.get("t")
        return model._run("closure_wrenches", given["q"], given["v"], multipliers, t=t, p=p)


def solved_by_numbers(
    model: Model,
    name: str,
    text: Callable[..., Any],
    inputs: Sequence[tuple[str, tuple[int, ...]]],
    doc: str,
    charts: Mapping[str, Chart],
) -> CompiledFunction:
    """The function of this name, as a null-space solution."""
    return SolvedByNumbers(name, text, inputs, doc, charts, model)
