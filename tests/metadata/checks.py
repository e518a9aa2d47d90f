"""Invariants of every image, checked by full scans."""

from __future__ import annotations

from kraftd.metadata.image import Image
from kraftd.metadata.state import PartitionState


def check(image: Image) -> None:
    """Check that every index agrees with the partitions, and that names and ids correspond one to one."""
    everything = {
        (topic_id, index): partition
        for topic_id, topic in image.topics.items()
        for index, partition in topic.partitions.items()
    }
    assert image.partition_count == len(everything)
    assert {name: image.topics[topic_id].name for name, topic_id in image.topic_names().items()} == {
        topic.name: topic.name for topic in image.topics.values()
    }
    for name in ("a", "c.d", "c_d", "c.e"):
        colliding = {
            topic.name
            for topic in image.topics.values()
            if topic.name != name and topic.name.replace(".", "_") == name.replace(".", "_")
        }
        found = image.colliding_topic(name)
        assert found in colliding if colliding else found is None

    def those(condition: object) -> set[tuple[bytes, int]]:
        return {where for where, partition in everything.items() if condition(partition)}  # type: ignore[operator]

    for broker_id in range(7):
        assert set(image.partitions_of(broker_id)) == those(
            lambda p, broker_id=broker_id: broker_id in (*p.replicas, *p.isr, p.leader)
        )
        assert image.led_count(broker_id) == len(those(lambda p, broker_id=broker_id: broker_id == p.leader))
        assert set(image.partitions_with_elr_member(broker_id)) == those(
            lambda p, broker_id=broker_id: broker_id in p.elr
        )
    assert set(image.partitions_without_leader()) == those(lambda p: p.leader < 0)
    assert image.leaderless_count == len(those(lambda p: p.leader < 0))
    assert image.not_preferred_count == len(set(image.partitions_with_non_preferred_leader()))
    assert set(image.partitions_with_non_preferred_leader()) == those(lambda p: p.leader != p.replicas[0])
    assert set(image.reassigning_partitions()) == those(PartitionState.is_reassigning.fget)
    assert set(image.partitions_with_any_elr()) == those(lambda p: p.elr or p.last_known_elr)
    assert set(image.registration_offsets) == set(image.brokers)


def same(one: Image, other: Image) -> None:
    """Check that state, log position and soft tables are equal."""
    assert one == other
    assert (one.offset, one.epoch) == (other.offset, other.epoch)
    assert one.transaction_offset == other.transaction_offset
    assert one.registration_offsets == other.registration_offsets
