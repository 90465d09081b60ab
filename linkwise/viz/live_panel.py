"""The controls of a running simulation, and its plots."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import LinkwiseError
from linkwise.viz.live import LiveRun, methods_of
from linkwise.viz.page import FRAME

if TYPE_CHECKING:
    from linkwise.viz.viewer import Viewer


_LONGEST = 0.1
"""Seconds that one picture may simulate: where the machine is too slow, time goes slower."""
_PLOTS = 0.25
"""Seconds between new plots."""


class LivePanel:
    """Start, pause, single steps, speed, reset, gravity, integrator; real-time factor, energy, closure error."""

    def __init__(self, page: Viewer, run: LiveRun) -> None:
        self.page, self.run = page, run
        self.running = False
        self._last = 0.0
        self._plotted = 0.0
        gui = page.server.gui
        self.status = gui.add_markdown("Paused at 0 s.")
        self.start = gui.add_button("Run", icon="player-play")
        step = gui.add_button("Step", icon="player-track-next", hint="One picture further.")
        reset = gui.add_button("Reset", icon="rotate-2", hint="Back to where it started.")
        self.speed = gui.add_slider("speed", 0.1, 4.0, 0.1, 1.0, hint="Simulated seconds for each second.")
        self.gravity = gui.add_checkbox("gravity", True)
        self.method = gui.add_dropdown("integrator", self._methods(), hint="How the motion is computed.")
        gui.add_markdown("*Drag a body with Ctrl held to pull it.*")
        self.energy = self._plot("energy [J]")
        self.error = self._plot("closure error") if page.model.closures else None
        self._connect(self.start.on_click, "run", self.toggle)
        self._connect(step.on_click, "step", self.step)
        self._connect(reset.on_click, "reset", self.reset)
        self._connect(self.gravity.on_update, "gravity", self._set_gravity)
        self._connect(self.method.on_update, "method", self._set_method)

    def _methods(self) -> tuple[str, ...]:
        known = methods_of(self.page.model)
        self.run.method = known[0]
        return known

    def _connect(self, attach: Any, key: str, action: Any) -> None:
        async def changed(_: Any) -> None:
            self.page.worker.post(key, action)

        attach(changed)

    def _plot(self, title: str) -> Any:
        zero = np.zeros(2)
        return self.page.server.gui.add_uplot(
            (np.array([0.0, 1.0]), zero),
            ({"label": "t"}, {"label": title, "stroke": "#2860a0", "width": 1.5}),
            title=title,
            scales={"x": {"time": False, "auto": True}, "y": {"auto": True}},
            legend={"show": False},
            axes=({}, {"size": 62}),
            padding=(10, 8, 0, 0),
            aspect=2.2,
        )

    # All of this runs in the page's worker.
    def toggle(self) -> None:
        """Run, or pause."""
        self.running = not self.running
        self.start.label = "Pause" if self.running else "Run"
        self.start.icon = "player-pause" if self.running else "player-play"
        for slider in self.page.sliders:
            slider.disabled = self.running
        if self.running:
            self.status.content = "Compiling …"
            self._last = time.perf_counter()
            self.run.pace.clear()
            self.page.worker.every(FRAME, self._tick)
        else:
            self.run.hold = None
            self.page.worker.every(FRAME, None)
            self._shown()
            self.page.show_values()

    def _tick(self) -> None:
        now = time.perf_counter()
        elapsed, self._last = min(now - self._last, _LONGEST), now
        self._advance(max(elapsed, 1e-4) * float(self.speed.value))

    def _advance(self, duration: float) -> None:
        try:
            self.run.advance(duration)
        except LinkwiseError:
            if self.running:
                self.toggle()
            raise
        self.page.moment = self.run.moment
        self.page.draw(sliders=False)
        if time.perf_counter() - self._plotted > _PLOTS or not self.running:
            self._shown()
            self.page.show_values()

    def step(self) -> None:
        """One picture further."""
        if self.running:
            self.toggle()
        self._advance(FRAME)

    def reset(self) -> None:
        """Go back to the start, with the plots empty."""
        self.run.reset()
        self.page.moment = self.run.moment
        self.page.draw()
        self._shown()

    def _set_gravity(self) -> None:
        self.run.gravity = bool(self.gravity.value)

    def _set_method(self) -> None:
        self.run.method = str(self.method.value)

    def pull(self, body: int, point: Array, place: Array | None) -> None:
        """The mouse takes hold of a body, moves, or lets go (None)."""
        hold = self.run.hold
        if place is None:
            self.run.hold = None
        elif hold is None or hold.body != body:
            self.run.take(body, point, place)
        else:
            hold.place = place

    def _shown(self) -> None:
        """Numbers and plots, as they are now."""
        self._plotted = time.perf_counter()
        run = self.run
        factor = f", {run.real_time_factor:.2f} × real time" if self.running else ""
        energy = "" if run.energy is None else f", {run.energy:.5g} J"
        self.status.content = f"{'Running' if self.running else 'Paused'} at {run.t:.2f} s{factor}{energy}."
        if len(run.history) > 1:
            t, energies, errors = (np.array(column) for column in zip(*run.history, strict=True))
            self.energy.data = (t, energies)
            if self.error is not None:
                self.error.data = (t, errors)
