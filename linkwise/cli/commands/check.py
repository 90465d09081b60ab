"""``linkwise check``: all that is wrong with a file."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from linkwise.cli.arguments import load_options
from linkwise.cli.printing import print_json
from linkwise.files.check import check_file


def run(options: Namespace) -> int:
    """Print what is wrong; the status is 1 where there are errors."""
    problems = check_file(options.model, **load_options(options))
    errors = sum(problem.severity == "error" for problem in problems)
    if options.json:
        print_json({"file": options.model, "problems": [asdict(problem) for problem in problems]})
        return int(errors > 0)
    for problem in problems:
        place = options.model if problem.line is None else f"{options.model}:{problem.line}"
        print(f"{place}: {problem.severity}: {problem.what}" + (f" ({problem.do})" if problem.do else ""))
    print(f"{errors} errors, {len(problems) - errors} warnings" if problems else f"{options.model}: nothing found")
    return int(errors > 0)
