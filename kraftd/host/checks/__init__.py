"""Checks of a node before and beside its work: addresses, peers, a rehearsed start."""
