"""Recognizing over HTTP, and the page to draw on; without torch."""
