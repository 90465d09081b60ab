"""Compiled functions inside other libraries' automatic differentiation; each needs its extra."""

from linkwise.bridges.jax import as_jax
from linkwise.bridges.torch import as_torch

__all__ = ["as_jax", "as_torch"]
