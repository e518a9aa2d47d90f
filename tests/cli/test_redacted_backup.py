"""``kraftd backup --redacted``: no secret in any file, and a restore that names what it lacks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from kraftd.client.connection import Connection
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kraftd.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from testkit.process import free_port
from tests.cli.cluster import create_topics, register_broker
from tests.cli.run import run, started, tree, write_config
from tests.cli.test_backup import ALONE, CLUSTER_ID, described, topics
from tests.redaction.secrets import shown_secrets

SALT, SALTED = b"salt of bob, twenty", b"salted password of bob, 32 bytes"
PASSWORD = b"hunter2-of-all-brokers"
UNKNOWN = b"hunter3-of-a-key-without-definition"


def set_secrets(port: int) -> None:
    """A SCRAM credential, a password of all brokers and a public config of them."""
    configs = [
        AlterableConfig("ssl.keystore.password", 0, PASSWORD.decode()),
        AlterableConfig("plugin.of.ours", 0, UNKNOWN.decode()),
        AlterableConfig("log.cleaner.threads", 0, "2"),
    ]
    scram = AlterUserScramCredentialsRequest([], [ScramCredentialUpsertion("bob", 1, 4096, SALT, SALTED)])
    altered = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "", configs)])

    async def ask() -> None:
        async with await Connection.open("127.0.0.1", port, 10) as connection:
            set_one = await connection.ask(scram, AlterUserScramCredentialsResponse)
            assert [one.error_code for one in set_one.results] == [0]
            answer = await connection.ask(altered, IncrementalAlterConfigsResponse)
            assert [one.error_code for one in answer.responses] == [0], answer

    asyncio.run(ask())


def secrets_of(folder: Path) -> set[bytes]:
    """Everything secret that a complete backup shows."""
    done = run("dump", folder, "--json", "--show-secrets")
    found = {PASSWORD, UNKNOWN}
    for line in done.out.splitlines():
        data = json.loads(line).get("data") or {}
        for key in ("salt", "stored_key", "server_key"):
            if data.get(key):
                found.add(bytes.fromhex(data[key]))
    return found


def test_a_redacted_backup_has_no_secret_and_restores_the_rest(tmp_path: Path) -> None:
    port = free_port()
    config = write_config(tmp_path, port, **ALONE)
    scram = "SCRAM-SHA-512=[name=alice,password=secret-of-alice]"
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone", "--add-scram", scram).code == 0
    complete, redacted = tmp_path / "complete", tmp_path / "redacted"
    with started(config):
        register_broker(port, CLUSTER_ID)
        create_topics(port, "orders")
        assert run("snapshot", config).code == 0  # alice in the snapshot, bob in the log after it
        set_secrets(port)
        take = ("backup", "--bootstrap", f"127.0.0.1:{port}", "--output")
        told = run(*take, complete)
        assert "holds the secrets of the metadata" in told.out and "--redacted" in told.out
        done = run(*take, redacted, "--redacted")
        assert (done.code, done.err) == (0, "")
        assert "It holds no secrets. To restore the cluster, take one without --redacted" in done.out
    secrets = secrets_of(complete)
    assert len(secrets) == 8
    assert set(shown_secrets(b"".join(tree(complete).values()), secrets)) == secrets
    assert shown_secrets(b"".join(tree(redacted).values()), secrets) == []
    assert any((redacted / "__cluster_metadata-0").glob("*.checkpoint"))
    assert topics(redacted) == {"orders"}

    (tmp_path / "new").mkdir()
    new = write_config(tmp_path / "new", port, node__id="3", **ALONE)
    restored = run("restore", "--from", redacted, "--config", new)
    assert (restored.code, restored.err) == (0, "")
    for text in (
        "The backup is redacted: secrets were not restored.",
        "SCRAM credentials: alice (SCRAM-SHA-512), bob (SCRAM-SHA-256).",
        "Sensitive configs: plugin.of.ours of broker default, ssl.keystore.password of broker default.",
        "--entity-type users --entity-name alice --add-config 'SCRAM-SHA-512=[password=NEW-PASSWORD]'",
    ):
        assert text in restored.out
    shown = run("show", "/", "--depth", "9", "-d", tmp_path / "new" / "data", "--show-secrets").out
    assert "orders" in shown and "log.cleaner.threads" in shown
    for absent in ("alice", "bob", "plugin.of.ours", "ssl.keystore.password", "[redacted]"):
        assert absent not in shown
    (tmp_path / "whole").mkdir()
    whole = write_config(tmp_path / "whole", port, node__id="3", **ALONE)
    assert "is redacted" not in run("restore", "--from", complete, "--config", whole).out
    assert "alice" in run("show", "/", "--depth", "9", "-d", tmp_path / "whole" / "data").out
    with started(new):
        assert described(port)["LeaderId"] == 3
