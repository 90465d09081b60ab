"""Every switch and option of MJCF against MuJoCo: those that are used, those without effect, those that are said."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.files.compare import compare
from linkwise.files.mjcf.options import FLAGS, NOTHING, OPTIONS, USED
from tests.files.mujoco_of_mjcf import Beside, errors, motion_problem, mujoco

ENABLED = {"override", "energy", "fwdinv", "invdiscrete", "sleep", "diagexact", "ipc", "speculative"}
"""Flags that are off where the file does not say."""

ARM = """<mujoco><compiler {compiler}/><option {option}><flag {flag}/></option><worldbody>
<body name="a" pos="0.1 0 1" euler="10 20 30">
  <joint name="i" axis="0 1 0.2" damping="0.3" stiffness="4" springref="20" frictionloss="0.5" range="-5 5" ref="3"/>
  <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0.1"/><site name="s" pos="0.3 0 0"/>
  <body name="b" pos="0.3 0 0.1"><joint name="j" type="slide" axis="1 0 0" damping="2" stiffness="30" range="0 0.01"/>
    <geom type="box" size="0.1 0.05 0.02"/><site name="t" pos="0 0.1 0"/>
    <body name="c" pos="0 0 0.2"><joint name="k" axis="1 1 0" armature="0.02" limited="false"/>
      <geom type="ellipsoid" size="0.06 0.04 0.02" group="3"/></body></body></body></worldbody>
<equality><joint joint1="j" joint2="k" polycoef="0 0.1 0 0 0"/></equality>
<tendon><fixed name="band" stiffness="5" damping="0.4"><joint joint="i" coef="0.7"/><joint joint="k" coef="-1"/></fixed>
</tendon>
<actuator><motor name="m" joint="i" gear="3" ctrlrange="-1 1"/>
  <position name="p" joint="k" kp="20" group="4" armature="0.01" damping="0.3"/></actuator>
<sensor><jointpos joint="i"/><magnetometer site="s"/></sensor></mujoco>"""


def arm(*, option: str = "", flag: str = "", compiler: str = "") -> str:
    return ARM.format(option=option, flag=flag, compiler=compiler)


def read(text: str) -> tuple[lw.Model, str]:
    """The model, and all that was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = lw.loads(text)
    said = [text for each in caught for text in (str(each.message), *getattr(each.message, "left_out", ()))]
    return model, "\n".join(said)


def same_motion(text: str, model: lw.Model) -> None:
    """Accelerations, and the kinds of constraints that act."""
    assert not motion_problem(model, text, np.random.default_rng(0), states=4)


