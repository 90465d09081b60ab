"""The flexible slider-crank of the Bari test set for IVP solvers (Simeon 1996), as its report prints the equations.

A crank turns at 150 rad/s; the connecting rod bends by two sines and stretches by a quadratic element of two nodes, in
the frame of its chord, so that both its ends turn. The report's mass block of the stretching has 8, 1, 2 where the
element's integrals are 8/15, 1/15, 2/15 of the rod's mass; `rod` can have either.
"""

from dataclasses import replace

import numpy as np

import linkwise as lw

L1, L2, J1, J2, M2, M3 = 0.15, 0.30, 0.002727, 0.0045339259, 0.151104, 0.075552
PI, E, SIDE, RHO, OMEGA = 3.1415927, 0.20e12, 0.0080, 7870.0, 150.0

START = np.array([
    0.0, 0.0, 0.450016933, 0.0, 0.0, 0.103339863e-4, 0.169327969e-4,
    150.0, -74.9957670, -0.268938672e-5, 0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5,
])  # fmt: skip
"""φ1, φ2, x3, q1 … q4, then their rates, as printed: to nine digits."""
START_ACCELERATIONS = np.array([
    0.0, -1.344541576008661e-03, -5.062194923138079e03, -6.833142732779555e-05, 1.449382650173157e-08,
    -4.268463211410861, 2.098334687947376e-01,
])  # fmt: skip
END = np.array([
    15.0, -3.311734987910881e-01, 1.697373326718410e-01, 1.893192460247178e-04, 2.375751865617931e-05,
    -5.323907988763734e-06, -8.363283141616840e-06,
    150.0, 6.025346682645789e01, -8.753116989887888, -3.005536801092212e-02, -5.500488291932075e-03,
    4.978243404809343e-04, 1.104933470696396e-03,
])  # fmt: skip
"""The same at t = 0.1 s, as published."""

_stretched = np.array([[16.0, -8.0], [-8.0, 7.0]]) / 3
_unit = E * SIDE**2 / L2
K = np.zeros((4, 4))
K[0, 0], K[1, 1] = _unit * PI**4 / 24 * (SIDE / L2) ** 2, _unit * PI**4 * 2 / 3 * (SIDE / L2) ** 2
K[2:, 2:] = _unit * _stretched


def rod(as_printed=True):
    """The connecting rod from its four functions; with the mass block as printed, or as the functions have it."""
    x, weight = np.polynomial.legendre.leggauss(20)
    s, share = 0.5 * (x + 1.0), 0.25 * M2 * weight
    none = 0.0 * s
    along = np.stack([none, none, 4 * s * (1 - s), s * (2 * s - 1)], axis=1)
    across = np.stack([np.sin(np.pi * s), np.sin(2 * np.pi * s), none, none], axis=1)
    shapes = np.stack([along, across, 0.0 * along], axis=1)
    edge = SIDE / np.sqrt(12)  # two lines of mass, for the section's share of J2
    points = [np.stack([L2 * s, none + y, none], axis=1) for y in (edge, -edge)]
    turns = [np.zeros((3, 4)) for _ in range(2)]
    turns[0][2, :2], turns[1][2, :2] = np.array([1.0, 2.0]) * np.pi / L2, np.array([-1.0, 2.0]) * np.pi / L2
    longer = np.zeros((3, 4))
    longer[0, 3] = 1.0
    body = lw.FlexibleBody.from_modes(
        np.concatenate(points),
        np.concatenate([share, share]),
        np.concatenate([shapes, shapes]),
        K,
        nodes={"root": ((0, 0, 0), np.zeros((3, 4)), turns[0]), "tip": ((L2, 0, 0), longer, turns[1])},
        root="root",
    )
    if not as_printed:
        return body
    Me, J_2 = body.integrals.Me.copy(), body.integrals.J2.copy()
    Me[2:, 2:] *= 15.0
    J_2[:, :, 2:, 2:] *= 15.0
    return replace(body, integrals=replace(body.integrals, Me=Me, J2=J_2))


def slider_crank(as_printed=True, driven=True):
    b = lw.ModelBuilder("slider-crank", gravity=(0, 0, 0))
    J = np.diag([0.002, 0.002, J1 - 0.36 * L1**2 / 4])
    pin = lw.Revolute(axis=(0, 0, 1))
    b.add_body("crank", joint=pin, joint_name="drive", mass=0.36, com=(L1 / 2, 0, 0), inertia=J)
    place = lw.transform(xyz=(L1, 0, 0))
    b.add_body("rod", parent="crank", joint=pin, joint_name="pin", placement=place, flexible=rod(as_printed))
    b.add_body("slider", joint=lw.Prismatic(axis=(1, 0, 0)), joint_name="slide", mass=M3)
    b.add_closure("gudgeon", body_a="rod", node_a="tip", body_b="slider", joint=pin)
    if driven:
        b.add_coupling("speed", lw.closures.Prescribed("drive", lambda t: OMEGA * t))
    return b.build()


