"""BrokerHeartbeat and sessions: when a broker is fenced, unfenced, or may shut down (KIP-631, KIP-841).

The states of a broker, and where a heartbeat takes it:

  fenced      -> shut down        it wants to shut down
              -> active           it no longer wants the fence, and has read its own registration
  active      -> fenced           it wants the fence
              -> shut down        it wants to shut down and leads nothing, or wants the fence as well
              -> shutting down    it wants to shut down and leads partitions
  shutting    -> shut down        it leads nothing, and every active broker has read that it does not
   down
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from kraftd.controller.brokers.departures import Departure
from kraftd.controller.brokers.heartbeats import EVERY_OFFSET, NO_OFFSET
from kraftd.controller.brokers.registration import check_broker_epoch
from kraftd.controller.brokers.transitions import (
    fence,
    handle_broker_fenced,
    handle_broker_in_controlled_shutdown,
    handle_broker_leaves,
    handle_broker_unfenced,
    handle_directories_cordoned,
    handle_directories_offline,
    mark_controlled_shutdown,
)
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.ground.pace import Slices, at_once
from kraftd.ground.refusal import Refusal
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.metadata.state import BrokerState
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

FENCED: Final = "fenced"
ACTIVE: Final = "active"
SHUTTING_DOWN: Final = "shutting down"
SHUT_DOWN: Final = "shut down"

MAX_PARTITIONS_PER_CALL = 250  # for a broker to leave: 5 ms with their records, if it is in this process

# The two answers to a broker that stays active.
CAUGHT_UP: Final = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=False)
BEHIND: Final = BrokerHeartbeatResponse(is_caught_up=False, is_fenced=False, should_shut_down=False)


class Unchanged(NamedTuple):
    """The answer to a heartbeat that changes nothing, and the offset of the newest record it reflects."""

    answer: BrokerHeartbeatResponse
    seen_offset: int


def renew_session(ctx: Context, request: BrokerHeartbeatRequest) -> None:
    """Renew a broker's session (soft state), even if its request fails; an unknown broker has no session."""
    broker = ctx.image.brokers.get(request.broker_id)
    if broker is None:
        return
    ctx.heartbeats.heard(broker.id, ctx.now_ms)
    if broker.epoch == request.broker_epoch:
        ctx.heartbeats.renew(broker.id, broker.epoch, ctx.now_ms)


def unchanged(ctx: Context, request: BrokerHeartbeatRequest) -> Unchanged | None:
    """Note the heartbeat of an active broker that wants to stay active, as nearly all do, and return its
    answer.

    None for any other heartbeat, which then goes to ``begin_heartbeat``. That would decide the same, at three
    times the cost. To be called after ``renew_session``.
    """
    broker_id = request.broker_id
    broker = ctx.image.brokers.get(broker_id)
    if (
        broker is None
        or broker.fenced
        or broker.epoch != request.broker_epoch
        or request.want_fence
        or request.want_shut_down
        or request.offline_log_dirs
        or request.cordoned_log_dirs is not None
    ):
        return None
    offset = request.current_metadata_offset
    if not ctx.heartbeats.note_active(broker, offset):
        return None
    answer = CAUGHT_UP if offset >= ctx.image.registration_offsets[broker_id] else BEHIND
    return Unchanged(answer, ctx.image.broker_offsets[broker_id])


def broker_heartbeat(ctx: Context, request: BrokerHeartbeatRequest) -> Decision[BrokerHeartbeatResponse]:
    """BrokerHeartbeat: the records of the broker's new state, for the broker and its partitions.

    To be called after ``renew_session``.
    Raises Refusal(STALE_BROKER_EPOCH).
    """
    decision = begin_heartbeat(ctx, request)
    return decision if isinstance(decision, Decision) else at_once(decision)


def begin_heartbeat(
    ctx: Context, request: BrokerHeartbeatRequest
) -> Decision[BrokerHeartbeatResponse] | Slices[Decision[BrokerHeartbeatResponse]]:
    """As ``broker_heartbeat``, as a generator if something changes: most heartbeats change nothing."""
    registered_at = ctx.image.registration_offsets.get(request.broker_id)
    if registered_at is None:
        raise Refusal(ErrorCode.STALE_BROKER_EPOCH, f"Broker {request.broker_id} is not registered.")
    broker = check_broker_epoch(ctx, request.broker_id, request.broker_epoch)
    before = current_state(ctx, broker)
    after = next_state(ctx, broker, before, request, registered_at)
    if after is before and not request.offline_log_dirs and request.cordoned_log_dirs is None:
        return _heartbeat(ctx, request, broker, after, registered_at, [], None)
    return _change_of_state(ctx, request, broker, before, after, registered_at)


