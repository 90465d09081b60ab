"""The report of an ensemble: one page for the browser, in one file."""

from __future__ import annotations

import shlex
from html import escape
from pathlib import Path

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError, LinkwiseError
from linkwise.papers.animation import animation, skeleton
from linkwise.papers.drawings import bar_figure, histogram_figure, scatter_figure
from linkwise.papers.report_page import ReportPage
from linkwise.sim.trajectory import Trajectory
from linkwise.studies.outcomes import FAILED
from linkwise.studies.results import Results

_POINTS = 1500  # in a panel of a scatter plot
_PANELS = 12
_PLAY_SAMPLES = 61
_VIEW = (33.0, 25.0)  # from the front, right and above
_LISTED = 20


def write_report(
    results: Results,
    path: str | Path,
    *,
    worst: str | None = None,
    smallest: bool = False,
    count: int = 6,
    replay: str | None = None,
) -> Path:
    """Write the report of a finished ensemble; returns where.

    Args:
        results: of :func:`linkwise.ensemble`, with their study: then the worst members can be played in the page.
        path: of the page.
        worst: the outcome by which members are the worst; the first one of one number if not given.
        smallest: whether small values are bad.
        count: how many of the worst are shown.
        replay: the command that runs a member again, its number left out.
    """
    if not results.is_complete:
        raise InputError("the ensemble is not finished", got=str(results.counts), do="resume it first")
    status = results["status"]
    good = status < FAILED
    name = results.manifest["model"]["name"]
    page = ReportPage(f"{name}: {results.members} members", escape(_lead(results)))
    _ending(page, results)
    scalars = results.scalars()
    if scalars and good.any():
        _distributions(page, results, scalars, good)
        _against_inputs(page, results, scalars, good)
        _sensitivity(page, results, scalars)
        chosen = scalars[0] if worst is None else worst
        _worst(page, results, chosen, smallest, count, replay, Path(path))
    _made_by(page, results)
    page.footer("linkwise ensemble")
    return page.save(path)


def _lead(results: Results) -> str:
    manifest = results.manifest
    how = ", ".join(f"{key} {value}" for key, value in manifest["settings"].items() if key in ("duration", "method"))
    return (
        f"{manifest['design']} design, seed {manifest['seed']}{', ' if how else ''}{how}. Made {manifest['created']}."
    )


def _ending(page: ReportPage, results: Results) -> None:
    page.heading("How members ended")
    counts = results.counts
    page.table(["", "members", "share"], [[k, str(n), f"{n / results.members:.4g}"] for k, n in counts.items()])
    failures = results.failures
    if failures or "failure" in results.outcomes:
        page.text(f"Failure rate: <b>{escape(str(results.failure_rate()))}</b>.")
    if failures:
        more = f" The first {_LISTED} of {len(failures)}:" if len(failures) > _LISTED else ""
        page.text(f"Members without a result, and why.{more}")
        rows = [[str(f.member), f.status, " ".join(f.reason.split())[:300]] for f in failures[:_LISTED]]
        page.table(["member", "status", "reason"], rows)


def _distributions(page: ReportPage, results: Results, scalars: list[str], good: Array) -> None:
    page.heading("Distributions")
    head, *rows = results.spreads()
    page.table(head, rows)
    known = [(name, np.asarray(results[name][good], float)) for name in scalars[:_PANELS]]
    svg = histogram_figure([(name, values[np.isfinite(values)]) for name, values in known if np.isfinite(values).any()])
    page.figure("Outcomes", svg, "Members by outcome; the lines are the 5 %, 50 % and 95 % quantiles.")


