"""The counts that were reached, as a table: ``python -m campaign report FILE.json ...`` puts it into docs/trust.md."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "trust.md"
BEGIN, END = "<!-- counts: begin -->", "<!-- counts: end -->"


def table(summaries: Sequence[dict[str, Any]]) -> str:
    """Markdown; the counts of several runs are added up."""
    rows = ["| trials | tried | aim | failed | time |", "|---|---:|---:|---:|---:|"]
    names = list(dict.fromkeys(name for summary in summaries for name in summary["kinds"]))
    for name in names:
        found = [summary["kinds"][name] for summary in summaries if name in summary["kinds"]]
        ran = [kind for kind in found if not kind["skipped"]]
        first = found[0]
        if not ran:
            rows.append(f"| {name}: {first['unit']} | not run: {first['skipped']} | {_number(first['target'])} | | |")
            continue
        done, failed = sum(kind["done"] for kind in ran), sum(len(kind["failures"]) for kind in ran)
        seconds = sum(kind["seconds"] for kind in ran)
        rows.append(
            f"| {name}: {first['unit']} | {_number(done)} | {_number(first['target'])} | {failed} | {_time(seconds)} |"
        )
    return "\n".join(rows)


def _number(n: int) -> str:
    return f"{n:,}".replace(",", " ")


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def filled(page: str, summaries: Sequence[dict[str, Any]]) -> str:
    """The page with its table made anew."""
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    versions = sorted({f"linkwise {summary['version']}" for summary in summaries})
    machines = sorted({summary["machine"] for summary in summaries})
    dates = sorted({summary["date"] for summary in summaries})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    note = f"{', '.join(versions)}; {'; '.join(machines)}; {when}."
    return f"{before}{BEGIN}\n{table(summaries)}\n\n{note}\n{END}{after}"


def main(argv: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m campaign report", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="summaries that runs have left")
    summaries = [json.loads(file.read_text(encoding="utf-8")) for file in parser.parse_args(argv).files]
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), summaries), encoding="utf-8")
    print(table(summaries))
    return 0
