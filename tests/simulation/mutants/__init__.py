"""Defects to plant, one per function; each names the invariant that has to notice it."""
