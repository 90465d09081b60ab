"""A flexible beam against a fine chain of rigid links and springs."""

import numpy as np

import linkwise as lw

L, EI, MU, SPIN = 2.0, 40.0, 1.5, 3.0


def beam():
    """Clamped to a hub that turns freely, moving in the plane."""
    b = lw.ModelBuilder("beam", gravity=(0, -2.0, 0))
    b.add_body("hub", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0, inertia=np.diag([1.0, 1.0, 2.0]))
    flexible = lw.FlexibleBody.beam(L, 1e6, (EI, EI), 1.0, MU, modes=(5, 0), axial_modes=0, elements=12)
    b.add_body("beam", parent="hub", flexible=flexible)
    return b.build()


def segments(n):
    """n rigid rods, hinged with springs EI/h at the middles of n + 1 stretches: half a rod is clamped to the hub."""
    b = lw.ModelBuilder("segments", gravity=(0, -2.0, 0))
    b.add_body("hub", joint=lw.Revolute(axis=(0, 0, 1)), mass=1.0, inertia=np.diag([1.0, 1.0, 2.0]))
    h = L / n
    parent, place = "hub", h / 2
    stub = {"mass": MU * h / 2, "com": (h / 4, 0, 0), "inertia": np.diag([0, 1, 1]) * MU * (h / 2) ** 3 / 12}
    b.add_body("stub", parent="hub", **stub)
    for k in range(n):
        length = h if k < n - 1 else h / 2
        rod = {"mass": MU * length, "com": (length / 2, 0, 0), "inertia": np.diag([0, 1, 1]) * MU * length**3 / 12}
        where = lw.transform(xyz=(place, 0, 0))
        b.add_body(f"{k}", parent, lw.Revolute(axis=(0, 0, 1)), where, stiffness=EI / h, **rod)
        parent, place = f"{k}", length
    return b.build()


def test_swinging_beam():
    times = np.linspace(0.0, 1.5, 31)
    model = beam()
    v = np.zeros(model.nv)
    v[model.joints["hub_joint"].v_slice] = SPIN
    flexible = lw.simulate(model, model.neutral(), v, duration=1.5, output_times=times, rtol=1e-9)
    tip = model.pose(flexible.q, "beam", node="tip")[:, :2, 3]
    found = []
    for n in (10, 20):
        chain = segments(n)
        v = np.zeros(chain.nv)
        v[0] = SPIN
        run = lw.simulate(chain, chain.neutral(), v, duration=1.5, output_times=times, rtol=1e-9)
        end = chain.pose(run.q, f"{n - 1}") @ lw.transform(xyz=(L / n / 2, 0, 0))
        found.append(end[:, :2, 3])
    fine = found[1] + (found[1] - found[0]) / 3  # their error falls with the square of the length
    assert np.abs(flexible.q[:, model.bodies["beam"].q_slice]).max() > 0.05  # it does bend
    assert np.abs(tip - fine).max() < 1e-4 * L