def schema() -> dict[str, list[str]]:
    """The attributes of each element of the format, by MuJoCo's own list."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in mujoco.mj_printSchema(False, False).splitlines():
        head = re.match(r" *(\w+) \([!*?R]\) *(.*)", line)
        if head:
            name, line = head[1], head[2]
        found.setdefault(name, []).extend(line.split())
    return found


def test_the_tables_have_every_switch_and_option() -> None:
    words = schema()
    assert set(words["flag"]) == set(FLAGS)
    assert set(words["option"]) - {"actuatorgroupdisable"} <= set(OPTIONS)
    assert {name for name in dir(mujoco.MjOption) if not name.startswith("_")} == set(OPTIONS)
    for kind, prefix in ((mujoco.mjtDisableBit, "mjDSBL_"), (mujoco.mjtEnableBit, "mjENBL_")):
        assert {name.removeprefix(prefix).lower() for name in kind.__members__ if prefix in name} <= set(FLAGS)
    assert set(words["compiler"]) == set(COMPILER)


def test_nothing_is_said_of_the_usual_settings() -> None:
    model, said = read(arm())
    assert not said
    same_motion(arm(), model)
    assert model.closures and model.actuators and model.sensors


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag(flag: str) -> None:
    option = 'integrator="discrete"' if flag == "ipc" else ""  # it is refused with another
    text = arm(option=option, flag=f'{flag}="{"enable" if flag in ENABLED else "disable"}"')
    model, said = read(text)
    if flag != "ipc":  # MuJoCo's accelerations are then those of a step, not of a time
        same_motion(text, model)
    names = {"actuation": "all actuators", "sensor": "all sensors"}
    assert (FLAGS[flag] in said) if FLAGS[flag] not in (USED, NOTHING) else (names.get(flag, "") in said)
    assert bool(said) == (FLAGS[flag] not in (USED, NOTHING) or flag in names), said
    assert bool(model.sensors) == (flag != "sensor")
    if FLAGS[flag] != USED:
        assert compare(model, lw.loads(arm())).same


@pytest.mark.parametrize("other", ["equality", "frictionloss", "limit", "contact"])
def test_flags_within_constraint(other: str) -> None:
    for setting in ("enable", "disable"):
        text = arm(flag=f'constraint="disable" {other}="{setting}"')
        model, said = read(text)
        same_motion(text, model)
        assert not said and not model.closures


OTHER = {
    "timestep": "0.01", "integrator": "RK4", "gravity": "1 2 3", "magnetic": "1 2 3", "wind": "3 0 0", "impratio": "2",
    "cone": "elliptic", "o_margin": "0.1", "o_solref": "0.1 1", "o_solimp": "0.5 0.6 0.1 0.5 2",
    "o_friction": "2 2 1 1 1",
    "ccd_iterations": "9", "ccd_tolerance": "1e-3", "sdf_iterations": "3", "sdf_initpoints": "9", "jacobian": "sparse",
    "solver": "CG", "iterations": "9", "tolerance": "1e-3", "ls_iterations": "9", "ls_tolerance": "0.1",
    "noslip_iterations": "9", "noslip_tolerance": "1e-3", "sleep_tolerance": "1", "actuatorgroupdisable": "4",
}  # fmt: skip


@pytest.mark.parametrize("option", OTHER)
def test_an_option(option: str) -> None:
    text = arm(option=f'{option}="{OTHER[option]}"')
    model, said = read(text)
    same_motion(text, model)
    assert ("'p'" in said) if option == "actuatorgroupdisable" else not said
    if option == "magnetic":
        assert model.sensors[1].field == (1.0, 2.0, 3.0)


def test_the_fluid_acts_unless_nothing_passive_does() -> None:
    for option in ('density="1.2"', 'viscosity="1e-3"'):
        for flag in ("", 'spring="disable"', 'spring="disable" damper="disable"'):
            text = arm(option=option + ' wind="3 0 0"', flag=flag)
            model, said = read(text)
            assert not said
            assert bool(model.fields) is ("damper" not in flag)
            same_motion(text, model)
    assert set(OTHER) | {"density", "viscosity"} == set(schema()["option"])


def test_gravity_compensation_acts_unless_nothing_passive_does() -> None:
    for flag in ("", 'gravity="disable"', 'spring="disable" damper="disable"'):
        text = arm(flag=flag).replace('<body name="b"', '<body name="b" gravcomp="1.3"')
        model, said = read(text)
        assert not said
        assert bool(model.fields) is (not flag)
        same_motion(text, model)


def test_limits_and_friction_of_tendons_go_with_constraints() -> None:
    for flag in ("", 'constraint="disable"'):
        text = arm(flag=flag).replace('<fixed name="band"', '<fixed name="band" range="0 1" frictionloss="1"')
        model, said = read(text)
        assert not said
        band = model.springs["band"]
        assert (band.friction, band.limits) == ((0.0, (-np.inf, np.inf)) if flag else (1.0, (0.0, 1.0)))
        same_motion(text, model)


COMPILER = {
    "alignfree": "true", "angle": "radian", "assetdir": "meshes", "autolimits": "true", "balanceinertia": "true",
    "boundinertia": "0.5", "boundmass": "7", "conflict": "error", "coordinate": "local", "discardvisual": "true",
    "eulerseq": "ZYX", "fitaabb": "true", "fusestatic": "true", "inertiafromgeom": "true", "inertiagrouprange": "0 2",
    "meshdir": "meshes", "passthrough": "none", "savecanonical": "true", "savecompiled": "true", "saveinertial": "true",
    "settotalmass": "9", "strippath": "true", "texturedir": "pictures", "usethread": "false",
}  # fmt: skip


@pytest.mark.parametrize("attribute", COMPILER)
def test_an_attribute_of_the_compiler(attribute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among them are those that change masses, angles, and what is fused: they are MuJoCo's own to resolve."""
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log about what it will not have for long
    extra = '<body name="weld"><geom size="0.1" contype="0" conaffinity="0"/></body></body></worldbody>'
    free = '<body pos="0 0 3"><freejoint/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" euler="0 0 30"/></body>'
    text = arm(compiler=f'{attribute}="{COMPILER[attribute]}"').replace("</body></worldbody>", extra)
    text = text.replace("</worldbody>", f"{free}</worldbody>")
    if attribute == "inertiagrouprange":
        text = text.replace('group="3"/></body>', 'group="3"/><geom size="0.05"/></body>')
    model, _ = read(text)
    found = errors(Beside.of_text(model, text), np.random.default_rng(0))
    assert max(found) < 1e-9, found
