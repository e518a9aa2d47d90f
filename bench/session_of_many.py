"""An incremental fetch in a session of thousands of partitions of one broker.

The session names ten partitions in each fetch, which have a batch of 100 bytes each; the others are empty.
"""

from __future__ import annotations

from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from testkit.client import Client
from testkit.node import CombinedNode

CHANGED = 10
WARM_UPS, FETCHES = 3_000, 3_000
VERSION = 17


def session_fetch_us(node: CombinedNode, client: Client, topic_id: bytes, count: int) -> float:
    """Microseconds of the server's CPU for an incremental fetch; the first partitions have records."""
    positions = [FetchPartition(index, partition_max_bytes=1 << 10) for index in range(count)]
    full = FetchRequest(session_epoch=0, topics=[FetchTopic(topic_id=topic_id, partitions=positions)])
    session_id = client.call(full, VERSION).session_id
    if not session_id:
        raise RuntimeError("no session was granted")
    named = [FetchTopic(topic_id=topic_id, partitions=positions[:CHANGED])]
    before_s = 0.0
    for number in range(1, WARM_UPS + FETCHES + 1):
        if number == WARM_UPS + 1:
            before_s = node.cpu_s()
        answer = client.call(FetchRequest(session_id=session_id, session_epoch=number, topics=named), VERSION)
        partitions = [partition for topic in answer.responses for partition in topic.partitions]
        if answer.error_code or sum(bool(partition.records) for partition in partitions) != CHANGED:
            raise RuntimeError(f"fetch {number} was answered with {answer!r}")
    return (node.cpu_s() - before_s) / FETCHES * 1e6
