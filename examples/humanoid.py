"""A humanoid loses its balance and falls on the floor, with the camera following. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise import samples

robot = samples.humanoid("all")
touching = [body.name for body in robot.bodies if body.collisions]
skin = lw.Material(friction=0.8, stiffness=2e4, damping=0.02)  # N/m, s
rules = lw.ContactRules(friction_speed=0.1)  # m/s: soft enough for steps of a quarter of a millisecond
robot = robot.with_contacts(lw.Ground(), only=touching, material=skin, rules=rules).with_joint_constants(damping=0.5)

stand = robot.configurations["stand"]
push = np.zeros(robot.nv)
push[3] = 0.4  # m/s, ahead
motion = lw.simulate(robot, stand, push, duration=2.0, dt=2.5e-4, method="rk4", output_times=np.linspace(0, 2, 51))

standing, fallen = motion.pose("head")[[0, -1], 2, 3]
print(f"{robot.nv} freedoms, {len(touching)} bodies that touch the floor")
print(f"the head falls from {standing:.2f} m to {fallen:.2f} m")
motion.save_video("humanoid.gif", size=(320, 240), fps=12)
