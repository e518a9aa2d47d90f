"""Clients that read the metadata log alone: their group coordinator is this node.

Some consumers look for the coordinator of their group although they are assigned partitions, and from then on
ask it for metadata as well. A broker would answer that there is no `__cluster_metadata`. So this node names
itself to such a client. It answers what a consumer without members needs (OffsetFetch, OffsetCommit), and
refuses all else with NOT_COORDINATOR. Then the client asks again, and gets the broker.

Before such a client names a topic, its requests are those of an admin client, which needs the brokers. One
whose client id begins with `__cluster_metadata` says at once what it reads: no answer to it names a broker.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from kraftd.answers.metadata_topic import declares_itself
from kraftd.answers.nodes import broker_listener, brokers
from kraftd.types import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kraftd.answers.settings import ClientSettings
    from kraftd.answers.view import ClusterView
    from kraftd.requests.call import Call
    from kraftd.requests.outbox import Outbox

MAX_REMEMBERED = 10_000  # clients, and groups of clients


class LogReaders:
    """The clients whose Metadata named the metadata topic alone, and their groups that need a broker.

    A client is a principal at an address with a client id, on any of its connections. It may be mistaken for
    another, which costs that one a second FindCoordinator. Only hashes are kept.
    """

    def __init__(self) -> None:
        self._clients: OrderedDict[int, None] = OrderedDict()
        self._groups_of_brokers: OrderedDict[int, None] = OrderedDict()
        self._warned_listeners: set[str] = set()

    def note(self, call: Call) -> None:
        """Note that the client of the call reads the metadata log."""
        _remember(self._clients, hash(_client(call)))

    def note_group_of_broker(self, call: Call, group: str) -> None:
        """Note that the client needs a broker as the coordinator of that group."""
        _remember(self._groups_of_brokers, hash((*_client(call), group)))

    def coordinates(self, call: Call, groups: Iterable[str]) -> bool:
        """Return whether this node is the coordinator of those groups for the client of the call."""
        client = _client(call)
        reads_log = declares_itself(call) or hash(client) in self._clients
        return reads_log and not any(hash((*client, group)) in self._groups_of_brokers for group in groups)

    def warn_of_brokers(
        self, call: Call, view: ClusterView, settings: ClientSettings, outbox: Outbox
    ) -> None:
        """Log once a listener that a client reads the metadata log at a listener which also names brokers.

        Such a client may ask a broker for the topic, and then reads nothing more, without an error.
        """
        warned = self._warned_listeners
        if call.listener in warned or declares_itself(call):
            return
        if not brokers(view, broker_listener(settings, call.listener)):
            return
        warned.add(call.listener)
        safe = [one for one in settings.endpoints if not brokers(view, broker_listener(settings, one))]
        if safe:
            at = settings.endpoints[safe[0]]
            remedy = f"read from listener {at.listener}, {at.host}:{at.port}"
        elif settings.broker_listener is None:
            remedy = "add a client listener whose name no broker has"
        else:
            remedy = (
                "add a client listener whose name no broker has, without kraftd.client.broker.listener.name"
            )
        remedy += f"; or begin the client id with {METADATA_TOPIC}"
        outbox.log(
            "warning",
            "a client reads __cluster_metadata where it may learn of brokers",
            listener=call.listener,
            client=call.host,
            client_id=call.client_id,
            why="a reader that asks a broker for the topic reads nothing more, without an error",
            remedy=remedy,
        )

    def __repr__(self) -> str:
        return f"<LogReaders {len(self._clients)} clients, {len(self._groups_of_brokers)} groups of brokers>"


def _client(call: Call) -> tuple[str, str, str, str]:
    return call.principal.type, call.principal.name, call.host, call.client_id


def _remember(known: OrderedDict[int, None], one: int) -> None:
    """Add it as the newest; the oldest is forgotten if there are too many, in constant time."""
    known[one] = None
    known.move_to_end(one)
    if len(known) > MAX_REMEMBERED:
        known.popitem(last=False)
