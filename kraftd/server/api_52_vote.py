"""Vote (52), v0-2: a candidate, or a prospective one (KIP-996), asks for a vote.

Authorization: CLUSTER_ACTION (there is no authorizer yet: everyone may). Sent by: voters. Answered at once,
after a granted vote is on disk. Errors: INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, FENCED_LEADER_EPOCH,
INVALID_VOTER_KEY.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
