"""A mechanism as MJCF.

Joints of several freedoms become several joints of one body, which MuJoCo moves one after the other. A ball turns with
the axes of its body there; one whose frame is turned against the body gets a body of its own, to which the other is
welded, and so does a free joint. What closes loops becomes equality constraints, which MuJoCo meets softly: the list of
losses says so.
"""

from __future__ import annotations

import math
import os
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import ModelError
from linkwise.files.bodies import unused
from linkwise.files.mjcf.actuators_and_sensors import KINDS
from linkwise.files.writing.output import (
    Losses,
    depth_first,
    element,
    quaternion,
    sayable,
    text_of,
    vector,
    write_whole,
)
from linkwise.joints import SeriesJoint
from linkwise.joints.directions import turn_z_to
from linkwise.mechanism import closures
from linkwise.mechanism.actuation import (
    SENSOR_KINDS,
    Actuator,
    FrameTransmission,
    JointTransmission,
    PathTransmission,
    Sensor,
    Spring,
)
from linkwise.mechanism.bodies_and_joints import Body, JointInstance, Pose, is_identity, product
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from linkwise.mechanism.description import FIRST_PAIR_BIT, Geometry, JointLimits, NamedPair
from linkwise.mechanism.fields import GravityCompensation
from linkwise.mechanism.materials import Material
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.muscles import HillMuscle
from linkwise.mechanism.placement import inverse_pose
from linkwise.mechanism.wrapping import Wrap
from linkwise.spatial import quaternions
from linkwise.spatial.vectors import Vec

_LEAST = 1e-14  # kg and kg m²: MuJoCo asks for more than 1e-15 of every body that moves
_TAGS = {"turn": "hinge", "slide": "slide", "ball": "ball"}
_UNWRITTEN = ("tendon_drive_force", "magnetometer", "touch", "kinetic_energy", "potential_energy")
_SENSORS = {kind: word for word, kind in KINDS.items() if kind not in _UNWRITTEN and "subtree" not in kind}
_SENSORS["joint_drive_force"] = "jointactuatorfrc"  # MuJoCo's own word for it is another than the format's


def write_mjcf(mechanism: Mechanism, path: str | os.PathLike[str]) -> list[str]:
    """Write the file; see :meth:`linkwise.Model.save`."""
    text, lost = mjcf_text(mechanism)
    write_whole(Path(path), text.encode())
    return lost


def mjcf_text(mechanism: Mechanism) -> tuple[str, list[str]]:
    """The file, and what was lost."""
    if any(body.flexible is not None for body in mechanism.bodies):
        raise ModelError("MJCF has no flexible bodies like these", do='model.save("name.lw.json")')
    lost = Losses()
    writer = _Writer(sayable(mechanism, "MJCF", lost), lost)
    writer.write()
    return text_of(writer.root), list(lost)


