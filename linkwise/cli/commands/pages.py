"""Commands that show in the browser: ``view``, ``demo``."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from linkwise.cli.arguments import configuration, load_model
from linkwise.cli.delivery import PAGES
from linkwise.cli.motion_files import FILES, check_suffix, motion_of
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.papers.arm_figures import force_table
from linkwise.papers.demo import make_report
from linkwise.sim.trajectory import Trajectory


def run_view(options: Namespace) -> None:
    """Serve a page until Ctrl-C, or write a file."""
    from linkwise.viz.video import MOVIES

    check_suffix(options.html, PAGES, "--html")
    check_suffix(options.video, (*MOVIES, ".gif"), "--video")
    if Path(options.model).suffix in FILES:
        raise InputError(
            "a motion is shown by its model",
            got=options.model,
            allowed="linkwise view MODEL MOTION",
            do=f"linkwise view model.urdf {options.model}",
        )
    model = load_model(options)
    motions = [_motion(model, path) for path in options.motions]
    if options.video is not None and not motions:
        raise InputError("a video needs a motion", got=options.video, allowed="linkwise view MODEL MOTION --video FILE")
    if options.html is None and options.video is None:
        _serve(model, motions, options)
        return
    if options.html is not None:
        _write_html(model, motions, options)
    if options.video is not None:
        print(motions[0].save_video(options.video, follow=options.follow))


def _serve(model: Model, motions: list[Trajectory], options: Namespace) -> None:
    """A page, as long as someone wants it."""
    opened = False if options.no_open else None
    if motions:
        page = motions[0].view(*motions[1:], follow=options.follow, port=options.port, open=opened)
    else:
        from linkwise.viz.viewer import view

        q = None if options.q is None else configuration(model, options.q, "--q")
        page = view(model, q, follow=options.follow, port=options.port, open=opened)
    page.wait()


def _write_html(model: Model, motions: list[Trajectory], options: Namespace) -> None:
    from linkwise.viz.recording import model_html

    if motions:
        motions[0].save_html(options.html, follow=options.follow)
    else:
        q = None if options.q is None else configuration(model, options.q, "--q")
        Path(options.html).write_text(model_html(model, q, follow=options.follow), encoding="utf-8")
    print(options.html)


def _motion(model: Model, path: str) -> Trajectory:
    """A motion from a file; anything else is refused."""
    if Path(path).suffix not in FILES:
        raise InputError("this is not a motion", got=path, allowed=", ".join(FILES))
    return motion_of(path, model)


def run_demo(options: Namespace) -> None:
    """Write the report, and open it if asked to."""
    check_suffix(options.output, (".html",), "--output")
    path = make_report(options.output)
    print(force_table())
    print(path)
    if options.open:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
