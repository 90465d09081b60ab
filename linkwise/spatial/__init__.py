"""Six-dimensional algebra over any scalar: vectors, rotations, transforms, inertias."""
