"""Progress of runs that take long enough to wonder: a bar on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from linkwise.errors import InputError

_PATIENCE = 0.5  # s without a bar
_WIDTH = 30


def check_progress(progress: object) -> None:
    """A choice, or a function to call."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise InputError(
            "progress is not one of the choices", got=repr(progress), allowed="True, False, None, or a function to call"
        )


class Progress:
    """Shows how far a run is.

    Args:
        show: True, False, None (only on a terminal), or a function that is called with the fraction done.
        label: what is shown before the bar.
    """

    def __init__(self, show: bool | Callable[[float], None] | None, label: str = "simulate") -> None:
        check_progress(show)
        self.call = show if callable(show) else None
        self.shown = sys.stderr.isatty() if show is None else show is True
        self.label = label
        self.start = time.perf_counter()
        self._drawn = False

    def update(self, fraction: float, text: str | None = None) -> None:
        """Say that this part of the whole is done; ``text`` instead of the time that is left."""
        if self.call is not None:
            self.call(fraction)
        elapsed = time.perf_counter() - self.start
        if not self.shown or (elapsed < _PATIENCE and not self._drawn):
            return
        fraction = min(1.0, max(0.0, fraction))
        filled = round(_WIDTH * fraction)
        if text is not None:
            left = f", {text}"
        else:
            left = f", {elapsed * (1.0 - fraction) / fraction:.0f} s left" if 0.0 < fraction < 1.0 else ""
        bar = "#" * filled + "." * (_WIDTH - filled)
        sys.stderr.write(f"\r{self.label} [{bar}] {100 * fraction:3.0f} %{left}\x1b[K")
        sys.stderr.flush()
        self._drawn = True

    def close(self) -> None:
        """Leave the line as it was."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
