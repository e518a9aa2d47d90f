"""`kraftd quorum list-controllers` and `forget-controller`: a lost controller blocks no upgrade."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kraftd.cli.quorum.leader import Quorum
from kraftd.cli.quorum.registrations import role_of
from kraftd.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kraftd.messages.describe_quorum_response import PartitionData, ReplicaState
from kraftd.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraftd.wire.error_code import ErrorCode
from testkit.process import free_port, wait_until
from tests.cli.run import run, started, write_config
from tests.runtime.daemon_process import Client

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
GHOST = 9
OLD_LEVEL, NEW_LEVEL = 20, 29  # of metadata.version


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    config = write_config(tmp_path_factory.mktemp("node"), port)
    done = run("format", "-c", config, "-t", CLUSTER_ID, "--standalone", "--release-version", "3.9-IV0")
    assert done.code == 0, done.err
    with started(config):
        wait_until(lambda: upgrade(port)[0] != ErrorCode.NOT_CONTROLLER, "there is an active controller")
        yield port


def upgrade(port: int) -> tuple[int, str | None]:
    client = Client(port)
    update = FeatureUpdateKey("metadata.version", NEW_LEVEL, upgrade_type=1)
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=True)
    answer = client.call(request, 1)
    client.close()
    errors = [(one.error_code, one.error_message) for one in answer.results or () if one.error_code]
    return errors[0] if errors else (answer.error_code, answer.error_message)


def forget(port: int, controller_id: int) -> tuple[int, str]:
    done = run(
        "quorum", "forget-controller", "--bootstrap", f"127.0.0.1:{port}", "--controller-id", controller_id
    )
    return done.code, done.out + done.err


def listed(port: int) -> dict[int, str]:
    done = run("quorum", "list-controllers", "--bootstrap", f"127.0.0.1:{port}", "--json")
    assert done.code == 0, done.err
    return {one["controller_id"]: one["role"] for one in json.loads(done.out)}


def test_a_lost_controller_is_listed_and_can_be_forgotten(port: int) -> None:
    client = Client(port)
    features = [Feature("metadata.version", 1, OLD_LEVEL)]
    listeners = [Listener("CONTROLLER", "gone", 9093, 0)]
    request = ControllerRegistrationRequest(GHOST, b"g" * 16, False, listeners, features)
    assert client.call(request, 0).error_code == 0
    client.close()
    code, text = upgrade(port)
    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert f"controller {GHOST}" in str(text)
    assert listed(port) == {1: "leader", GHOST: "gone"}
    code, text = forget(port, GHOST)
    assert (code, f"Controller {GHOST} is forgotten" in text) == (0, True)
    assert upgrade(port)[0] == ErrorCode.NONE
    assert listed(port) == {1: "leader"}


def test_a_voter_and_an_unknown_controller_are_not_forgotten(port: int) -> None:
    code, text = forget(port, 1)
    assert (code, "is a voter: remove it first" in text) == (1, True)
    code, text = forget(port, 77)
    assert (code, "No controller 77 is registered" in text) == (1, True)


def test_without_json_the_controllers_are_printed_as_a_table(port: int) -> None:
    done = run("quorum", "list-controllers", "--bootstrap", f"127.0.0.1:{port}")
    first, *rows = done.out.splitlines()
    assert first.split() == ["ID", "ROLE", "HEARD", "ENDPOINT"]
    assert rows[0].split()[:2] == ["1", "leader"]


def test_the_age_of_the_last_request_follows_the_leaders_clock() -> None:
    at_ms = 1_000_000  # of a leader whose clock is decades behind
    partition = PartitionData(
        leader_id=1,
        current_voters=[ReplicaState(replica_id=1, last_fetch_timestamp=at_ms)],
        observers=[ReplicaState(replica_id=GHOST, last_fetch_timestamp=at_ms - 300)],
    )
    quorum = Quorum(CLUSTER_ID, partition, ("127.0.0.1", 1), {})
    assert role_of(quorum, GHOST) == ("observer", 300)
