"""The core's events: past participles, each a fact that has already happened.

The runner (daemon or simulation) hands one event at a time to `RaftCore.step(event, now_ms)` and performs
the effects that come back, in order.  `now_ms` is milliseconds since the Unix epoch by a clock that neither
jumps nor runs backwards (wall time at start plus monotonic time since). Timeouts are measured by it;
`WallClockStepped` says how far the wall clock has moved away from it.
"""

from __future__ import annotations

from collections.abc import Hashable

from kraftd.ground.event import Event
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

RequestId = Hashable
AppendId = Hashable


class Started(Event, frozen=True, gc=False):
    """The first event, once: the replica resumes the state that it was constructed with."""


class WallClockStepped(Event, frozen=True, gc=False):
    """The wall clock was set: from now on it is `ahead_ms` (negative: behind) of `now_ms`.

    Wall time stamps records and tells when a replica fetched. No timeout depends on it.
    """

    ahead_ms: int


# --- requests of other nodes -------------------------------------------------------------------------------


class RequestReceived(Event, frozen=True, gc=False):
    """A raft request, decoded: Fetch, Vote, BeginQuorumEpoch, EndQuorumEpoch, FetchSnapshot, DescribeQuorum,
    AddRaftVoter, RemoveRaftVoter or UpdateRaftVoter.

    The core answers it exactly once, at once or when a parked fetch completes: by a Respond, RespondRecords
    or RespondSnapshot effect with the same `request_id`. `listener` is the name of the listener on which it
    arrived: endpoints in the answer are of that listener.
    """

    request_id: RequestId
    message: Message
    version: int
    listener: str = ""

    def __repr__(self) -> str:
        return f"<RequestReceived {self.request_id} {type(self.message).__name__} v{self.version}>"


class RequestAbandoned(Event, frozen=True, gc=False):
    """A request's connection is gone: drop the request if it is parked, for it needs no answer."""

    request_id: RequestId


# --- answers to requests of the core --------------------------------------------------------------------


class ResponseReceived(Event, frozen=True, gc=False):
    """The decoded response to the Send effect with this `send_id`.  Late and unknown ones are ignored."""

    send_id: int
    message: Message

    def __repr__(self) -> str:
        return f"<ResponseReceived {self.send_id} {type(self.message).__name__}>"


class SendFailed(Event, frozen=True, gc=False):
    """A Send failed.

    `error` is UNSUPPORTED_VERSION when the peer offers no version that can carry the message,
    NETWORK_EXCEPTION when it could not be authenticated, BROKER_NOT_AVAILABLE for every other loss.
    """

    send_id: int
    error: ErrorCode = ErrorCode.BROKER_NOT_AVAILABLE


class ConnectionLost(Event, frozen=True, gc=False):
    """The connection to a node was reset, or refused on connecting; this side did not close it for idleness.

    The loss of the leader's node starts a pre-vote at once instead of after the fetch timeout.
    """

    node_id: int


# --- the log ------------------------------------------------------------------------------------------


class RecordsSynced(Event, frozen=True, gc=False):
    """All records below `end_offset` are on stable storage.  Answers SyncLog."""

    end_offset: int


class BatchLocated(Event, frozen=True, gc=False):
    """The batch that holds `offset` begins at `base_offset`.  Answers LocateBatch."""

    offset: int
    base_offset: int


class AppendRequested(Event, frozen=True, gc=False):
    """The controller wants records written; answered at once by AppendAccepted or AppendRefused and, once
    accepted, exactly once by AppendCommitted or AppendAborted.

    `values` are whole record values. `epoch` is the leader epoch in which they were decided: in any other
    they are refused. Atomic ones become one batch; others may be cut into several of at most 8 MiB. An append
    without values commits with everything appended before it: a read that must not show what could still be
    undone waits for one.
    """

    append_id: AppendId
    values: list[bytes]
    epoch: int
    atomic: bool = True

    def __repr__(self) -> str:
        return f"<AppendRequested {self.append_id} {len(self.values)} records in epoch {self.epoch}>"


class KRaftVersionUpgradeRequested(Event, frozen=True, gc=False):
    """UpdateFeatures requests this kraft.version (KIP-853); answered like an AppendRequested."""

    append_id: AppendId
    kraft_version: int
    epoch: int
    validate_only: bool = False


# --- snapshots ----------------------------------------------------------------------------------------


class SnapshotTaken(Event, frozen=True, gc=False):
    """A snapshot that this replica made of its own log is complete and named."""

    snapshot_id: OffsetAndEpoch
    size_bytes: int


class SnapshotFinished(Event, frozen=True, gc=False):
    """The download that FinishSnapshot closed is synced and named.  Answers FinishSnapshot.

    `control_batches` are the snapshot's control batches (KRaftVersion and Voters records are read from them).
    """

    snapshot_id: OffsetAndEpoch
    size_bytes: int
    control_batches: tuple[bytes, ...] = ()


class SnapshotRefused(Event, frozen=True, gc=False):
    """The download that FinishSnapshot closed is damaged, and deleted.  Answers FinishSnapshot."""

    snapshot_id: OffsetAndEpoch


class SnapshotsDeleted(Event, frozen=True, gc=False):
    """Retention removed these snapshots."""

    snapshot_ids: tuple[OffsetAndEpoch, ...]


class LogStartMoved(Event, frozen=True, gc=False):
    """Retention removed the log below `log_start_offset`, which is the end of a snapshot."""

    log_start_offset: int


# --- the end ------------------------------------------------------------------------------------------


class ResignRequested(Event, frozen=True, gc=False):
    """Resign the leadership of `epoch`; ignored if it is over already."""

    epoch: int


class ShutdownRequested(Event, frozen=True, gc=False):
    """Leave gracefully: a leader resigns and notifies its successors. Answered by ShutdownCompleted within
    `timeout_ms`.
    """

    timeout_ms: int
