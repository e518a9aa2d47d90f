"""Partitions: ISR, elections, reassignments, directories."""
