"""Parts of every page: a server, a worker, a stage, and a clean end.

The server is for those on this machine who know its address, and ends with the program. Every program on this machine
and every page in its browsers can reach a port of it. So the address has a token, made anew for each server: requests
for pages and connections for messages are refused without it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hmac
import html
import io
import operator
import os
import secrets
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from linkwise.errors import InputError, LinkwiseError, require_extra
from linkwise.viz.figure import ModelFigure
from linkwise.viz.stage import Followed, PageStage
from linkwise.viz.textures import Happened

if TYPE_CHECKING:
    import viser


HOST = "127.0.0.1"
PORT = 8080
_OWN = frozenset((HOST, "localhost", "::1"))


def start_server(label: str, port: int | None = None) -> viser.ViserServer:
    """A ``viser`` server on the loopback interface.

    Where the port is in use the next free one is taken, and a line on standard error says so. Only who knows its
    :func:`address` can talk to it, not other pages that the same browser shows, and it never asks the outside for a
    public address.

    Args:
        label: the title of the page's panel.
        port: to begin with, 8080 if not given; 0 for any free one.
    """
    library = require_extra("viser", "viz")
    try:
        wanted = PORT if port is None else operator.index(port)
    except TypeError:
        wanted = -1
    if not 0 <= wanted <= 65535:
        raise InputError("this is not a port", got=repr(port), allowed="0 to 65535, or None")
    free = _free_port(wanted)
    with _quiet(), _guarded(library.infra):
        server: viser.ViserServer = library.ViserServer(host=HOST, port=free, label=label, verbose=False)
    if wanted and server.get_port() != wanted:
        print(f"linkwise: port {wanted} is in use; the page is on {server.get_port()}", file=sys.stderr)
    _stay_private(server)
    server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(40, 96, 160))
    _RUNNING.append(server)
    atexit.unregister(_stop_all)  # last registered, first called: before viser's own, which prints
    atexit.register(_stop_all)
    return server


def stop_server(server: viser.ViserServer) -> None:
    """End a server and its threads; safe to call twice."""
    if server in _RUNNING:
        _RUNNING.remove(server)
        with _quiet(), contextlib.suppress(RuntimeError):
            server.stop()


_RUNNING: list[viser.ViserServer] = []


def _stop_all() -> None:
    for server in tuple(_RUNNING):
        stop_server(server)


def address(server: viser.ViserServer) -> str:
    """Address for the browser; the token in it is what opens the page."""
    return f"http://{HOST}:{server.get_port()}/{server._websock_server.token}/index.html"


def is_running(server: viser.ViserServer) -> bool:
    """Whether it still answers."""
    thread = server._websock_server._server_thread
    return thread is not None and thread.is_alive()


def _free_port(wanted: int) -> int:
    """The first free port from this one on; 0 as it is."""
    for port in range(wanted, min(wanted + 1000, 65536)):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            if sys.platform != "win32":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    return 0


def _stay_private(server: viser.ViserServer) -> None:
    """Never open a tunnel to the outside."""
    from viser._messages import ShareUrlDisconnect, ShareUrlRequest

    for request in (ShareUrlRequest, ShareUrlDisconnect):
        server._websock_server._incoming_handlers.pop(request, None)


class _Pages:
    """The folder of the pages, as viser asks it for files: those below the token, and no others."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder, self.token = folder, token

    def __truediv__(self, path: str) -> Path:
        first, _, rest = path.partition("/")
        return self.folder / rest if _same(first, self.token) else Path(os.devnull)  # which is no file


_MAKING = threading.Lock()


@contextlib.contextmanager
def _guarded(infra: Any) -> Iterator[None]:
    """Within this, viser makes servers that answer only to a token: from their first moment on."""

    class Guarded(infra.WebsockServer):  # type: ignore[misc]  # viser is imported where it is used
        def start(self) -> None:
            self.token = secrets.token_urlsafe(16)
            self._http_server_root: Any = _Pages(self._http_server_root, self.token)
            self._client_connect_cb.insert(0, self.check)
            super().start()

        async def check(self, client: viser.infra.WebsockClientConnection) -> None:
            """End a connection without the token, or from a page of another site, before anything is sent or heard."""
            connection = self._live_connections[client.client_id]
            given = connection.request.path.partition("?")[0].strip("/").partition("/")[0]
            origin = connection.request.headers.get("Origin")
            if _same(given, self.token) and (origin is None or urlsplit(origin).hostname in _OWN):
                return
            await connection.close(1008, "the token of this address is missing")
            self._live_connections.pop(client.client_id, None)
            self._client_state_from_id.pop(client.client_id, None)
            raise asyncio.CancelledError  # what was sent before the end is not read

    with _MAKING:
        original, infra.WebsockServer = infra.WebsockServer, Guarded
        try:
            yield
        finally:
            infra.WebsockServer = original


