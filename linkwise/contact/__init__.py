"""Contact between bodies: shapes that touch, over any scalar."""
