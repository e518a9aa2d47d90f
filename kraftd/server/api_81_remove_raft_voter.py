"""RemoveRaftVoter (81), v0: a voter leaves the quorum (KIP-853).

Authorization: ALTER on the cluster (there is no authorizer yet: everyone may). Sent by: admin clients, also
in an Envelope. Errors: NOT_LEADER_OR_FOLLOWER, UNSUPPORTED_VERSION, REQUEST_TIMED_OUT, VOTER_NOT_FOUND,
INVALID_REQUEST.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
