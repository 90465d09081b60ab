"""Programs as they are: their operations, one a line, for people to read."""
