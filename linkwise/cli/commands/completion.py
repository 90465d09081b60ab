"""``linkwise completion``: a script for the shell."""

from __future__ import annotations

import sys
from argparse import Namespace

from linkwise.cli.completion import script


def run(options: Namespace) -> None:
    """Print the script."""
    sys.stdout.write(script(options.shell))
