"""Functions of mechanisms with many links: their sweeps as loops over the links."""