def _against_inputs(page: ReportPage, results: Results, scalars: list[str], good: Array) -> None:
    from scipy.stats import spearmanr

    columns: list[tuple[str, Array]] = []
    for name in results.inputs:
        values = results[name]
        values = values[:, None] if values.ndim == 1 else values
        for k in range(values.shape[1]):
            if np.ptp(values[good, k]) > 0.0:
                columns.append((name if values.shape[1] == 1 else f"{name}[{k}]", values[:, k]))
    if not columns:
        return
    shown = np.flatnonzero(good)
    shown = shown[np.linspace(0, len(shown) - 1, min(_POINTS, len(shown))).astype(int)]
    marked = results["failure"][shown] if "failure" in results.outcomes else None
    for outcome in scalars[:3]:
        y = np.asarray(results[outcome], float)
        finite = np.isfinite(y[shown])
        here = shown[finite]
        if len(here) < 3 or not np.ptp(y[here]) > 0.0:
            continue
        # The most telling inputs first: those whose ranks go with the outcome's.
        order = sorted(columns, key=lambda column: -abs(spearmanr(column[1][here], y[here]).statistic))[:_PANELS]
        svg = scatter_figure(
            [(name, x[here], outcome, y[here]) for name, x in order], None if marked is None else marked[finite]
        )
        caption = f"{len(here)} of {results.members} members" + ("; failures in red." if marked is not None else ".")
        page.figure(f"{outcome} against inputs", svg, caption)


def _sensitivity(page: ReportPage, results: Results, scalars: list[str]) -> None:
    if results.manifest.get("design") != "saltelli":
        return
    page.heading("Sensitivity")
    page.text("Sobol indices: the share of an outcome's variance that an input explains alone, and with all others.")
    for outcome in scalars[:3]:
        found = results.sobol_indices(outcome)
        groups = [("first order", found.first, found.first_interval), ("total", found.total, found.total_interval)]
        svg = bar_figure(found.names, groups, x_label=f"share of the variance of {outcome}")
        page.figure(outcome, svg, f"Bars are intervals of {100 * found.confidence:g} % confidence, by bootstrap.")


def _worst(
    page: ReportPage, results: Results, outcome: str, smallest: bool, count: int, replay: str | None, path: Path
) -> None:
    members = results.worst(outcome, count, smallest=smallest)
    values = results[outcome]
    page.heading("The worst members")
    page.text(f"Those with the {'smallest' if smallest else 'largest'} <code>{escape(outcome)}</code>.")
    study = results.study
    if study is not None and study.run is None:
        t0, duration = float(study.settings.get("t0", 0.0)), float(study.settings.get("duration", 10.0))
        times = np.linspace(t0, t0 + duration, _PLAY_SAMPLES)
        figures = []
        for member in members:
            motion = study.replay(int(member), output_times=times)
            caption = f"member {member}: {float(values[member]):.6g}{_player(motion, path, int(member))}"
            figures.append((_moving(motion, f"the motion of member {member}"), caption))
        page.gallery(figures)
    else:
        page.table(["member", outcome], [[str(m), f"{float(values[m]):.6g}"] for m in members])
    page.text("Run one again, alone and bit for bit:")
    first = int(members[0]) if len(members) else 0
    page.code(f"{replay} {first}" if replay else f"results.replay({first})  # the Trajectory of lw.simulate")


def _moving(motion: Trajectory, label: str) -> str:
    """A motion as lines, as far as it has numbers."""
    model, good = motion._with_model("report"), np.isfinite(motion.q).all(axis=1)
    if good.sum() < 2:
        return ""
    p = motion.model_parameters
    own = None if p is None else np.broadcast_to(p, (int(good.sum()), p.shape[-1]))
    return animation(motion.t[good], skeleton(model, motion.q[good], p=own), label, view=_VIEW)


def _player(motion: Trajectory, path: Path, member: int) -> str:
    """A link to the motion in the viewer, beside the page, where linkwise can draw it."""
    folder = path.with_name(f"{path.stem}_members")
    folder.mkdir(exist_ok=True)
    try:
        motion.save_html(folder / f"{member}.html")
    except LinkwiseError:  # without what it takes to draw it; the page plays it all the same
        return ""
    return f' · <a href="{escape(folder.name)}/{member}.html">in the viewer</a>'


def _made_by(page: ReportPage, results: Results) -> None:
    page.heading("What made this")
    manifest = results.manifest
    rows = [["model", f"{manifest['model']['name']}, {manifest['model']['hash']}"], ["study", manifest["study"]]]
    rows += [["seed", manifest["seed"]], ["machine", manifest["machine"]]]
    rows += [[name, str(value)] for name, value in manifest["versions"].items()]
    rows += [[name, str(value)[:200]] for name, value in manifest["settings"].items()]
    if results.store.folder is not None:
        rows.append(["store", shlex.quote(str(results.store.folder))])
    page.table(["", ""], rows)
