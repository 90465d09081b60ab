"""xacro files to the text they expand to.

A xacro file is a program: it evaluates expressions of Python and reads other files. So it is run only where the caller
says so, by giving ``arguments`` (``{}`` if there are none), and then in a process of its own, which

- opens nothing outside the search path (:mod:`linkwise.formats.resources`): included files, YAML files, packages that
  ``$(find name)`` names;
- evaluates ``$(eval …)`` like ``${…}``: without Python's built-in functions, and with no names that begin with an
  underscore or lead to the frames of functions;
- writes no files, and ends after some seconds or at a gigabyte.

This holds back mistakes and simple malice. It is no reason to run a file that one would not run as a program.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from linkwise.errors import InputError, ModelFileError, require_extra
from linkwise.formats.resources import SearchPath

__all__ = ["expand", "is_xacro"]

SECONDS = 5
"""Of processor time that a file may take."""
_PATIENCE = 60.0
_LINE = re.compile(r"line (\d+), column")


def is_xacro(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file says that it is one."""
    return str(path).lower().endswith(".xacro")


def expand(file: str, arguments: Mapping[str, object] | None, places: SearchPath) -> bytes:
    """The text that a xacro file expands to.

    Args:
        file: the file.
        arguments: values for its ``<xacro:arg>``; None where the caller did not ask for it to be run.
        places: where the files are that it includes.
    """
    if arguments is None:
        raise ModelFileError(
            "this is a xacro file, which is a program and is run only if you say so",
            file=file,
            do="load(..., arguments={}) or --arg name:=value runs it, if you trust it",
        )
    if not isinstance(arguments, Mapping):
        raise InputError("arguments must be a dict", got=repr(arguments)[:80], allowed='{"name": value}')
    require_extra("xacro", "xacro")
    task = {
        "file": str(Path(file).resolve()),
        "arguments": {str(name): _text(value) for name, value in arguments.items()},
        "search": [str(folder) for folder in places.given],
        "seconds": SECONDS,
    }
    # -P: the working directory may hold modules that a download brought along.
    command = [sys.executable, "-P", "-m", "linkwise.formats.xacro_process"]
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH", ""))))
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    try:
        ran = subprocess.run(
            command,
            input=json.dumps(task).encode(),
            capture_output=True,
            timeout=_PATIENCE,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_long(file) from None
    try:
        answer = json.loads(ran.stdout)
    except ValueError:
        if ran.returncode < 0:
            raise _too_long(file) from None
        raise ModelFileError(
            "the xacro file could not be expanded", file=file, got=ran.stderr.decode(errors="replace")[-300:] or None
        ) from None
    if "text" in answer:
        return str(answer["text"]).encode()
    said = str(answer.get("error", ""))
    line = _LINE.search(said)
    raise ModelFileError(
        "the xacro file could not be expanded",
        file=answer.get("in") or file,
        line=int(line[1]) if line else None,
        got=said[:1000],
        allowed=answer.get("allowed"),
        do=answer.get("do"),
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _too_long(file: str) -> ModelFileError:
    return ModelFileError(
        "the xacro file takes too long or too much memory to expand",
        file=file,
        allowed=f"{SECONDS} s, 1 GB",
        do="expand it by hand, if you trust it: xacro a.urdf.xacro > a.urdf",
    )
