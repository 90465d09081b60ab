"""Ways to run the functions of a large model: as loops over the links, or column by column through such loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from linkwise.algorithms.catalogue import INPUTS, Text, Trees
from linkwise.algorithms.mass_matrix import of_links
from linkwise.contact.catalogue import EVERY
from linkwise.functions.function import Chart, CompiledFunction
from linkwise.functions.rolled.chain_segments import function_type
from linkwise.functions.rolled.columns import ColumnsFunction
from linkwise.functions.rolled.halves import HalvedFunction, is_halved
from linkwise.functions.rolled.link_vectors import BetweenSweeps, DualVector, GlobalInput
from linkwise.functions.rolled.rolled_function import RolledFunction, RolledMaker
from linkwise.functions.rolled.rolling import RolledTree, change_of
from linkwise.mechanism.tree import Tree
from linkwise.spatial.dual import Dual, new_level
from linkwise.spatial.scalar import Flat
from linkwise.trace.block import ArraySpec
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.model.model import Model

Inputs = Sequence[tuple[str, tuple[int, ...]]]


class RolledTrees(Trees):
    """The layouts of a mechanism while a text is rolled; the one that the text asks for becomes a rolled tree."""

    def __init__(
        self,
        model: Model,
        p: Flat | None,
        ground: BetweenSweeps,
        levels: Sequence[int] = (),
    ) -> None:
        super().__init__(model, p)
        self.ground, self.levels = ground, levels
        self.known = model._trees if p is None else Trees(model, p)
        self.rolled: RolledTree | None = None

    def _rolled(self, tree: Tree) -> RolledTree:
        if self.rolled is None or self.rolled.tree is not tree:
            self.rolled = RolledTree(tree, self.ground, self.levels)
        return self.rolled

    @property
    def fast(self) -> Any:
        """Aligned frames, regrouped inertias, rolled."""
        return self._rolled(self.known.fast)

    @property
    def aligned(self) -> Any:
        """Aligned frames, each body's own inertia, rolled."""
        return self._rolled(self.known.aligned)

    @property
    def in_body_frames(self) -> Any:
        """The user's frames and inertias, rolled."""
        return self._rolled(self.known.in_body_frames)


def rolled_function(
    model: Model,
    name: str,
    run: Callable[..., object],
    inputs: Inputs,
    doc: str,
    static: Mapping[str, object],
    charts: Mapping[str, Chart],
) -> CompiledFunction:
    """The function as loops over the links.

    Args:
        model: whose function it is.
        name: of the function.
        run: its text over any scalar.
        inputs: name and core shape of each input.
        doc: docstring.
        static: arguments that are not arrays.
        charts: tangent spaces of the inputs that are configurations.
    """
    text = EVERY[name]
    if text.columns is None:
        rolling = _rolling(model, text, text.function, inputs, static)

        def along(names: tuple[str, ...]) -> RolledFunction:
            taken = [*inputs, *((f"d{n}", shape) for n, shape in inputs if n in names)]
            change = _rolling(model, text, text.function, inputs, static, moving=names)
            return RolledFunction(f"{name}_change", run, taken, doc, rolling=change)

        kind = function_type(model, name, inputs)
        return kind(name, run, inputs, doc, charts, rolling=rolling, along=along, result=text.result)
    # A matrix through the vector that it makes of another one.
    columns = text.columns
    vectors = [(n, INPUTS[n].shape(model)) for n in columns.along]

    def part(suffix: str, function: Callable[..., object], *more: str) -> RolledFunction:
        taken = [*inputs, *((n, shape) for n, shape in vectors if n in more)]
        rolling = _rolling(model, text, function, taken, static, *more)
        return RolledFunction(f"{name}_{suffix}", run, taken, doc, rolling=rolling)

    column = part("column", columns.function, *columns.along)
    value = None if columns.value is None else part("value", columns.value)
    options: dict[str, Any] = {"columns": columns, "column": column, "value": value}
    if not columns.halved or not is_halved(model._trees.fast):
        return ColumnsFunction(name, run, inputs, doc, charts, **options)
    most = max((joint.nv for joint in model.joints), default=0)
    rolling = _rolling(model, text, lambda t, q, *_: of_links(t.fast, q, most), inputs, static)
    links = RolledFunction(f"{name}_of_links", run, inputs, doc, rolling=rolling)
    return HalvedFunction(name, run, inputs, doc, charts, of_links=links, tree=model._trees.fast, **options)


def _rolling(
    model: Model,
    text: Text,
    function: Callable[..., object],
    inputs: Inputs,
    static: Mapping[str, object],
    *more: str,
    moving: tuple[str, ...] = (),
) -> RolledMaker:
    """Runs a text on a rolled tree.

    ``more`` names inputs beyond those of the text. With ``moving`` it is the change of the result with these inputs,
    whose rates are inputs too.
    """

    def roll(name: str, far: bool = False) -> Program:
        ground = BetweenSweeps()
        handles = {n: GlobalInput(n, ArraySpec(n, shape), INPUTS[n].divided, ground) for n, shape in inputs}
        rates = {n: GlobalInput(f"d{n}", handles[n].spec, handles[n].per_link, ground) for n in handles if n in moving}
        rates = {n: replace(rate, spec=ArraySpec(rate.name, rate.spec.shape)) for n, rate in rates.items()}
        p = RolledTree.whole(ground, handles["p"]) if "p" in handles else None
        level = new_level()
        trees = RolledTrees(model, p, ground, [level] if moving else [])
        given: dict[str, Any] = {}
        for n, handle in handles.items():
            whole = handle.per_link == "none"
            given[n] = RolledTree.whole(ground, handle) if whole else handle
            if n in rates and whole:
                pairs = zip(given[n], RolledTree.whole(ground, rates[n]), strict=True)
                given[n] = [Dual(x, d, level) for x, d in pairs]
            elif n in rates:
                given[n] = DualVector(handle, rates[n], level)
        arguments = [given.get(n) for n in (*text.inputs, *text.optional, *more)]
        result: Any = function(trees, *arguments, **static)
        tree = trees.rolled or trees._rolled(model._trees.fast)
        if moving:
            result = change_of(result, level)
        outputs = result._asdict() if text.result else {"out": result}
        program: Program = tree.finish(name, [*handles.values(), *rates.values()], outputs, far)
        return program

    return roll
