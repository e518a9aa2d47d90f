"""The faults of a world: when they come, to what, and what ends them."""
