"""The server of a page: on this machine only, with nothing to find but the page, ending with the program."""

from __future__ import annotations

import atexit
import contextlib
import io
import operator
import socket
import sys
from collections.abc import Iterator
from typing import Any, SupportsIndex
from urllib.parse import urlsplit

from linkwise.errors import InputError, require_extra

HOST = "127.0.0.1"
PORT = 8080
_OWN = frozenset((HOST, "localhost", "::1"))


def start_server(label: str, port: int | None = None) -> Any:
    """A ``viser`` server on the loopback interface.

    Where the port is in use the next free one is taken, and a line on standard error says so. Pages of other sites
    that the same browser shows cannot talk to it, and it never asks the outside for a public address.

    Args:
        label: the title of the page's panel.
        port: to begin with, 8080 if not given; 0 for any free one.
    """
    viser = require_extra("viser", "viz")
    wanted = PORT if port is None else port
    if not isinstance(wanted, SupportsIndex) or not 0 <= operator.index(wanted) <= 65535:
        raise InputError("this is not a port", got=repr(port), allowed="0 to 65535, or None")
    free = _free_port(operator.index(wanted))
    with _quiet():
        server = viser.ViserServer(host=HOST, port=free, label=label, verbose=False)
    if wanted and server.get_port() != wanted:
        print(f"linkwise: port {wanted} is in use; the page is on {server.get_port()}", file=sys.stderr)
    _refuse_strangers(server)
    server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(40, 96, 160))
    _RUNNING.append(server)
    atexit.unregister(_stop_all)  # last registered, first called: before viser's own, which prints
    atexit.register(_stop_all)
    return server


def stop_server(server: Any) -> None:
    """End a server and its threads; safe to call twice."""
    if server in _RUNNING:
        _RUNNING.remove(server)
        with _quiet(), contextlib.suppress(RuntimeError):
            server.stop()


_RUNNING: list[Any] = []


def _stop_all() -> None:
    for server in tuple(_RUNNING):
        stop_server(server)


def address(server: Any) -> str:
    """Where to point the browser."""
    return f"http://{HOST}:{server.get_port()}"


def is_running(server: Any) -> bool:
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


def _refuse_strangers(server: Any) -> None:
    """Close connections that a page of another site opened, and never open a tunnel to the outside."""
    from viser._messages import ShareUrlDisconnect, ShareUrlRequest

    websockets = server._websock_server
    for message in (ShareUrlRequest, ShareUrlDisconnect):
        websockets._incoming_handlers.pop(message, None)

    async def check(client: Any) -> None:
        connection = websockets._live_connections.get(client.client_id)
        request = None if connection is None else connection.request
        origin = None if request is None else request.headers.get("Origin")
        if origin is not None and urlsplit(origin).hostname not in _OWN:
            await connection.close(1008, "pages of other sites are not answered")

    websockets._client_connect_cb.insert(0, check)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the banner that viser prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
