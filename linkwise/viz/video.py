"""Videos and thumbnails, drawn by :mod:`linkwise.viz.raster`: MP4 where ffmpeg is, GIF anywhere."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError, LinkwiseError, require_extra
from linkwise.model.model import Model
from linkwise.sim.progress import Progress
from linkwise.sim.trajectory import Trajectory
from linkwise.viz.looks import Looks, looks_of
from linkwise.viz.player import checked, sampled
from linkwise.viz.raster import Camera, picture
from linkwise.viz.recording import fewer
from linkwise.viz.solids import Solid, stick

MOVIES = (".mp4", ".webm", ".mkv", ".mov")
_FACES = 30_000
"""Triangles of a model in a video, surfaces being simplified."""
_MOST_STATES = 60
"""States of a batch that are drawn."""


def placed(model: Model, looks: Looks, q: ArrayLike, p: ArrayLike | None = None, opacity: float = 1.0) -> list[Solid]:
    """Solids of a model at q, in the world."""
    found = list(looks.base)
    for k, X in enumerate(np.asarray(model.poses(q, p=p))):
        eta = np.asarray(q)[model.bodies[k].q_slice]
        for solid in (*looks.bodies[k], *(each.at(eta) for each in looks.bent.get(k, ()))):
            made = solid.placed(X)
            found.append(made if opacity == 1.0 else made.painted(made.colour or (150, 160, 175), opacity))
    return found


def bounds_of(solids: list[Solid]) -> tuple[Array, Array]:
    """The least and the greatest corner."""
    if not solids:
        return -0.5 * np.ones(3), 0.5 * np.ones(3)
    low = np.min([solid.vertices.min(axis=0) for solid in solids], axis=0)
    return low, np.max([solid.vertices.max(axis=0) for solid in solids], axis=0)


def floor(low: Array, high: Array) -> list[Solid]:
    """A grid below everything, of thin rods."""
    size = float(np.linalg.norm(high - low))
    cell = 10.0 ** np.floor(np.log10(max(size, 1e-6) / 2))
    x, y = (np.round(((low + high) / 2)[:2] / cell) * cell).tolist()
    z, reach = min(0.0, float(low[2])), 4 * cell
    rods = []
    for k in range(-4, 5):
        rods.append(stick((x - reach, y + k * cell, z), (x + reach, y + k * cell, z), 0.002 * size, 4))
        rods.append(stick((x + k * cell, y - reach, z), (x + k * cell, y + reach, z), 0.002 * size, 4))
    return [rod.painted((214, 218, 224)) for rod in rods]


def thumbnail(model: Model, q: ArrayLike, width: int = 480, height: int = 360) -> bytes:
    """A PNG of a model at q (nq)."""
    image = require_extra("PIL.Image", "viz")
    looks = fewer(looks_of(model), _FACES)
    solids = placed(model, looks, q)
    low, high = bounds_of(solids)
    pixels = picture([*solids, *floor(low, high)], Camera.seeing(low, high, width, height))
    file = io.BytesIO()
    image.fromarray(pixels).quantize(64).save(file, "PNG", optimize=True)
    return file.getvalue()


def pictures(
    trajectory: Trajectory, fps: float, speed: float, width: int, height: int, camera: Camera | None
) -> tuple[int, Iterator[Array]]:
    """Number of pictures of a motion, and the pictures (height, width, 3)."""
    motion = checked(trajectory)
    model = motion._with_model("save_video")
    looks = fewer(looks_of(model), _FACES)
    shown = sampled(motion, fps, speed)
    states = shown.q.reshape(-1, len(shown.t), model.nq)[:_MOST_STATES]
    p = motion.model_parameters
    own = [None] * len(states) if p is None else list(p.reshape(-1, p.shape[-1]))
    lows, highs = zip(
        *(bounds_of(placed(model, looks, q)) for q in states[0][:: max(1, len(shown.t) // 12)] if np.isfinite(q).all()),
        strict=True,
    )
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    eye = camera or Camera.seeing(low, high, width, height)
    ground = floor(low, high)

    def frames() -> Iterator[Array]:
        for k in range(len(shown.t)):
            solids = list(ground)
            for n, q in enumerate(states[:, k]):
                if np.isfinite(q).all():
                    solids += placed(model, looks, q, own[n], 1.0 if n == 0 else 0.3)
            yield picture(solids, eye)

    return len(shown.t), frames()


def save_video(
    trajectory: Trajectory,
    path: str | Path,
    *,
    fps: float = 25.0,
    speed: float = 1.0,
    size: tuple[int, int] = (640, 480),
    camera: Camera | None = None,
    progress: bool | Callable[[float], None] | None = None,
) -> Path:
    """Write a video; see :meth:`linkwise.Trajectory.save_video`."""
    target = Path(path)
    width, height = _checked(fps, speed, size)
    kind = target.suffix.lower()
    if kind not in (*MOVIES, ".gif"):
        raise InputError("no such kind of video", got=repr(target.suffix), allowed=", ".join((*MOVIES, ".gif")))
    ffmpeg = shutil.which("ffmpeg")
    if kind != ".gif" and ffmpeg is None:
        raise LinkwiseError(
            f"this needs the program ffmpeg, which is not installed: install it, or write {target.stem + '.gif'!r}",
            got=str(target),
        )
    count, frames = pictures(trajectory, fps, speed, width, height, camera)
    bar = Progress(progress, "video")
    try:
        if kind == ".gif":
            _gif(target, frames, count, fps, bar)
        else:
            assert ffmpeg is not None
            _movie(ffmpeg, target, frames, count, fps, (width, height), bar)
    finally:
        bar.close()
    return target


def _checked(fps: float, speed: float, size: tuple[int, int]) -> tuple[int, int]:
    for name, value in (("fps", fps), ("speed", speed)):
        if not (np.isfinite(value) and value > 0.0):
            raise InputError(f"{name} is not a positive number", got=repr(value), allowed="e.g. 25")
    width, height = size
    if not (16 <= width <= 3840 and 16 <= height <= 2160) or width % 2 or height % 2:
        raise InputError(
            "this is not a size for a video", got=repr(size), allowed="even numbers of pixels, 16 to 3840 by 2160"
        )
    return int(width), int(height)


def _movie(
    ffmpeg: str, target: Path, frames: Iterator[Array], count: int, fps: float, size: tuple[int, int], bar: Progress
) -> None:
    command = [
        ffmpeg, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}",
        "-r", str(fps), "-i", "-", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(target.resolve()),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        try:
            for k, frame in enumerate(frames):
                process.stdin.write(frame.tobytes())
                bar.update((k + 1) / count)
            process.stdin.close()
        except BrokenPipeError:
            pass
        except BaseException:
            process.kill()
            raise
        said = process.stderr.read().decode(errors="replace").strip()
        if process.wait() != 0:
            raise LinkwiseError("ffmpeg could not write the video", got=said.splitlines()[-1] if said else "no message")


def _gif(target: Path, frames: Iterator[Array], count: int, fps: float, bar: Progress) -> None:
    image = require_extra("PIL.Image", "viz")
    made = []
    for k, frame in enumerate(frames):
        made.append(image.fromarray(frame).quantize(64))
        bar.update((k + 1) / count)
    made[0].save(
        target,
        save_all=True,
        append_images=made[1:],
        duration=max(20, round(1000.0 / fps)),
        loop=0,
        optimize=False,
    )
