"""Small animations: lines that move, drawn on a canvas by one short script for the whole page.

The points of all pictures are projected here and stored as 16-bit numbers; a motion of a hundred pictures takes some
ten kilobytes. The script plays what is on the screen only, and nothing by itself where the reader asked for less
motion.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import cast

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.closures.instances import ClosureInstance
from linkwise.model.model import Model

_LEVELS = 30_000
"""Steps between the edges of a picture."""


@dataclass(frozen=True)
class Line:
    """A line through points that move.

    Args:
        points: (T, points, 3), m; of one picture (points, 3) if it stands still.
        color: number of a colour of the page, 0 to 5; -1 for that of grid lines, -2 for that of text.
        width: in pixels.
        dots: whether the points are marked.
    """

    points: Array
    color: int = 0
    width: float = 4.0
    dots: bool = True


def skeleton(model: Model, q: Array, color: int = 0, width: float = 4.0, p: Array | None = None) -> list[Line]:
    """A mechanism as lines: from the frame of each body to the joints, frames and closures on it, or its mass centre.

    Flexible bodies are lines through their nodes, bent.

    Args:
        model: any model.
        q: configurations (T, nq).
        color: of the lines.
        width: in pixels.
        p: run-time parameters of the model.
    """
    poses = np.asarray(model.poses(q, p=p))
    lines = []
    for k, body in enumerate(model.bodies):
        if body.flexible is not None:
            keys = [cast("str | int", node.key) for node in body.flexible.nodes]
            nodes = [np.asarray(model.pose(q, body.name, node=key, p=p))[:, :3, 3] for key in keys]
            lines.append(Line(np.stack(nodes, axis=1), color, width, dots=False))
            continue
        for end in _ends(model, k):
            lines.append(Line(np.stack([poses[:, k, :3, 3], _moved(poses[:, k], end)], axis=1), color, width))
    return lines


def _ends(model: Model, k: int) -> list[Array]:
    """Ends of a body's lines, in its frame."""
    places = [body.placement for body in model.bodies if body.parent == k]
    places += [frame.placement for frame in model.frames if frame.body == k]
    for closure in model.closures:
        if isinstance(closure, ClosureInstance):
            places += [placement for body, placement, _ in closure.sides if body == k]
    ends = [np.asarray(place)[:3, 3] for place in places] or [np.nan_to_num(model.bodies[k].com)]
    return [end for end in ends if np.linalg.norm(end) > 1e-9]


def _moved(poses: Array, point: Array) -> Array:
    return np.asarray(poses[:, :3, :3] @ point + poses[:, :3, 3])


def path(model: Model, q: Array, body: str, point: Sequence[float] = (0.0, 0.0, 0.0), color: int = 1) -> Line:
    """The way of a point of a body, as a thin line that stands still."""
    return Line(_moved(np.asarray(model.pose(q, body)), np.asarray(point, float)), color, 1.2, dots=False)


def boxes(
    model: Model, q: Array, body: str, size: Sequence[float], center: Sequence[float], color: int = 0
) -> list[Line]:
    """The outline of a box fixed to a body, of the edges ``size`` about ``center``."""
    X = np.asarray(model.pose(q, body))
    half, middle = np.asarray(size, float) / 2.0, np.asarray(center, float)
    around = ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))
    rings = [[(x, y, z) for x, y in around] for z in (-1, 1)]
    posts = [[(x, y, z) for z in (-1, 1)] for x, y in around[:4]]
    return [
        Line(np.stack([_moved(X, middle + half * np.array(corner)) for corner in way], axis=1), color, 2.0, dots=False)
        for way in (*rings, *posts)
    ]


def projected(lines: Sequence[Line], view: str | tuple[float, float]) -> list[Line]:
    """The lines on the picture's plane.

    Args:
        lines: in space.
        view: two axes, like "xy" or "xz", or the azimuth and elevation of the eye, in degrees.
    """
    if isinstance(view, str):
        plane = np.eye(3)[["xyz".index(axis) for axis in view]]
    else:
        a, e = np.radians(view)
        plane = np.array([[-np.sin(a), np.cos(a), 0.0], [-np.cos(a) * np.sin(e), -np.sin(a) * np.sin(e), np.cos(e)]])
    return [replace(line, points=np.asarray(line.points) @ plane.T) for line in lines]


