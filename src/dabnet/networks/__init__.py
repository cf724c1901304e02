"""Networks and what they are built of: binary layers, and the conversion of a network that is not ours."""
