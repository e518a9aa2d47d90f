"""EndQuorumEpoch (54), v0-1: a leader that resigns names its successors.

Authorization: CLUSTER_ACTION (there is no authorizer yet: everyone may). Sent by: a resigning leader, to
voters. Answered at once. Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, FENCED_LEADER_EPOCH.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
