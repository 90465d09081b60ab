"""Figures as SVG text, to stand inside a page: matplotlib, without a window."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

from linkwise.errors import require_extra

_NUMBER = count(1)
_COLORS = ("#1f5fa8", "#d1603d", "#3a8f5c", "#7d5ba6", "#b8860b", "#2f8f9d")


def line_figure(
    t: Any,
    curves: Sequence[tuple[str, Any]],
    *,
    y_label: str,
    size: tuple[float, float] = (7.0, 3.6),
) -> str:
    """All curves in one panel, over time."""
    figure = _figure(size)
    axis = figure.subplots()
    for (label, values), color in zip(curves, _COLORS, strict=False):
        axis.plot(t, values, label=label, color=color, lw=1.8)
    _dress(axis, t)
    axis.set_ylabel(y_label)
    axis.set_xlabel("time (s)")
    axis.legend(frameon=False, ncols=len(curves), loc="lower center", bbox_to_anchor=(0.5, 1.0), handlelength=1.6)
    return _svg(figure, ", ".join(label for label, _ in curves) + f": {y_label} over time")


def panel_figure(
    t: Any, panels: Sequence[tuple[str, str, Any]], *, columns: int = 3, size: tuple[float, float] = (10.0, 5.0)
) -> str:
    """One panel for each curve: (title, y label, values)."""
    figure = _figure(size)
    rows = -(-len(panels) // columns)
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for k, (title, y_label, values) in enumerate(panels):
        axis = axes[k // columns, k % columns]
        axis.plot(t, values, color=_COLORS[0], lw=1.8)
        _dress(axis, t)
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_ylabel(y_label, fontsize=9)
        if k // columns == rows - 1:
            axis.set_xlabel("time (s)", fontsize=9)
    return _svg(figure, "; ".join(title for title, _, _ in panels))


def _figure(size: tuple[float, float]) -> Any:
    require_extra("matplotlib", "viz")
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    return Figure(figsize=size, layout="constrained")


def _dress(axis: Any, t: Any) -> None:
    axis.grid(color="0.9", lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=9)
    axis.set_xlim(t[0], t[-1])
    low, high = axis.get_ylim()
    if high - low < 1e-9:  # a curve that is zero to rounding, shown as zero
        axis.set_ylim(-1.0, 1.0)
    axis.ticklabel_format(axis="y", useOffset=False, scilimits=(-3, 4))


def _svg(figure: Any, description: str) -> str:
    """The figure as an <svg> element; its ids are made unlike those of other figures in the page."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "linkwise"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    prefix = f"f{next(_NUMBER)}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'(xlink:href="|href="|url\()#', rf"\1#{prefix}", svg)
    label = description.replace("&", "and").replace('"', "'").replace("<", "")
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', f'role="img" aria-label="{label}"', svg, count=1)
