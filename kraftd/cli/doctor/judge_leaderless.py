"""Judges why a partition has no leader: its last replicas in sync do not run, or their disk is gone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import field

from kraftd.cli.doctor.findings import Finding, problem
from kraftd.cli.doctor.judge_cluster import examples_text, is_lost, partitions_text
from kraftd.metadata.image import Image
from kraftd.metadata.state import PartitionState, TopicState
from kraftd.metrics.state.survey import Group
from kraftd.types import DIRECTORY_LOST, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

_COORDINATED = {
    OFFSETS_TOPIC: "groups whose offsets are there can neither join nor commit",
    TRANSACTIONS_TOPIC: "transactional ids that are kept there can neither begin nor end a transaction",
    SHARE_STATE_TOPIC: "share groups whose state is there get no records",
}
NO_OTHER = "there is no other replica"
UNCLEAN = "electing another replica loses records (kafka-leader-election.sh)"


class _Leaderless(Group):
    """Partitions without a leader, and what their topics mean for groups and transactions."""

    topics: set[str] = field(default_factory=set)

    def add(self, topic: TopicState, index: int, state: PartitionState) -> None:
        super().add(topic, index, state)
        self.topics.add(topic.name)

    @property
    def consequences(self) -> str:
        return "".join(f"; {text}" for name, text in _COORDINATED.items() if name in self.topics)


def judge_leaderless(image: Image, offline: Mapping[int, tuple[str, ...]]) -> Iterator[Finding]:
    """Partitions without a leader, by what holds their last replicas in sync back.

    `offline`: the paths of log directories that brokers reported offline, where they were asked.
    """
    elsewhere, of_broker = _Leaderless(), dict[tuple[int, bool], _Leaderless]()
    waits_for: set[int] = set()
    for topic_id, index in image.partitions_without_leader():
        topic = image.topics[topic_id]
        state = topic.partitions[index]
        members = state.isr or state.elr or state.last_known_elr
        blocked = [one for one in members if has_lost_disk(image, state, one)]
        if blocked and len(blocked) == len(members):
            for one in blocked:
                is_given_up = state.directory(one) == DIRECTORY_LOST
                of_broker.setdefault((one, is_given_up), _Leaderless()).add(topic, index, state)
        else:
            elsewhere.add(topic, index, state)
            waits_for.update(set(members) - set(blocked))
    for (broker_id, is_given_up), group in sorted(of_broker.items()):
        yield _of_lost_disk(broker_id, group, offline.get(broker_id, ()), is_given_up=is_given_up)
    if elsewhere.count:
        which = f" ({nodes_text(waits_for)})" if waits_for else ""
        text = f"{partitions_text(elsewhere.count)} without a leader: {examples_text(elsewhere)}"
        text += elsewhere.consequences
        others = any(set(one.replicas) - set(one.isr) for one in elsewhere.examples)
        remedy = f"start a broker of its ISR{which}; {UNCLEAN if others else NO_OTHER}"
        yield problem("partitions", "cluster", text, remedy)


def has_lost_disk(image: Image, state: PartitionState, broker_id: int) -> bool:
    """Return whether a broker runs, and the log directory of its replica is offline or gone."""
    broker = image.brokers.get(broker_id)
    if broker is None or not broker.is_active or broker_id not in state.replicas:
        return False
    return is_lost(broker, state.directory(broker_id))


def brokers_with_lost_disk(image: Image) -> list[int]:
    """The running brokers that hold a partition without a leader in a directory that is offline or gone."""
    found = set[int]()
    for topic_id, index in image.partitions_without_leader():
        state = image.topics[topic_id].partitions[index]
        found.update(one for one in state.replicas if has_lost_disk(image, state, one))
    return sorted(found)


def nodes_text(ids: set[int]) -> str:
    """`node 1`, `nodes 1 and 2`, `nodes 1, 2 and 3`."""
    *most, last = map(str, sorted(ids))
    return f"nodes {', '.join(most)} and {last}" if most else f"node {last}"


def _of_lost_disk(
    broker_id: int, group: _Leaderless, paths: tuple[str, ...], *, is_given_up: bool
) -> Finding:
    where = f"log directory {' or '.join(paths)}" if paths else "log directory"
    text = (
        f"{partitions_text(group.count)} without a leader: {examples_text(group)}: the last replica in sync "
        "is on this broker, which runs, but its "
    )
    others = any(set(one.replicas) - {broker_id} for one in group.examples)
    last = UNCLEAN if others else NO_OTHER
    if is_given_up:
        remedy = f"its log says why; stop it, restore the files of the partition, and start it; {last}"
        text += f"log there is lost or damaged{group.consequences}"
        return problem("partitions", f"node {broker_id}", text, remedy)
    text += f"{where} is offline{group.consequences}"
    disk = f"the disk of {' or '.join(paths)}" if paths else "its disk"
    return problem(
        "partitions",
        f"node {broker_id}",
        text,
        f"repair {disk} with its data, and restart the broker; {last}",
    )
