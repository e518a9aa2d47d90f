"""Fetch (1), v4-18: brokers, observers and followers read the metadata log.

Authorization: CLUSTER_ACTION (there is no authorizer yet: everyone may). Sent by: every replica of the log.
Answered at once with records or an error; parked until there is news, at most MaxWaitMs, where there is
neither (KIP-1166: also when the high watermark moves). Errors: those of KIP-595 and KIP-630,
NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH among them, with the leader and its endpoint.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from kraftd.server.raft_api import handle as handle
