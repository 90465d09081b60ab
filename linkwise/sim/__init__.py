"""Simulation: integrators, actuators and sensors, trajectories."""
