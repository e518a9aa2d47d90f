"""A stock broker and kraftd's coordinator, which get the same requests and must give the same answers."""

from __future__ import annotations

import re
import select
import time
from itertools import count
from typing import Any

from kraftd.ground.java_hashes import partition_for
from kraftd.groups.config import GroupConfig
from kraftd.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from kraftd.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kraftd.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_groups_response import DeleteGroupsResponse
from kraftd.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_groups_response import DescribeGroupsResponse
from kraftd.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.join_group_request import JoinGroupRequest
from kraftd.messages.join_group_response import JoinGroupResponse
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_groups_response import ListGroupsResponse
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.offset_commit_response import OffsetCommitResponse
from kraftd.messages.offset_delete_response import OffsetDeleteResponse
from kraftd.messages.offset_fetch_request import OffsetFetchRequest
from kraftd.messages.offset_fetch_response import OffsetFetchResponse
from kraftd.messages.share_group_describe_response import ShareGroupDescribeResponse
from kraftd.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.frames import parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.process import HOST, wait_until
from tests.groups.desk import Desk, KnownTopics
from tests.groups.requests import commit

PARTITIONS = 3
TOPICS = {"orders": 3, "audit": 2}
CONFIG = GroupConfig(
    group_initial_rebalance_delay_ms=0,
    group_min_session_timeout_ms=500,
    group_max_size=5,
    offset_metadata_max_bytes=64,
    group_consumer_assignment_interval_ms=0,
    group_consumer_max_size=5,
    group_consumer_min_session_timeout_ms=2000,
    group_consumer_heartbeat_interval_ms=1000,
    group_consumer_min_heartbeat_interval_ms=1000,
    group_share_assignment_interval_ms=0,
    group_share_max_size=4,
    group_share_heartbeat_interval_ms=1000,
    group_share_min_heartbeat_interval_ms=1000,
)
LONG_MS = 600_000  # no timeout that is not asked for
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
READS = (DescribeGroupsRequest, ListGroupsRequest, OffsetFetchRequest)
CLIENT = "app"
ASIDE = 1 << 40  # a token that is no step's
BESIDE = "beside-"  # groups of the tests' own


class TopicsOfBroker(KnownTopics):
    """The topics of the broker, with its ids."""

    def __init__(self, ids: dict[str, bytes]) -> None:
        super().__init__(**TOPICS)
        self.ids = ids

    def topic_id(self, name: str) -> bytes | None:
        return self.ids.get(name)


