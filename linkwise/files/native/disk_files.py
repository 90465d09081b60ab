"""The two files on disk: ``name.lw.json``, and ``name.lw.npz`` beside it where there are large arrays."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from linkwise.errors import InputError, ModelError, ModelFileError
from linkwise.files.native.contents import LARGEST_ARCHIVE, ArrayStore, decoded, parse_json, written
from linkwise.files.native.kinds import Document, FilePlace
from linkwise.files.native.model_record import fields_of, record_of
from linkwise.files.native.schema import ARCHIVE, FORMAT, MODEL, VERSION
from linkwise.files.writing.output import write_whole
from linkwise.mechanism.bodies_and_joints import Named
from linkwise.mechanism.description import Geometry, Source
from linkwise.mechanism.mechanism import Mechanism

SUFFIX = ".lw.json"
LARGEST_NATIVE = 16 * 1024 * 1024
"""Bytes. A robot of a thousand bodies has 1 MB; large arrays stand in the archive."""


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a model; see :meth:`linkwise.Model.save`."""
    if not str(path).endswith(SUFFIX):
        raise InputError(f"a native file has a name that ends in {SUFFIX}", got=repr(path), do=f"arm{SUFFIX}")
    target = Path(path)
    document = Document(str(target))
    record = record_of(_with_meshes_seen_from(mechanism, target.resolve().parent))
    plain = MODEL.write(record, document)
    if document.refused:
        raise ModelError(
            "some parts of this model cannot be stored: a file holds data, not programs",
            got="\n".join(document.refused),
            allowed="joints and closures of the library's own types, with numbers",
            do="model.without(name) for closures; add them again after loading",
        )
    if len(document.arrays):
        archive = target.with_name(target.name.removesuffix(SUFFIX) + ".lw.npz")
        content = document.arrays.content()
        plain["arrays"] = {"file": archive.name, "sha256": hashlib.sha256(content).hexdigest()}
        write_whole(archive, content)
    order = {name: plain[name] for name in MODEL.fields if name in plain}
    write_whole(target, (written(order) + "\n").encode("utf-8"))


def read_native(content: bytes, file: str, source: Source | None) -> dict[str, Any]:
    """The fields of the model in a native file.

    Args:
        content: of the file.
        file: its name in the messages; ``<string>`` where there is none.
        source: for the meshes it names, and the folder of its archive.
    """
    if len(content) > LARGEST_NATIVE:
        raise ModelFileError("the file is too large to be a model", file=file, allowed=f"{LARGEST_NATIVE} bytes")
    plain = parse_json(content, file)
    at = FilePlace(plain, Document(file, decoded(content, file)))
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        at.fail("this is not a native model file", allowed=f'"format": "{FORMAT}"')
    version = plain.get("version")
    if isinstance(version, int) and version > VERSION:
        at.inside("version").fail(
            "this file was written by a newer linkwise", allowed=f"up to {VERSION}", do="upgrade linkwise"
        )
    if isinstance(plain.get("arrays"), dict):
        at.document.arrays = _archive(at.inside("arrays"), None if source is None else source.file)
    return fields_of(MODEL.read(at), at, source)


def _archive(at: FilePlace, file: str | None) -> ArrayStore:
    named = ARCHIVE.read(at)
    if file is None:
        at.fail("this text has its arrays in another file", do="use linkwise.load(path)")
    name = named["file"]
    if Path(name).name != name or name in (".", "..") or not name.endswith(".npz"):
        at.inside("file").fail("the archive must lie beside the file", allowed="a name that ends in .npz")
    path = Path(file).resolve().parent / name
    if path.is_symlink():
        at.inside("file").fail("the archive is a link to another place")
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_ARCHIVE + 1)
    except OSError as error:
        at.inside("file").fail(f"the archive cannot be read: {error.strerror or error}", got=str(path))
    if len(content) > LARGEST_ARCHIVE:
        at.inside("file").fail("the archive is too large", allowed=f"{LARGEST_ARCHIVE} bytes")
    if hashlib.sha256(content).hexdigest() != named["sha256"]:
        at.inside("sha256").fail(
            "the archive is not the one that was written with this file", got=str(path), do="save the model again"
        )
    return ArrayStore.read(content, str(path))


def _with_meshes_seen_from(mechanism: Mechanism, folder: Path) -> Mechanism:
    """Meshes and pictures that are named by a path, named as seen from another folder; addresses of packages stay."""

    def moved(shapes: tuple[Geometry, ...]) -> tuple[Geometry, ...]:
        return tuple(
            replace(
                shape,
                mesh=None if shape.mesh is None else _seen_from(folder, shape, shape.mesh),
                texture=None
                if shape.texture is None
                else replace(shape.texture, file=_seen_from(folder, shape, shape.texture.file)),
            )
            for shape in shapes
        )

    bodies = Named(replace(b, visuals=moved(b.visuals), collisions=moved(b.collisions)) for b in mechanism.bodies)
    visuals, collisions = moved(mechanism.base_visuals), moved(mechanism._base_collisions)
    return replace(mechanism, bodies=bodies, base_visuals=visuals, _base_collisions=collisions)


def _seen_from(folder: Path, shape: Geometry, named: str) -> str:
    if named.startswith(("package://", "model://")) or "\0" in named:
        return named
    home = Path.cwd() if shape.source is None else None if shape.source.file is None else Path(shape.source.file).parent
    if home is None or home == folder:
        return named
    path = home / named.removeprefix("file://")
    return os.path.relpath(path, folder) if path.is_file() else named
