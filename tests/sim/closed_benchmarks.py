"""Closed mechanisms with known motions: IFToMM's benchmarks and the IVP test set."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import linkwise as lw

# Andrews' squeezer, in the benchmark's order (β, Θ, γ, Φ, δ, Ω, ε); ours is (β, Θ, γ, δ, Φ, ε, Ω).
IN_OUR_ORDER = [0, 1, 2, 4, 3, 6, 5]
SQUEEZER_START = np.array(
    [
        -0.0617138900142764496,
        0.0,
        0.455279819163070380,
        0.222668390165885885,
        0.487364979543842550,
        -0.222668390165885885,
        1.23054744454982119,
    ]
)[IN_OUR_ORDER]
SQUEEZER_Q = np.array(
    [
        15.81077119629904,
        -15.75637105984298,
        0.04082224013073101,
        -0.5347301163226948,
        0.5244099658805304,
        0.5347301163226948,
        1.048080741042263,
    ]
)[IN_OUR_ORDER]
SQUEEZER_V = np.array(
    [
        1139.920302151208,
        -1424.379294994111,
        11.03291221937134,
        19.29337464421385,
        0.5735699284790808,
        -19.29337464421385,
        0.3231791658026955,
    ]
)[IN_OUR_ORDER]


def swinging(model: lw.Model, speed: float = 1.0) -> Any:
    """The velocity of an N-four-bar at the upright: rods turn, couplers keep their direction."""
    return np.array([speed if joint.name.startswith("foot") else -speed for joint in model.joints])


def four_bar_angle(n: int, times: Any) -> Any:
    """φ(t) of the N-four-bar from its exact equation φ̈ = 3(3N + 1)/(2(4N + 1)) g sin φ."""
    stiffness = 3 * (3 * n + 1) / (2 * (4 * n + 1)) * 9.81
    found = solve_ivp(
        lambda t, y: [y[1], stiffness * np.sin(y[0])],
        (0.0, times[-1]),
        [0.0, 1.0],
        method="DOP853",
        t_eval=times,
        rtol=1e-13,
        atol=1e-13,
    )
    return found.y[0]
