"""``linkwise demo``: the five papers computed, as one page."""

from __future__ import annotations

from argparse import Namespace

from linkwise.cli.motion_files import check_suffix
from linkwise.papers.demo import force_table, make_report


def run(options: Namespace) -> None:
    """Write the report, and open it if asked to."""
    check_suffix(options.output, (".html",), "--output")
    path = make_report(options.output)
    print(force_table())
    print(path)
    if options.open:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
