"""Each claim of the paper, from runs and measurements of our own."""
