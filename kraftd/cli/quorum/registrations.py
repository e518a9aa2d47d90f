"""``kraftd quorum list-controllers`` and ``forget-controller``: registrations, those of lost controllers too.

A registration outlives its controller, and what it supports still bounds metadata.version (KIP-1312). Kafka
has no record that removes one. So `forget-controller` registers the leader's features in its name, without
endpoints. That registration blocks no upgrade, and stock controllers and brokers can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import command_config_option, run
from kraftd.cli.failures import FAILED, CommandFailure
from kraftd.cli.quorum.leader import (
    CONTROLLERS,
    Quorum,
    ask_leader,
    check,
    connect,
    endpoint_text,
    leaders_time_ms,
)
from kraftd.cli.quorum.voters import quorum_option, timeout_option
from kraftd.cli.values import NODE_ID
from kraftd.named_tuple import NamedTuple

if TYPE_CHECKING:
    from kraftd.client.connection import Connection
    from kraftd.messages.api_versions_response import SupportedFeatureKey

LIVE_MS = 10_000  # a controller that fetched within this time is not gone


class Registration(NamedTuple):
    """A registered controller. `contact_ms_ago` is None if no request of it reached the leader."""

    controller_id: int
    endpoint: str
    role: str
    contact_ms_ago: int | None


@click.command("list-controllers")
@command_config_option
@quorum_option
@timeout_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_controllers(bootstrap: str, timeout_s: float, as_json: bool) -> None:
    """List the registered controllers and their roles.

    For each, the command also shows how long ago its last request reached the leader.
    """
    found = run(registrations(bootstrap, timeout_s))
    if as_json:
        import json

        click.echo(json.dumps([one._asdict() for one in found]))
        return
    click.echo(f"{'ID':<8}{'ROLE':<12}{'HEARD':<16}ENDPOINT")
    for one in found:
        click.echo(f"{one.controller_id:<8}{one.role:<12}{contact_text(one):<16}{one.endpoint}")


@click.command("forget-controller")
@command_config_option
@quorum_option
@click.option("-i", "--controller-id", required=True, type=NODE_ID, metavar="ID", help="The controller's id.")
@timeout_option
def forget_controller(bootstrap: str, controller_id: int, timeout_s: float) -> None:
    """Remove the registration of a lost controller.

    Then the registration no longer blocks upgrades. The leader refuses this for a voter, and for a controller
    that sent a request within the last 10 seconds. If the controller starts again, it registers again.
    """
    run(forget(bootstrap, timeout_s, controller_id))
    click.echo(f"Controller {controller_id} is forgotten: it no longer limits metadata.version.")


async def registrations(bootstrap: str, timeout_s: float) -> list[Registration]:
    """What the leader knows. Raises CommandFailure, Unreachable."""
    from kraftd.messages.describe_cluster_request import DescribeClusterRequest
    from kraftd.messages.describe_cluster_response import DescribeClusterResponse

    quorum = await ask_leader(bootstrap, timeout_s)
    async with await connect(quorum.leaders_address, timeout_s) as connection:
        request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
        cluster = await connection.ask(request, DescribeClusterResponse)
    check(cluster.error_code, cluster.error_message)
    return [
        Registration(
            one.broker_id,
            endpoint_text("CONTROLLER", one.host, one.port),
            *role_of(quorum, one.broker_id),
        )
        for one in sorted(cluster.brokers, key=lambda one: one.broker_id)
    ]


def role_of(quorum: Quorum, controller_id: int) -> tuple[str, int | None]:
    """What a controller does in the quorum, and how long ago (ms) its last request reached the leader."""
    partition = quorum.partition
    now_ms = leaders_time_ms(partition)
    for role, group in (("voter", partition.current_voters), ("observer", partition.observers)):
        for one in group:
            if one.replica_id == controller_id:
                role = "leader" if controller_id == partition.leader_id else role
                fetched_ms = one.last_fetch_timestamp
                return role, None if now_ms is None or fetched_ms < 0 else max(0, now_ms - fetched_ms)
    return "gone", None


def contact_text(registration: Registration) -> str:
    silent_ms = registration.contact_ms_ago
    return "never" if silent_ms is None else f"{silent_ms / 1000:.1f} s ago"


async def forget(bootstrap: str, timeout_s: float, controller_id: int) -> None:
    """Register in the name of a controller that is gone. Raises CommandFailure, Unreachable."""
    quorum = await ask_leader(bootstrap, timeout_s)
    role, contact_ms_ago = role_of(quorum, controller_id)
    if role in ("leader", "voter"):
        text = f"Controller {controller_id} is a voter: remove it first (kraftd quorum remove-controller)."
        raise CommandFailure(text, FAILED)
    if contact_ms_ago is not None and contact_ms_ago < LIVE_MS:
        text = f"Controller {controller_id} was heard {contact_ms_ago} ms ago: it is not gone. Stop it first."
        raise CommandFailure(text, FAILED)
    if all(one.controller_id != controller_id for one in await registrations(bootstrap, timeout_s)):
        raise CommandFailure(f"No controller {controller_id} is registered with an endpoint.", FAILED)
    async with await connect(quorum.leaders_address, timeout_s) as connection:
        await _register(connection, controller_id, await _supported(connection))


async def _supported(connection: Connection) -> list[SupportedFeatureKey]:
    from kraftd.messages.api_versions_request import ApiVersionsRequest
    from kraftd.messages.api_versions_response import ApiVersionsResponse

    answer = await connection.ask(ApiVersionsRequest("kraftd", "1"), ApiVersionsResponse)
    check(answer.error_code, None)
    return list(answer.supported_features)


async def _register(connection: Connection, controller_id: int, supported: list[SupportedFeatureKey]) -> None:
    from uuid import uuid4

    from kraftd.messages.controller_registration_request import ControllerRegistrationRequest, Feature
    from kraftd.messages.controller_registration_response import ControllerRegistrationResponse

    features = [Feature(one.name, one.min_version, one.max_version) for one in supported]
    request = ControllerRegistrationRequest(controller_id, uuid4().bytes, False, [], features)
    answer = await connection.ask(request, ControllerRegistrationResponse)
    check(answer.error_code, answer.error_message)
