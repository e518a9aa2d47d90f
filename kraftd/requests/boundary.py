"""The boundary of a node: the one place where calls are authenticated, authorized, guarded and counted.

Authenticated: a call acts for the principal of its connection, or, in an Envelope, for the client's.
Authorized: an operation on the cluster before its handler runs; on other resources when the handler calls
`allows`, which answers only what the API's row names. Guarded: a fault in a handler is answered
UNKNOWN_SERVER_ERROR for that call, with its traceback in the log, and the process lives. The exceptions are
faults that leave the node's own state half changed (`fatal`). Counted: requests, errors and times by API, in
`stats`.

An API's file calls `answer` and `refuse`; code that parks a call answers it later by `send`. A handler that
may take long is a generator: `large` runs its slices, and those of large requests.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Protocol, TypeVar

from msgspec.structs import replace

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.pace import Slices
from kraftd.ground.refusal import Refusal
from kraftd.requests.answer_memo import AnswerMemo, Place
from kraftd.requests.authorization_audit import AuthorizationAudit, Requester
from kraftd.requests.between_brokers import is_between_brokers
from kraftd.requests.call import Call, envelope_error
from kraftd.requests.effects import Answer, CloseConnection, MuteConnection, ScheduleSlice
from kraftd.requests.events import FramesReceived
from kraftd.requests.holds import Holds, Work
from kraftd.requests.intake import MAX_ELEMENTS, NotServed, read_call, read_head
from kraftd.requests.large_refusals import refuse_in_slices, refused_count
from kraftd.requests.large_requests import LARGE_FRAME_BYTES, Lane, LargeRequests
from kraftd.requests.outbox import Outbox
from kraftd.requests.refusal_log import RefusalLog
from kraftd.requests.refusals import has_one_error, refuse
from kraftd.requests.registry import Registry
from kraftd.requests.stats import RequestStats
from kraftd.requests.unread_refusals import Refused, UnreadRefusal, WholeRefusal, refuse_unread
from kraftd.requests.work_shares import COST_US_PER_UNREAD, Job, cost_us
from kraftd.security.authorizer import NOT_BY_NAME, Authorizer, AuthorizerNotReady, search_any
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import EncodeError, ProtocolError
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer

Fatal = tuple[type[Exception], ...]
Read = TypeVar("Read")

REFUSED_AT_ONCE_BYTES = 4_096  # a larger request is refused in slices
# Of a Produce that one callback judges and writes: 16 batches take about a millisecond, as does a MiB.
MAX_RECORDS_BYTES, MAX_BATCHES = 2_097_152, 64  # batches and topics
_PRODUCE = struct.pack(">h", ApiKey.PRODUCE)


class UndeclaredQuestion(Exception):
    """A handler asks the authorizer for a permission that its row does not name."""


class RequestQuotas(Protocol):
    """What limits how much of the event loop's time a client may take."""

    @property
    def are_set(self) -> bool: ...

    def begin(self, call: Call) -> None:
        """A call is about to be handled."""


