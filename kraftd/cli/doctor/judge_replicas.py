"""Judges why a follower is not in sync: its broker, its disk, its link, or that it only catches up. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kraftd.cli.doctor.findings import Finding, note, warning
from kraftd.cli.doctor.judge_cluster import (
    GIVEN_UP,
    REPLACE_LOG,
    examples_text,
    is_lost,
    partitions_text,
)
from kraftd.cli.doctor.judge_throttles import REMOVE, limits_on
from kraftd.client.open_transactions import duration_text
from kraftd.metadata.image import Image
from kraftd.metrics.state.survey import Example, Group
from kraftd.types import DIRECTORY_LOST, address_text, time_text, uuid_text

FULL_RATIO = 0.01  # of a disk's bytes; a broker's appends need some
MIN_USABLE_BYTES = 64 << 20
LONG_S = 600  # in which a follower that is not slow has what it lacks, or nearly so
LATE_S = 0.2  # of an answer to ListOffsets
LATE_TIMES = 5  # as long as the leader's
TOO_SLOW = "look at its link to the leader, its disk and its processors: one of them is too slow"
SLOW_HOST = "look at its disk and its processors, or run `kraftd doctor --config` there, which knows which"
SLOW_LINK = "look at its link"
REPAIR_DISK = "repair its disk, or take it out of log.dirs, and restart the broker"


class Ends(Struct, frozen=True):
    """How many records a follower lacks, at two looks; `asked` is the partition of the looks, which lacked
    most of `of` partitions at the first one. `taken`: the records that it took in between. The brokers took
    `follower_s` and `leader_s` to answer, the median of some looks, and their machines `accepted_s` and
    `leader_accepted_s` to accept a connection. The leader took `read_s` to read the first batch that the
    follower lacks; 0 if that is not known.
    """

    asked: Example
    first: int
    second: int
    pause_s: float
    of: int = 1
    taken: int = 0
    follower_s: float = 0.0
    leader_s: float = 0.0
    accepted_s: float = 0.0
    leader_accepted_s: float = 0.0
    read_s: float = 0.0

    @property
    def is_late(self) -> bool:
        """Return whether the follower answers so late that its link or its host is slow."""
        return self.follower_s > max(LATE_S, LATE_TIMES * self.leader_s)

    @property
    def is_leader_late(self) -> bool:
        """Return whether the leader answers or reads so late that its link or its host is slow."""
        return max(self.leader_s, self.read_s) > max(LATE_S, LATE_TIMES * self.follower_s)

    @property
    def is_leader_well(self) -> bool:
        """Return whether both answer this machine at once, and the leader reads what the follower lacks."""
        times = self.follower_s, self.leader_s, self.accepted_s, self.leader_accepted_s, self.read_s
        return self.read_s > 0 and max(times) <= LATE_S

    @property
    def times(self) -> str:
        """The times of the answers, where they explain something."""
        if self.is_leader_well:
            read_ms = self.read_s * 1000
            return f"; its leader answers this machine at once, and reads what it lacks in {read_ms:.0f} ms"
        if not self.is_late and not self.is_leader_late:
            return ""
        own = f"{self.follower_s:.1f} s to answer and {self.accepted_s:.1f} s to accept a connection"
        leader = f"{self.leader_s:.1f} s to answer"
        if self.is_leader_late:
            accepted = f"{self.leader_accepted_s:.1f} s to accept a connection"
            leader += f", {accepted} and {self.read_s:.1f} s to read what it lacks"
        return f"; it took {own}, its leader {leader}"

    @property
    def remedy(self) -> str:
        """What to look at. A slow link delays connections as well as answers, a slow host answers alone. A
        slow disk of the leader delays what is read from it, its processors every answer.
        """
        node = f"node {self.asked.leader}"
        if self.is_leader_late:
            late_s = max(self.leader_s, self.read_s)
            if self.leader_accepted_s * 2 > late_s:
                return f"look at the link of its leader, {node}"
            what = "disk" if self.read_s > LATE_TIMES * self.leader_s else "disk and the processors"
            return f"look at the {what} of its leader, {node}, for which all its followers wait"
        if self.is_late:
            return SLOW_LINK if self.accepted_s * 2 > self.follower_s else SLOW_HOST
        if self.is_leader_well:
            return f"look at the link between it and {node}, and at its own disk and processors"
        return TOO_SLOW


class Seen(Struct, frozen=True):
    """What one broker outside of ISRs answered; `failure` is why it could not be asked, or, with
    `silent_leader`, why that leader of it could not.
    """

    failure: str = ""
    silent_leader: int | None = None
    ends: Ends | None = None
    full_directories: tuple[str, ...] = ()


class Behind(Struct, frozen=True):
    """The partitions whose ISR lacks a broker, and since when by the metadata log (of the earliest; None: for
    longer than it goes back).
    """

    broker_id: int
    partitions: Group
    since_ms: int | None


def is_full(total_bytes: int, usable_bytes: int) -> bool:
    """Return whether a disk of these sizes has hardly room. -1 stands for an unknown size."""
    return 0 <= usable_bytes < max(MIN_USABLE_BYTES, FULL_RATIO * total_bytes)


def judge_replicas(image: Image, behind: Sequence[Behind], seen: Mapping[int, Seen]) -> Iterator[Finding]:
    """The reason for each broker that is out of an ISR."""
    for one in behind:
        reason, remedy = _by_metadata(image, one) or _by_answers(image, one, seen.get(one.broker_id, Seen()))
        since = "before what the metadata log covers" if one.since_ms is None else time_text(one.since_ms)
        where = f"{partitions_text(one.partitions.count)} ({examples_text(one.partitions)})"
        text = f"out of sync in {where}, since {since}: {reason}"
        make = warning if remedy else note
        yield make("replicas", f"node {one.broker_id}", text, remedy)


def _by_metadata(image: Image, one: Behind) -> tuple[str, str] | None:
    """The reason and remedy that the metadata tells: the broker or its directory is gone."""
    broker = image.brokers.get(one.broker_id)
    if broker is None:
        return "it is not registered", "start it, or move its replicas (kafka-reassign-partitions.sh)"
    if broker.in_controlled_shutdown:
        return "it was shut down" if broker.fenced else "it is shutting down", "start it again"
    if broker.fenced:
        return "it is fenced, as its heartbeats do not arrive", "start it, or read its log"
    places = (_directory(image, each, one.broker_id) for each in one.partitions.examples)
    lost = {each for each in places if each is not None and is_lost(broker, each)}
    if lost == {DIRECTORY_LOST}:
        return f"its log there {GIVEN_UP}", REPLACE_LOG
    if lost:
        known = sorted(uuid_text(each) for each in lost - {DIRECTORY_LOST})
        remedy = "repair its disk, or remove the directory from log.dirs, and restart the broker"
        return " ".join(["its log directory", *known, "is offline or gone"]), remedy
    return None


def _by_answers(image: Image, one: Behind, seen: Seen) -> tuple[str, str]:
    """The reason and remedy that the broker's answers tell; no remedy is needed while it catches up."""
    if seen.full_directories:
        return f"the disk of its {', '.join(seen.full_directories)} is full", "make room on that disk"
    ends = seen.ends
    if seen.silent_leader is not None:
        text = f"its leader, node {seen.silent_leader}, does not answer this machine ({seen.failure})"
        return text, f"look at node {seen.silent_leader} and its link first: its followers wait for it"
    if ends is None:
        why = seen.failure or "its leader was not asked"
        return (
            f"how far was not found out ({why})",
            "read its log, and look from where its listener is reached",
        )
    leader = f"node {ends.asked.leader}"
    where = f"{ends.asked.topic}-{ends.asked.partition}"
    if ends.of > 1:
        where += f", the worst of {ends.of} that were looked at,"
    what = f"{ends.second:,} records of {where} behind its leader, {leader}"
    if ends.second <= 0:
        return f"it has the records of its leader, {leader}, that has not taken it into the ISR yet", ""
    limits = " and ".join(limits_on(image, ends.asked, one.broker_id))
    if ends.second < ends.first:
        rate = (ends.first - ends.second) / ends.pause_s
        held = f", while {limits}" if limits else ""
        left_s = ends.second / rate
        if left_s < LONG_S or limits:
            return f"{what}, and catching up by {rate:,.0f} a second{held}", ""
        slowly = f"by {rate:,.1f} a second, which takes {duration_text(round(left_s * 1000))}"
        return f"{what}, and catching up {slowly}{ends.times}", ends.remedy
    if limits:
        return f"{what}, and not catching up: {limits}", f"raise that, or remove it: {REMOVE}"
    if ends.taken > 0:
        takes = f"it takes {ends.taken / ends.pause_s:,.0f} a second, its leader more{ends.times}"
        return f"{what}, and not catching up: {takes}", ends.remedy
    is_explained = ends.is_late or ends.is_leader_late
    remedy = ends.remedy if is_explained else _remedy(image, ends.asked.leader)
    return f"{what}, and not catching up{ends.times}", remedy


def _remedy(image: Image, leader_id: int) -> str:
    """What to do about a follower that gets nothing from its leader."""
    registered = image.brokers.get(leader_id)
    listeners = () if registered is None else registered.listeners
    addresses = ", ".join(address_text((each.host, each.port)) for each in listeners)
    at = f" at {addresses}" if addresses else ""
    reach = "it must reach that listener, over a link that is fast enough"
    return f"read its log about its fetches from node {leader_id}{at}: {reach}"


def _directory(image: Image, one: Example, broker_id: int) -> bytes | None:
    topic_id = image.topic_names().get(one.topic)
    state = None if topic_id is None else image.partition(topic_id, one.partition)
    if state is None:
        return None
    return dict(zip(state.replicas, state.directories, strict=False)).get(broker_id)
