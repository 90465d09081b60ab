"""Closures that take hold and let go while a simulation runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from tests.sim.closed_benchmarks import swinging


def wagons(mass_a: float = 2.0, mass_b: float = 3.0) -> lw.Model:
    """Two wagons on one rail, b one metre ahead of a; the coupling holds them at that distance less one."""
    builder = lw.ModelBuilder("wagons", gravity=(0, 0, 0))
    builder.add_body("a", "world", lw.Prismatic((1, 0, 0)), joint_name="ja", mass=mass_a)
    builder.add_body("b", "world", lw.Prismatic((1, 0, 0)), lw.transform(xyz=(1, 0, 0)), joint_name="jb", mass=mass_b)
    builder.add_coupling("coupler", lw.closures.Coupling({"ja": 1.0, "jb": -1.0}, offset=1.0))
    return builder.build()


# A little early, so that closed wagons are past the zero and do not cross it by rounding.
CATCH = lw.Event(lambda t, q, v, p: q[0] - q[1] - (1.0 - 1e-12), name="catch", attach="coupler")
LET_GO = lw.Event(lambda t, q, v, p: t - 1.5, name="let go", release="coupler")


def pushed(t: Any, q: Any, v: Any, p: Any) -> Any:
    """6 N on the first wagon after 1.5 s."""
    return [lw.math.where(t > 1.5, 6.0, 0.0), 0.0]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("dop853", {}),
        ("rk4", {"dt": 0.01}),
        ("rodas4", {}),
        ("euler", {"dt": 0.01}),
        ("variational", {"dt": 0.01}),
        ("generalized_alpha", {"dt": 0.01}),
    ],
)
def test_wagons_couple_and_uncouple(method: str, options: dict[str, Any]) -> None:
    """Catching is an inelastic collision; after letting go, the force moves the first wagon alone."""
    traj = lw.simulate(
        wagons(), [0.0, 0.0], [1.0, 0.0], duration=2.0, method=method, control=pushed,
        events=[CATCH, LET_GO], released="coupler", **options,
    )  # fmt: skip
    caught, freed = traj.events
    assert (caught.name, freed.name) == ("catch", "let go")
    assert caught.t == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(caught.v, [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(caught.v_after, [0.4, 0.4], atol=1e-12)
    assert caught.impulses is not None
    assert abs(caught.impulses[0]) == pytest.approx(2.0 * 0.6)  # what the first wagon lost
    np.testing.assert_allclose(traj.v[-1], [0.4 + 0.5 * 6.0 / 2.0, 0.4], atol=0.04 if "dt" in options else 1e-8)
    active = traj.active[:, 0]
    assert set(np.unique(active)) == {0.0, 1.0}
    assert active[0] == 0.0
    assert active[-1] == 0.0
    held = active > 0.5
    np.testing.assert_allclose(traj.q[held, 0] - traj.q[held, 1], 1.0, atol=1e-12)
    assert np.abs(traj.closure_error).max() < 1e-12
    assert traj.x.shape[-1] == 0


def test_released_from_the_start_is_the_open_tree() -> None:
    model = samples.four_bar(2)
    tree = model.without("pin1").without("pin2")
    q0, v0 = [0.3, 0.2, -0.1, 0.4, 0.1], [0.1, 0.2, 0.3, -0.1, 0.0]
    released = lw.simulate(model, q0, v0, duration=1.0, released=["pin1", "pin2"])
    opened = lw.simulate(tree, q0, v0, duration=1.0)
    np.testing.assert_allclose(released.q[-1], opened.q[-1], atol=1e-8)
    assert not released.closure_error.any()


def test_a_mechanism_that_loses_a_pin_moves_on_as_what_is_left() -> None:
    model = samples.four_bar(2)
    lost = lw.Event(lambda t, q, v, p: t - 0.4, name="broken", release="pin2")
    traj = lw.simulate(model, model.neutral(), swinging(model), duration=1.0, events=lost)
    (broken,) = traj.events
    np.testing.assert_allclose(broken.v_after, broken.v, atol=1e-9)  # nothing is caught
    left = lw.simulate(model.without("pin2"), broken.q_after, broken.v_after, duration=0.6, t0=0.4)
    np.testing.assert_allclose(traj.q[-1], left.q[-1], atol=1e-7)


def test_catching_is_the_impulse_of_the_model() -> None:
    model = samples.four_bar(1)
    q0 = model.assemble([0.3, -0.3, 0.3])
    v0 = np.array([1.0, 0.5, -0.2])
    now = lw.Event(lambda t, q, v, p: t - 1e-9, name="now", attach="pin1")
    traj = lw.simulate(model, q0, v0, duration=0.1, events=now, released="pin1")
    expected = model.constraints.impulse(q0, v0)
    np.testing.assert_allclose(traj.events[0].v_after, expected.v, atol=1e-6)
    np.testing.assert_allclose(traj.events[0].impulses, expected.impulses, atol=1e-6)
    assert traj.energy[-1] < traj.energy[0]


def test_each_state_of_a_batch_has_its_own() -> None:
    v0 = np.array([[1.0, 0.0], [2.0, 0.0], [0.25, 0.0]])
    traj = lw.simulate(wagons(), [0.0, 0.0], v0, duration=2.0, method="rk4", dt=0.01, events=CATCH, released="coupler")
    np.testing.assert_allclose(traj.v[:, -1], [[0.4, 0.4], [0.8, 0.8], [0.25, 0.0]], atol=1e-12)
    np.testing.assert_allclose(traj.active[:, -1, 0], [1.0, 1.0, 0.0])


def test_nothing_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from linkwise.targets.llvm.program_kernel import ProgramKernel

    built: list[str] = []
    build = ProgramKernel.build.__func__  # type: ignore[attr-defined]

    def counted(cls: Any, routine: Any, *args: Any, **keywords: Any) -> Any:
        built.append(routine.name)
        return build(cls, routine, *args, **keywords)

    monkeypatch.setattr(ProgramKernel, "build", classmethod(counted))
    model = wagons(1.0, 1.0)
    on = lw.Event(lambda t, q, v, p: lw.math.sin(8.0 * t), direction=1, name="on", action=_together, attach="coupler")
    off = lw.Event(lambda t, q, v, p: lw.math.sin(8.0 * t), direction=-1, name="off", release="coupler")
    traj = lw.simulate(model, [1.0, 0.0], [1.0, 1.0], duration=4.0, t0=0.1, method="rk4", dt=1e-3, events=[on, off])
    assert len(traj.events) == 10
    assert len(built) == len(set(built))


def _together(t: float, q: Any, v: Any) -> Any:
    return [q[1] + 1.0, q[1]], v


def test_what_is_open_cannot_be_attached() -> None:
    soon = lw.Event(lambda t, q, v, p: t - 0.5, name="soon", attach="coupler")
    with pytest.raises(lw.errors.ClosureError, match="'coupler' is open") as caught:
        lw.simulate(wagons(), [0.0, 0.0], [1.0, 0.0], duration=2.0, events=soon, released="coupler")
    assert caught.value.residual == pytest.approx(0.5)


def test_names_are_checked() -> None:
    with pytest.raises(lw.errors.UnknownNameError, match="couplr"):
        lw.simulate(wagons(), [1.0, 0.0], released="couplr")
    wrong = lw.Event(lambda t, q, v, p: t - 0.5, name="soon", attach="couplr")
    with pytest.raises(lw.errors.UnknownNameError, match="couplr"):
        lw.simulate(wagons(), [1.0, 0.0], events=wrong)
