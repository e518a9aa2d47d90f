"""A log that begins late and has lost its checkpoint: the leader's snapshot, or a refusal with the reason."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.client.connection import Connection, Plaintext, Setup
from kraftd.client.failures import ClientFailure
from kraftd.config import load
from kraftd.log.disk import RealDisk
from kraftd.log.errors import CheckpointMissing, DirectoryProblem
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_acls_response import CreateAclsResponse
from kraftd.metadata_dir.files.checkpoint import checkpoint_name
from kraftd.runtime import checkpoint_fetch
from kraftd.runtime.assembly import make_security
from kraftd.types import OffsetAndEpoch
from testkit.certificates import Authority
from testkit.process import free_port
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess
from tests.runtime.test_snapshots import OFTEN, create, directory, snapshots, wait_until
from tests.security.secured_daemon import PLAIN_MODULE, STANDARD_AUTHORIZER, tls_keys

PREFIX = "listener.name.controller."


@pytest.fixture(scope="module")
def leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """A daemon whose log begins after offset 0 and that makes no more snapshots."""
    daemon = DaemonProcess(tmp_path_factory.mktemp("leader"), metadata__max__idle__interval__ms=0, **OFTEN)
    daemon.format().start()
    create(daemon.client(), range(60))
    wait_until(lambda: not (directory(daemon) / f"{0:020d}.log").exists(), "its log begins late")
    yield daemon
    daemon.stop(signal.SIGKILL)


def restore(
    found: CheckpointMissing,
    servers: list[tuple[str, int]],
    cluster_id: str = CLUSTER_ID,
    wait_s: float = 0,
    setup: Setup | None = None,
) -> OffsetAndEpoch:
    setup = setup or Plaintext()
    return asyncio.run(checkpoint_fetch.restore(RealDisk(), found, cluster_id, servers, setup, wait_s))


def missing(path: Path, log_start_offset: int = 1) -> CheckpointMissing:
    path.mkdir(exist_ok=True)
    return CheckpointMissing(str(path), log_start_offset, "no checkpoint", "do something")


def test_the_leaders_newest_snapshot_is_downloaded_completely(leader: DaemonProcess, tmp_path: Path) -> None:
    found = restore(missing(tmp_path), [("127.0.0.1", leader.port)])
    assert found == snapshots(leader)[-1]
    name = checkpoint_name(found)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == (directory(leader) / name).read_bytes()


def test_a_snapshot_that_the_log_does_not_continue_is_refused(leader: DaemonProcess, tmp_path: Path) -> None:
    newest = snapshots(leader)[-1].offset
    with pytest.raises(DirectoryProblem, match=rf"do something.*newest snapshot ends at {newest}\b"):
        servers = [("127.0.0.1", leader.port)]
        restore(missing(tmp_path, newest + 1), servers)
    assert not list(tmp_path.iterdir())


def test_a_controller_of_another_cluster_provides_no_snapshot(leader: DaemonProcess, tmp_path: Path) -> None:
    with pytest.raises(DirectoryProblem, match="INCONSISTENT_CLUSTER_ID"):
        restore(missing(tmp_path), [("127.0.0.1", leader.port)], "cK1bxUW_TcqMIFcIoUDLhg")


def test_every_controller_that_provides_no_snapshot_is_named(leader: DaemonProcess, tmp_path: Path) -> None:
    (tmp_path / "young").mkdir()
    young = DaemonProcess(tmp_path / "young").format().start()
    unused_port = free_port()
    try:
        servers = [("127.0.0.1", unused_port), ("127.0.0.1", young.port)]
        with pytest.raises(
            DirectoryProblem, match=rf":{unused_port}: .*; .*:{young.port}: .*begins with offset 0"
        ):
            restore(missing(tmp_path / "log"), servers)
        # A node that has a snapshot is found after them.
        found = restore(missing(tmp_path / "log"), [*servers, ("127.0.0.1", leader.port)])
        assert found == snapshots(leader)[-1]
    finally:
        young.stop(signal.SIGKILL)


def test_a_lone_controller_is_refused_at_once_and_loses_nothing(tmp_path: Path) -> None:
    """Its bootstrap servers all lead to itself, under several names."""
    daemon = DaemonProcess(tmp_path, metadata__max__idle__interval__ms=0, **OFTEN).format().start()
    try:
        create(daemon.client(), range(60))
        wait_until(lambda: not (directory(daemon) / f"{0:020d}.log").exists(), "its log begins late")
        assert daemon.stop() == 0
        for each in snapshots(daemon):
            path = directory(daemon) / checkpoint_name(each)
            path.rename(path.with_suffix(".aside"))
        text = daemon.properties.read_text()
        daemon.properties.write_text(
            text.replace("bootstrap.servers=127.0.0.1", "bootstrap.servers=localhost")
        )
        names = sorted(path.name for path in directory(daemon).iterdir())
        refused = daemon.kraftd("start", str(daemon.properties), check=False)
        assert refused.returncode == 3
        assert (
            "no checkpoint at or past it" in refused.stderr and "could not be fetched" not in refused.stderr
        )
        assert sorted(path.name for path in directory(daemon).iterdir()) == names
        for path in directory(daemon).glob("*.aside"):
            path.rename(path.with_suffix(".checkpoint"))
        daemon.start()
        assert daemon.stop() == 0
    finally:
        daemon.stop(signal.SIGKILL)


def test_a_secured_leader_is_asked_by_the_quorums_tls_and_login(tmp_path: Path) -> None:
    authority = Authority()
    jaas = f'{PLAIN_MODULE} required username="node" password="secret" user_node="secret";'
    settings = {
        **tls_keys(tmp_path, authority, "CN=node", PREFIX),
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{PREFIX}plain.sasl.jaas.config": jaas,
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:node",
    }
    keys = {key.replace(".", "__"): value for key, value in settings.items()}
    daemon = DaemonProcess(tmp_path, metadata__max__idle__interval__ms=0, **OFTEN, **keys).format().begin()
    setup = checkpoint_fetch.setup_of(make_security(load(daemon.properties)))
    try:
        wait_until(lambda: asyncio.run(acls_created(setup, daemon.port)), "it leads")
        wait_until(lambda: not (directory(daemon) / f"{0:020d}.log").exists(), "its log begins late")
        servers = [("127.0.0.1", daemon.port)]
        with pytest.raises(DirectoryProblem, match="it closed the connection"):
            restore(missing(tmp_path / "log"), servers)
        found = restore(missing(tmp_path / "log"), servers, wait_s=5, setup=setup)
        name = checkpoint_name(found)
        assert (tmp_path / "log" / name).read_bytes() == (directory(daemon) / name).read_bytes()
    finally:
        daemon.stop(signal.SIGKILL)


async def acls_created(setup: Setup, port: int) -> bool:
    """Return whether a few hundred ACLs were created; they make the leader's log begin late."""
    try:
        async with await Connection.open("127.0.0.1", port, 2, setup) as client:
            answers = []
            for number in range(40):
                acls = [AclCreation(2, f"t{number}-{at}", 3, "User:alice", "*", 3, 3) for at in range(20)]
                answers.append(await client.ask(CreateAclsRequest(acls), CreateAclsResponse))
    except ClientFailure:
        return False
    return all(one.error_code == 0 for answer in answers for one in answer.results)