class Pair:
    """Requests to both sides, by tokens; a token's answers are compared once both are there."""

    def __init__(self, cluster: Cluster) -> None:
        self.port = cluster.brokers[1].port
        self.idle: list[Client] = []
        self.pending: dict[int, tuple[Client, Message, int]] = {}
        self.compared = 0
        self.tokens = 0
        self.errors: dict[int, int] = {}
        self.known_ids: set[str] = set()
        self.next_uuid = ""
        self.desk = Desk(CONFIG, PARTITIONS, **TOPICS)
        self.desk.topics = TopicsOfBroker(self.make_topics())
        self.desk.reload()
        self.desk.uuids = lambda: self.next_uuid
        self.desk.now_ms = self.clock_ms()
        wait_until(self.is_coordinator, "the broker coordinates groups", 60)

    def make_topics(self) -> dict[str, bytes]:
        with Client(HOST, self.port) as client:
            rows = [CreatableTopic(name, count, 1) for name, count in TOPICS.items()]
            client.call(CreateTopicsRequest(rows), 7)

            def ids() -> dict[str, bytes]:
                names = [MetadataRequestTopic(name=name) for name in TOPICS]
                topics = client.call(MetadataRequest(names), 12).topics
                ready = [
                    t for t in topics if t.error_code == 0 and all(p.leader_id >= 0 for p in t.partitions)
                ]
                return {topic.name: topic.topic_id for topic in ready} if len(ready) == len(TOPICS) else {}

            wait_until(lambda: bool(ids()), "the topics have leaders", 30)
            return ids()

    def is_coordinator(self) -> bool:
        with Client(HOST, self.port) as client:
            keys = ["a", "b", "c", "d", "e", "f", "g"]  # of all three partitions
            found = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=tuple(keys)), 4)
            described = client.call(DescribeGroupsRequest(tuple(keys)), 5)
            return not any(row.error_code for row in [*found.coordinators, *described.groups])

    @staticmethod
    def clock_ms() -> int:
        return int(time.monotonic() * 1000)

    # Kafka's side

    def send_to_kafka(self, token: int, request: Message, version: int) -> None:
        client = self.idle.pop() if self.idle else Client(HOST, self.port, CLIENT)
        client.socket.sendall(client.frame(request, version))
        self.pending[token] = (client, request, version)

    def answer_of_kafka(self, token: int, timeout_s: float) -> Any:
        """The answer to a token, None if it does not come in time."""
        client, request, version = self.pending[token]
        ready, _, _ = select.select([client.socket], [], [], timeout_s)
        if not ready:
            return None
        _, response = parse_response(api_key(request), version, client.receive_frame())
        del self.pending[token]
        self.idle.append(client)
        return response

    def ask_kafka(self, request: Message, version: int) -> Any:
        self.send_to_kafka(-1, request, version)
        answer = self.answer_of_kafka(-1, 20)
        assert answer is not None, f"no answer to {request!r}"
        return answer

    def learn_uuid(self, token: int, group_id: str) -> Any:
        """Find the member id that a JoinGroup has made: in its answer, or in the description of its group.

        Returns the answer, if it came.
        """
        end = time.monotonic() + 20
        for attempt in count():
            assert time.monotonic() < end, f"no member id to be seen: {self.members_at_kafka(group_id)}"
            answer = self.answer_of_kafka(token, 0.002)
            if attempt == 20:
                self.commit_beside(group_id)
            names = [answer.member_id] if answer is not None else self.members_at_kafka(group_id)
            fresh = [name for name in names if name and name not in self.known_ids]
            if fresh:
                self.known_ids.update(fresh)
                found = UUID.search(fresh[0])
                assert found and len(fresh) == 1, fresh
                self.next_uuid = found.group()
            if fresh or answer is not None:
                return answer
        return None

    def commit_beside(self, group_id: str) -> None:
        """Commit an offset of another group in the same partition.

        A group that exists only in memory is described once a later record of its partition is committed.
        """
        partition = partition_for(group_id, PARTITIONS)
        names = (f"{BESIDE}{number}" for number in count())
        name = next(name for name in names if partition_for(name, PARTITIONS) == partition)
        assert self.ask_kafka(commit(1, group=name), 9).topics[0].partitions[0].error_code == 0
        self.ask_kraftd(commit(1, group=name), 9)

    def members_at_kafka(self, group_id: str) -> list[str]:
        group = self.ask_kafka(DescribeGroupsRequest((group_id,)), 5).groups[0]
        return [member.member_id for member in group.members]

    def ask_kraftd(self, request: Message, version: int) -> Any:
        self.desk.calls = ASIDE
        self.desk.answers.pop(ASIDE + 1, None)
        return self.desk.ask(request, version)

    # Both sides

    def send(self, request: Message, version: int) -> int:
        """Send a request to both sides; compare the answers to it, and those that it has caused."""
        desk = self.desk
        desk.wait(max(0, self.clock_ms() - desk.now_ms))
        self.tokens += 1
        token = self.tokens
        encoded = encode_bytes(request, version)  # each side may change what it was given
        self.send_to_kafka(token, request, version)
        theirs = None
        if isinstance(request, JoinGroupRequest) and not request.member_id:
            theirs = self.learn_uuid(token, request.group_id)
        own = decode(type(request), version, encoded)
        desk.calls = token - 1
        assert desk.send(own, version, CLIENT) == token
        due_ms = desk.coordinator.deadline_ms()
        desk.wait(0)
        if due_ms is not None and due_ms <= desk.now_ms:
            self.wait_for_timers(request)
        elif token not in desk.answers:
            self.wait_until_taken(request)
        if theirs is not None:
            self.compare(token, request, version, theirs)
        if isinstance(request, READS) and token in self.pending:
            self.compare_read(token, request, version)
        self.compare_answered()
        return token

    def wait_until_taken(self, request: Message) -> None:
        """Let the broker take a request that waits. It has one thread for connections and one for requests.

        So all that was sent before one answered request is handled before the next one.
        """
        for _ in range(2):
            self.ask_kafka(DescribeGroupsRequest((request.group_id,)), 5)  # type: ignore[attr-defined]

    def wait_for_timers(self, request: Message) -> None:
        """A deadline without delay was due at kraftd: let the broker's timer come to the same state."""
        group_id: str = request.group_id  # type: ignore[attr-defined]
        described = DescribeGroupsRequest((group_id,))

        def is_same() -> bool:
            return same(self.ask_kraftd(described, 5), self.ask_kafka(described, 5), 5)

        wait_until(is_same, f"{group_id} is in the same state", 10)

    def compare_answered(self) -> None:
        """All that kraftd has answered, the broker must answer soon, and nothing else."""
        for token, (_, request, version) in list(self.pending.items()):
            if token in self.desk.answers:
                theirs = self.answer_of_kafka(token, 10)
                assert theirs is not None, f"only kraftd answers {request!r}: {self.desk.answers[token]!r}"
                self.compare(token, request, version, theirs)
        for token, (_, request, _) in list(self.pending.items()):
            theirs = self.answer_of_kafka(token, 0)
            assert theirs is None, f"only Kafka answers {request!r}: {theirs!r}"

    def compare(self, token: int, request: Message, version: int, theirs: Message) -> None:
        own = self.desk.answers.get(token)
        assert own is not None, f"v{version} {request!r}\n Kafka {theirs!r}\n kraftd has no answer"
        assert same(own, theirs, version), f"v{version} {request!r}\n Kafka  {theirs!r}\n kraftd {own!r}"
        self.compared += 1
        for code in set(map(int, re.findall(r"error_code=<?\D*?(-?\d+)", repr(theirs)))):
            self.errors[code] = self.errors.get(code, 0) + 1

    def compare_read(self, token: int, request: Message, version: int) -> None:
        """A read may come before records of the last request are committed: ask again for a while."""
        theirs = self.answer_of_kafka(token, 20)
        end = time.monotonic() + 5
        while not same(self.desk.answers[token], theirs, version) and time.monotonic() < end:
            theirs = self.ask_kafka(request, version)
        self.compare(token, request, version, theirs)

    def pause(self, seconds: float) -> None:
        """Let time pass on both sides."""
        time.sleep(seconds)
        self.desk.wait(max(0, self.clock_ms() - self.desk.now_ms))
        self.compare_answered()

    def close(self) -> None:
        for client in [*self.idle, *(client for client, _, _ in self.pending.values())]:
            client.close()


