"""SRDF, beside a URDF: which links do not touch."""

from __future__ import annotations

import os

from linkwise.errors import ModelFileError
from linkwise.files.resources import read_bytes
from linkwise.files.xml import parse


def read_excludes(path: str | os.PathLike[str]) -> tuple[tuple[str, str], ...]:
    """The pairs of links of an SRDF file that do not touch: ``disable_collisions``.

    They are what ``excludes=`` of :func:`linkwise.contact.geometry.selection.meetings` takes; names that the model does
    not have are its to say.

    Args:
        path: the file.
    """
    file = os.fspath(path)
    root = parse(read_bytes(path, suffixes=(".srdf", ".xml")), file)
    if root.tag != "robot":
        raise ModelFileError("this is not an SRDF file", file=file, line=root.line, got=f"<{root.tag[:40]}>")
    found = []
    for element in root.all("disable_collisions"):
        try:
            found.append((element.attributes["link1"], element.attributes["link2"]))
        except KeyError as missing:
            raise ModelFileError(
                f"<disable_collisions> has no {missing.args[0]}",
                file=file,
                line=element.line,
                allowed='<disable_collisions link1="…" link2="…"/>',
            ) from None
    return tuple(found)
