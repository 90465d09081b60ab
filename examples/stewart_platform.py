"""A Stewart platform: its six legs are driven, its plate circles and tilts. Extra: viz."""

import numpy as np

import linkwise as lw
from linkwise import samples

model = samples.stewart_platform()
for i in range(1, 7):
    phase = (i // 2) * 2 * np.pi / 3  # legs that meet at the plate go together

    def length(t, phase=phase):
        return 0.15 * lw.math.sin(np.pi * t + phase)  # m, beyond that at rest

    model = model.with_coupling(f"motor{i}", lw.closures.Prescribed(f"slide{i}", length))

start = model.assemble(model.neutral())
rest = model.constraints.project_velocity(start, np.zeros(model.nv))
motion = lw.simulate(model, start, rest, duration=4.0, output_times=np.linspace(0, 4, 101))

gap, push = np.abs(motion.closure_error).max(), np.abs(motion.constraint_forces().multipliers[:, -6:]).max()
print(f"the loops stay closed to {gap:.0e} m; a motor pushes with up to {push:.0f} N")
motion.save_video("stewart_platform.gif", size=(320, 240), fps=10)
