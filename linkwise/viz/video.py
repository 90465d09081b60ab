"""Videos and thumbnails, drawn by :mod:`linkwise.viz.raster`: MP4 where ffmpeg is, GIF anywhere."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_positive, output_path
from linkwise.errors import InputError, LinkwiseError, require_extra
from linkwise.model.model import Model
from linkwise.sim.progress import Progress
from linkwise.sim.touched import contacts_of
from linkwise.sim.trajectory import Trajectory
from linkwise.viz.figure import THROUGH
from linkwise.viz.looks import Looks, fewer, looks_of
from linkwise.viz.markers import OF_CONTACT, Markers, Touches, overlays_named
from linkwise.viz.player import checked, sampled
from linkwise.viz.raster import Camera, picture
from linkwise.viz.solids import Colour, Solid, bounds_of, merged
from linkwise.viz.stage import FLOOR, SKY, floor_height, followed, seen_around, sky

MOVIES = (".mp4", ".webm", ".mkv", ".mov")
_FACES = 30_000
"""Triangles of a model in a video, surfaces being simplified."""
_SQUARES = 24
"""Squares of the floor in each direction."""
_RINGS = 8
"""Steps in which the floor fades."""
_SLANT = (0.2, 0.2)
"""Distance of a shadow from what throws it, along x and y, for each metre of height."""
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


def floor(height: float, low: Array, high: Array, horizon: Colour = (255, 255, 255)) -> list[Solid]:
    """A chequered floor below a box, which fades into the horizon; its squares stay where they are as the box moves."""
    size = max(float(np.linalg.norm(high - low)), 1e-3)
    cell = float(10.0 ** np.floor(np.log10(size / 2)))
    cell *= 1.0 if size < 5 * cell else 2.0
    corner = np.round(((low + high) / 2)[:2] / cell) - _SQUARES
    place = np.stack(np.meshgrid(np.arange(2 * _SQUARES), np.arange(2 * _SQUARES), indexing="ij"), -1).reshape(-1, 2)
    away = np.linalg.norm(place + 0.5 - _SQUARES, axis=1) / _SQUARES
    odd = ((place + corner).sum(axis=1) % 2).astype(int)
    found = []
    for ring in range(_RINGS):
        share = ((ring + 0.5) / _RINGS) ** 0.7
        for parity, light in enumerate((1.0, 0.9)):
            chosen = place[(odd == parity) & (away >= ring / _RINGS) & (away < (ring + 1) / _RINGS)]
            xy = cell * (chosen + corner)[:, None] + cell * np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
            vertices = np.concatenate([xy, np.full((*xy.shape[:2], 1), height)], axis=-1).reshape(-1, 3)
            quads = 4 * np.arange(len(chosen))[:, None, None] + np.array([[0, 1, 2], [0, 2, 3]])
            r, g, b = (round((1 - share) * light * own + share * far) for own, far in zip(FLOOR, horizon, strict=True))
            found.append(Solid(vertices, quads.reshape(-1, 3), (r, g, b), unlit=True))
    return found


def shadow(solids: list[Solid], height: float) -> list[Solid]:
    """The shadow on the floor of what is above it, by a lamp far above."""
    opaque = [solid for solid in solids if solid.opacity >= 1.0]
    if not opaque:
        return []
    whole = merged(opaque)
    above = whole.vertices[:, 2:] - height
    lift = 1e-3 * max(float(np.ptp(whole.vertices, axis=0).max()), 1e-3)
    flat = whole.vertices + above * np.array([*_SLANT, -1.0]) + (0.0, 0.0, lift)
    lit = (above[whole.faces, 0] > 0.0).all(axis=1)
    return [Solid(flat, whole.faces[lit], (30, 36, 48), 0.35, unlit=True)]


def thumbnail(model: Model, q: ArrayLike, width: int = 480, height: int = 360) -> bytes:
    """A PNG of a model at q (nq)."""
    image = require_extra("PIL.Image", "viz")
    looks = fewer(looks_of(model), _FACES)
    solids = placed(model, looks, q)
    low, high = bounds_of(solids)
    z = floor_height(model, looks, float(low[2]), float(low[2]))
    ground = [*looks.ground, *([] if z is None else [*floor(z, low, high), *shadow(solids, z)])]
    pixels = picture([*ground, *solids], Camera.seeing(low, high, width, height))
    file = io.BytesIO()
    image.fromarray(pixels).quantize(64).save(file, "PNG", optimize=True)
    return file.getvalue()


class Pictured:
    """A model before a camera, which moves along with a model that can go anywhere.

    Args:
        model: the mechanism.
        some: configurations (n, nq) that are to be seen.
        width: of a picture.
        height: of a picture.
        camera: if not given, one that sees those configurations.
        follow: as of :func:`linkwise.viz.stage.followed`.
        p: run-time parameters of the model.
    """

    def __init__(
        self,
        model: Model,
        some: Sequence[Array],
        width: int,
        height: int,
        camera: Camera | None = None,
        follow: bool | str | None = None,
        p: ArrayLike | None = None,
    ) -> None:
        self.model, self.looks, self.followed = model, fewer(looks_of(model), _FACES), followed(model, follow)
        boxes = [bounds_of(placed(model, self.looks, q)) for q in some]
        lows, highs = (np.array(each) for each in zip(*boxes, strict=True))
        places = None if self.followed is None else np.array([self._middle(q, p) for q in some])
        self.low, self.high = seen_around(lows, highs, places)
        self.eye = camera or Camera.seeing(self.low, self.high, width, height)
        self.floor = floor_height(model, self.looks, float(lows[0, 2]), float(lows[:, 2].min()))
        horizon = min(max(self.eye.horizon, 0.2), 1.0) if self.floor is not None else 1.0
        self.background = sky(False, height, width, horizon)
        self.start, self.shift = self._middle(some[0], p), np.zeros(3)

    def _middle(self, q: Array, p: ArrayLike | None) -> Array:
        return np.zeros(3) if self.followed is None else self.followed.place(self.model.poses(q, p=p))

    def at(
        self,
        states: Sequence[Array],
        p: Sequence[ArrayLike | None],
        more: Sequence[Solid] = (),
        opacity: float = 1.0,
    ) -> Array:
        """Picture (height, width, 3) of states (n, nq), each with its parameters; all but the first are faint."""
        solids: list[Solid] = []
        for n, (q, own) in enumerate(zip(states, p, strict=True)):
            if np.isfinite(q).all():
                solids += placed(self.model, self.looks, q, own, opacity if n == 0 else 0.3)
                self.shift = self._middle(q, own) - self.start if n == 0 else self.shift
        ground = list(self.looks.ground)
        if self.floor is not None:
            corners = self.low + self.shift, self.high + self.shift
            ground += [*floor(self.floor, *corners, SKY[1]), *shadow(solids, self.floor)]
        return picture([*ground, *solids, *more], self.eye.moved(self.shift), self.background)


def pictures(
    trajectory: Trajectory,
    fps: float,
    speed: float,
    width: int,
    height: int,
    camera: Camera | None = None,
    follow: bool | str | None = None,
    markers: Sequence[Markers] = (),
    show: Sequence[str] = (),
) -> tuple[int, Iterator[Array]]:
    """Number of pictures of a motion, and the pictures (height, width, 3)."""
    motion = checked(trajectory)
    kinds = overlays_named(show, OF_CONTACT)
    model = motion._with_model("save_video")
    shown = sampled(motion, fps, speed)
    states = shown.q.reshape(-1, len(shown.t), model.nq)[:_MOST_STATES]
    p = motion.model_parameters
    own = [None] * len(states) if p is None else list(p.reshape(-1, p.shape[-1]))
    some = [q for q in states[0][:: max(1, len(shown.t) // 12)] if np.isfinite(q).all()]
    pictured = Pictured(model, some, width, height, camera, follow, own[0])
    marks = [each.checked(len(motion.t)) for each in markers]
    samples = np.searchsorted(motion.t, shown.t + 1e-9, side="right") - 1
    leader = motion[(0,) * len(motion.batch_shape)] if motion.batch_shape else motion
    contacts = contacts_of(leader) if kinds else None
    opacity, scale = THROUGH if any(kind.inside for kind in kinds) else 1.0, pictured.looks.size

    def frames() -> Iterator[Array]:
        for k, sample in enumerate(samples.tolist()):
            marked = [solid for each in marks for solid in each.solids(sample, scale)]
            if contacts is not None:
                touches = Touches.of(contacts, sample)
                marked += [solid for kind in kinds for solid in kind.solids(touches, model, scale)]
            yield pictured.at(list(states[:, k]), own, marked, opacity)

    return len(shown.t), frames()


def save_video(
    trajectory: Trajectory,
    path: str | Path,
    *,
    fps: float = 25.0,
    speed: float = 1.0,
    size: tuple[int, int] = (640, 480),
    camera: Camera | None = None,
    follow: bool | str | None = None,
    markers: Sequence[Markers] = (),
    show: Sequence[str] = (),
    progress: bool | Callable[[float], None] | None = None,
) -> Path:
    """Write a video; see :meth:`linkwise.Trajectory.save_video`."""
    target = output_path(path)
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
    bar = Progress(progress, "video")
    count, frames = pictures(trajectory, fps, speed, width, height, camera, follow, markers, show)
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
    check_positive(fps=fps, speed=speed)
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
        made.append(image.fromarray(frame).quantize(128, kmeans=2))  # the colours of small things stay
        bar.update((k + 1) / count)
    made[0].save(
        target,
        save_all=True,
        append_images=made[1:],
        duration=max(20, round(1000.0 / fps)),
        loop=0,
        optimize=False,
    )
