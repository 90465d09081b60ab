"""Devices: where arrays are and where programs run on them, the processor or a GPU, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from linkwise.array_types import Precision
from linkwise.trace.block import Block
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.targets import Target
    from linkwise.targets.steps import Rollout


class Callee(Protocol):
    """A function that a device is asked to evaluate: its name, for messages, the name and shape of each input.

    One that repeats a step says how often, and what of one step becomes the next one's; its kernel is that of the
    :class:`~linkwise.targets.steps.Repetition`.
    """

    name: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    repeats: tuple[int, Rollout] | None

    def kernel(self, dtype: Precision, device: Device, few_states: bool = False) -> Any:
        """Kernel in a precision, as :meth:`Device.kernel` of that device makes it; kept by the function."""


class Device(ABC):
    """Place where arrays are, and all that calls and runs ask of it.

    Arrays *here* are of the library :attr:`xp`; those on the host are NumPy's.
    """

    name: ClassVar[str]
    calls_python: ClassVar[bool] = False
    """Whether programs that ask a Python function on the way can run here."""
    alone: ClassVar[float] = 4e-10
    """Seconds, about, that an operation takes at the least; by one core of a processor if nothing else is said."""
    together: ClassVar[float] = 4e-10
    """Seconds, about, that it takes for each of many states."""
    target: ClassVar[Target]
    """The target whose code runs here."""
    xp: Any
    """The library of the arrays here: NumPy, or one with the same functions."""

    @abstractmethod
    def kernel(self, program: Block | Program, dtype: Precision, few_states: bool = False) -> Any:
        """The program, compiled; ``few_states``: for some that need not wait for others.

        That of a simulation's loop has ``program`` and ``run(rows, tables, records, count, threads)``, as that of
        :class:`~linkwise.trace.interpreter.Interpreter`; rows may be here or on the host: what lies on the host is
        taken over, and brought back if it is stored.
        """

    @abstractmethod
    def call(self, function: Callee, arrays: Sequence[object], out: object = None, threads: int = 1) -> list[Any]:
        """Evaluate a function for one state or a batch; one result for each output, in the caller's kind of arrays.

        Args:
            function: what is evaluated.
            arrays: one for each input; on a GPU, at least one of them is there.
            out: array or tuple of arrays to fill.
            threads: threads to split a batch over, where they are not the device's own affair.
        """

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """A new array with arbitrary contents."""
        return self.xp.empty(shape, dtype)

    def to_device(self, array: object, /) -> Any:
        """An array of the host, here."""
        return array

    def to_host(self, array: object, /) -> Any:
        """An array from here, on the host."""
        return array

    def taken(self, array: Any, index: object) -> Any:
        """``array[index]`` on the host."""
        return array[index]

    def put(self, array: Any, index: object, values: ArrayLike) -> None:
        """``array[index] = values``, of the host."""
        array[index] = values

    def as_callers_library(self, array: object, /) -> Any:
        """An array from here as the caller's library has it."""
        return array

    def owns(self, array: object) -> bool:
        """Whether an array is here."""
        return isinstance(array, np.ndarray)

    def entered(self) -> AbstractContextManager[object]:
        """Context for the time of a run: the device, and the stream the caller works on."""
        return nullcontext()
