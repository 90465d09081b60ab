"""Results for the terminal and for files: plain text and JSON; of `inverse` and `simulate`, drawings and a summary."""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.cli.motion_files import FILES, check_suffix
from linkwise.errors import require_extra

if TYPE_CHECKING:
    from linkwise.sim.trajectory import Trajectory


_LABEL = re.compile(r"^(got|allowed|do): +")


def print_json(value: object) -> None:
    """Valid JSON: arrays as lists; infinities and NaN, which JSON does not have, as null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False))


def plain(value: object) -> object:
    """Value in lists, dicts, numbers and strings."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (np.floating, np.integer)):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def number(value: float, digits: int = 4) -> str:
    """A number for a table; ``-`` where there is none."""
    return "-" if not math.isfinite(value) else f"{value:.{digits}g}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns under their names: the first to the left, numbers to the right."""
    body = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *body]) for i in range(len(header))]
    right = [
        bool(body) and all(_is_number(row[i]) for row in body) and any(row[i] != "-" for row in body)
        for i in range(len(header))
    ]
    lines = []
    for row in [list(header), *body]:
        cells = [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell in ("-", "")
    return True


def matrix(values: ArrayLike) -> str:
    """A matrix, four digits each, in columns."""
    rows = [[f"{x:.4g}" if abs(x) > 1e-14 else "0" for x in row] for row in np.atleast_2d(values)]
    width = max((len(cell) for row in rows for cell in row), default=0)
    return "\n".join("  " + "  ".join(cell.rjust(width) for cell in row) for row in rows)


def one_line(error: BaseException) -> str:
    """A message of four parts in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    lines = [_LABEL.sub(r"\1: ", line.strip()) for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[0] if len(lines) == 1 else f"{lines[0]} ({'; '.join(lines[1:])})"


PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")


def check_targets(options: Namespace) -> None:
    """Refuse files that cannot be written, before the work is done."""
    check_suffix(options.output, FILES, "--output")
    check_suffix(options.plot, PICTURES, "--plot")
    check_suffix(options.html, PAGES, "--html")
    if options.plot is not None:
        require_extra("matplotlib", "viz")


def deliver(options: Namespace, motion: Trajectory, what: tuple[str, ...], title: str) -> None:
    """Write, draw and print a motion as the options say; CSV to standard output if they say nothing."""
    if options.output is not None:
        motion.save(options.output)
    if options.plot is not None:
        draw(motion, options.plot, what, title)
    if options.html is not None:
        motion.save_html(options.html)
    if options.json:
        print_json(_facts(motion))
    elif options.output is None and options.plot is None and options.html is None and not options.view:
        print_csv(motion)
    else:
        print(_summary(motion))
    if options.view:
        sys.stdout.flush()
        motion.view().wait()


def print_csv(motion: Trajectory) -> None:
    """The motion as CSV on standard output."""
    with tempfile.TemporaryDirectory() as folder:
        path = motion.save(Path(folder) / "motion.csv")
        sys.stdout.write(path.read_text(encoding="utf-8"))


def draw(motion: Trajectory, path: str, what: tuple[str, ...], title: str, joints: list[str] | None = None) -> None:
    """A picture of a motion, to a file."""
    import matplotlib as mpl

    mpl.use("Agg")
    figure = motion.plot(what=what, joints=joints)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


def _facts(motion: Trajectory) -> dict[str, object]:
    facts: dict[str, object] = {"t": motion.t, "q": motion.q, "v": motion.v, "vdot": motion.vdot, "tau": motion.tau}
    if motion.method:
        facts |= {
            "energy": motion.energy,
            "status": motion.status,
            "method": motion.method,
            "steps": int(motion.steps),
            "rejected": int(motion.rejected),
        }
    return {"columns": {"q": motion.columns["q"], "v": motion.columns["v"]}} | facts


def _summary(motion: Trajectory) -> str:
    """The ends of the motion and the forces it took, one line for each freedom."""
    rows = [
        [name, *(number(x) for x in (v.min(), v.max(), np.abs(tau).max(), np.sqrt(np.mean(tau**2))))]
        for name, v, tau in zip(motion.columns["v"], motion.v.T, motion.tau.T, strict=True)
    ]
    head = f"{len(motion)} instants from {motion.t[0]:g} to {motion.t[-1]:g} s"
    if motion.method:
        head += f"; {motion.method}, {int(motion.steps)} steps\n{motion.energy_account()}"
    return head + "\n" + table(["joint", "least v", "most v", "peak force", "rms force"], rows)
