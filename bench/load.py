"""The client side: brokers that only register and heartbeat, timed creates, pipelined load."""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.process import HOST

REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1
CREATE_TOPICS_VERSION = 7
FETCH_VERSION = 17
_TRIES = 1000
# A partition under load keeps its last 128 MiB, so that the page cache uses the same memory again. To touch
# memory for the first time takes a virtual machine four times as long: that would be most of a large write.
SHORT_TOPIC = [
    CreatableTopicConfig(name, str(value))
    for name, value in (
        ("segment.bytes", 64 << 20),
        ("retention.bytes", 128 << 20),
        ("file.delete.delay.ms", 0),
    )
]
SHORT_LOGS = {"log.retention.check.interval.ms": 500, "log.initial.task.delay.ms": 500}


class BenchBroker:
    """A broker that registers and heartbeats but hosts nothing: topics can be placed on it.

    Raises RuntimeError when the controller refuses it.
    """

    def __init__(
        self,
        broker_id: int,
        port: int,
        cluster_id: str,
        host: str = HOST,
        tls: ssl.SSLContext | None = None,
        client: Client | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.client = client or Client(host, port, client_id=f"broker-{broker_id}", timeout_s=60, tls=tls)
        offered = self.client.call(ApiVersionsRequest("bench", "1"), version=4).supported_features
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=cluster_id,
            incarnation_id=uuid.uuid4().bytes,
            listeners=[Listener("PLAINTEXT", HOST, 1000 + broker_id, 0)],
            features=[Feature(f.name, f.min_version, f.max_version) for f in offered],
            rack=None,
            log_dirs=(uuid.uuid4().bytes,),
        )
        for _ in range(_TRIES):
            answer = self.client.call(request, REGISTRATION_VERSION)
            # Right after its start, a controller may not be the active one yet.
            if answer.error_code != ErrorCode.NOT_CONTROLLER:
                break
            time.sleep(0.01)
        if answer.error_code:
            raise RuntimeError(f"registration of broker {broker_id} was refused: error {answer.error_code}")
        self.broker_epoch = answer.broker_epoch

    def __repr__(self) -> str:
        return f"<BenchBroker {self.broker_id} epoch {self.broker_epoch}>"

    def heartbeat(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(self.broker_id, self.broker_epoch, self.broker_epoch)

    def unfence(self) -> None:
        """Heartbeat until the controller unfences it; RuntimeError if it does not."""
        for _ in range(_TRIES):
            if not self.client.call(self.heartbeat(), HEARTBEAT_VERSION).is_fenced:
                return
            time.sleep(0.01)
        raise RuntimeError(f"{self!r} stays fenced")


class Heart(threading.Thread):
    """Heartbeats for brokers once a second, so that they stay unfenced during other measurements."""

    def __init__(self, brokers: Sequence[BenchBroker]) -> None:
        super().__init__(daemon=True)
        self._brokers, self._stopping = brokers, threading.Event()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        while not self._stopping.wait(1.0):
            for broker in self._brokers:
                broker.client.call(broker.heartbeat(), HEARTBEAT_VERSION)


def create_ms(
    client: Client,
    names: Sequence[str],
    partitions: int = 1,
    replicas: int = 1,
    configs: Sequence[CreatableTopicConfig] = (),
) -> float:
    """Milliseconds from the first sent byte of a CreateTopics to the last received byte of its answer.

    They exclude the client's encoding and decoding. Raises RuntimeError if any topic was refused.
    """
    request = CreateTopicsRequest(
        [CreatableTopic(name, partitions, replicas, configs=list(configs)) for name in names], 60_000, False
    )
    frame = client.frame(request, CREATE_TOPICS_VERSION)
    started = time.perf_counter()
    client.socket.sendall(frame)
    answer = client.receive_frame()
    took_ms = (time.perf_counter() - started) * 1000
    _, response = parse_response(api_key(request), CREATE_TOPICS_VERSION, answer)
    refused = [topic.error_code for topic in response.topics if topic.error_code]  # type: ignore[attr-defined]
    if refused:
        raise RuntimeError(f"{len(refused)} of {len(names)} topics were refused: error {refused[0]}")
    return took_ms


def quorum_position(client: Client) -> tuple[int, int]:
    """The leader's epoch and high watermark."""
    answer = client.call(DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])]), version=0)
    partition = answer.topics[0].partitions[0]
    return partition.leader_epoch, partition.high_watermark


def empty_fetch(cluster_id: str, epoch: int, offset: int, observer: int = 0) -> FetchRequest:
    """The fetch of one of many observers at the end of the log; its answer comes at once, without records."""
    partition = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=epoch,
        partition_max_bytes=8192,
        replica_directory_id=uuid.UUID(int=77 + observer).bytes,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=ReplicaState(9000 + observer, -1),
        max_bytes=8192,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


@dataclass(frozen=True)
class Load:
    """A server's figures under pipelined load."""

    answers: int
    wall_s: float
    last_answer: bytes


def drive(port: int, frames: Sequence[bytes], depth: int, seconds: float) -> Load:
    """One connection a frame, each of which keeps `depth` copies of its frame unanswered for `seconds`.

    Raises ConnectionError if the server closes one.
    """
    selector = selectors.DefaultSelector()
    for frame in frames:
        connection = socket.create_connection((HOST, port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(frame * depth)
        selector.register(connection, selectors.EVENT_READ, (connection, frame, bytearray()))
    answers, last_answer = 0, b""
    started = time.perf_counter()
    end = started + seconds
    while time.perf_counter() < end:
        for key, _ in selector.select(0.2):
            connection, frame, buffer = key.data
            chunk = connection.recv(1 << 20)
            if not chunk:
                raise ConnectionError("the server closed a connection under load")
            buffer += chunk
            done, last = take_frames(buffer)
            if done:
                answers += done
                last_answer = last
                connection.sendall(frame * done)
    wall_s = time.perf_counter() - started
    for key in list(selector.get_map().values()):
        key.data[0].close()
    selector.close()
    return Load(answers, wall_s, last_answer)


def take_frames(buffer: bytearray) -> tuple[int, bytes]:
    """Remove the complete frames at a buffer's start; return their number and the last one's body."""
    count = position = last = 0
    while len(buffer) - position >= 4:
        size = int.from_bytes(buffer[position : position + 4], "big") + 4
        if len(buffer) - position < size:
            break
        last = position
        position += size
        count += 1
    frame = bytes(buffer[last + 4 : position])
    del buffer[:position]
    return count, frame
