"""The command line, ``linkwise``: see what a model is, run it, emit code for it. ``linkwise --help`` lists all."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, 2 for bad input, 130 when interrupted."""
    from linkwise.cli.command_line import run

    return run(arguments)