def same(own: Message, theirs: Message, version: int) -> bool:
    """Return whether two answers say the same, whatever the order of members, topics and groups in them."""
    first = decode(type(own), version, encode_bytes(own, version))
    return repr(sorted_parts(first)) == repr(sorted_parts(theirs))


def sorted_parts(answer: Any) -> Any:
    if isinstance(answer, JoinGroupResponse):
        answer.members.sort(key=lambda row: row.member_id)
    elif isinstance(answer, DescribeGroupsResponse):
        answer.groups.sort(key=lambda row: row.group_id)
        for group in answer.groups:
            group.members.sort(key=lambda row: row.member_id)
    elif isinstance(answer, ListGroupsResponse):
        rows = [row for row in answer.groups if not row.group_id.startswith(BESIDE)]
        answer.groups = sorted(rows, key=lambda row: row.group_id)
    elif isinstance(answer, DeleteGroupsResponse):
        answer.results.sort(key=lambda row: row.group_id)
    elif isinstance(answer, OffsetFetchResponse):
        for holder in [answer, *answer.groups]:
            sort_topics(holder)
    elif isinstance(answer, OffsetCommitResponse | OffsetDeleteResponse):
        sort_topics(answer)
    elif isinstance(answer, ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse):
        if answer.assignment is not None:
            sort_assignment(answer.assignment)
    elif isinstance(answer, ConsumerGroupDescribeResponse | ShareGroupDescribeResponse):
        answer.groups.sort(key=lambda row: row.group_id)
        for described in answer.groups:
            described.members.sort(key=lambda row: row.member_id)
            for member in described.members:
                member.subscribed_topic_names = tuple(sorted(member.subscribed_topic_names))
                sort_assignment(member.assignment)
                if isinstance(answer, ConsumerGroupDescribeResponse):
                    sort_assignment(member.target_assignment)
    elif isinstance(answer, AlterShareGroupOffsetsResponse | DeleteShareGroupOffsetsResponse):
        answer.responses.sort(key=lambda topic: topic.topic_name)
        answer.error_message = answer.error_message and "some"  # kraftd has its own words for codes
        for topic in answer.responses:
            for row in getattr(topic, "partitions", (topic,)):
                row.error_message = row.error_message and "some"
    elif isinstance(answer, DescribeShareGroupOffsetsResponse):
        for group in answer.groups:
            group.topics.sort(key=lambda topic: topic.topic_name)
            for topic in group.topics:
                topic.partitions.sort(key=lambda row: row.partition_index)
    return answer


def sort_assignment(assignment: Any) -> None:
    assignment.topic_partitions.sort(key=lambda topic: topic.topic_id)
    for topic in assignment.topic_partitions:
        topic.partitions = tuple(sorted(topic.partitions))


def sort_topics(holder: Any) -> None:
    holder.topics.sort(key=lambda topic: (topic.name, getattr(topic, "topic_id", b"")))
    for topic in holder.topics:
        topic.partitions.sort(key=lambda row: row.partition_index)
