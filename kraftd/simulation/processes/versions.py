"""The newest versions of requests that processes speak: those of this release, and of older ones."""

from __future__ import annotations

NEWEST = {
    "FetchRequest": 18,
    "VoteRequest": 2,
    "BeginQuorumEpochRequest": 1,
    "EndQuorumEpochRequest": 1,
    "FetchSnapshotRequest": 1,
    "ApiVersionsRequest": 4,
    "AddRaftVoterRequest": 1,
    "RemoveRaftVoterRequest": 0,
    "UpdateRaftVoterRequest": 0,
}
OLD = NEWEST | {"FetchRequest": 17, "VoteRequest": 1, "AddRaftVoterRequest": 0}
