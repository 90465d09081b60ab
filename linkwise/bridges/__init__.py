"""Compiled functions inside other libraries: JAX and PyTorch, each of which needs its extra."""
