"""BeginQuorumEpoch (53), v0-1: a new leader makes itself known.

Authorization: CLUSTER_ACTION (there is no authorizer yet: everyone may). Sent by: the leader, to voters.
Answered at once. Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, FENCED_LEADER_EPOCH, INVALID_VOTER_KEY.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
