"""Modal coordinates and deflections of nodes as figures and numbers."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError, UnknownNameError


@pytest.fixture(scope="module")
def run():
    model = samples.flexible_arm(modes=1, damping=0.05)
    return lw.simulate(model, model.neutral(), duration=0.2, method="rk4", dt=5e-4, save_every=20)


def test_deflection_is_that_of_the_modes(run):
    """To first order Γη."""
    body = run.model.bodies["upper"]
    first = run.q[:, body.q_slice] @ body.flexible.node("tip").Gamma.T
    got = run.deflection("upper", "tip")
    assert np.abs(first).max() > 1e-4
    np.testing.assert_allclose(got[:, 1:], first[:, 1:], atol=1e-12)
    assert (np.abs(got[:, 0]) <= 2 * np.abs(first).max() ** 2).all()  # foreshortening
    with pytest.raises(UnknownNameError, match="tip"):
        run.deflection("upper", "top")


def test_panels(run):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = run.plot(["modes", "deflection"])
    labels = [[line.get_label() for line in axis.lines] for axis in figure.axes]
    assert labels[0] == ["upper 1", "upper 2", "lower 1", "lower 2"]
    assert set(labels[1]) >= {"upper:tip x", "upper:tip z", "lower:tip z"}
    only = run.plot(["deflection"], nodes=[("upper", 4)])
    assert {line.get_label()[:7] for line in only.axes[0].lines} == {"upper:4"}
    matplotlib.pyplot.close("all")
    rigid = lw.simulate(samples.planar_arm(), np.zeros(3), duration=0.1)
    with pytest.raises(InputError, match="no deflection"):
        rigid.plot(["deflection"])
