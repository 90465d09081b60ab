"""From Python text to straight-line programs. Knows no robots."""
