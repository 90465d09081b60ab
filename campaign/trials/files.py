"""Mutated model files: a model or one of our errors, whatever the bytes, and soon."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from campaign.shrink import shrink
from campaign.trial import Log, Trial, said

_NASTY = (
    b"", b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-320", b"0", b"-1", b"0 0 0", b"1e30 1e30 1e30", b"&x;",
    b"\xff", b"<", b">", b'"', b"/>", b"<link/>", b"<joint/>", b"${x}", b"world", b"\x00", b"<!DOCTYPE a>", b"fixed",
    b"floating", b"planar", b"continuous", "é".encode(), b"]]>", b"<![CDATA[", b"<!--", b"root_joint", b"1e29", b"1_0",
    b"0x10", b"1e999", b"__model__", b"a::b", b"::", b"gearbox", b"ball", b"screw", b"universal", b"1.4", b"true",
    b"null", b"[]", b"{}", b"[[[[", b"1e400", b'"array"', b": ", b"- ", b"&a *a", b"weld", b"coupling",
    b"\xef\xbb\xbf", b"\xff\xfe", b"-0", b"1,5", b"9" * 400, b"a" * 300, b"mimic", b"prismatic",
    b"include", b"mujocoinclude", b"hinge", b"free", b"mesh", b"auto", b"1 2 3 4", b"hull",
)  # fmt: skip
_TOKEN = re.compile(rb'"[^"]*"|\'[^\']*\'|(?<=>)[^<>]+(?=<)')
_PLAIN = re.compile(rb'"[^"\n]*"|(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\[[^\[\]]*\]|(?<=: )[a-z]\w*')
"""What stands for something in JSON and YAML: texts, numbers, lists without lists, words."""
_TAG = re.compile(rb"<[^<>]*>")
_WHOLE = re.compile(rb"<(\w+)[^<>]*>[^<>]*</\1>|<[^<>/]*/>")
"""Elements with nothing but text inside: without one, or with one twice, the file is still well formed."""

_PENDULUM = b"""<?xml version="1.0"?>
<robot name="p"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 -0.5" rpy="0 0 0"/><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial><visual><geometry><box size="1 1 1"/>
</geometry></visual></link><joint name="pin" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="10" velocity="2"/><dynamics damping="0.1" friction="0.2"/></joint></robot>"""
_MIMIC = b"""<robot name="g"><link name="a"/><link name="b"><inertial><mass value="2"/><inertia ixx="1" ixy="0.1"
ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><link name="c"><inertial><mass value="3"/>
<inertia ixx="1" ixy="0" ixz="0"
iyy="1" iyz="0" izz="1"/></inertial></link><link name="d"/><joint name="x" type="continuous"><origin xyz="0 0 1"
rpy="0 1.5708 0"/><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint><joint name="y" type="prismatic"><parent
link="b"/><child link="c"/><axis xyz="1 0 0"/><limit lower="0" upper="1" effort="1" velocity="1"/><mimic joint="x"
multiplier="-2" offset="0.1"/></joint><joint name="z" type="fixed"><parent link="c"/><child link="d"/></joint>
</robot>"""

_LOOP = b"""<sdf version="1.9"><model name="m" canonical_link="a"><pose>0 0 1 0 0 0</pose><link name="a">
<pose>1 0 0 0 0 0.5</pose><inertial><pose>0 0 0.1 0 0 0</pose><mass>2</mass><inertia><ixx>0.3</ixx><iyy>0.4</iyy>
<izz>0.5</izz></inertia></inertial><visual name="v"><geometry><box><size>1 1 1</size></box></geometry></visual></link>
<link name="b"><pose relative_to="a">0 0 1 0 0 0</pose><inertial><mass>1</mass></inertial></link><link name="c">
<pose relative_to="j">0 1 0 0 0 0</pose><inertial><mass>1</mass></inertial></link><frame name="f" attached_to="b">
<pose>0 0 5 0 0 0</pose></frame><joint name="i" type="revolute"><parent>world</parent><child>a</child><axis>
<xyz expressed_in="__model__">0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit><dynamics><damping>0.1
</damping><spring_stiffness>3</spring_stiffness></dynamics></axis></joint><joint name="j" type="universal">
<pose relative_to="a">0 0 0.5 0 0 0</pose><parent>a</parent><child>c</child><axis><xyz>1 0 0</xyz></axis><axis2>
<xyz>0 1 0</xyz></axis2></joint><joint name="k" type="ball"><parent>a</parent><child>f</child></joint>
<joint name="l" type="prismatic"><parent>c</parent><child>b</child><axis><xyz>1 0 0</xyz></axis></joint>
</model></sdf>"""
_GEARED = b"""<sdf version="1.6"><world name="w"><gravity>0 0 -9.8</gravity><model name="g"><link name="base"/>
<link name="motor"><inertial><mass>1</mass></inertial></link><link name="wheel"/><joint name="m" type="revolute">
<parent>base</parent><child>motor</child><axis><xyz>0 0 1</xyz><use_parent_model_frame>1</use_parent_model_frame>
</axis></joint><joint name="w" type="screw"><thread_pitch>-5</thread_pitch><parent>base</parent><child>wheel</child>
<axis><xyz>0 0 1</xyz></axis></joint><joint name="gear" type="gearbox"><parent>motor</parent><child>wheel</child>
<gearbox_ratio>0.1</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body><axis><xyz>0 0 1</xyz></axis>
<axis2><xyz>0 0 -1</xyz></axis2></joint><model name="n"><pose>1 0 0 0 0 0</pose><link name="x"/></model>
<joint name="h" type="fixed"><parent>base</parent><child>n::x</child></joint></model><model name="s"><static>1
</static><link name="floor"/></model></world></sdf>"""


_HOPPER = b"""<mujoco model="h"><compiler angle="degree" autolimits="true"/><option gravity="0 0 -9.8"/><default>
<joint damping="0.3" armature="0.02"/><default class="s"><joint stiffness="4" springref="20"/></default></default>
<asset><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody><camera name="eye" pos="1 2 3"/><body
name="hull" pos="0.1 0.2 1" euler="10 20 30"><freejoint name="root"/><geom type="box" size="0.2 0.1 0.05"/><site
name="imu" pos="0.1 0 0"/><body name="leg" pos="0.2 0 0"><joint name="hip" axis="1 0 0.2" ref="15" range="-90 90"/>
<joint name="slide" type="slide" axis="0 0 1" class="s"/><geom type="capsule" size="0.03" fromto="0 0 0 0 0.02 -0.3"/>
<body name="foot" pos="0 0 -0.3"><joint name="ankle" type="ball"/><inertial pos="0 0 0.1" mass="1"
fullinertia="0.1 0.1 0.1 0.01 0 0"/><geom type="mesh" mesh="t"/></body></body></body></worldbody><tendon>
<fixed name="band" stiffness="5" springlength="0 0.1"><joint joint="hip" coef="0.7"/><joint joint="slide" coef="-1"/>
</fixed></tendon><actuator><motor name="m" joint="hip" gear="3" ctrlrange="-1 1"/><position joint="slide" kp="20"
forcerange="-8 8"/><general tendon="band" dyntype="filter" dynprm="0.2" biastype="affine" biasprm="0 -1 0"/></actuator>
<sensor><gyro site="imu"/><jointpos joint="hip"/><framepos objtype="xbody" objname="leg" reftype="site" refname="imu"/>
</sensor><keyframe><key name="k" qpos="0 0 1 1 0 0 0 0 0 1 0 0 0"/></keyframe></mujoco>"""
_CLOSED = b"""<mujoco><worldbody><body name="a"><joint name="a" axis="0 1 0"/><geom type="capsule" size="0.02"
fromto="0 0 0 0.3 0 0"/><body name="b" pos="0.3 0 0"><joint name="b" axis="0 1 0"/><geom size="0.02" pos="0 0 0.4"/>
</body></body><body name="c" pos="0.5 0 0"><joint name="c" axis="0 1 0"/><geom size="0.05" pos="0 0 0.4"/></body>
<replicate count="3" offset="0 1 0"><body><joint type="slide"/><geom size="0.1"/></body></replicate></worldbody>
<equality><connect name="pin" body1="b" body2="c" anchor="0 0 0.4"/><weld body1="a" body2="c" active="false"/>
<joint joint1="a" joint2="c" polycoef="0 1 0.2"/></equality><contact><exclude body1="a" body2="c"/></contact>
</mujoco>"""


@cache
def seeds(form: str) -> tuple[bytes, ...]:
    """Good files of a format, the small ones first: most mutants are made from these."""
    from tests.files.recording import robot_files

    if form == "urdf":
        found = [file.read_bytes() for file in robot_files() if file.stat().st_size < 20_000]
        return (_PENDULUM, _MIMIC, *sorted(found, key=len))
    if form == "sdf":
        found = [file.read_bytes() for file in robot_files(".sdf")]
        return (_LOOP, _GEARED, *sorted(found, key=len))
    if form == "mjcf":
        return (_HOPPER, _CLOSED)
    if form == "native":
        return _natives()
    if form == "loops":
        return (_SIDE, _SIDE_JSON)
    raise KeyError(form)


_SIDE = b"""# loops of the robot g
closed_loop: [['b', 'a']]
type: ['3d']
name_mot: ['x']
closures:
  - name: pin
    a: c
    b: world
    placement_a: {xyz: [0, 0, 1], rpy: [0, 0.5, 0]}
    type: revolute
    axis: [0, 1, 0]