def _same(given: str, token: str) -> bool:
    """Whether this is the token, in a time that does not tell how much of it is right."""
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Context in which viser prints no banner."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


Action = Callable[[], object]
T = TypeVar("T")


class Worker:
    """One thread that does all the work of a page, in order; it ends with the program, or with :meth:`close`.

    What the browser asks for arrives on other threads, and often faster than it can be done. It is left here under a
    name; what is left twice under one name before its turn is done once, the latest. So nothing needs a lock, nothing
    piles up, and a page that is closed is closed.

    Args:
        name: of the thread.
        report: what to do with the message of an error that a user can cause; others are printed with a traceback.
    """

    def __init__(self, name: str, report: Callable[[str], None]) -> None:
        self._wake = threading.Condition()
        self._waiting: dict[Hashable, Action] = {}
        self._tick: Action | None = None
        self._period = 0.0
        self._due = 0.0
        self._closed = False
        self._report = report
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, key: Hashable, action: Action) -> None:
        """Do this soon; instead of what waits under the same key, if something does."""
        with self._wake:
            self._waiting.pop(key, None)  # its turn is that of the latest: a drag that begins after another has ended
            self._waiting[key] = action
            self._wake.notify()

    def every(self, period: float, tick: Action | None) -> None:
        """Do this each so many seconds, from now on; None ends it."""
        with self._wake:
            self._tick, self._period, self._due = tick, period, time.monotonic()
            self._wake.notify()

    def call(self, action: Callable[[], T]) -> T:
        """Do this in its turn, and wait for what comes of it."""
        if threading.current_thread() is self._thread:
            return action()
        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(action())
            except BaseException as error:  # handed to the caller
                outcome.set_exception(error)

        self.post(object(), run)
        while not wait([outcome], 0.1).done:
            if not self._thread.is_alive():
                raise LinkwiseError("this page is closed")
        return outcome.result()

    @property
    def is_alive(self) -> bool:
        """Whether it still works."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End after what is being done; what waits is dropped."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10.0)

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._closed and not self._waiting:
                    left = None if self._tick is None else self._due - time.monotonic()
                    if left is not None and left <= 0.0:
                        break
                    self._wake.wait(left)
                if self._closed:
                    return
                actions, self._waiting = list(self._waiting.values()), {}
                if self._tick is not None and time.monotonic() >= self._due:
                    actions.append(self._tick)
                    self._due = max(self._due + self._period, time.monotonic())  # late ticks are not made up for
            for action in actions:
                self._do(action)

    def _do(self, action: Action) -> None:
        try:
            action()
        except LinkwiseError as error:
            self._report(str(error))
        except Exception:  # a defect of ours must not end the page in silence
            traceback.print_exc(file=sys.stderr)
            self._report("something went wrong; the terminal has the details")


_STYLE = """<style>
button.mantine-Button-root {--button-justify: flex-start}
.mantine-Slider-markLabel {margin-top: 0.35em}
</style>"""
"""Labels of buttons begin at the left: those of the tree are moved in from there; limits stand below the handles."""

FRAME = 1.0 / 30.0
"""Seconds between pictures of what moves."""
LINES = (
    "#2860a0", "#e4783c", "#46965a", "#965abe", "#c03040", "#8a6d3b", "#20908d", "#7f7f7f", "#b5b52a", "#e377c2",
    "#1a1a1a", "#5fa8ff",
)  # fmt: skip
"""Colours of the lines of plots."""


class Page:
    """A page in the browser. It lives until :meth:`close`, or until the program ends.

    Args:
        label: the title of its panel.
        port: see :func:`linkwise.viz.page.start_server`.
        open: whether to open it in the browser; None: where there is a screen.
    """

    def __init__(self, label: str, port: int | None = None, open: bool | None = None) -> None:
        self.server = start_server(label, port)
        self.worker = Worker(f"linkwise page {self.server.get_port()}", self.say)
        self._open = open
        self.stage = PageStage(self.server)
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
        """Show a message on the page."""
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

    def connect(self, attach: Callable[[Happened], object], key: Hashable, action: Action) -> None:
        """Have the worker do something after an event; `attach` takes what is called then (``button.on_click``)."""

        async def happened(_: object) -> None:
            self.worker.post(key, action)

        attach(happened)

    def keep_in_view(self, figure: ModelFigure) -> None:
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
