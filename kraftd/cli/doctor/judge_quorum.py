"""Judges the leader's answers about its quorum: voters, lag, clocks, brokers, registrations. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kraftd.cli.doctor.findings import Finding, note, ok, problem, warning
from kraftd.cli.quorum.leader import leaders_time_ms
from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState
from kraftd.named_tuple import NamedTuple

SILENT_MS = 10_000  # a voter that did not fetch for this long counts as gone
TWIN_MS = 3_000  # two replicas of one id that both fetched within this time run both
BEHIND_MS = 5_000  # a replica that was behind for this long lags
CLOCKS_APART_MS = 1_000
_HELD_UP = "read its log: its disk may be full, it may be frozen, or may not reach the leader"


class Member(NamedTuple):
    """This node: its id, its directory's id (None where unknown), and whether it runs."""

    node_id: int
    directory_id: bytes | None
    runs: bool


def judge_clock(partition: PartitionData, sent_ms: float, answered_ms: float) -> Finding:
    """How far the leader's clock is from this machine's. The times are this machine's, around the answer."""
    node = f"node {partition.leader_id}"
    leaders_ms = leaders_time_ms(partition)
    if leaders_ms is None:
        return note("clocks", node, "the leader does not report its time")
    apart_ms = max(0.0, leaders_ms - answered_ms, sent_ms - leaders_ms)
    side = "ahead of" if leaders_ms > answered_ms else "behind"
    if apart_ms > CLOCKS_APART_MS:
        text = f"its clock is at least {apart_ms / 1000:.1f} s {side} this machine's"
        return warning("clocks", node, text, "have both machines follow one source of time (NTP)")
    return ok("clocks", node, "its clock agrees with this machine's")


def judge_voters(partition: PartitionData, running: Collection[int] = ()) -> Iterator[Finding]:
    """Judge whether a majority of voters fetches, and how many more may be lost.

    `running` has voters whose address accepts connections: to start them is no remedy.
    """
    voters = partition.current_voters
    silent = [one for one in voters if _silent_ms(partition, one) > SILENT_MS]
    majority = len(voters) // 2 + 1
    left = len(voters) - len(silent)
    for one in silent:
        contact = (
            "has not fetched from this leader since it leads"
            if one.last_fetch_timestamp < 0
            else f"silent for {_silence_text(partition, one)}"
        )
        if one.replica_id in running:
            yield problem("voters", f"node {one.replica_id}", f"a voter that runs, {contact}", _HELD_UP)
            continue
        yield problem("voters", f"node {one.replica_id}", f"a voter, {contact}", _gone_remedy(partition))
    if silent and left <= majority:
        text = f"{left} of {len(voters)} voters fetch: one more loss stops the quorum"
        yield problem("voters", "quorum", text, "bring the others back")
    elif len(voters) > 1 and len(voters) % 2 == 0:
        text = f"{len(voters)} voters survive no more losses than {len(voters) - 1} do"
        yield warning("voters", "quorum", text, f"use an odd number of voters ({_add_remedy(partition)})")
    elif len(voters) == 1:
        yield note(
            "voters",
            "quorum",
            "a single voter: if it is lost, the quorum is",
            f"let three vote ({_add_remedy(partition)})",
        )
    elif not silent:
        yield ok("voters", "quorum", f"all {len(voters)} voters fetch; node {partition.leader_id} leads")


def judge_lag(partition: PartitionData) -> Iterator[Finding]:
    """Replicas that fetch and lag behind the leader."""
    now_ms, end = leaders_time_ms(partition), _end_offset(partition)
    lagging = 0
    for role, group in (("voter", partition.current_voters), ("observer", partition.observers)):
        for one in group:
            fetches = _silent_ms(partition, one) <= SILENT_MS
            level_ms = 0 if now_ms is None else now_ms - one.last_caught_up_timestamp
            if fetches and one.log_end_offset < end and level_ms > BEHIND_MS:
                lagging += 1
                since = f", for {level_ms / 1000:.0f} s" if one.last_caught_up_timestamp >= 0 else ""
                text = f"this {role} is {end - one.log_end_offset} records behind{since}"
                yield warning("lag", f"node {one.replica_id}", text, "check its disk and its network")
    if not lagging:
        yield ok("lag", "quorum", "each replica that fetches is level")


def judge_brokers(
    partition: PartitionData, controllers: Iterable[int], session_timeout_ms: int
) -> Iterator[Finding]:
    """Observers that did not fetch for half a session or more: brokers, unless registered as controllers."""
    known = set(controllers)
    for one in partition.observers:
        silent_ms = _silent_ms(partition, one)
        if one.replica_id >= 0 and silent_ms * 2 > session_timeout_ms:
            what = "controller" if one.replica_id in known else "broker"
            text = f"this {what} did not fetch for {silent_ms / 1000:.1f} s"
            if what == "broker":
                text += f"; a session lasts {session_timeout_ms / 1000:g} s"
            remedy = "check its log, its pauses and its network; start it if it is down"
            yield warning("brokers", f"node {one.replica_id}", text, remedy)


