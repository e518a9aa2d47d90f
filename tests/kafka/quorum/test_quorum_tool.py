"""Kafka's metadata-quorum tool, every subcommand, at controllers and through a broker; kraftd's beside it.

The expected errors are those of Kafka's own controllers (--controller=apache).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.types import uuid_text
from testkit.cluster import random_uuid, status_fields
from testkit.java import ToolRun, tools
from testkit.node import Controller, Kind
from testkit.quorum import Quorum
from tests.cli.run import Run, run

pytestmark = pytest.mark.kafka

WAYS = ("controllers", "broker")
WRONG = ("problem", "warning")

# Constant, since each worker process must see the same test arguments.
NO_DIRECTORY = "H87xU_NlTZWpT2_jxtrGPA"


@pytest.fixture(scope="module")
def served(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Voters 100 and 101, the observer 102, and broker 1."""
    with Quorum(tmp_path_factory.mktemp("tool"), dict.fromkeys((100, 101), kind)) as quorum:
        quorum.start_controllers()
        quorum.start_brokers(1)
        quorum.add_observer(102, kind)
        quorum.wait_until_observer_is_level(102)
        yield quorum


def tool(quorum: Quorum, way: str, *arguments: object) -> ToolRun:
    """Run the tool at all controllers or at the broker, whatever its exit code."""
    servers = ",".join(one.address for one in quorum.controllers.values())
    options = ("--bootstrap-controller", servers)
    return tools().run("metadata-quorum", *(options if way == "controllers" else broker(quorum)), *arguments)


def broker(quorum: Quorum) -> tuple[str, str]:
    return "--bootstrap-server", quorum.bootstrap


def kraftd(quorum: Quorum, *arguments: object) -> Run:
    servers = ",".join(one.address for one in quorum.controllers.values())
    name, *more = arguments
    return run("quorum", name, "--bootstrap", servers, *more)


def voter(quorum: Quorum, node_id: int) -> tuple[object, ...]:
    described = quorum.described()
    assert described is not None
    [found] = [one for one in described.current_voters if one.replica_id == node_id]
    return voter_named(node_id, uuid_text(found.replica_directory_id))


def voter_named(node_id: int, directory_id: str) -> tuple[object, ...]:
    return "--controller-id", node_id, "--controller-directory-id", directory_id


def add_options(controller: Controller) -> tuple[object, ...]:
    return "--command-config", controller.properties_file, "add-controller"


@pytest.mark.parametrize("way", WAYS)
def test_both_tools_describe_the_quorum_alike(served: Quorum, way: str) -> None:
    theirs = status_fields(tool(served, way, "describe", "--status").check().out)
    ours = status_fields(kraftd(served, "describe").out)
    assert list(ours) == list(theirs)
    same = ("ClusterId", "LeaderId", "LeaderEpoch", "CurrentVoters", "CurrentObservers")
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}
    addresses = {one.address for one in served.controllers.values()}
    known = [*json.loads(ours["CurrentVoters"]), *json.loads(ours["CurrentObservers"])]
    assert {one["id"] for one in known} == {1, 100, 101, 102}
    assert {f"CONTROLLER://{one}" for one in addresses} >= {
        endpoint for one in known for endpoint in one.get("endpoints", ())
    }


@pytest.mark.parametrize("way", WAYS)
def test_both_tools_show_the_same_replicas(served: Quorum, way: str) -> None:
    theirs = tool(served, way, "describe", "--replication").check().out.splitlines()
    ours = kraftd(served, "describe", "--replication").out.splitlines()

    def replicas(lines: list[str]) -> list[tuple[str, str, str]]:
        rows = [line.split() for line in lines if line.strip()]
        return sorted((row[0], row[1], row[-1]) for row in rows)

    assert replicas(ours) == replicas(theirs)
    output = tool(served, way, "describe", "--replication", "--human-readable").check().out
    assert " ms ago" in output


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("describe",), "One of --status or --replication must be specified"),
        (("describe", "--status", "--replication"), "Only one of --status or --replication"),
        (("add-controller",), "You must supply the configuration file"),
        (("remove-controller", *voter_named(-1, "a" * 22)), "Invalid negative --controller-id"),
        (("remove-controller", *voter_named(9, "no id")), "Failed to parse --controller-directory-id"),
        (("remove-controller", *voter_named(9, NO_DIRECTORY)), "VoterNotFoundException"),
        (("remove-controller", *voter_named(100, NO_DIRECTORY)), "VoterNotFoundException"),
        (("remove-controller", *voter_named(9, "A" * 22)), "InvalidRequestException"),
    ],
    ids=str,
)
def test_the_tool_prints_the_errors_of_refused_changes(
    served: Quorum, way: str, arguments: tuple[object, ...], message: str
) -> None:
    done = tool(served, way, *arguments)
    assert done.code == 1
    assert message in done.out + done.err


