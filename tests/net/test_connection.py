"""One connection: order of answers, callbacks, back-pressure, closing."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kraftd.net.connection import JOINED_BYTES, PRODUCE, WINDOW_BYTES, Connection
from kraftd.net.limits import Limits
from kraftd.net.listener import Connections
from kraftd.net.turns import MAX_EAGER_BYTES, MAX_IDLE_SENDERS, MAX_READERS, MAX_TURN_NS, Turns
from testkit.memory_transport import MemoryTransport


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Peer:
    """A handler that keeps its input, and a loop whose callbacks the test runs."""

    def __init__(self, is_known: Callable[[str], bool] = lambda host: False, **limits: Any) -> None:
        self.received: list[tuple[int, bytes]] = []
        self.batches: list[int] = []
        self.lost: list[str | None] = []
        self.later: list[Callable[[], None]] = []
        self.now_ns, self.request_ns = 1, 0  # a request takes as long as `request_ns`
        turns = Turns(lambda function: self.later.append(function), lambda: self.now_ns, lambda: self.now_ns)
        self.connections = Connections(
            self, Limits(**limits), lambda function: self.later.append(function), is_known, turns
        )

    def frames_received(self, connection: Connection, first_slot: int, frames: list[memoryview]) -> None:
        self.batches.append(len(frames))
        self.now_ns += len(frames) * self.request_ns
        self.received += [(first_slot + i, bytes(frame)) for i, frame in enumerate(frames)]

    def connection_admitted(self, connection: Connection) -> None: ...

    def connection_lost(self, connection: Connection, reason: str | None) -> None:
        self.lost.append(reason)

    def connect(
        self, host: str = "127.0.0.1", listener: str = "CONTROLLER"
    ) -> tuple[Connection, MemoryTransport]:
        connection = self.connections.factory(listener)()
        transport = MemoryTransport((host, 5))
        connection.connection_made(transport)
        return connection, transport

    def run_later(self) -> None:
        later, self.later = self.later, []
        for function in later:
            function()


@pytest.mark.parametrize(
    ("peername", "host"),
    [
        (("10.0.0.9", 5), "10.0.0.9"),
        (("::ffff:10.0.0.9", 5, 0, 0), "10.0.0.9"),
        (("2001:db8::7", 5, 0, 0), "2001:db8:0:0:0:0:0:7"),
        (("fe80::1", 5, 0, 2), "fe80:0:0:0:0:0:0:1%2"),
    ],
)
def test_the_host_of_a_peer_is_written_as_java_writes_it(peername: tuple[str, int], host: str) -> None:
    connection = Peer().connections.factory("CONTROLLER")()
    connection.connection_made(MemoryTransport(peername))
    assert connection.host == host


def test_answers_are_sent_in_the_order_of_requests() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    connection.data_received(b"".join(framed(b"%d" % i) for i in range(20)))
    while peer.later:
        peer.run_later()
    slots = list(range(20))
    random.Random(7).shuffle(slots)
    for slot in slots:
        connection.answer(slot, [b"<%d>" % slot])
        connection.flush()
    assert transport.take() == b"".join(b"<%d>" % i for i in range(20))
    assert connection.in_flight == 0


def test_all_answers_of_a_callback_are_sent_in_one_write() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    connection.data_received(framed(b"a") * 5)
    for slot in range(5):
        connection.answer(slot, [b"x", b"y"])
    connection.flush()
    assert (transport.writes, transport.take()) == (1, b"xy" * 5)


def test_answers_to_the_large_requests_of_a_turn_are_sent_in_one_write() -> None:
    peer = Peer()
    connection, transport = peer.connect()

    def answer(_: Connection, first_slot: int, frames: list[memoryview]) -> None:
        peer.batches.append(len(frames))
        for slot in range(first_slot, first_slot + len(frames)):
            connection.answer(slot, [b"x"])
        connection.flush()

    peer.frames_received = answer  # type: ignore[method-assign]
    connection.data_received(framed(b"\1" * 2 * WINDOW_BYTES) * 4)
    assert (peer.batches, transport.writes, transport.take()) == ([1] * 4, 1, b"xxxx")


def test_small_answers_are_written_as_one_piece_and_large_ones_are_not_copied() -> None:
    written: list[list[bytes]] = []

    class Pieces(MemoryTransport):
        def writelines(self, list_of_data: Iterable[bytes]) -> None:
            written.append(list(list_of_data))

    connection = Peer().connections.factory("CONTROLLER")()
    connection.connection_made(Pieces())
    large = bytes(JOINED_BYTES)
    connection.data_received(framed(b"a") * 4)
    connection.answer(0, [b"x", b"y"])
    connection.answer(1, [b"z"])
    connection.flush()
    connection.answer(2, [b"x"])
    connection.answer(3, [large])
    connection.flush()
    assert written[0] == [b"xyz"]
    assert written[1] == [b"x", large] and written[1][1] is large


def test_many_frames_are_handed_over_in_several_callbacks() -> None:
    peer = Peer(frames_per_callback=4, frames_per_step=4)
    connection, transport = peer.connect()
    connection.data_received(framed(b"a") * 10)
    assert (peer.batches, transport.reading) == ([4], False)
    peer.run_later()
    assert (peer.batches, transport.reading) == ([4, 4, 2], True)
    assert [slot for slot, _ in peer.received] == list(range(10))


def test_the_five_requests_that_a_client_has_in_flight_share_a_turn() -> None:
    """Five is the default of max.in.flight.requests.per.connection: their answers leave in one write."""
    peer = Peer()
    peer.request_ns = MAX_TURN_NS
    busy, _ = peer.connect()
    busy.data_received(framed(b"busy"))
    connection, transport = peer.connect()
    connection.data_received(framed(b"a") * 5)
    assert peer.batches == [1]
    peer.run_later()
    assert (peer.batches, transport.reading) == ([1, 5], True)


def test_a_peer_with_too_many_pending_answers_is_not_read() -> None:
    peer = Peer(max_in_flight=3)
    connection, transport = peer.connect()
    connection.data_received(framed(b"a") * 5)
    assert (len(peer.received), transport.reading) == (3, False)
    connection.answer(0, [b"0"])
    connection.answer(1, [b"1"])
    connection.flush()
    peer.run_later()
    assert (len(peer.received), transport.reading) == (5, True)


def test_requests_of_a_peer_that_stops_reading_are_not_handled() -> None:
    peer = Peer(frames_per_step=2)
    connection, transport = peer.connect()
    hand_over = peer.frames_received

    def answered_by_much(of: Connection, first_slot: int, frames: list[memoryview]) -> None:
        hand_over(of, first_slot, frames)
        of.pause_writing()  # like a transport with a full buffer

    peer.frames_received = answered_by_much  # type: ignore[method-assign]
    connection.data_received(framed(b"a") * 20)
    assert (len(peer.received), transport.reading) == (2, False)
    connection.resume_writing()
    peer.run_later()
    assert len(peer.received) == 4


def test_the_bytes_of_answers_behind_a_parked_one_are_bounded() -> None:
    peer = Peer(frames_per_step=1, max_early_bytes=100)
    connection, transport = peer.connect()
    for slot in range(10):
        connection.data_received(framed(b"a"))
        if 0 < slot < len(peer.received):  # slot 0 stays parked
            connection.answer(slot, [bytes(60)])
        connection.flush()
    assert (len(peer.received), transport.reading) == (3, False)
    connection.answer(0, [b"!"])
    connection.flush()
    while peer.later:
        peer.run_later()
    assert (len(peer.received), transport.reading) == (10, True)


def test_a_peer_that_does_not_read_its_answers_is_not_read() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    connection.pause_writing()
    assert not transport.reading
    connection.resume_writing()
    assert transport.reading


def test_a_malformed_frame_closes_its_connection_after_the_answers_before_it() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    _, other_transport = peer.connect()
    connection.data_received(framed(b"good") + struct.pack(">i", -5))
    assert peer.received == [(0, b"good")]
    assert transport.closed
    connection.connection_lost(None)
    assert peer.lost == ["a frame of -5 bytes was announced (limit 104857600)"]
    assert not other_transport.closed
    assert len(peer.connections) == 1


def test_late_answers_of_a_lost_connection_are_dropped() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    connection.data_received(framed(b"a") * 2)
    connection.connection_lost(None)
    connection.answer(1, [b"1"])
    connection.answer(0, [b"0"])
    connection.flush()
    assert transport.take() == b""


def test_connections_over_the_limit_are_closed_until_others_end() -> None:
    peer = Peer(max_connections=2)
    first, _ = peer.connect()
    peer.connect()
    third, third_transport = peer.connect()
    assert third_transport.closed
    third.connection_lost(None)
    assert peer.lost == ["2 connections are open, the limit (refused so far: 1)"]
    first.connection_lost(None)
    assert not peer.connect()[1].closed


def test_brokers_connect_among_themselves_over_the_limit_and_clients_make_room() -> None:
    peer = Peer(max_connections=2, openable_connections=4, listener_among_brokers="BROKERS")
    clients = [peer.connect(listener="CLIENTS")[0] for _ in range(2)]
    assert peer.connections.begin_handshake("BROKERS", "127.0.0.1")
    peer.connections.end_handshake("BROKERS", "127.0.0.1")
    assert not peer.connect(listener="BROKERS")[1].closed
    assert peer.connect(listener="CLIENTS")[1].closed
    peer.connections.sweep(0)  # sees what each has sent
    assert peer.connections.sweep(1) == clients[:1]
    clients[0].connection_lost(None)
    assert not any(peer.connect(listener="BROKERS")[1].closed for _ in range(2))
    assert peer.connect(listener="BROKERS")[1].closed, "the process may open no more"


def test_a_flood_of_refused_connections_is_logged_once_per_sweep() -> None:
    peer = Peer(max_connections=1)
    peer.connect()
    for _ in range(5):
        peer.connect()[0].connection_lost(None)
    peer.connections.sweep(0)
    peer.connect()[0].connection_lost(None)
    assert [reason for reason in peer.lost if reason] == [
        "1 connections are open, the limit (refused so far: 1)",
        "1 connections are open, the limit (refused so far: 6)",
    ]


def test_connections_of_one_address_have_their_own_limit() -> None:
    peer = Peer(max_connections_per_ip=1)
    peer.connect("10.0.0.1")
    assert peer.connect("10.0.0.1")[1].closed
    assert not peer.connect("10.0.0.2")[1].closed


def test_an_address_counts_apart_at_the_controller_and_the_broker_of_a_process() -> None:
    peer = Peer(max_connections_per_ip=2, controller_listeners=frozenset({"CONTROLLER"}))
    for _ in range(2):
        assert not peer.connect("10.0.0.1")[1].closed
        assert peer.connections.begin_handshake("CLIENTS", "10.0.0.1")
    assert not peer.connections.begin_handshake("CLIENTS", "10.0.0.1")
    assert peer.connect("10.0.0.1")[1].closed
    for _ in range(2):
        peer.connections.end_handshake("CLIENTS", "10.0.0.1")
    opened = [peer.connect("10.0.0.1", "CLIENTS") for _ in range(3)]
    assert [transport.closed for _, transport in opened] == [False, False, True]
    opened[0][0].connection_lost(None)
    assert not peer.connect("10.0.0.1", "CLIENTS")[1].closed


def test_an_override_sets_the_connection_limit_of_one_address() -> None:
    peer = Peer(max_connections_per_ip=0, max_connections_per_ip_overrides={"10.0.0.1": 2})
    assert [peer.connect("10.0.0.1")[1].closed for _ in range(3)] == [False, False, True]
    assert peer.connect("10.0.0.2")[1].closed


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    peer = Peer(idle_ms=1000)
    _, idle = peer.connect()
    busy_connection, busy = peer.connect()
    parked_connection, parked = peer.connect()
    parked_connection.data_received(framed(b"long poll"))
    peer.connections.sweep(0)
    busy_connection.data_received(framed(b"a"))
    peer.connections.sweep(1500)
    assert (idle.closed, busy.closed, parked.closed) == (True, False, False)


def test_a_negative_idle_time_closes_no_connection() -> None:
    peer = Peer(idle_ms=-1)
    _, idle = peer.connect()
    peer.connections.sweep(0)
    peer.connections.sweep(10**9)
    assert not idle.closed


BIG = struct.pack(">i", 50_000)


def test_incomplete_frames_share_a_budget_and_small_requests_still_pass() -> None:
    peer = Peer(max_buffered_bytes=30_000, free_bytes=1_000)
    first, first_transport = peer.connect()
    second, second_transport = peer.connect()
    small, small_transport = peer.connect()
    first.data_received(BIG + bytes(20_000))
    second.data_received(BIG + bytes(20_000))
    assert (first_transport.reading, second_transport.reading) == (True, False)
    small.data_received(framed(b"small"))
    assert peer.received == [(0, b"small")]
    assert small_transport.reading
    first.data_received(bytes(30_000))
    assert not second_transport.reading  # the whole frame counts until it is answered
    first.answer(0, [b"done"])
    assert second_transport.reading
    second.data_received(bytes(30_000))
    assert len(peer.received) == 3
    second.answer(0, [b"done"])
    assert peer.connections.budget.held_bytes == 0


def test_a_frame_larger_than_the_whole_budget_is_read_alone() -> None:
    peer = Peer(max_buffered_bytes=10_000, free_bytes=1_000)
    connection, transport = peer.connect()
    for _ in range(5):
        connection.data_received(BIG + bytes(9_996) if _ == 0 else bytes(10_000))
        assert transport.reading
    connection.data_received(bytes(4))
    assert len(peer.received) == 1


def test_the_budget_passes_to_the_next_when_its_holder_disconnects() -> None:
    peer = Peer(max_buffered_bytes=10_000, free_bytes=1_000)
    first, _ = peer.connect()
    second, second_transport = peer.connect()
    first.data_received(BIG + bytes(20_000))
    second.data_received(BIG + bytes(20_000))
    assert not second_transport.reading
    first.connection_lost(None)
    assert second_transport.reading


def test_a_stalled_holder_of_the_budget_is_closed_only_while_others_wait() -> None:
    peer = Peer(max_buffered_bytes=10_000, free_bytes=1_000, stall_ms=100)
    first, first_transport = peer.connect()
    first.data_received(BIG + bytes(20_000))
    peer.connections.sweep(0)
    peer.connections.sweep(500)
    assert not first_transport.closed
    second, second_transport = peer.connect()
    second.data_received(BIG + bytes(20_000))
    peer.connections.sweep(600)
    assert first_transport.closed
    first.connection_lost(None)
    assert second_transport.reading


@pytest.mark.parametrize("method", ["answer", "flush"])
def test_a_closed_connection_ignores_calls(method: str) -> None:
    connection, _ = Peer().connect()
    connection.close("done")
    connection.connection_lost(None)
    getattr(connection, method)(*([0, [b"x"]] if method == "answer" else []))


def test_one_owner_holds_half_of_the_budget_beside_its_first_connection() -> None:
    peer = Peer(max_buffered_bytes=100_000, free_bytes=1_000)
    connections = [peer.connect("10.0.0.1") for _ in range(3)]
    other, other_transport = peer.connect("10.0.0.2")
    for connection, _ in connections:
        connection.data_received(BIG + bytes(30_000))
    assert [transport.reading for _, transport in connections] == [True, False, False]
    other.data_received(BIG + bytes(5_000))
    assert other_transport.reading
    connections[0][0].connection_lost(None)
    assert [transport.reading for _, transport in connections[1:]] == [True, False]


def test_a_connection_whose_large_request_is_served_is_not_silent() -> None:
    peer = Peer(max_buffered_bytes=10_000, free_bytes=1_000, stall_ms=1_000)
    served, served_transport = peer.connect("10.0.0.1")
    waiting, waiting_transport = peer.connect("10.0.0.2")
    served.data_received(BIG + bytes(50_000))
    waiting.data_received(BIG + bytes(20_000))
    assert not waiting_transport.reading
    for now_ms in (0, 5_000):
        peer.connections.sweep(now_ms)
    assert not served_transport.closed
    served.answer(0, [b"done"])
    assert waiting_transport.reading


def test_a_long_answer_is_written_in_parts_while_the_peer_reads() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    connection.data_received(framed(b"a") + framed(b"b"))
    piece = bytes(100_000)
    connection.answer(0, [piece] * 7)
    connection.flush()
    assert transport.take() == bytes(300_000)
    connection.pause_writing()
    peer.run_later()
    connection.answer(1, [b"last"])
    connection.flush()
    assert transport.take() == b""
    connection.resume_writing()
    while peer.later:
        peer.run_later()
    assert transport.take() == bytes(400_000) + b"last"


def test_the_short_end_of_a_long_answer_goes_with_the_part_before_it() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    connection.data_received(framed(b"a") + framed(b"b"))
    for slot, after in ((0, b""), (1, bytes(1_000))):
        parts = [b"head", bytes(300_000), b"end", after]
        connection.answer(slot, parts[: 3 + bool(after)])
        connection.flush()
        assert transport.take() == bytes(0).join(parts[: 2 if after else 3])
        peer.run_later()
        assert transport.take() == (b"end" + after if after else b"")


def test_requests_of_many_connections_take_turns_of_a_few_milliseconds() -> None:
    peer = Peer(frames_per_callback=4, frames_per_step=2)
    peer.request_ns = MAX_TURN_NS // 10
    floods = [peer.connect() for _ in range(5)]
    for connection, _ in floods:
        connection.data_received(framed(b"flood") * 100)
    assert len(peer.received) == 10  # of the first three, until the time of the turn was over
    quiet, transport = peer.connect()
    quiet.data_received(framed(b"quiet"))
    turns = 0
    while (0, b"quiet") not in peer.received:
        before = len(peer.received)
        peer.run_later()
        assert len(peer.received) - before <= 12
        turns += 1
    assert turns == 2 and transport.reading
    while peer.later:
        peer.run_later()
    assert len(peer.received) == 501
    assert [connection.in_flight for connection, _ in floods] == [100] * 5


def test_a_fresh_request_is_handled_at_once_in_a_turn_with_time_left() -> None:
    peer = Peer(frames_per_callback=4, max_in_flight=4)
    peer.request_ns = MAX_TURN_NS // 10
    flood, _ = peer.connect()
    quiet, _ = peer.connect()
    flood.data_received(framed(b"flood") * 100)
    quiet.data_received(framed(b"quiet"))
    assert [frame for _, frame in peer.received] == [b"flood"] * 4 + [b"quiet"]
    peer.now_ns += MAX_TURN_NS
    quiet.data_received(framed(b"late"))
    assert len(peer.received) == 5
    peer.run_later()
    assert peer.received[-1] == (1, b"late")
    peer.now_ns += MAX_TURN_NS
    quiet.data_received(framed(b"in the same turn of the loop"))
    assert peer.received[-1] == (1, b"late")
    peer.run_later()
    assert peer.received[-1] == (2, b"in the same turn of the loop")
    peer.run_later()
    peer.now_ns += MAX_TURN_NS
    quiet.data_received(framed(b"after it"))
    assert peer.received[-1] == (3, b"after it")


def test_a_long_turn_of_the_loop_serves_no_longer_than_its_time() -> None:
    peer = Peer()
    busy, _ = peer.connect()
    busy.data_received(framed(b"first"))
    peer.run_later()  # a turn of the loop begins, and serves until the time is over
    for number in range(4):
        peer.now_ns += MAX_TURN_NS // 4
        busy.data_received(framed(b"%d" % number))
    assert [frame for _, frame in peer.received] == [b"first", b"0", b"1", b"2"]
    peer.run_later()
    assert peer.received[-1] == (4, b"3")


def test_requests_that_take_longer_than_two_turns_are_handled_one_in_each_turn() -> None:
    peer = Peer(frames_per_step=1)
    peer.now_ns = 10 * MAX_TURN_NS
    peer.request_ns = 2 * MAX_TURN_NS
    connection, _ = peer.connect()
    connection.data_received(framed(b"slow") * 10)
    assert len(peer.received) == 1
    for count in range(2, 11):
        peer.run_later()
        assert len(peer.received) == count


def test_the_bytes_of_a_large_frame_answered_before_an_earlier_one_are_released() -> None:
    peer = Peer(max_buffered_bytes=100_000, free_bytes=1_000)
    connection, _ = peer.connect()
    connection.data_received(framed(b"parked") + framed(bytes(50_000)))
    assert peer.connections.budget.held_bytes == 50_000
    connection.answer(1, [b"early"])
    connection.answer(0, [b"late"])
    assert peer.connections.budget.held_bytes == 0 and not connection.awaits_large_answers


def test_a_connection_that_had_little_time_goes_before_all_that_keep_the_loop_busy() -> None:
    peer = Peer(frames_per_callback=4)
    peer.request_ns = MAX_TURN_NS // 10
    floods = [peer.connect()[0] for _ in range(50)]
    for connection in floods:
        connection.data_received(framed(b"flood") * 100)
    for _ in range(30):  # each has had a turn
        peer.run_later()
    for _ in range(3):
        quiet, _ = peer.connect()
        quiet.data_received(framed(b"quiet"))
        before = len(peer.received)
        peer.run_later()
        assert (0, b"quiet") in peer.received[before : before + 5]  # at most four of one other before it
    while peer.later:
        peer.run_later()
    assert [connection.in_flight for connection in floods] == [100] * 50  # and nothing starves


def test_a_sender_with_many_connections_gets_no_more_time_than_one_with_few() -> None:
    """The quiet one wants more than its share among all connections, and less than that of two senders."""
    peer = Peer(frames_per_callback=1, max_in_flight=1_000)
    peer.request_ns = MAX_TURN_NS // 10
    floods = [peer.connect("10.0.0.1")[0] for _ in range(100)]
    for connection in floods:
        connection.data_received(framed(b"flood") * 30)
    quiet, _ = peer.connect("10.0.0.2")
    for number in range(10):
        peer.run_later()  # ten requests of the other sender
        quiet.data_received(framed(b"quiet %d" % number))
        before = len(peer.received)
        peer.run_later()
        assert (number, b"quiet %d" % number) in peer.received[before : before + 3]
    while peer.later:
        peer.run_later()
    assert [connection.in_flight for connection in floods] == [30] * 100


def test_senders_that_ask_for_nothing_are_forgotten() -> None:
    peer = Peer()
    peer.request_ns = MAX_TURN_NS
    for number in range(3 * MAX_IDLE_SENDERS):
        connection, _ = peer.connect(f"10.0.{number // 250}.{number % 250}")
        connection.data_received(framed(b"once"))
        peer.run_later()
        connection.connection_lost(None)
    assert len(peer.received) == 3 * MAX_IDLE_SENDERS
    assert len(peer.connections._turns._senders) <= MAX_IDLE_SENDERS + 1


def test_connections_that_receive_large_requests_take_turns_too() -> None:
    """The system hands over megabytes of each connection in one turn of the loop."""
    size_bytes = MAX_EAGER_BYTES + 1
    peer = Peer(free_bytes=100)
    peer.now_ns = 10 * MAX_TURN_NS
    connections = [peer.connect() for _ in range(3 * MAX_READERS)]
    for connection, _ in connections:
        connection.data_received(struct.pack(">i", size_bytes))

    def receive() -> list[bool]:
        for connection, transport in connections:
            if transport.reading:
                connection.data_received(bytes(200))
                peer.now_ns += MAX_TURN_NS // 10
        return [transport.reading for _, transport in connections]

    assert receive() == [True] * 10 + [False] * 14
    peer.run_later()
    assert [transport.reading for _, transport in connections].count(True) == 10 + MAX_READERS
    assert receive() == [False] * 24
    for _ in range(3):
        peer.run_later()
        assert [transport.reading for _, transport in connections].count(True) == MAX_READERS
        receive()
    first, _ = connections[0]
    first.data_received(bytes(size_bytes + 4 - first._splitter.held_bytes))
    while not peer.received:
        peer.run_later()
    assert peer.received == [(0, bytes(size_bytes))]


def test_requests_of_ordinary_size_rest_only_when_a_turn_is_over() -> None:
    now_ns = 10 * MAX_TURN_NS
    turns = Turns(lambda _: None, lambda: now_ns, lambda: now_ns)
    assert not turns.over_for_bytes(MAX_EAGER_BYTES + 1)
    turns.rest(lambda: None)
    assert turns.over_for_bytes(MAX_EAGER_BYTES + 1) and not turns.over_for_bytes(MAX_EAGER_BYTES)
    now_ns += MAX_TURN_NS
    assert turns.over_for_bytes(MAX_EAGER_BYTES)


def test_large_requests_are_handed_over_when_those_before_them_are_answered() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    connection.data_received((framed(b"\1" * (WINDOW_BYTES // 2)) * 2 + framed(b"small")) * 2)
    while peer.later:
        peer.run_later()
    assert (peer.batches, transport.reading) == ([2, 2], False)
    for slot in range(4):
        connection.answer(slot, [b"x"])
    connection.flush()
    while peer.later:
        peer.run_later()
    assert len(peer.received) == 6 and transport.reading


def test_one_read_hands_over_no_more_than_a_window() -> None:
    peer = Peer()
    connection, _ = peer.connect()
    connection.data_received(framed(b"\1" * 3 * WINDOW_BYTES) * 3)
    assert len(peer.received) == 1


def test_the_batches_that_a_producer_has_in_flight_are_handed_over_together() -> None:
    """Five requests with a batch of the default batch.size: followers then fetch them all in one answer."""
    peer = Peer()
    connection, _ = peer.connect()
    connection.data_received(framed(PRODUCE + bytes(16_384)) * 5)
    assert peer.batches == [5]


def test_produces_wait_for_those_before_them_behind_128_kib() -> None:
    peer = Peer()
    connection, _ = peer.connect()
    connection.data_received(framed(PRODUCE + bytes(70_000)) * 5)
    assert peer.batches == [1, 1]
    while peer.later:
        peer.run_later()
    assert peer.batches == [1, 1]


def test_small_produces_take_as_much_of_a_window_as_other_requests() -> None:
    def handed_over(key: bytes) -> int:
        peer = Peer()
        peer.connect()[0].data_received(framed(key + bytes(1_000)) * 30)
        while peer.later:
            peer.run_later()
        return len(peer.received)

    assert handed_over(PRODUCE) == handed_over(b"\0\1") < 30


def test_a_muted_connection_hands_over_nothing_until_every_mute_has_ended__kip219() -> None:
    peer = Peer()
    connection, transport = peer.connect()
    connection.data_received(framed(b"a"))
    connection.mute(True)
    connection.mute(True)
    connection.data_received(framed(b"b"))  # what the loop had read already
    connection.answer(0, [b"answer"])
    connection.flush()
    peer.run_later()
    connection.mute(False)
    peer.run_later()
    assert [frame for _, frame in peer.received] == [b"a"]
    assert not transport.reading and transport.written == b"answer"
    connection.mute(False)
    peer.run_later()
    assert [frame for _, frame in peer.received] == [b"a", b"b"]
    assert transport.reading
