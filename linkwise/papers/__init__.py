"""Reports on the papers, for the browser: their numbered figures, tables and claims, computed anew and checked."""
