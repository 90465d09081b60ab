"""The controls of a running simulation: run and pause, levers for actuators, plots of chosen signals, recordings."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import LinkwiseError
from linkwise.viz.live import LiveRun, methods_of
from linkwise.viz.page import FRAME, LINES

if TYPE_CHECKING:
    import viser

    from linkwise.viz.viewer import Viewer


MOST_LEVERS = 100
"""Most sliders for controls."""
_LONGEST = 0.1
"""Seconds that one picture may simulate: where the machine is too slow, time goes slower."""
_PLOTS = 0.25
"""Seconds between new plots."""


_LINES = LINES[:8]
"""Colours of the lines of the plot; so many signals at most."""
_NONE = "…"
"""Choice that is none."""


def _scales(span: tuple[float, float]) -> dict[str, dict[str, object]]:
    """Scales of a plot whose values have this range."""
    return {"x": {"time": False, "auto": True}, "y": {"range": span}}


class LivePanel:
    """Start, pause, single steps, speed, reset, gravity, integrator; levers; signals over time; recordings."""

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
        self.recorder = gui.add_button("Record", icon="player-record", hint="Keep the motion from now on.")
        self.speed = gui.add_slider("speed", 0.1, 4.0, 0.1, 1.0, hint="Simulated seconds for each second.")
        self.gravity = gui.add_checkbox("gravity", True)
        self.method = gui.add_dropdown("integrator", self._methods(), hint="How the motion is computed.")
        gui.add_markdown("*Drag a body with Ctrl held to pull it.*")
        self._plots()
        self._levers()
        self.page.connect(self.start.on_click, "run", self.toggle)
        self.page.connect(step.on_click, "step", self.step)
        self.page.connect(reset.on_click, "reset", self.reset)
        self.page.connect(self.recorder.on_click, "record", self.record)
        self.page.connect(self.gravity.on_update, "gravity", self._set_gravity)
        self.page.connect(self.method.on_update, "method", self._set_method)

    def _levers(self) -> None:
        """A slider for each actuator, with its name and range."""
        self.levers: list[viser.GuiSliderHandle[float]] = []
        if not self.run.levers:
            return
        gui = self.page.server.gui
        with gui.add_folder("Controls"):
            still = gui.add_button("Let go", hint="All controls back to where they do nothing.")
            for lever in self.run.levers[:MOST_LEVERS]:
                step = max((lever.high - lever.low) / 1000.0, 1e-9)
                slider = gui.add_slider(lever.name, lever.low, lever.high, step, lever.start)
                self.page.connect(slider.on_update, ("lever", lever.name), self._set_levers)
                self.levers.append(slider)
        self.page.connect(still.on_click, "let go", self._let_go)

    def _set_levers(self) -> None:
        self.run.u[: len(self.levers)] = [slider.value for slider in self.levers]

    def _let_go(self) -> None:
        for slider, lever in zip(self.levers, self.run.levers, strict=False):
            slider.value = lever.start
        self._set_levers()

    def _plots(self) -> None:
        """One plot, and what to choose for it."""
        gui = self.page.server.gui
        self.plotted = ["energy"]
        with gui.add_folder("Plot"):
            more = gui.add_dropdown(
                "signal", (_NONE, *self.run.signal_names), hint="Adds it to the plot, or takes it away."
            )
            clear = gui.add_button("Energy only", icon="eraser")
            data, span = self._lines()
            self.plot = gui.add_uplot(
                data,
                ({"label": "t"}, {"label": "energy", "stroke": _LINES[0], "width": 1.5, "scale": "y"}),
                scales=_scales(span),
                axes=({}, {"size": 62}),
                padding=(10, 8, 0, 0),
                aspect=1.8,
            )

        def chosen() -> None:
            name, more.value = str(more.value), _NONE
            self.toggle_signal(name)

        self.page.connect(more.on_update, "signal", chosen)
        self.page.connect(clear.on_click, "energy only", self.plot_energy)

    def toggle_signal(self, name: str) -> None:
        """Plot a signal too, instead of the oldest where there are many; or no longer, if it is not the only one."""
        if name not in self.run.signal_names:
            return
        if name not in self.plotted:
            self.plotted = [*self.plotted, name][-len(_LINES) :]
        elif len(self.plotted) > 1:
            self.plotted.remove(name)
        self._draw_plot()

    def plot_energy(self) -> None:
        """Plot the energy only."""
        self.plotted = ["energy"]
        self._draw_plot()

    def _draw_plot(self) -> None:
        """The plot with the signals that are chosen, as they are now."""
        data, span = self._lines()
        lines = tuple(
            {"label": name, "stroke": colour, "width": 1.5, "scale": "y"}
            for name, colour in zip(self.plotted, _LINES, strict=False)
        )
        with self.page.server.atomic():
            self.plot.series = ({"label": "t"}, *lines)
            self.plot.scales = _scales(span)
            self.plot.data = data

    def _lines(self) -> tuple[tuple[Array, ...], tuple[float, float]]:
        """Data of the plot, and the range of its values."""
        if len(self.run.history) < 2:
            return (np.array([0.0, 1.0]), *np.zeros((len(self.plotted), 2))), (-1.0, 1.0)
        t, table = self.run.signals(self.plotted)
        table = np.nan_to_num(table)
        low, high = float(table.min()), float(table.max())
        margin = max(0.05 * (high - low), 1e-3 * max(abs(low), abs(high)), 1e-3)
        return (t, *table.T), (low - margin, high + margin)

    def record(self) -> None:
        """Begin or end a recording; it is ``page.recording``, and what "Save page" then saves."""
        on = not self.run.recording
        self.run.record(on)
        self.recorder.label = "Stop recording" if on else "Record"
        motion = self.run.recorded_motion
        if not on and motion is not None:
            self.page.say(f"Recorded {motion.t[-1] - motion.t[0]:.2f} s: page.recording, or Save page.")

    def _methods(self) -> tuple[str, ...]:
        known = methods_of(self.page.model)
        self.run.method = known[0]
        return known

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
        self.recorder.label = "Record"
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
        data, span = self._lines()
        self.plot.scales, self.plot.data = _scales(span), data