def judge_duplicate_ids(partition: PartitionData, reported: Iterable[str]) -> Iterator[Finding]:
    """Ids under which several directories fetch now; `reported` has those that the leader itself reports."""
    live: dict[int, int] = {}
    for one in (*partition.current_voters, *partition.observers):
        may_fetch = 0 <= one.replica_id != partition.leader_id  # a leader refuses fetches under its own id
        if may_fetch and _silent_ms(partition, one) < TWIN_MS:
            live[one.replica_id] = live.get(one.replica_id, 0) + 1
    for node_id, count in sorted(live.items()):
        if count > 1 and not any(line.startswith(f"node {node_id} runs more than once") for line in reported):
            text = f"{count} nodes run under this id, from directories of their own"
            remedy = "give one of them an id of its own (node.id), and format its directory"
            yield problem("voters", f"node {node_id}", text, remedy)


def judge_registrations(gone: Iterable[tuple[int, str]]) -> Iterator[Finding]:
    """Registrations of controllers that neither vote nor follow: (id, endpoint)."""
    for controller_id, endpoint in gone:
        text = f"registered at {endpoint}, but not in the quorum: it limits metadata.version"
        remedy = f"start it, or: kraftd quorum forget-controller --controller-id {controller_id}"
        yield warning("registrations", f"node {controller_id}", text, remedy)


def judge_membership(
    partition: PartitionData, me: Member, static_voters: Mapping[int, tuple[str, int]]
) -> Iterator[Finding]:
    """Compare the quorum's knowledge of this node with its file and its directory."""
    node = f"node {me.node_id}"
    ids = {one.replica_id for one in partition.current_voters}
    if static_voters and ids != set(static_voters):
        text = f"controller.quorum.voters names {sorted(static_voters)}, the quorum has {sorted(ids)}"
        remedy = "name the voters of the quorum, on every node"
        if is_dynamic(partition):
            remedy = "its voters are in the log: replace the key by controller.quorum.bootstrap.servers"
        yield problem("voters", node, text, remedy)
    elif static_voters and is_dynamic(partition):
        text = "controller.quorum.voters is in the file of a node of a dynamic quorum"
        yield note("voters", node, text, "replace it by controller.quorum.bootstrap.servers")
    for one in partition.current_voters:
        named = any(one.replica_directory_id) and me.directory_id is not None
        if one.replica_id == me.node_id and named and one.replica_directory_id != me.directory_id:
            text = "the voter of this id has another directory: this one was formatted anew"
            remedy = "kraftd quorum remove-controller with the old directory id, then add-controller"
            yield problem("voters", node, text, remedy)
            return
    if me.node_id not in ids:
        yield note("voters", node, "this node does not vote", f"{_add_remedy(partition)} lets it vote")


def judge_cluster_id(path: str, directory: str, quorum: str) -> Finding:
    """The cluster id of a directory against that of the quorum."""
    if directory == quorum:
        return ok("voters", path, f"of the quorum's cluster, {quorum}")
    text = f"it is of cluster {directory}, the quorum of {quorum}"
    return problem("voters", path, text, "correct the addresses, or format with the quorum's cluster id")


def is_dynamic(partition: PartitionData) -> bool:
    """Return whether the voters are in the log: those of a static quorum have no directory ids (KIP-853)."""
    return any(any(one.replica_directory_id) for one in partition.current_voters)


def judge_refused(refused: Iterable[str], leader: str) -> Iterator[Finding]:
    """The nodes that a leader refuses, as it names them: what is wrong; what to do."""
    for line in refused:
        text, _, remedy = line.rpartition("; ")
        yield warning("peers", leader, text or line, remedy if text else "see the leader's log")


def _gone_remedy(partition: PartitionData) -> str:
    if is_dynamic(partition):
        return "start it; if it is gone for good: kraftd quorum remove-controller"
    return "start it; if its disk is gone: format a new one for this id, and start that"


def _add_remedy(partition: PartitionData) -> str:
    if is_dynamic(partition):
        return "kraftd quorum add-controller"
    return "kraftd quorum make-dynamic, then add-controller"


def _silent_ms(partition: PartitionData, replica: ReplicaState) -> int:
    """For how long a replica did not fetch, by the leader's clock; 0 if that is unknown."""
    now_ms = leaders_time_ms(partition)
    if now_ms is None or replica.replica_id == partition.leader_id:
        return 0
    return now_ms - replica.last_fetch_timestamp if replica.last_fetch_timestamp >= 0 else now_ms


def _silence_text(partition: PartitionData, replica: ReplicaState) -> str:
    return f"{_silent_ms(partition, replica) / 1000:.0f} s"


def _end_offset(partition: PartitionData) -> int:
    leader = (one for one in partition.current_voters if one.replica_id == partition.leader_id)
    return next((one.log_end_offset for one in leader), 0)
