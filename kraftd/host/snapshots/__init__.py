"""The snapshots of the metadata log: written, downloaded from a leader, and read for others (KIP-630)."""
