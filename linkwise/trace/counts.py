"""Operation counts, as the papers print them: multiplications and divisions (M), additions and subtractions (A)."""

from __future__ import annotations

from collections import Counter

from linkwise.dataclass import dataclass
from linkwise.trace.block import Block
from linkwise.trace.program import Program


@dataclass(frozen=True)
class Counts:
    """Numbers of operations of each kind in one evaluation."""

    mul: int
    add: int
    div: int
    trig: int
    other: dict[str, int]

    @property
    def M(self) -> int:  # the papers' letter
        """Multiplications and divisions together, the papers' M."""
        return self.mul + self.div

    @property
    def A(self) -> int:  # the papers' letter
        """Additions and subtractions together, the papers' A."""
        return self.add

    def __str__(self) -> str:
        rest = "".join(f", {count} {name}" for name, count in sorted(self.other.items()))
        return f"{self.mul} mul, {self.div} div, {self.add} add, {self.trig} sin/cos{rest}"


def count(code: Block | Program) -> Counts:
    """Count the operations of a block or a program; sign changes are free (they fold into the neighbouring operation).

    Loops count as often as they pass; those that ask a flag, one pass.
    """
    tally: Counter[str] = Counter()
    if isinstance(code, Block):
        tally.update(node[0] for node in code.nodes)
    else:
        for block, times in code.times:
            tally.update({op: n * times for op, n in Counter(node[0] for node in block.nodes).items()})
    for free in ("const", "input", "neg"):
        tally.pop(free, None)
    return Counts(
        mul=tally.pop("mul", 0),
        add=tally.pop("add", 0) + tally.pop("sub", 0),
        div=tally.pop("div", 0),
        trig=tally.pop("sin", 0) + tally.pop("cos", 0),
        other=dict(tally),
    )