def animation(
    t: Array, lines: Sequence[Line], label: str, *, view: str | tuple[float, float] = "xz", speed: float = 1.0
) -> str:
    """The element that plays a motion.

    Args:
        t: times of the pictures (T), evenly spaced, s.
        lines: what moves, T pictures each, and what does not.
        label: what is to be seen, for those who cannot.
        view: see :func:`projected`.
        speed: seconds of the motion for each second.
    """
    flat = projected(lines, view)
    every = np.concatenate([line.points.reshape(-1, 2) for line in flat])
    low, high = every.min(axis=0), every.max(axis=0)
    size = max(float((high - low).max()), 1e-9)
    margin = 0.06 * size
    low, extent = low - margin, (high - low) + 2.0 * margin
    extent = np.maximum(extent, [0.3 * size, 0.3 * size])
    low = (every.min(axis=0) + every.max(axis=0) - extent) / 2.0
    scale = _LEVELS / extent.max()
    kinds, numbers = [], []
    for line in flat:
        pictures = 1 if line.points.ndim == 2 else len(t)
        points = line.points.reshape(pictures, -1, 2)
        kinds.append(f"{pictures},{points.shape[1]},{line.color},{line.width:g},{int(line.dots)}")
        numbers.append(np.round((points - low) * scale).astype("<i2").ravel())
    data = base64.b64encode(np.concatenate(numbers).tobytes()).decode("ascii")
    step = float(t[1] - t[0]) / speed
    shape = f'data-w="{extent[0] * scale:.0f}" data-h="{extent[1] * scale:.0f}"'
    return (
        f'<div class="motion" {shape} data-step="{step:.5f}" data-speed="{speed:g}" data-start="{float(t[0]):g}" '
        f'data-n="{len(t)}" data-kinds="{";".join(kinds)}" data-points="{data}">'
        f'<canvas role="img" aria-label="{escape(label, quote=True)}"></canvas>'
        '<div class="controls"><button type="button">Pause</button>'
        f'<input type="range" min="0" max="{len(t) - 1}" value="0" aria-label="time"><output></output></div></div>'
    )


SCRIPT = """
(() => {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches, all = [];
  for (const box of document.querySelectorAll(".motion")) {
    const d = box.dataset, raw = atob(d.points), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const xy = new Int16Array(bytes.buffer), n = +d.n, W = +d.w, H = +d.h, lines = [];
    let at = 0;
    for (const kind of d.kinds.split(";")) {
      const [pictures, points, color, width, dots] = kind.split(",").map(Number);
      lines.push({at, pictures, points, color, width, dots});
      at += 2 * pictures * points;
    }
    const canvas = box.querySelector("canvas"), [button, slider] = box.querySelectorAll("button, input");
    const out = box.querySelector("output"), pen = canvas.getContext("2d");
    const m = {seen: false, playing: !still, k: 0, box};
    const name = c => c == -1 ? "--line" : c == -2 ? "--ink" : "--c" + c;
    m.draw = () => {
      const wide = canvas.clientWidth, high = Math.min(wide * H / W, 340), dpr = devicePixelRatio || 1;
      if (!wide) return;
      canvas.style.height = high + "px";
      const pw = Math.round(wide * dpr), ph = Math.round(high * dpr);
      if (canvas.width != pw || canvas.height != ph) { canvas.width = pw; canvas.height = ph; }
      const s = Math.min(pw / W, ph / H), x0 = (pw - s * W) / 2, y0 = (ph + s * H) / 2;
      const css = getComputedStyle(document.documentElement), k = Math.min(n - 1, Math.floor(m.k));
      pen.clearRect(0, 0, pw, ph);
      pen.lineCap = pen.lineJoin = "round";
      for (const l of lines) {
        pen.strokeStyle = pen.fillStyle = css.getPropertyValue(name(l.color));
        pen.lineWidth = l.width * dpr;
        const first = l.at + (l.pictures > 1 ? 2 * k * l.points : 0);
        pen.beginPath();
        for (let p = 0; p < l.points; p++) pen.lineTo(x0 + s * xy[first + 2 * p], y0 - s * xy[first + 2 * p + 1]);
        pen.stroke();
        if (l.dots) for (let p = 0; p < l.points; p++) {
          pen.beginPath();
          pen.arc(x0 + s * xy[first + 2 * p], y0 - s * xy[first + 2 * p + 1], l.width * dpr, 0, 7);
          pen.fill();
        }
      }
      slider.value = k;
      out.value = (+d.start + k * d.step * d.speed).toFixed(2) + " s";
      button.textContent = m.playing ? "Pause" : "Play";
    };
    m.tick = dt => { m.k += dt / d.step; if (m.k >= n + 12) m.k = 0; m.draw(); };
    button.onclick = () => { m.playing = !m.playing; m.draw(); };
    slider.oninput = () => { m.playing = false; m.k = +slider.value; m.draw(); };
    all.push(m);
    m.draw();
  }
  if (!all.length) return;
  const watch = new IntersectionObserver(entries => {
    for (const e of entries) all.find(m => m.box == e.target).seen = e.isIntersecting;
  });
  for (const m of all) watch.observe(m.box);
  let last = 0;
  const frame = now => {
    const dt = Math.min(0.1, (now - last) / 1000);
    last = now;
    for (const m of all) if (m.seen && m.playing) m.tick(dt);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  const again = () => { for (const m of all) m.draw(); };
  addEventListener("resize", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
})();
"""
