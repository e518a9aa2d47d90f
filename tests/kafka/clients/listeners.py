"""Quorums whose kraftd controllers serve ordinary clients, each at a port of its own."""

from __future__ import annotations

from typing import NamedTuple

from kraftd.redaction.batches import redacted_value
from kraftd.wire.batch import iter_batches, values
from testkit.java import ToolRun, tools
from testkit.logs import read_log
from testkit.node import Controller
from testkit.process import HOST, free_port

# At PLAINTEXT, Metadata names the brokers, whose listener has that name; at LOG it names none of them.
CLIENT_KEYS = {
    "kraftd.client.listener.names": "PLAINTEXT,LOG",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOG:PLAINTEXT",
}


class Addresses(NamedTuple):
    """The addresses of a controller's client listeners."""

    clients: str
    log: str


def serve_clients(controller: Controller) -> Addresses:
    """Add client listeners to a controller that has not been started."""
    at = Addresses(f"{HOST}:{free_port()}", f"{HOST}:{free_port()}")
    own = f"CONTROLLER://{HOST}:{controller.port}"
    controller.properties.update(CLIENT_KEYS, listeners=f"{own},PLAINTEXT://{at.clients},LOG://{at.log}")
    controller.write_properties()
    return at


def tool(bootstrap: str, name: str, *arguments: object, stdin: str = "", timeout_s: float = 120) -> ToolRun:
    """Run one of Kafka's tools with these bootstrap servers; AssertionError with its output if it fails."""
    return (
        tools()
        .run(name, "--bootstrap-server", bootstrap, *arguments, stdin=stdin, timeout_s=timeout_s)
        .check()
    )


def records_on_disk(controller: Controller, end_offset: int) -> list[tuple[int, bytes]]:
    """Offset and value of every metadata record below an offset, from the controller's log, as consumers get
    them.
    """
    found = []
    for entry in read_log(controller.data).entries:
        for batch in iter_batches(entry.data):
            if not batch.header.is_control:
                offsets = range(batch.header.base_offset, batch.header.next_offset)
                shown = [redacted_value(value) or bytes(value) for value in values(batch)]
                found += list(zip(offsets, shown, strict=True))
    return [one for one in found if one[0] < end_offset]
