"""A beam as very many particles, from nothing but the motions of its nodes: the reference for the modal integrals."""

from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from linkwise.flexible.structure import cross_matrix


class BeamParticles:
    """Deflections by Hermite's cubics through the nodes, foreshortening by quadrature of their slopes."""

    def __init__(self, body, length, mass_per_length, rotary_inertia=(0.0, 0.0), per_element=9):
        nodes = sorted(body.nodes, key=lambda node: node.position[0])
        s = np.array([node.position[0] for node in nodes])
        G = np.array([node.Gamma for node in nodes])
        turn = np.array([node.Lambda for node in nodes])
        v = CubicHermiteSpline(s, G[:, 1], turn[:, 2])
        w = CubicHermiteSpline(s, G[:, 2], -turn[:, 1])
        points, weights = np.polynomial.legendre.leggauss(per_element)
        h = np.diff(s)
        x = (s[:-1, None] + h[:, None] * (points + 1) / 2).ravel()
        dx = (h[:, None] * weights / 2).ravel()
        m = G.shape[2]
        zero = np.zeros((len(x), m))
        # Foreshortening -∫(v_i'v_j' + w_i'w_j') from the root to each particle, by quadrature on every piece.
        cuts = np.concatenate([[0.0], x])
        slope = lambda at: np.stack([v(at, 1), w(at, 1)], axis=-2)  # noqa: E731
        steps = []
        for a, b in pairwise(cuts):
            inner = np.concatenate([[a], s[(s > a + 1e-12) & (s < b - 1e-12)], [b]])
            total = np.zeros((m, m))
            for p, q in pairwise(inner):
                at = p + (q - p) * (points + 1) / 2
                d = slope(at)
                total += np.einsum("g,gci,gcj->ij", (q - p) * weights / 2, d, d)
            steps.append(total)
        short = -np.cumsum(steps, axis=0)
        Q = np.zeros((len(x), 3, m, m))
        Q[:, 0] = short
        axis = np.stack([x, 0 * x, 0 * x], axis=1)
        shapes = np.stack([zero, v(x), w(x)], axis=1)
        theta = np.stack([zero, -w(x, 1), v(x, 1)], axis=1)
        self.x, self.G, self.Q, self.dm = [], [], [], []
        ry, rz = (np.sqrt(each / mass_per_length) for each in rotary_inertia)
        # Two pairs of particles would do; a ring of eight has the same second moments.
        for angle in np.arange(8) * np.pi / 4:
            offset = np.array([0.0, np.sqrt(2) * rz * np.cos(angle), np.sqrt(2) * ry * np.sin(angle)])
            spin = cross_matrix(np.moveaxis(theta, 1, 2))
            twice = np.einsum("niab,njbc,c->naij", spin, spin, offset)
            self.x.append(axis + offset)
            self.G.append(shapes + np.einsum("nmab,b->nam", spin, offset))
            self.Q.append(Q + 0.5 * (twice + twice.transpose(0, 1, 3, 2)))
            self.dm.append(mass_per_length * dx / 8)
        self.x, self.G, self.Q, self.dm = (np.concatenate(each) for each in (self.x, self.G, self.Q, self.dm))


def kinetic_energy_reference(particles, eta, eta_dot, V):
    """½ Σ |v + ω×x(η) + (Γ + η*Q) η̇|² dm, with nothing left out."""
    x = particles.x + particles.G @ eta + 0.5 * (particles.Q @ eta) @ eta
    rate = particles.G @ eta_dot + (particles.Q @ eta) @ eta_dot
    velocity = V[3:] + np.cross(V[:3], x) + rate
    return 0.5 * np.einsum("n,na,na->", particles.dm, velocity, velocity)


def second_order_part(energy, eta, eta_dot, V):
    """The coefficients of 1, ε and ε² in energy(εη, εη̇, V), a polynomial of degree four in ε."""
    steps = np.arange(-2, 3)
    values = [energy(e * eta, e * eta_dot, V) for e in steps]
    return np.linalg.solve(np.vander(steps, 5, increasing=True).astype(float), values)[:3]
