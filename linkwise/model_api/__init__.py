"""The functions of a model in groups: their names, arguments and documentation."""
