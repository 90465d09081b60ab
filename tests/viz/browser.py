"""What the tests of pages ask a browser."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

ARGUMENTS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--use-gl=angle", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--force-prefers-reduced-motion",
]  # fmt: skip
_PATIENCE = 90_000
"""ms: busy machines draw slowly."""

_VISERS_OWN = "Unable to preventDefault inside passive event listener"
"""What Chromium says of viser's handling of a drag that begins with a key held; nothing comes of it."""

_NO_NOTICES = ".mantine-Notifications-root { display: none }"
"""The notice that pictures are drawn in software would lie between the mouse and the scene."""

_SCREEN = """([name, x0, y0, z0]) => {
    const m = window.__viserMutable, o = m.nodeRefFromName[name], e = m.canvas.getBoundingClientRect();
    o.updateWorldMatrix(true, false); m.camera.updateMatrixWorld();
    const mul = (a, x) => [0, 1, 2, 3].map(i => a[i] * x[0] + a[4 + i] * x[1] + a[8 + i] * x[2] + a[12 + i] * x[3]);
    const point = mul(o.matrixWorld.elements, [x0, y0, z0, 1]);
    const x = mul(m.camera.projectionMatrix.elements, mul(m.camera.matrixWorldInverse.elements, point));
    return [e.left + (x[0] / x[3] + 1) / 2 * e.width, e.top + (1 - x[1] / x[3]) / 2 * e.height];
}"""


class Tab:
    """A page of the browser."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(_PATIENCE)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _heard(self, message: Any) -> None:
        if message.type == "error" and _VISERS_OWN not in message.text:
            self.errors.append(message.text)

    def open(self, url: str, node: str) -> None:
        """Go to a page and wait until a node of its scene is there."""
        self.page.goto(url)
        self.until("(name) => window.__viserMutable?.nodeRefFromName?.[name] != null", node)
        self.page.add_style_tag(content=_NO_NOTICES)

    def until(self, predicate: str, argument: Any = None) -> None:
        """Wait until a function of the page is true; by a timer, since headless browsers may hold back pictures."""
        self.page.wait_for_function(predicate, arg=argument, polling=100)

    def pose(self, name: str) -> np.ndarray:
        """Position (3) and quaternion (4) of a node, as the browser has them."""
        found = self.page.evaluate("(n) => window.__viserMutable.nodePoseData[n]", name)
        return np.array([*found["position"], *found["wxyz"]])

    def wait_for_pose(self, name: str, position: np.ndarray, tolerance: float = 1e-5) -> None:
        """Wait until a node is at a place."""
        self.until(
            """([n, x, tol]) => { const p = window.__viserMutable.nodePoseData[n]?.position;
                return p && Math.max(...p.map((a, i) => Math.abs(a - x[i]))) < tol; }""",
            [name, [float(x) for x in position], tolerance],
        )

    def moves_from(self, name: str, position: np.ndarray, by: float = 0.02) -> None:
        """Wait until a node has left a place."""
        self.until(
            """([n, x, by]) => Math.max(...window.__viserMutable.nodePoseData[n].position.map(
                (a, i) => Math.abs(a - x[i]))) > by""",
            [name, [float(x) for x in position], by],
        )

    def while_not(self, condition: Callable[[], Any]) -> None:
        """Let the browser go on until something is true here."""
        for _ in range(_PATIENCE // 50):
            if condition():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("what was waited for did not come")

    def shows(self, figure: Any, poses: np.ndarray) -> None:
        """Wait until all bodies of a figure are where the model says, and check how they are turned."""
        for k, X in enumerate(poses):
            self.wait_for_pose(figure.name_of(k), X[:3, 3])
        for k, X in enumerate(poses):
            w, x, y, z = self.pose(figure.name_of(k))[3:]
            R = np.array(
                [
                    [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                    [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                    [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
                ]
            )
            np.testing.assert_allclose(R, X[:3, :3], atol=1e-5)

    def choose(self, tab: str) -> None:
        """Open a tab of the panel."""
        self.page.get_by_role("tab", name=tab).click()

    def press(self, button: str) -> None:
        """Click a button of the panel."""
        self.page.get_by_role("button", name=button, exact=True).click()

    def type_into(self, label: str, value: float) -> None:
        """Write a number beside a slider."""
        row = self.page.get_by_text(label, exact=True)
        box = row.locator("xpath=ancestor::*[.//input[@inputmode]][1]//input[@inputmode]").first
        box.fill(f"{value:g}")
        box.press("Enter")

    def on_screen(self, name: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> tuple[float, float]:
        """Where a point of a node's frame is on the screen, in pixels, once neither it nor the camera moves."""
        before = (np.nan, np.nan)
        for _ in range(_PATIENCE // 200):
            x, y = self.page.evaluate(_SCREEN, [name, *(float(each) for each in point)])
            if abs(x - before[0]) < 0.1 and abs(y - before[1]) < 0.1:
                return float(x), float(y)
            before = (x, y)
            self.page.wait_for_timeout(200)
        raise AssertionError(f"{name} does not come to rest on the screen")

    @contextmanager
    def dragging(
        self, start: tuple[float, float], by: tuple[float, float], key: str | None = None
    ) -> Iterator[Callable[[Callable[[], Any]], None]]:
        """The mouse, pressed at a place of the screen and moved by so many pixels; it lets go at the end.

        Gives a function that waits until something is true while the hand trembles: a slow browser makes one movement
        of many, and then has seen the mouse begin to move, but not yet where to.
        """
        mouse, keys = self.page.mouse, self.page.keyboard
        trembling = itertools.count()

        def until(condition: Callable[[], Any]) -> None:
            def moved() -> Any:
                mouse.move(start[0] + by[0] + next(trembling) % 2, start[1] + by[1])
                return condition()

            self.while_not(moved)

        mouse.move(*start)
        if key is not None:
            keys.down(key)
        mouse.down()
        for k in range(1, 9):
            mouse.move(start[0] + by[0] * k / 8, start[1] + by[1] * k / 8)
        try:
            yield until
        finally:
            mouse.up()
            if key is not None:
                keys.up(key)

    @property
    def draw_calls(self) -> int:
        """Of the last picture."""
        return int(self.page.evaluate("() => window.__viserTestpoints.rendererInfo.render.calls"))
