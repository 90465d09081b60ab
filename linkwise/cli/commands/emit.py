"""``linkwise emit``: source code of a function of a model."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import numpy as np

from linkwise.cli.inputs import chosen_function, load_model
from linkwise.errors import InputError

SUFFIX = {"c": ".c", "cuda": ".cu", "llvm": ".ll", "program": ".txt"}


def run(options: Namespace) -> None:
    """Print the source, or write it to a folder: for C with its header and a test program."""
    if options.target not in SUFFIX:
        raise InputError("no such target", got=repr(options.target), allowed=", ".join(SUFFIX))
    model = load_model(options)
    function = chosen_function(model, options.function, options.body)
    if options.target == "c" and options.output is not None:
        from linkwise.codegen.c import emit_c

        for path in emit_c(function, options.output, bits=8 * np.dtype(options.dtype).itemsize):
            print(path)
        return
    source = function.source(options.target, np.dtype(options.dtype))
    if options.output is None:
        sys.stdout.write(source if source.endswith("\n") else source + "\n")
        return
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{function.name}{SUFFIX[options.target]}"
    path.write_text(source, encoding="utf-8")
    print(path)
