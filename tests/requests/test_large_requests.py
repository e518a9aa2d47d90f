"""Large requests are decoded by an effect, served in slices, and take turns by sender."""

from __future__ import annotations

from collections.abc import Callable, Generator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import strategies as st

from kraftd.ground.pace import MAX_SLICE_WORK_US
from kraftd.ground.refusal import Refusal
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.fetch_response import FetchResponse
from kraftd.messages.registry import APIS
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.messages.unregister_broker_response import UnregisterBrokerResponse
from kraftd.requests import intake, large_refusals
from kraftd.requests import large_requests as lane
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.effects import Answer, CloseConnection, ReadFrame, ScheduleSlice
from kraftd.requests.events import FramesReceived
from kraftd.requests.holds import Hold
from kraftd.requests.large_refusals import refuse_in_slices
from kraftd.requests.large_requests import Lane
from kraftd.requests.outbox import Outbox
from kraftd.requests.refusals import refuse
from kraftd.requests.registry import Registry, Route
from kraftd.requests.work_shares import (
    ADDRESS_TIMES,
    ALLOWANCE_US,
    COST_US_PER_ELEMENT,
    MAX_ACCOUNTS,
    REFILL_US_PER_MS,
    Job,
    WorkShares,
)
from kraftd.security.authorizer import Authorizer, StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.security.principals import ANONYMOUS, Principal
from kraftd.wire.api import ApiKey, request_class
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import encode_request, parse_response
from tests.wire.strategies import for_all, messages, versions

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
NAMES = 2_000
VERSIONS = {CreateTopicsRequest: (19, 7), UnregisterBrokerRequest: (64, 0), FetchRequest: (1, 17)}
Handler = Callable[["Node", Call], Generator[None, None, None] | None]


class Node:
    """A boundary with two APIs; `reads` are frames to decode, `done` what was handled, with its slices."""

    def __init__(self, creates: Handler | None = None, authorizer: Authorizer | None = None) -> None:
        self.now_ms = 1_000
        self.outbox = Outbox()
        self.done: list[str] = []
        self.reads: list[ReadFrame] = []
        self.answers: dict[tuple[int, int], Any] = {}
        self.closed: dict[int, str] = {}
        self.slices_wanted = 0
        creates = creates or in_slices
        routes = [
            Route(ApiKey.CREATE_TOPICS, None, None, lambda: lambda call: creates(self, call)),
            Route(ApiKey.UNREGISTER_BROKER, None, None, lambda: self._unregister),
            Route(ApiKey.FETCH, None, None, lambda: self._fetch),
        ]
        lane = Lane(lambda: self.outbox.emit(ScheduleSlice()), lambda: self.now_ms)
        self.boundary = Boundary(Registry(routes), self.outbox, lane, authorizer=authorizer)
        self.large = self.boundary.large

    def _unregister(self, call: Call) -> None:
        self.done.append(f"{call.connection_id}: unregister {call.message.broker_id}")
        self.boundary.answer(call, UnregisterBrokerResponse())

    def _fetch(self, call: Call) -> None:
        self.boundary.answer(call, FetchResponse())

    def take(self, connection_id: int, first_slot: int, *requests: Any, by: Principal = ANONYMOUS) -> None:
        frames = []
        for request in requests:
            key, version = VERSIONS[type(request)]
            frames.append(memoryview(b"".join(encode_request(key, version, 7, "test", request))[4:]))
        event = FramesReceived(connection_id, first_slot, frames, "L", "10.0.0.1", principal=by)
        self.boundary.take_in(event)
        self._perform()

    def read(self, count: int = 1) -> None:
        """Decode frames, and hand them back."""
        for _ in range(count):
            self.large.frame_read(self.reads.pop(0).read())
            self._perform()

    def run(self, most: int = 100_000) -> int:
        """Run slices until nothing is left; return how many."""
        self._perform()  # what the test has caused since
        count = 0
        while self.large.busy and count < most:
            assert self.slices_wanted
            self.large.run_slice()
            self._perform()
            count += 1
        return count

    def _perform(self) -> None:
        for effect in self.outbox.take():
            match effect:
                case ReadFrame():
                    self.reads.append(effect)
                case Answer():
                    assert effect.call is not None
                    frame = memoryview(b"".join(effect.parts))[4:]
                    _, message = parse_response(effect.call.key, effect.call.version, frame)
                    self.answers[effect.connection_id, effect.slot] = message
                case CloseConnection():
                    self.closed[effect.connection_id] = effect.reason
                case ScheduleSlice():
                    self.slices_wanted += 1


