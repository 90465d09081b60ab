"""A builder that only writes down what it is asked, and the whole way from text to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from linkwise.errors import ModelError, ModelWarning
from linkwise.files.bodies import bodies_of, check_inertias
from linkwise.files.build import build, check_massless
from linkwise.files.topology import arrange
from linkwise.files.urdf import read_urdf
from linkwise.files.xml import parse


@dataclass
class Recorder:
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    frames: dict[str, Any] = field(default_factory=dict)
    refuse: ModelError | None = None

    def add_body(self, name: str, **parts: Any) -> None:
        assert parts["parent"] == "world" or parts["parent"] in self.bodies
        joint = parts["joint"]
        self.bodies[name] = parts | {"joint": (joint.word, tuple(joint.axis or (1, 0, 0)))}

    def add_frame(self, name: str, body: str, placement: Any) -> None:
        self.frames[name] = body, placement

    def mechanism(self, *, allow_massless: bool) -> Recorder:
        if self.refuse is not None:
            raise self.refuse
        return self


@dataclass
class Recorded:
    bodies: dict[str, dict[str, Any]]
    warnings: list[ModelWarning]
    name: str


def record(
    text: str | bytes, *, file: str = "robot.urdf", snap: float = 1e-12, allow_unphysical: bool = False, **options: Any
) -> Recorded:
    content = text.encode() if isinstance(text, str) else text
    description, notes = read_urdf(parse(content, file), file, name=Path(file).stem, snap=snap)
    bodies = bodies_of(arrange(description), **options)
    notes += check_inertias(bodies, file, allow_unphysical=allow_unphysical)
    notes += check_massless(bodies, file)
    builder = build(Recorder(), bodies, description)
    return Recorded(builder.bodies, notes, description.name)


@cache
def robot_files(suffix: str = ".urdf") -> tuple[Path, ...]:
    """The model files of example-robot-data; none where the package is not there."""
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        return ()
    return tuple(sorted(Path(str(file.locate())).resolve() for file in files if file.suffix == suffix))


def robot_file(name: str) -> Path:
    found = [file for file in robot_files() if file.name == name]
    if not found:
        pytest.skip("needs example-robot-data")
    return found[0]