class Boundary:
    """The boundary between the listeners of one kind and the handlers of one node.

    `lane` gives large requests slices among the node's other work. `fatal` are exceptions that the guard
    lets through, so that the process ends. `failures` counts the faults that were answered.
    """

    def __init__(
        self,
        registry: Registry,
        outbox: Outbox,
        lane: Lane | None = None,
        *,
        authorizer: Authorizer | None = None,
        fatal: Fatal = (),
        memo: AnswerMemo | None = None,
    ) -> None:
        self.registry = registry
        self.memo = memo if authorizer is None else None  # else each request is authorized
        self.stats = RequestStats()
        self.refusals = RefusalLog(outbox)
        self.failures = 0
        self.quotas: RequestQuotas | None = None
        self._routes = registry.routes
        self._outbox = outbox
        self._authorizer = authorizer  # None: everything is allowed
        self._fatal = fatal
        self.authorizations = AuthorizationAudit(outbox)
        lane = lane or Lane(lambda: outbox.emit(ScheduleSlice()), int)
        self.holds = Holds(self._take_in, lambda work: self.large.later(work))
        self.large = LargeRequests(outbox, self.guard, self.holds, lane)

    # -- calls come in

    def take_in(self, event: FramesReceived) -> None:
        """Handle the requests in frames; a frame that is no request closes its connection."""
        if not self.holds.put_behind(event):
            self._take_in(event)

    def connection_closed(self, connection_id: int) -> None:
        """Drop its requests that wait."""
        self.holds.abandon(connection_id)
        self.large.abandon(connection_id)

    def _take_in(self, event: FramesReceived) -> None:
        connection_id, slot = event.connection_id, event.first_slot
        memo = self.memo if self.quotas is None or not self.quotas.are_set else None
        held = self.holds.counts
        for view in event.frames:
            if connection_id in held:
                self._put_behind(event, slot)
                return
            if len(view) > LARGE_FRAME_BYTES:
                if not self._take_in_records(event, slot, view):
                    self._take_in_large(event, slot, view)
                    return
                slot += 1
                continue
            frame = bytes(view)
            place: Place | bytes | None = None
            if memo is not None:
                kept, api = None, frame[:2]
                if api in memo.repeated.apis:
                    kept, place = memo.repeated.find(connection_id, frame), frame
                elif api in memo.apis:
                    kept, place = memo.find(connection_id, event.listener, frame)
                if kept is not None:
                    self._outbox.effects.append(kept.to_equal(event, slot, frame))
                if kept is not None or (place is frame and memo.repeated.take_varied(event, slot, frame)):
                    slot += 1
                    continue
            try:
                call = read_call(self._routes, event, slot, frame)
            except Exception as error:
                if not self._goes_on_without(connection_id, slot, len(frame), error):
                    return
            else:
                call.place = place
                self.handle(call)
            slot += 1

    def _goes_on_without(self, connection_id: int, slot: int, size_bytes: int, error: Exception) -> bool:
        """Handle a frame that is no call; return whether the connection stays open."""
        if isinstance(error, NotServed):
            self.stats.not_served += 1
            if error.parts:
                self._outbox.emit(Answer(connection_id, slot, error.parts))
                return True
        reason = str(error)
        if not isinstance(error, ProtocolError | NotServed):
            reason = "a request could not be read"
            self.log_failure(reason, f"{size_bytes} bytes", error)
        self._outbox.emit(CloseConnection(connection_id, reason))
        return False

    def _take_in_records(self, event: FramesReceived, slot: int, view: memoryview) -> bool:
        """Handle a Produce of few batches at once, however large they are: records are not decoded."""
        if view[:2] != _PRODUCE or len(view) > MAX_RECORDS_BYTES:
            return False
        try:
            call = read_call(self._routes, event, slot, view, MAX_BATCHES)
        except Exception:
            return False  # it is read again in its lane, and refused there
        self.handle(call)
        return True

    def _take_in_large(self, event: FramesReceived, slot: int, view: memoryview) -> None:
        """Give a large frame to its lane; what comes behind it on the connection waits there."""
        read: Callable[[], Call | Refused] = partial(read_call, self._routes, event, slot, view, MAX_ELEMENTS)

        def take(job: Job, outcome: Call | Refused | Exception) -> None:
            if isinstance(outcome, Exception):
                if not self._goes_on_without(event.connection_id, slot, job.size_bytes, outcome):
                    self.connection_closed(event.connection_id)
                return
            call = outcome.call if isinstance(outcome, Refused) else outcome
            call.is_large = True
            self.serve(job, outcome)

        head = read_head(self._routes, event, slot, view)
        held = True
        if head is not None:
            read = self.unless_refused(*head, view, read)
            held = not is_between_brokers(head[0], self._authorizer)
        sender = (event.principal, event.host)
        self.large.add(Job(sender, event.connection_id, len(view), read, take, held=held))
        self._put_behind(event, slot + 1)

    def _put_behind(self, event: FramesReceived, slot: int) -> None:
        """Have the frames of an event from that slot on wait before all others of the connection."""
        behind = event.frames[slot - event.first_slot :]
        self.holds.put_behind(replace(event, first_slot=slot, frames=behind), first=True)

    def unless_refused(
        self, call: Call, offset: int, frame: Buffer, read: Callable[[], Read]
    ) -> Callable[[], Read | Refused]:
        """The way to read a frame whose message begins at the offset: by `read`, unless the sender has no
        right to any of the elements. Then they are refused without being decoded.
        """
        try:
            refusal = None if self._authorizer is None else self._unread_refusal(call)
        except AuthorizerNotReady:
            refusal = None
        if refusal is None:
            return read
        return lambda: refuse_unread(call, refusal, frame, offset, MAX_ELEMENTS) or read()

    def _unread_refusal(self, call: Call) -> UnreadRefusal | WholeRefusal | None:
        route = self._routes[call.key]
        if route.unread is not None:
            return route.unread(call)
        if route.door is None or self.allows_quietly(call, *route.door):
            return None
        return WholeRefusal(self._check_door) if has_one_error(call.key, call.version) else route.refusal

    def serve(self, job: Job, found: Call | Refused) -> None:
        """Handle the call of a large request, from the next slice on."""
        if isinstance(found, Refused):
            self.large.serve(job, found.call, self._refuse_unread(found), found.size * COST_US_PER_UNREAD)
        else:
            self.large.serve(job, found, self._work_of(found), cost_us(found.message))

    def _refuse_unread(self, refused: Refused) -> Work:
        call, refusal = refused.call, refused.refusal
        if isinstance(refusal, WholeRefusal):
            refusal.check(call)
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)  # the right came after the request
        if refusal.type == AclResourceType.CLUSTER:
            self.allows(call, refusal.operation, refusal.type, CLUSTER_NAME)  # which audits it
        else:
            self.note_denials(call, refusal.operation, refusal.type, refused.count)
        self.count_refused(call, {int(refusal.code): refused.refused_count})
        answer = refusal.response()
        if not refusal.only_rows:
            answer = refuse(call.key, call.version, None, refusal.code, refusal.code.message)
        parts = yield from call.frame_in_slices(answer, refused.encoded(refusal))
        self.send(call, parts)

    def _work_of(self, call: Call) -> Work:
        if self.quotas is not None:
            self.quotas.begin(call)
        if self._authorizer is not None:
            self._check_door(call)
        work = self._routes[call.key].handle(call)
        if work is not None:
            yield from work

    def handle(self, call: Call) -> None:
        """Authorize a call and run its API's handler, guarded; if that is a generator, its first slice."""
        try:
            if self.quotas is not None:
                self.quotas.begin(call)
            if self._authorizer is not None:
                self._check_door(call)
            work = self._routes[call.key].handle(call)
        except Exception as error:
            self.guard(call, error)
        else:
            if work is not None:
                self.large.begin(call, work)

    def _check_door(self, call: Call) -> None:
        door = self._routes[call.key].door
        if door is not None and not self.allows(call, *door):
            denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            raise Refusal(denied, denied.message)

    @property
    def has_authorizer(self) -> bool:
        """Return whether there is an authorizer, so that ACLs have an effect."""
        return self._authorizer is not None

    def allows(self, call: Requester, operation: AclOperation, type: AclResourceType, name: str) -> bool:
        """Return whether the call's principal may do this to one resource that its request names.

        Raises AuthorizerNotReady, which the guard answers.
        """
        authorizer = self._authorizer
        if authorizer is None:
            return True
        self._check_asked(call, operation, type)
        allowed = authorizer.allows(call.principal, call.host, operation, type, name)
        if not allowed or self.authorizations.allowances:
            self.authorizations.note(authorizer, allowed, call, operation, type, name)
        return allowed

    def allows_quietly(
        self, call: Requester, operation: AclOperation, type: AclResourceType, name: str
    ) -> bool:
        """The same as `allows`, without an audit event: another permission may still allow the operation, or
        the result only decides how much is shown.
        """
        authorizer = self._authorizer
        if authorizer is None:
            return True
        self._check_asked(call, operation, type)
        return authorizer.allows(call.principal, call.host, operation, type, name)

    def allows_by_name(
        self, call: Requester, operation: AclOperation, type: AclResourceType, name: str, *, quietly: bool
    ) -> bool:
        """The same as `allows`, but ACLs for patterns that include the name do not suffice, if the authorizer
        can tell.
        """
        authorizer = self._authorizer
        if authorizer is None:
            return True
        self._check_asked(call, operation, type)
        decide = getattr(authorizer, "allows_by_name", authorizer.allows)
        allowed: bool = decide(call.principal, call.host, operation, type, name)
        if not quietly and (not allowed or self.authorizations.allowances):
            by_pattern = not allowed and authorizer.allows(call.principal, call.host, operation, type, name)
            rule = NOT_BY_NAME if by_pattern else None
            self.authorizations.note(authorizer, allowed, call, operation, type, name, rule)
        return allowed

    def allows_on_any(self, call: Requester, operation: AclOperation, type: AclResourceType) -> Slices[bool]:
        """Return whether the call's principal may do this to at least one resource of the type; in slices."""
        authorizer = self._authorizer
        if authorizer is None:
            return True
        self._check_asked(call, operation, type)
        return (yield from search_any(authorizer, call.principal, call.host, operation, type))

    def _check_asked(self, call: Requester, operation: AclOperation, type: AclResourceType) -> None:
        """Raise UndeclaredQuestion for a permission that the API's row does not name."""
        if (operation, type) not in self._routes[call.key].asks:
            what = f"{operation.name} on {type.name}"
            raise UndeclaredQuestion(f"the row of {ApiKey(call.key).name} does not name {what}")

    def allows_none(self, call: Requester, operation: AclOperation, type: AclResourceType) -> bool:
        """Return whether the call is known to be denied this on every resource of the type.

        An authorizer that cannot tell is asked about each resource.
        """
        tell = getattr(self._authorizer, "allows_none", None)
        return tell is not None and bool(tell(call.principal, call.host, operation, type))

    def note_denials(
        self, call: Requester, operation: AclOperation, type: AclResourceType, count: int
    ) -> None:
        """Audit the number of resources of the type that were refused without a question about each."""
        self.authorizations.note_denials(call, operation, type, count)

    # -- answers go out

    def answer(self, call: Call, response: Message) -> None:
        """Answer at once. Raises EncodeError when the call's version cannot carry the response."""
        errors = self.count(call, response)
        parts = call.frame_with(response, errors)
        if self.memo is not None and isinstance(call.place, bytes):
            self.memo.repeated.keep(call, call.place, parts)
        self.send(call, parts)

    def answer_as_before(self, call: Call) -> None:
        """Answer a call that a Varied has taken, as its former request."""
        self.send(call, call.place.parts(call.correlation_id))

    def answer_paced(self, call: Call, response: Message) -> None:
        """As `answer`; a large request is answered in slices, which consume the response."""
        if call.is_large:
            self.large.begin(call, self.answer_in_slices(call, response))
        else:
            self.answer(call, response)

    def answer_in_slices(self, call: Call, response: Message) -> Work:
        """As `answer`, as a generator, for an answer that may be very large; consumes the response."""
        yield from self.count_in_slices(call, response)
        self.send(call, (yield from call.frame_in_slices(response)))

    def count(self, call: Call, response: Message) -> list[int]:
        """Count the errors of an answer, and note refusals; returns the errors' codes."""
        errors = self.stats.count_errors(call.key, response)
        if errors:
            self.refusals.note(call, errors)
        return errors

    def count_in_slices(self, call: Call, response: Message) -> Generator[None, None, list[int]]:
        """As `count`, as a generator, for an answer that may be very large."""
        errors = yield from self.stats.count_errors_in_slices(call.key, response)
        if errors:
            self.refusals.note(call, errors)
        return errors

    def count_refused(self, call: Call, codes: Mapping[int, int]) -> None:
        """Count errors of an answer that is encoded already, and note refusals."""
        for code, count in codes.items():
            self.stats.count_error(call.key, code, count)
        self.refusals.note(call, codes)

    def send(self, call: Call, parts: list[Buffer]) -> None:
        """Answer with a framed response, its errors counted already."""
        call.settled = True
        self._outbox.effects.append(Answer(call.connection_id, call.slot, parts, call))
        if call.mute_ms:
            self._outbox.effects.append(MuteConnection(call.connection_id, call.mute_ms))
        if call.is_large:
            self.large.free(call)

    def refuse(self, call: Call, code: ErrorCode, message: str | None = None) -> None:
        """Refuse the whole request. The refusal of a one-way request closes its connection, as in Kafka.

        A refusal that cannot be written is logged, and becomes UNKNOWN_SERVER_ERROR. If that cannot be
        written either, the connection is closed.
        """
        try:
            self._refuse(call, code, message)
        except Exception as error:
            self.log_failure("a refusal could not be written", repr(call), error)
            if (code, message) != (ErrorCode.UNKNOWN_SERVER_ERROR, None):
                self.refuse(call, ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                call.settled = True
                self._outbox.emit(CloseConnection(call.connection_id, "a request failed"))

    def _refuse(self, call: Call, code: ErrorCode, message: str | None) -> None:
        if call.is_one_way:
            self.stats.count_error(call.key, code)
            self.refusals.note(call, (code,), message)
            call.settled = True
            reason = message or f"a request without an answer was refused: {code.name}"
            self._outbox.emit(CloseConnection(call.connection_id, reason))
            return
        if code == ErrorCode.NOT_CONTROLLER and call.envelope is not None:
            parts = envelope_error(call.envelope, code)  # the broker looks for the controller again
        elif call.size_bytes > REFUSED_AT_ONCE_BYTES and call.message is not None:
            call.settled = True
            self.large.begin(call, self._refuse_in_slices(call, code, message))
            return
        else:
            response = refuse(call.key, call.version, call.message, code, message)
            self.stats.count_errors(call.key, response)
            parts = call.frame(response)
        self.refusals.note(call, (code,), message)
        self.send(call, parts)

    def _refuse_in_slices(self, call: Call, code: ErrorCode, message: str | None) -> Work:
        """Refuse a request that may have very many elements, each of which the answer names."""
        response = yield from refuse_in_slices(call.key, call.version, call.message, code, message)
        self.stats.count_error(call.key, code, refused_count(response))
        self.refusals.note(call, (code,), message)
        parts = yield from call.frame_in_slices(response)
        self.send(call, parts)

    # -- faults

    def guard(self, call: Call, error: Exception) -> None:
        """Refuse a call with the error that its handler or its later work has raised; log it if it is a
        fault.

        Raises the error itself if that is fatal.
        """
        if isinstance(error, Refusal):
            self.refuse(call, error.code, error.message)
        elif isinstance(error, AuthorizerNotReady):
            self.refuse(call, ErrorCode.UNKNOWN_SERVER_ERROR)
        elif isinstance(error, self._fatal):
            raise error
        else:
            self.fail(call, error)

    def fail(self, call: Call, error: Exception) -> None:
        """Answer UNKNOWN_SERVER_ERROR for a fault, with its traceback in the log."""
        what = "an answer could not be written" if isinstance(error, EncodeError) else "a request failed"
        self.log_failure(what, repr(call), error)
        if not call.settled:
            self.refuse(call, ErrorCode.UNKNOWN_SERVER_ERROR)

    def log_failure(self, text: str, call: str, error: Exception) -> None:
        """Count a fault, and log it with its traceback; `call` says what has failed."""
        self.failures += 1
        self._outbox.log("error", text, call=call, error=repr(error), exc_info=error)

    def __repr__(self) -> str:
        return f"<Boundary, {self.registry!r}, {self.failures} failures>"
