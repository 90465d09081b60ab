"""Tests in other environments: other Pythons, other packages, another machine."""
