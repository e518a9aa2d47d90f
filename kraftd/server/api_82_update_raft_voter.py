"""UpdateRaftVoter (82), v0: a voter tells its endpoints and the kraft.versions that it supports (KIP-853).

Authorization: CLUSTER_ACTION (there is no authorizer yet: everyone may). Sent by: voters. Errors:
NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, INVALID_REQUEST, VOTER_NOT_FOUND, UNSUPPORTED_VERSION.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
