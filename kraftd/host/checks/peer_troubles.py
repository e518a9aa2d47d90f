"""Why a node has no quorum: the outcome of its request to each peer, with a remedy.

Pure: outcomes and the time go in, findings come out. `report` returns lines: the first REPORT_AFTER_MS after
the leader was lost, then one each REPEAT_MS with its count. `fatal` is a reason that waiting cannot cure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from kraftd.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraftd.messages.vote_response import VoteResponse
from kraftd.named_tuple import NamedTuple
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

REPORT_AFTER_MS = 2_000
FATAL_AFTER_MS = 3_000
ALONE_AFTER_MS = 3_000  # longer than a request may take
REPEAT_MS = 60_000
SERVERS = "controller.quorum.bootstrap.servers"
FIRST_ELECTION = "the first election"
LOST_VOLUMES = "the other voters"

CLOSED = "it closes the connection"

# An error text of the operating system, OpenSSL or `net.outbound`, its meaning, and the remedy.
_REASONS = (
    (r"name or service|nodename|resolve|name resolution|no address", "the name does not resolve", "names"),
    (r"^login: there is no token", "this node cannot log in", "token"),
    (r"^login", "this node cannot log in", "login"),
    (r"wrong.version.number|record.layer.failure", "it does not speak TLS, and this node does", "protocol"),
    (r"verify.failed|self.signed|issuer|mismatch|has expired", "its certificate is not accepted", "trust"),
    (r"alert", "it does not accept this node's certificate", "keystore"),
    (r"refused", "the connection is refused: nothing listens there", "start"),
    (r"speaks TLS", "it speaks TLS, and this node PLAINTEXT", "protocol"),
    (r"speaks HTTP", "an HTTP server answers there, no controller", "address"),
    (r"no answer in time", "it does not answer in time", "silent"),
    (r"no connection in time|timed out", "its host does not answer in time", "network"),
    (r"unreachable|no route", "there is no route to it", "route"),
    (r"closed by the other side|closed the connection($| at)|reset", CLOSED, "closed"),
    (r"cannot be read|does not speak Kafka|speaks \w+", "it does not speak Kafka's protocol", "address"),
)
_REMEDIES = {
    "names": "correct the name, or the resolver of this machine",
    "start": "start the node there, or correct the address",
    "protocol": "use the security protocol of that listener (listener.security.protocol.map)",
    "closed": (
        "read the log of the node there: it may be stopping, or be held up by a full disk; if it runs well, "
        "use the security protocol of that listener (listener.security.protocol.map)"
    ),
    "login": "check sasl.jaas.config of this node, and the users of that one",
    "token": "check the token endpoint, and this node's client id and secret (sasl.oauthbearer.…)",
    "trust": "correct ssl.truststore of this node, or that certificate and its names",
    "keystore": "correct ssl.keystore of this node, or ssl.truststore of that one",
    "denied": "allow this node's principal CLUSTER_ACTION there, or name it in super.users",
    "address": "correct the address",
    "silent": (
        "see whether its process hangs or is frozen, or its machine is overloaded; then check "
        "the network to it"
    ),
    "route": "check that host and the network to it",
    "network": "check that host and the network to it; if both are well, its process hangs",
    "cluster": "format this node with the cluster id of that quorum, or correct the address",
    "broker": "name controllers, not brokers, in controller.quorum.bootstrap.servers",
    "voter": (
        "correct advertised.listeners of that node; if it was formatted anew, remove its old directory from "
        "the voters and add the new one (kraftd quorum remove-controller, add-controller)"
    ),
    "alone": "name other controllers there; if advertised.listeners has the address of another, correct it",
    "volumes": (
        "start all controllers that have a log; if the volumes of a majority are lost for good, recover the "
        "quorum from one that has a log (kraftd quorum recover)"
    ),
    "id": "give this node an id of its own (node.id), and format its directory",
}
_WITH_DETAIL = frozenset({"login", "token", "trust", "keystore"})


class Finding(NamedTuple):
    """The trouble with one peer. `at` is host:port."""

    at: str
    node_id: int
    text: str
    remedy: str

    def __str__(self) -> str:
        peer = f"node {self.node_id} at {self.at}" if self.node_id >= 0 else self.at
        return f"{peer}: {self.text}; {self.remedy}"


class PeerTroubles:
    """A node's findings about peers that do not help it to find a leader."""

    def __init__(self, node_id: int, cluster_id: str) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.has_led_or_followed = False  # since the start: after that nothing is fatal
        self._has_contacted = False
        self._led = False  # this node was the last leader: peers name it until they learn of the next
        self.was_leader: Callable[[], bool] = bool  # returns the same, also if it led between two polls
        self.own_addresses: frozenset[str] = frozenset()  # of its listeners, host:port
        self._findings: dict[str, Finding] = {}
        self._counts: dict[str, int] = {}
        self._clusters: dict[str, str] = {}  # the cluster ids of peers of other clusters, by address
        self._well: set[str] = set()  # peers that answered as members of this cluster
        self._without_leader_since_ms: int | None = None
        self._polled_ms = 0
        self._reported_ms: int | None = None

    # -- outcomes

    def unreachable(self, node_id: int, at: str, reason: str) -> None:
        """Handle that a connection was refused or lost; `reason` is the error of the system or the
        connection.
        """
        self._note_contact()
        text, remedy = _explain(reason)
        self._note(Finding(at, node_id, text, _REMEDIES[remedy]))

    def answered(self, node_id: int, at: str, message: Message, served: frozenset[int] | None) -> None:
        """Handle a peer's answer; `served` are the APIs that it reports to serve."""
        self._note_contact()
        if served is not None and ApiKey.VOTE not in served:
            self._note(Finding(at, node_id, "a broker answers there, not a controller", _REMEDIES["broker"]))
        elif getattr(message, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._note(Finding(at, node_id, self._foreign_text(at), _REMEDIES["cluster"]))
        elif getattr(message, "error_code", 0) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self._note(Finding(at, node_id, "it refuses this node's requests", _REMEDIES["denied"]))
        elif ErrorCode.INVALID_VOTER_KEY in _voter_errors(message):
            self._well.add(at)
            self._forget(at)
            text = f"another node than {node_id} answers there, or its directory was formatted anew"
            self._note(Finding(at, node_id, text, _REMEDIES["voter"]), f"{at} as {node_id}")
        elif self._is_led_by_a_twin(message):
            text = f"the leader there has the id of this node, {self.node_id}"
            self._note(Finding(at, node_id, text, _REMEDIES["id"]))
        else:
            self._well.add(at)
            self._clusters.pop(at, None)
            self._forget(at)
            if _voter_errors(message):
                self._forget(f"{at} as {node_id}")

    def _is_led_by_a_twin(self, message: Message) -> bool:
        """Return whether a peer names a leader with this node's id elsewhere.

        At this node's own address it is this node, as it was before it stopped or its volume was lost: a peer
        that finds no leader names the last one for as long.
        """
        if _leader_id(message) != self.node_id or self._led or self.was_leader():
            return False
        at = {f"{one.host}:{one.port}" for one in getattr(message, "node_endpoints", ())}
        return not at & self.own_addresses

    def lacks_cluster_of(self, at: str) -> bool:
        """Return whether a peer is of another cluster whose id is not known."""
        finding = self._findings.get(at)
        is_foreign = finding is not None and finding.remedy == _REMEDIES["cluster"]
        return is_foreign and at not in self._clusters

    def is_of_cluster(self, at: str, cluster_id: str) -> None:
        """Handle the cluster id of a peer that refused this node's."""
        if cluster_id != self.cluster_id:
            self._clusters[at] = cluster_id
            finding = self._findings.get(at)
            if finding is not None and finding.remedy == _REMEDIES["cluster"]:
                self._findings[at] = finding._replace(text=self._foreign_text(at))

    def _foreign_text(self, at: str) -> str:
        """The sentence about a peer of another cluster."""
        if at in self._clusters:
            return f"it is of cluster {self._clusters[at]}, and this node of {self.cluster_id}"
        return f"it is of another cluster than {self.cluster_id}"

    def _note_contact(self) -> None:
        """Note that a peer got a request: it answered, or failed."""
        if not self._has_contacted:
            self._has_contacted = True
            self._forget(SERVERS)

    def _note(self, finding: Finding, key: str | None = None) -> None:
        """Store a finding. `key` is set for one that an answer to another request does not disprove."""
        if key is None:
            key = finding.at
            self._well.discard(key)
        self._findings[key] = finding
        self._counts[key] = self._counts.get(key, 0) + 1

    def _forget(self, at: str) -> None:
        self._findings.pop(at, None)
        self._counts.pop(at, None)

    def first_election(self, awaited: Sequence[int], living: Collection[int] = ()) -> None:
        """Note why this node, whose directory is new, starts no election: the voters without whose answer it
        waits, or those that have a log.
        """
        if living:
            ids = ", ".join(map(str, sorted(living)))
            text = f"controllers {ids} have a log, and this directory is new: it votes once it has caught up"
            self._note_once(FIRST_ELECTION, text, _REMEDIES["volumes"])
            return
        if not awaited:
            self._forget(FIRST_ELECTION)
            return
        ids = ", ".join(map(str, awaited))
        text = f"it waits until controllers {ids} have shown that they have no log (this directory is new)"
        key = f"kraftd.first.election.without={ids.replace(' ', '')}"
        remedy = (
            f"start them; if they never had one and are gone for good, set {key} on each other controller"
        )
        self._note_once(FIRST_ELECTION, text, remedy)

    def volumes_lost(self, ids: Collection[int]) -> None:
        """Note the voters that ask this node, which has a log, for votes without one."""
        if not ids:
            self._forget(LOST_VOLUMES)
            return
        shown = ", ".join(map(str, sorted(ids)))
        text = (
            f"controllers {shown} have no log (their directories are new), and vote once they have caught up"
        )
        self._note_once(LOST_VOLUMES, text, _REMEDIES["volumes"])

    def _note_once(self, key: str, text: str, remedy: str) -> None:
        if self._findings.get(key, ("", -1, ""))[2] != text:
            self._note(Finding(key, -1, text, remedy))

    # -- findings

    def poll(self, now_ms: int, *, leader_id: int | None, leader_answers: bool) -> None:
        """Note the known leader, and whether it answers: if so, nothing is wrong."""
        self._polled_ms = now_ms
        if leader_id is not None:
            self.has_led_or_followed = True
        self._led = leader_id == self.node_id
        if self._led:
            for key in [key for key, finding in self._findings.items() if finding.remedy == _REMEDIES["id"]]:
                self._forget(key)
        if leader_answers:
            self._without_leader_since_ms = self._reported_ms = None
            self._findings.clear()
            self._counts.clear()
        elif self._without_leader_since_ms is None:
            self._without_leader_since_ms = now_ms
        elif not self._has_contacted and now_ms - self._without_leader_since_ms >= ALONE_AFTER_MS:
            text = "it names only this node, so there is no node to ask for the leader"
            self._note(Finding(SERVERS, -1, text, _REMEDIES["alone"]))

    def findings(self) -> list[Finding]:
        """The current findings, by address."""
        if self._without_leader_since_ms is None:
            return []
        return [self._findings[at] for at in sorted(self._findings)]

    def lines(self) -> list[str]:
        """The current findings, one line per peer, for /readyz."""
        return [str(finding) for finding in self.findings()]

    def answer(self) -> list[str]:
        """The text of a refused DescribeQuorum: how long this node has had no leader, and `lines`."""
        since_ms = self._without_leader_since_ms
        if since_ms is None:
            return []
        since = "" if self.has_led_or_followed else ", since it started"
        return [f"no leader for {(self._polled_ms - since_ms) // 1000} s{since}", *self.lines()]

    def report(self, now_ms: int) -> list[tuple[Finding, int]]:
        """The findings that are due in the log, each with its count since the last report."""
        since_ms = self._without_leader_since_ms
        if since_ms is None or not self._findings or now_ms - since_ms < REPORT_AFTER_MS:
            return []
        if self._reported_ms is not None and now_ms - self._reported_ms < REPEAT_MS:
            return []
        self._reported_ms = now_ms
        due = [(self._findings[key], self._counts.get(key, 0)) for key in sorted(self._findings)]
        self._counts.clear()
        return due

    def fatal(self, now_ms: int, voters: Collection[str] | None, sources: Collection[str]) -> str | None:
        """Why this node can never join, or None.

        `voters` has the addresses (host:port) of the other voters if this node votes, `sources` each address
        where it may learn the leader. A wrong cluster id is fatal for a voter if too few voters are left for
        a majority. It is fatal for an observer only at all its sources: an absent controller may come back.
        """
        since_ms = self._without_leader_since_ms
        if self.has_led_or_followed or self.was_leader():
            return None
        if since_ms is None or now_ms - since_ms < FATAL_AFTER_MS:
            return None
        findings = self.findings()
        for finding in findings:
            if finding.remedy == _REMEDIES["id"]:
                return str(finding)
        of_other_clusters = [finding for finding in findings if finding.remedy == _REMEDIES["cluster"]]
        if not of_other_clusters or self._well:
            return None
        foreign = {one.at for one in of_other_clusters}
        if voters is None:
            hopeless = foreign.issuperset(sources)
        else:
            size = len(voters) + 1
            hopeless = size - len(foreign.intersection(voters)) <= size // 2
        return str(of_other_clusters[0]) if hopeless else None

    def __repr__(self) -> str:
        return f"<PeerTroubles of node {self.node_id}: {len(self._findings)}>"


def _voter_errors(message: Message) -> set[int]:
    """The partitions' errors in an answer to a request that is meant for one voter."""
    if not isinstance(message, VoteResponse | BeginQuorumEpochResponse):
        return set()
    return {one.error_code for topic in message.topics for one in topic.partitions}


def reason_in_words(reason: str) -> str:
    """The meaning, for a peer, of an error text of the operating system, OpenSSL or `net.outbound`."""
    return _explain(reason)[0]


def _explain(reason: str) -> tuple[str, str]:
    """The meaning, and the key of its remedy."""
    for pattern, text, remedy in _REASONS:
        if re.search(pattern, reason, re.I):
            return text + (f" ({reason})" if remedy in _WITH_DETAIL else ""), remedy
    return reason, "route"


def _leader_id(message: Message) -> int:
    """The leader that a Fetch or Vote response names, -1 for none."""
    topics = getattr(message, "responses", None) or getattr(message, "topics", None) or ()
    for topic in topics:
        for partition in topic.partitions:
            leader = getattr(partition, "current_leader", None)
            return int(getattr(partition, "leader_id", -1) if leader is None else leader.leader_id)
    return -1
