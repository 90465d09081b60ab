"""Homes of the arrays of a run, and of its routines: the processor's memory, or a device's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Protocol

import numpy as np

from linkwise.trace.program import Program


class Runner(Protocol):
    """A routine that is ready to run."""

    program: Program

    def run(
        self,
        rows: Mapping[str, Any],
        tables: Mapping[str, Any],
        records: Mapping[str, Any],
        count: int,
        threads: int = 1,
    ) -> None:
        """Run to the end, for ``count`` states."""


class Home(ABC):
    """Place where the arrays of a run are, and all that the run asks of it.

    Arrays *here* are of the library :attr:`xp`; those on the host are NumPy's. Rows of a routine may be either: a
    runner takes what lies on the host over, and brings it back if it is stored.
    """

    name: ClassVar[str]
    calls_python: ClassVar[bool] = False
    """Whether routines that ask a Python function on the way can run here."""
    xp: Any
    """The library of the arrays here: NumPy, or one with the same functions."""

    @abstractmethod
    def runner(self, routine: Program, dtype: np.dtype[Any], single_states: bool) -> Runner:
        """The routine, compiled; ``single_states``: for one or two states, which need not wait for others."""

    @abstractmethod
    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A new array with arbitrary contents."""

    @abstractmethod
    def seconds(self, operations: int, count: int) -> float:
        """Seconds, about, that so many operations on each of so many states take."""

    def to_device(self, array: Any) -> Any:
        """An array of the host, here."""
        return array

    def to_host(self, array: Any) -> Any:
        """An array from here, on the host."""
        return array

    def taken(self, array: Any, index: Any) -> Any:
        """``array[index]`` on the host."""
        return array[index]

    def put(self, array: Any, index: Any, values: Any) -> None:
        """``array[index] = values``, of the host."""
        array[index] = values

    def as_callers_library(self, array: Any) -> Any:
        """An array from here as the caller's library has it."""
        return array

    def owns(self, array: Any) -> bool:
        """Whether an array is here."""
        return isinstance(array, np.ndarray)

    def entered(self) -> AbstractContextManager[Any]:
        """Context for the time of a run."""
        return nullcontext()
