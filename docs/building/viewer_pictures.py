"""The pictures of the guide to the viewer, shot anew: ``python -m docs.building.viewer_pictures [name ...]``.

It needs a Chromium, Playwright and the files of example-robot-data, as the tests of pages do.
"""

from __future__ import annotations

import io
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import linkwise as lw
from linkwise import samples
from tests.files.recording import robot_files
from tests.viz.browser import ARGUMENTS, Tab

FOLDER = Path(__file__).parents[1] / "guide" / "viewer"
ROBOTS = {
    "panda": "panda.urdf", "talos": "talos_full_v2.urdf", "g1": "g1_29dof_rev_1_0.urdf", "ur5": "ur5_robot.urdf",
    "tiago": "tiago.urdf", "hyq": "hyq_no_sensors.urdf", "kinova": "kinova.urdf", "so101": "so101.urdf",
    "human": "human.urdf", "anymal": "anymal.urdf", "allegro": "allegro_right_hand.urdf",
}  # fmt: skip
FLOATING = ("talos", "g1", "hyq", "anymal", "human")


def robot(name: str) -> lw.Model:
    """A robot of example-robot-data."""
    path = next(file for file in robot_files(".urdf") if file.name == ROBOTS[name])
    return lw.load(path, floating=name in FLOATING)


def resting(model: lw.Model) -> Any:
    """Its neutral configuration, within limits."""
    return np.clip(model.neutral(), model.limits.lower, model.limits.upper)


def save(pixels: bytes, name: str, size: tuple[int, int] | None = None) -> None:
    """Write a picture as a small PNG."""
    image = Image.open(io.BytesIO(pixels)).convert("RGB")
    if size is not None:
        image = image.resize(size, Image.Resampling.LANCZOS)
    image.quantize(160).save(FOLDER / f"{name}.png", optimize=True)
    print(name, (FOLDER / f"{name}.png").stat().st_size)


def canvas_of(tab: Tab) -> bytes:
    """The scene without the panel."""
    box = tab.page.locator("canvas").first.bounding_box()
    return bytes(tab.page.screenshot(clip=box))


def shoot_robot(tab: Tab, name: str) -> None:
    """One robot, standing."""
    model = robot(name)
    with lw.view(model, port=0, open=False) as page:
        tab.open(page.url, page.figure.name_of(len(model.bodies) - 1))
        tab.page.wait_for_timeout(6000)
        save(canvas_of(tab), name, (285, 200))


def shoot_stewart(tab: Tab) -> None:
    """Joint axes, frames, closures."""
    with lw.view(samples.stewart_platform(), port=0, open=False) as page:
        tab.open(page.url, page.figure.name_of(1))
        tab.choose("Show")
        for title in ("joint axes", "body frames", "closures"):
            tab.page.get_by_label(title, exact=True).check()
        tab.page.mouse.move(100, 100)
        tab.page.wait_for_timeout(3000)
        save(tab.page.screenshot(), "stewart")


def shoot_handle(tab: Tab) -> None:
    """A handle on a link."""
    model = robot("panda")
    with lw.view(model, resting(model), port=0, open=False) as page:
        tab.open(page.url, page.figure.name_of(5))
        page.worker.call(lambda: page.tree.select(5))
        tab.page.wait_for_timeout(5000)
        save(tab.page.screenshot(), "handle")


def shoot_live(tab: Tab) -> None:
    """A humanoid that falls, with levers and plots."""
    import gymnasium

    model = lw.load(Path(gymnasium.__file__).parent / "envs/mujoco/assets/humanoid.xml")
    q = resting(model)
    q[4:7] = (0.0, 0.0, 1.4)
    tab.page.set_viewport_size({"width": 900, "height": 640})
    with lw.view(model, q, port=0, open=False) as page:
        tab.open(page.url, page.figure.name_of(3))
        tab.choose("Live")
        tab.page.wait_for_timeout(6000)  # plots have their width a while after the tab is opened
        for name in ("q right_knee", "q left_knee", "u right_knee", "energy"):
            page.worker.call(lambda name=name: page.live.toggle_signal(name))
        page.worker.call(lambda: (page.run.u.__setitem__(6, 0.3), page.live.levers[6].__setattr__("value", 0.3)))
        for _ in range(20):
            page.worker.call(lambda: page.live._advance(0.02))
        tab.page.wait_for_timeout(12000)
        save(tab.page.screenshot(), "live", (720, 512))


def shoot_flexible(tab: Tab) -> None:
    """Bending, ten times what it is."""
    model = samples.flexible_arm()
    motion = lw.simulate(model, model.neutral(), duration=1.0, method="rodas4")
    with motion.view(port=0, open=False) as page:
        tab.open(page.url, f"{page.figures[0].name_of(1)}/bent0")
        tab.choose("Show")
        page.shown.exaggeration.value = 10.0
        page.worker.call(lambda: page.shown._exaggerate(10.0))
        page.seek(0.45)
        tab.page.wait_for_timeout(3000)
        save(tab.page.screenshot(), "flexible")


def shoot_ghosts(tab: Tab) -> None:
    """States of a batch."""
    model = robot("panda")
    rng = np.random.default_rng(0)
    start = 0.5 * (model.limits.lower + model.limits.upper)
    q = np.clip(start + 0.3 * rng.normal(size=(40, 2, model.nq)), model.limits.lower, model.limits.upper)
    motion = lw.Trajectory([0.0, 1.0], q, np.zeros((40, 2, model.nv)), model=model)
    with motion.view(port=0, open=False) as page:
        tab.open(page.url, "/world/ghosts/8")
        tab.page.wait_for_timeout(6000)
        save(tab.page.screenshot(), "ghosts")


def main(wanted: list[str]) -> None:
    """Shoot those that are wanted, or all."""
    warnings.simplefilter("ignore")
    shots: dict[str, Callable[[Tab], None]] = {
        "stewart": shoot_stewart, "handle": shoot_handle, "live": shoot_live, "flexible": shoot_flexible,
        "ghosts": shoot_ghosts, **{name: lambda tab, name=name: shoot_robot(tab, name) for name in ROBOTS},
    }  # fmt: skip
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), headless=True, args=ARGUMENTS)
        for name in wanted or shots:
            context = browser.new_context(viewport={"width": 720, "height": 432}, reduced_motion="reduce")
            shots[name](Tab(context.new_page()))
            context.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