@dataclass
class _Writer:
    mechanism: Mechanism
    lost: Losses

    def __post_init__(self) -> None:
        m = self.mechanism
        self.root = ET.Element("mujoco", model=m.name)
        element(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        option = element(self.root, "option", gravity=vector(m.gravity))
        element(option, "flag", contact="disable")
        self.assets = element(self.root, "asset")
        self.world = element(self.root, "worldbody")
        self.contact = ET.Element("contact")
        self.tendons = ET.Element("tendon")
        self.equality = ET.Element("equality")
        self.actuators = ET.Element("actuator")
        self.sensors = ET.Element("sensor")
        self.keys = ET.Element("keyframe")
        self.meshes: dict[tuple[str, tuple[float, ...]], str] = {}
        self.at: dict[int, ET.Element] = {-1: self.world}
        self.sites: dict[str, str] = {}
        self.unread: list[str] = []
        self.steps: dict[str, list[tuple[str, int]]] = {}  # the joints that each of ours became, and their freedoms
        self.taken = {
            "body": {"world", *(body.name for body in m.bodies)},
            "joint": {joint.name for joint in m.joints},
            "site": {frame.name for frame in m.frames},
            "equality": {closure.name for closure in m.closures},
            "tendon": set(),
            "geom": set(),
        }
        self.frames = frozenset(self.taken["site"])
        self.pairs: dict[int, list[str]] = {}  # bits of pairs, and the geoms that share them
        self.named: dict[int, NamedPair] = {}
        self.wraps: dict[tuple[str, str, float], str] = {}
        self.springs: dict[str, str] = {}

    def unused(self, kind: str, wanted: str) -> str:
        """A name that nothing else of this kind has."""
        return unused(wanted, self.taken[kind])

    def write(self) -> None:
        m = self.mechanism
        self.shapes(self.world, m.base_visuals, m._base_collisions)
        for body, joint in zip(m.bodies, m.joints, strict=True):
            self.body(body, joint)
        for frame in m.frames:
            self.site(frame.name, frame.body, frame.placement)
        for closure in m.closures:
            self.close(closure)
        for actuator in m.actuators:
            self.drive(actuator)
        outside = [each.name for each in m.actuators if not isinstance(each.transmission, JointTransmission)]
        if outside and np.isfinite([limit.effort for joint in m.joints for limit in joint.limits]).any():
            self.lost.add(f"that effort limits are of drives at joints: in MuJoCo they hold for {outside[0]!r} too")
        for spring in m.springs:
            self.spring(spring)
        self.compensate()
        for sensor in m.sensors:
            self.sensor(sensor)
        for a, b in m._contact_excludes:
            self.exclude(a, b)
        for bit, geoms in self.pairs.items():
            if len(geoms) == 2:
                more = _friction(self.named[bit].material, 5) if bit in self.named else {}
                element(self.contact, "pair", geom1=geoms[0], geom2=geoms[1], **more)
        self.keyframes()
        if depth_first(m) != list(range(len(m.bodies))):
            self.lost.add("the order of the joints: MuJoCo goes through one branch after the other")
        for group in (self.contact, self.tendons, self.equality, self.actuators, self.sensors, self.keys):
            if len(group):
                self.root.append(group)
        if not len(self.assets):
            self.root.remove(self.assets)
        if self.unread:
            rest = f" and {len(self.unread) - 1} more" if len(self.unread) > 1 else ""
            self.lost.add(f"meshes ({self.unread[0]}{rest}): MuJoCo reads STL, OBJ and MSH, by their paths")
        if m._parameter_names:
            self.lost.add(f"run-time parameters: {', '.join(m._parameter_names)}")

    def exclude(self, link: str, other: str) -> None:
        """Links that are welded together are one body, and so are those fixed to the world."""
        bodies = [self.mechanism.frame(name).body for name in (link, other)]
        if bodies[0] != bodies[1]:
            for k in bodies:
                body = self.mechanism.bodies[k] if k >= 0 else None
                others = {shape.name for shape in body.collisions} - {link, other} if body is not None else set()
                if others:
                    self.lost.add(
                        f"that {link!r} and {other!r} alone do not touch: here {sorted(others)[0]!r} is one body"
                    )
            names = ("world" if k < 0 else self.mechanism.bodies[k].name for k in bodies)
            element(self.contact, "exclude", **dict(zip(("body1", "body2"), names, strict=True)))

    # -- bodies

    def body(self, body: Body, joint: JointInstance) -> None:
        frame, placement = np.array(body.joint_frame), np.array(body.placement)
        turned = not np.array_equal(frame[:3, :3], np.eye(3))
        kinds = {each.kind for each in joint.type.series() or ()}
        if ("free" in kinds and not is_identity(body.joint_frame)) or ("ball" in kinds and turned):
            name = self.unused("body", f"{body.name}/{joint.name}")
            carrier = element(self.at[body.parent], "body", name=name, **_place(placement))
            self.joint(carrier, body, joint, np.eye(4))
            at = element(carrier, "body", name=body.name, **_place(inverse_pose(frame)))
        else:
            at = element(self.at[body.parent], "body", name=body.name, **_place(placement @ inverse_pose(frame)))
            self.joint(at, body, joint, frame)
        self.at[body.index] = at
        self.inertial(at, body)
        self.shapes(at, body.visuals, body.collisions)

    def inertial(self, at: ET.Element, body: Body) -> None:
        """Of all parts together: MuJoCo asks for mass and positive moments of every body that moves."""
        mass, com, inertia = body.mass, np.nan_to_num(body.com), (body.inertia + body.inertia.T) / 2
        if mass < _LEAST:
            mass = _LEAST
            self.lost.add(f"that {body.name!r} has no mass: MuJoCo asks for some, so that {_LEAST:g} kg were added")
        moments = np.linalg.eigvalsh(inertia)
        if moments[0] < _LEAST:
            inertia += (_LEAST - moments[0]) * np.eye(3)
            self.lost.add(f"the inertia of {body.name!r}: MuJoCo asks for positive moments, so that some was added")
        excess = moments[2] - moments[0] - moments[1]
        if excess > -1e-12 * moments[2]:  # a flat body, or one that cannot be: rounding decides what MuJoCo refuses
            inertia += (max(excess, 0.0) + 1e-12 * moments[2]) * np.eye(3)
            if excess > 1e-12 * moments[2]:
                self.lost.add(
                    f"the inertia of {body.name!r}, which no body can have: MuJoCo refuses it, some was added"
                )
        six = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        element(at, "inertial", pos=vector(com), mass=vector([mass]), fullinertia=vector(six))

    def shapes(self, at: ET.Element, visuals: Sequence[Geometry], collisions: Sequence[Geometry]) -> None:
        for shape in visuals:
            self.geom(at, replace(shape, contype=0, conaffinity=0), "1")
        for shape in collisions:
            self.geom(at, shape, "3")

    def geom(self, at: ET.Element, shape: Geometry, group: str) -> None:
        more: dict[str, str] = {}
        if shape.kind == "mesh":
            if shape.mesh is None or not shape.mesh.lower().endswith((".stl", ".obj", ".msh")):
                self.unread.append(str(shape.mesh))
                return
            if shape.mesh.startswith(("package://", "model://")):
                self.unread.append(shape.mesh)
                return
            key = (shape.mesh, shape.scale)
            if key not in self.meshes:
                self.meshes[key] = f"mesh{len(self.meshes)}"
                element(self.assets, "mesh", name=self.meshes[key], file=shape.mesh, scale=vector(shape.scale))
            more = {"type": "mesh", "mesh": self.meshes[key]}
        elif shape.kind == "box":
            more = {"type": "box", "size": vector(x / 2 for x in shape.size)}
        elif shape.kind in ("sphere", "ellipsoid"):
            more = {"type": shape.kind, "size": vector(shape.size)}
        elif shape.kind == "plane":
            more = {"type": "plane", "size": "0 0 1"}
        elif shape.kind == "convex":
            name = f"mesh{len(self.meshes)}"
            self.meshes[name, shape.scale] = name
            element(self.assets, "mesh", name=name, vertex=vector(x for each in shape.vertices for x in each))
            more = {"type": "mesh", "mesh": name}
        elif shape.kind in ("heightfield", "terrain"):
            self.lost.add(f"the {shape.kind} of {shape.name!r}")
            return
        else:
            more = {"type": shape.kind, "size": vector([shape.size[0], shape.size[1] / 2])}
        place = _place(np.array(shape.placement))
        own = [bits & ((1 << FIRST_PAIR_BIT) - 1) for bits in (shape.contype, shape.conaffinity)]
        named = (shape.contype | shape.conaffinity) >> FIRST_PAIR_BIT
        if named:
            more["name"] = self.unused("geom", shape.name)
            for bit in (k + FIRST_PAIR_BIT for k in range(named.bit_length()) if named >> k & 1):
                self.pairs.setdefault(bit, []).append(more["name"])
            self.named |= {pair.bit: pair for pair in shape.pairs}
        if shape.material is not None:
            more |= _friction(shape.material, 3) | {"priority": str(shape.material.priority)}
            if shape.material.combining != "larger":
                self.lost.add("how frictions combine: of two surfaces the larger counts in MuJoCo")
            if not shape.material.is_isotropic:
                self.lost.add(f"friction of {shape.name!r} across: in MuJoCo it is that along, in all directions")
        bits = dict(zip(("contype", "conaffinity"), map(str, own), strict=True))
        element(at, "geom", **bits, group=group, **more, **place)

    # -- joints

    def joint(self, at: ET.Element, body: Body, joint: JointInstance, frame: FloatArray) -> None:
        R, p = frame[:3, :3], frame[:3, 3]
        self.steps[joint.name] = []
        series = joint.type.series() or ()
        if body.parent < 0 and any(each.kind == "free" for each in series):
            element(at, "freejoint", name=joint.name)
            if not is_identity(body.placement):
                self.lost.add(f"the zero position of joint {joint.name!r}: free joints of MJCF count from the world")
            if any(joint.damping) or any(joint.friction) or any(joint.armature):
                self.lost.add(f"damping, friction and armature of joint {joint.name!r}")
            return
        for tag, axis, freedom in (step for each in series if each.ratio is None for step in self.each(joint, each)):
            known = self.steps[joint.name]
            name = self.unused("joint", f"{joint.name}/{len(known) + 1}") if known else joint.name
            known.append((name, freedom))
            direction = None if axis is None else vector(R @ np.array(axis))
            self.details(element(at, "joint", name=name, type=tag, pos=vector(p), axis=direction), joint, freedom)
        for each in series:
            if each.ratio is not None:
                name, tag = self.unused("joint", f"{joint.name}/{each.kind}"), _TAGS[each.kind]
                element(at, "joint", name=name, type=tag, pos=vector(p), axis=vector(R @ np.array(each.axis)))
                law = f"0 {vector([each.ratio])} 0 0 0"
                element(self.equality, "joint", joint1=name, joint2=joint.name, polycoef=law)
                self.lost.add(f"the screw {joint.name!r}: a turn and a slide, coupled softly")
        if joint.mimic is not None:
            law = f"{vector([joint.mimic.offset, joint.mimic.multiplier])} 0 0 0"
            element(self.equality, "joint", joint1=joint.name, joint2=joint.mimic.joint, polycoef=law)
            self.lost.add(f"joint {joint.name!r} follows {joint.mimic.joint!r} softly, with a coordinate of its own")

    def each(self, joint: JointInstance, one: SeriesJoint) -> list[tuple[str, ArrayLike | None, int]]:
        """One of a joint's series: of a plane or a body without constraints slides, then a turn or a ball."""
        if one.kind in _TAGS:
            return [(_TAGS[one.kind], one.axis if one.single else None, one.freedom)]
        self.lost.add(f"the coordinates of joint {joint.name!r}: slides, then turns")
        at = slice(3, 6) if one.kind == "free" else slice(1, 3)
        turning = [what for what in ("armature", "friction") if any(getattr(joint, what)[at])]
        turning += ["damping"] if len(set(joint.damping[at])) > 1 else []
        turning += ["effort limits"] if any(math.isfinite(each.effort) for each in joint.limits[at]) else []
        if turning:
            self.lost.add(f"that the {', '.join(turning)} of joint {joint.name!r} turn with the body")
        if one.kind == "free":
            return [*(("slide", axis, 3 + k) for k, axis in enumerate(np.eye(3).tolist())), ("ball", None, 0)]
        x, y, z = turn_z_to(one.axis).T
        return [("slide", x, 1), ("slide", y, 2), ("hinge", z, 0)]

    def details(self, at: ET.Element, joint: JointInstance, freedom: int) -> None:
        limits = joint.limits[freedom] if joint.limits else JointLimits()
        self.bounds(at, "range", (limits.lower, limits.upper), f"the limits of joint {joint.name!r}")
        if at.get("type") != "ball":
            effort = (-limits.effort, limits.effort)
            self.bounds(at, "actuatorfrcrange", effort, f"the effort limits of joint {joint.name!r}")
        elif math.isfinite(limits.effort):
            self.lost.add(f"the effort limits of joint {joint.name!r}")
        if math.isfinite(limits.velocity):
            self.lost.add("limits of velocity")
        for what, tag in (("armature", "armature"), ("damping", "damping"), ("friction", "frictionloss")):
            values = getattr(joint, what)
            if at.get("type") == "ball" and len(set(values[freedom : freedom + 3])) > 1:
                self.lost.add(f"the {what} of joint {joint.name!r}: a ball has one for all directions")
            if values and values[freedom]:
                at.set(tag, vector([values[freedom]]))
        if joint.stiffness and joint.stiffness[freedom]:
            at.set("stiffness", vector([joint.stiffness[freedom]]))
            at.set("springref", vector([joint.rest[freedom]]))

    def bounds(self, at: ET.Element, tag: str, bounds: tuple[float, float], what: str) -> None:
        """Write a range where there is one; MuJoCo takes one without room for none."""
        if not any(map(math.isfinite, bounds)):
            return
        if bounds[0] < bounds[1]:
            at.set(tag, vector(bounds))
        else:
            self.lost.add(f"{what}, between which there is no room")

    # -- places, constraints, drives, sensors

    def site(self, name: str, body: int, X: Pose) -> str:
        if name not in self.sites:
            self.sites[name] = name if name in self.frames else self.unused("site", name)
            element(self.at[body], "site", name=self.sites[name], **_place(np.array(X)))
        return self.sites[name]

    def close(self, closure: ClosureInstance | RelationInstance) -> None:
        written = self.loop(closure) if isinstance(closure, ClosureInstance) else self.coupling(closure)
        how = " is met softly" if written else f" ({closure.type.kind})"
        self.lost.add(f"closure {closure.name!r}{how}")
        if isinstance(closure, ClosureInstance) and (closure.is_active or closure.limits):
            self.lost.add(f"springs, damping, friction and limits along closure {closure.name!r}")

    def loop(self, closure: ClosureInstance) -> bool:
        """Write a closure between two frames, if there is an equality for it."""
        ends = self.sites_of(closure, "", np.eye(4))
        series = closure.type.joint.series() if isinstance(closure.type, closures.JointClosure) else None
        kinds = None if series is None else [each.kind for each in series]
        if series is None or kinds not in ([], ["ball"], ["turn"]):
            return False
        element(self.equality, "connect" if series else "weld", name=closure.name, **ends)
        if kinds == ["turn"]:
            # Two points of the axis, held together: five equations and one that follows from them.
            out = np.eye(4)
            out[:3, 3] = series[0].axis
            second = self.unused("equality", f"{closure.name}/2")
            element(self.equality, "connect", name=second, **self.sites_of(closure, "2", out))
        return True

    def sites_of(self, closure: ClosureInstance, suffix: str, X: FloatArray) -> dict[str, str]:
        """The two places that a closure holds together, at X in each of its frames."""
        found = {}
        for k, (body, placement, _) in enumerate(closure.sides):
            found[f"site{k + 1}"] = name = self.unused("site", f"{closure.name}/{'ab'[k]}{suffix}")
            element(self.at[body], "site", name=name, **_place(np.array(product(placement, X))))
        return found

    def coupling(self, relation: RelationInstance) -> bool:
        """Write a relation between joints, if there is an equality for it."""
        kind = relation.type
        if not isinstance(kind, closures.Coupling) or len(kind.joints) > 2:
            return False
        c = kind.coefficients
        law = [kind.offset / c[0], -c[1] / c[0] if len(c) > 1 else 0.0, 0.0, 0.0, 0.0]
        other = kind.joints[1] if len(c) > 1 else None
        element(self.equality, "joint", name=relation.name, joint1=kind.joints[0], joint2=other, polycoef=vector(law))
        return True

    def way(self, each: Actuator | Spring) -> dict[str, str] | None:
        """The attributes of a transmission; several joints make a tendon. None where there is no such way."""
        way = each.transmission
        if isinstance(way, PathTransmission):
            return self.path(each.name, way)
        if not isinstance(way, JointTransmission):
            return {"site": self.site_of(way.frame), "gear": vector([*way.wrench[3:], *way.wrench[:3]])}
        if any(joint not in self.steps for joint in way.joints):  # one that closes a loop: no equality has a coordinate
            return None
        (joint, gear), *others = way.gears
        if not others and isinstance(each, Actuator) and len(self.steps[joint]) == 1:
            return {"joint": joint, "gear": vector(gear)}
        every = [one for joint, _ in way.gears for one in self.mechanism.joints[joint].type.series() or ()]
        if any(one.ratio is None and not one.single for one in every):
            return None
        tendon = element(self.tendons, "fixed", name=self.unused("tendon", f"{each.name}/tendon"))
        for joint, gear in way.gears:
            for name, freedom in self.steps[joint]:
                element(tendon, "joint", joint=name, coef=vector(gear[freedom : freedom + 1]))
        return {"tendon": tendon.attrib["name"]}

    def path(self, name: str, way: PathTransmission) -> dict[str, str]:
        """A tendon through space: its branches, with a pulley before each."""
        tendon = element(self.tendons, "spatial", name=self.unused("tendon", f"{name}/tendon"))
        for stops, factor in way.paths:
            if len(way.paths) > 1 or factor != 1.0:
                element(tendon, "pulley", divisor=vector([1.0 / factor]))
            for stop in stops:
                if isinstance(stop, str):
                    element(tendon, "site", site=self.site_of(stop))
                else:
                    side = None if stop.side is None else self.site_of(stop.side)
                    element(tendon, "geom", geom=self.wrapped(stop), sidesite=side)
        return {"tendon": tendon.attrib["name"]}

    def site_of(self, frame: str) -> str:
        """The name of the site at a frame."""
        place = self.mechanism.frame(frame)
        return self.site(frame, place.body, place.placement)

    def wrapped(self, wrap: Wrap) -> str:
        """The name of a shape for tendons alone."""
        key = (wrap.frame, wrap.shape, wrap.radius)
        if key not in self.wraps:
            self.wraps[key] = name = f"{wrap.frame}/{len(self.wraps)}"
            place = self.mechanism.frame(wrap.frame)
            size = vector([wrap.radius] if wrap.shape == "sphere" else [wrap.radius, wrap.radius])
            more = {"type": wrap.shape, "size": size, "contype": "0", "conaffinity": "0", "mass": "0", "group": "4"}
            element(self.at[place.body], "geom", name=name, **more, **_place(np.array(place.placement)))
        return self.wraps[key]

    def drive(self, actuator: Actuator) -> None:
        more = self.way(actuator)
        if more is None:
            self.lost.add(f"actuator {actuator.name!r}")
            return
        if isinstance(actuator.muscle, HillMuscle):
            self.lost.add(f"actuator {actuator.name!r}: MJCF has no Hill muscle")
            return
        gain: Sequence[float] = actuator.gain
        if actuator.muscle is not None:
            m = actuator.muscle
            gain = [*m.range, m.force, 1.0, m.l_min, m.l_max, m.v_max, m.passive, m.lengthening]
            more |= {"gaintype": "muscle", "biastype": "muscle", "biasprm": vector(gain)}
            more |= {"lengthrange": vector(m.lengths)}
        if any(actuator.gain[1:]):
            more |= {"gaintype": "affine"}
        if any(actuator.bias):
            more |= {"biastype": "affine", "biasprm": vector(actuator.bias)}
        ranges = [("ctrlrange", actuator.control_range), ("forcerange", actuator.force_range)]
        if actuator.activation is not None:
            numbers = [actuator.activation.time_constant]
            if actuator.activation.kind == "muscle":
                numbers += [actuator.activation.release_time, actuator.activation.smoothing]
            more |= {"dyntype": actuator.activation.kind, "dynprm": vector(numbers)}
            ranges.append(("actrange", actuator.activation.range))
        at = element(self.actuators, "general", name=actuator.name, gainprm=vector(gain), **more)
        for tag, bounds in ranges:
            self.bounds(at, tag, bounds, f"the limits of actuator {actuator.name!r}")

    def spring(self, spring: Spring) -> None:
        if isinstance(spring.transmission, FrameTransmission) or self.way(spring) is None:
            self.lost.add(f"spring {spring.name!r}")
            return
        tendon = self.tendons[-1]
        tendon.set("stiffness", vector([spring.stiffness]))
        tendon.set("damping", vector([spring.damping]))
        tendon.set("frictionloss", vector([spring.friction]))
        self.bounds(tendon, "range", spring.limits, f"the limits of spring {spring.name!r}")
        self.springs[spring.name] = tendon.attrib["name"]
        low, high = spring.rest
        if low == high == -1.0:  # a word of the format: the length in the reference configuration
            low = high = math.nextafter(-1.0, -2.0)
        tendon.set("springlength", vector([low, high]))

    def compensate(self) -> None:
        """Write compensation of gravity where it acts at the mass centres of whole bodies."""
        for body in self.mechanism.bodies:
            own = [f for f in self.mechanism.fields if self.mechanism.frame(f.frame).body == body.index]
            held = [f for f in own if isinstance(f, GravityCompensation)]
            for f in own:
                if f not in held:
                    self.lost.add(f"field {f.name!r}: MJCF has one fluid for all")
            total = sum(f.mass for f in held)
            if not total:
                continue
            points = [np.array(self.mechanism.frame(f.frame).placement)[:3, 3] for f in held]
            centre = sum(f.mass * point for f, point in zip(held, points, strict=True)) / total
            if body.mass > 0.0 and np.abs(centre - body.com).max() < 1e-9:
                self.at[body.index].set("gravcomp", vector([total / body.mass]))
            else:
                for f in held:
                    self.lost.add(f"field {f.name!r}: in MuJoCo it acts at the mass centre")

    def sensor(self, sensor: Sensor) -> None:
        if sensor.kind not in _SENSORS:
            self.lost.add(f"sensor {sensor.name!r} ({sensor.kind})")
            return
        of, tag = SENSOR_KINDS[sensor.kind][0], _SENSORS[sensor.kind]
        if of == "joint" and sensor.target not in self.steps:
            self.lost.add(f"sensor {sensor.name!r} of closure {sensor.target!r}")
            return
        more: dict[str, str] = {}
        if of == "spring" and sensor.target not in self.springs:
            self.lost.add(f"sensor {sensor.name!r} ({sensor.kind})")
            return
        if of == "spring":
            more["tendon"] = self.springs[sensor.target]
        elif of in ("joint", "actuator"):
            more[of] = sensor.target
        elif of:
            names = [sensor.target] + ([sensor.reference] if sensor.reference else [])
            for name, key in zip(names, ("obj", "ref"), strict=False):
                place = self.mechanism.frame(name)
                where = self.site(f"{name}/site" if name == "world" else name, place.body, place.placement)
                whole = sensor.kind.startswith("frame_")
                more |= {f"{key}type": "site", f"{key}name": where} if whole else {"site": where}
        if sensor.noise:
            more["noise"] = vector([sensor.noise])
        if sensor.cutoff:
            more["cutoff"] = vector([sensor.cutoff])
        element(self.sensors, tag, name=sensor.name, **more)

    def keyframes(self) -> None:
        m = self.mechanism
        for name, q in m.configurations.items():
            each, v, moving = [(m.bodies[k], m.joints[k]) for k in depth_first(m)], m.configurations.velocity(name), {}
            if v is not None:
                moving["qvel"] = vector(x for both in each for x in _their_v(*both, q, v))
            element(self.keys, "key", name=name, qpos=vector(x for both in each for x in _their_q(*both, q)), **moving)


def _their_q(body: Body, joint: JointInstance, q: FloatArray) -> list[float]:
    """A joint's part of MuJoCo's qpos."""
    own = [float(x) for x in q[joint.q_slice]]
    if joint.mimic is not None:
        own = [joint.mimic.multiplier * own[0] + joint.mimic.offset]
    return _in_series(body, joint, own)


def _their_v(body: Body, joint: JointInstance, q: FloatArray, v: FloatArray) -> list[float]:
    """A joint's part of MuJoCo's qvel."""
    own = [float(x) for x in v[joint.v_slice]]
    kinds = [one.kind for one in joint.type.series() or ()]
    if kinds == ["ball"]:
        return own
    if kinds == ["free"]:
        R = quaternions.rotation_matrix(_their_q(body, joint, q)[3:])
        return [*(R @ Vec.of(own[3:])), *own[:3]]
    rates = joint.type.rate(q[joint.q_slice].tolist(), own)
    return _in_series(body, joint, [joint.mimic.multiplier * rates[0]] if joint.mimic is not None else list(rates))


def _in_series(body: Body, joint: JointInstance, own: list[float]) -> list[float]:
    """Numbers of a joint's coordinates as those of the series of joints that MuJoCo has for it."""
    series = joint.type.series() or ()
    theirs = [x for one in series if one.ratio is None for x in _their_part(body, one, own[one.freedom :])]
    return theirs + [one.ratio * own[series[0].freedom] for one in series if one.ratio is not None]


def _their_part(body: Body, one: SeriesJoint, own: list[float]) -> list[float]:
    """The coordinates of one of a joint's series."""
    if one.kind == "plane":
        return [own[1], own[2], own[0]]
    if one.kind != "free":
        return own[: 4 if one.kind == "ball" else 1]
    turn, place = own[:4], own[4:]
    if body.parent < 0 and not is_identity(body.placement):
        P = np.array(body.placement)
        place = (P[:3, :3] @ place + P[:3, 3]).tolist()
        turn = list(quaternions.multiply(quaternion(P[:3, :3]), turn))
    return [*place, *turn]


def _friction(material: Material, count: int) -> dict[str, str]:
    """Friction of a geom (three numbers) or of a pair (five)."""
    first, second = material.coefficients
    numbers = [first, material.torsion, material.rolling]
    if count == 5:
        numbers = [first, second, material.torsion, material.rolling, material.rolling]
    return {"friction": vector(numbers), "condim": str(material.directions)}


def _place(X: FloatArray) -> dict[str, str]:
    place: dict[str, str] = {}
    if np.any(X[:3, 3]):
        place["pos"] = vector(X[:3, 3])
    if not np.array_equal(X[:3, :3], np.eye(3)):
        place["quat"] = vector(quaternion(X[:3, :3]))
    return place
