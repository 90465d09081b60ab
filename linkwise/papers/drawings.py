"""Figures as SVG text, to stand inside a page: matplotlib, without a window, in the page's own colours."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUMBER = count(1)
_INK, _GRID = "#010203", "#040506"
_COLORS = tuple(f"#0708{k:02x}" for k in range(6))
"""Stand-ins: in the SVG each becomes a variable of the page's style, so that a figure follows day and night."""
_VARIABLES = {_INK: "var(--ink)", _GRID: "var(--line)"} | {c: f"var(--c{k})" for k, c in enumerate(_COLORS)}

Curve = tuple[str, Sequence[int], ArrayLike]
"""A label, and the points: x and y."""


def line_figure(
    t: Array,
    curves: Sequence[tuple[str, ArrayLike]],
    others: Sequence[tuple[str, ArrayLike]] = (),
    *,
    y_label: str,
    size: tuple[float, float] = (5.4, 3.2),
) -> str:
    """All curves in one panel, over time.

    Args:
        t: times (T), s.
        curves: a label and T values each.
        others: what the curves are compared with, dashed; a label that occurs twice is shown once.
        y_label: quantity and unit.
        size: width and height, inches: what 9-point letters are measured by.
    """
    figure, axis = _axes(size)
    for (label, values), color in zip(curves, _COLORS, strict=False):
        axis.plot(t, values, label=label, color=color, lw=1.8)
    for label, values in others:
        known = label in axis.get_legend_handles_labels()[1]
        axis.plot(t, values, label=None if known else label, color=_INK, lw=1.1, ls=(0, (4, 3)))
    axis.set_xlim(t[0], t[-1])
    low, high = axis.get_ylim()
    if high - low < 1e-9:  # a curve that is zero to rounding, shown as zero
        axis.set_ylim(-1.0, 1.0)
    axis.ticklabel_format(axis="y", useOffset=False, scilimits=(-3, 4))
    axis.set_ylabel(y_label)
    axis.set_xlabel("time (s)")
    if len(curves) + len(others) > 1:
        _legend(axis, 3)
    return _svg(figure, ", ".join(label for label, _ in curves) + f": {y_label} over time")


def growth_figure(curves: Sequence[Curve], *, y_label: str) -> str:
    """Curves with markers over links n, both axes logarithmic: a straight line is a power, its slope the exponent."""
    figure, axis = _axes((5.4, 3.8))
    for (label, x, y), color in zip(curves, _COLORS, strict=False):
        axis.loglog(x, y, "o-", label=label, color=color, lw=1.6, ms=4)
    ticks = sorted({n for _, x, _ in curves for n in x})
    axis.set_xticks(ticks, [str(n) for n in ticks])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("links n")
    axis.set_ylabel(y_label)
    _legend(axis, 1)
    return _svg(figure, ", ".join(label for label, _, _ in curves) + f": {y_label} over links n")


def histogram_figure(panels: Sequence[tuple[str, Array]]) -> str:
    """One panel for each sample of numbers (label, values), with its 5 %, 50 % and 95 % quantiles."""
    figure, axes = _panels(len(panels))
    for axis, (label, values) in zip(axes, panels, strict=False):
        axis.hist(values, bins=min(60, max(8, int(len(values) ** 0.5))), color=_COLORS[0], alpha=0.85)
        for quantile in np.quantile(values, [0.05, 0.5, 0.95]):
            axis.axvline(quantile, color=_COLORS[1], lw=1.2)
        _labelled(axis, label, "members")
    return _svg(figure, "distributions of " + ", ".join(label for label, _ in panels))


def scatter_figure(panels: Sequence[tuple[str, Array, str, Array]], marked: Array | None = None) -> str:
    """One panel for each pair (x label, x, y label, y); points where ``marked`` is true have another colour."""
    figure, axes = _panels(len(panels))
    for axis, (x_label, x, y_label, y) in zip(axes, panels, strict=False):
        axis.scatter(x, y, s=5, color=_COLORS[0], alpha=0.45, linewidths=0)
        if marked is not None and marked.any():
            axis.scatter(x[marked], y[marked], s=9, color=_COLORS[1], alpha=0.9, linewidths=0)
        _labelled(axis, x_label, y_label)
    return _svg(figure, "; ".join(f"{y_label} against {x_label}" for x_label, _, y_label, _ in panels))


def bar_figure(names: Sequence[str], groups: Sequence[tuple[str, Array, ArrayLike]], *, x_label: str) -> str:
    """Horizontal bars for each name, one for each group (label, values, intervals (n, 2))."""
    figure, axis = _axes((8.0, 0.9 + 0.26 * len(groups) * len(names)))
    height = 0.8 / len(groups)
    places = np.arange(len(names))
    for k, (label, values, intervals) in enumerate(groups):
        around = np.abs(np.transpose(intervals) - values)
        axis.barh(places + k * height, values, height, xerr=around, label=label, color=_COLORS[k], ecolor=_INK)
    axis.set_yticks(places + 0.5 * height * (len(groups) - 1), names)
    axis.invert_yaxis()
    axis.set_xlabel(x_label, fontsize=9)
    axis.legend(frameon=False, labelcolor=_INK)
    return _svg(figure, f"{x_label}: " + ", ".join(names))


def _axes(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = _figure(size)
    axis = figure.subplots()
    _dress(axis)
    return figure, axis


def _panels(count: int) -> tuple[Figure, Sequence[Axes]]:
    columns = min(3, max(1, count))
    rows = -(-count // columns)
    figure = _figure((3.4 * columns, 2.5 * rows))
    axes = figure.subplots(rows, columns, squeeze=False).reshape(-1).tolist()
    for axis in axes[:count]:
        _dress(axis)
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes


def _figure(size: tuple[float, float]) -> Figure:
    require_extra("matplotlib", "viz")
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    return Figure(figsize=size, layout="constrained", facecolor="none")


def _dress(axis: Axes) -> None:
    axis.set_facecolor("none")
    axis.grid(color=_GRID, lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    for spine in axis.spines.values():
        spine.set_color(_INK)
    axis.tick_params(which="both", labelsize=9, colors=_INK)
    axis.xaxis.label.set_color(_INK)
    axis.yaxis.label.set_color(_INK)


def _labelled(axis: Axes, x_label: str, y_label: str) -> None:
    axis.set_xlabel(x_label, fontsize=9)
    axis.set_ylabel(y_label, fontsize=9)


def _legend(axis: Axes, columns: int) -> None:
    axis.legend(
        frameon=False, ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0), handlelength=1.6, labelcolor=_INK,
        fontsize=9,
    )  # fmt: skip


def _svg(figure: Figure, description: str) -> str:
    """The figure as an <svg> element; its ids are made unlike those of other figures in the page."""
    import matplotlib as mpl

    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "linkwise", "path.simplify_threshold": 0.3}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    prefix = f"f{next(_NUMBER)}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'(xlink:href="|href="|url\()#', rf"\1#{prefix}", svg)
    for stand_in, variable in _VARIABLES.items():
        svg = svg.replace(stand_in, variable)
    label = description.replace("&", "and").replace('"', "'").replace("<", "")
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', f'role="img" aria-label="{label}"', svg, count=1)
