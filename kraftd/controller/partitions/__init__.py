"""Partitions: ISR, elections, reassignments and log directories (KIP-455, KIP-497, KIP-858, KIP-966).

Public: `isr`, `election`, `reassignment` and `directories` have the decisions. Each of them, and those about
brokers, changes partitions through `edits.PartitionEdits`, which applies the rules in `change`.
"""
