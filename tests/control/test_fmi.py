"""Functional Mock-up Units in FMPy: checked, integrated, differentiated, beside the model itself."""

import shutil
import zipfile

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import planar_arm

fmpy = pytest.importorskip("fmpy")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def pendulums():
    """Two links with damping."""
    b = lw.ModelBuilder("two links")
    for k, parent in ((1, "world"), (2, "link1")):
        b.add_body(
            f"link{k}",
            parent=parent,
            joint=lw.Revolute((0, 1, 0)),
            joint_name=f"joint{k}",
            placement=lw.transform(xyz=(0, 0, -0.5 if k == 2 else 0)),
            mass=1.0 + k,
            com=(0, 0, -0.25),
            inertia=0.02 * np.eye(3),
            damping=0.1,
        )
    return b.build()


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    path = tmp_path_factory.mktemp("fmu") / "links.fmu"
    return lw.control.to_fmu(
        pendulums(),
        path,
        q0=[0.4, -0.3],
        v0=[0.1, 0.2],
        outputs=lambda m, q, v, tau: {"height": m.pose(q, "link2")[2, 3]},
    )


def simulated(unit, **how):
    """Results of FMPy, which looks for binaries of few machines."""
    if fmpy.platform not in fmpy.supported_platforms(unit):
        pytest.skip(f"FMPy simulates no unit of {fmpy.platform_tuple}")
    return fmpy.simulate_fmu(unit, **how)


@needs_compiler
def test_fmpy_finds_no_problems_and_sees_names_and_units(unit):
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(unit)) == []
    found = {each.name: each for each in fmpy.read_model_description(str(unit)).modelVariables}
    assert found["q.joint1"].unit == "rad" and found["v.joint2"].unit == "rad/s"
    assert found["tau.joint2"].unit == "N.m" and found["tau.joint2"].causality == "input"
    assert found["der(v.joint1)"].derivative is found["v.joint1"] and "height" in found
    with zipfile.ZipFile(unit) as file:
        assert {"sources/two_links.c", "sources/buildDescription.xml"} <= set(file.namelist())


@needs_compiler
def test_eulers_steps_by_fmpy_are_ours(unit):
    model, dt = pendulums(), 1e-3
    u = np.array(
        [(0.0, 0.5, -0.2), (1.0, 0.5, -0.2)], dtype=[("time", float), ("tau.joint1", float), ("tau.joint2", float)]
    )
    theirs = simulated(
        str(unit),
        fmi_type="ModelExchange",
        solver="Euler",
        step_size=dt,
        output_interval=dt,
        stop_time=0.2,
        input=u,
    )
    q, v, tau = np.array([0.4, -0.3]), np.array([0.1, 0.2]), np.array([0.5, -0.2])
    for _ in range(len(theirs) - 1):
        vdot = model.forward_dynamics(q, v, tau + model.passive_force(q, v))
        q, v = q + dt * v, v + dt * vdot
    last = theirs[-1]
    assert len(theirs) == 201
    np.testing.assert_allclose(
        [last["q.joint1"], last["q.joint2"], last["v.joint1"], last["v.joint2"]], [*q, *v], atol=1e-14
    )


@needs_compiler
@pytest.mark.parametrize("kind", ["ModelExchange", "CoSimulation"])
def test_motion_is_that_of_simulate(unit, kind):
    times = np.linspace(0.0, 1.0, 11)
    ours = lw.simulate(pendulums(), [0.4, -0.3], [0.1, 0.2], duration=1.0, rtol=1e-12, atol=1e-13, output_times=times)
    theirs = simulated(
        str(unit), fmi_type=kind, solver="CVode", relative_tolerance=1e-12, stop_time=1.0, output_interval=0.1
    )
    np.testing.assert_allclose(theirs["q.joint2"], ours.q[:, 1], atol=1e-6 if kind == "ModelExchange" else 1e-9)
    heights = pendulums().poses(ours.q)[:, -1, 2, 3]
    np.testing.assert_allclose(theirs["height"], heights, atol=1e-6)


