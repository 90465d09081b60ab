"""Run of a command line, from arguments to an exit status: parse, run the command, say in a line what went wrong."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from linkwise.cli.parser import make_parser
from linkwise.errors import LinkwiseError

BAD_INPUT = 2
INTERRUPTED = 130
_NEGATIVE = re.compile(r"-\.?\d")
_LABEL = re.compile(r"^(got|allowed|do): +")


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit status of one call of the program; nothing that a user can cause shows a traceback."""
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
            status = import_module(f"linkwise.cli.commands.{options.command}").run(options)
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


def one_line(error: BaseException) -> str:
    """A message of four parts in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    lines = [_LABEL.sub(r"\1: ", line.strip()) for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[0] if len(lines) == 1 else f"{lines[0]} ({'; '.join(lines[1:])})"


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
