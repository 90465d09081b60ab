"""From a case that fails to a small one that fails in the same way: greedy, each attempt in a process of its own."""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from campaign.trial import said

Case = TypeVar("Case")


def outcome(check: Callable[[Case], object], case: Case, seconds: float = 60.0) -> str:
    """What ``check(case)`` does in a fork: "" if nothing, else "SIGSEGV", "hangs", or the exception in a line."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 0
        try:
            os.close(reader)
            faulthandler.disable()  # the parent says how it ended
            check(case)
        except BaseException as error:
            os.write(writer, said(error).encode()[:4000])
            code = 1
        os._exit(code)
    os.close(writer)
    text, limit = b"", time.monotonic() + seconds
    while time.monotonic() < limit:
        ready, _, _ = select.select([reader], [], [], max(0.0, limit - time.monotonic()))
        part = os.read(reader, 4096) if ready else b""
        if ready and not part:
            break
        text += part
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        return "hangs"
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return text.decode(errors="replace")


def _kind(message: str) -> str:
    return message.split(":", 1)[0]


def shrink(
    case: Case,
    simpler: Callable[[Case], Iterator[Case]],
    check: Callable[[Case], object],
    seconds: float,
) -> tuple[Case, str]:
    """The smallest case found that fails like this one, and how it fails ("" where this one does not fail at all)."""
    limit = time.monotonic() + seconds
    failure = outcome(check, case, seconds)
    progress = bool(failure)
    while progress:
        progress = False
        for candidate in simpler(case):
            if time.monotonic() > limit:
                return case, failure
            found = outcome(check, candidate, min(60.0, seconds))
            if found and _kind(found) == _kind(failure):
                case, failure, progress = candidate, found, True
                break
    return case, failure


def main(argv: list[str]) -> int:
    """``python -m campaign.shrink KIND SEED NUMBER SECONDS`` prints the test."""
    from campaign.kinds import KINDS

    name, seed, number, seconds = argv
    print(KINDS[name].shrunk(int(seed), int(number), float(seconds)))
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
