"""One member of a classic group: joins, reads what it is assigned, commits, and leaves at times."""

from __future__ import annotations

from typing import Any

from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kraftd.simulation.brokers.member import GAP_US, Member
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.schedule import SECOND
from kraftd.wire.error_code import ErrorCode

SESSION_MS = 2_000
REBALANCE_MS = 2_000
JOIN_WAIT_US = 8 * SECOND  # longer than a rebalance
PROTOCOL = "by-number"


class ClassicMember(Member):
    """See the module."""

    def _again(self) -> None:
        self._join()

    def _latest(self) -> int:
        return int(self.traffic.groups.generation(self.group))

    def _has_committed(self, epoch: int, offsets: dict[PartitionKey, int], latest: int) -> None:
        self.traffic.groups.committed(self.group, epoch, self.member_id, offsets, latest)

    def _rejoin(self, code: int) -> None:
        self.positions = {}
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
        self._later(GAP_US, self._join)

    def _join(self) -> None:
        message = JoinGroupRequest(
            self.group,
            SESSION_MS,
            REBALANCE_MS,
            self.member_id,
            None,
            "simulated",
            [JoinGroupRequestProtocol(PROTOCOL, b"")],
        )
        self._ask(self._join, message, self._joined, JOIN_WAIT_US)

    def _joined(self, answer: Any) -> None:
        if answer.error_code:
            self.member_id = answer.member_id
            self._rejoin(answer.error_code)
            return
        self.member_id, self.epoch = answer.member_id, answer.generation_id
        assignments = []
        if answer.leader == answer.member_id:
            ids = sorted(one.member_id for one in answer.members)
            count = self.traffic.partition_count
            assignments = [
                SyncGroupRequestAssignment(one, bytes(range(at, count, len(ids))))
                for at, one in enumerate(ids)
            ]
        message = SyncGroupRequest(
            self.group, self.epoch, self.member_id, None, "simulated", PROTOCOL, assignments
        )
        self._ask(self._join, message, self._synced, JOIN_WAIT_US)

    def _synced(self, answer: Any) -> None:
        topic_id = self.traffic.topic_id(self.traffic.steady)
        if answer.error_code or topic_id is None:
            self._rejoin(answer.error_code)
            return
        self.positions = {}  # it may have joined again without an error, because no answer came
        self._key_of = {index: (topic_id, index) for index in answer.assignment}
        owned = list(self._key_of.values())
        self.traffic.groups.assigned(self.group, self.epoch, self.member_id, owned)
        if owned:
            self._fetch_offsets()
        else:
            self._later(GAP_US, self._beat)

    def _beat(self) -> None:
        message = HeartbeatRequest(self.group, self.epoch, self.member_id)

        def then(answer: Any) -> None:
            if answer.error_code:
                self._rejoin(answer.error_code)
            elif not self.world.healed and self.rng.chance(0.02):
                self._leave()
            elif not self.world.healed and self.rng.chance(0.02):
                self.world.trace.kinds["member stays away"] += 1
                self._later(2 * SECOND, self._read if self.positions else self._beat)
            else:
                self._later(GAP_US, self._read if self.positions else self._beat)

        self._ask(self._join, message, then)

    def _leave(self) -> None:
        self.world.trace.kinds["member leaves"] += 1
        message = LeaveGroupRequest(self.group, members=[MemberIdentity(self.member_id)])
        self.positions = {}
        self._ask(self._join, message, lambda _: self._rejoin(ErrorCode.UNKNOWN_MEMBER_ID))
