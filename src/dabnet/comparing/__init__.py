"""How fast and how small, beside other engines: the same layers in each of them, timed in turns."""
