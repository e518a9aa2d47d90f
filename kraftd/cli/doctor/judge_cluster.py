"""Judges brokers and partitions by the metadata, and by what the brokers' listeners answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.cli.doctor.findings import Finding, note, ok, problem, replace_log, warning
from kraftd.cli.doctor.judge_peers import HANGS, LOOK, Answer
from kraftd.metadata.image import Image
from kraftd.metadata.state import BrokerState
from kraftd.metrics.state.survey import Group, Survey
from kraftd.types import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Endpoint, address_text

NAMED = 5  # partitions of a finding
GIVEN_UP = "is lost or damaged, so this broker has given it up"
REPLACE_LOG = f"its log says why; {replace_log('it')}"
_NO_DIRECTORIES = {DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED}


def judge_registered(image: Image) -> Iterator[Finding]:
    """Whether each registered broker may lead partitions."""
    brokers = sorted(image.brokers.values(), key=lambda one: one.id)
    for one in brokers:
        if one.in_controlled_shutdown:
            yield _judge_shutdown(one, image.led_count(one.id))
        elif one.fenced:
            remedy = (
                "start it, or read its log: its heartbeats do not arrive; if it is gone for good: "
                "kafka-cluster.sh unregister"
            )
            text = "this broker is fenced: it leads no partition and gets no clients"
            yield warning("brokers", f"node {one.id}", text, remedy)
    if brokers and all(one.is_active for one in brokers):
        yield ok("brokers", "cluster", f"no broker of {len(brokers)} is fenced")


def _judge_shutdown(broker: BrokerState, led_count: int) -> Finding:
    """A broker in controlled shutdown: the controller moves its leaderships away, and then it ends."""
    node = f"node {broker.id}"
    if broker.fenced:
        return note("brokers", node, "this broker was shut down", "start it again when it is wanted")
    if led_count:
        text = f"this broker is shutting down: {partitions_text(led_count)} that it leads are to move away"
        return note("brokers", node, text, "wait: its log and `kraftd doctor` show how many are left")
    text = "this broker is shutting down: it leads no partition any more, and ends next"
    return note("brokers", node, text, "if that stays so, read its log, or see whether its process hangs")


def judge_directories(image: Image) -> Iterator[Finding]:
    """Replicas in a log directory that their broker does not report: it is offline, or gone. Then those whose
    log their broker has given up.
    """
    lost: dict[int, int] = {}
    damaged: dict[int, Group] = {}
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            for broker_id, directory in zip(partition.replicas, partition.directories, strict=False):
                broker = image.brokers.get(broker_id)
                if broker is not None and directory == DIRECTORY_LOST:
                    damaged.setdefault(broker_id, Group()).add(topic, index, partition)
                elif broker is not None and is_lost(broker, directory):
                    lost[broker_id] = lost.get(broker_id, 0) + 1
    for broker_id, count in sorted(lost.items()):
        what = "1 replica is" if count == 1 else f"{count:,} replicas are"
        text = f"{what} in a log directory of this broker that is offline or gone"
        remedy = "repair its disk, or remove the directory from log.dirs, and restart the broker"
        yield problem("partitions", f"node {broker_id}", text, remedy)
    for broker_id, group in sorted(damaged.items()):
        text = f"the log of {partitions_text(group.count)} {GIVEN_UP}: {examples_text(group)}"
        yield problem("partitions", f"node {broker_id}", text, REPLACE_LOG)


def is_lost(broker: BrokerState, directory: bytes) -> bool:
    """Return whether the broker does not report a directory that has a replica."""
    # A broker that reports no directories is of before KIP-858.
    if not broker.directories or directory in _NO_DIRECTORIES:
        return False
    return directory == DIRECTORY_LOST or directory not in broker.directories


def judge_partitions(found: Survey) -> Iterator[Finding]:
    """Partitions with too few replicas in sync. `judge_leaderless` has those without a leader."""
    if found.under_min_isr.count:
        what = "with fewer in-sync replicas than min.insync.replicas: they refuse writes with acks=all"
        remedy = "start their brokers, repair their disks, or read why they lag in their logs"
        yield problem("partitions", "cluster", _counted(found.under_min_isr, what), remedy)
    behind = found.under_replicated.count - found.under_min_isr.count
    if behind > 0:
        remedy = "start their brokers, repair their disks, or read why they lag in their logs"
        yield warning("partitions", "cluster", _counted(found.under_replicated, "under-replicated"), remedy)
    is_well = not (found.offline.count or found.under_replicated.count or found.under_min_isr.count)
    if is_well and found.brokers:
        yield ok("partitions", "cluster", "each partition has a leader, and all replicas are in sync")


def judge_reassignments(image: Image) -> Iterator[Finding]:
    """Reassignments that never end: they wait for a replica that they also remove.

    They come from a plan that takes back what the plan before it was still adding. Kafka's controllers and
    kraftd's go on waiting then.
    """
    endless = Group()
    for topic_id, index in image.reassigning_partitions():
        topic = image.topics[topic_id]
        state = topic.partitions[index]
        if set(state.adding_replicas).intersection(state.removing_replicas):
            endless.add(topic, index, state)
    if endless.count:
        what = "being reassigned without an end, because the same replica is added and removed"
        remedy = "kafka-reassign-partitions.sh --cancel with their plan; --execute it again if need be"
        yield warning("partitions", "cluster", _counted(endless, what), remedy)


def judge_endpoint(
    broker_id: int, endpoint: Endpoint, answer: Answer, *, is_own: bool, is_fenced: bool = False
) -> Finding:
    """Whether a listener that a broker advertises accepts connections of this machine.

    `is_own`: it is the broker of this machine. That of a fenced one tells whether its process runs.
    """
    node = f"node {broker_id}"
    where = f"{endpoint.listener} at {address_text((endpoint.host, endpoint.port))}"
    if answer.hangs:
        return problem("brokers", node, f"its listener {where} {HANGS}", LOOK)
    if is_fenced:
        if answer.listens:
            text = f"its listener {where} answers, but the controllers get no heartbeats of it"
            return note("brokers", node, text, "read its log, and check its link to the controllers")
        return note("brokers", node, f"its listener {where} cannot be reached from here ({answer.failure})")
    if answer.listens:
        return ok("brokers", node, f"its listener {where} accepts connections")
    text = f"its listener {where} is advertised, and cannot be reached from here ({answer.failure})"
    remedy = "start the broker, or correct its advertised.listeners: clients connect to that address"
    if not is_own:
        remedy = f"{remedy}. If only other networks use it, all is well"
    return warning("brokers", node, text, remedy)


def _counted(group: Group, what: str) -> str:
    return f"{partitions_text(group.count)} {what}: {examples_text(group)}"


def partitions_text(count: int) -> str:
    """`1 partition`, `2,000 partitions`."""
    return f"{count:,} {'partition' if count == 1 else 'partitions'}"


def examples_text(group: Group) -> str:
    """The first partitions of a group by name, with `…` where there are more."""
    names = ", ".join(f"{one.topic}-{one.partition}" for one in group.examples[:NAMED])
    return f"{names}, …" if group.count > NAMED else names
