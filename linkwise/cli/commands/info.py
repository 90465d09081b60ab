"""``linkwise info``: what a model is."""

from __future__ import annotations

import math
import warnings
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict

from linkwise.cli.arguments import load_model
from linkwise.cli.printing import number, one_line, print_json, table
from linkwise.mechanism.actuation import Actuator, FrameTransmission, JointTransmission, Sensor, Transmission
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.mechanism.closures import Closure, Coupling, JointClosure, Relation
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from linkwise.mechanism.description import JointLimits
from linkwise.model.model import Model


def run_info(options: Namespace) -> None:
    """Print the tree, the joints and what looks odd."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load_model(options)
    notes = [one_line(Exception(str(note.message))) for note in caught] + _notes(model)
    if options.json:
        print_json(_facts(model, notes))
        return
    print(
        f"{model.name}: {len(model.bodies)} moving bodies, nq = {model.nq}, nv = {model.nv}, {number(model.mass, 6)} kg"
        + _beside(model)
    )
    print("gravity " + ", ".join(number(g, 6) for g in model.gravity) + " m/s²")
    if any(body.collisions for body in model.bodies):
        print(_touching(model))
    print()
    print("\n".join(_tree(model)))
    print()
    print(_joints(model) if model.joints else "no joints: nothing moves")
    for part in (_modes(model), _loops(model), _couplings(model), *_equipment_tables(model)):
        if part:
            print(f"\n{part}")
    for note in notes:
        print(f"\nwarning: {note}")


def _touching(model: Model) -> str:
    """Shapes for contact, and whether anything fixed is there for them to touch."""
    shapes = sum(len(body.collisions) for body in model.bodies)
    grounds = model._base_collisions
    kinds = ", ".join(sorted({shape.kind for shape in grounds}))
    ground = f"{len(grounds)} fixed to the world ({kinds})" if grounds else "no ground: --ground gives one"
    return f"contact: {shapes} shapes on bodies, {ground}"


def _tree(model: Model) -> list[str]:
    children: dict[int, list[int]] = {k: [] for k in range(-1, len(model.bodies))}
    for body in model.bodies:
        children[body.parent].append(body.index)
    lines = ["world" + _welded(model)]
    roots = children[-1]
    stack = [(k, "", i == len(roots) - 1) for i, k in enumerate(roots)][::-1]
    while stack:  # by hand: a chain of a thousand links is deeper than Python recurses
        k, indent, last = stack.pop()
        body, joint = model.bodies[k], model.joints[k]
        welded = [part.name for part in body.parts if part.name != body.name]
        with_parts = f" + {', '.join(welded[:3])}{' …' if len(welded) > 3 else ''}" if welded else ""
        lines.append(
            f"{indent}{'└─' if last else '├─'} {body.name}{with_parts}  {number(body.mass)} kg"
            f"  ({joint.name}: {type(joint.type).__name__.lower()})"
        )
        below = children[k]
        deeper = indent + ("   " if last else "│  ")
        if len(below) == 1 and len(deeper) > 60:
            deeper = indent  # a long chain need not run off the page
        stack += [(child, deeper, i == len(below) - 1) for i, child in enumerate(below)][::-1]
    return lines


_MOST_PARTS = 6


def _fixed_mass(model: Model) -> float:
    return sum(part.mass for part in model.base_parts)


def _beside(model: Model) -> str:
    mass = _fixed_mass(model)
    return f" moving, {number(mass, 6)} kg fixed to the world" if mass else ""


def _welded(model: Model) -> str:
    """Bodies fixed to the world, with masses: they have no line of their own."""
    parts = [f"{part.name} {number(part.mass)} kg" if part.mass else part.name for part in model.base_parts]
    shown = ", ".join(parts[:_MOST_PARTS]) + (" …" if len(parts) > _MOST_PARTS else "")
    return f" + {shown}" if parts else ""


def _joints(model: Model) -> str:
    rows = []
    for joint in model.joints:
        limits = joint.limits if joint.limits and joint.mimic is None else (None,)
        for i, limit in enumerate(limits):
            first = i == 0
            rows.append([
                joint.name if first else "",
                _kind(joint) if first else "",
                _range(joint.q_slice) if first else "",
                _range(joint.v_slice) if first else "",
                *(["-"] * 4 if limit is None else _limits(limit)),
            ])  # fmt: skip
    return table(["joint", "type", "q", "v", "lower", "upper", "speed", "effort"], rows)


def _modes(model: Model) -> str:
    """The modes of flexible bodies, with their frequencies while the root is held."""
    rows = []
    for body in model.bodies:
        if body.flexible is not None:
            hertz = ", ".join(number(each) for each in body.flexible.held_frequencies)
            nodes = ", ".join(str(node.key) for node in body.flexible.nodes[:4])
            more = ", …" if len(body.flexible.nodes) > 4 else ""
            rows.append([body.name, _range(body.q_slice), _range(body.v_slice), hertz, nodes + more])
    return table(["flexible body", "q", "v", "Hz, root held", "nodes"], rows) if rows else ""


def _loops(model: Model) -> str:
    loops = [closure for closure in model.closures if isinstance(closure, ClosureInstance)]
    rows = [
        [loop.name, _type(loop.type), *_ends(model, loop), str(len(loop.equations)), ", ".join(loop.equations)]
        for loop in loops
    ]
    return table(["loop", "type", "from", "to", "equations", ""], rows) if rows else ""


def _couplings(model: Model) -> str:
    relations = [closure for closure in model.closures if isinstance(closure, RelationInstance)]
    rows = [[relation.name, _type(relation.type), _relation(model, relation)] for relation in relations]
    return table(["coupling", "type", "between"], rows) if rows else ""


def _type(closure: Closure | Relation) -> str:
    leaves = closure.joint if isinstance(closure, JointClosure) else closure
    return type(leaves).__name__.removesuffix("Closure").lower()


def _ends(model: Model, loop: ClosureInstance) -> list[str]:
    return ["world" if k < 0 else model.bodies[k].name for k in (loop.body_a, loop.body_b)]


def _relation(model: Model, relation: RelationInstance) -> str:
    if isinstance(relation.type, Coupling):
        terms = zip(relation.type.coefficients, relation.type.joints, strict=True)
        return " + ".join(f"{number(c, 6)} {joint}" for c, joint in terms) + f" = {number(relation.type.offset, 6)}"
    return "all joints" if relation.joints is None else ", ".join(model.joints[k].name for k in relation.joints)


def _limits(limit: JointLimits) -> list[str]:
    return [number(x) for x in (limit.lower, limit.upper, limit.velocity, limit.effort)]


def _kind(joint: JointInstance) -> str:
    name = type(joint.type).__name__.lower()
    return name if joint.mimic is None else f"{name}, follows {joint.mimic.joint}"


def _range(part: slice) -> str:
    return str(part.start) if part.stop - part.start == 1 else f"{part.start}-{part.stop - 1}"


def _notes(model: Model) -> list[str]:
    """Notes on what is allowed but seldom meant."""
    notes = []
    fixed = _fixed_mass(model)
    if fixed and not any(joint.nv == 6 for joint in model.joints):
        heaviest = max(model.base_parts, key=lambda part: part.mass)
        if not model.nv or fixed > 0.1 * (fixed + model.mass):
            notes.append(
                f"{number(fixed, 6)} kg are fixed to the world ({heaviest.name}, …); if that is the body of a robot "
                "that moves about, free it: --floating, or lw.load(..., floating=True)"
            )
    massless = [body.name for body in model.bodies if body.mass == 0.0]
    if massless:
        notes.append(f"bodies without mass: {', '.join(massless)}")
    rigid = [body for body in model.bodies if body.flexible is None]
    points = [b.name for b in rigid if b.mass > 0.0 and not any(any(p.inertia) for p in b.parts)]
    if points:
        notes.append(f"point masses (no moment of inertia): {', '.join(points)}")
    backwards = [j.name for j in model.joints if any(limit.lower > limit.upper for limit in j.limits)]
    if backwards:
        notes.append(f"lower limit above the upper one: {', '.join(backwards)}")
    stuck = [j.name for j in model.joints if any(limit.effort == 0.0 for limit in j.limits)]
    if stuck:
        notes.append(f"effort limit of zero, so that no actuator can move them: {', '.join(stuck)}")
    return notes


def _facts(model: Model, notes: list[str]) -> dict[str, object]:
    return {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "mass": model.mass,
        "fixed_mass": _fixed_mass(model),
        "fixed": [{"name": part.name, "mass": part.mass} for part in model.base_parts],
        "gravity": model.gravity,
        "bodies": [
            {
                "name": body.name,
                "parent": "world" if body.parent < 0 else model.bodies[body.parent].name,
                "joint": model.joints[body.index].name,
                "mass": body.mass,
                "parts": [part.name for part in body.parts],
                "modes": body.modes,
                "q": [body.q_slice.start, body.q_slice.stop],
                "v": [body.v_slice.start, body.v_slice.stop],
                "frequencies": [] if body.flexible is None else body.flexible.held_frequencies.tolist(),
            }
            for body in model.bodies
        ],
        "joints": [
            {
                "name": joint.name,
                "type": type(joint.type).__name__,
                "axis": joint.type.axis,
                "q": [joint.q_slice.start, joint.q_slice.stop],
                "v": [joint.v_slice.start, joint.v_slice.stop],
                "mimic": None if joint.mimic is None else joint.mimic.joint,
                "limits": [asdict(limit) for limit in joint.limits],
                **{each: getattr(joint, each) for each in ("armature", "damping", "friction", "stiffness", "rest")},
            }
            for joint in model.joints
        ],
        "loops": [
            {"name": c.name, "type": _type(c.type), "bodies": _ends(model, c), "equations": c.equations}
            for c in model.closures
            if isinstance(c, ClosureInstance)
        ],
        "couplings": [
            {
                "name": c.name,
                "type": _type(c.type),
                "joints": None if c.joints is None else [model.joints[k].name for k in c.joints],
                "equations": c.equations,
            }
            for c in model.closures
            if isinstance(c, RelationInstance)
        ],
        "frames": [frame.name for frame in model.frames],
        **_equipment_facts(model),
        "warnings": notes,
    }


_MOST_SENSORS = 40
_MOST_NUMBERS = 12


def _equipment_tables(model: Model) -> Iterator[str]:
    """Tables of the equipment, one for each sort."""
    if model.actuators:
        rows = [
            [
                each.name,
                _along(each.transmission),
                _affine(each),
                _bounds(each.control_range),
                _bounds(each.force_range),
            ]
            for each in model.actuators
        ]
        yield table(["actuator", "on", "force", "control", "force range"], rows)
    if model.springs:
        rows = [
            [s.name, _along(s.transmission), *map(number, (s.stiffness, s.damping, s.friction)), _bounds(s.limits)]
            for s in model.springs
        ]
        yield table(["spring", "on", "stiffness", "damping", "friction", "limits"], rows)
    if model.fields:
        yield table(["field", "kind", "on"], [[each.name, type(each).__name__, each.frame] for each in model.fields])
    if model.sensors:
        rows = [[each.name, each.kind, _target(each)] for each in model.sensors[:_MOST_SENSORS]]
        left = len(model.sensors) - _MOST_SENSORS
        yield table(["sensor", "kind", "on"], rows) + (f"\n… and {left} more" if left > 0 else "")
    if model.configurations:
        rows = []
        for name, q in model.configurations.items():
            shown = " ".join(number(x) for x in q[:_MOST_NUMBERS])
            rows.append([name, shown + (" …" if len(q) > _MOST_NUMBERS else "")])
        yield table(["configuration", "q"], rows)


def _equipment_facts(model: Model) -> dict[str, object]:
    """Equipment as data."""
    return {
        "actuators": [
            {
                "name": each.name,
                "on": _along(each.transmission),
                **{part: getattr(each, part) for part in ("gain", "bias", "control_range", "force_range")},
                "activation": None if each.activation is None else each.activation.kind,
                "muscle": None if each.muscle is None else type(each.muscle).__name__,
            }
            for each in model.actuators
        ],
        "springs": [
            {
                "name": s.name,
                "on": _along(s.transmission),
                **{each: getattr(s, each) for each in ("stiffness", "damping", "friction", "limits")},
            }
            for s in model.springs
        ],
        "fields": [{"name": f.name, "kind": type(f).__name__, "on": f.frame} for f in model.fields],
        "sensors": [{"name": s.name, "kind": s.kind, "on": _target(s)} for s in model.sensors],
        "configurations": {name: q.tolist() for name, q in model.configurations.items()},
    }


def _along(transmission: Transmission) -> str:
    if isinstance(transmission, JointTransmission):
        terms = (f"{_gear(gear)}{joint}" for joint, gear in transmission.gears)
        return " + ".join(terms).replace("+ -", "- ")
    if isinstance(transmission, FrameTransmission):
        return f"frame {transmission.frame}"
    shown = [[s if isinstance(s, str) else f"({s.shape} {s.frame})" for s in stops] for stops, _ in transmission.paths]
    return "; ".join(" - ".join(stops) for stops in shown)


def _gear(gear: tuple[float, ...]) -> str:
    if set(gear) == {1.0}:
        return ""
    return f"{number(gear[0])} " if len(gear) == 1 else f"({', '.join(map(number, gear))}) "


def _affine(actuator: Actuator) -> str:
    """The force as a formula: l is the length, l' its rate, u the control, a its filtered or integrated value."""
    control = "u" if actuator.activation is None else f"a ({actuator.activation.kind})"
    if actuator.muscle is not None:
        return f"{type(actuator.muscle).__name__}, {number(actuator.muscle.force)} N at {control} = 1"
    gain = _sum(actuator.gain)
    first = "" if gain == "0" else control if gain == "1" else f"{gain} {control}"
    if sum(x != 0.0 for x in actuator.gain) > 1:
        first = f"({gain}) {control}"
    bias = _sum(actuator.bias)
    if bias == "0":
        return first or "0"
    return f"{first} + {bias}".replace("+ -", "- ") if first else bias


def _sum(numbers: tuple[float, float, float]) -> str:
    parts = [f"{number(x)}{unit}" for x, unit in zip(numbers, ("", " l", " l'"), strict=True) if x]
    return " + ".join(parts).replace("+ -", "- ") or "0"


def _bounds(bounds: tuple[float, float]) -> str:
    return "-" if not any(map(math.isfinite, bounds)) else f"{number(bounds[0])} to {number(bounds[1])}"


def _target(sensor: Sensor) -> str:
    return (sensor.target or "-") + (f" in {sensor.reference}" if sensor.reference else "")
