"""Many steps of a program: what happens between one and the next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rollout:
    """What happens between two steps.

    Args:
        feedback: outputs that become inputs of the next step: output number to input number.
        sequences: inputs that have a row for each step, ``(steps, count, size)``, or ``(steps, size)`` of kind "one".
        record: whether outputs are stored after each step, ``(steps, count, size)``, or after the last only.
    """

    feedback: tuple[tuple[int, int], ...] = ()
    sequences: tuple[int, ...] = ()
    record: bool = False
