"""DescribeQuorum (55), v0-2: voters and observers, and how far each has fetched.

Authorization: DESCRIBE on the cluster (there is no authorizer yet: everyone may). Sent by: admin clients,
also in an Envelope. Answered at once, by the leader only. Errors: NOT_LEADER_OR_FOLLOWER,
UNKNOWN_TOPIC_OR_PARTITION.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
