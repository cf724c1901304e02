"""Sketches: where drawings come from, without torch."""
