"""Small pictures for the pages: ``python -m docs.building.small_pictures [name …]`` runs programs of examples/.

Films become animated WebP files of at most 150 kB, plots PNG files of few colours, in docs/pictures. They are stored,
so that the front page has them where nothing is built.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageSequence

from docs.building.examples import EXAMPLES, ONE_PAGE, PICTURES

LARGEST = 150_000
"""Bytes."""
_FRAMES = 48


def film(source: Path, target: Path) -> None:
    """An animated GIF as WebP, as good as it can be in so many bytes."""
    with Image.open(source) as gif:
        shown = [(frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(gif)]
    pause = min(duration for _, duration in shown)  # of one frame: those in which nothing moves are one, shown longer
    frames = [frame for frame, duration in shown for _ in range(round(duration / pause))]
    step = -(-len(frames) // _FRAMES)
    for quality in (80, 65, 50, 35, 20):
        frames[0].save(
            target,
            save_all=True,
            append_images=frames[step::step],
            duration=pause * step,
            loop=0,
            quality=quality,
            method=5,
        )
        if target.stat().st_size < LARGEST:
            return
    raise SystemExit(f"{target} is too large: a shorter film, or a smaller one")


def make(name: str) -> None:
    """Run a program in a folder of its own, and keep what it draws."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        finally:
            os.chdir(before)
        keep(name, Path(folder))


def keep(name: str, folder: Path) -> None:
    """Make the pictures of a program small, from the folder that it ran in."""
    PICTURES.mkdir(exist_ok=True)
    if (folder / f"{name}.gif").exists():
        film(folder / f"{name}.gif", PICTURES / f"{name}.webp")
    if (folder / f"{name}.png").exists():
        with Image.open(folder / f"{name}.png") as plot:
            plot.convert("RGB").quantize(48).save(PICTURES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for chosen in sys.argv[1:] or ONE_PAGE:
        make(chosen)
