"""Targets: what programs can be written as, and where such code runs.

A target is a folder beside this file with a module ``target.py``, whose ``TARGET`` is an object of a class derived from
:class:`Target`. The folders are looked up when a target is first asked for, so there is no list to add to;
:func:`register` takes targets that live elsewhere.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from linkwise.array_types import Precision
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, LinkwiseError
from linkwise.trace.block import Block
from linkwise.trace.program import Program

if TYPE_CHECKING:
    from linkwise.targets.device import Device

# What is in the memory of the processor for certain; anything else is shown to the targets with memory of their own.
ON_HOST = (np.ndarray, float, int, list, tuple)


@dataclass(frozen=True)
class DirectLaunch:
    """Launch that a driver does without Python: one kernel, of addresses of rows and a number of states.

    Args:
        address: of the driver's function for launches, CUDA's ``cuLaunchKernel``.
        handle: of the kernel.
        threads: of a block.
        states: that a block computes.
        shared_bytes: memory that its threads share.
    """

    address: int
    handle: int
    threads: int
    states: int
    shared_bytes: int


class Target(ABC):
    """One way to write programs; perhaps also a place where they run.

    A target with memory of its own (a GPU) has :meth:`holds` and :meth:`device`: a compiled function that is given
    arrays in that memory runs there.
    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    """Ending of the names of its files."""
    summary: ClassVar[str]
    """Purpose, in a few words, for the command line's help."""
    loops: ClassVar[bool] = False
    """Whether it also writes programs with loops: over the links, over time."""
    prefers_few_loops: ClassVar[bool] = False
    """Whether few loops with large bodies are better than more with smaller ones: where there are registers enough."""

    @abstractmethod
    def source(self, program: Block | Program, dtype: Precision) -> str:
        """The program as text, for float64 or float32; with loops only where ``loops`` says so."""

    def emit(self, program: Block | Program, folder: Path, dtype: Precision) -> tuple[Path, ...]:
        """Write the files of a program into a folder that exists; their paths."""
        path = folder / (re.sub(r"\W", "_", program.name) + self.suffix)
        path.write_text(self.source(program, dtype), encoding="utf-8")
        return (path,)

    def available(self) -> bool:
        """Whether functions can run as code of this target, on this machine, from Python."""
        return False

    def holds(self, array: object) -> bool:
        """Whether an argument of a call lives in this target's memory. Must not import anything."""
        return False

    def device(self, arrays: Sequence[object]) -> Device:
        """The place where arrays in this target's memory are, and where its code runs on them."""
        raise LinkwiseError(f"code of the target {self.name!r} is written, not run")

    def launch(
        self, program: Block | Program, dtype: Precision
    ) -> Callable[[int, Sequence[int], int], DirectLaunch | None]:
        """Function that launches a program for those who have a stream and addresses of arrays in this memory.

        It takes the stream's address, addresses of inputs and outputs (rows without gaps), and the number of states. It
        returns how the driver can be asked directly from then on, if it can.
        """
        raise LinkwiseError(f"code of the target {self.name!r} is written, not launched")

    def routine_source(self, routine: Program, dtype: Precision) -> str:
        """A routine as text: a simulation's loop, many steps of a function."""
        if self.loops:
            return self.source(routine, dtype)
        able = ", ".join(name for name, each in targets().items() if each.loops)
        raise InputError(f"the target {self.name!r} has no code for loops over time", allowed=able)


def folder_for_code(folder: str | PathLike[str]) -> Path:
    """A folder that code is written into, made if need be."""
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("no folder can be made here", got=f"{home}: {error.strerror}", do="choose another") from None
    return home


class ProgramListing(Target):
    """The program itself, for people to read: ``source("program")``."""

    name = "program"
    suffix = ".txt"
    summary = "the operations themselves"
    loops = True

    def source(self, program: Block | Program, dtype: Precision) -> str:
        """One line for each operation and each statement; the same in every precision."""
        from linkwise.trace.readable import to_text

        return to_text(program)


def target(name: object) -> Target:
    """The target of a name; an error that lists them all if there is none."""
    found = targets().get(name) if isinstance(name, str) else None
    if found is None:
        raise InputError("no such target", got=repr(name), allowed=", ".join(targets()))
    return found


def targets() -> Mapping[str, Target]:
    """All targets by name, in the order of their names."""
    return MappingProxyType(dict(sorted(_known().items())))


def register(new: Target) -> None:
    """Make a target known that is not one of the folders here; it takes the place of one of the same name."""
    _known()[new.name] = new


def place_of(arrays: Sequence[object]) -> Target | None:
    """The target in whose memory one of the arrays is; None if all are on the host."""
    for array in arrays:
        if type(array) not in ON_HOST and getattr(array, "dtype", None) != np.dtype(object):  # symbols are nobody's
            for each in _known().values():
                if each.holds(array):
                    return each
    return None


def check_on_host(what: str, *arrays: object) -> None:
    """Raise InputError where something that computes with NumPy is given arrays in the memory of a device."""
    place = place_of(arrays)
    if place is not None:
        held = next(array for array in arrays if type(array) not in ON_HOST and place.holds(array))
        raise InputError(
            f"{what} on the host only",
            got=f"an array on a device: {type(held).__module__}.{type(held).__name__}",
            allowed="NumPy arrays",
            do="copy them to the host first, x.get() with CuPy or x.cpu().numpy() with PyTorch, and the results back",
        )


def real(dtype: DTypeLike) -> Precision:
    """A precision that there is code for."""
    try:
        kind: Precision = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InputError("there is no code for this precision", got=repr(dtype), allowed="float64 or float32")
    return kind


@functools.cache
def _known() -> dict[str, Target]:
    import linkwise.targets as home

    names = (f"{home.__name__}.{module.name}.target" for module in pkgutil.iter_modules(home.__path__) if module.ispkg)
    modules = [importlib.import_module(name) for name in names if importlib.util.find_spec(name)]
    return {each.name: each for each in (ProgramListing(), *(module.TARGET for module in modules))}
