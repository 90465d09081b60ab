"""The server: loopback only, nothing but the page, no strangers, a clean end."""

import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from linkwise import models
from linkwise.errors import InputError
from linkwise.viz.server import address, is_running, start_server, stop_server
from linkwise.viz.viewer import view
from linkwise.viz.worker import Worker

viser = pytest.importorskip("viser")


@pytest.fixture(scope="module")
def server():
    made = start_server("test", 0)
    yield made
    stop_server(made)


def test_it_binds_to_loopback_only(server):
    port = server.get_port()
    assert address(server) == f"http://127.0.0.1:{port}"
    with urllib.request.urlopen(address(server)) as page:
        assert page.status == 200
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)} - {"127.0.0.1", "::1"}
    for host in others:
        with pytest.raises(OSError), socket.create_connection((host, port), timeout=1):
            pass


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/../../__init__.py", "/%2e%2e/%2e%2e/__init__.py", "/..\\..\\x", "//etc/passwd"]
)
def test_it_serves_no_other_files(server, path):
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(address(server) + path)
    assert caught.value.code == 404


@pytest.mark.parametrize(
    ("origin", "welcome"), [("http://evil.example", False), ("http://localhost:1", True), (None, True)]
)
def test_pages_of_other_sites_are_not_answered(server, origin, welcome):
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    url = address(server).replace("http", "ws")
    with connect(url, origin=origin, subprotocols=[f"viser-v{viser.__version__}"], max_size=None) as socket_:
        if welcome:
            assert socket_.recv(timeout=10)
        else:
            with pytest.raises(ConnectionClosed):
                while True:
                    socket_.recv(timeout=10)


def test_nothing_can_ask_for_a_public_address(server):
    from viser._messages import ShareUrlRequest

    assert ShareUrlRequest not in server._websock_server._incoming_handlers


def test_a_port_in_use_picks_another_and_says_so(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        made = start_server("test", port)
        stop_server(made)
    assert made.get_port() != port
    out, err = capsys.readouterr()
    assert f"port {port} is in use; the page is on {made.get_port()}" in err and out == ""


def test_not_a_port():
    with pytest.raises(InputError, match="not a port"):
        start_server("test", 70000)


def test_a_page_ends_when_it_is_closed():
    before = {thread.name for thread in threading.enumerate()}
    with view(models.planar_arm(), port=0, open=False) as page:
        assert page.is_open and page.url in repr(page) and "iframe" in page._repr_html_()
    assert not page.is_open and not is_running(page.server) and "closed" in repr(page)
    page.close()  # twice does no harm
    left = {thread.name for thread in threading.enumerate()} - before
    assert not any("linkwise" in name for name in left)


def test_a_page_ends_with_the_program():
    code = (
        "import linkwise as lw\nfrom linkwise import models\npage = lw.view(models.planar_arm(), port=0, open=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "", done.stderr
    assert done.stderr.startswith("linkwise: http://127.0.0.1:")


def test_the_worker_does_the_latest_and_goes_on_after_errors():
    said, done = [], []
    worker = Worker("test", said.append)
    gate = threading.Event()
    worker.post("wait", gate.wait)
    for k in range(100):
        worker.post("same", lambda k=k: done.append(k))
    worker.post("bad", lambda: (_ for _ in ()).throw(InputError("no")))
    gate.set()
    assert worker.call(lambda: 7) == 7
    assert done == [99] and said == ["no"]
    with pytest.raises(InputError):
        worker.call(lambda: (_ for _ in ()).throw(InputError("again")))
    ticks = []
    ticked = threading.Event()
    worker.every(0.001, lambda: (ticks.append(1), len(ticks) > 4 and ticked.set()))
    assert ticked.wait(30)
    worker.every(0.0, None)
    worker.close()
    assert not worker.is_alive
