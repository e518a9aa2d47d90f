"""An incremental fetch in a session of thousands of partitions of one broker.

The session names ten partitions in each fetch, which have a batch of 100 bytes each; the others are empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from testkit.client import Client
from testkit.node import CombinedNode
from testkit.process import wait_until

CHANGED = 10
FETCHES_OF_PARTITIONS = 15_000_000  # one side looks at each partition in each fetch
MOST_FETCHES = 3_000
VERSION = 17


def session_fetch_us(node: CombinedNode, client: Client, topic_ids: Sequence[bytes], count: int) -> float:
    """Microseconds of the server's CPU for an incremental fetch; the first partitions have records.

    `count` is that of each topic.
    """
    positions = [FetchPartition(index, partition_max_bytes=1 << 10) for index in range(count)]
    topics = [FetchTopic(topic_id=one, partitions=positions) for one in topic_ids]
    probe = FetchRequest(session_epoch=-1, topics=topics)

    def all_are_led() -> bool:
        topics = client.call(probe, VERSION).responses
        return not any(one.error_code for topic in topics for one in topic.partitions)

    wait_until(all_are_led, "each partition has its log", 300)
    full = FetchRequest(session_epoch=0, topics=topics)
    session_id = client.call(full, VERSION).session_id
    if not session_id:
        raise RuntimeError("no session was granted")
    named = [FetchTopic(topic_id=topic_ids[0], partitions=positions[:CHANGED])]
    before_s = 0.0
    fetches = min(MOST_FETCHES, FETCHES_OF_PARTITIONS // (count * len(topic_ids)))
    for number in range(1, 2 * fetches + 1):
        if number == fetches + 1:  # the first half warms up
            before_s = node.cpu_s()
        answer = client.call(FetchRequest(session_id=session_id, session_epoch=number, topics=named), VERSION)
        partitions = [partition for topic in answer.responses for partition in topic.partitions]
        if answer.error_code or sum(bool(partition.records) for partition in partitions) != CHANGED:
            raise RuntimeError(f"fetch {number} was answered with {answer!r}")
    return (node.cpu_s() - before_s) / fetches * 1e6
