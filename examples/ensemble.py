"""Two thousand falls of arms with loads; Ctrl-C breaks the study off, and it goes on. Extras: ensemble, viz."""

import signal

import scipy.stats as st

import linkwise as lw
from linkwise import samples

arm = samples.planar_arm().with_parameters(["link3.mass"])
inputs = {"q0": st.norm([0.0, 0.5, 0.0], 0.1), "link3.mass": st.uniform(0.1, 0.4)}
control, ran = lambda t, q, v, p: -0.05 * v, []
study = {"seed": 1, "store": "study", "batch": 100, "duration": 1.0, "dt": 2e-3, "method": "rk4", "keep": "final"}


def impatient(done):
    ran.append(done)
    if done > 0.3:
        signal.raise_signal(signal.SIGINT)  # as Ctrl-C does


try:
    lw.ensemble(arm, inputs, 2000, control=control, progress=impatient, **study)
except KeyboardInterrupt as interrupt:
    print(interrupt)  # how to go on
results = lw.ensemble(arm, inputs, 2000, control=control, resume=True, **study)  # nothing is run twice
before, members = 2000 * ran[-1], len(results["q0"])
print(f"{before:.0f} of {members} members were run before it was broken off")
motion = lw.simulate(arm, results["q0"][:8], p=results["link3.mass"][:8, None], duration=1.0, control=control)
motion.save_video("ensemble.gif", size=(320, 240), fps=12, speed=0.5)