couplings:
  - name: gear
    terms: {x: 1, y: -5}
    offset: 0.5
"""
_SIDE_JSON = b""" {"closed_loop": [["b", "a"]], "type": ["6d"], "joint_name": ["x"], "joint_type": ["SPHERICAL"]}"""


@cache
def _natives() -> tuple[bytes, ...]:
    """Native files as we write them: a small arm, and a mechanism with a loop, a gear, shapes and limits."""
    import tempfile
    from pathlib import Path

    from linkwise.samples import planar_arm

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for k, model in enumerate((planar_arm(2), lw.loads(_LOOP), lw.loads(_MIMIC).with_parameters(["b.mass"]))):
            path = Path(folder) / f"{k}.lw.json"
            model.save(path)
            found.append(path.read_bytes())
    return tuple(found)


FORMATS = ("urdf", "sdf", "mjcf", "native", "loops")
"""Formats that `loads` reads; a new one needs its seeds above, and is then mutated like the others."""


def mutant(rng: np.random.Generator) -> bytes:
    """A file with a few things wrong."""
    known = seeds(FORMATS[rng.integers(len(FORMATS))])
    content = known[rng.integers(2)] if rng.random() < 0.9 else known[rng.integers(len(known))]
    for _ in range(1 + rng.integers(4)):
        content = mutated(content, rng)
    return content


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one thing wrong."""
    at = int(rng.integers(len(content) + 1))
    nasty = _NASTY[rng.integers(len(_NASTY))]
    kind = rng.integers(10)
    if kind < 4:
        tokens = list((_TOKEN if content.lstrip()[:1] == b"<" else _PLAIN).finditer(content))
        if tokens:
            one = tokens[rng.integers(len(tokens))]
            quoted = one.group()[:1] in b"\"'"
            other = tokens[rng.integers(len(tokens))].group() if kind == 3 else b'"' + nasty + b'"' if quoted else nasty
            return content[: one.start()] + other + content[one.end() :]
    if kind < 7:
        elements = list((_WHOLE if rng.random() < 0.7 else _TAG).finditer(content))
        if elements:
            one, two = (elements[rng.integers(len(elements))] for _ in range(2))
            if kind == 4:
                return content[: one.start()] + content[one.end() :]
            if kind == 5:
                return content[: one.start()] + two.group() + content[one.start() :]
            low, high = sorted((one.start(), two.end()))
            return content[:high] + content[low:high] + content[high:]
    if kind == 7:
        return content[:at] + content[at + int(rng.integers(1, 200)) :]
    if kind == 8 and content:
        raw = bytearray(content)
        raw[at % len(raw)] ^= 1 << int(rng.integers(8))
        return bytes(raw)
    return content[:at] + nasty + content[at:]


