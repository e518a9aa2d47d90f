"""Changing the voters: AddRaftVoter (80) v0-1, RemoveRaftVoter (81) v0, UpdateRaftVoter (82) v0, and the
upgrade of kraft.version from 0 to 1 (KIP-853, KIP-1186).

One change at a time, and the first of an epoch only after a commit in it (S13): a change that cannot begin
yet is answered REQUEST_TIMED_OUT, as if it had waited. Other errors: INCONSISTENT_CLUSTER_ID,
NOT_LEADER_OR_FOLLOWER (and the epoch errors for UpdateRaftVoter), BROKER_NOT_AVAILABLE (shutting down),
INVALID_REQUEST, UNSUPPORTED_VERSION (kraft.version 0), DUPLICATE_VOTER, VOTER_NOT_FOUND (the last voter too).
"""

from __future__ import annotations

from kraftd.ground.destination import Destination
from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest
from kraftd.messages.add_raft_voter_request import Listener as AddListener
from kraftd.messages.add_raft_voter_response import AddRaftVoterResponse
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.messages.kraft_version_record import KRaftVersionRecord
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraftd.messages.update_raft_voter_request import KRaftVersionFeature, UpdateRaftVoterRequest
from kraftd.messages.update_raft_voter_request import Listener as UpdateListener
from kraftd.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraftd.raft import answers, checks
from kraftd.raft.becoming import on_common_response
from kraftd.raft.effects import AppendAccepted, AppendCommitted, AppendRefused
from kraftd.raft.events import KRaftVersionUpgradeRequested, RequestId, RequestReceived
from kraftd.raft.leader import COMMITTED, ControlRecord, append_control, note_fetch_of_voter
from kraftd.raft.quorum.voters import VoterNode, VoterSet, bare, listener_endpoint, replica_key
from kraftd.raft.replica import Replica
from kraftd.raft.roles import Follower, Leader, VoterChange
from kraftd.raft.voter_change import answer_voter_change, cut, finish_voter_change
from kraftd.types import ZERO_UUID, Endpoint, ReplicaKey
from kraftd.wire.batch import ControlRecordType
from kraftd.wire.error_code import ErrorCode, error_name

KRAFT_VERSION_FEATURE = "kraft.version"
Refusal = tuple[ErrorCode, str]

# --- adding and removing ------------------------------------------------------------------------------


def on_add_voter_request(replica: Replica, request: RequestReceived, message: AddRaftVoterRequest) -> None:
    """Ask the new voter which kraft.versions it supports; its answer continues the addition."""
    refusal = _refuse_change(replica, message.cluster_id)
    listeners = bare(tuple(Endpoint(one.name, one.host, one.port) for one in message.listeners))
    endpoint = listener_endpoint(listeners, replica.config.listener_name)
    key = replica_key(message.voter_id, message.voter_directory_id)
    if refusal is None:
        if key.id < 0 or key.directory_id is None:
            refusal = ErrorCode.INVALID_REQUEST, "the request names no voter with a directory id"
        elif endpoint is None:
            text = f"the new voter has no endpoint on listener {replica.config.listener_name}"
            refusal = ErrorCode.INVALID_REQUEST, text
        else:
            refusal = _not_now(replica)
    if refusal is None and replica.voters.get(key.id) is not None:
        refusal = ErrorCode.DUPLICATE_VOTER, f"{key.id} is one of the voters {_ids(replica.voters)}"
    if refusal is None and endpoint is not None:
        destination = Destination(key.id, endpoint.host, endpoint.port)
        if not replica.send(destination, ApiVersionsRequest("kraftd", "1")):
            refusal = ErrorCode.REQUEST_TIMED_OUT, f"the new voter {key} is not ready for requests"
    if refusal is not None:
        answers.respond(replica, request, AddRaftVoterResponse(0, *refusal))
        return
    leader = replica.role
    assert isinstance(leader, Leader)
    leader.voter_change = VoterChange(
        key,
        request.request_id,
        request.version,
        replica.now_ms + replica.config.request_timeout_ms,
        is_add=True,
        listeners=listeners,
        respond_early=not message.ack_when_committed,
    )


