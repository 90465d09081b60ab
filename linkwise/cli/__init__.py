"""The command line, ``linkwise``: see what a model is, run it, emit code for it. ``linkwise --help`` lists all."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from linkwise.cli.parser import make_parser
from linkwise.cli.printing import one_line
from linkwise.errors import LinkwiseError

__all__ = ["main"]

BAD_INPUT = 2
INTERRUPTED = 130
_NEGATIVE = re.compile(r"-\.?\d")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of one call of the program: 0, 2 for bad input, 130 when interrupted, or a command's own answer.

    Nothing that a user can cause shows a traceback.
    """
    parser = make_parser()
    try:
        options = parser.parse_args(joined(sys.argv[1:] if arguments is None else arguments))
    except SystemExit as leaving:  # argparse has printed why, or the help
        return leaving.code if isinstance(leaving.code, int) else BAD_INPUT
    if options.command is None:
        parser.print_help()
        return BAD_INPUT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = _show_warning
            module = import_module(f"linkwise.cli.commands.{options.module}")
            status = getattr(module, f"run_{options.command}")(options)
            sys.stdout.flush()
    except (LinkwiseError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # `linkwise ... | head`: whoever read has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"linkwise: error: {one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    except MemoryError as error:
        print(f"linkwise: error: there is not enough memory for this ({one_line(error)})", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt as interrupt:  # some say how to go on
        print(f"linkwise: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return INTERRUPTED
    return status or 0  # a command that answers yes or no says so by its status


def joined(arguments: Sequence[str]) -> list[str]:
    """``--q0 -1,2`` as ``--q0=-1,2``: argparse takes what begins with a minus sign for an option."""
    out: list[str] = []
    for argument in arguments:
        if out and _NEGATIVE.match(argument) and out[-1].startswith("--") and "=" not in out[-1]:
            out[-1] += "=" + argument
        else:
            out.append(argument)
    return out


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: object = None,
) -> None:
    text = Exception(str(message))
    print(f"linkwise: warning: {one_line(text)}", file=sys.stderr)
