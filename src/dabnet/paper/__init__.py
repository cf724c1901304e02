"""The paper's figures, drawn from our own weights."""
