"""Algebra over any scalar: spatial vectors, rotations, transforms and inertias, dual numbers, Runge–Kutta steps."""