def _change_of_state(
    ctx: Context,
    request: BrokerHeartbeatRequest,
    broker: BrokerState,
    before: str,
    after: str,
    registered_at: int,
) -> Slices[Decision[BrokerHeartbeatResponse]]:
    records: list[VersionedRecord] = []
    departure: Departure | None = None
    while (after is not before or request.offline_log_dirs) and not ctx.image.settle_hosted(broker.id):
        yield
    if after is not before:
        if after is ACTIVE:
            records += yield from handle_broker_unfenced.begin(ctx, broker.id, broker.epoch)
        elif after is SHUTTING_DOWN:
            departure = _departure(ctx, broker)
            if departure is not None:
                records += mark_controlled_shutdown(ctx, broker.id, broker.epoch)
            else:
                records += yield from handle_broker_in_controlled_shutdown.begin(ctx, broker.id, broker.epoch)
        else:
            left = ctx.heartbeats.departure_of(broker)
            if left is not None and left.is_over:
                records += fence(broker)
            else:
                records += yield from handle_broker_fenced.begin(ctx, broker.id)
    if request.offline_log_dirs:
        records += yield from handle_directories_offline.begin(
            ctx, broker.id, broker.epoch, request.offline_log_dirs
        )
    if request.cordoned_log_dirs is not None:
        records += handle_directories_cordoned(ctx, broker.id, broker.epoch, request.cordoned_log_dirs)
    return _heartbeat(ctx, request, broker, after, registered_at, records, departure)


def _heartbeat(
    ctx: Context,
    request: BrokerHeartbeatRequest,
    broker: BrokerState,
    after: str,
    registered_at: int,
    records: list[VersionedRecord],
    departure: Departure | None,
) -> Decision[BrokerHeartbeatResponse]:
    def note_heartbeat(end_offset: int) -> None:
        shutdown_offset = NO_OFFSET
        if after is SHUTTING_DOWN:
            # Set at first: complete once every broker has read the records that move its leaderships away.
            known = ctx.heartbeats.of(broker).shutdown_offset
            shutdown_offset = known if known >= 0 else end_offset - 1
            if departure is not None:
                ctx.heartbeats.departures[broker.id] = departure
                shutdown_offset = EVERY_OFFSET  # until ``leave_partitions`` is done
        # Until its next heartbeat, a broker whose state has changed counts as having read nothing: the
        # shutdowns of others wait for it.
        read = NO_OFFSET if records else request.current_metadata_offset
        ctx.heartbeats.note(broker, read, shutdown_offset)

    answer = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= registered_at,
        is_fenced=after is FENCED or after is SHUT_DOWN,
        should_shut_down=after is SHUT_DOWN,
    )
    seen_offset = ctx.image.broker_offsets[broker.id]
    return Decision(answer, records, atomic=False, after=note_heartbeat, seen_offset=seen_offset)


def current_state(ctx: Context, broker: BrokerState) -> str:
    """The broker's state. A new leader learns of a controlled shutdown under way from the next heartbeat."""
    if broker.fenced:
        return FENCED
    return SHUTTING_DOWN if ctx.heartbeats.of(broker).is_shutting_down else ACTIVE


def next_state(
    ctx: Context, broker: BrokerState, state: str, request: BrokerHeartbeatRequest, registered_at: int
) -> str:
    """The state after a heartbeat, by the table at the top of this module."""
    if state is FENCED:
        if request.want_shut_down:
            return SHUT_DOWN
        may_leave = not request.want_fence and request.current_metadata_offset >= registered_at
        return ACTIVE if may_leave else FENCED
    leads = ctx.image.led_count(broker.id) > 0
    departure = ctx.heartbeats.departure_of(broker)
    if state is SHUTTING_DOWN and departure is not None and not departure.is_over:
        return SHUTTING_DOWN
    if state is ACTIVE:
        if request.want_fence:
            return SHUT_DOWN if request.want_shut_down else FENCED
        if request.want_shut_down:
            return SHUTTING_DOWN if leads else SHUT_DOWN
        return ACTIVE
    if leads:
        return SHUTTING_DOWN
    all_have_read = ctx.heartbeats.of(broker).shutdown_offset <= ctx.heartbeats.lowest_active_offset(
        ctx.image.brokers
    )
    return SHUT_DOWN if all_have_read else SHUTTING_DOWN