@needs_compiler
def test_directional_and_adjoint_derivatives_and_states_that_are_put_back(unit, tmp_path):
    model = pendulums()
    description = fmpy.read_model_description(str(unit))
    place = {each.name: each.valueReference for each in description.modelVariables}
    folder = fmpy.extract(str(unit), unzipdir=str(tmp_path))
    fmu = fmpy.fmi3.FMU3Model(
        guid=description.guid,
        unzipDirectory=folder,
        modelIdentifier=description.modelExchange.modelIdentifier,
        instanceName="links",
    )
    fmu.instantiate()
    fmu.enterInitializationMode()
    fmu.setFloat64([place["tau.joint1"]], [0.7])
    q, v, tau = np.array([0.4, -0.3]), np.array([0.1, 0.2]), np.array([0.7, 0.0])
    A, B = model.state_space(q, v, tau)
    rates = [place[f"der(v.joint{k})"] for k in (1, 2)]
    by = [place[name] for name in ("q.joint1", "q.joint2", "v.joint1", "v.joint2")]
    seed = [0.3, -0.5, 0.2, 0.9]
    found = fmu.getDirectionalDerivative(rates, by, seed)
    np.testing.assert_allclose(found, A[2:] @ seed, rtol=1e-12)
    found = fmu.getDirectionalDerivative(rates, [place["tau.joint2"]], [1.0])
    np.testing.assert_allclose(found, B[2:, 1], rtol=1e-12)
    found = fmu.getAdjointDerivative(rates, by, [1.0, -2.0], nSensitivity=4)
    np.testing.assert_allclose(found, np.array([1.0, -2.0]) @ A[2:], rtol=1e-11)
    kept = fmu.getFMUState()
    fmu.setFloat64([place["q.joint1"]], [1.5])
    fmu.setFMUState(kept)
    assert fmu.getFloat64([place["q.joint1"], place["tau.joint1"]]) == [0.4, 0.7]
    fmu.freeFMUState(kept)
    fmu.terminate()
    fmu.freeInstance()


@needs_compiler
def test_free_bodies_have_quaternions_and_stay_on_them(tmp_path):
    from fmpy.validation import validate_fmu

    b = lw.ModelBuilder("top", gravity=(0, 0, 0))
    b.add_body("top", joint=lw.Free(), mass=2.0, inertia=np.diag([1.0, 2.0, 3.0]))
    model = b.build()
    path = lw.control.to_fmu(model, tmp_path / "top.fmu", v0=[0.1, 2.0, 0.1, 0.0, 0.0, 0.3], step=0.01)
    assert validate_fmu(str(path)) == []
    theirs = simulated(str(path), fmi_type="CoSimulation", stop_time=2.0, output_interval=0.5)
    states = np.array([list(row)[1:] for row in theirs])
    np.testing.assert_allclose(np.linalg.norm(states[:, :4], axis=1), 1.0, atol=1e-14)
    ours = lw.simulate(model, model.neutral(), [0.1, 2.0, 0.1, 0.0, 0.0, 0.3], duration=2.0, rtol=1e-11)
    np.testing.assert_allclose(states[-1, :7], ours.q[-1], atol=1e-6)


def test_without_a_compiler_a_unit_has_sources_alone_and_wrong_ones_are_refused(tmp_path):
    path = lw.control.to_fmu(planar_arm(2), tmp_path / "arm.fmu", compiler=None)
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
    assert "sources/planar_arm.c" in names and not any(name.startswith("binaries") for name in names)
    with pytest.raises(lw.InputError, match="another ending"):
        lw.control.to_fmu(planar_arm(2), tmp_path / "arm.zip")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "arm.urdf"}, "not a model"),
        ({"path": "nowhere/arm.fmu"}, "no such folder"),
        ({"q0": [0.1]}, "wrong shape"),
        ({"q0": [np.nan, 0.0]}, "start is not finite"),
        ({"outputs": 3}, "outputs are a function"),
        ({"outputs": lambda m, q, v, tau: q[0]}, "outputs are not numbers by name"),
        ({"outputs": lambda m, q, v, tau: {"": q[0]}}, "a name of its own"),
        ({"outputs": lambda m, q, v, tau: {"q.joint1": q[0]}}, "a name of its own"),
    ],
)
def test_mistakes_are_named(given, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lw.InputError, match=words):
        lw.control.to_fmu(**{"model": planar_arm(2), "path": "arm.fmu", **given})
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_parameters_have_names_units_and_values_to_be_tuned(tmp_path):
    """Numbers of one parameter by one: the motion is that of a model built with these numbers."""
    model = pendulums().with_parameters(["link1.mass", "link2.com", "gravity", "link1.armature", "link2.inertia"])
    unit = lw.control.to_fmu(model, tmp_path / "links.fmu", q0=[0.4, -0.3])
    found = {each.name: each for each in fmpy.read_model_description(str(unit)).modelVariables}
    units = {"link1.mass": "kg", "link2.com.x": "m", "gravity.z": "m/s2", "link1.armature": "kg.m2"}
    units |= {f"link2.inertia.{axes}": "kg.m2" for axes in ("xx", "yy", "zz", "xy", "xz", "yz")}
    assert {name: found[f"p.{name}"].unit for name in units} == units
    changed = {"p.link1.mass": 3.0, "p.link2.com.z": -0.7, "p.gravity.z": -3.7, "p.link2.inertia.yy": 0.3}
    motion = simulated(
        str(unit),
        fmi_type="CoSimulation",
        start_values=changed,
        stop_time=0.2,
        output_interval=0.1,
        output=["q.joint2"],
    )
    p = np.array(model.parameters.nominal)
    names = [name for name in found if name.startswith("p.")]
    for name, value in changed.items():
        p[names.index(name)] = value
    ours = lw.simulate(model, [0.4, -0.3], duration=0.2, dt=1e-3, method="rk4", p=p)
    np.testing.assert_allclose(motion["q.joint2"][-1], ours.q[-1, 1], rtol=0, atol=1e-12)
