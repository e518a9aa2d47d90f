"""What lies on disk: the log, checkpoints, quorum-state, meta.properties; everything behind a Disk."""
