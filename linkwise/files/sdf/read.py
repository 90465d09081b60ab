"""A ``<sdf>`` element to a description.

Read: models, nested and included ones too, with their links, joints and frames; a world with its models, joints and
gravity. Lights, sensors, plugins, physics and the like say nothing about the mechanics and are passed over in silence.

Where files and the format's text part, or the format leaves a choice, this reader
- holds the root links of a model to the world where the file has them, unless `floating` frees them: as for URDF;
- gives a link without ``<inertial>`` the format's 1 kg and 1 kg m², with a warning, since few authors mean that;
- reads the limits of a screw as those of its angle, of a piston as those of its slide;
- gives the damping in the axis of a ball joint to all its directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linkwise.errors import ModelWarning
from linkwise.files.bodies import unused
from linkwise.files.file_description import (
    ClosureWritten,
    Description,
    FrameWritten,
    JointWritten,
    LinkWritten,
    Vector,
)
from linkwise.files.sdf.joints import couplings_of, ends_of, is_loop_joint, read_joint
from linkwise.files.sdf.masses_and_shapes import read_link
from linkwise.files.sdf.places import NamedFrame, NameScope, body_of, relative_pose, world_pose
from linkwise.files.sdf.scopes import Contents, Includes, read_version, world_scope
from linkwise.files.topology import WORLD, span
from linkwise.files.values import Attributes, shown
from linkwise.files.xml import XmlElement
from linkwise.mechanism.placement import ANGLE_SNAP


def read_sdf(
    root: XmlElement, file: str, name: str, library: Includes, snap: float = ANGLE_SNAP
) -> tuple[Description, list[ModelWarning]]:
    """The description in a ``<sdf>`` element, and what to warn about.

    Args:
        root: the root element.
        file: the file's name in the messages.
        name: the mechanism's name where the file gives none.
        library: where included files are looked for.
        snap: see `linkwise.mechanism.placement.cos_sin`.
    """
    values = Attributes(file, snap)
    scope, contents, title, gravity = _gathered(root, values, library)
    if not contents.links:
        values.fail("the model has no links", root)
    return _described(contents, scope, title or name, gravity)


def _gathered(
    root: XmlElement, values: Attributes, library: Includes
) -> tuple[NameScope, Contents, str, Vector | None]:
    """The scope of the world, what is in it, the name of the whole, and gravity where the file has it."""
    version = read_version(root, values)
    worlds, models = root.all("world"), root.all("model")
    if len(worlds) + len(models) != 1:
        values.fail(
            "an SDF file that describes a mechanism has one model or one world",
            (*models, *worlds)[1] if worlds or models else root,
            got=f"{len(models)} models, {len(worlds)} worlds",
            do="put the models into one <world>" if worlds or models else None,
        )
    contents = Contents(library)
    if models:
        scope = world_scope(root, values, version)
        contents.model(models[0], scope, library.home, 1, named=False)
        return scope, contents, models[0].attributes["name"], None
    world = worlds[0]
    scope = world_scope(world, values, version)
    at = values.child(world, "gravity")
    gravity = None
    if at is not None:
        x, y, z = values.content_vector(at, of="the world")
        gravity = (x, y, z)
    alone = world.all("model") if not world.all("include") else []
    if len(alone) == 1 and not world.all("joint") and not world.all("frame"):
        contents.model(alone[0], scope, library.home, 1, named=False)
        return scope, contents, alone[0].attributes["name"], gravity
    contents.fill(world, scope, library.home, 0)
    return scope, contents, world.attributes.get("name", "").strip(), gravity


def _described(
    contents: Contents, world: NameScope, name: str, gravity: Vector | None
) -> tuple[Description, list[ModelWarning]]:
    main = world.values.file
    warnings: list[ModelWarning] = []
    links = [read_link(place, _other(place, main), warnings) for place in contents.links]
    _warn_of_usual_inertias(contents.links, main, warnings)

    standing: list[JointWritten] = []
    loops: list[JointWritten] = []
    gearboxes = []
    for place in contents.joints:
        if place.scope.static:
            continue  # nothing of a static model moves
        ends, file = ends_of(place), _other(place, main)
        if place.at.attributes.get("type", "").strip() == "gearbox":
            gearboxes.append((place, ends, file))
        else:
            (loops if is_loop_joint(place) else standing).append(read_joint(place, ends, file))
    taken = {joint.name for joint in (*standing, *loops)}
    fixed = [
        _held(place, unused(f"{place.name}_static", taken), main) for place in contents.links if place.scope.static
    ]
    spanned = span([link.name for link in links], [*fixed, *standing], loops)
    by_name = {place.name: place for place in contents.links}
    roots = [
        replace(_held(by_name[root], unused("root_joint", taken), main), holds_root=True) for root in spanned.roots
    ]
    joints = (*spanned.joints, *roots)
    _warn_of_what_closures_lose(spanned.closing, main, warnings)
    description = Description(
        name,
        main,
        world.place.at.line,
        (LinkWritten(WORLD, world.place.at.line), *links),
        joints,
        tuple(_frame(place, main) for place in contents.frames if place.name not in by_name),
        tuple(ClosureWritten(joint, implied=True) for joint in spanned.closing),
        tuple(couplings_of(gearboxes, joints, contents.links)),
        gravity,
    )
    return description, warnings


def _held(place: NamedFrame, name: str, main: str) -> JointWritten:
    """A fixed joint that holds a link where the file has it."""
    return JointWritten(name, place.at.line, "fixed", WORLD, place.name, world_pose(place), file=_other(place, main))


def _frame(place: NamedFrame, main: str) -> FrameWritten:
    body = body_of(place)
    return FrameWritten(place.name, place.at.line, body.name, relative_pose(place, body), _other(place, main))


def _other(place: NamedFrame, main: str) -> str | None:
    file = place.scope.values.file
    return None if file == main else file


def _warn_of_usual_inertias(places: Sequence[NamedFrame], main: str, warnings: list[ModelWarning]) -> None:
    bare = [place for place in places if not place.at.all("inertial") and not place.scope.static]
    if bare:
        named = ", ".join(f"{shown(place.name)} (line {place.at.line})" for place in bare[:5])
        warnings.append(
            ModelWarning(
                f"{main}: there are links without <inertial>: the format gives them 1 kg and 1 kg m² about each axis",
                got=named + (f", and {len(bare) - 5} more" if len(bare) > 5 else ""),
                do="write their <inertial>; one of zero mass where a link is only a frame",
            )
        )


def _warn_of_what_closures_lose(closing: Sequence[JointWritten], main: str, warnings: list[ModelWarning]) -> None:
    """A joint that closes a loop has no place in q, so that it cannot follow another."""
    for joint in closing:
        if joint.mimic is not None:
            warnings.append(
                ModelWarning(
                    f"{joint.file or main}:{joint.line}: joint {joint.name!r} closes a loop and has no place in q, "
                    "so that what the file says about it is left out",
                    got="mimic",
                    do=f"write it before the other joint of link {joint.child!r}: the loop is then opened there",
                )
            )
