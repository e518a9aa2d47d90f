"""``kraftd quorum add-controller`` and ``remove-controller``: change the voters (KIP-853)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import bootstrap_option, command_config_option, run
from kraftd.cli.failures import DIRECTORY, FAILED, UNREACHABLE, CommandFailure
from kraftd.cli.quorum.leader import POLL_S, Quorum, ask_leader, check, connect, endpoint_text
from kraftd.cli.values import NODE_ID, SECONDS
from kraftd.cli.wait_notice import waiting

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig
    from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest
    from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
    from kraftd.wire.api import ApiKey
    from kraftd.wire.message import Message

quorum_option = bootstrap_option(
    "Controllers of the quorum, or brokers, which name them: from one the command learns the leader."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Print the request, and do not send it.")
timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=SECONDS,
    default=30.0,
    show_default=True,
    help="Seconds to retry while there is no leader or the change cannot begin yet.",
)


@click.command("add-controller")
@command_config_option
@quorum_option
@click.option(
    "-c", "--config", "file", required=True, metavar="FILE", help="The .properties file of the new voter."
)
@dry_run_option
@timeout_option
def add_controller(bootstrap: str, file: str, dry_run: bool, timeout_s: float) -> None:
    """Make an observer a voter.

    The observer is a controller that already runs and follows the leader.

    Run the command on that controller's machine. It reads the id, directory id and endpoints from the
    controller's file and data directory.
    """
    from kraftd.config import load
    from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
    from kraftd.types import uuid_text
    from kraftd.wire.api import ApiKey

    config = load(file)
    cluster_id, directory_id = identity_of(config)
    listeners = [
        Listener(endpoint.listener, endpoint.host or "localhost", endpoint.port)
        for endpoint in config.advertised_listeners
        if endpoint.listener in config.controller_listener_names
    ]
    name = f"{config.node_id}:{uuid_text(directory_id)}"
    where = ", ".join(endpoint_text(one.name, one.host, one.port) for one in listeners)
    if dry_run:
        click.echo(f"Would add controller {name} at {where}.")
        return
    request = AddRaftVoterRequest(cluster_id, int(timeout_s * 1000), config.node_id, directory_id, listeners)
    run(change(bootstrap, timeout_s, ApiKey.ADD_RAFT_VOTER, request))
    click.echo(f"Added controller {name} at {where}.")


@click.command("remove-controller")
@command_config_option
@quorum_option
@click.option("-i", "--controller-id", required=True, type=NODE_ID, metavar="ID", help="The voter's node id.")
@click.option(
    "-d",
    "--controller-directory-id",
    required=True,
    metavar="ID",
    help="The voter's directory id, as kraftd quorum describe shows it.",
)
@dry_run_option
@timeout_option
def remove_controller(
    bootstrap: str, controller_id: int, controller_directory_id: str, dry_run: bool, timeout_s: float
) -> None:
    """Remove a voter from the quorum, whether it runs or not."""
    from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
    from kraftd.types import parse_uuid
    from kraftd.wire.api import ApiKey

    try:
        directory_id = parse_uuid(controller_directory_id)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--controller-directory-id") from None
    name = f"{controller_id}:{controller_directory_id}"
    if dry_run:
        click.echo(f"Would remove controller {name}.")
        return
    request = RemoveRaftVoterRequest(None, controller_id, directory_id)
    run(change(bootstrap, timeout_s, ApiKey.REMOVE_RAFT_VOTER, request))
    click.echo(f"Removed controller {name}.")


def identity_of(config: DaemonConfig) -> tuple[str, bytes]:
    """The cluster id and the directory id that a formatted directory holds. Raises CommandFailure."""
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.files.meta_properties import read_meta_properties

    found = read_meta_properties(RealDisk(), config.metadata_log_dir)
    if found is None or found.cluster_id is None or found.directory_id is None:
        raise CommandFailure(
            f"{config.metadata_log_dir} is not formatted: run kraftd format --no-initial-controllers, start "
            "the controller, then add it.",
            DIRECTORY,
        )
    if found.node_id != config.node_id:
        raise CommandFailure(
            f"{config.metadata_log_dir} is the directory of node {found.node_id}, and the file says node.id="
            f"{config.node_id}.",
            DIRECTORY,
        )
    return found.cluster_id, found.directory_id


async def change(
    bootstrap: str, timeout_s: float, key: ApiKey, request: AddRaftVoterRequest | RemoveRaftVoterRequest
) -> None:
    """Have the leader change its voters. Repeat the request while the leader cannot do it yet, or there is
    none.

    Raises CommandFailure with the leader's reason.
    """
    import asyncio

    deadline_s = time.monotonic() + timeout_s
    left_s, voted = timeout_s, None
    async with waiting(f"until the leader can make the change, {timeout_s:g} s at most"):
        while True:
            found = await ask_leader(bootstrap, left_s)
            votes = is_voter(found, request.voter_id, request.voter_directory_id)
            voted = votes if voted is None else voted
            if was_made(key, voted, votes):
                return  # an earlier request made the change, although its answer was lost or came too early
            try:
                await request_change(found, left_s, key, request)
            except NotYet:
                left_s = deadline_s - time.monotonic()
                if left_s <= POLL_S:
                    raise
            else:
                return
            await asyncio.sleep(POLL_S)


def was_made(key: ApiKey, voted: bool, votes: bool) -> bool:
    """Return whether the change was made: `voted` is whether the replica was a voter at first, `votes`
    whether it is one now.
    """
    from kraftd.wire.api import ApiKey

    return votes is not voted and votes is (key is ApiKey.ADD_RAFT_VOTER)


class NotYet(CommandFailure):
    """The leader cannot make the change now, or it is unknown whether it has."""


async def request_change(found: Quorum, timeout_s: float, key: ApiKey, request: Message) -> None:
    """Send the request to the leader that was found. Raises NotYet if it may be sent again."""
    from kraftd.client.failures import Unreachable
    from kraftd.wire.api import response_class
    from kraftd.wire.error_code import ErrorCode, error_name

    try:
        async with await connect(found.address, timeout_s) as connection:
            answer = await connection.ask(request, response_class(key))
    except Unreachable as failure:
        raise NotYet(str(failure), UNREACHABLE) from None
    error_code, text = answer.error_code, answer.error_message  # type: ignore[attr-defined]
    if error_code in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        raise NotYet(f"{error_name(error_code)}: {text}", FAILED)
    check(error_code, text)


def is_voter(found: Quorum, node_id: int, directory_id: bytes) -> bool:
    return any(
        (one.replica_id, one.replica_directory_id) == (node_id, directory_id)
        for one in found.partition.current_voters
    )
