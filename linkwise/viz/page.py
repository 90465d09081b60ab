"""Parts of every page: a server, a worker, a scene with a floor and a camera, and a clean end."""

from __future__ import annotations

import html
import os
import sys
import time
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from linkwise.viz.server import address, is_running, start_server, stop_server
from linkwise.viz.worker import Worker

_STYLE = "<style>button.mantine-Button-root {--button-justify: flex-start}</style>"
"""Labels of buttons begin at the left: those of the tree are moved in from there."""

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

    def sync(self) -> None:
        """Wait until everything that was asked for before is done."""
        self.worker.call(lambda: None)


def furnish(server: Any, low: ArrayLike, high: ArrayLike, closer: float = 1.0) -> None:
    """A floor below what is shown, and a camera that sees all of it, or is so many times closer."""
    corner, other = np.asarray(low, float), np.asarray(high, float)
    centre, size = (corner + other) / 2, max(float(np.linalg.norm(other - corner)), 1e-3)
    cell = float(10.0 ** np.floor(np.log10(size / 2)))
    server.scene.add_grid(
        "/floor",
        width=20 * cell,
        height=20 * cell,
        cell_size=cell / 2,
        section_size=cell,
        position=(round(centre[0] / cell) * cell, round(centre[1] / cell) * cell, min(0.0, corner[2].item())),
        infinite_grid=False,
        cell_color=(232, 234, 238),
        section_color=(205, 209, 216),
        cell_thickness=0.6,
        section_thickness=0.9,
    )
    server.scene.configure_default_lights(cast_shadow=False)  # each shadow draws everything once more
    server.initial_camera.look_at = tuple(centre)
    server.initial_camera.position = tuple(centre + 0.85 * size / closer * np.array([0.75, -0.6, 0.38]))
    server.initial_camera.near = 0.005 * size
    server.initial_camera.far = 200.0 * size


def _has_screen() -> bool:
    if sys.platform in ("darwin", "win32"):
        return sys.stdout.isatty()
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and sys.stdout.isatty()