def on_api_versions_response(replica: Replica, source: Destination, response: ApiVersionsResponse) -> bool:
    """Add the new voter, which has answered, if it supports the quorum's kraft.version and has caught up."""
    leader = replica.role
    if not isinstance(leader, Leader) or (change := _probed(leader, source)) is None:
        return True
    if response.error_code:
        text = f"the new voter {change.key} answered ApiVersions with {error_name(response.error_code)}"
        finish_voter_change(replica, leader, ErrorCode.REQUEST_TIMED_OUT, text)
        return False
    supported = next((one for one in response.supported_features if one.name == KRAFT_VERSION_FEATURE), None)
    version = replica.history.kraft_version
    if supported is None or not supported.min_version <= version <= supported.max_version:
        text = f"the new voter {change.key} does not support kraft.version {version}"
        finish_voter_change(replica, leader, ErrorCode.INVALID_REQUEST, text)
        return True
    if not leader.progress.is_caught_up(change.key, replica.now_ms):
        text = f"the new voter {change.key} lags behind"
        finish_voter_change(replica, leader, ErrorCode.REQUEST_TIMED_OUT, text)
        return True
    node = VoterNode(change.key, change.listeners, supported.min_version, supported.max_version)
    voters = replica.voters.with_voter(node)
    assert voters is not None  # checked when the change began, and no other has begun since
    change.end_offset = append_voters(replica, voters)
    if change.respond_early:
        answer_voter_change(replica, change, ErrorCode.NONE)
    return True


def _probed(leader: Leader, source: Destination) -> VoterChange | None:
    """The addition of the voter at that destination, if it still waits for the versions that this voter
    supports.
    """
    change = leader.voter_change
    if change is None or not change.is_add or change.end_offset is not None:
        return None
    return change if change.key.id == source.node_id else None


def on_api_versions_failed(replica: Replica, source: Destination) -> None:
    """End the addition: the new voter did not answer ApiVersions."""
    leader = replica.role
    if isinstance(leader, Leader) and (change := _probed(leader, source)) is not None:
        text = f"the new voter {change.key} does not answer at {source.host}:{source.port}"
        finish_voter_change(replica, leader, ErrorCode.REQUEST_TIMED_OUT, text)


def on_remove_voter_request(
    replica: Replica, request: RequestReceived, message: RemoveRaftVoterRequest
) -> None:
    """Append the voters without that one; a leader that removes itself resigns once that is committed."""
    refusal = _refuse_change(replica, message.cluster_id)
    key = replica_key(message.voter_id, message.voter_directory_id)
    if refusal is None:
        if key.id < 0 or key.directory_id is None:
            refusal = ErrorCode.INVALID_REQUEST, "the request names no voter with a directory id"
        else:
            refusal = _not_now(replica)
    voters = replica.voters.without(key)
    if refusal is None and voters is None:
        last = replica.voters.is_only_voter(key)
        why = "the last voter" if last else f"not one of the voters {_ids(replica.voters)}"
        refusal = ErrorCode.VOTER_NOT_FOUND, f"{key} is {why}"
    if refusal is not None:
        answers.respond(replica, request, RemoveRaftVoterResponse(0, *refusal))
        return
    assert voters is not None
    leader = replica.role
    assert isinstance(leader, Leader)
    deadline_ms = replica.now_ms + replica.config.request_timeout_ms
    change = VoterChange(key, request.request_id, request.version, deadline_ms, is_add=False)
    leader.voter_change = change
    change.end_offset = append_voters(replica, voters)


def _ids(voters: VoterSet) -> str:
    return ", ".join(repr(voter.key) for voter in voters)


def _refuse_change(replica: Replica, cluster_id: str | None) -> tuple[ErrorCode, str | None] | None:
    error = checks.cluster_id(replica, cluster_id)
    if error:
        return error, cut(f"the cluster id is {replica.config.cluster_id}, not {cluster_id}")
    error = checks.leader_only(replica, replica.epoch)
    return (error, "") if error else None


def _not_now(replica: Replica) -> Refusal | None:
    """The reason why no change of the voters may begin now; None if one may."""
    leader = replica.role
    assert isinstance(leader, Leader)
    _expire(replica, leader)
    if leader.voter_change is not None:
        return ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is under way"
    if leader.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT, "nothing of this epoch is committed yet"
    if replica.history.kraft_version < 1:
        version = replica.history.kraft_version
        return ErrorCode.UNSUPPORTED_VERSION, f"voters cannot change while kraft.version is {version}"
    if not _voters_committed(replica, leader):
        return ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet"
    return None


def _voters_committed(replica: Replica, leader: Leader) -> bool:
    offset = replica.history.voters_offset
    return offset is not None and offset < leader.high_watermark


def append_voters(replica: Replica, voters: VoterSet) -> int:
    """Append a VotersRecord, in force at once; returns its end offset."""
    return append_control(replica, [(ControlRecordType.KRAFT_VOTERS, voters.to_record(), 0)])


