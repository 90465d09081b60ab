"""A motion as a moving drawing: one SVG element that plays when it is clicked, without a script."""

from __future__ import annotations

import numpy as np

from linkwise.array_types import Array
from linkwise.ensemble.fingerprint import digest
from linkwise.sim.trajectory import Trajectory

_FRAMES = 48
_SIZE = 240.0
_MARGIN = 14.0
_COLORS = ("#1f5fa8", "#d1603d", "#3a8f5c", "#7d5ba6", "#b8860b", "#2f8f9d")
# A look from the front, right and above: x to the lower left, y to the right, z up.
_VIEW = np.array([[-0.55, 0.83, 0.0], [-0.35, -0.23, 0.91]])


def skeleton(trajectory: Trajectory) -> str:
    """Lines from each body's frame to its parent's (and to its mass centre, at the tips), moving with time.

    It shows the start; a click plays it.
    """
    model = trajectory.model
    assert model is not None
    good = np.flatnonzero(np.isfinite(trajectory.q).all(axis=1))
    if not len(good):
        return f'<svg viewBox="0 0 {_SIZE:g} {_SIZE:g}" role="img" aria-label="no motion"></svg>'
    chosen = good[np.unique(np.linspace(0, len(good) - 1, _FRAMES).astype(int))]
    p = trajectory.model_parameters
    poses = model.poses(trajectory.q[chosen], p=None if p is None else np.broadcast_to(p, (len(chosen), p.shape[-1])))
    places = poses[..., :3, 3]
    bones = []
    for body in model.bodies:
        start = places[:, body.parent] if body.parent >= 0 else np.broadcast_to(0.0, (len(chosen), 3))
        bones.append(np.stack([start, places[:, body.index]], axis=1))
        if body.index not in model.parents:  # a tip: where its mass is
            com = np.average([part.com for part in body.parts], axis=0) if body.parts else np.zeros(3)
            tip = places[:, body.index] + poses[:, body.index, :3, :3] @ com
            bones.append(np.stack([places[:, body.index], tip], axis=1))
    flat = np.stack(bones, axis=1) @ _VIEW.T  # (frames, bones, 2 ends, 2)
    low, high = flat.min(axis=(0, 1, 2)), flat.max(axis=(0, 1, 2))
    scale = (_SIZE - 2 * _MARGIN) / max(float((high - low).max()), 1e-9)
    drawn = (flat - 0.5 * (low + high)) * scale
    drawn[..., 1] *= -1.0
    drawn += 0.5 * _SIZE
    seconds = max(0.5, float(trajectory.t[chosen[-1]] - trajectory.t[chosen[0]]))
    lines = [_bone(drawn[:, k], k, seconds) for k in range(drawn.shape[1])]
    where = f'x="{_MARGIN:g}" y="{_SIZE - 4:g}" font-size="9" fill="#5b6573"'
    hint = f"<text {where}>▶ click to play, {seconds:.2g} s</text>"
    name = f"play_{digest(drawn.tobytes())}"
    # No hyphen in the name: in `begin` it would be a minus sign. The cover comes last, over the lines, to hear clicks.
    cover = f'<rect id="{name}" width="{_SIZE:g}" height="{_SIZE:g}" fill-opacity="0" style="cursor:pointer"/>'
    return (
        f'<svg viewBox="0 0 {_SIZE:g} {_SIZE:g}" role="img" aria-label="the motion; click to play">'
        f"{''.join(lines)}{hint}{cover}</svg>"
    ).replace("BEGIN", name)


def _bone(ends: Array, k: int, seconds: float) -> str:
    """One line (frames, 2 ends, 2); the click on the whole drawing is heard by every one of them."""
    color = _COLORS[k % len(_COLORS)]
    names = (("x1", 0, 0), ("y1", 0, 1), ("x2", 1, 0), ("y2", 1, 1))
    first = " ".join(f'{name}="{ends[0, e, c]:.1f}"' for name, e, c in names)
    moves = "".join(
        f'<animate attributeName="{name}" dur="{seconds:g}s" begin="BEGIN.click" fill="freeze" '
        f'values="{";".join(f"{x:.1f}" for x in ends[:, e, c])}"/>'
        for name, e, c in names
    )
    return f'<line {first} stroke="{color}" stroke-width="4" stroke-linecap="round">{moves}</line>'
