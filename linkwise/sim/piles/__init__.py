"""Piles: many free rigid bodies that touch, each pair of neighbours looked at alone, solved by sweeps over contacts."""