def forget_request(replica: Replica, request_id: RequestId) -> None:
    """Forget the connection that requested the change. The change continues and is not answered."""
    change = replica.role.voter_change if isinstance(replica.role, Leader) else None
    if change is not None and change.request_id == request_id:
        change.request_id = None


# --- updating -----------------------------------------------------------------------------------------


def on_update_voter_request(
    replica: Replica, request: RequestReceived, message: UpdateRaftVoterRequest
) -> None:
    """Record a voter's endpoints and supported versions; kraft.version 0 keeps them for the upgrade."""
    error = _update(replica, message)
    answers.respond(replica, request, answers.update_voter(replica, request, error))


def _update(replica: Replica, message: UpdateRaftVoterRequest) -> ErrorCode:
    error = checks.cluster_id(replica, message.cluster_id)
    error = error or checks.leader_only(replica, message.current_leader_epoch)
    if error:
        return error
    key = replica_key(message.voter_id, message.voter_directory_id)
    listeners = bare(tuple(Endpoint(one.name, one.host, one.port) for one in message.listeners))
    lowest = message.kraft_version_feature.min_supported_version
    highest = message.kraft_version_feature.max_supported_version
    if (
        key.id < 0
        or key.directory_id is None
        or listener_endpoint(listeners, replica.config.listener_name) is None
        or not 0 <= lowest <= highest
    ):
        return ErrorCode.INVALID_REQUEST
    leader = replica.role
    assert isinstance(leader, Leader)
    _expire(replica, leader)
    if leader.voter_change is not None or leader.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT
    version = replica.history.kraft_version
    dynamic = version >= 1
    if dynamic:
        voters = replica.voters if _voters_committed(replica, leader) else None
    else:
        voters = leader.kraft_version_voters
    if voters is None:
        return ErrorCode.REQUEST_TIMED_OUT
    if not lowest <= version <= highest:
        return ErrorCode.INVALID_REQUEST
    updated = voters.updated(VoterNode(key, listeners, lowest, highest), ignore_directory_id=not dynamic)
    if updated is None:
        return ErrorCode.VOTER_NOT_FOUND
    if dynamic:
        append_voters(replica, updated)
    else:
        leader.kraft_version_voters = updated
    note_fetch_of_voter(replica, leader, key)
    return ErrorCode.NONE


# --- the upgrade to kraft.version 1 -------------------------------------------------------------------


def on_kraft_version_upgrade(replica: Replica, event: KRaftVersionUpgradeRequested) -> None:
    """Append KRaftVersion, and the voters with what they reported; nothing if the version is in force
    already.
    """
    leader = replica.role
    error = ErrorCode.NONE
    if not isinstance(leader, Leader) or replica.epoch != event.epoch or replica.shutting_down:
        error = ErrorCode.NOT_CONTROLLER
    elif event.kraft_version != replica.history.kraft_version:
        error = _refuse_upgrade(replica, leader, event.kraft_version)
    if error:
        replica.emit(AppendRefused(event.append_id, error))
        return
    assert isinstance(leader, Leader)
    base_offset = replica.log.end_offset
    if event.kraft_version != replica.history.kraft_version and not event.validate_only:
        voters = leader.kraft_version_voters
        assert voters is not None
        version = KRaftVersionRecord(kraft_version=event.kraft_version)
        records: list[ControlRecord] = [(ControlRecordType.KRAFT_VERSION, version, 0)]
        if voters != replica.voters:
            records.append((ControlRecordType.KRAFT_VOTERS, voters.to_record(), 0))
        leader.kraft_version_voters = None
        append_control(replica, records)
    end_offset = replica.log.end_offset
    replica.emit(AppendAccepted(event.append_id, base_offset, end_offset, replica.epoch))
    if end_offset <= leader.high_watermark:
        replica.emit(AppendCommitted(event.append_id, end_offset))
    else:
        replica.appends.park(event.append_id, event.append_id, [(COMMITTED, end_offset)])


def _refuse_upgrade(replica: Replica, leader: Leader, kraft_version: int) -> ErrorCode:
    """Refuse a downgrade, a version that not every voter supports, and voters of unknown directory."""
    voters = leader.kraft_version_voters
    if (
        kraft_version < replica.history.kraft_version
        or voters is None
        or not all(voter.supports(kraft_version) and voter.key.directory_id for voter in voters)
    ):
        return ErrorCode.INVALID_UPDATE_VERSION
    return ErrorCode.NONE


# --- time ---------------------------------------------------------------------------------------------


def _expire(replica: Replica, leader: Leader) -> None:
    change = leader.voter_change
    if change is not None and replica.now_ms >= change.deadline_ms:
        finish_voter_change(replica, leader, ErrorCode.REQUEST_TIMED_OUT)


