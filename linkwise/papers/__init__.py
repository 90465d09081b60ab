"""Reports for the browser: motions, figures, and pages that hold them."""
