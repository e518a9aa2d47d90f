"""`quorum-state`: the election state that must outlive a crash, one line of JSON as Kafka writes it.

Version 0 goes with kraft.version 0 (static voters), version 1 with kraft.version 1. The file is replaced as a
whole, and synced before the node sends any message that depends on it.

kraftd marks a voter whose directory is new, and which has not caught up yet, by a field that Kafka ignores.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from kraftd.log.disk import Disk, write_atomically
from kraftd.log.errors import DirectoryProblem
from kraftd.messages.quorum_state_data import QuorumStateData, Voter
from kraftd.types import OffsetAndEpoch, ReplicaKey, parse_uuid, uuid_text

FILE_NAME = "quorum-state"
_REMEDY = (
    "The file keeps this node from voting twice in an epoch: restore it; or, with other voters up, move the "
    "whole directory aside, format it anew and let it catch up; or, if a majority is lost for good, run "
    "kraftd quorum recover"
)
NEW_VOTER = "kraftd.newVoter"


class QuorumStateFile:
    """The file in a partition's directory."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self.path = f"{directory}/{FILE_NAME}"
        self._disk = disk

    def __repr__(self) -> str:
        return f"<QuorumStateFile {self.path}>"

    def read(self) -> QuorumStateData | None:
        """The state; None without a file. Raises DirectoryProblem for a malformed file."""
        try:
            data = self._disk.read_bytes(self.path)
        except FileNotFoundError:
            return None
        try:
            return decode_quorum_state(data)
        except ValueError as error:
            raise DirectoryProblem(f"{self.path} cannot be read: {error}. {_REMEDY}") from None

    def read_beside(self, log_end: OffsetAndEpoch, own: ReplicaKey) -> QuorumStateData | None:
        """The state with which a node starts on a log; None if its directory was just formatted.

        A node writes an epoch to the file before its first record of that epoch. So a missing file, or an
        older one, is as bad as damage: the node may have voted. Raises DirectoryProblem for those, for a
        malformed file, and for a vote for `own` id with another directory id.
        """
        state = self.read()
        if state is None and log_end.offset > 0:
            raise DirectoryProblem(
                f"{self.path} is missing, and the log beside it ends at offset {log_end.offset}. {_REMEDY}"
            )
        if state is not None and log_end.offset > 0 and state.leader_epoch < log_end.epoch:
            raise DirectoryProblem(
                f"{self.path} is of epoch {state.leader_epoch}, and the log beside it has records of epoch "
                f"{log_end.epoch}: it is an older copy. {_REMEDY}"
            )
        if state is not None and state.voted_id == own.id:
            voted = state.voted_directory_id
            if any(voted) and own.directory_id is not None and voted != own.directory_id:
                raise DirectoryProblem(
                    f"{self.path}: this node voted for itself as directory {uuid_text(voted)}, and "
                    f"meta.properties has directory.id={uuid_text(own.directory_id)}. Put "
                    f"directory.id={uuid_text(voted)} back"
                )
        return state

    def marks_new_voter(self) -> bool:
        """Return whether the state, which `read` accepts, is that of a voter with a new directory."""
        try:
            data = self._disk.read_bytes(self.path)
        except FileNotFoundError:
            return False
        return msgspec.json.decode(data.split(b"\n", 1)[0]).get(NEW_VOTER) is True

    def write(self, state: QuorumStateData, version: int, *, is_new: bool = False) -> None:
        """Replace the file, durably on return. Blocks. Raises DiskFull (the old state stays),
        StorageFailure.
        """
        write_atomically(self._disk, self.path, encode_quorum_state(state, version, is_new=is_new))


def check_static_voters(
    path: str, state: QuorumStateData | None, node_id: int, configured: Collection[int]
) -> None:
    """Raise DirectoryProblem if a majority of a static quorum's former voters is not configured any more.

    Those may still lead: this node and the rest would begin a second quorum, and undo what they acknowledge.
    `recover` asks them first, and leaves this node as the only voter in the state.
    """
    former = set() if state is None else {one.voter_id for one in state.current_voters or ()}
    dropped = former.difference(configured)
    if node_id in configured and 2 * len(dropped) > len(former):
        raise DirectoryProblem(
            f"controller.quorum.voters has the voters {_ids(configured)}, and this node was last one of "
            f"{_ids(former)} ({path}). Without it, {_ids(dropped)} are a majority, and may lead. Put them "
            "back; or, if they are lost for good, run kraftd quorum recover"
        )


def _ids(ids: Collection[int]) -> str:
    return ", ".join(map(str, sorted(ids)))


def encode_quorum_state(state: QuorumStateData, version: int, *, is_new: bool = False) -> bytes:
    """The JSON of a version, fields in Kafka's order. Raises ValueError for a version other than 0 and 1."""
    fields: dict[str, object]
    if version == 0:
        voters = state.current_voters
        fields = {
            "clusterId": state.cluster_id,
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "appliedOffset": state.applied_offset,
            "currentVoters": None if voters is None else [{"voterId": voter.voter_id} for voter in voters],
        }
    elif version == 1:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": uuid_text(state.voted_directory_id),
        }
    else:
        raise ValueError(f"quorum-state has versions 0 and 1, not {version}")
    if is_new:
        fields[NEW_VOTER] = True
    return msgspec.json.encode(fields | {"data_version": version})


def decode_quorum_state(data: bytes) -> QuorumStateData:
    """The state in a file of either version. Raises ValueError with the fault."""
    try:
        fields = msgspec.json.decode(data.split(b"\n", 1)[0])
    except msgspec.DecodeError as error:
        raise ValueError(f"it is not JSON ({error})" if data else "it is empty") from None
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    version = _integer(fields, "data_version")
    if version not in (0, 1):
        raise ValueError(f"data_version is {version}; 0 and 1 are known")
    state = QuorumStateData(
        leader_id=_integer(fields, "leaderId"),
        leader_epoch=_integer(fields, "leaderEpoch"),
        voted_id=_integer(fields, "votedId"),
    )
    if version == 1:
        text = fields.get("votedDirectoryId")
        if not isinstance(text, str):
            raise ValueError("votedDirectoryId is missing")
        state.voted_directory_id = parse_uuid(text)
        return state
    cluster_id, voters = fields.get("clusterId"), fields.get("currentVoters")
    if not isinstance(cluster_id, str) or not isinstance(voters, list | None):
        raise ValueError("clusterId or currentVoters is missing")
    state.cluster_id = cluster_id
    state.applied_offset = _integer(fields, "appliedOffset", bits=64)
    if voters is None:
        state.current_voters = None
    elif all(isinstance(voter, dict) for voter in voters):
        state.current_voters = [Voter(voter_id=_integer(voter, "voterId")) for voter in voters]
    else:
        raise ValueError("currentVoters is no list of voters")
    return state


def _integer(fields: Mapping[str, object], name: str, bits: int = 32) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is {'missing' if value is None else 'no integer'}")
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{name} is {value}, which has more than {bits} bits")
    return value
