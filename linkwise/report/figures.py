"""Figures as SVG text, to stand inside a page: matplotlib, without a window, in the page's own colours."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

from linkwise.errors import require_extra

_NUMBER = count(1)
_INK, _GRID = "#010203", "#040506"
_COLORS = tuple(f"#0708{k:02x}" for k in range(6))
"""Stand-ins: in the SVG each becomes a variable of the page's style, so that a figure follows day and night."""
_VARIABLES = {_INK: "var(--ink)", _GRID: "var(--line)"} | {c: f"var(--c{k})" for k, c in enumerate(_COLORS)}

Curve = tuple[str, Any, Any]
"""A label, and the points: x and y."""


def line_figure(
    t: Any,
    curves: Sequence[tuple[str, Any]],
    others: Sequence[tuple[str, Any]] = (),
    *,
    y_label: str,
    size: tuple[float, float] = (5.4, 3.2),
    columns: int = 3,
) -> str:
    """All curves in one panel, over time.

    Args:
        t: times (T), s.
        curves: a label and T values each.
        others: what the curves are compared with, dashed; a label that occurs twice is shown once.
        y_label: quantity and unit.
        size: width and height, inches: what 9-point letters are measured by.
        columns: of the legend.
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
        _legend(axis, columns)
    return _svg(figure, ", ".join(label for label, _ in curves) + f": {y_label} over time")


def growth_figure(
    curves: Sequence[Curve], *, x_label: str, y_label: str, size: tuple[float, float] = (5.4, 3.8), columns: int = 2
) -> str:
    """Curves with markers over n, both axes logarithmic: a straight line is a power, its slope the exponent."""
    figure, axis = _axes(size)
    for (label, x, y), color in zip(curves, _COLORS, strict=False):
        axis.loglog(x, y, "o-", label=label, color=color, lw=1.6, ms=4)
    ticks = sorted({n for _, x, _ in curves for n in x})
    axis.set_xticks(ticks, [str(n) for n in ticks])
    axis.set_xticks([], minor=True)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    _legend(axis, columns)
    return _svg(figure, ", ".join(label for label, _, _ in curves) + f": {y_label} over {x_label}")


def _axes(size: tuple[float, float]) -> tuple[Any, Any]:
    require_extra("matplotlib", "viz")
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    figure = Figure(figsize=size, layout="constrained", facecolor="none")
    axis = figure.subplots()
    axis.set_facecolor("none")
    axis.grid(color=_GRID, lw=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    for spine in axis.spines.values():
        spine.set_color(_INK)
    axis.tick_params(which="both", labelsize=9, colors=_INK)
    axis.xaxis.label.set_color(_INK)
    axis.yaxis.label.set_color(_INK)
    return figure, axis


def _legend(axis: Any, columns: int) -> None:
    axis.legend(
        frameon=False, ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0), handlelength=1.6, labelcolor=_INK,
        fontsize=9,
    )  # fmt: skip


def _svg(figure: Any, description: str) -> str:
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
