"""Results of `inverse` and `simulate`: files, drawings, JSON, a summary."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkwise.cli.motion_files import FILES, check_suffix
from linkwise.cli.printing import number, print_json, table
from linkwise.errors import require_extra

if TYPE_CHECKING:
    from linkwise.sim.touched import MotionContacts
    from linkwise.sim.trajectory import Trajectory

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


def _contacts(found: MotionContacts) -> str:
    """Line on contact: most points that pressed, their force, and how well the laws were obeyed."""
    pushed = np.linalg.norm(found.force, axis=-1).max(initial=0.0)
    lost = found.overflow.max(initial=0.0)
    return (
        f"contact: {found.count.max(initial=0)} points press at most, with {number(pushed)} N; "
        f"laws missed by {number(np.nan_to_num(found.residual[..., 0]).max(initial=0.0))} m/s"
        + (f"; {lost:.0f} points without room" if lost else "")
    )


def _summary(motion: Trajectory) -> str:
    """The ends of the motion and the forces it took, one line for each freedom."""
    rows = [
        [name, *(number(x) for x in (v.min(), v.max(), np.abs(tau).max(), np.sqrt(np.mean(tau**2))))]
        for name, v, tau in zip(motion.columns["v"], motion.v.T, motion.tau.T, strict=True)
    ]
    head = f"{len(motion)} instants from {motion.t[0]:g} to {motion.t[-1]:g} s"
    if motion.method:
        head += f"; {motion.method}, {int(motion.steps)} steps\n{motion.energy_account()}"
        if "contact_impulses" in motion._values:
            head += f"\n{_contacts(motion.contacts)}"
    return head + "\n" + table(["joint", "least v", "most v", "peak force", "rms force"], rows)
