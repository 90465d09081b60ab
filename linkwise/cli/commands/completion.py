"""``linkwise completion``: a script for the shell."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace

from linkwise.cli.arguments import BUILT_IN
from linkwise.cli.parser import make_parser
from linkwise.errors import require_extra

_MODELS = " ".join(BUILT_IN)
_MODEL = {
    "bash": "_linkwise_model_or_file",
    "zsh": "_linkwise_model_or_file",
    "fish": f"{_MODELS} (__fish_complete_path (commandline -ct))",
    "preamble": {
        "bash": f'_linkwise_model_or_file() {{ compgen -W "{_MODELS}" -- "$1"; compgen -f -- "$1"; }}',
        "zsh": f"_linkwise_model_or_file() {{ compadd {_MODELS}; _files }}",
    },
}
"""Completion written by hand, for shtab knows files only: the names of built-in models, and files."""


def script(shell: str) -> str:
    """The script for bash, zsh or fish."""
    shtab = require_extra("shtab", "completion")
    parser = make_parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    # By what the help calls a value; by its name where the help shows that.
    kinds = {"FILE": shtab.FILE, "FOLDER": shtab.DIRECTORY, "MOTION": shtab.FILE, "MODEL-OR-NAME": _MODEL}
    kinds |= {"model": _MODEL, "other": _MODEL, "file": shtab.FILE, "study": shtab.FILE}
    for command in commands.choices.values():
        for action in command._actions:
            shown = str(action.metavar or action.dest)
            if shown in kinds and action.nargs != 0:
                action.complete = kinds[shown]
            if action.metavar is not None:
                action.metavar = shown.replace(":", "")  # which separates the fields of a line in zsh
    return str(shtab.complete(parser, shell=shell, root_prefix="linkwise"))


def run(options: Namespace) -> None:
    """Print the script."""
    sys.stdout.write(script(options.shell))
