"""The server: loopback only, nothing but the page, no strangers, a clean end."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest

from linkwise import ModelBuilder, Revolute, samples, transform
from linkwise.errors import InputError, MissingExtraError
from linkwise.viz.page import FRAME, Worker, address, is_running, start_server, stop_server
from linkwise.viz.viewer import MOST_SLIDERS, view
from tests.machine import PATIENCE

viser = pytest.importorskip("viser")


@pytest.fixture(scope="module")
def server():
    made = start_server("test", 0)
    yield made
    stop_server(made)


def test_it_binds_to_loopback_only(server):
    port = server.get_port()
    assert address(server).startswith(f"http://127.0.0.1:{port}/")
    with urllib.request.urlopen(address(server)) as page:
        assert page.status == 200
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)} - {"127.0.0.1", "::1"}
    for host in others:
        with pytest.raises(OSError), socket.create_connection((host, port), timeout=1):
            pass


def places(server):
    """The address without its token, and the token."""
    start, token, _ = address(server).rsplit("/", 2)
    return start, token


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/../../__init__.py", "/%2e%2e/%2e%2e/__init__.py", "/..\\..\\x", "//etc/passwd", "/none", "", "/"],
)
def test_it_serves_no_other_files(server, path):
    start, token = places(server)
    for url in (start + path, f"{start}/{token}{path}"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url)
        assert caught.value.code == 404


def test_it_serves_no_page_without_the_token(server):
    start, token = places(server)
    assert len(token) >= 22
    wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
    for url in (
        f"{start}/index.html",
        f"{start}/{wrong}/index.html",
        f"{start}/{token[:-1]}/index.html",
        f"{start}/é/",
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.parse.quote(url, safe=":/"))
        assert caught.value.code == 404
    with urllib.request.urlopen(address(server)) as page:
        assert page.headers["Content-Type"].startswith("text/html")


def test_every_server_has_its_own_token(server):
    other = start_server("test", 0)
    try:
        assert places(other)[1] != places(server)[1]
    finally:
        stop_server(other)


def connected(url, origin):
    from websockets.sync.client import connect

    url = url.replace("http", "ws")
    return connect(url, origin=origin, subprotocols=[f"viser-v{viser.__version__}"], max_size=None)


@pytest.fixture
def knob(server):
    """A slider of the page, and what moves it."""
    import msgspec

    made = server.gui.add_slider("knob", 0.0, 1.0, 0.1, 0.0)
    made.message = msgspec.msgpack.encode(
        {"type": "GuiUpdateMessage", "uuid": made._impl.uuid, "updates": {"value": 0.5}}
    )
    yield made
    made.remove()


@pytest.mark.parametrize("origin", ["own", None])
def test_its_own_page_is_answered_and_heard(server, knob, origin):
    start, _ = places(server)
    with connected(address(server), start if origin else None) as socket_:
        socket_.send(knob.message)
        assert socket_.recv(timeout=10)
        deadline = time.monotonic() + 20
        while knob.value != 0.5 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert knob.value == 0.5


@pytest.mark.parametrize(
    ("origin", "path"),
    [
        ("http://evil.example", "right"),
        ("http://localhost:1", ""),
        ("http://localhost:1", "/index.html"),
        ("http://127.0.0.1:1", "wrong"),
        ("own", ""),
        (None, ""),
        (None, "wrong"),
    ],
)
def test_pages_of_others_are_neither_answered_nor_heard(server, knob, origin, path):
    """Also not with what they send at once, before the server has closed the connection."""
    from websockets.exceptions import ConnectionClosed

    start, token = places(server)
    url = {"right": address(server), "wrong": f"{start}/{token[::-1]}/index.html"}.get(path, start + path)
    with connected(url, start if origin == "own" else origin) as socket_:
        with contextlib.suppress(ConnectionClosed):
            socket_.send(knob.message)
        with pytest.raises(ConnectionClosed) as caught:
            socket_.recv(timeout=10)
    assert caught.value.rcvd.code == 1008
    assert knob.value == 0.0


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


@pytest.mark.parametrize("port", [70000, -1, "8080", 80.5])
def test_not_a_port(port):
    with pytest.raises(InputError, match="not a port"):
        start_server("test", port)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"q": [0.0, np.nan, 0.0]}, r"q is not finite\n.*q\[1\] = nan"),
        ({"q": [0.0, 0.0]}, r"q has another shape\n.*\(2,\)"),
        ({"q": "abc"}, "q is not numbers"),
        ({"v": [np.inf, 0.0, 0.0]}, r"v is not finite\n.*v\[0\] = inf"),
        ({"v": [1.0]}, "v has another shape"),
        ({"control": 3}, "control is neither"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_there_is_a_server(state, message, monkeypatch):
    monkeypatch.setattr("linkwise.viz.page.start_server", lambda *_: pytest.fail("a server was started"))
    with pytest.raises(InputError, match=message):
        view(samples.planar_arm(), port=0, open=False, **state)


def test_without_the_extra_the_message_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(MissingExtraError, match="viz"):
        view(samples.planar_arm(), port=0, open=False)


def test_bodies_without_shapes_or_mass_are_shown():
    b = ModelBuilder("bare")
    b.add_body("nothing", joint=Revolute(axis=(0, 0, 1)), mass=0.0)
    b.add_body("something", parent="nothing", joint=Revolute(axis=(0, 1, 0)), mass=1.0, inertia=np.eye(3))
    for model in (ModelBuilder("empty").build(), b.build()):
        with view(model, port=0, open=False) as page:
            assert np.isfinite(page.figure.bounds).all()


def test_a_long_chain_can_be_shown_dragged_and_run():
    """Hundreds of bodies: one surface each, a hundred sliders, and nothing that takes minutes to compile."""
    b = ModelBuilder("chain")
    for k in range(300):
        b.add_body(f"link{k}", parent=f"link{k - 1}" if k else "world", joint=Revolute(axis=(0, 1, 0)),
                   placement=transform(xyz=(0.05 * bool(k), 0, 0)), mass=0.1, com=(0.025, 0, 0),
                   inertia=1e-4 * np.eye(3))  # fmt: skip
    model = b.build()
    with view(model, np.full(300, 0.005), port=0, open=False) as page:
        assert len(page.sliders) == MOST_SLIDERS and all(len(page.figure.surfaces(k)) == 1 for k in range(300))
        target = page.figure.poses[299, :3, 3] + (-0.2, 0.0, 0.1)
        page.worker.call(lambda: page.reach(299, np.zeros(3), target, page.figure.poses[299, :3, :3]))
        np.testing.assert_allclose(page.figure.poses[299, :3, 3], target, atol=1e-3)
        page.worker.call(page.live.step)
        assert page.run.t == pytest.approx(FRAME) and page.moment.v.any()


def test_a_page_ends_when_it_is_closed():
    before = {thread.name for thread in threading.enumerate()}
    with view(samples.planar_arm(), port=0, open=False) as page:
        assert page.is_open and page.url in repr(page) and "iframe" in page._repr_html_()
    assert not page.is_open and not is_running(page.server) and "closed" in repr(page)
    page.close()  # twice does no harm
    left = {thread.name for thread in threading.enumerate()} - before
    assert not any("linkwise" in name for name in left)


def test_a_page_ends_with_the_program():
    code = "import linkwise as lw\nfrom linkwise import samples\n"
    code += "page = lw.view(samples.planar_arm(), port=0, open=False)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120 * PATIENCE)
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
