"""Defects to plant, one a function; each names the invariant that has to notice it."""
