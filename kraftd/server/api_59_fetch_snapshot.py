"""FetchSnapshot (59), v0-1: a replica that is behind the log start reads a snapshot, piece by piece
(KIP-630).

Authorization: CLUSTER_ACTION (there is no authorizer yet: everyone may). Sent by: every replica of the log.
Answered at once. Errors: SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE, and those of Fetch.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
