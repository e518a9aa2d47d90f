"""AddRaftVoter (80), v0-1: an observer becomes a voter (KIP-853).

Authorization: ALTER on the cluster (there is no authorizer yet: everyone may). Sent by: admin clients, also
in an Envelope, and observers that join by themselves. Errors: NOT_LEADER_OR_FOLLOWER, UNSUPPORTED_VERSION,
REQUEST_TIMED_OUT, DUPLICATE_VOTER, INVALID_REQUEST.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
