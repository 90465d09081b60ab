"""Parts of every page: a server, a worker, a stage, and a clean end."""

from __future__ import annotations

import html
import os
import sys
import time
from typing import Self

from linkwise.viz.figure import Figure
from linkwise.viz.server import address, is_running, start_server, stop_server
from linkwise.viz.stage import Followed, Stage
from linkwise.viz.worker import Worker

_STYLE = """<style>
button.mantine-Button-root {--button-justify: flex-start}
.mantine-Slider-markLabel {margin-top: 0.35em}
</style>"""
"""Labels of buttons begin at the left: those of the tree are moved in from there; limits stand below the handles."""

FRAME = 1.0 / 30.0
"""Seconds between pictures of what moves."""


class Page:
    """A page in the browser. It lives until :meth:`close`, or until the program ends.

    Args:
        label: the title of its panel.
        port: see :func:`linkwise.viz.server.start_server`.
        open: whether to open it in the browser; None: where there is a screen.
    """

    def __init__(self, label: str, port: int | None = None, open: bool | None = None) -> None:
        self.server = start_server(label, port)
        self.worker = Worker(f"linkwise page {self.server.get_port()}", self.say)
        self._open = open
        self.stage = Stage(self.server)
        self.target: Followed | None = None
        self.server.gui.main_panel.dock_right()
        self.server.gui.add_html(_STYLE)

    @property
    def url(self) -> str:
        """Address, e.g. http://127.0.0.1:8080/token/index.html; who has it can see and move the model."""
        return address(self.server)

    @property
    def is_open(self) -> bool:
        """Whether the server still answers."""
        return is_running(self.server)

    def announce(self) -> None:
        """Say where the page is, and open it where that was asked for or is likely wanted."""
        print(f"linkwise: {self.url}", file=sys.stderr)
        if self._open or (self._open is None and _has_screen()):
            import webbrowser

            webbrowser.open(self.url)

    def say(self, text: str) -> None:
        """Show a message to whoever looks."""
        for client in self.server.get_clients().values():
            client.add_notification("linkwise", text.replace("\n", "\n\n"), auto_close_seconds=8.0)

    def wait(self) -> None:
        """Stay until Ctrl-C or :meth:`close`; then close."""
        try:
            while self.is_open:
                time.sleep(0.2)
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End the server and the threads."""
        self.worker.close()
        stop_server(self.server)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url if self.is_open else 'closed'}>"

    def _repr_html_(self) -> str:
        """The page itself, for a notebook on this machine."""
        if not self.is_open:
            return html.escape(repr(self))
        return f'<iframe src="{self.url}" width="100%" height="480" style="border:1px solid #ddd"></iframe>'

    def keep_in_view(self, figure: Figure) -> None:
        """Move the world so that what is followed of a figure stays where the camera looks."""
        if self.target is not None:
            self.stage.follow(self.target.place(figure.poses) + figure.offset)

    def sync(self) -> None:
        """Wait until everything that was asked for before is done."""
        self.worker.call(lambda: None)


def _has_screen() -> bool:
    if sys.platform in ("darwin", "win32"):
        return sys.stdout.isatty()
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and sys.stdout.isatty()
