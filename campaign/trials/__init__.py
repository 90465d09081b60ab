"""One file for each kind of trial."""
