"""Invariants of the quorum and its log: elections, commits, fetches, snapshots, voters."""
