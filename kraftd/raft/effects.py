"""The effects of the consensus core: actions that the runner performs in the given order.

The order of effects is the order of durability. Only two of them touch stable storage in a way that others
wait for: PersistElection is a barrier (it is synced before any later effect, of this step or another, is
begun), and SyncLog is asynchronous (RecordsSynced comes back; the core itself holds back what depends on it).
The runner may start everything else at once.
"""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.raft.events import AppendId, RequestId
from kraftd.types import OffsetAndEpoch, ReplicaKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

# --- the log and the quorum-state file ----------------------------------------------------------------


class PersistElection(Effect, frozen=True, gc=False):
    """Write `quorum-state` in this version and sync it before any later effect begins. `is_new` marks a voter
    that may have forgotten votes.
    """

    state: QuorumStateData
    version: int
    is_new: bool = False

    def __repr__(self) -> str:
        state = self.state
        return f"<PersistElection epoch {state.leader_epoch} leader {state.leader_id} voted {state.voted_id}>"


class AppendRecords(Effect, frozen=True, gc=False):
    """Write whole batches at the end of the log, without syncing. They move the log end from `base_offset` to
    `end_offset`.
    """

    base_offset: int
    end_offset: int
    epoch: int
    data: bytes | memoryview

    def __repr__(self) -> str:
        span = f"[{self.base_offset}, {self.end_offset})"
        return f"<AppendRecords {span} epoch {self.epoch}, {len(self.data)} bytes>"


class SyncLog(Effect, frozen=True, gc=False):
    """Sync the log off the event loop, then answer RecordsSynced with the synced end: `end_offset` or more.

    At most one sync runs at a time; records appended meanwhile go with the next.
    """

    end_offset: int


class LocateBatch(Effect, frozen=True, gc=False):
    """Find the batch that holds `offset`, then answer BatchLocated: a log can be cut before a batch only."""

    offset: int


class TruncateLog(Effect, frozen=True, gc=False):
    """Keep a copy of every record at or past `end_offset`, where a batch begins, and drop it.

    The log of this leader in this epoch lacks those records.
    """

    end_offset: int
    leader_id: int
    leader_epoch: int


class ResetLog(Effect, frozen=True, gc=False):
    """Drop the whole log; it starts and ends at this snapshot, of this leader in this epoch.

    The snapshot may lack records at or past `keep_from`: those are copied first.
    """

    snapshot_id: OffsetAndEpoch
    keep_from: int
    leader_id: int
    leader_epoch: int


# --- messages -----------------------------------------------------------------------------------------


class Respond(Effect, frozen=True, gc=False):
    """Answer a request."""

    request_id: RequestId
    message: Message
    version: int

    def __repr__(self) -> str:
        return f"<Respond {self.request_id} {type(self.message).__name__}>"


class RespondRecords(Effect, frozen=True, gc=False):
    """Answer a Fetch: fill in `records` of its only partition from the log, then respond.

    Whole batches, beginning with the one that holds `offset`, none at or past `end_offset`: as many as fit
    into `max_bytes`, and at least one.
    """

    request_id: RequestId
    message: Message
    version: int
    offset: int
    end_offset: int
    max_bytes: int

    def __repr__(self) -> str:
        span = f"[{self.offset}, {self.end_offset})"
        return f"<RespondRecords {self.request_id} {span} up to {self.max_bytes} bytes>"


class RespondSnapshot(Effect, frozen=True, gc=False):
    """Answer a FetchSnapshot: fill in `unaligned_records` of its only partition with at most `max_bytes` of
    the snapshot's file from `position` on, then respond."""

    request_id: RequestId
    message: Message
    version: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


class Send(Effect, frozen=True, gc=False):
    """Send a request in the highest version that both sides know; ResponseReceived or SendFailed comes back
    with the same `send_id`.  The core keeps the time itself: the runner need not time it out."""

    send_id: int
    destination: Destination
    message: Message

    def __repr__(self) -> str:
        return f"<Send {self.send_id} {type(self.message).__name__} to {self.destination}>"


# --- the fate of appends ------------------------------------------------------------------------------


class AppendAccepted(Effect, frozen=True, gc=False):
    """The records got the offsets from `base_offset` to `end_offset` (exclusive); the leader applies them
    now.
    """

    append_id: AppendId
    base_offset: int
    end_offset: int
    epoch: int


class AppendRefused(Effect, frozen=True, gc=False):
    """Nothing was appended, and nothing more is reported of it.

    NOT_CONTROLLER: not the leader of that epoch; RECORD_LIST_TOO_LARGE: an atomic append, or one of its
    records, is larger than a batch may be.
    """

    append_id: AppendId
    error: ErrorCode


class AppendCommitted(Effect, frozen=True, gc=False):
    """The append is committed: the high watermark is at or past its end."""

    append_id: AppendId
    end_offset: int


class AppendAborted(Effect, frozen=True, gc=False):
    """Leadership was lost before the append committed: it may or may not survive."""

    append_id: AppendId
    error: ErrorCode = ErrorCode.NOT_CONTROLLER


# --- news for the rest of the node --------------------------------------------------------------


class HighWatermarkMoved(Effect, frozen=True, gc=False):
    """Everything below is committed.  Within a step it comes before the AppendCommitted that it causes."""

    high_watermark: int


class LeadershipChanged(Effect, frozen=True, gc=False):
    """The leader. `leader_id` is None while none is known, and as soon as this replica resigns.

    With `is_local` this replica leads, and the high watermark has passed the start of its epoch.
    HighWatermarkMoved has then covered all that was committed before, so decisions may build on it.
    """

    epoch: int
    leader_id: int | None
    is_local: bool = False


class VotersChanged(Effect, frozen=True, gc=False):
    """Another voter set or kraft.version is in force: read `core.voters` and `core.kraft_version`.

    The cause is a record that was appended, committed or not, or a truncation that undid one.
    """


class ReplicaWentBack(Effect, frozen=True, gc=False):
    """A replica shows by a request less than it had shown this leader: a shorter log, or an older epoch.

    It had acknowledged the records before `acknowledged`; its log now ends at `offset`, with a record of
    `epoch`. Without an offset, its request is of the older `epoch`, although it has fetched in
    `leader_epoch`. A request that arrives late, by an old connection, shows the same.
    """

    request_id: RequestId
    key: ReplicaKey
    is_voter: bool
    acknowledged: int
    leader_epoch: int
    offset: int | None
    epoch: int


class ShutdownCompleted(Effect, frozen=True, gc=False):
    """The shutdown is complete; `graceful` is false if its time ran out first."""

    graceful: bool = True


# --- snapshot download --------------------------------------------------------------------------------


class BeginSnapshot(Effect, frozen=True, gc=False):
    """Open this snapshot's `.part` file and keep its first `position` bytes, written before a change of
    leader or a restart; 0 empties it.
    """

    snapshot_id: OffsetAndEpoch
    position: int = 0


class WriteSnapshot(Effect, frozen=True, gc=False):
    """Append bytes to the `.part` file, at `position`."""

    snapshot_id: OffsetAndEpoch
    position: int
    data: bytes | memoryview

    def __repr__(self) -> str:
        return f"<WriteSnapshot {self.snapshot_id} at {self.position}, {len(self.data)} bytes>"


class FinishSnapshot(Effect, frozen=True, gc=False):
    """Sync and name the snapshot, then answer SnapshotFinished."""

    snapshot_id: OffsetAndEpoch


class AbandonSnapshot(Effect, frozen=True, gc=False):
    """Delete the `.part` file. Never comes between FinishSnapshot and its answer."""

    snapshot_id: OffsetAndEpoch