@pytest.mark.parametrize("way", WAYS)
def test_the_tool_adds_and_removes_a_voter(served: Quorum, way: str) -> None:
    added = served.controllers[102]
    dry = tool(served, way, *add_options(added), "--dry-run").check().out
    assert dry.startswith("DRY RUN of adding controller 102 with directory id")
    served.wait_until_observer_is_level(102)
    assert "Added controller 102" in tool(served, way, *add_options(added)).check().out
    served.wait_for_voters(100, 101, 102)
    again = tool(served, way, *add_options(added))
    assert again.code == 1 and "DuplicateVoterException" in again.out + again.err
    assert kraftd(served, "add-controller", "--config", added.properties_file).err.startswith(
        "DUPLICATE_VOTER"
    )
    options = voter(served, 102)
    assert "DRY RUN of removing" in tool(served, way, "remove-controller", *options, "--dry-run").check().out
    assert "Removed  KRaft controller 102" in tool(served, way, "remove-controller", *options).check().out
    served.wait_until(lambda: served.voter_ids() == {100, 101}, "102 does not vote")
    again = tool(served, way, "remove-controller", *options)
    assert again.code == 1 and "VoterNotFoundException" in again.out + again.err
    assert kraftd(served, "remove-controller", *options).err.startswith("VOTER_NOT_FOUND")


@pytest.mark.parametrize("way", WAYS)
def test_a_controller_of_another_cluster_cannot_be_added(
    served: Quorum, way: str, kind: Kind, tmp_path: Path
) -> None:
    """Its directory names another cluster; Kafka's tool does not send that, kraftd's does."""
    stranger = Controller(kind, 103, tmp_path, 1, {"controller.quorum.bootstrap.servers": "127.0.0.1:1"})
    stranger.format(random_uuid(), "--no-initial-controllers")
    refused = kraftd(served, "add-controller", "--config", stranger.properties_file)
    assert (refused.code, refused.err.split(":")[0]) == (1, "INCONSISTENT_CLUSTER_ID")
    done = tool(served, way, *add_options(stranger))
    assert done.code == 1 and "TimeoutException" in done.out + done.err


def test_voters_of_a_static_quorum_cannot_be_changed(kind: Kind, tmp_path: Path) -> None:
    with Quorum(tmp_path, {100: kind}, static=True) as quorum:
        quorum.start_controllers()
        for arguments in (
            ("remove-controller", *voter_named(100, NO_DIRECTORY)),
            add_options(quorum.controllers[100]),
        ):
            done = tool(quorum, "controllers", *arguments)
            assert done.code == 1 and "UnsupportedVersionException" in done.out + done.err


def test_kraftds_doctor_reports_an_even_number_of_voters_also_by_a_broker(served: Quorum) -> None:
    done = run("doctor", "--json", "--bootstrap", served.bootstrap)
    found = [json.loads(line) for line in done.out.splitlines()]
    wrong = [(one["area"], one["subject"], one["text"]) for one in found if one["level"] in WRONG]
    # For a minute the leader names the node of another cluster that another test may have tried to add.
    bad = [one for one in wrong if "INCONSISTENT_CLUSTER_ID" not in one[2]]
    assert (done.code, bad) == (1, [("voters", "quorum", "2 voters survive no more losses than 1 do")])
    names = next(one["text"] for one in found if one["subject"] == served.bootstrap)
    assert sum(one.address in names for one in served.controllers.values()) == 2, names
    assert {"clocks", "directories", "lag", "names", "versions"} <= {one["area"] for one in found}
