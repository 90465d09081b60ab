"""Which functions of a large model run as loops, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from linkwise.algorithms.catalogue import CATALOGUE, Trees, link_start
from linkwise.compile import CompiledFunction
from linkwise.errors import InputError
from linkwise.rolled.function import ColumnsFunction, RolledFunction
from linkwise.rolled.jacobian import JacobianRows
from linkwise.rolled.linearize import LinearizedColumns, PerturbedForward
from linkwise.rolled.tree import RolledTree

if TYPE_CHECKING:
    from linkwise.dynamics import Model

_BY_COLUMNS = {"mass_matrix": "mass_product", "mass_matrix_inverse": "mass_solve"}


class _RolledTrees(Trees):
    """Stands in for the layouts of a mechanism while a text is rolled."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    @property
    def fast(self) -> Any:
        """The rolled tree."""
        return self.tree


def rolled_function(
    model: Model,
    name: str,
    run: Callable[..., Any],
    inputs: Sequence[tuple[str, tuple[int, ...]]],
    doc: str,
    static: dict[str, Any],
) -> CompiledFunction | None:
    """The function as loops over the links; None where its text is not made of sweeps.

    Args:
        model: whose function it is.
        name: of the function.
        run: its text over any scalar.
        inputs: name and core shape of each input.
        doc: docstring.
        static: arguments that are not arrays.
    """
    if model.parameter_names:
        raise InputError(
            "rolled sweeps take no run-time parameters",
            got=f"{len(model.parameter_names)} parameters",
            do='use model.with_sweeps("unrolled")',
        )
    if name in _BY_COLUMNS:
        column = _BY_COLUMNS[name]
        return ColumnsFunction(name, run, inputs, doc, column=column, function=model.function, size=model.nv)
    if name == "perturb_forward":
        return PerturbedForward(name, run, inputs, doc, function=model.function, size=model.nv)
    if name in ("linearize_inverse", "linearize_forward"):
        return LinearizedColumns(name, run, inputs, doc, function=model.function, size=model.nv)
    if name == "jacobian":
        frame = model.frame(static["body"])
        return JacobianRows(name, run, inputs, doc, function=model.function, frame=frame, size=model.nv)
    text = CATALOGUE[name]
    if not text.rolls:
        return None

    def rolled(tree: RolledTree, *handles: Any) -> Any:
        given = {handle.name: handle for handle in handles}
        arguments = [given.get(n) for n in (*text.inputs, *text.optional)]
        return text.function(_RolledTrees(tree), *arguments)

    starts = [link_start(n) for n, _ in inputs]
    make = lambda: RolledTree(model._trees.fast)  # noqa: E731
    return RolledFunction(name, run, inputs, doc, starts=starts, rolled_text=rolled, tree=make)
