"""Masses, mass centres and inertias of an arm, as far as they can be felt, from noisy torques. Extra: viz."""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import samples

arm = samples.seven_joint_arm().with_joint_constants(damping=0.0, armature=0.0)
t, rng = np.linspace(0.0, 20.0, 1000), np.random.default_rng(0)


def excited():
    size, rate, phase = rng.uniform(0.1, 0.5, (3, 5, 7)) * np.array([1, 8, 12])[:, None, None]
    angle = t[:, None, None] * rate + phase
    waves = size * np.sin(angle), size * rate * np.cos(angle), -size * rate**2 * np.sin(angle)
    states = [wave.sum(axis=1) for wave in waves]
    return states, arm.inverse_dynamics(*states)


states, tau = excited()
Y = arm.regressor(*states).reshape(t.size * 7, -1)  # τ = Y π
pi, _, felt, _ = np.linalg.lstsq(Y, (tau + 0.1 * rng.standard_normal(tau.shape)).ravel(), rcond=1e-9)
print(f"{felt} combinations of {Y.shape[1]} parameters can be felt at the joints")
other, tau = excited()
predicted = (arm.regressor(*other) @ pi).reshape(tau.shape)
error, rms = np.sqrt(np.mean((predicted - tau) ** 2)), np.sqrt(np.mean(tau**2))
print(f"torques of another motion are predicted to {error:.4f} N m (rms) of {rms:.1f}")
plt.plot(t, tau[:, 1:4], "-", t[::9], predicted[::9, 1:4], ".k")
plt.gca().set(xlabel="t [s]", ylabel="torque of joints 2 to 4 [N m]")
plt.savefig("identification.png", dpi=60)
