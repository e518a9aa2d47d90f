"""Invariants of brokers: the records of their partitions, their replicas, and groups."""
