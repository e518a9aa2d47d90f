"""Share groups (KIP-932): their members, and which of them read which partition.

Several members may read a partition together. One is assigned once the share coordinator knows of it:
the group's `StatePartitions` say which have come so far. Records are loaded by `replay.py` into `group.py`.
"""
