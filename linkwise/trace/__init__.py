"""Programs recorded from Python texts, straight-line blocks, loops and calls, with their passes. Knows no robots."""
