"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, with a leader that assigns partitions."""
