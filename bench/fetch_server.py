"""``python -m bench.fetch_server PARTITIONS WITH_RECORDS``: fetch sessions of synthetic partitions.

It serves one connection and one request at a time: codec, session, answer. It prints its port first.
"""

from __future__ import annotations

import socket
import sys

from kraftd.fetch.parked_fetches import ParkedFetches
from kraftd.fetch.session_cache import CacheLimits
from kraftd.fetch.sessions import FetchSessions
from kraftd.messages.fetch_request import FetchRequest
from kraftd.wire.codec import decode_prefix
from kraftd.wire.frames import encode_response, parse_request_header
from testkit.process import HOST
from testkit.synthetic import SyntheticPartitions, topic_id

BATCH_BYTES = 100
FETCH = 1


def serve(partitions: int, with_records: int) -> None:
    """Serve until the client disconnects."""
    source = SyntheticPartitions()
    for partition in source.create("many", topic_id(0), partitions)[:with_records]:
        partition.append(BATCH_BYTES)
        partition.high_watermark = 1
    parked = ParkedFetches(FetchSessions(source, CacheLimits(), lambda: 7))
    with socket.create_server((HOST, 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = connection.makefile("rb")
    while size := stream.read(4):
        frame = memoryview(stream.read(int.from_bytes(size)))
        header, _, version, at = parse_request_header(frame)
        request, _ = decode_prefix(FetchRequest, version, frame[at:])
        for _, response in parked.fetch(0, request, version, 0):
            connection.sendall(b"".join(encode_response(FETCH, version, header.correlation_id, response)))


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
