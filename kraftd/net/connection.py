"""One peer's connection: frames in, answers out in the order of their requests, back-pressure both ways.

It is a protocol in asyncio's sense (the loop calls `data_received` and so on) without needing asyncio. The
handler interprets frames and must call `answer` once for each slot. `flush` sends, once for all answers of an
event loop callback.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable
from typing import Any, Protocol

from kraftd.net.limits import IPV4_MAPPED, BufferBudget, Limits
from kraftd.net.splitter import FrameError, FrameSplitter
from kraftd.net.transport import Transport
from kraftd.net.turns import Turns
from kraftd.security.acls.hosts import canonical_host
from kraftd.wire.primitives import Buffer

JOINED_BYTES = 65_536  # below this, joining pieces into one write is cheaper than writing several
WINDOW_BYTES = 8_192  # of requests that are handed over; what follows waits until they are answered
# A decoded request takes many times its bytes. The records of a Produce stay as they came, and count less.
PRODUCE, PRODUCE_BYTES, PRODUCE_SHARE = b"\0\0", 1_024, 16
SHORT_PART_BYTES = 512  # the end of an answer goes with what is before it
WRITTEN_BYTES = 262_144  # of a long answer in one event loop callback: TLS encrypts them there


class Handler(Protocol):
    """The side that interprets frames."""

    def connection_admitted(self, connection: Connection) -> None:
        """A peer is connected, and within the limits."""

    def frames_received(self, connection: Connection, first_slot: int, frames: list[memoryview]) -> None:
        """Requests, in slots from `first_slot` on; each slot gets exactly one answer, at any time."""

    def connection_lost(self, connection: Connection, reason: str | None) -> None:
        """The connection is gone; `reason` says why, if this side closed it for a reason worth logging."""


class Connection:
    """A connection of a listener. Reading pauses while too many requests or answers are outstanding."""

    __slots__ = (
        "_admit",
        "_assigned",
        "_backlog",
        "_budget",
        "_early",
        "_early_bytes",
        "_handed_bytes",
        "_handler",
        "_large_bytes",
        "_limits",
        "_mute_count",
        "_on_lost",
        "_out",
        "_reading",
        "_resting",
        "_schedule",
        "_scheduled",
        "_sent",
        "_splitter",
        "_starved",
        "_transport",
        "_turning",
        "_turns",
        "_writable",
        "_writing",
        "close_reason",
        "host",
        "id",
        "last_read_ms",
        "listener",
        "login",
        "owner",
        "peer",
        "principal",
        "reads",
        "served_ns",
    )

    def __init__(
        self,
        id: int,
        listener: str,
        handler: Handler,
        limits: Limits,
        budget: BufferBudget,
        schedule: Callable[[Callable[[], None]], object],
        turns: Turns,
        admit: Callable[[Connection], str | None],
        on_lost: Callable[[Connection], None],
    ) -> None:
        self.id = id
        self.listener = listener
        self.peer: tuple[str, int] = ("?", 0)
        self.host = "?"  # the peer's address, as authorization compares it
        self.close_reason: str | None = None
        # For the handler: the peer's authentication, and the login under way.
        self.principal: Any = None
        self.login: Any = None
        self.owner: Hashable = None  # of a share of the budget: the address, then with its principal
        self.reads = 0  # counts reads; the sweep of idle connections compares it with its last value
        self.last_read_ms = 0
        self.served_ns = 0
        self._handler = handler
        self._limits = limits
        self._budget = budget
        self._schedule = schedule
        self._turns = turns
        self._admit = admit
        self._on_lost = on_lost
        self._splitter = FrameSplitter(limits.max_frame_bytes)
        self._transport: Transport | None = None
        self._assigned = 0  # slots given to requests
        self._sent = 0  # slots whose answers are in the output
        self._handed_bytes = 0  # of requests since the last time when all were answered
        self._early: dict[int, list[Buffer]] = {}  # answers that are done before earlier ones
        self._early_bytes = 0
        self._out: list[Buffer] = []
        self._large_bytes = 0  # of whole frames that await their answers, if they are large
        self._backlog: deque[memoryview] = deque()
        self._reading = True
        self._resting = False  # another connection's turn to receive a large request
        self._writable = True
        self._writing = False  # a part of long answers is written, the rest follows
        self._starved = False
        self._scheduled = False
        self._turning = False  # requests of a backlog are handed over: their answers leave together
        self._mute_count = 0

    # -- called by the loop

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if peer:
            # A dual-stack socket shows IPv4 addresses as IPv6; limits and logs use the IPv4 form.
            self.peer = (peer[0].removeprefix(IPV4_MAPPED), peer[1])
            zone = f"%{peer[3]}" if len(peer) == 4 and peer[3] and "%" not in peer[0] else ""
            self.owner = self.host = canonical_host(peer[0] + zone)
        refusal = self._admit(self)
        if refusal is not None:
            self.close(refusal)
        else:
            self._handler.connection_admitted(self)

    def data_received(self, data: bytes) -> None:
        if self.close_reason is not None:
            return
        self.reads += 1
        splitter = self._splitter
        bad: str | None = None
        try:
            frames = splitter.feed(data)
        except FrameError as error:
            frames, bad = error.frames, str(error)
        if frames:
            is_over = self._turns.over()
            if (
                not is_over
                and not self._backlog
                and not self._clogged
                and (len(frames) == 1 or len(data) <= WINDOW_BYTES)
                and len(frames) <= self._limits.frames_per_step
                and self._assigned + len(frames) - self._sent <= self._limits.max_in_flight
            ):
                self._hand_over(frames)
            else:
                self._backlog.extend(frames)
                if is_over:
                    self._later()
                    self._regulate()
                else:
                    self.take_turn()
        if bad is not None:
            self.close(bad)
            return
        free_bytes = self._budget.free_bytes
        if frames and (self._sent != self._assigned or self._backlog) and max(map(len, frames)) > free_bytes:
            self._large_bytes += sum(len(one) for one in frames if len(one) > free_bytes)
        held_bytes = splitter.held_bytes + self._large_bytes
        if held_bytes > free_bytes or self._starved:
            self._hold(held_bytes)
            if splitter.held_bytes > free_bytes and self._turns.over_for_bytes(splitter.needed_bytes):
                self._rest()
        elif frames and held_bytes == 0:
            self._budget.release(self.id)

    def eof_received(self) -> bool:
        return False  # the transport closes itself

    def pause_writing(self) -> None:
        self._writable = False
        self._regulate()

    def resume_writing(self) -> None:
        self._writable = True
        if self._out:
            self.flush()
        self._regulate()
        if self._backlog:
            self._later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._backlog.clear()
        self._early.clear()
        self._out.clear()
        self._budget.release(self.id)
        self._on_lost(self)
        self._handler.connection_lost(self, self.close_reason or None)

    # -- called by the handler

    def peer_certificate(self) -> bytes | None:
        """The certificate, in DER, that the peer showed in its TLS handshake; None without one."""
        transport = self._transport
        connection = transport.get_extra_info("ssl_object") if transport is not None else None
        found: bytes | None = connection.getpeercert(binary_form=True) if connection is not None else None
        return found

    def limit_frames(self, max_frame_bytes: int) -> None:
        """Accept no larger frames from now on; at most the limit of all connections."""
        self._splitter.max_frame_bytes = min(max_frame_bytes, self._limits.max_frame_bytes)

    @property
    def sender(self) -> Hashable:
        """What shares its time at the event loop with other connections of the same (`Turns`)."""
        return self.listener, self.owner

    @property
    def in_flight(self) -> int:
        """Requests handed over whose answers are not yet in the output."""
        return self._assigned - self._sent

    @property
    def waiting(self) -> int:
        """Requests that have arrived and were not handed over yet."""
        return len(self._backlog)

    @property
    def awaits_large_answers(self) -> bool:
        """Return whether the budget counts whole frames of this connection, which wait for their answers."""
        return self._large_bytes > 0

    @property
    def closing(self) -> bool:
        return self._transport is None or self.close_reason is not None

    def answer(self, slot: int, parts: list[Buffer]) -> None:
        """Queue the whole answer (size included) to the request in `slot`; it is sent after all before it.

        An empty list ends the slot without an answer. Late answers of a closed connection are dropped.
        """
        if slot != self._sent:
            if self._transport is not None:
                self._early[slot] = parts
                self._early_bytes += sum(map(len, parts))
            return
        out = self._out
        out += parts
        self._sent = slot + 1
        early = self._early
        while early:
            ready = early.pop(self._sent, None)
            if ready is None:
                break
            out += ready
            self._sent += 1
            self._early_bytes -= sum(map(len, ready))
        if self._sent == self._assigned:
            self._handed_bytes = 0
            if self._large_bytes and not self._backlog:
                self._large_bytes = 0
                self._hold(self._splitter.held_bytes)

    def flush(self) -> None:
        """Send what has been answered, in one write; during a turn, at its end."""
        if not self._turning:
            self._write()
            if self._backlog and not self._writing:
                self._later()

    def _write(self) -> None:
        out, transport = self._out, self._transport
        if not out or self._writing or transport is None or transport.is_closing():
            return  # if it is writing, its rest is scheduled
        if len(out) > 1:
            size_bytes = sum(map(len, out))
            if size_bytes > WRITTEN_BYTES:
                self._write_some()
                return
            if size_bytes <= JOINED_BYTES:
                out = [b"".join(out)]
        self._out = []
        transport.writelines(out)

    def _write_some(self) -> None:
        """Write a part of long answers; the rest follows in later callbacks, while the peer reads."""
        out, transport = self._out, self._transport
        if transport is None or transport.is_closing() or not self._writable:
            self._writing = False
            return
        count, left_bytes = 0, WRITTEN_BYTES
        while count < len(out) and left_bytes > 0:
            left_bytes -= len(out[count])
            count += 1
        if count == len(out) - 1 and len(out[count]) <= SHORT_PART_BYTES:
            count += 1
        some = out[:count]
        del out[:count]
        transport.writelines(some)
        self._writing = bool(out) and self._writable
        if self._writing:
            self._schedule(self._write_some)
        elif not out and self._backlog:
            self._later()

    def mute(self, is_muted: bool) -> None:
        """Hand over no further request, and read none, until each call with true has one with false
        (KIP-219).
        """
        self._mute_count += 1 if is_muted else -1
        self._regulate()
        if self._backlog and not self._mute_count:
            self._later()

    def stop_reading(self) -> None:
        """Accept no more requests; those that have arrived are still answered."""
        self._starved = True
        self._large_bytes = 0
        self._regulate()

    def close(self, reason: str) -> None:
        """Close after sending the existing answers; requests in flight get none."""
        if self.close_reason is None:
            self.close_reason = reason
        self._backlog.clear()
        transport = self._transport
        if transport is not None:
            if self._out and not transport.is_closing():
                out, self._out = self._out, []
                transport.writelines(out)
            transport.close()

    # -- callbacks and back-pressure

    def _hand_over(self, frames: list[memoryview]) -> None:
        first_slot = self._assigned
        self._assigned += len(frames)
        self._handed_bytes += _window_bytes(frames)
        self._handler.frames_received(self, first_slot, frames)

    @property
    def _clogged(self) -> bool:
        """Return whether the peer is muted or has too much outstanding: requests, or answers that are unread
        or queued behind a parked one.
        """
        return (
            not self._writable
            or self._mute_count > 0
            or self._handed_bytes > WINDOW_BYTES
            or self._early_bytes > self._limits.max_early_bytes
        )

    def take_turn(self) -> None:
        """Pass on as much of the backlog as one callback allows, then let other connections run."""
        self._scheduled = False
        backlog = self._backlog
        if self._transport is None or not backlog:
            return
        self._turning = True
        try:
            self._hand_over_backlog(backlog)
        finally:
            self._turning = False
            self._write()
        if backlog and not self._clogged:
            self._later()
        self._regulate()

    def _hand_over_backlog(self, backlog: deque[memoryview]) -> None:
        limits = self._limits
        left = limits.frames_per_callback
        while left > 0 and backlog and not self._clogged:
            room = min(limits.frames_per_step, left, limits.max_in_flight - self.in_flight, len(backlog))
            if room <= 0:
                break
            if room == len(backlog) and _window_bytes(backlog) <= WINDOW_BYTES:
                frames = list(backlog)
                backlog.clear()
            else:
                frames = [backlog.popleft()]
                taken = _window_bytes(frames)
                while len(frames) < room and (taken := taken + _window_bytes((backlog[0],))) <= WINDOW_BYTES:
                    frames.append(backlog.popleft())
            left -= len(frames)
            self._hand_over(frames)
            if self._turns.has_ended():
                break

    def _later(self) -> None:
        if not self._scheduled and self.in_flight < self._limits.max_in_flight:
            self._scheduled = True
            self._turns.wait(self)

    def _rest(self) -> None:
        if not self._resting:
            self._resting = True
            self._turns.rest(self._go_on)
            self._regulate()

    def _go_on(self) -> None:
        self._resting = False
        self._regulate()

    def _fed(self) -> None:
        self._starved = False
        self._regulate()

    def _hold(self, held_bytes: int) -> None:
        """Count bytes against the budget, and read on only within it."""
        self._starved = not self._budget.hold(self.id, held_bytes, self._fed, self.owner)
        self._regulate()

    def _regulate(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wanted = (
            self._writable
            and not self._starved
            and not self._resting
            and not self._backlog
            and not self._mute_count
        )
        if wanted is not self._reading:
            self._reading = wanted
            if wanted:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def __repr__(self) -> str:
        host, port = self.peer
        state = "closing" if self.closing else "open" if self._reading else "paused"
        return f"<Connection {self.id} {self.listener} {host}:{port} {state}, {self.in_flight} in flight>"


def _window_bytes(frames: Collection[memoryview]) -> int:
    """What requests take of the window."""
    window_bytes = 0
    for frame in frames:
        size_bytes = len(frame)
        if size_bytes > PRODUCE_BYTES and frame[:2] == PRODUCE:
            size_bytes = max(PRODUCE_BYTES, size_bytes // PRODUCE_SHARE)
        window_bytes += size_bytes
    return window_bytes
