"""Share groups (KIP-932) at the leaders of their partitions: which member gets which records, and until when.

The rules are in `kraftd.partition.share`, what must outlive the leader is with the share coordinator.
"""
