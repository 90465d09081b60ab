"""Ways between configurations, as functions of time."""