def in_slices(node: Node, call: Call) -> Generator[None, None, None]:
    """A handler that pauses after every 500 topics."""
    results = []
    for at, topic in enumerate(call.message.topics):
        if at % 500 == 499:
            node.done.append(f"{call.connection_id}: slice")
            yield
        results.append(CreatableTopicResult(topic.name))
    node.done.append(f"{call.connection_id}: create {len(results)}")
    node.boundary.answer(call, CreateTopicsResponse(topics=results))


def create(count: int = NAMES) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(f"topic-{number}", 1, 1) for number in range(count)], 1_000)


def test_a_large_frame_is_decoded_by_an_effect_and_served_in_slices() -> None:
    node = Node()
    node.take(1, 0, create())
    assert len(node.reads) == 1 and not node.done
    node.read()
    assert not node.done  # its first slice has a callback of its own
    assert node.run() > 4
    assert node.done == ["1: slice"] * 4 + ["1: create 2000"]
    assert [one.name for one in node.answers[1, 0].topics] == [f"topic-{one}" for one in range(NAMES)]


def test_requests_behind_a_large_one_wait_for_it_and_those_of_others_do_not() -> None:
    node = Node()
    node.take(1, 0, UnregisterBrokerRequest(1), create(), UnregisterBrokerRequest(2), create(1_500))
    node.take(1, 4, UnregisterBrokerRequest(3))
    node.take(2, 0, UnregisterBrokerRequest(4))
    assert node.done == ["1: unregister 1", "2: unregister 4"]
    node.read()
    node.run()
    assert node.done[-2:] == ["1: create 2000", "1: unregister 2"] and len(node.reads) == 1
    node.read()
    node.run()
    assert node.done[-2:] == ["1: create 1500", "1: unregister 3"]
    assert sorted(node.answers) == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 0)]


def test_a_request_may_hold_those_behind_it_on_its_connection() -> None:
    held: list[Hold] = []
    node = Node(lambda node, call: held.append(node.boundary.holds.hold(call.connection_id)))
    node.take(1, 0, create(1), UnregisterBrokerRequest(1), create(1), UnregisterBrokerRequest(2))
    node.take(1, 4, UnregisterBrokerRequest(3))
    node.take(2, 0, UnregisterBrokerRequest(4))
    assert node.done == ["2: unregister 4"]
    held[0].end()
    held[0].end()
    node.run()
    assert node.done[1:] == ["1: unregister 1"] and len(held) == 2
    held[1].end()
    node.take(1, 5, UnregisterBrokerRequest(5))
    node.run()
    assert node.done[2:] == ["1: unregister 2", "1: unregister 3", "1: unregister 5"]
    assert not node.boundary.holds.counts and not node.large.busy


def test_a_hold_that_ends_at_once_lets_the_next_request_be_handled_at_once() -> None:
    node = Node(lambda node, call: node.boundary.holds.hold(call.connection_id).end())
    node.take(1, 0, create(1), UnregisterBrokerRequest(1))
    assert node.done == ["1: unregister 1"] and not node.large.busy


def test_what_waits_behind_a_hold_is_forgotten_with_its_connection() -> None:
    held: list[Hold] = []
    node = Node(lambda node, call: held.append(node.boundary.holds.hold(call.connection_id)))
    node.take(1, 0, create(1), UnregisterBrokerRequest(1))
    node.boundary.connection_closed(1)
    held[0].end()
    node.run()
    assert not node.done and not node.boundary.holds.counts


def test_senders_take_turns_and_each_has_one_large_request_open() -> None:
    node = Node()
    for connection_id in (1, 2, 3):
        node.take(connection_id, 0, create(), by=ALICE)
    node.take(4, 0, create(), by=BOB)
    order = [node.reads[0].job.sender[0].name]
    node.read()
    while node.reads:
        order.append(node.reads[0].job.sender[0].name)
        node.read()
        node.run()  # two are open
    assert order[:2] == ["alice", "bob"] and sorted(order) == ["alice"] * 3 + ["bob"]
    assert node.done[:4] == ["1: slice", "4: slice"] * 2
    assert len(node.answers) == 4


def test_open_frames_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "MAX_OPEN_BYTES", 50_000)
    node = Node()
    node.take(1, 0, create(), by=ALICE)
    node.take(2, 0, create(), by=BOB)
    node.read()
    assert not node.reads
    node.run()
    node.read()
    node.run()
    assert len(node.answers) == 2


