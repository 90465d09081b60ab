"""A mechanism taken apart, by names instead of numbers, and put together again."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TypeVar

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, field, replace
from linkwise.errors import LinkwiseError, ModelError
from linkwise.mechanism.actuation import SENSOR_KINDS, Actuator, Sensor, Spring
from linkwise.mechanism.bodies_and_joints import IDENTITY, Body, Frame, JointInstance, Named, Pose
from linkwise.mechanism.changed_copies import Configurations
from linkwise.mechanism.closures.constraint import Relation
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance, relation_between
from linkwise.mechanism.entry import all_of_each
from linkwise.mechanism.fields import Field
from linkwise.mechanism.joined_bodies import numbered, welded
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.parameters import check_names

MechanismT = TypeVar("MechanismT", bound=Mechanism)
Coordinates = dict[str, tuple[float, ...]]


@dataclass
class Pieces:
    """Pieces of a mechanism; where a number would stand, there is a name.

    Args:
        bodies: each with the name of its parent and its joint, from the base to the tips.
        frames: each with the name of its body.
        closures: each with the names of its two bodies.
        relations: the constraints between joints, each with its name.
        order: the names of closures and relations, in order.
        base: what is fixed to the world, as parts and shapes of a body of that name.
        configurations: for each name, the coordinates of the joints by their names, and velocities where it moves.
    """

    bodies: list[tuple[Body, str, JointInstance]]
    frames: list[tuple[Frame, str]]
    closures: list[tuple[ClosureInstance, str, str]]
    relations: list[tuple[str, Relation]]
    order: list[str]
    base: Body
    actuators: list[Actuator]
    sensors: list[Sensor]
    springs: list[Spring]
    fields: list[Field]
    configurations: dict[str, tuple[Coordinates, Coordinates]] = field(default_factory=dict)
    contact_excludes: list[tuple[str, str]] = field(default_factory=list)

    def weld(self, other: Body, on: str, X: Pose, node: int) -> None:
        """Make what a body is made of part of another, or of what is fixed to the world, with its frame at X there."""
        more = X, node, other.parts, other.visuals, other.collisions
        if on == "world":
            self.base = welded(self.base, *more)
            return
        k = next(i for i, (body, _, _) in enumerate(self.bodies) if body.name == on)
        body, parent, joint = self.bodies[k]
        self.bodies[k] = welded(body, *more), parent, joint


def apart(mechanism: Mechanism) -> Pieces:
    """The pieces of a mechanism."""

    def name(k: int) -> str:
        return "world" if k < 0 else str(mechanism.bodies[k].name)

    closed = [each for each in mechanism.closures if isinstance(each, ClosureInstance)]
    related = [each for each in mechanism.closures if isinstance(each, RelationInstance)]
    held = mechanism.configurations

    def named(numbers: FloatArray | None, place: str) -> Coordinates:
        if numbers is None:
            return {}
        return {joint.name: tuple(numbers[getattr(joint, place)].tolist()) for joint in mechanism._independent}

    return Pieces(
        [(b, name(b.parent), j) for b, j in zip(mechanism.bodies, mechanism.joints, strict=True)],
        [(frame, name(frame.body)) for frame in mechanism.frames],
        [(each, name(each.body_a), name(each.body_b)) for each in closed],
        [(each.name, each.type) for each in related],
        [each.name for each in mechanism.closures],
        Body("world", -1, -1, IDENTITY, mechanism.base_parts, mechanism.base_visuals, mechanism._base_collisions),
        list(mechanism.actuators),
        list(mechanism.sensors),
        list(mechanism.springs),
        list(mechanism.fields),
        {key: (named(q, "q_slice"), named(held.velocity(key), "v_slice")) for key, q in held.items()},
        list(mechanism._contact_excludes),
    )


def together(mechanism: MechanismT, pieces: Pieces) -> MechanismT:
    """A copy of the mechanism made of these pieces.

    Parameters of what is gone are no longer parameters; a solver that had chosen its freedoms beforehand chooses anew.
    """
    number = {"world": -1} | {body.name: k for k, (body, _, _) in enumerate(pieces.bodies)}
    _check_names(pieces)
    bodies, joints = numbered(
        [replace(body, parent=number[parent]) for body, parent, _ in pieces.bodies],
        all_of_each(JointInstance, [joint for _, _, joint in pieces.bodies]),
    )
    tree = replace(
        mechanism,
        bodies=Named(bodies),
        joints=Named(joints),
        frames=tuple(replace(frame, body=number[on]) for frame, on in pieces.frames),
        base_parts=pieces.base.parts,
        base_visuals=pieces.base.visuals,
        _base_collisions=pieces.base.collisions,
        _contact_excludes=tuple(pieces.contact_excludes),
        closures=Named(),
        _closure_reference=None,
        _closure_solver="auto" if mechanism._closure_reference is not None else mechanism._closure_solver,
        _parameter_names=(),
        actuators=(),
        sensors=(),
        springs=(),
        fields=(),
        configurations=Configurations(),
    )
    closed: dict[str, ClosureInstance | RelationInstance] = {
        each.name: replace(each, body_a=number[a], body_b=number[b]) for each, a, b in pieces.closures
    }
    closed |= {name: relation_between(tree, name, relation) for name, relation in pieces.relations}
    whole = replace(tree, closures=Named(closed[name] for name in pieces.order if name in closed))
    kept = {
        "joint": {joint.name for joint in whole.joints} | {each.name for each in whole._closure_freedoms},
        "actuator": {actuator.name for actuator in pieces.actuators},
        "spring": {spring.name for spring in pieces.springs},
    }
    whole = whole.with_equipment(
        actuators=pieces.actuators,
        sensors=[s for s in pieces.sensors if s.target in kept.get(SENSOR_KINDS[s.kind][0], (s.target,))],
        springs=pieces.springs,
        fields=pieces.fields,
    )
    present = {joint.name for joint in whole._independent}
    for key, both in pieces.configurations.items():
        q, v = ({j: x for j, x in each.items() if j in present} for each in both)
        whole = whole.with_configuration(key, q, v)
    names = mechanism._parameter_names
    return replace(whole, _parameter_names=tuple(name for name in names if _is_parameter(whole, name)))


def on_joints(relation: Relation, names: Mapping[str, str]) -> Relation:
    """The same relation, between joints of other names."""
    if relation.joints is None:
        return relation
    changed = copy.copy(relation)
    object.__setattr__(changed, "joints", tuple(names.get(joint, joint) for joint in relation.joints))
    return changed


def _is_parameter(mechanism: Mechanism, name: str) -> bool:
    try:
        check_names(mechanism, [name])
    except LinkwiseError:
        return False
    return True


def _check_names(pieces: Pieces) -> None:
    places = [*(body.name for body, _, _ in pieces.bodies), *(frame.name for frame, _ in pieces.frames)]
    closures = [*(each.name for each, _, _ in pieces.closures), *(name for name, _ in pieces.relations)]
    groups: Sequence[tuple[str, list[str]]] = (
        ("body or frame", ["world", *places]),
        ("joint", [joint.name for _, _, joint in pieces.bodies]),
        ("closure", closures),
    )
    for kind, names in groups:
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise ModelError(
                f"two have one name: the {kind} {twice[0]!r}",
                got=", ".join(map(repr, twice[:10])),
                allowed="names unlike each other",
                do='give a prefix: attach(..., prefix="left_"), or rename first: model.renamed({...})',
            )
