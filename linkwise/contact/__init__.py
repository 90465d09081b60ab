"""Contact: shapes that meet, materials, and steps in time with exact Coulomb friction, over any scalar."""
