"""The addresses of the other controllers' status pages (`kraftd.metrics.nodes`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraftd.controller_node.node import Node
from kraftd.raft.quorum.voters import listener_endpoint
from kraftd.types import Endpoint, address_text


def status_urls(node: Node, own: Endpoint, named: Mapping[int, str]) -> dict[int, str]:
    """By node id: `named` ones, and for the rest the port of this node's page at their own hosts.

    A controller at this node's host has another port, which only `named` can tell.
    """
    hosts = dict(_hosts(node))
    here = hosts.pop(node.identity.node_id, None)
    scheme = "https" if own.security_protocol else "http"
    guessed = {
        node_id: f"{scheme}://{address_text((host, own.port))}/"
        for node_id, host in hosts.items()
        if host != here
    }
    return {**guessed, **named}


def _hosts(node: Node) -> Iterator[tuple[int, str]]:
    """The host of each registered controller and of each voter."""
    listener = node.identity.quorum_listener
    for one in node.image.controllers.values():
        registered = one.listener(listener)
        if registered is not None:
            yield one.id, registered.host
    for node_id in node.core.voters.ids:
        endpoint = listener_endpoint(node.core.voters.listeners(node_id), listener)
        if endpoint is not None:
            yield node_id, endpoint.host
