"""Invariants of what controllers decide: committed records, images and answers."""
