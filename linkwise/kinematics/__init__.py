"""Configurations that reach goals: inverse kinematics, compiled for a mechanism and its goals."""