def test_a_sender_whose_allowance_is_spent_waits_as_its_answer_announces() -> None:
    node = Node()
    node.large.shares.charge((ALICE, "10.0.0.1"), ALLOWANCE_US - 1, node.now_ms)
    node.take(1, 0, create(), by=ALICE)
    node.read()
    node.run()
    throttle_ms = node.answers[1, 0].throttle_time_ms
    assert throttle_ms > 0
    node.take(1, 1, create(), by=ALICE)
    node.take(2, 0, create(), by=BOB)
    assert [one.job.sender[0] for one in node.reads] == [BOB]
    node.read()
    node.run()
    due_ms = node.large.deadline_ms()
    assert due_ms is not None and due_ms >= node.now_ms + throttle_ms
    node.now_ms = due_ms - 1
    node.large.run_due()
    assert not node.reads
    node.now_ms = due_ms
    node.large.run_due()
    node._perform()
    node.read()
    node.run()
    assert len(node.answers) == 3 and node.large.deadline_ms() is None


def test_a_request_is_charged_for_its_elements_before_its_work_begins() -> None:
    node = Node()
    node.take(1, 0, create(), by=ALICE)
    charged_us: list[float] = []
    charge = node.large.shares.charge

    def noted(sender: Any, work_us: float, now_ms: int) -> None:
        charged_us.append(work_us)
        charge(sender, work_us, now_ms)

    node.large.shares.charge = noted  # type: ignore[method-assign]
    node.read()
    assert charged_us == [2_000 * COST_US_PER_ELEMENT]
    count = node.run()
    assert sum(charged_us) <= count * MAX_SLICE_WORK_US  # once for each slice, what was paid before included


def test_allowances_are_of_a_principal_at_all_addresses_and_of_an_address() -> None:
    shares = WorkShares()
    for at in range(2):
        shares.charge((ALICE, f"10.0.0.{at}"), ALLOWANCE_US / 2, 0)
    assert shares.wait_ms((ALICE, "10.0.0.9"), 0) == 0
    shares.charge((ALICE, "10.0.0.5"), ALLOWANCE_US, 0)
    assert shares.wait_ms((ALICE, "10.0.0.9"), 0) > 0
    assert shares.wait_ms((BOB, "10.0.0.5"), 0) == 0  # one principal does not use up its address
    for at in range(2 * ADDRESS_TIMES - 1):
        shares.charge((Principal("User", f"u{at}"), "10.0.0.5"), ALLOWANCE_US / 2, 0)
    assert shares.wait_ms((BOB, "10.0.0.5"), 0) > 0
    assert shares.wait_ms((BOB, "10.0.0.6"), 0) == 0


def test_callers_without_a_login_have_an_allowance_at_each_address() -> None:
    shares = WorkShares()
    shares.charge((ANONYMOUS, "10.0.0.1"), 2 * ALLOWANCE_US, 0)
    assert shares.wait_ms((ANONYMOUS, "10.0.0.1"), 0) > 0
    assert shares.wait_ms((ANONYMOUS, "10.0.0.2"), 0) == 0


def test_a_request_that_a_broker_carries_does_not_wait_for_an_allowance() -> None:
    node = Node()
    node.large.shares.charge((ALICE, "10.0.0.1"), 10 * ALLOWANCE_US, node.now_ms)
    taken: list[Any] = []
    job = Job((ALICE, "10.0.0.1"), 1, 20_000, lambda: "call", lambda _, call: taken.append(call), held=False)
    node.large.add(job)
    node._perform()
    node.read()
    assert taken == ["call"]


def test_large_fetches_of_brokers_do_not_wait_for_an_allowance() -> None:
    fetch = FetchRequest(
        topics=[FetchTopic(topic_id=bytes(15) + b"t", partitions=[FetchPartition()] * NAMES)]
    )
    alice_is_a_broker = StandardAuthorizer(AuthorizerSettings(super_users=frozenset({"User:alice"})))
    alice_is_a_broker.begin_load()
    alice_is_a_broker.end_load()
    for authorizer, waits in ((None, []), (alice_is_a_broker, [BOB])):
        node = Node(authorizer=authorizer)
        for principal in (ALICE, BOB):
            node.large.shares.charge((principal, "10.0.0.1"), 10 * ALLOWANCE_US, node.now_ms)
        node.take(1, 0, fetch, by=BOB)
        node.take(2, 0, fetch, by=ALICE)
        while node.reads:
            node.read()
            node.run()
        served = {BOB: (1, 0), ALICE: (2, 0)}
        assert [principal for principal, place in served.items() if place not in node.answers] == waits
        node.take(2, 1, create(), by=ALICE)
        assert not node.reads  # other requests of a broker's principal wait


