"""TLS handshakes beside the event loop: threads compute, the loop reads, writes and decides who is next.

A connection costs its socket until its first TLS record has arrived whole. Then it waits for its turn, and
only then it gets memory for TLS. Addresses take turns, with at most MAX_OF_ADDRESS handshakes of one and
MAX_AT_ONCE in all. Known hosts (other controllers, registered brokers) have such places of their own, and
every second turn. A peer that is silent within its handshake for STALL_S loses its place if another waits.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any

from kraftd.net.tls.handshake import Advance, ServerHandshake
from kraftd.net.tls.source import TlsSource
from kraftd.net.tls.transport import TlsTransport

MAX_AT_ONCE = 256
MAX_OF_ADDRESS = 64
MAX_THREADS = 4
STALL_S = 1.0
SWEEP_S = 0.25
READ_BYTES = 65_536
# Of a TLS record (RFC 8446, 5.1): its type, version and length. A handshake's type is 22.
RECORD_HEADER_BYTES, MAX_RECORD_BYTES, HANDSHAKE = 5, 16_384, 22

Done = Callable[[Advance], None]


class Threads:
    """Daemon threads that advance handshakes; they start with the first."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self.count = count
        self._loop = loop
        self._jobs: SimpleQueue[tuple[Callable[[], Advance], Done]] = SimpleQueue()
        self._started = False

    def run(self, work: Callable[[], Advance], done: Done) -> None:
        if not self._started:
            self._started = True
            for _ in range(self.count):
                threading.Thread(target=self._run, name="kraftd-tls", daemon=True).start()
        self._jobs.put((work, done))

    def _run(self) -> None:
        while True:
            work, done = self._jobs.get()
            try:
                found = work()
            except Exception as error:  # the connection must end, whatever it was
                found = Advance(b"", finished=True, failure=repr(error))
            try:
                self._loop.call_soon_threadsafe(done, found)
            except RuntimeError:  # the loop is closed
                return
            del work, done, found  # an idle thread must hold no connection

    def __repr__(self) -> str:
        return f"<Threads {self.count}>"


class Pending:
    """A connection in its handshake. `ended` is called once, `failed` before it with the reason."""

    def __init__(
        self,
        sock: socket.socket,
        peer: tuple[str, int],
        tls: TlsSource,
        make: Callable[[], object],
        timeout_s: float,
        failed: Callable[[tuple[str, int], str], None],
        ended: Callable[[Pending], None],
    ) -> None:
        self.sock = sock
        self.peer = peer
        self.tls = tls
        self.make = make
        self.timeout_s = timeout_s
        self.failed = failed
        self.ended = ended
        self.known = False
        self.began_s = self.moved_s = monotonic()
        self.handshake: ServerHandshake | None = None
        self.awaited_bytes = 1  # that wake the loop
        self.running = False  # a thread has it
        self.over = False
        self.reading = self.writing = False
        self.to_peer = b""
        self.finished = False
        self.failure = ""

    @property
    def host(self) -> str:
        return self.peer[0]

    def await_bytes(self, count: int) -> None:
        """Let the loop wake when so many bytes can be read, or no more will come."""
        if count != self.awaited_bytes:
            self.awaited_bytes = count
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def __repr__(self) -> str:
        state = "in a thread" if self.running else "begun" if self.handshake else "waiting"
        return f"<Pending {self.peer[0]}:{self.peer[1]} {state}>"


