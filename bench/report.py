"""Results as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns aligned: the first to the left, the others to the right; None shows as a dash."""
    text = [list(header), *([_shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in text) for k in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in enumerate(zipped))
        for zipped in (list(zip(row, widths, strict=True)) for row in text)
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def write(name: str, results: Mapping[str, Any]) -> Path:
    """Write the results, with what they were measured on, to ``bench/results/NAME-TIME.json``."""
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{now:%Y%m%dT%H%M%S}.json"
    path.write_text(json.dumps({"time": now.isoformat(), "machine": machine(), **results}, indent=1) + "\n")
    return path


def machine() -> dict[str, Any]:
    """What the numbers depend on: the processor, and the versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("linkwise", "numpy", "llvmlite", "pin", "mujoco")},
    }


def _shown(cell: object) -> str:
    if cell is None:
        return "-"
    return (
        f"{cell:.4g}"
        if isinstance(cell, float) and cell < 1000
        else f"{cell:.0f}"
        if isinstance(cell, float)
        else str(cell)
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
