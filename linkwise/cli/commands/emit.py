"""``linkwise emit``: source code of a function of a model."""

from __future__ import annotations

import sys
from argparse import Namespace

from linkwise import targets
from linkwise.cli.arguments import chosen_function, load_model


def run(options: Namespace) -> None:
    """Print the source, or write the target's files to a folder."""
    targets.target(options.target)  # a mistake here is told before the model is read
    function = chosen_function(load_model(options), options.function, options.body)
    if options.output is not None:
        print(*function.emit(options.output, options.target, options.dtype), sep="\n")
        return
    source = function.source(options.target, options.dtype)
    sys.stdout.write(source if source.endswith("\n") else source + "\n")
