"""What a call with arrays on a GPU ends in: anything that is launched as a program is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from linkwise.codegen.cuda.layout import Kind
from linkwise.codegen.steps import Rollout
from linkwise.tracing.block import ArraySpec


class Arrays(Protocol):
    """What is taken and given."""

    @property
    def inputs(self) -> tuple[ArraySpec, ...]:
        """Arrays taken."""

    @property
    def outputs(self) -> tuple[ArraySpec, ...]:
        """Arrays given."""


class Launched(Protocol):
    """A program for GPUs in one precision."""

    @property
    def program(self) -> Arrays:
        """What it takes and gives."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its precision."""

    @property
    def rollout(self) -> Rollout | None:
        """What happens between steps, if there are many."""

    @property
    def takes_addresses(self) -> bool:
        """Whether arrays may be given by their addresses alone."""

    def in_place(self, kinds: tuple[Kind, ...]) -> bool:
        """Whether an output may be the same array as an input."""

    def launch(self, arrays: Sequence[Any], kinds: tuple[Kind, ...], count: int, steps: int | None = None) -> None:
        """Run on the current device and stream.

        Args:
            arrays: inputs then outputs, laid out as ``kinds`` says: CuPy's, or addresses as ``numpy.uint64``.
            kinds: how each array comes.
            count: states.
            steps: for a rollout.
        """