def ours(model, y):
    """The report's coordinates, or rates, in the model's order, where the rod's angle is counted from the crank."""
    x = np.zeros(model.nq)
    for name, value in (("drive", y[0]), ("pin", y[1] - y[0]), ("slide", y[2])):
        x[model.joints[name].q_slice] = value
    x[model.bodies["rod"].q_slice] = y[3:]
    return x


def theirs(model, x):
    drive, turn, slide = (x[model.joints[name].q_slice][0] for name in ("drive", "pin", "slide"))
    return np.array([drive, drive + turn, slide, *x[model.bodies["rod"].q_slice]])


def closed(y):
    """The state with x3 and φ2' such that it is closed to rounding, where the crank lies along x."""
    y = y.copy()
    y[2], y[8] = L1 + L2 + y[6], -L1 * OMEGA / (L2 + y[6])
    return y


def printed_accelerations(y):
    """φ1'', φ2'', x3'', q1'' … q4'' of the printed equations in index-1 form, and the three multipliers."""
    volume, m = SIDE**2 * L2, RHO * SIDE**2 * L2
    MQ = m * np.array([[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 8, 1], [0, 0, 1, 2]])
    B = np.zeros((4, 4))
    B[0, 2], B[0, 3], B[1, 3] = -16 / PI**3, 8 / PI**3 - 1 / PI, 0.5 / PI
    B = volume * (B - B.T)
    c1, c2 = volume * np.array([0, 0, 2 / 3, 1 / 6]), volume * np.array([2 / PI, 0, 0, 0])
    c12, c21 = L2 * volume * np.array([0, 0, 1 / 3, 1 / 6]), L2 * volume * np.array([1 / PI, -0.5 / PI, 0, 0])
    (p1, p2), q, (v1, v2), w = y[:2], y[3:7], y[7:9], y[10:14]
    s, c = np.sin(p1 - p2), np.cos(p1 - p2)
    A, f = np.zeros((7, 7)), np.zeros(7)
    A[0, 0], A[1, 1], A[2, 2] = J1 + M2 * L1**2, J2 + q @ MQ @ q + 2 * RHO * c12 @ q, M3
    A[0, 1] = A[1, 0] = 0.5 * L1 * L2 * M2 * c + RHO * L1 * (s * c2 @ q + c * c1 @ q)
    A[0, 3:] = A[3:, 0] = RHO * L1 * (-s * c1 + c * c2)
    A[1, 3:] = A[3:, 1] = RHO * (c21 + q @ B)
    A[3:, 3:] = MQ
    f[0] = -0.5 * L1 * L2 * M2 * v2**2 * s + RHO * L1 * v2**2 * (-s * c1 @ q + c * c2 @ q)
    f[0] -= 2 * RHO * L1 * v2 * (c * c1 @ w + s * c2 @ w)
    f[1] = 0.5 * L1 * L2 * M2 * v1**2 * s + RHO * L1 * v1**2 * (s * c1 @ q - c * c2 @ q)
    f[1] -= 2 * RHO * v2 * c12 @ w + 2 * v2 * w @ MQ @ q + RHO * w @ B @ w
    f[3:] = v2**2 * MQ @ q + RHO * (v2**2 * c12 + L1 * v1**2 * (c * c1 + s * c2) + 2 * v2 * B @ w) - K @ q
    length, (s1, k1, s2, k2) = L2 + q[3], (np.sin(p1), np.cos(p1), np.sin(p2), np.cos(p2))
    G = np.zeros((3, 7))
    G[0, 0], G[0, 1], G[0, 6] = L1 * k1, length * k2, s2
    G[1, 0], G[1, 1], G[1, 2], G[1, 6] = L1 * s1, length * s2, 1.0, -k2
    G[2, 0] = 1.0
    left = np.array(
        [
            -L1 * s1 * v1**2 - length * s2 * v2**2 + 2 * v2 * k2 * w[3],
            L1 * k1 * v1**2 + length * k2 * v2**2 + 2 * v2 * s2 * w[3],
            0.0,
        ]
    )
    solved = np.linalg.solve(np.block([[A, G.T], [G, np.zeros((3, 3))]]), np.concatenate([f, -left]))
    return solved[:7], solved[7:]
