"""Compiled functions: traced from Python, called on arrays, differentiated, repeated."""
