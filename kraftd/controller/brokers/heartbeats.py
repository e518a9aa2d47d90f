"""The leader's memory of brokers' heartbeats: soft state, lost with the leadership, never in a record.

The image says whether a broker is fenced or shutting down. This memory has the time of each registration's
last heartbeat. It also has how far the broker has read the metadata, and the offset that completes its
controlled shutdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kraftd.controller.brokers.departures import Departure
from kraftd.metadata.state import BrokerState

NO_OFFSET = -1
EVERY_OFFSET = (1 << 63) - 1


class Heartbeat(Struct, gc=False):
    """The state reported by the heartbeats of one registration."""

    broker_epoch: int
    metadata_offset: int = NO_OFFSET  # the broker has read the metadata up to here
    shutdown_offset: int = NO_OFFSET  # what every active broker must have read before this one may shut down

    @property
    def is_shutting_down(self) -> bool:
        return self.shutdown_offset >= 0

    def __repr__(self) -> str:
        shutdown = f", shuts down at {self.shutdown_offset}" if self.is_shutting_down else ""
        return f"<Heartbeat of epoch {self.broker_epoch}, read to {self.metadata_offset}{shutdown}>"


class BrokerHeartbeats:
    """Sessions by (broker id, broker epoch), oldest contact first, and the last heartbeat by broker id."""

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._contacts: dict[tuple[int, int], int] = {}
        self._heard_ms: dict[int, int] = {}  # for metrics: by broker id, of any registration
        self._heartbeats: dict[int, Heartbeat] = {}
        self.departures: dict[int, Departure] = {}  # of brokers that are leaving very many partitions

    def start(self, brokers: Iterable[BrokerState], now_ms: int) -> None:
        """Begin a leadership: forget everything, and start a session of every unfenced broker now."""
        brokers = list(brokers)
        self._heard_ms = {broker.id: now_ms for broker in brokers}
        self._contacts = {(broker.id, broker.epoch): now_ms for broker in brokers if not broker.fenced}
        self._heartbeats = {}
        self.departures = {}

    def renew(self, broker_id: int, broker_epoch: int, now_ms: int) -> None:
        """Renew a broker's session at a heartbeat, whether or not the request succeeds."""
        key = (broker_id, broker_epoch)
        self._contacts.pop(key, None)  # so that the oldest contact stays first
        self._contacts[key] = now_ms

    def heard(self, broker_id: int, now_ms: int) -> None:
        """Note that a broker was registered for the first time, or sent a heartbeat, in whatever epoch."""
        self._heard_ms[broker_id] = now_ms

    def has_valid_session(self, broker_id: int, broker_epoch: int, now_ms: int) -> bool:
        contact_ms = self._contacts.get((broker_id, broker_epoch))
        return contact_ms is not None and contact_ms + self.session_timeout_ms >= now_ms

    def silent_ms(self, broker_id: int, now_ms: int) -> int:
        """The time since a broker's last heartbeat, or since this leader began, at most a session."""
        heard_ms = self._heard_ms.get(broker_id)
        if heard_ms is None:
            return self.session_timeout_ms
        return min(now_ms - heard_ms, self.session_timeout_ms)

    def of(self, broker: BrokerState) -> Heartbeat:
        """The heartbeat of a registration; a blank one before the first."""
        heartbeat = self._heartbeats.get(broker.id)
        if heartbeat is None or heartbeat.broker_epoch != broker.epoch:
            return Heartbeat(broker.epoch)
        return heartbeat

    def note(self, broker: BrokerState, metadata_offset: int, shutdown_offset: int) -> None:
        """Note how far the broker has read, and the offset that completes its controlled shutdown (NO_OFFSET
        outside of one).
        """
        self._heartbeats[broker.id] = Heartbeat(broker.epoch, metadata_offset, shutdown_offset)

    def note_active(self, broker: BrokerState, metadata_offset: int) -> bool:
        """Do the same as `note` for a broker that is not shutting down. Return whether it was noted: false
        before the first heartbeat of a registration, and during a controlled shutdown.
        """
        heartbeat = self._heartbeats.get(broker.id)
        if heartbeat is None or heartbeat.broker_epoch != broker.epoch or heartbeat.shutdown_offset >= 0:
            return False
        heartbeat.metadata_offset = metadata_offset
        return True

    def forget(self, broker_id: int) -> None:
        """Forget a broker's state: its old registration was replaced or removed."""
        self._heartbeats.pop(broker_id, None)
        self.departures.pop(broker_id, None)

    def departure_of(self, broker: BrokerState) -> Departure | None:
        """The departure of that registration that is under way."""
        departure = self.departures.get(broker.id)
        return departure if departure is not None and departure.broker_epoch == broker.epoch else None

    def lowest_active_offset(self, brokers: Mapping[int, BrokerState]) -> int:
        """How far the slowest unfenced broker that is not shutting down has read; EVERY_OFFSET if there is
        none.
        """
        lowest = EVERY_OFFSET
        for broker in brokers.values():
            if not broker.fenced:
                heartbeat = self.of(broker)
                if not heartbeat.is_shutting_down and heartbeat.metadata_offset < lowest:
                    lowest = heartbeat.metadata_offset
        return lowest

    def stale(self, now_ms: int) -> tuple[int, int] | None:
        """The (broker id, broker epoch) that was silent for longest, if longer than a session."""
        for key, contact_ms in self._contacts.items():
            return key if contact_ms + self.session_timeout_ms < now_ms else None
        return None

    def end_session(self, broker_id: int, broker_epoch: int) -> None:
        self._contacts.pop((broker_id, broker_epoch), None)

    def next_deadline_ms(self) -> int | None:
        """When the oldest session ends without another heartbeat."""
        for contact_ms in self._contacts.values():
            return contact_ms + self.session_timeout_ms + 1
        return None

    def __repr__(self) -> str:
        return f"<BrokerHeartbeats {len(self._contacts)} sessions of {self.session_timeout_ms} ms>"
