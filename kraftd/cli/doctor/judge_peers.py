"""Judges the answers of addresses, in the words of a node that looks for its leader. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraftd.cli.doctor.findings import Finding, note, ok, problem
from kraftd.client.failures import NO_ANSWER
from kraftd.host.checks.peer_troubles import PeerTroubles
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.named_tuple import NamedTuple

HANGS = "accepts connections and answers nothing"
LOOK = (
    "look at its process: it hangs, is stopped or frozen (kill -CONT), waits for a disk, or gets no "
    "processor time; if it is slow only, a longer --timeout shows that"
)
UPGRADE = "upgrade that node, or set the feature's level down (kafka-features.sh downgrade)"


class Answer(NamedTuple):
    """An address's answer. failure is empty if it speaks Kafka's protocol.

    speaks is "TLS", "SASL", "HTTP" or "PLAINTEXT" where that was found out after a failure. cluster_id is
    None if the answer has none. listens is false if no connection was accepted.
    """

    at: str
    failure: str = ""
    speaks: str = ""
    served: frozenset[int] = frozenset()
    versions: ApiVersionsResponse | None = None
    cluster_id: str | None = None
    elapsed_ms: float = 0.0
    listens: bool = True

    @property
    def hangs(self) -> bool:
        """Return whether a connection was accepted, and nothing came in any protocol."""
        return self.listens and self.failure == NO_ANSWER and not self.speaks


def judge_peer(answer: Answer, cluster_id: str | None, *, expects_tls: bool) -> Finding:
    """The finding of one address. cluster_id is the one that is expected, None for any."""
    if answer.failure:
        if answer.speaks == "TLS" and expects_tls:
            login = "give --command-config to ask it more"
            return note("peers", answer.at, "it speaks TLS, as this node's listener does", login)
        if answer.speaks == "SASL":
            return problem("peers", answer.at, answer.failure, "give --command-config to ask it more")
        if answer.speaks == "PLAINTEXT":
            protocol = "correct security.protocol, or the address"
            return problem("peers", answer.at, "it speaks PLAINTEXT, and TLS was tried", protocol)
        if answer.hangs:
            return problem("peers", answer.at, f"it {HANGS}", LOOK)
        return _as_trouble(answer)
    if is_broker(answer):
        return _as_trouble(answer)
    if cluster_id is not None and answer.cluster_id not in (None, cluster_id):
        text = f"it is of cluster {answer.cluster_id}, not of {cluster_id}"
        remedy = "correct the address, or format that node with the cluster id of this quorum"
        return problem("peers", answer.at, text, remedy)
    return ok("peers", answer.at, f"a controller answers within {answer.elapsed_ms:.0f} ms")


def is_broker(answer: Answer) -> bool:
    """Return whether the answer is of a node that takes no part in elections."""
    from kraftd.wire.api import ApiKey

    return bool(answer.served) and ApiKey.VOTE not in answer.served


def _as_trouble(answer: Answer) -> Finding:
    troubles = PeerTroubles(-1, "")
    if answer.failure:
        reason = f"speaks {answer.speaks}" if answer.speaks else answer.failure
        troubles.unreachable(-1, answer.at, reason)
    else:
        troubles.answered(-1, answer.at, ApiVersionsResponse(), answer.served)
    troubles.poll(0, leader_id=None, leader_answers=False)
    (found,) = troubles.findings()
    return problem("peers", answer.at, found.text, found.remedy)


def judge_versions(answer: Answer, own: Mapping[str, tuple[int, int]] | None) -> Iterator[Finding]:
    """Judge whether a node supports the finalized features that it reports.

    `own` is what this kraftd supports.
    """
    if answer.versions is None:
        return
    finalized = {one.name: one.max_version_level for one in answer.versions.finalized_features}
    supported = {one.name: (one.min_version, one.max_version) for one in answer.versions.supported_features}
    nodes = [(answer.at, supported)]
    if own is not None:
        nodes.append(("this kraftd", dict(own)))
    refused = False
    for name, level in sorted(finalized.items()):
        for node, features in nodes:
            low, high = features.get(name, (0, 0))
            if level and not low <= level <= high:
                text = f"{name} is finalized at {level}, and it supports {low} to {high}"
                yield problem("versions", node, text, UPGRADE)
                refused = True
    if refused:
        return
    behind = [
        f"{name} {level} of {supported[name][1]}"
        for name, level in sorted(finalized.items())
        if name in supported and level < supported[name][1]
    ]
    if behind:
        text = f"levels below what it supports: {', '.join(behind)}"
        yield note("versions", answer.at, text, "upgrade them once every node is upgraded")
    elif finalized:
        yield ok("versions", answer.at, f"supports all {len(finalized)} finalized features")


def judge_name(host: str, resolved: str | None) -> Finding:
    """Judge a host name. `resolved` is None if it has an address, else the resolver's error."""
    if resolved is None:
        return ok("names", host, "it resolves")
    return problem("names", host, f"the name does not resolve ({resolved})", "correct it, or the resolver")


def judge_port(
    at: str,
    refused: str | None,
    answer: Answer | None,
    cluster_id: str | None,
    *,
    for_clients: bool = False,
    held_up: str = "",
) -> Finding:
    """Judge a listener of this node: its port is free, so no node runs, or the answer at it is judged.

    `refused` is the system's error for binding it, None without one; `answer` is the answer at the port. A
    listener for ordinary clients answers as a broker does. `held_up` has why this node may run and not
    answer, "" if it does not run.
    """
    if answer is None:
        if refused is None:
            return note("ports", at, "it is free: this node does not run")
        return problem("ports", at, f"it cannot be bound: {refused}", "correct listeners")
    if answer.failure and not answer.speaks and held_up:
        text = f"this node runs and does not serve ({answer.failure})"
        return problem("ports", at, text, LOOK if answer.hangs else held_up)
    if answer.failure and answer.speaks not in ("TLS", "SASL", "PLAINTEXT"):
        what = f"a process that speaks {answer.speaks}" if answer.speaks else "another process"
        text = f"{what} has the port ({answer.failure})"
        return problem("ports", at, text, "stop that process, or choose another port in listeners")
    if is_broker(answer) and not for_clients:
        return problem("ports", at, "a broker has the port", "choose another port in listeners")
    if cluster_id is not None and answer.cluster_id not in (None, cluster_id):
        text = f"a node of cluster {answer.cluster_id} has the port, this directory is of {cluster_id}"
        return problem("ports", at, text, "choose another port in listeners, or correct log.dirs")
    return ok(
        "ports", at, f"a node answers there over {answer.speaks}" if answer.failure else "this node answers"
    )
