"""A group changes its protocol while it has members (KIP-848), as `group.consumer.migration.policy` allows.

A classic group becomes a consumer group when a member with the new protocol joins (`upgrade.py`). Its other
members go on with JoinGroup, SyncGroup, Heartbeat and LeaveGroup (`classic_join.py`, `classic_members.py`).
When the last member with the new protocol leaves, the group is classic again (`downgrade.py`).
"""
