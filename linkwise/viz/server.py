"""The server of a page: on this machine only, for those who know its address, ending with the program.

Every program on this machine and every page in its browsers can reach a port of it. So the address has a token, made
anew for each server: requests for pages and connections for messages are refused without it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hmac
import io
import operator
import os
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from linkwise.errors import InputError, require_extra

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
