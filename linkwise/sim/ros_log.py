"""Motions as ROS 2 messages in MCAP files, which Foxglove, PlotJuggler and ``ros2 bag`` read.

``/joint_states`` has the joints of one freedom (``sensor_msgs/JointState``), ``/tf`` the place of every body in the
frame ``world`` (``tf2_msgs/TFMessage``), one message of each for a sample.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scipy.spatial.transform import Rotation

from linkwise.errors import require_extra
from linkwise.sim.trajectory import Trajectory

_PARTS = {
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/Transform": "geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation",
    "geometry_msgs/TransformStamped": (
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform"
    ),
}
"""Fields of the messages that others are made of."""

_JOINT_STATE = "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort"
_TRANSFORMS = "geometry_msgs/TransformStamped[] transforms"


def save_mcap(trajectory: Trajectory, target: Path) -> None:
    """Write one motion of one state."""
    writing: Any = require_extra("mcap_ros2.writer", "ros")
    model = trajectory._with_model("messages for ROS")
    single = [joint for joint in model.joints if joint.nv == 1 and joint.nq == 1 and joint.mimic is None]
    at_q, at_v = [joint.q_slice.start for joint in single], [joint.v_slice.start for joint in single]
    names = [joint.name for joint in single]
    efforts = trajectory.tau if "tau" in trajectory.values() else None
    poses = trajectory.poses
    turns = Rotation.from_matrix(poses[..., :3, :3].reshape(-1, 3, 3)).as_quat().reshape(*poses.shape[:2], 4)
    with target.open("wb") as file:
        writer = writing.Writer(file)
        states = writer.register_msgdef("sensor_msgs/msg/JointState", _definition(_JOINT_STATE))
        places = writer.register_msgdef("tf2_msgs/msg/TFMessage", _definition(_TRANSFORMS))
        for k, t in enumerate(trajectory.t.tolist()):
            nanoseconds = round(t * 1e9)
            seconds, rest = divmod(nanoseconds, 10**9)
            head = {"stamp": {"sec": seconds, "nanosec": rest}, "frame_id": "world"}
            state = {
                "header": head,
                "name": names,
                "position": trajectory.q[k, at_q].tolist(),
                "velocity": trajectory.v[k, at_v].tolist(),
                "effort": [] if efforts is None else efforts[k, at_v].tolist(),
            }
            transforms = [
                {
                    "header": head,
                    "child_frame_id": body.name,
                    "transform": {
                        "translation": dict(zip("xyz", poses[k, i, :3, 3].tolist(), strict=True)),
                        "rotation": dict(zip("xyzw", turns[k, i].tolist(), strict=True)),
                    },
                }
                for i, body in enumerate(model.bodies)
            ]
            when = {"log_time": nanoseconds, "publish_time": nanoseconds, "sequence": k}
            writer.write_message(topic="/joint_states", schema=states, message=state, **when)
            writer.write_message(topic="/tf", schema=places, message={"transforms": transforms}, **when)
        writer.finish()


def _definition(fields: str) -> str:
    """A message's definition with those of all that it is made of."""
    needed: list[str] = []
    waiting = [fields]
    while waiting:
        for line in waiting.pop().splitlines():
            kind = line.split()[0].removesuffix("[]")
            if kind in _PARTS and kind not in needed:
                needed.append(kind)
                waiting.append(_PARTS[kind])
    return "\n".join([fields, *(f"{'=' * 80}\nMSG: {kind}\n{_PARTS[kind]}" for kind in needed)]) + "\n"
