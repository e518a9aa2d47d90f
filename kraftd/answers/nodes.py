"""Which nodes an answer names: the brokers, and the replicas of the metadata log that serve clients."""

from __future__ import annotations

from kraftd.answers.settings import ClientSettings
from kraftd.answers.view import ClusterView
from kraftd.named_tuple import NamedTuple
from kraftd.types import Endpoint


class MetadataPartition(NamedTuple):
    """Partition 0 of the metadata topic as a client may read it: by kraftd nodes that have its listener."""

    leader_id: int
    leader_epoch: int
    replicas: dict[int, Endpoint]


def broker_listener(settings: ClientSettings, listener: str) -> str:
    """The brokers' listener for clients of that listener of ours."""
    return settings.broker_listener or listener


def brokers(view: ClusterView, listener: str) -> dict[int, tuple[Endpoint, str | None]]:
    """Endpoint and rack of the brokers that are not fenced and have the listener, by id."""
    found = {}
    for broker in view.image.brokers.values():
        if not broker.fenced:
            endpoint = broker.listener(listener)
            if endpoint is not None:
                found[broker.id] = (endpoint, broker.rack)
    return found


def itself(view: ClusterView, listener: str) -> dict[int, tuple[Endpoint, str | None]]:
    """This broker, if it is one, though it is fenced: of an answer that would name no node."""
    broker = view.image.brokers.get(view.node_id)
    endpoint = None if broker is None else broker.listener(listener)
    return {} if broker is None or endpoint is None else {broker.id: (endpoint, broker.rack)}


def metadata_partition(view: ClusterView, settings: ClientSettings, listener: str) -> MetadataPartition:
    """The nodes that serve the metadata log to clients of that listener.

    The quorum's leader leads if it is a kraftd node with that listener; otherwise, of Apache Kafka's
    controllers, which serve no clients, this node does. The leader is -1 while the quorum has none.
    """
    own = settings.endpoints[listener]
    replicas = {view.node_id: own}
    for node_id in view.voter_ids:
        controller = view.image.controllers.get(node_id)
        endpoint = None if controller is None else controller.listener(listener)
        if endpoint is not None and node_id != view.node_id:
            replicas[node_id] = endpoint
    leader_id = view.leader_id
    if leader_id is None:
        leader = -1
    else:
        leader = leader_id if leader_id in replicas else view.node_id
    return MetadataPartition(leader, view.epoch, dict(sorted(replicas.items())))


class ReportedNodes(NamedTuple):
    """The nodes of an answer: brokers with their racks, and kraftd nodes without."""

    nodes: dict[int, tuple[Endpoint, str | None]]
    controller_ids: list[int]  # of which clients take one for the controller


def reported_nodes(
    view: ClusterView, settings: ClientSettings, listener: str, with_metadata_log: bool
) -> ReportedNodes:
    """The brokers; and the replicas of the metadata log if the answer includes it.

    If no broker can be named, the answer of a node that is none names those replicas, and it forwards
    requests to the controller: otherwise the client would know no node.
    """
    known = brokers(view, broker_listener(settings, listener))
    if not known and settings.serves_metadata_topic and settings.stands_in_for_brokers:
        return log_nodes(view, settings, listener)
    controller_ids = list(known)
    if with_metadata_log:
        replicas = log_nodes(view, settings, listener).nodes
        known |= {one: replica for one, replica in replicas.items() if one not in known}
    return ReportedNodes(known, controller_ids)


def log_nodes(view: ClusterView, settings: ClientSettings, listener: str) -> ReportedNodes:
    """The replicas of the metadata log, and this node as the controller, which forwards requests."""
    replicas = metadata_partition(view, settings, listener).replicas
    return ReportedNodes({one: (endpoint, None) for one, endpoint in replicas.items()}, [view.node_id])


def controller_id(broker_ids: list[int], number: int) -> int:
    """The broker that clients take for the controller: brokers, too, name one of them; -1 without any."""
    return broker_ids[number % len(broker_ids)] if broker_ids else -1
