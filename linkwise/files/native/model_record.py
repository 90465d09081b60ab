"""A mechanism to the record of its file and back.

In the file bodies are named where the mechanism numbers them, and what follows from the rest (numbers, places in q and
v) is left out. All other numbers are kept to the last bit, so that the functions of the model that is read are those
of the one that was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from linkwise.algorithms.closure_solvers import BY_NUMBERS, TRACED
from linkwise.errors import UnknownNameError
from linkwise.files.native.kinds import FilePlace
from linkwise.files.native.schema import FORMAT, VERSION
from linkwise.flexible.structure import NodeKey
from linkwise.mechanism.bodies_and_joints import Body, Frame, JointInstance, Named
from linkwise.mechanism.closures.instances import (
    ClosureInstance,
    Reference,
    RelationInstance,
    closure_between,
    relation_between,
)
from linkwise.mechanism.contacts import ContactScene
from linkwise.mechanism.description import Source
from linkwise.mechanism.entry import all_of_each
from linkwise.mechanism.joined_bodies import numbered
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.parameters import check_names

_OF_CLOSURE = ("damping", "friction", "stiffness", "rest")
_PER_FREEDOM = ("armature", *_OF_CLOSURE)


def record_of(mechanism: Mechanism) -> dict[str, Any]:
    """Record of a mechanism for its file, as the schema has it."""

    def name(k: int) -> str:
        return "world" if k < 0 else mechanism.bodies[k].name

    bodies = []
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        plain = (0.0,) * joint.nv
        numbers = {each: getattr(joint, each) for each in _PER_FREEDOM}
        bodies.append(
            {
                **{each.name: getattr(body, each.name) for each in fields(body)},
                "parent": name(body.parent),
                "joint": {
                    "name": joint.name,
                    "kind": joint.type,
                    "limits": joint.limits,
                    "mimic": joint.mimic,
                    # An empty tuple stands for zeros in a joint that was put together by hand.
                    **{each: None if repr(found or plain) == repr(plain) else found for each, found in numbers.items()},
                },
            }
        )
    closures = []
    for closure in mechanism.closures:
        entry: dict[str, Any] = {"name": closure.name, "kind": closure.type}
        if isinstance(closure, ClosureInstance):
            for side in "ab":
                body, placement, node = (getattr(closure, f"{each}_{side}") for each in ("body", "placement", "node"))
                entry[side] = {"body": name(body), "placement": placement, "node": node}
            # As of a joint: what is zero is left out.
            entry["limits"] = closure.limits
            entry |= {each: found if any(found := getattr(closure, each)) else None for each in _OF_CLOSURE}
        closures.append(entry)
    moving = {key: mechanism.configurations.velocity(key) for key in mechanism.configurations}
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": mechanism.name,
        "gravity": mechanism.gravity,
        "arrays": None,
        "bodies": bodies,
        "base_parts": mechanism.base_parts,
        "base_visuals": mechanism.base_visuals,
        "base_collisions": mechanism._base_collisions,
        "contact_excludes": mechanism._contact_excludes,
        "contact_scene": mechanism._contact_scene,
        "frames": [
            {"name": each.name, "body": name(each.body), "placement": each.placement, "node": each.node}
            for each in mechanism.frames
        ],
        "closures": closures,
        "closure_solver": mechanism._closure_solver,
        "closure_reference": mechanism._closure_reference,
        "parameters": mechanism._parameter_names,
        "actuators": mechanism.actuators,
        "sensors": mechanism.sensors,
        "springs": mechanism.springs,
        "fields": mechanism.fields,
        "configurations": dict(mechanism.configurations),
        "velocities": {key: v for key, v in moving.items() if v is not None},
        "sweeps": getattr(mechanism, "_sweeps", "auto"),
    }


def _checked_scene(record: dict[str, Any], names: Sequence[str], at: FilePlace) -> ContactScene | None:
    """Scene of contacts, if it names bodies of the model and what is fixed to the world."""
    scene: ContactScene | None = record["contact_scene"]
    if scene is not None:
        for what, name, known in scene.unknown(names, [shape.name for shape in record["base_collisions"]]):
            at.inside("contact_scene").fail(
                f"there is no {what} of this name", got=repr(name), allowed=", ".join(known)
            )
    return scene


def fields_of(record: dict[str, Any], at: FilePlace, source: Source | None) -> dict[str, Any]:
    """The fields of the mechanism in a record that was read; `at` is where it stands, for the messages."""
    bodies, joints = _tree(record["bodies"], at.inside("bodies"), source)
    known = {"world": -1} | {body.name: body.index for body in bodies}
    _check_mimics(joints, at)
    placed, numbered_joints = numbered(bodies, all_of_each(JointInstance, joints))
    frames = _frames(record["frames"], known, placed, at)
    tree = Mechanism(
        record["name"],
        record["gravity"],
        Named(placed),
        Named(numbered_joints),
        frames,
        record["base_parts"],
        tuple(replace(shape, source=source) for shape in record["base_visuals"]),
        _base_collisions=tuple(replace(shape, source=source) for shape in record["base_collisions"]),
        _contact_excludes=tuple(record["contact_excludes"]),
        _contact_scene=_checked_scene(record, [body.name for body in placed], at),
    )
    closed = _closed(tree, record["closures"], at)
    whole = _equipped(closed, record, at)
    return {each.name: getattr(whole, each.name) for each in fields(whole)} | {
        "_closure_solver": _solver(record["closure_solver"], at),
        "_closure_reference": _reference(closed, record["closure_reference"], at),
        "_parameter_names": _parameters(closed, record["parameters"], at),
        "_sweeps": record["sweeps"],
    }


def _tree(
    records: Sequence[dict[str, Any]], at: FilePlace, source: Source | None
) -> tuple[list[Body], list[JointInstance]]:
    bodies: list[Body] = []
    joints: list[JointInstance] = []
    known = {"world": -1}
    taken: set[str] = set()
    for k, record in enumerate(records):
        here = at.inside(k)
        if record["name"] in known:
            here.inside("name").fail("the name of a body is taken")
        if record["parent"] not in known:
            unknown = UnknownNameError("body before this one", record["parent"], known)
            here.inside("parent").fail(
                "the parent of a body does not stand before it", got=unknown.got, allowed=unknown.allowed
            )
        parent = known[record["parent"]]
        _check_node(record["node"], parent, bodies, here)
        written = record["joint"]
        if written["name"] in taken:
            here.inside("joint").fail("the name of a joint is taken", got=repr(written["name"]))
        taken.add(written["name"])
        if record["flexible"] is None and written["kind"].nv == 0:
            here.inside("joint").fail(
                "a rigid body that is fixed is a part of its parent", do="put its parts there, and a frame for its name"
            )
        joints.append(_joint(written, k, here.inside("joint")))
        if record["flexible"] is not None and written["mimic"] is not None:
            here.inside("joint").fail("the joint of a flexible body cannot follow another")
        body = Body(
            record["name"],
            k,
            parent,
            record["placement"],
            record["parts"],
            tuple(replace(shape, source=source) for shape in record["visuals"]),
            tuple(replace(shape, source=source) for shape in record["collisions"]),
            record["joint_frame"],
            record["node"],
            record["flexible"],
        )
        for part in body.parts:
            _check_node(part.node, k, [*bodies, body], here)
        known[body.name] = k
        bodies.append(body)
    return bodies, joints


def _joint(record: dict[str, Any], index: int, at: FilePlace) -> JointInstance:
    kind = record["kind"]
    given: dict[str, tuple[float, ...]] = {}
    for each in _PER_FREEDOM:
        values = record[each]
        if values is not None and len(values) != kind.nv:
            at.inside(each).fail("this is not one number for each freedom", allowed=f"{kind.nv} numbers")
        given[each] = (0.0,) * kind.nv if values is None else values
    limits = record["limits"]
    if limits and len(limits) != kind.nv:
        at.inside("limits").fail("these are not limits for each freedom", allowed=f"{kind.nv}, or none")
    if kind.nq != kind.nv and (any(np.isfinite((x.lower, x.upper)).any() for x in limits) or any(given["stiffness"])):
        at.fail(f"a joint of type {at.value['type']!r} has no limits of position and no springs")
    nowhere = slice(0, 0)
    return JointInstance(
        record["name"], index, kind, nowhere, nowhere, limits, given["armature"], given["damping"], given["friction"],
        record["mimic"], given["stiffness"], given["rest"],
    )  # fmt: skip


def _check_mimics(joints: list[JointInstance], at: FilePlace) -> None:
    leaders = {joint.name: joint for joint in joints}
    for k, joint in enumerate(joints):
        if joint.mimic is None:
            continue
        leader = leaders.get(joint.mimic.joint)
        one = joint.nq == joint.nv == 1
        if not one or leader is None or leader.mimic is not None or not leader.nq == leader.nv == 1:
            at.inside("bodies").inside(k).inside("joint").inside("mimic").fail(
                "a joint of one freedom follows another that has one and follows none"
            )


def _check_node(node: int, body: int, bodies: list[Body] | tuple[Body, ...], at: FilePlace) -> None:
    flexible = bodies[body].flexible if body >= 0 else None
    most = 0 if flexible is None else len(flexible.nodes) - 1
    if node > most:
        at.fail("there is no such node", got=f"node {node}", allowed=f"0 to {most}" if most else "0: the body is rigid")


def _frames(
    records: Sequence[dict[str, Any]], known: dict[str, int], bodies: tuple[Body, ...], at: FilePlace
) -> tuple[Frame, ...]:
    found = []
    taken = set(known)
    for k, record in enumerate(records):
        here = at.inside("frames").inside(k)
        if record["name"] in taken:
            here.fail("the name of a frame is taken")
        taken.add(record["name"])
        if record["body"] not in known:
            here.fail("there is no such body", **UnknownNameError("body", record["body"], known).parts)
        _check_node(record["node"], known[record["body"]], bodies, here)
        found.append(Frame(record["name"], known[record["body"]], record["placement"], record["node"]))
    return tuple(found)


def _closed(mechanism: Mechanism, records: Sequence[dict[str, Any]], at: FilePlace) -> Mechanism:
    names: set[str] = set()
    found: list[ClosureInstance | RelationInstance] = []
    for k, record in enumerate(records):
        here = at.inside("closures").inside(k)
        if record["name"] in names:
            here.fail("the name of a closure is taken")
        names.add(record["name"])
        with here.refusals():
            if "a" not in record:
                found.append(relation_between(mechanism, record["name"], record["kind"]))
                continue
            a, b = record["a"], record["b"]
            nodes = [_node_key(mechanism, side, here) for side in (a, b)]
            numbers = {each: record[each] for each in _OF_CLOSURE if record[each] is not None}
            made = closure_between(
                mechanism, record["name"], a["body"], a["placement"], b["body"], b["placement"], record["kind"], *nodes,
                limits=record["limits"] or None, **numbers,
            )  # fmt: skip
        # To the last bit: checking a pose may turn it by a rounding.
        found.append(replace(made, placement_a=a["placement"], placement_b=b["placement"]))
    return replace(mechanism, closures=Named(found))


def _equipped(mechanism: Mechanism, record: dict[str, Any], at: FilePlace) -> Mechanism:
    """With what drives and measures it, and its named configurations."""
    for what in ("actuators", "springs", "sensors", "fields"):
        with at.refusals(what):
            mechanism = mechanism.with_equipment(**{what: record[what]})
    for name, q in record["configurations"].items():
        with at.refusals("configurations", name):
            mechanism = mechanism.with_configuration(name, q, record["velocities"].get(name))
    return mechanism


def _node_key(mechanism: Mechanism, place: dict[str, Any], at: FilePlace) -> NodeKey | None:
    known = {"world": -1} | {body.name: body.index for body in mechanism.bodies}
    if place["body"] not in known:
        at.fail("there is no such body", **UnknownNameError("body", place["body"], known).parts)
    body = known[place["body"]]
    _check_node(place["node"], body, mechanism.bodies, at)
    flexible = mechanism.bodies[body].flexible if place["node"] else None
    return None if flexible is None else flexible.nodes[place["node"]].key


def _solver(name: str, at: FilePlace) -> str:
    if name not in (*TRACED, *BY_NUMBERS):
        unknown = UnknownNameError("closure solver", name, (*TRACED, *BY_NUMBERS))
        at.inside("closure_solver").fail("this solver is not known", allowed=unknown.allowed, do=unknown.do)
    return name


def _reference(mechanism: Mechanism, record: dict[str, Any] | None, at: FilePlace) -> Reference | None:
    if record is None:
        return None
    if len(record["q"]) != mechanism.nq or any(k >= mechanism.nv for k in record["independent"]):
        at.inside("closure_reference").fail(
            "this does not fit the mechanism", allowed=f"q of {mechanism.nq} numbers, places below {mechanism.nv}"
        )
    return Reference(**record)


def _parameters(mechanism: Mechanism, names: tuple[str, ...], at: FilePlace) -> tuple[str, ...]:
    with at.refusals("parameters"):
        return check_names(mechanism, names)
