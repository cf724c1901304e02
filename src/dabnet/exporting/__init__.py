"""What a network costs, and how it becomes a small file."""