class Queue:
    """The handshakes of either known hosts or of others, and the order in which they begin and go on."""

    def __init__(self, max_at_once: int, max_of_address: int) -> None:
        self.places: dict[Pending, None] = {}  # begun ones; the longest silent first
        self._max_at_once = max_at_once
        self._max_of_address = max_of_address
        self._of_host: Counter[str] = Counter()  # places by address
        self._begun: deque[Pending] = deque()
        self._new: OrderedDict[str, deque[Pending]] = OrderedDict()

    def add(self, pending: Pending) -> None:
        """Let a handshake wait, because bytes have arrived."""
        if pending.handshake is not None:
            self._begun.append(pending)
        else:
            self._new.setdefault(pending.host, deque()).append(pending)

    def next(self) -> Pending | None:
        """The handshake that goes on or begins next."""
        while self._begun:
            pending = self._begun.popleft()
            if not pending.over:
                return pending
        if len(self.places) >= self._max_at_once:
            return None
        for host in list(self._new)[: self._max_at_once + 1]:
            if self._of_host[host] >= self._max_of_address:
                continue
            waiting = self._new[host]
            while waiting:
                pending = waiting.popleft()
                if not pending.over:
                    break
            else:
                del self._new[host]
                continue
            if waiting:
                self._new.move_to_end(host)
            else:
                del self._new[host]
            return pending
        return None

    def take_place(self, pending: Pending) -> None:
        """Give a handshake a place, or note that its peer was not silent."""
        if pending in self.places:
            del self.places[pending]
        else:
            self._of_host[pending.host] += 1
        self.places[pending] = None

    def give_up_place(self, pending: Pending) -> None:
        if pending in self.places:
            del self.places[pending]
            self._of_host[pending.host] -= 1
            if not self._of_host[pending.host]:
                del self._of_host[pending.host]

    def stalled(self, since_s: float) -> list[Pending]:
        """Those that were silent since then, as many as others wait for a place."""
        waiting = sum(map(len, self._new.values()))
        found: list[Pending] = []
        for pending in self.places:
            if len(found) == waiting or pending.moved_s > since_s:
                break
            if not pending.running and pending.reading:
                found.append(pending)
        return found

    def __repr__(self) -> str:
        return f"<Queue {len(self.places)} begun, {sum(map(len, self._new.values()))} wait>"


def _first_record_bytes(sock: socket.socket) -> int:
    """How many bytes must arrive before a handshake can begin, as far as the first ones say."""
    try:
        header = sock.recv(RECORD_HEADER_BYTES, socket.MSG_PEEK)
    except OSError:
        return 1
    if header[:1] != bytes([HANDSHAKE]):
        return 1  # the peer has closed, or OpenSSL tells it what is wrong
    if len(header) < RECORD_HEADER_BYTES:
        return RECORD_HEADER_BYTES
    return RECORD_HEADER_BYTES + min(int.from_bytes(header[3:], "big"), MAX_RECORD_BYTES)


