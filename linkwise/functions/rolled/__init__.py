"""Sweeps as loops: for mechanisms of many links."""
