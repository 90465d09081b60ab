"""Figures as SVG text, to stand inside a page: matplotlib, without a window."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

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


def histogram_figure(panels: Sequence[tuple[str, Any]], *, columns: int = 3) -> str:
    """One panel for each sample of numbers (label, values), with its 5 %, 50 % and 95 % quantiles."""
    figure, axes = _panels(len(panels), columns)
    for axis, (label, values) in zip(axes, panels, strict=False):
        axis.hist(values, bins=min(60, max(8, int(len(values) ** 0.5))), color=_COLORS[0], alpha=0.85)
        for quantile in np.quantile(values, [0.05, 0.5, 0.95]):
            axis.axvline(quantile, color=_COLORS[1], lw=1.2)
        _plain(axis, label, "members")
    return _svg(figure, "distributions of " + ", ".join(label for label, _ in panels))


def scatter_figure(panels: Sequence[tuple[str, Any, str, Any]], marked: Any = None, *, columns: int = 3) -> str:
    """One panel for each pair (x label, x, y label, y); points where ``marked`` is true have another colour."""
    figure, axes = _panels(len(panels), columns)
    for axis, (x_label, x, y_label, y) in zip(axes, panels, strict=False):
        axis.scatter(x, y, s=5, color=_COLORS[0], alpha=0.45, linewidths=0)
        if marked is not None and marked.any():
            axis.scatter(x[marked], y[marked], s=9, color=_COLORS[1], alpha=0.9, linewidths=0)
        _plain(axis, x_label, y_label)
    return _svg(figure, "; ".join(f"{y_label} against {x_label}" for x_label, _, y_label, _ in panels))


def bar_figure(names: Sequence[str], groups: Sequence[tuple[str, Any, Any]], *, x_label: str) -> str:
    """Horizontal bars for each name, one for each group (label, values, intervals (n, 2))."""
    figure = _figure((8.0, 0.9 + 0.26 * len(groups) * len(names)))
    axis = figure.subplots()
    height = 0.8 / len(groups)
    places = np.arange(len(names))
    for k, (label, values, intervals) in enumerate(groups):
        around = np.abs(np.transpose(intervals) - values)
        axis.barh(places + k * height, values, height, xerr=around, label=label, color=_COLORS[k], ecolor="0.35")
    axis.set_yticks(places + 0.5 * height * (len(groups) - 1), names)
    axis.invert_yaxis()
    _plain(axis, x_label, "")
    axis.legend(frameon=False)
    return _svg(figure, f"{x_label}: " + ", ".join(names))


def _panels(count: int, columns: int) -> tuple[Any, Any]:
    columns = min(columns, max(1, count))
    rows = -(-count // columns)
    figure = _figure((3.4 * columns, 2.5 * rows))
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes


def _plain(axis: Any, x_label: str, y_label: str) -> None:
    axis.grid(color="0.9", lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
    axis.set_xlabel(x_label, fontsize=9)
    axis.set_ylabel(y_label, fontsize=9)


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
