"""The six algorithms of Jain 1993 by number: how to call each, and the operation counts that the paper prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linkwise.classics import changes_of_accelerations, changes_of_forces


@dataclass(frozen=True)
class LinearizedAlgorithm:
    """One algorithm of Jain 1993, for serial chains of hinges.

    ``function(tree, q, v, vdot, *changes)`` takes as many changes as ``changes`` names, flat sequences of n scalars.
    """

    name: str
    number: int
    what: str
    order: str
    function: Callable[..., Any]
    changes: tuple[str, ...]
    M_text: str
    A_text: str
    M: Callable[[int], float]
    A: Callable[[int], float]


LINEARIZED: tuple[LinearizedAlgorithm, ...] = (
    LinearizedAlgorithm(
        "linearized_1",
        1,
        "δT",
        "n",
        changes_of_forces.delta_torque,
        ("dq", "dv", "dvdot"),
        "320n - 159",
        "303n - 149",
        lambda n: 320 * n - 159,
        lambda n: 303 * n - 149,
    ),
    LinearizedAlgorithm(
        "linearized_2",
        2,
        "𝓜, A_D, B_D",
        "n²",
        changes_of_forces.inverse_matrices,
        (),
        "21n² + 333n - 132",
        "47n²/2 + 605n/2 - 145",
        lambda n: 21 * n**2 + 333 * n - 132,
        lambda n: 23.5 * n**2 + 302.5 * n - 145,
    ),
    LinearizedAlgorithm(
        "linearized_3",
        3,
        "δθ'', conventional",
        "n³",
        changes_of_accelerations.conventional_delta_acceleration,
        ("dq", "dv", "dtau"),
        "n³/6 + 3n²/2 + 952n/3 - 153",
        "n³/6 + n² + 1805n/6 - 147",
        lambda n: n**3 / 6 + 1.5 * n**2 + 952 * n / 3 - 153,
        lambda n: n**3 / 6 + n**2 + 1805 * n / 6 - 147,
    ),
    LinearizedAlgorithm(
        "linearized_4",
        4,
        "𝓜⁻¹, A_C, B_C, conventional",
        "n³",
        changes_of_accelerations.conventional_forward_matrices,
        (),
        "17n³/6 + 43n²/2 + 998n/3 - 132",
        "17n³/6 + 20n² + 1819n/6 - 145",
        lambda n: 17 * n**3 / 6 + 21.5 * n**2 + 998 * n / 3 - 132,
        lambda n: 17 * n**3 / 6 + 20 * n**2 + 1819 * n / 6 - 145,
    ),
    LinearizedAlgorithm(
        "linearized_5",
        5,
        "δθ''",
        "n",
        changes_of_accelerations.delta_acceleration,
        ("dq", "dv", "dtau"),
        "259n - 129",
        "232n - 123",
        lambda n: 259 * n - 129,
        lambda n: 232 * n - 123,
    ),
    LinearizedAlgorithm(
        "linearized_6",
        6,
        "𝓜⁻¹, A_C, B_C",
        "n²",
        changes_of_accelerations.forward_matrices,
        (),
        "36n² + 781n - 225",
        "33n² + 773n - 255",
        lambda n: 36 * n**2 + 781 * n - 225,
        lambda n: 33 * n**2 + 773 * n - 255,
    ),
)
