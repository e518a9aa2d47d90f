"""Consumer groups (KIP-848): heartbeats, a target that this side computes, and members that move towards it.

Records are loaded by `replay.py` into `group.py`. `assignors` compute which member reads which partition.
"""
