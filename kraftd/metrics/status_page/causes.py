"""What is wrong, in words, for the top of the status page: the worst first, each with its details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from kraftd.metrics.state import health as states
from kraftd.metrics.state.health import Health
from kraftd.metrics.state.readings import Readings
from kraftd.metrics.state.slow_fetches import described
from kraftd.metrics.state.survey import Group, Survey
from kraftd.metrics.status_page.replica_rows import ReplicaRow

CRITICAL, WARNING = "critical", "warning"
MAX_DETAILS = 10
TRUNCATION_SHOWN_MS = 3_600_000
_BELOW = "has fewer in-sync replicas than min.insync.replicas"
_BELOW_ALL = "have fewer in-sync replicas than min.insync.replicas"


class Cause(Struct, frozen=True):
    """One thing that is wrong. Each detail names a node or a partition, mostly with the remedy."""

    severity: str
    what: str
    details: list[str] = []


def causes(
    readings: Readings, found: Health, survey: Survey | None, replicas: Sequence[ReplicaRow]
) -> list[Cause]:
    """What this node knows to be wrong; empty if nothing is."""
    all_of_them = [
        *_of_this_node(readings, found),
        *_of_own_broker(readings, found),
        *_of_nodes(readings),
        *_of_voters(replicas),
        *_of_brokers(readings, survey),
    ]
    return sorted(all_of_them, key=lambda one: one.severity != CRITICAL)


def _of_this_node(readings: Readings, found: Health) -> Iterator[Cause]:
    node_id = found.node_id
    if found.state == states.STOPPING:
        led = 0 if found.broker is None else found.broker.led_partitions
        more = f" It still leads {_count(led, 'partition', 'partitions')}." if led else ""
        yield Cause(WARNING, f"Node {node_id} is stopping.{more}")
    elif found.state == states.DISK_FULL:
        text = f"The disk of node {node_id} is full: it decides and writes nothing until there is room."
        yield Cause(CRITICAL, text, ["nothing is lost; make room, and it goes on by itself"])
    elif found.state == states.LOADING:
        done, total = found.bytes.loaded, found.bytes.total
        yield Cause(WARNING, f"Node {node_id} reads its log: {done:,} of {total or done:,} bytes.")
    if not readings.node.core.leader_answers:
        yield _no_leader(readings, found)
    last = readings.last_truncation
    if last is not None and readings.now_ms - last["at_ms"] < TRUNCATION_SHOWN_MS:
        what = f"Node {node_id} dropped {last['records']:,} records that the leader's log lacks."
        offsets = (
            f"offsets {last['from_offset']} to {last['to_offset'] - 1}, for the log of node {last['leader']}"
        )
        normal = "a few are normal after a failover, and else metadata may be lost"
        yield Cause(WARNING, what, [f"{offsets}; a copy is in {last['kept_in']}; {normal}"])


def _of_own_broker(readings: Readings, found: Health) -> Iterator[Cause]:
    """What is wrong with the broker of this process."""
    broker = found.broker
    if broker is None:
        return
    name = f"Broker {found.node_id}"
    if found.state == states.BROKER_STARTING:
        opens = _count(broker.logs_to_open, "log is", "logs are")
        yield Cause(WARNING, f"{name} is starting: {opens} to be opened.")
    elif found.state == states.BROKER_FENCED:
        why = "the active controller gets no heartbeats from it; the lines of this node's log say why"
        yield Cause(CRITICAL, f"{name} is fenced: it leads no partition and gets no clients.", [why])
    if broker.offline_directories:
        count = _count(len(broker.offline_directories), "log directory", "log directories")
        reasons = [f"{path}: {error}" for path, error in sorted(broker.offline_directories.items())]
        yield Cause(CRITICAL, f"{count} of broker {found.node_id} failed.", reasons[:MAX_DETAILS])
    if broker.full_directories:
        count = _count(len(broker.full_directories), "log directory", "log directories")
        what = f"No room is in {count} of broker {found.node_id}: records there are refused."
        reasons = [
            f"{path}: {_to_do(broker.full_rooms.get(path))}; the last write was refused {age_s:.0f} s ago"
            for path, age_s in broker.full_directories.items()
        ]
        yield Cause(CRITICAL, what, reasons[:MAX_DETAILS])
    if broker.offline_partitions:
        count = _count(broker.offline_partitions, "partition", "partitions")
        reasons = [f"{name}: {reason}" if reason else name for name, reason in broker.unusable.items()]
        more = ["…"] if broker.offline_partitions > MAX_DETAILS else []
        yield Cause(
            CRITICAL,
            f"The logs of {count} of broker {found.node_id} cannot be used.",
            reasons[:MAX_DETAILS] + more,
        )
    if broker.uncleanable_logs:
        count = _count(broker.uncleanable_logs, "log", "logs")
        reasons = [f"{name}: {reason}" for name, reason in broker.uncleanable.items()]
        what = f"{count} of broker {found.node_id} cannot be cleaned."
        advice = "Restore the files from another replica, and restart the broker."
        yield Cause(WARNING, f"{what} {advice}", reasons[:MAX_DETAILS])
    if broker.uncreated:
        what = (
            f"Groups or transactions are not served by broker {found.node_id}: an internal topic is missing."
        )
        yield Cause(CRITICAL, what, list(broker.uncreated.values()))
    if broker.slow_fetches:
        reasons = [described(one) for one in broker.slow_fetches]
        yield Cause(WARNING, f"{name} is behind leaders that it follows.", reasons[:MAX_DETAILS])


def _no_leader(readings: Readings, found: Health) -> Cause:
    voters = len(readings.node.core.voters)
    needed = voters // 2 + 1
    helpless = len(found.troubles)
    what = "No controller leads: nothing can be created, and nothing fails over."
    if not found.troubles:
        return Cause(CRITICAL, what, ["an election is under way"])
    votes = found.node_id in readings.node.core.voters.ids
    if votes and voters - helpless < needed:
        what += (
            f" {needed} of {voters} voters are needed, and node {found.node_id} reaches {voters - helpless}."
        )
    return Cause(CRITICAL, what, list(found.troubles))


def _of_nodes(readings: Readings) -> Iterator[Cause]:
    for lines, severity, what in (
        (readings.duplicate_ids, CRITICAL, "Several nodes run under one id."),
        (readings.ahead, CRITICAL, "Replicas have applied metadata that this quorum has lost."),
        (readings.went_back, CRITICAL, "Voters returned with less than they had acknowledged."),
        (readings.refused, WARNING, "Nodes are refused."),
        (readings.addresses, WARNING, "Advertised addresses do not lead to their nodes."),
    ):
        if lines:
            yield Cause(severity, what, list(lines))
    sight = readings.sight
    if sight is not None and sight.failure:
        what = f"Node {sight.leader_id}, the leader, does not describe the quorum: {sight.failure}."
        yield Cause(WARNING, what)
    known = {
        *readings.duplicate_ids,
        *readings.ahead,
        *readings.went_back,
        *readings.refused,
        *readings.addresses,
    }
    told = [line for line in sight.lines if line not in known] if sight is not None else []
    if sight is not None and told:
        yield Cause(WARNING, f"Node {sight.leader_id}, the leader, names nodes with trouble.", told)


def _of_voters(replicas: Sequence[ReplicaRow]) -> Iterator[Cause]:
    behind = [one for one in replicas if one.is_voter and one.is_behind]
    if not behind:
        return
    voters = sum(one.is_voter for one in replicas)
    spare = (voters - 1) // 2 - len(behind)
    what = f"{_count(len(behind), 'voter is', 'voters are')} down or behind: "
    if spare > 0:
        what += f"the quorum survives the loss of {spare} more."
    else:
        what += "the loss of one more stops the quorum."
    yield Cause(WARNING if spare > 0 or voters > 1 else CRITICAL, what, [_behind(one) for one in behind])


def _behind(one: ReplicaRow) -> str:
    if one.behind_ms is None or one.fetched_ms_ago is None:
        return f"voter {one.id} has not fetched since the election"
    lag = "" if one.lag is None else f", and lacks {one.lag:,} records"
    return f"voter {one.id} has not been caught up for {one.behind_ms // 1000} s{lag}"


def _of_brokers(readings: Readings, survey: Survey | None) -> Iterator[Cause]:
    if survey is not None:
        for group, one, several in (
            (survey.offline, "partition has no leader", "partitions have no leader"),
            (survey.under_min_isr, f"partition {_BELOW}", f"partitions {_BELOW_ALL}"),
        ):
            if group.count:
                yield Cause(CRITICAL, f"{_count(group.count, one, several)}.", _partitions(group))
    fenced = sorted(one.id for one in readings.node.image.brokers.values() if one.fenced)
    if fenced:
        what = _count(
            len(fenced),
            "broker is fenced: it sends no heartbeats",
            "brokers are fenced: they send no heartbeats",
        )
        ids = ", ".join(map(str, fenced[:MAX_DETAILS])) + (", …" if len(fenced) > MAX_DETAILS else "")
        yield Cause(WARNING, f"{what}.", [f"broker {ids}"])


def _partitions(group: Group) -> list[str]:
    named = [f"{one.topic}-{one.partition}" for one in group.examples[:MAX_DETAILS]]
    return [", ".join(named) + (", …" if group.count > len(named) else "")]


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _to_do(room: dict[str, Any] | None) -> str:
    """What a full disk lacks, as far as it is known."""
    needed_bytes = 0 if room is None else room["needed_bytes"]
    return f"make room on its disk{f', {needed_bytes:,} bytes at least' if needed_bytes else ''}"