def fence_stale_broker(ctx: Context) -> Decision[bool]:
    """Fence the broker that was silent for longest, if its session is over.

    One at a time, so that the next decision sees the effect of this one. A broker with very many partitions
    leaves some of them in each call and is fenced with the last. Other requests are decided in between. If a
    heartbeat arrives before that, the broker is not fenced, and rejoins the ISRs that it left as any replica
    does.

    The answer is whether to call again at once; if False, call again at
    ``ctx.heartbeats.next_deadline_ms()``.
    """
    stale = ctx.heartbeats.stale(ctx.now_ms)
    if stale is None:
        return Decision(False, after=lambda _end_offset: _forget_resumed(ctx))
    broker_id, broker_epoch = stale
    broker = ctx.image.brokers.get(broker_id)
    records: list[VersionedRecord] = []
    if broker is not None and broker.epoch == broker_epoch:
        departure = ctx.heartbeats.departure_of(broker)
        if departure is None:
            if not ctx.image.settle_hosted(broker_id):
                return Decision(True)
            begun = _departure(ctx, broker)
            if begun is not None:
                return Decision(True, after=lambda _end_offset: _begin(ctx, begun))
            records = handle_broker_fenced(ctx, broker_id)
        else:
            leaving, position = departure.next(ctx.image, MAX_PARTITIONS_PER_CALL)
            records = handle_broker_leaves(ctx, broker_id, leaving)
            if not departure.is_last(position):
                return Decision(
                    True, records, atomic=False, after=lambda _end_offset: departure.reach(position)
                )
            records += fence(broker)

    def end_session(_end_offset: int) -> None:
        ctx.heartbeats.end_session(broker_id, broker_epoch)
        if records:
            ctx.heartbeats.forget(broker_id)

    return Decision(True, records, atomic=False, after=end_session)


def leave_partitions(ctx: Context) -> Decision[bool]:
    """Move a part of the leaderships and ISRs of a broker that shuts down and has very many.

    The answer is whether to call again at once.
    """
    for departure in ctx.heartbeats.departures.values():
        broker = ctx.image.brokers.get(departure.broker_id)
        if broker is not None and not departure.is_over and current_state(ctx, broker) is SHUTTING_DOWN:
            break
    else:
        return Decision(False)
    leaving, position = departure.next(ctx.image, MAX_PARTITIONS_PER_CALL)

    def note_progress(end_offset: int) -> None:
        departure.reach(position)
        if departure.is_over:
            read = ctx.heartbeats.of(broker).metadata_offset
            ctx.heartbeats.note(broker, read, end_offset - 1)

    records = handle_broker_leaves(ctx, broker.id, leaving)
    return Decision(True, records, atomic=False, after=note_progress)


def _departure(ctx: Context, broker: BrokerState) -> Departure | None:
    """The broker's departure, if its partitions are too many for one call."""
    image = ctx.image
    first = islice(image.partitions_of(broker.id), MAX_PARTITIONS_PER_CALL + 1)
    if sum(1 for _ in first) <= MAX_PARTITIONS_PER_CALL:
        return None
    return Departure(broker.id, broker.epoch, image.hosted_masks(broker.id))


def _begin(ctx: Context, departure: Departure) -> None:
    ctx.heartbeats.departures[departure.broker_id] = departure


def _forget_resumed(ctx: Context) -> None:
    """Forget departures of brokers whose heartbeats have resumed. No broker is silent now, so only departures
    of brokers that shut down remain.
    """
    departures, brokers = ctx.heartbeats.departures, ctx.image.brokers
    for broker_id in list(departures):
        broker = brokers.get(broker_id)
        if broker is None or current_state(ctx, broker) is not SHUTTING_DOWN:
            del departures[broker_id]