class HandshakePool:
    """The handshakes of all listeners of one daemon. `is_known` returns whether a host is known."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        is_known: Callable[[str], bool] = lambda host: False,
        max_at_once: int = MAX_AT_ONCE,
        max_of_address: int = MAX_OF_ADDRESS,
    ) -> None:
        self.is_known = is_known
        self.displaced = 0
        self._loop = loop
        self._threads = Threads(loop, max(1, min(MAX_THREADS, (os.cpu_count() or 1) // 2)))
        self._running = 0
        self._all: dict[Pending, None] = {}  # the oldest first
        self._known, self._unknown = (Queue(max_at_once, max_of_address) for _ in range(2))
        self._known_is_next = True
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._all)

    def add(self, pending: Pending) -> None:
        """Do the handshake of a connection; its protocol gets the connection afterwards."""
        pending.known = self.is_known(pending.host)
        self._all[pending] = None
        self._await_bytes(pending)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    def drop(self, pending: Pending, failure: str = "") -> None:
        """End a handshake, and close its connection."""
        if pending.over:
            return
        pending.over = True
        self._stop_watching(pending)
        self._all.pop(pending, None)
        self._queue_of(pending).give_up_place(pending)
        pending.sock.close()
        pending.handshake = pending.handshake if pending.running else None
        if failure:
            pending.failed(pending.peer, failure)
        pending.ended(pending)

    # -- the loop's side of a socket

    def _await_bytes(self, pending: Pending) -> None:
        pending.reading = True
        self._loop.add_reader(pending.sock.fileno(), self._readable, pending)

    def _stop_watching(self, pending: Pending) -> None:
        if pending.reading:
            pending.reading = False
            self._loop.remove_reader(pending.sock.fileno())
        if pending.writing:
            pending.writing = False
            self._loop.remove_writer(pending.sock.fileno())

    def _readable(self, pending: Pending) -> None:
        if pending.handshake is None:
            awaited_bytes = _first_record_bytes(pending.sock)
            if awaited_bytes > pending.awaited_bytes:
                pending.await_bytes(awaited_bytes)
                return
        self._stop_watching(pending)
        self._queue_of(pending).add(pending)
        self._run()

    def _run(self) -> None:
        """Give idle threads the next handshakes."""
        while self._running < self._threads.count:
            pending = self._next()
            if pending is None:
                return
            try:
                data = pending.sock.recv(READ_BYTES)
            except (BlockingIOError, InterruptedError):
                self._await_bytes(pending)
                continue
            except OSError:
                data = b""
            if not data:
                self.drop(pending)  # it only looked whether TLS is spoken here
                continue
            if pending.handshake is None:
                pending.handshake = ServerHandshake(pending.tls)
                pending.await_bytes(1)
            self._queue_of(pending).take_place(pending)
            pending.moved_s = monotonic()
            pending.running = True
            self._running += 1
            self._threads.run(partial(pending.handshake.advance, data), partial(self._advanced, pending))

    def _next(self) -> Pending | None:
        """The handshake that goes on or begins next: of a known host and another by turns."""
        known, others = self._known, self._unknown
        for queue in (known, others) if self._known_is_next else (others, known):
            pending = queue.next()
            if pending is not None:
                self._known_is_next = queue is others
                return pending
        return None

    def _queue_of(self, pending: Pending) -> Queue:
        return self._known if pending.known else self._unknown

    def _advanced(self, pending: Pending, made: Advance) -> None:
        self._running -= 1
        pending.running = False
        pending.moved_s = monotonic()
        if pending.over:
            pending.handshake = None
        else:
            pending.to_peer, pending.finished, pending.failure = made
            self._send(pending)
        self._run()

    def _send(self, pending: Pending) -> None:
        """Send the rest of a step, then go on."""
        if pending.to_peer:
            try:
                sent = pending.sock.send(pending.to_peer)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                self.drop(pending, pending.failure)
                return
            pending.to_peer = pending.to_peer[sent:]
            if pending.to_peer:
                if not pending.writing:
                    pending.writing = True
                    self._loop.add_writer(pending.sock.fileno(), self._send, pending)
                return
        self._stop_watching(pending)
        if pending.failure:
            self.drop(pending, pending.failure)
        elif pending.finished:
            self._hand_over(pending)
        else:
            self._await_bytes(pending)

    def _hand_over(self, pending: Pending) -> None:
        """Connect the socket, now with TLS, to its protocol."""
        self._queue_of(pending).give_up_place(pending)
        self._all.pop(pending, None)
        task = self._loop.create_task(self._connect(pending))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, pending: Pending) -> None:
        handshake = pending.handshake
        assert handshake is not None
        try:
            await self._loop.connect_accepted_socket(
                lambda: TlsTransport(handshake, pending.make()),  # type: ignore[type-var]
                pending.sock,
            )
        except OSError:
            pending.sock.close()
        finally:
            pending.over, pending.handshake = True, None
            pending.ended(pending)

    def _sweep(self) -> None:
        """End late handshakes, and silent ones whose places others wait for."""
        self._sweeper = None
        now_s = monotonic()
        for pending in list(self._all):
            if now_s - pending.began_s < pending.timeout_s:
                break
            self.drop(pending, f"it took longer than {pending.timeout_s * 1000:.0f} ms")
        for queue in (self._known, self._unknown):
            for pending in queue.stalled(now_s - STALL_S):
                self.displaced += 1
                self.drop(pending, f"it was silent for {STALL_S:.0f} s while others waited")
        self._run()
        if self._all:
            self._sweeper = self._loop.call_later(SWEEP_S, self._sweep)

    def stop(self) -> None:
        """End all handshakes."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for pending in list(self._all):
            self.drop(pending)
        for task in list(self._tasks):
            with suppress(RuntimeError):
                task.cancel()

    def __repr__(self) -> str:
        return f"<HandshakePool known {self._known!r}, others {self._unknown!r}, {self.displaced} displaced>"
