"""A straight beam's matrices from the textbook, for readers and arrays: written independently of our elements."""

import numpy as np


def element(L, EA, EI_y, EI_z, GJ, mu, rho_p=0.0):
    """12×12 K and consistent M, Euler–Bernoulli (Przemieniecki), dofs u v w θx θy θz at both ends."""
    K, M = np.zeros((12, 12)), np.zeros((12, 12))
    for k, m, i in ((EA / L, mu * L, 0), (GJ / L, rho_p * L, 3)):
        at = np.ix_([i, i + 6], [i, i + 6])
        K[at] += k * np.array([[1, -1], [-1, 1]])
        M[at] += m / 6 * np.array([[2, 1], [1, 2]])
    for EI, dofs, sign in ((EI_z, [1, 5, 7, 11], 1), (EI_y, [2, 4, 8, 10], -1)):
        S = np.diag([1, sign, 1, sign])
        k = EI / L**3 * np.array([[12, 6 * L, -12, 6 * L], [6 * L, 4 * L**2, -6 * L, 2 * L**2],
                                  [-12, -6 * L, 12, -6 * L], [6 * L, 2 * L**2, -6 * L, 4 * L**2]])  # fmt: skip
        m = mu * L / 420 * np.array([[156, 22 * L, 54, -13 * L], [22 * L, 4 * L**2, 13 * L, -3 * L**2],
                                     [54, 13 * L, 156, -22 * L], [-13 * L, -3 * L**2, -22 * L, 4 * L**2]])  # fmt: skip
        K[np.ix_(dofs, dofs)] += S @ k @ S
        M[np.ix_(dofs, dofs)] += S @ m @ S
    return K, M


def geometric(L, N):
    """12×12 geometric stiffness under the axial force N."""
    K = np.zeros((12, 12))
    for dofs, sign in (([1, 5, 7, 11], 1), ([2, 4, 8, 10], -1)):
        S = np.diag([1, sign, 1, sign])
        k = N / (30 * L) * np.array([[36, 3 * L, -36, 3 * L], [3 * L, 4 * L**2, -3 * L, -(L**2)],
                                     [-36, -3 * L, 36, -3 * L], [3 * L, -(L**2), -3 * L, 4 * L**2]])  # fmt: skip
        K[np.ix_(dofs, dofs)] += S @ k @ S
    return K


def beam(n, L=10.0, EA=2.8e7, EI_y=1.4e4, EI_z=2.0e4, GJ=1e4, mu=1.2, rho_p=1e-3, axial=None):
    """Nodes, M, K of a beam along x with n elements; with `axial`, a function of x, its geometric stiffness too."""
    nodes = np.zeros((n + 1, 3))
    nodes[:, 0] = np.linspace(0, L, n + 1)
    size = 6 * (n + 1)
    K, M, G = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    h = L / n
    for e in range(n):
        at = np.ix_(range(6 * e, 6 * e + 12), range(6 * e, 6 * e + 12))
        k, m = element(h, EA, EI_y, EI_z, GJ, mu, rho_p)
        K[at] += k
        M[at] += m
        if axial is not None:
            G[at] += geometric(h, axial((e + 0.5) * h))
    return (nodes, M, K) if axial is None else (nodes, M, K, G)