def poll_voter_change(replica: Replica, leader: Leader) -> int | None:
    """Finish a change that is committed, or has taken too long; returns its deadline.

    A leader that was removed resigns once its removal is committed, not before.
    """
    if not replica.is_voter and _voters_committed(replica, leader):
        leader.resign_requested = True
    change = leader.voter_change
    if change is None:
        return None
    if change.end_offset is not None and change.end_offset <= leader.high_watermark:
        finish_voter_change(replica, leader, ErrorCode.NONE)
        return None
    _expire(replica, leader)
    return None if leader.voter_change is None else change.deadline_ms


# --- as a follower ------------------------------------------------------------------------------------


def join_or_update(replica: Replica, role: Follower) -> bool:
    """Once a fetch timeout, ask the leader for a change of the voters; returns whether it asked.

    A voter whose record is out of date asks for an update. A replica that is to join and does not vote yet
    asks to be added. If its id votes with an old directory, it first asks to remove that voter.
    """
    if replica.now_ms < role.update_voter_deadline_ms or replica.connections.any_in_flight(replica.now_ms):
        return False
    config, dynamic = replica.config, replica.history.kraft_version >= 1
    request: UpdateRaftVoterRequest | AddRaftVoterRequest | RemoveRaftVoterRequest | None = None
    if replica.is_voter:
        if replica.voters.needs_update(config.voter_node) if dynamic else not role.has_updated_leader:
            request = _update_request(replica)
    elif dynamic and config.auto_join and config.can_become_voter:
        mine = replica.voters.get(config.node_id)
        request = _add_request(replica) if mine is None else _remove_request(replica, mine.key)
    if request is None:
        role.update_voter_deadline_ms = replica.now_ms + config.fetch_timeout_ms
        return False
    if not replica.send(replica.leader_destination(), request):
        return False
    role.update_voter_deadline_ms = replica.now_ms + config.fetch_timeout_ms
    return True


def _update_request(replica: Replica) -> UpdateRaftVoterRequest:
    config = replica.config
    return UpdateRaftVoterRequest(
        config.cluster_id,
        replica.epoch,
        config.node_id,
        config.directory_id,
        [UpdateListener(one.listener, one.host, one.port) for one in config.listeners],
        KRaftVersionFeature(config.min_kraft_version, config.max_kraft_version),
    )


def _add_request(replica: Replica) -> AddRaftVoterRequest:
    config = replica.config
    listeners = [AddListener(one.listener, one.host, one.port) for one in config.listeners]
    return AddRaftVoterRequest(
        config.cluster_id,
        config.request_timeout_ms,
        config.node_id,
        config.directory_id,
        listeners,
        ack_when_committed=False,
    )


def _remove_request(replica: Replica, key: ReplicaKey) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(replica.config.cluster_id, key.id, key.directory_id or ZERO_UUID)


def on_change_response(replica: Replica, error: int, settled: tuple[ErrorCode, ...]) -> bool:
    """Handle the answer to an addition or removal: done, or to be tried again later."""
    role = replica.role
    if error and error not in settled:
        return False
    if isinstance(role, Follower):
        role.update_voter_deadline_ms = replica.now_ms + replica.config.fetch_timeout_ms
    return True


def on_add_voter_response(replica: Replica, source: Destination, response: AddRaftVoterResponse) -> bool:
    settled = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.DUPLICATE_VOTER)
    return on_change_response(replica, response.error_code, settled)


def on_remove_voter_response(
    replica: Replica, source: Destination, response: RemoveRaftVoterResponse
) -> bool:
    settled = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.VOTER_NOT_FOUND)
    return on_change_response(replica, response.error_code, settled)


def on_update_voter_response(
    replica: Replica, source: Destination, response: UpdateRaftVoterResponse
) -> bool:
    current_leader = response.current_leader
    leader_id = current_leader.leader_id if current_leader.leader_id >= 0 else None
    listeners = replica.voters.listeners(current_leader.leader_id)
    if leader_id is not None and current_leader.host:
        listeners = (Endpoint(replica.config.listener_name, current_leader.host, current_leader.port),)
    handled = on_common_response(
        replica, response.error_code, current_leader.leader_epoch, leader_id, listeners
    )
    if handled is not None:
        return handled
    if response.error_code == ErrorCode.REQUEST_TIMED_OUT:
        return True  # another change is under way: go on fetching from this leader
    if response.error_code not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        return False
    if isinstance(replica.role, Follower):
        replica.role.has_updated_leader = True
        replica.role.fetch_deadline_ms = replica.fetch_deadline_ms()
    return True
