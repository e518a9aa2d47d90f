"""A link to a broker that changes the answers to its followers' fetches of one partition.

`MixedCluster` takes it as `links`. A frame of an answer arrives changed, torn, or not at all.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import encode_response, parse_response
from testkit.process import HOST, free_port

_SIZE_BYTES = 4
Asked = dict[bytes, tuple[int, int]]  # key and version of a request, by its correlation id
Relay = Callable[[bytes, socket.socket, Asked], None]


class Answer:
    """An answer to a fetch that has the partition; `bytes` are as they were sent, with their size."""

    def __init__(self, frame: bytes, version: int) -> None:
        self.bytes, self.version = len(frame).to_bytes(_SIZE_BYTES, "big") + frame, version
        header, message = parse_response(ApiKey.FETCH, version, memoryview(frame))
        assert isinstance(message, FetchResponse)
        self.correlation_id, self.message = header.correlation_id, message
        self.topic = FetchableTopicResponse()
        self.partition = PartitionData()

    def __repr__(self) -> str:
        return f"<Answer {self.correlation_id} of {len(self.bytes)} bytes>"

    def find(self, topic_id: bytes) -> bool:
        """Look for records of partition 0 of a topic, or an answer to all without any."""
        for topic in self.message.responses:
            for partition in topic.partitions:
                if topic.topic_id == topic_id and not partition.partition_index:
                    self.topic, self.partition = topic, partition
                    return True
        return False

    def encoded(self, version: int | None = None) -> bytes:
        """The answer as it is now."""
        parts = encode_response(ApiKey.FETCH, version or self.version, self.correlation_id, self.message)
        return b"".join(parts)


Lie = Callable[[Answer], bytes | None]  # None: the connection ends


class LyingLink:
    """`lie` changes each answer to a follower's fetch with partition 0 of the topic; `count` is how many."""

    def __init__(self) -> None:
        self.topic_id = bytes(16)
        self.lie: Lie | None = None
        self.count = 0

    def __repr__(self) -> str:
        return f"<LyingLink of {self.topic_id.hex()}, {self.count} lies>"

    def door(self, node_id: int, port: int) -> int:
        """Open a door to a broker, as `Proxy.door` does."""
        listener = socket.create_server((HOST, free_port()))
        threading.Thread(target=self._accept, args=(listener, port), daemon=True).start()
        return int(listener.getsockname()[1])

    def _accept(self, listener: socket.socket, port: int) -> None:
        while True:
            near, _ = listener.accept()
            try:
                far = socket.create_connection((HOST, port))
            except OSError:
                near.close()
                continue
            asked: Asked = {}
            for pumped in ((near, far, asked, self._pass_request), (far, near, asked, self._pass_answer)):
                threading.Thread(target=_pump, args=pumped, daemon=True).start()

    def _pass_request(self, frame: bytes, far: socket.socket, asked: Asked) -> None:
        key, version = (int.from_bytes(frame[at : at + 2], "big") for at in (0, 2))
        is_fetcher = b"-fetcher-" in frame[8:40]
        asked[frame[4:8]] = (key if is_fetcher else -1, version)
        far.sendall(len(frame).to_bytes(_SIZE_BYTES, "big") + frame)

    def _pass_answer(self, frame: bytes, near: socket.socket, asked: Asked) -> None:
        key, version = asked.pop(frame[:4], (-1, 0))
        told: bytes | None = len(frame).to_bytes(_SIZE_BYTES, "big") + frame
        if key == ApiKey.FETCH and (lie := self.lie) is not None:
            answer = Answer(frame, version)
            if answer.find(self.topic_id):
                self.count += 1
                told = lie(answer)
        if told is None:
            raise ConnectionError("a lie ends the connection")
        near.sendall(told)


def _pump(source: socket.socket, target: socket.socket, asked: Asked, relay: Relay) -> None:
    """Pass each frame on; the end of one side is that of both."""
    try:
        while True:
            relay(_frame(source), target, asked)
    except OSError:
        _end(source, target)


def _frame(source: socket.socket) -> bytes:
    return _read(source, int.from_bytes(_read(source, _SIZE_BYTES), "big"))


def _read(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            raise ConnectionError("the end of the stream")
        data += piece
    return data


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        one.close()
