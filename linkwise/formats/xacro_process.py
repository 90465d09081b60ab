"""The process in which a xacro file is run: a task comes in as JSON, the text or an error goes out.

xacro keeps its state in its module and opens files by itself, so its functions are exchanged here for ones that keep to
the search path. Nothing else is done in this process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import CodeType
from typing import Any

from linkwise.errors import LinkwiseError, ModelFileError
from linkwise.formats.resources import SearchPath

_MEMORY = 1024**3
_FRAMES = ("gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_", "mro")
"""Names by which the objects of Python lead to the frames and functions around them."""


def _limit(seconds: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows; the caller's patience ends there too
        return
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _check_names(code: CodeType, refuse: type[Exception]) -> None:
    for name in (*code.co_names, *code.co_varnames):
        # ".0" is Python's own name for what a comprehension runs over.
        if name.startswith(("_", *_FRAMES)):
            raise refuse(f"an expression may not use the name {name!r}")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _check_names(constant, refuse)


def _expand(task: dict[str, Any]) -> str:
    import xacro  # type: ignore[import-untyped]
    from xacro import substitution_args

    places = SearchPath.of(task["file"], task["search"])

    packages: set[Path] = set()

    def checked_open(path: Any) -> Any:
        found = Path(path).resolve()
        if not any(found.is_relative_to(package) for package in packages):
            found = places.find(str(found))
        return found.open(encoding="utf-8")

    def safe_eval(expression: str, symbols: Any, local: Any = None) -> Any:
        code = compile(expression.strip(), "<expression>", "eval")
        _check_names(code, xacro.XacroException)
        symbols.update(__builtins__={})
        return eval(code, symbols, local)

    def eval_substitution(expression: str, context: Any) -> str:
        arguments = context.setdefault("arg", {})
        functions = dict(substitution_args._eval_dict)
        functions["arg"] = lambda name: substitution_args.convert_value(arguments[name], "auto")
        functions["dirname"] = lambda: str(Path(xacro.filestack[-1]).parent)
        own = {name: substitution_args.convert_value(value, "auto") for name, value in arguments.items()}
        return str(safe_eval(expression, functions, own))

    def find(package: str) -> str:
        folder = places.find(f"package://{package}")
        packages.add(folder)
        return str(folder)

    xacro.open = checked_open
    xacro.safe_eval = safe_eval
    substitution_args._eval = eval_substitution
    substitution_args._eval_find = find
    substitution_args._eval_dict["find"] = find
    # Warnings of the file's author go to the standard error; the standard output is the answer.
    return str(xacro.process_file(task["file"], mappings=task["arguments"], verbosity=0).toprettyxml(indent="  "))


def main() -> None:
    """One task."""
    task = json.load(sys.stdin)
    answer: dict[str, Any]
    out, sys.stdout = sys.stdout, sys.stderr
    _limit(task["seconds"])
    sys.setrecursionlimit(2000)
    try:
        answer = {"text": _expand(task)}
    except MemoryError:
        answer = {"error": "it takes more memory than 1 GB"}
    except ModelFileError as error:
        answer = _refusal(error)
    except BaseException as error:
        cause = getattr(error, "exc", None)
        if isinstance(cause, MemoryError):
            error = MemoryError("it takes more memory than 1 GB")
        answer = _refusal(cause) if isinstance(cause, LinkwiseError) else {"error": str(error) or repr(error)}
    xacro = sys.modules.get("xacro")
    stack = [each for each in getattr(xacro, "filestack", None) or [] if each]
    if "error" in answer and stack:
        answer["in"] = str(stack[-1])
    json.dump(answer, out)


def _refusal(error: LinkwiseError) -> dict[str, Any]:
    parts = {"error": f"{error.what}: {error.got}", "allowed": error.allowed, "do": error.do}
    return {name: None if part is None else str(part) for name, part in parts.items()}


if __name__ == "__main__":
    main()
