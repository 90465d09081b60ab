"""A quadruped trots over hills: ground from an array of heights, exact friction, springs at its joints. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise.math import cos, maximum, sin

bone = lw.shapes.rod((0, 0, 0), (0, 0, -0.2), radius=0.015, mass=0.5, collides=False)
turn, knee, foot = lw.Revolute(axis=(0, 1, 0)), lw.transform(xyz=(0, 0, -0.2)), lw.shapes.sphere(0.02, mass=0.05)
b = lw.ModelBuilder("quadruped")
b.add_body("trunk", joint=lw.Free(), shape=lw.shapes.box((0.5, 0.34, 0.08), mass=8.0, collides=False, rgba=(1, 0.6, 0)))
for leg, x, y in (("fl", 0.2, 0.2), ("fr", 0.2, -0.2), ("rl", -0.2, 0.2), ("rr", -0.2, -0.2)):
    b.add_body(f"{leg} thigh", "trunk", turn, lw.transform(xyz=(x, y, 0)), shape=bone)
    b.add_body(f"{leg} shank", f"{leg} thigh", turn, knee, shape=bone + foot.placed((0, 0, -0.2)))
x, rough = np.linspace(-8, 8, 161), np.random.default_rng(1).normal(size=(161, 161))  # m
hills = lw.shapes.heightfield(0.06 * np.outer(np.sin(1.5 * x), np.cos(1.1 * x)) + 0.004 * rough, (16, 16))
robot = b.build().with_contacts(lw.Ground(shape=hills), between=[], material=lw.Material(friction=0.9))


def trot(t, p):  # three times a second; two legs swing ahead in the air while the two others push
    turns = [6 * np.pi * t + side for side in (0, np.pi, np.pi, 0)]
    legs = [(0.6 + 0.15 * cos(a) + 0.2 * maximum(sin(a), 0), -1.2 - 0.5 * maximum(sin(a), 0)) for a in turns]
    return [1, 0, 0, 0, 0, 0, 0, *(angle for leg in legs for angle in leg)]


drives = lw.PD(robot, trot, kp=300, kd=6)  # of joints: nothing holds the trunk
motion = lw.simulate(robot, [1, 0, 0, 0, 0, 0, 0.37, *trot(0.0, ())[7:]], duration=8, dt=0.002, control=drives)
way, deepest = motion.q[-1, 4], -1e3 * motion.contacts.deepest.min()
print(f"{way:.2f} m in 8 s; feet were in the ground by {deepest:.4f} mm at most")
motion.at(np.arange(0, 8, 0.08)).save_video("walking_quadruped.gif", size=(320, 240), fps=12)
