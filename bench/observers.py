"""Very many observers of one leader: the time until the last of them knows of a create."""

from __future__ import annotations

import selectors
import time
import uuid

from bench.load import CREATE_TOPICS_VERSION, quorum_position, take_frames
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.types import METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from testkit.client import Client
from testkit.process import HOST

FIRST_ID = 20_000
FETCH_VERSION = 18
WAIT_MS = 500
WARM_UPS = 5
APART_S = 0.7
GIVE_UP_S = 60


class Observer:
    """A connection that fetches the metadata log as a broker does, one request at a time."""

    def __init__(self, number: int, port: int, cluster_id: str, epoch: int, offset: int) -> None:
        self.client = Client(HOST, port, client_id=f"observer-{number}", timeout_s=GIVE_UP_S)
        self.replica_id = FIRST_ID + number
        self.directory_id = uuid.UUID(int=self.replica_id).bytes
        self.cluster_id, self.epoch, self.offset = cluster_id, epoch, offset
        self.high_watermark = -1
        self.awaited = b""  # the name of a topic
        self.awaited_end: int | None = None  # of the batch with that topic
        self.buffer = bytearray()

    def __repr__(self) -> str:
        return f"<Observer {self.replica_id} at {self.offset}, hw {self.high_watermark}>"

    def fetch(self) -> None:
        partition = FetchPartition(
            current_leader_epoch=self.epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=self.epoch,
            replica_directory_id=self.directory_id,
            high_watermark=self.high_watermark,
        )
        request = FetchRequest(
            cluster_id=self.cluster_id,
            replica_state=ReplicaState(self.replica_id, -1),
            max_wait_ms=WAIT_MS,
            session_epoch=-1,
            topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )
        self.client.socket.sendall(self.client.frame(request, FETCH_VERSION))

    @property
    def knows(self) -> bool:
        """Return whether it has the awaited topic and knows that it is committed."""
        return self.awaited_end is not None and self.high_watermark >= self.awaited_end

    def await_topic(self, name: str) -> None:
        self.awaited, self.awaited_end = name.encode(), None

    def receive(self) -> None:
        """Receive a part; after a whole answer, fetch again at once. Raises ConnectionError, RuntimeError."""
        chunk = self.client.socket.recv(1 << 16)
        if not chunk:
            raise ConnectionError("the server closed an observer's connection")
        self.buffer += chunk
        done, frame = take_frames(self.buffer)
        if not done:
            return
        _, answer = parse_response(ApiKey.FETCH, FETCH_VERSION, frame)
        (partition,) = answer.responses[0].partitions  # type: ignore[attr-defined]
        if partition.error_code:
            raise RuntimeError(f"{self!r} was refused: error {partition.error_code}")
        for batch in iter_batches(partition.records or b"", verify=False):
            self.offset = batch.header.next_offset
            if self.awaited in bytes(batch.view):
                self.awaited_end = self.offset
        self.high_watermark = max(self.high_watermark, partition.high_watermark)
        self.fetch()


def last_of_many_ms(port: int, cluster_id: str, count: int, rounds: int) -> list[float]:
    """Milliseconds until each of many observers knows that a create is committed; one figure a create.

    The time begins when the create is sent to the leader.
    """
    with Client(HOST, port, client_id="bench", timeout_s=GIVE_UP_S) as leader:
        position = quorum_position(leader)
        observers = [Observer(number, port, cluster_id, *position) for number in range(count)]
        selector = selectors.DefaultSelector()
        for observer in observers:
            selector.register(observer.client.socket, selectors.EVENT_READ, observer)
            observer.fetch()
        selector.register(leader.socket, selectors.EVENT_READ, None)
        times_ms = [_announce(leader, observers, selector, number) for number in range(-WARM_UPS, rounds)]
    for observer in observers:
        observer.client.close()
    selector.close()
    return times_ms[WARM_UPS:]


def _announce(
    leader: Client, observers: list[Observer], selector: selectors.BaseSelector, number: int
) -> float:
    """Time one create, on a cluster that was idle; RuntimeError if it is refused or an observer misses it."""
    _serve(selector, time.perf_counter() + APART_S)
    name = f"announced-{number + WARM_UPS:04}"
    for observer in observers:
        observer.await_topic(name)
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1)], 60_000, False)
    frame = leader.frame(request, CREATE_TOPICS_VERSION)
    unaware = set(observers)
    began = time.perf_counter()
    leader.socket.sendall(frame)
    while unaware:
        if time.perf_counter() - began > GIVE_UP_S:
            raise RuntimeError(f"{len(unaware)} observers did not learn of {name}")
        for key, _ in selector.select(1):
            if key.data is None:
                _check(leader.receive_frame())
                continue
            key.data.receive()
            if key.data.knows:
                unaware.discard(key.data)
    return (time.perf_counter() - began) * 1000


def _check(frame: bytes) -> None:
    _, answer = parse_response(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, frame)
    code = answer.topics[0].error_code  # type: ignore[attr-defined]
    if code != ErrorCode.NONE:
        raise RuntimeError(f"a topic was refused: error {code}")


def _serve(selector: selectors.BaseSelector, end_s: float) -> None:
    while (left_s := end_s - time.perf_counter()) > 0:
        for key, _ in selector.select(left_s):
            if key.data is not None:
                key.data.receive()
