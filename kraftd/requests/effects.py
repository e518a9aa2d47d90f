"""Effects of any node that serves requests. The runtime performs them in order."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Protocol

from msgspec import Struct

from kraftd.ground.effect import Effect
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.requests.call import Call
from kraftd.requests.events import FrameRead
from kraftd.requests.intake import NotServed
from kraftd.requests.work_shares import Job
from kraftd.security.principals import Principal
from kraftd.types import METADATA_TOPIC_ID, Uuid
from kraftd.wire.api import ApiKey
from kraftd.wire.errors import ProtocolError, without_frames
from kraftd.wire.primitives import Buffer

_API_NAMES = {int(key): key.name for key in ApiKey}


class Answer(Effect, frozen=True):
    """Send these bytes as the answer in this slot of the connection; no bytes for an unwanted answer.

    `call` is the answered call, None for a frame that became no call.
    """

    connection_id: int
    slot: int
    parts: list[Buffer]
    call: Call | None = None

    def __repr__(self) -> str:
        return f"<Answer {self.connection_id}/{self.slot}, {sum(map(len, self.parts))} bytes>"


class RecordsOf(Struct, frozen=True, gc=False):
    """The records of one partition of an answer: whole batches from `offset` on, none at or past
    `end_offset`, up to `max_bytes`; with `at_least_one` the first may be larger.
    """

    partition: PartitionData
    offset: int
    end_offset: int
    max_bytes: int
    topic_id: Uuid = METADATA_TOPIC_ID
    at_least_one: bool = True

    def within_limit(self, records: Buffer) -> Buffer:
        """Records as a log has read them, which begin with one batch whatever its size."""
        if self.at_least_one or len(records) <= self.max_bytes:
            return records
        self.partition.aborted_transactions = None  # as in Kafka
        return b""

    def __repr__(self) -> str:
        return f"[{self.offset}, {self.end_offset}) up to {self.max_bytes} bytes"


class AnswerRecords(Effect, frozen=True):
    """Read the records of some partitions; then send `fill(records)` as the answer to the call."""

    call: Call
    message: FetchResponse
    reads: tuple[RecordsOf, ...]

    def fill(self, records: Iterable[Buffer]) -> list[Buffer]:
        """The framed answer with the records in it, in the order of `reads`."""
        self._put(records)
        return self.call.frame(self.message)

    def fill_in_slices(self, records: Iterable[Buffer]) -> Generator[None, None, list[Buffer]]:
        """As `fill`, as a generator, for an answer of very many partitions; consumes the answer."""
        self._put(records)
        return (yield from self.call.frame_in_slices(self.message))

    def _put(self, records: Iterable[Buffer]) -> None:
        for read, data in zip(self.reads, records, strict=True):
            read.partition.records = data

    def __repr__(self) -> str:
        return f"<AnswerRecords {self.call!r} {', '.join(map(repr, self.reads))}>"


class MuteConnection(Effect, frozen=True):
    """Read no further request of the connection for so long (KIP-219)."""

    connection_id: int
    for_ms: int


class CloseConnection(Effect, frozen=True):
    """Close the connection after sending the answers before."""

    connection_id: int
    reason: str


class ScheduleSlice(Effect, frozen=True):
    """There is more to do than one event loop callback allows: answer SliceDue in the next one."""


class ReadFrame(Effect, frozen=True):
    """Call `job.read` in a thread, because a large frame takes long to decode: FrameRead comes back."""

    job: Job

    def read(self) -> FrameRead:
        """What comes back."""
        try:
            return FrameRead(self.job, self.job.read())
        except (ProtocolError, NotServed) as error:
            return FrameRead(self.job, without_frames(error))
        except Exception as error:
            return FrameRead(self.job, error)


class Detail(Protocol):
    """The subject of an event, made into fields only when they are read: most events are never read."""

    def fields(self) -> dict[str, Any]: ...


class Caller(Struct, frozen=True, gc=False):
    """The sender of a request for a change, without the request, which may be large."""

    principal: Principal
    client_id: str
    host: str
    key: int

    def fields(self) -> dict[str, Any]:
        """The fields in the audit stream and the log."""
        api = _API_NAMES[self.key]
        return {"principal": str(self.principal), "client_id": self.client_id, "host": self.host, "api": api}


class AuditLine(Effect, frozen=True):
    """An event for the audit stream: an action or a refusal, with the caller.

    `offset` is the one after the event's records, -1 if it wrote none. `caller` is None if no call caused the
    event, or if the detail names the caller.
    """

    event: str
    offset: int
    detail: dict[str, Any] | Detail
    caller: Caller | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The detail and the caller, by name."""
        fields = self.detail if isinstance(self.detail, dict) else self.detail.fields()
        return fields if self.caller is None else {**fields, **self.caller.fields()}

    def __repr__(self) -> str:
        return f"<AuditLine {self.event} {self.fields}>"


class LogLine(Effect, frozen=True):
    """A line for the log: `level` is debug, info, warning or error."""

    level: str
    text: str
    fields: dict[str, Any]
