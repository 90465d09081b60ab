"""A humanoid stands on its feet, is pushed, goes limp and falls on the floor. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise import samples

robot = samples.humanoid("all")
touching = [body.name for body in robot.bodies if body.collisions]
robot = robot.with_contacts(lw.Ground(), only=touching, material=lw.Material(friction=0.8))
stand = robot.configurations["stand"]


def springs(k):  # at all joints, N m/rad, with dampers; nothing holds the pelvis
    return lw.PD(robot, stand, kp=k, kd=0.1 * k)


standing = lw.simulate(robot, stand, duration=1.0, dt=0.002, control=springs(400.0))
push = np.eye(robot.nv)[3] * 0.5  # m/s, ahead
fall = lw.simulate(robot, standing.q[-1], standing.v[-1] + push, duration=2.0, dt=0.002, control=springs(4.0))

upright, fallen = standing.pose("head")[-1, 2, 3], fall.pose("head")[-1, 2, 3]
print(f"{robot.nv} freedoms, {len(touching)} bodies that touch the floor")
print(f"the head falls from {upright:.2f} m to {fallen:.2f} m")
fall.at(np.linspace(0, 2, 51)).save_video("humanoid.gif", size=(320, 240), fps=12)
