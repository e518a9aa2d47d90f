"""Which former voters count as lost: what the sources name, and what their addresses answer."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from kraftd.cli.failures import CommandFailure
from kraftd.cli.quorum.former_voters import (
    FormerVoters,
    check_lost,
    check_not_asked,
    former_voters,
    majority_there,
)
from kraftd.cli.quorum.leader import Quorum
from kraftd.cli.quorum.voter_probe import Presence, VoterAnswer, ask_voters
from kraftd.config import load
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.messages.register_controller_record import ControllerEndpoint, RegisterControllerRecord
from kraftd.metadata.image import Image
from kraftd.metadata_dir.files.last_start import LastStart, Peer
from kraftd.metadata_dir.rescue.sole_voter import Survey
from kraftd.types import OffsetAndEpoch
from testkit.process import free_port
from tests.cli.run import write_config

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
THREE = {"the last election in the log": frozenset({1, 2, 3})}
THERE, UNCLEAR, LOST = Presence.THERE, Presence.UNCLEAR, Presence.LOST


def answers(**presences: Presence) -> list[VoterAnswer]:
    return [VoterAnswer(int(name[1:]), "host:1", presence) for name, presence in presences.items()]


@pytest.mark.parametrize(
    ("voters", "given", "lost", "refused"),
    [
        ({1, 2, 3}, {"v2": THERE, "v3": THERE}, (), True),
        ({1, 2, 3}, {"v2": THERE, "v3": LOST}, (), True),  # with this one they are a majority
        ({1, 2, 3}, {"v2": UNCLEAR, "v3": LOST}, (), True),  # a refused login: it may be there
        ({1, 2, 3}, {"v2": UNCLEAR, "v3": LOST}, (2,), False),
        ({1, 2, 3}, {"v2": THERE, "v3": LOST}, (2,), True),  # it certainly is there
        ({1, 2, 3}, {"v2": LOST, "v3": LOST}, (), False),
        ({1, 2, 3, 4, 5}, {"v2": THERE}, (), False),
        ({1, 2, 3, 4, 5}, {"v2": THERE, "v3": THERE}, (), True),
        ({2, 3, 4}, {"v2": THERE}, (), False),  # this one is no voter and does not count
        ({1}, {"v2": THERE}, (), False),
    ],
)
def test_a_majority_counts_voters_that_may_be_there(
    voters: set[int], given: dict[str, Presence], lost: tuple[int, ...], refused: bool
) -> None:
    former = FormerVoters({"a source": frozenset(voters)}, {})
    assert (majority_there(former, answers(**given), 1, lost) is not None) is refused


def test_each_source_is_judged_alone_so_stale_names_do_not_hide_a_majority() -> None:
    former = FormerVoters({"registered": frozenset(range(1, 8)), **THREE}, {})
    found = majority_there(former, answers(v3=THERE), 1, ())
    assert found == ("the last election in the log", frozenset({1, 2, 3}), {3})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"v2": THERE}, "is not lost: Controller 2 at host:1 answers, of 1, 2, 3"),
        ({"v2": UNCLEAR}, "may not be lost: Controller 2 at host:1 may be there, of 1, 2, 3"),
        (
            {"v2": THERE, "v3": UNCLEAR},
            "may not be lost: Controller 2 at host:1 answers, and Controller 3 at host:1 may be there, of",
        ),
    ],
)
def test_a_refusal_distinguishes_voters_that_answer_from_those_that_may_be_there(
    given: dict[str, Presence], text: str
) -> None:
    with pytest.raises(CommandFailure, match=f"^A majority of the voters {text}"):
        check_lost(FormerVoters(THREE, {}), answers(**given), OffsetAndEpoch(5, 1), 1, ())


def test_a_voter_without_an_address_must_be_confirmed_as_lost() -> None:
    former = FormerVoters(THREE, {2: (("host", 1),)})
    with pytest.raises(CommandFailure, match=r"No source has an address of controller 3.*--lost 3"):
        check_not_asked(former, 1, (), may_prompt=False)
    check_not_asked(former, 1, (3,), may_prompt=False)


def test_addresses_of_static_voters_come_from_registrations_and_the_file(tmp_path: Path) -> None:
    keys = {"controller__quorum__bootstrap__servers": None, "controller__quorum__voters": "1@localhost:9091"}
    config = load(str(write_config(tmp_path, 9091, **keys)))
    image = Image()
    endpoint = ControllerEndpoint("CONTROLLER", "host-2", 9092, 0)
    image.apply(RegisterControllerRecord(2, bytes(16), False, [endpoint]), 0, 1)
    mine = Survey(OffsetAndEpoch(5, 1), 0, 1, 0, None, (), (), THREE)
    found = former_voters(config, [mine], image, {3: ("host-3", 9093)})
    assert found.addresses == {2: (("host-2", 9092),), 3: (("host-3", 9093),)}
    assert found.named_by["registered controllers"] == {1, 2}
    assert found.named_by["the last election in the log"] == {1, 2, 3}
    assert former_voters(config, [mine], image, {}).not_asked(1) == {3}
    started = LastStart(CLUSTER_ID, 1, "", (Peer(1, "localhost", 9091), Peer(3, "old-3", 9093)))
    assert former_voters(config, [mine], image, {}, started).addresses[3] == (("old-3", 9093),)


def test_a_voter_that_accepts_connections_and_does_not_answer_is_not_lost() -> None:
    """A frozen process keeps its listening socket."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        addresses = {2: [("127.0.0.1", frozen.getsockname()[1])], 3: [("127.0.0.1", free_port())]}
        two, three = asyncio.run(ask_voters(addresses, CLUSTER_ID, 0.1))
    assert (two.presence, three.presence) == (UNCLEAR, LOST)
    assert "a connection is accepted" in two.why
    assert "Connection refused" in three.why


@pytest.mark.parametrize(
    ("mine", "said"),
    [
        (OffsetAndEpoch(20, 3), "10 of them are not in this log"),
        (OffsetAndEpoch(30, 3), "this log is as long"),
        (OffsetAndEpoch(40, 2), "this log lacks some of them, or has others in their place"),
    ],
)
def test_a_leaders_answer_is_compared_by_epoch_and_offset(mine: OffsetAndEpoch, said: str) -> None:
    partition = PartitionData(leader_id=2, leader_epoch=3, high_watermark=30)
    quorum = Quorum("", partition, ("host", 1), {})
    assert said in VoterAnswer(2, "host:1", Presence.THERE, quorum=quorum).text(mine)
