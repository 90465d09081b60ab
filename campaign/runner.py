"""Runs trials in child processes, watches them, counts, and writes down what was found.

    python -m campaign                                  every kind, ten minutes in all
    python -m campaign --time 2h --jobs 4               longer, on more cores
    python -m campaign calls --seed 123 --count 1000    one kind, so many trials
    python -m campaign calls --seed 123 --first 717 --count 1     one trial again
    python -m campaign report build/campaign/*.json     the table in docs/trust.md from what was reached

A trial that crashes or hangs takes only its own process with it: it is reported with its number and what it was doing,
and the run goes on behind it. Each failure is shrunk and printed as a test.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign import report
from campaign.kinds import KINDS
from campaign.trial import Trial, read_status

_SHRINK_SECONDS = 90.0


@dataclass
class Outcome:
    """What came of one kind."""

    name: str
    unit: str
    target: int
    done: int = 0
    seconds: float = 0.0
    skipped: str = ""
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Trials in a second."""
        return self.done / self.seconds if self.seconds else 0.0


class Child:
    """One process at work on a stretch of numbers."""

    def __init__(self, trial: Trial, seed: int, numbers: range, deadline: float, home: Path) -> None:
        self.trial, self.seed, self.numbers = trial, seed, numbers
        self.folder = Path(tempfile.mkdtemp(dir=home))
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        environment["LINKWISE_CACHE"] = "1" if trial.cached else "0"
        environment["LINKWISE_CACHE_DIR"] = str(home / "objects")
        arguments = [trial.name, seed, numbers.start, len(numbers), deadline, self.folder]
        with (self.folder / "said").open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "campaign.child", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environment,
                start_new_session=True,  # an interrupt of ours is not theirs
            )
        self._pulse, self._seen = -1, time.monotonic()

    def check(self) -> str | None:
        """None while it works; "" when it ended well; else how it ended."""
        code = self.process.poll()
        if code is not None:
            if code == 0:
                return ""
            how = signal.Signals(-code).name if code < 0 else f"the process ended with code {code}"
            return f"{how}\n{self._tail()}"
        pulse = read_status(self.folder)[2]
        if pulse != self._pulse:
            self._pulse, self._seen = pulse, time.monotonic()
        elif time.monotonic() - self._seen > self.trial.patience:
            self.process.send_signal(signal.SIGABRT)  # faulthandler says where it hangs
            time.sleep(0.5)
            self.kill()
            return f"hangs: no sign of life for {self.trial.patience:.0f} s\n{self._tail()}"
        return None

    def kill(self) -> None:
        """End it, and whatever it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _tail(self) -> str:
        return (self.folder / "said").read_text(errors="replace")[-2500:].strip()

    @property
    def done(self) -> int:
        """Trials that ended so far."""
        return read_status(self.folder)[1]

    def failures(self) -> list[dict[str, Any]]:
        """What it reported itself."""
        file = self.folder / "failures.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def chunks(trial: Trial, first: int, count: int | None) -> Iterator[range]:
    """Stretches of numbers, cut where the kind's chunks begin."""
    stop = None if count is None else first + count
    while stop is None or first < stop:
        end = (first // trial.chunk + 1) * trial.chunk
        end = end if stop is None else min(end, stop)
        yield range(first, end)
        first = end


class Run:
    """One kind for a while."""

    def __init__(self, trial: Trial, seed: int, home: Path, jobs: int, failures: int) -> None:
        self.trial, self.seed, self.home, self.jobs, self.failures = trial, seed, home, jobs, failures
        self.outcome = Outcome(trial.name, trial.unit, trial.target)
        self._again: deque[range] = deque()
        self._children: list[Child] = []
        self._shown = 0.0

    def go(self, first: int, count: int | None, seconds: float) -> Outcome:
        """Try until the count is reached, the time is over, or enough has failed."""
        reason = self.trial.unavailable()
        if reason:
            self.outcome.skipped = reason
            print(f"{self.trial.name}: skipped, {reason}")
            return self.outcome
        began = time.time()
        deadline = began + seconds
        stretches = chunks(self.trial, first, count)
        try:
            while True:
                self._start(stretches, deadline)
                if not self._children:
                    break
                time.sleep(0.05)
                self._look()
                self._progress(began)
        finally:
            for child in self._children:
                child.kill()
            self.outcome.seconds = time.time() - began
        self._progress(began, last=True)
        self._shrink()
        return self.outcome

    def _start(self, stretches: Iterator[range], deadline: float) -> None:
        while len(self._children) < self.jobs and time.time() < deadline:
            if len(self.outcome.failures) >= self.failures:
                return
            numbers = self._again.popleft() if self._again else next(stretches, None)
            if numbers is None:
                return
            self._children.append(Child(self.trial, self.seed, numbers, deadline, self.home))

    def _look(self) -> None:
        for child in list(self._children):
            end = child.check()
            if end is None:
                continue
            self._children.remove(child)
            number, done, _, text = read_status(child.folder)
            self.outcome.done += done
            for failure in child.failures():
                self._add(failure["number"], failure["what"])
            if end:
                self._add(number, end, text)
                rest = range(max(number, child.numbers.start) + 1, child.numbers.stop)
                if len(rest):
                    self._again.append(rest)
            shutil.rmtree(child.folder, ignore_errors=True)

    def _add(self, number: int, what: str, case: str = "") -> None:
        again = f"python -m campaign {self.trial.name} --seed {self.seed} --first {number} --count 1"
        self.outcome.failures.append({"number": number, "what": what, "case": case, "again": again})
        print(f"\n{self.trial.name} {number}: {what}\n  {case}\n  again: {again}", flush=True)

    def _progress(self, began: float, last: bool = False) -> None:
        now = time.time()
        if not last and now - self._shown < 1.0:
            return
        self._shown = now
        done = self.outcome.done + sum(child.done for child in self._children)
        rate = done / max(now - began, 1e-9)
        text = (
            f"{self.trial.name}: {done:,} {self.trial.unit}, {rate:,.4g} a second, {len(self.outcome.failures)} failed"
        )
        if sys.stdout.isatty():
            print(f"\r{text}   ", end="\n" if last else "", flush=True)
        elif last:
            print(text, flush=True)

    def _shrink(self) -> None:
        """A test for each failure, one of a sort."""
        seen: set[str] = set()
        for failure in self.outcome.failures:
            sort = re.sub(r"[\d.e+-]+", "#", failure["what"].splitlines()[0])[:80]
            if sort in seen or failure["number"] < 0:
                continue
            seen.add(sort)
            arguments = [self.trial.name, self.seed, failure["number"], _SHRINK_SECONDS]
            try:
                found = subprocess.run(
                    [sys.executable, "-m", "campaign.shrink", *map(str, arguments)],
                    capture_output=True,
                    text=True,
                    timeout=3 * _SHRINK_SECONDS,
                    env={**os.environ, "LINKWISE_CACHE": "0"},
                    check=False,
                )
            except subprocess.TimeoutExpired:
                continue
            failure["test"] = found.stdout.strip() or found.stderr[-2000:]
            print(f"\n{failure['test']}\n", flush=True)


def seconds_of(text: str) -> float:
    """``90``, ``90s``, ``10m`` or ``2h`` in seconds."""
    match = re.fullmatch(r"([\d.]+)\s*([smh]?)", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 90s, 10m or 2h")
    return float(match[1]) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}[match[2]]


def summary(outcomes: Sequence[Outcome], seed: int) -> dict[str, Any]:
    """What a run leaves behind."""
    import linkwise

    kinds = {
        o.name: {
            "unit": o.unit,
            "target": o.target,
            "done": o.done,
            "seconds": round(o.seconds, 1),
            "skipped": o.skipped,
            "failures": o.failures,
        }
        for o in outcomes
    }
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    version = getattr(linkwise, "__version__", "")
    return {"date": time.strftime("%Y-%m-%d"), "version": version, "machine": machine, "seed": seed, "kinds": kinds}


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 1 if anything failed."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["report"]:
        return report.main(arguments[1:])
    parser = argparse.ArgumentParser(
        prog="python -m campaign", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all if none is named")
    parser.add_argument("--seed", type=int, help="of all that is random; a new one if not given")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--count", type=int, help="trials of each kind; as many as there is time for if not given")
    parser.add_argument("--time", type=seconds_of, help="for all kinds together: 90s, 10m (the usual), 2h")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--failures", type=int, default=10, help="after so many, go on to the next kind (default 10)")
    parser.add_argument("--summary", type=Path, help="JSON file to write (build/campaign/SEED.json)")
    options = parser.parse_args(arguments)
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"no such kind: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    names = options.kinds or list(KINDS)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    whole = options.time or (600.0 if options.count is None else 1e9)
    weight = sum(KINDS[name].share for name in names if KINDS[name].unavailable() is None) or 1.0
    print(f"seed {seed}", flush=True)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="linkwise-campaign-") as home:
        (Path(home) / "objects").mkdir(mode=0o700)
        for name in names:
            run = Run(KINDS[name], seed, Path(home), options.jobs, options.failures)
            outcomes.append(run.outcome)
            try:
                run.go(options.first, options.count, whole * KINDS[name].share / weight)
            except KeyboardInterrupt:
                print("\nstopped", flush=True)
                break
    found = summary(outcomes, seed)
    file = options.summary or Path("build/campaign") / f"{seed}-{'-'.join(options.kinds) or 'all'}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"\n{report.table([found])}\n\nwritten to {file}")
    return 1 if any(outcome.failures for outcome in outcomes) else 0
