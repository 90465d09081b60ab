"""The code in the pages, run as it stands: by the tests, and when the documentation is built, to show its results."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import platform
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)

ROBOTS = ("panda.urdf", "cassie.sdf")  # what the pages read
NEEDS = {
    "ensembles.md": ("distributed", "zarr", "xarray", "cma"),
    "casadi.md": ("casadi",),
    "fmi.md": ("fmpy",),
    "optimal_control.md": ("control",),
    "torch.md": ("torch",),
    "learning.md": ("gymnasium",),
    "jax.md": ("jax", "flatbuffers"),
    "gpu.md": ("cupy", "torch"),
}  # what the developers' install does not bring

_BLOCK = re.compile(r"^```(python|console|toml)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass
class Ran:
    """One block of a page after it has run.

    Attributes:
        language: "python" or "console" (blocks of "toml" are files, which are written and not returned).
        code: As in the page.
        printed: What it wrote to standard output; of commands, each command with its output.
        figures: The matplotlib figures that it left open.
    """

    language: str
    code: str
    printed: str = ""
    figures: list[Any] = field(default_factory=list)


def blocks(text: str, *languages: str) -> list[tuple[str, str, int]]:
    """Language, code and first line of the blocks of a page, in order."""
    found = ((match[1], match[2], text.count("\n", 0, match.start(2))) for match in _BLOCK.finditer(text))
    return [block for block in found if not languages or block[0] in languages]


def missing(page: Path) -> str | None:
    """What this machine lacks to run a page, or None."""
    from linkwise import targets

    for module in NEEDS.get(page.name, ()):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    if page.name == "gpu.md" and not targets.target("cuda").available():
        return "there is no CUDA device"
    if page.name == "fmi.md" and platform.machine().lower() not in ("x86_64", "amd64"):
        return "FMPy simulates no units of this machine"
    return None


def run(page: Path, *languages: str) -> Iterator[Ran]:
    """Run the blocks of a page one after another, in a new folder that has the robots.

    Raises:
        Exception: Whatever a block raises; a command that fails is an AssertionError.
    """
    namespace: dict[str, Any] = {"__name__": "page"}
    with _folder_with_robots(), _drawing() as figures:
        for language, code, line in blocks(page.read_text(encoding="utf-8"), *languages):
            if language == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile("\n" * line + code, str(page), "exec"), namespace)
                yield Ran(language, code, out.getvalue(), figures())
            elif language == "console":
                yield Ran(language, code, _transcript(code))
            else:  # a file, which begins with its name
                Path(code.splitlines()[0].removeprefix("# ")).write_text(code, encoding="utf-8")


def _transcript(block: str) -> str:
    """The lines of a block, with what each `linkwise` command prints below it; other commands are only shown."""
    from linkwise.cli import main

    lines = []
    for line in block.splitlines():
        lines.append(line)
        if line.startswith("$ linkwise "):
            out, err = io.StringIO(), io.StringIO()
            words = shlex.split(line.removeprefix("$ linkwise ").partition(" | ")[0])
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = main(words)
            assert status == 0, f"{line}\n{err.getvalue()}"
            lines += out.getvalue().rstrip().splitlines()
    return "\n".join(lines)


@contextlib.contextmanager
def _folder_with_robots() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for file in metadata.files("example-robot-data") or ():
            if file.name in ROBOTS:
                found = Path(str(file.locate())).resolve()
                shutil.copy(found, folder)
        share = next(above for above in found.parents if above.name == "example-robot-data").parent
        environment = os.environ.get("LINKWISE_MODEL_PATH")
        os.environ["LINKWISE_MODEL_PATH"] = str(share)  # where the meshes are that the files name
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            if environment is None:
                del os.environ["LINKWISE_MODEL_PATH"]
            else:
                os.environ["LINKWISE_MODEL_PATH"] = environment


@contextlib.contextmanager
def _drawing() -> Iterator[Any]:
    """Matplotlib without windows; gives a function that takes the figures drawn so far."""
    os.environ["MPLBACKEND"] = "Agg"
    from matplotlib import pyplot as plt

    def taken() -> list[Any]:
        figures = [plt.figure(number) for number in plt.get_fignums()]
        plt.close("all")
        return figures

    plt.close("all")
    try:
        yield taken
    finally:
        plt.close("all")
