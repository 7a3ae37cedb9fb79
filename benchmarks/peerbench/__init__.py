"""A social network for comparing graph stores, and its answers from plain numpy."""