def test_a_closed_connection_is_forgotten_and_what_is_open_ends() -> None:
    node = Node()
    node.take(1, 0, create(), UnregisterBrokerRequest(1))
    node.take(2, 0, create(), UnregisterBrokerRequest(2))
    node.boundary.connection_closed(1)
    node.boundary.connection_closed(2)
    node.read()
    node.run()
    assert node.done[-1] == "1: create 2000" and not node.reads and not node.large.busy
    node.take(3, 0, create())
    node.read()
    node.run()
    assert (3, 0) in node.answers


def test_a_handler_that_fails_in_a_later_slice_is_refused() -> None:
    def handle(node: Node, call: Call) -> Generator[None, None, None]:
        yield
        raise Refusal(ErrorCode.POLICY_VIOLATION, "too much")

    node = Node(handle)
    for slot, count in enumerate((1, NAMES)):
        node.take(1, slot, create(count))
    node.run()
    node.read()
    node.run()
    for slot, count in enumerate((1, NAMES)):
        codes = [(one.error_code, one.error_message) for one in node.answers[1, slot].topics]
        assert codes == [(ErrorCode.POLICY_VIOLATION, "too much")] * count
    errors = node.boundary.stats.by_key[19].errors
    assert errors == {ErrorCode.POLICY_VIOLATION: NAMES + 1}


def test_the_next_request_waits_until_a_refusal_in_slices_is_sent() -> None:
    def handle(node: Node, call: Call) -> None:
        raise Refusal(ErrorCode.POLICY_VIOLATION)

    node = Node(handle)
    node.take(1, 0, create(5_000))
    node.take(2, 0, create())
    node.read()
    node.run(2)
    assert not node.reads and not node.answers
    node.run()
    assert (1, 0) in node.answers and len(node.reads) == 1


def test_a_frame_of_too_many_elements_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraftd.requests.boundary.MAX_ELEMENTS", NAMES - 1)
    node = Node()
    node.take(1, 0, create(), UnregisterBrokerRequest(1))
    node.read()
    assert "1999" in node.closed[1] and intake.MAX_ELEMENTS >= 1_000_000
    node.run()
    assert not node.done


def test_large_garbage_closes_its_connection() -> None:
    node = Node()
    frame = memoryview(b"\x00\x13\x00\x07\x00\x00\x00\x01\x00\x00\x00" + b"\xff" * 20_000)
    node.boundary.take_in(FramesReceived(1, 0, [frame], "L", "10.0.0.1"))
    node._perform()
    node.read()
    assert 1 in node.closed


def test_a_fault_in_reading_large_records_closes_their_connection_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("kraftd.requests.boundary.read_call", fail)
    node = Node()
    frame = memoryview(b"\x00\x00\x00\x0b" + bytes(20_000))
    node.boundary.take_in(FramesReceived(1, 0, [frame], "L", "10.0.0.1"))
    node._perform()
    node.read()
    assert list(node.closed) == [1] and node.boundary.failures == 1


def test_a_refusal_in_slices_equals_one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_refusals, "ELEMENTS_PER_SLICE", 2)

    def check(drawn: tuple[int, int, Any]) -> None:
        key, version, request = drawn
        whole = refuse(key, version, deepcopy(request), ErrorCode.POLICY_VIOLATION, "no")
        work = refuse_in_slices(key, version, request, ErrorCode.POLICY_VIOLATION, "no")
        try:
            while True:
                next(work)
        except StopIteration as end:
            made = end.value
        if key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            made.results.sort(key=lambda one: one.user)
        assert made == whole

    def request_of(one: tuple[int, int]) -> Any:
        key, version = one
        drawn = messages(request_class(key).__name__, version)
        return st.tuples(st.just(key), st.just(version), drawn)

    keys = [(key, version) for key in APIS for version in versions(request_class(key).__name__)]
    for_all(st.sampled_from(keys).flatmap(request_of), check, examples=200)


def test_shares_refill_with_time_and_are_bounded_in_number() -> None:
    shares = WorkShares()
    sender = (ALICE, "h")
    shares.charge(sender, ALLOWANCE_US + 10 * REFILL_US_PER_MS, 0)
    assert shares.wait_ms(sender, 0) == 11
    assert shares.wait_ms(sender, 5) == 6
    assert shares.wait_ms(sender, 100) == 0
    for number in range(2 * MAX_ACCOUNTS):
        shares.charge((ALICE, str(number)), 1e12, 0)
    assert repr(shares) == f"<WorkShares of {MAX_ACCOUNTS} principals and addresses>"
