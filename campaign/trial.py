"""What a kind of trial is, and the log that it writes while it runs in a process of its own."""

from __future__ import annotations

import json
import mmap
import struct
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

_SIZE = 16384
_HEAD = struct.Struct("<qqq")  # number of the trial under way, trials done, a pulse


class Log:
    """Tells the process outside what is under way, so that a crash or a hang has a number and a description."""

    def __init__(self, folder: Path, deadline: float) -> None:
        self.deadline = deadline
        self._failures = folder / "failures.jsonl"
        with (folder / "status").open("w+b") as file:
            file.truncate(_SIZE)
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self._done = self._pulse = 0

    def numbers(self, numbers: range) -> Iterator[int]:
        """The numbers one by one, until time is up; each is announced, and counted when the next is asked for."""
        for number in numbers:
            if self.expired:
                return
            self.begin(number)
            yield number
            self.done()

    @property
    def expired(self) -> bool:
        """Whether time is up."""
        return time.time() > self.deadline

    def begin(self, number: int, case: object = "") -> None:
        """Announce a trial before anything can go wrong in it."""
        text = str(case).encode()[: _SIZE - _HEAD.size - 1]
        self._map[_HEAD.size : _HEAD.size + len(text) + 1] = text + b"\0"
        self._write(number)

    def done(self, count: int = 1) -> None:
        """Count trials that ended; whether they ended well is said by :meth:`fail`."""
        self._done += count
        self._write(_HEAD.unpack_from(self._map)[0])

    def _write(self, number: int) -> None:
        self._pulse += 1
        _HEAD.pack_into(self._map, 0, number, self._done, self._pulse)

    def fail(self, number: int, what: str) -> None:
        """Report what a trial found; the run goes on."""
        with self._failures.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"number": number, "what": what}) + "\n")


def read_status(folder: Path) -> tuple[int, int, int, str]:
    """Number, done, pulse and description, as last written by the :class:`Log` of a folder."""
    data = (folder / "status").read_bytes() if (folder / "status").exists() else b""
    if len(data) < _SIZE:
        return -1, 0, 0, ""
    text = data[_HEAD.size :].split(b"\0", 1)[0].decode(errors="replace")
    number, done, pulse = _HEAD.unpack_from(data)
    return number, done, pulse, text


def said(error: BaseException) -> str:
    """An exception in a line, and where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" at {Path(last[0].filename).name}:{last[0].lineno}" if last else ""
    return f"{type(error).__name__}: {error}{place}"


class Trial(ABC):
    """One kind of trial. Numbers count from zero; neighbours may share what is dear to make, in chunks."""

    name: ClassVar[str]
    unit: ClassVar[str]
    """What is counted, in the plural."""
    target: ClassVar[int]
    """The count that a whole campaign should reach."""
    chunk: ClassVar[int]
    """Trials that run in one process, and share what they can."""
    share: ClassVar[float] = 1.0
    """Part of a campaign's time, relative to the other kinds."""
    patience: ClassVar[float] = 120.0
    """Seconds without a sign of life after which a trial hangs."""
    cached: ClassVar[bool] = False
    """Whether compiled objects are kept on disk (in a folder of the run), or everything is compiled anew."""

    def unavailable(self) -> str | None:
        """Why this kind cannot run here; None where it can."""
        return None

    @abstractmethod
    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Try the numbers of one chunk, or of a part of one."""

    def shrunk(self, seed: int, number: int, seconds: float) -> str:
        """A pytest test that fails as this trial did; the smallest that is found in the time given."""
        return (
            f"def test_{self.name}_{seed}_{number}() -> None:\n"
            f"    from campaign.child import once\n\n"
            f"    once({self.name!r}, seed={seed}, number={number})\n"
        )
