"""The process that trials run in: ``python -m campaign.child KIND SEED FIRST COUNT DEADLINE FOLDER``."""

from __future__ import annotations

import faulthandler
import sys
import tempfile
import time
from pathlib import Path

from campaign.kinds import KINDS
from campaign.trial import Log


def main(argv: list[str]) -> int:
    """Run a stretch of one kind's trials."""
    faulthandler.enable()
    name, seed, first, count, deadline, folder = argv
    log = Log(Path(folder), float(deadline))
    KINDS[name].run(int(seed), range(int(first), int(first) + int(count)), log)
    return 0


def once(name: str, *, seed: int, number: int, seconds: float = 300.0) -> None:
    """Run one trial here, and raise what it finds."""
    with tempfile.TemporaryDirectory() as folder:
        KINDS[name].run(seed, range(number, number + 1), Log(Path(folder), time.time() + seconds))
        failures = Path(folder, "failures.jsonl")
        if failures.exists():
            raise AssertionError(failures.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
