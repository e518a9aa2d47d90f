"""Logs refused registrations and requests of unknown peers: one line each at once, then one a minute with a
count.

Such a peer repeats its request, and the controller would otherwise not show it. `lines` has the peers of the
last minute for /readyz and DescribeQuorum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox
from kraftd.requests.repeats import Repeats
from kraftd.types import ReplicaKey
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

MAX_ID_CHARS = 64  # of a foreign cluster id in a log line
FETCH = int(ApiKey.FETCH)
REGISTRATIONS = frozenset({int(ApiKey.BROKER_REGISTRATION), int(ApiKey.CONTROLLER_REGISTRATION)})
# Errors that pass by themselves: the peer looks for the active controller, or retries.
_PASSING = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT})
_REMEDIES = {
    ErrorCode.INCONSISTENT_CLUSTER_ID: "format that node with this cluster's id, or correct its address",
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: (
        "after a kill, the session of the former process must end first (broker.session.timeout.ms); if this "
        "goes on, another process runs under that id: give one of them its own"
    ),
    ErrorCode.UNSUPPORTED_VERSION: "that node does not support a feature level of this cluster: upgrade it",
    ErrorCode.INVALID_REGISTRATION: "correct what its registration names",
}
_OWN_ID = "it has the id of this node"
_OWN_ID_REMEDY = "give that node an id of its own (node.id), and format its directory"
# In these requests, the id beside the partitions is the receiver's.
_SENDERS = {
    int(ApiKey.VOTE): "replica_id",
    int(ApiKey.BEGIN_QUORUM_EPOCH): "leader_id",
    int(ApiKey.END_QUORUM_EPOCH): "leader_id",
}
_IDS = ("broker_id", "controller_id", "voter_id", "replica_id")


class RefusalLog:
    """Notes refusals; due lines go to the outbox. `own_id`, `own_directory` and `own_cluster_id` are this
    node's, once known.
    """

    def __init__(self, outbox: Outbox) -> None:
        self.own_id = -1
        self.own_directory = b""
        self.own_cluster_id = ""
        self.leads: Callable[[], bool] = bool
        self._outbox = outbox
        self._repeats = Repeats()

    def identify(self, own: ReplicaKey, cluster_id: str, leads: Callable[[], bool]) -> None:
        """Set this node's ids; `leads` returns whether it leads."""
        self.leads = leads
        self.own_id, self.own_directory, self.own_cluster_id = own.id, own.directory_id or b"", cluster_id

    def note(self, call: Call, errors: Iterable[int], why: str | None = None) -> None:
        """Note that a call was answered with these errors; `why` is the message beside the code."""
        for code in errors:
            own_id = call.key == FETCH and node_id_of(call) == self.own_id and not self._is_own(call)
            watched = code == ErrorCode.INCONSISTENT_CLUSTER_ID or (
                call.key in REGISTRATIONS and code not in _PASSING
            )
            if watched or own_id:
                self._note(call, code, _OWN_ID if own_id else why)

    def _is_own(self, call: Call) -> bool:
        """Return whether this node itself sent a Fetch: while it searches for the leader, it asks every
        bootstrap server, and one may be itself under another name. A leader asks none.
        """
        directories = [one.replica_directory_id for topic in call.message.topics for one in topic.partitions]
        return not self.leads() and self.own_directory in directories

    def _other_cluster(self, call: Call, error: ErrorCode) -> str | None:
        """Both cluster ids of a request that was refused because of its cluster id."""
        theirs = getattr(call.message, "cluster_id", None)
        if error != ErrorCode.INCONSISTENT_CLUSTER_ID or theirs is None or not self.own_cluster_id:
            return None
        return f"it names cluster {theirs[:MAX_ID_CHARS]!r}, and this node is of {self.own_cluster_id}"

    def lines(self, now_ns: int) -> list[str]:
        """The refusals of the last minute, one line per peer; `now_ns` is of the clock of
        `Call.arrived_ns`.
        """
        return self._repeats.lately(now_ns)

    def _note(self, call: Call, code: int, why: str | None) -> None:
        node_id = node_id_of(call)
        key = (call.key, code, call.host, node_id)
        count = self._repeats.due(key, call.arrived_ns)
        if not count:
            return
        error = ErrorCode(code)  # type: ignore[call-arg]
        why = why or self._other_cluster(call, error) or error.message
        remedy = _REMEDIES.get(error, "the log of that node says more") if why != _OWN_ID else _OWN_ID_REMEDY
        sender = "a node" if node_id is None else f"node {node_id}"
        self._repeats.describe(
            key, f"{sender} at {call.host} is refused: {error.name}: {why.rstrip('.')}; {remedy}"
        )
        fields = {
            "api": ApiKey(call.key).name,
            "from_node": node_id,
            "host": call.host,
            "client_id": call.client_id,
            "principal": str(call.principal),
            "error": error.name,
            "why": why,
            "remedy": remedy,
            "seen": count,
        }
        self._outbox.log("warning", "a node is refused", **fields)
        self._outbox.emit(AuditLine("node refused", -1, fields))

    def __repr__(self) -> str:
        return f"<RefusalLog {self._repeats!r}>"


def node_id_of(call: Call) -> int | None:
    """The sender's node id in the request; None if it has none."""
    message: Any = call.message
    sender = _SENDERS.get(call.key)
    if sender is not None:
        ids = (getattr(one, sender) for topic in message.topics for one in topic.partitions)
        return next((one for one in ids if one >= 0), None)
    state = getattr(message, "replica_state", None)
    if state is not None and state.replica_id >= 0:
        return int(state.replica_id)
    for name in _IDS:
        found = getattr(message, name, None)
        if isinstance(found, int) and found >= 0:
            return found
    return None