def check(content: bytes, floating: bool = False, mimic: bool = True) -> lw.Model | None:
    """Read it: a sound model, or None where it is refused; anything else is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.ModelWarning)
        try:
            model = _read(content, floating, mimic)
        except lw.LinkwiseError as refusal:
            assert str(refusal).strip(), "an error without a message"
            if isinstance(refusal, lw.errors.ModelFileError):
                assert refusal.file, "a refusal without the file"
            return None
    q = model.neutral()
    assert q.shape == (model.nq,)
    assert np.isfinite(q).all(), "the neutral configuration is not finite"
    assert all(np.isfinite(part.mass) for body in model.bodies for part in body.parts), "a mass is not finite"
    assert all(parent < k for k, parent in enumerate(model.parents)), "parents do not come first"
    return model


def _read(content: bytes, floating: bool, mimic: bool) -> lw.Model:
    """A model file; what begins with neither a tag nor a brace in its first column is a side file of a robot."""
    if content[:1] == b"{":
        return lw.loads(content)
    if content.lstrip()[:1] == b"<" or not content.strip():
        return lw.loads(content, floating=floating, mimic=mimic)
    import os
    import tempfile
    from pathlib import Path

    side = Path(tempfile.gettempdir()) / f"linkwise_campaign_{os.getpid()}.yaml"
    try:
        side.write_bytes(content)
        return lw.loads(_MIMIC, floating=floating, mimic=mimic, loops=side)
    finally:
        side.unlink(missing_ok=True)


def _options(rng: np.random.Generator) -> tuple[bool, bool]:
    return bool(rng.random() < 0.3), bool(rng.random() < 0.8)


class Files(Trial):
    """Mutants of model files."""

    name, unit, target, chunk = "files", "mutated model files", 10**7, 10**5
    share, patience = 3.0, 20.0

    def _draw(self, seed: int, number: int) -> tuple[bytes, tuple[bool, bool]]:
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        return mutant(rng), _options(rng)

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Read and read."""
        failed = 0
        for number in log.numbers(numbers):
            content, options = self._draw(seed, number)
            try:
                check(content, *options)
            except Exception as error:
                log.fail(number, said(error))
                failed += 1
                if failed >= 5:
                    return

    def shrunk(self, seed: int, number: int, seconds: float) -> str:
        """The shortest text that fails in the same way."""
        content, options = self._draw(seed, number)

        def simpler(text: bytes) -> Iterator[bytes]:
            size = len(text) // 2
            while size:
                for start in range(0, len(text), size):
                    yield text[:start] + text[start + size :]
                size //= 2

        def run(text: bytes) -> Any:
            return check(text, *options)

        small, failure = shrink(content, simpler, run, seconds)
        return (
            f"def test_file() -> None:\n"
            f'    """{failure.splitlines()[0][:100] if failure else "does not fail alone"}"""\n'
            f"    from campaign.trials.files import check\n\n"
            f"    check({small!r}, floating={options[0]}, mimic={options[1]})\n"
        )
