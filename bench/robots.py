"""The robots that are measured: URDF files from the wheel `example-robot-data`, on a fixed base."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROBOTS_FOLDER = "cmeel.prefix/share/example-robot-data/robots"


@dataclass(frozen=True)
class Robot:
    """A URDF file, and the joints that are held still in it."""

    name: str
    file: str
    locked: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Where the installed wheel has the file."""
        wheel = metadata.distribution("example-robot-data")
        return Path(str(wheel.locate_file(f"{ROBOTS_FOLDER}/{self.file}")))


ROBOTS = {
    robot.name: robot
    for robot in (
        Robot("panda", "panda_description/urdf/panda.urdf", ("panda_finger_joint1", "panda_finger_joint2")),
        Robot("ur5", "ur_description/urdf/ur5_robot.urdf"),
        Robot("g1", "g1_description/urdf/g1_29dof_rev_1_0.urdf"),
        Robot("talos", "talos_data/robots/talos_reduced.urdf"),
    )
}
