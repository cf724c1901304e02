"""Training: what a network sees of the sketches, and how it learns from them."""
