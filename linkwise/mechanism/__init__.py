"""Mechanisms: bodies, joints, placements, parameters; and the tree that algorithms run on."""
