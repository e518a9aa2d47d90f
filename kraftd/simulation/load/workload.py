"""Clients' requests to the quorum: appends and reads, fetches of brokers, voter changes, foreign requests.

Appends and reads are checked for linearizability: the log is the order, and no client may see it change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.ground.event import Event
from kraftd.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest
from kraftd.messages.describe_quorum_request import PartitionData as DescribePartition
from kraftd.messages.describe_quorum_request import TopicData as DescribeTopic
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.raft import effects as raft
from kraftd.raft.events import AppendRequested, KRaftVersionUpgradeRequested, RequestReceived, ResignRequested
from kraftd.simulation.cluster import Cluster
from kraftd.simulation.load.foreign_requests import foreign_request
from kraftd.simulation.options import ACTS
from kraftd.simulation.processes.files import CLUSTER_ID, LISTENER
from kraftd.simulation.processes.process import Process
from kraftd.simulation.processes.state import first_value, register_value
from kraftd.simulation.protocols import World
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.message import Message

MAX_MARK = (1 << 63) - 1
KEYS = 8


class Call:
    """A client's request to one process; the object is its own request id there."""

    __slots__ = ("kind", "link", "message", "number", "then")

    def __init__(
        self, number: int, kind: str, message: Message, then: Callable[[Any], None] | None = None
    ) -> None:
        self.number = number
        self.kind = kind
        self.message = message
        self.then = then
        self.link = None

    def __repr__(self) -> str:
        return f"call {self.number} ({self.kind})"


class Operation:
    """An append (with values) or a read, from its request until its fate is known."""

    __slots__ = ("base_offset", "end_at_request", "end_offset", "number", "outcome", "values")

    def __init__(self, number: int, values: list[bytes], end_at_request: int) -> None:
        self.number = number
        self.values = values
        self.end_at_request = end_at_request  # the end of all appends acknowledged before its request
        self.base_offset = -1
        self.end_offset = -1
        self.outcome = "asked"

    def __repr__(self) -> str:
        return f"<Operation {self.number} {self.outcome} [{self.base_offset}, {self.end_offset})>"


class Workload:
    """Acts about as often as the world's options say."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster: Cluster = world.cluster
        self.rng = world.rng("workload")
        self.operations: dict[int, Operation] = {}
        self.acknowledged_end = 0
        self.acknowledged = 0
        self.joining: set[int] = set()  # hosts that an AddRaftVoter is under way for
        self._number = 0
        self._running = False
        self._at: dict[Process, set[int]] = {}  # operations under way
        self._acts: dict[str, Callable[[], bool]] = {
            "append": self.append,
            "read": self._read,
            "client fetch": self._client_fetch,
            "add voter": self._add_voter,
            "remove voter": self._remove_voter,
            "upgrade": self._upgrade,
            "snapshot": self._snapshot,
            "stranger": self._send_foreign_request,
            "resign": self._resign,
            "describe": self._describe,
        }
        weights = {"append": 30, "read": 6, "client fetch": 10, "stranger": 2, "snapshot": 2, "describe": 1}
        self._table = [act for act in ACTS for _ in range(weights.get(act, 1))]

    def start(self) -> None:
        self._running = True
        self._next()

    def stop(self) -> None:
        self._running = False

    def _next(self) -> None:
        if self._running:
            self.act(self.rng.choice(self._table))
            self.world.schedule.after(self.rng.between(1, 2 * self.world.options.act_gap_us), self._next)

    def act(self, kind: str) -> bool:
        """Do one act, if it is possible now."""
        done = self._acts[kind]()
        if done:
            self.world.trace.kinds[kind] += 1
        return done

    # --- appends and reads ---

    def _any_process(self) -> Process | None:
        """Mostly a process that leads, or believes so; sometimes another one."""
        alive = [host.process for host in self.cluster.alive() if host.process is not None]
        leaders = [process for process in alive if process.core.is_leader]
        if leaders and not self.rng.chance(0.03):
            return self.rng.choice(leaders)
        return self.rng.choice(alive) if alive else None

    def append(self) -> bool:
        process = self._any_process()
        if process is None:
            return False
        rng = self.rng
        filler = "." * rng.choice((0, 0, 20, 300))
        values = [
            register_value(str(rng.below(KEYS)), f"{self._number}.{i}{filler}")
            for i in range(rng.choice((1, 1, 3, 10)))
        ]
        if not self.acknowledged:
            values.insert(0, first_value())
        operation = self._operation(values)
        epoch = process.core.epoch - (1 if rng.chance(0.01) else 0)
        self._deliver(process, operation, AppendRequested(operation.number, values, epoch))
        return True

    def _read(self) -> bool:
        process = self._any_process()
        if process is None:
            return False
        operation = self._operation([])
        self._deliver(process, operation, AppendRequested(operation.number, [], process.core.epoch))
        return True

    def _upgrade(self) -> bool:
        leader = self.cluster.leader()
        if leader is None or (leader.core.kraft_version == 1 and not self.rng.chance(0.1)):
            return False
        self.world.trace.kinds["kraft.version asked"] += 1
        operation = self._operation([])
        event = KRaftVersionUpgradeRequested(operation.number, 1, leader.core.epoch, self.rng.chance(0.2))
        self._deliver(leader, operation, event)
        return True

    def _operation(self, values: list[bytes]) -> Operation:
        self._number += 1
        operation = self.operations[self._number] = Operation(self._number, values, self.acknowledged_end)
        return operation

    def _deliver(self, process: Process, operation: Operation, event: Event) -> None:
        self._at.setdefault(process, set()).add(operation.number)
        process.deliver(event)

    def append_settled(self, process: Process, effect: Any) -> None:
        """Note the fate of an operation; each has one."""
        operation = self.operations.get(effect.append_id)
        if operation is None:
            return
        kind = type(effect)
        was = operation.outcome
        if kind is raft.AppendAccepted:
            if was != "asked":
                self._wrong(operation, "is accepted twice")
            operation.outcome = "accepted"
            operation.base_offset, operation.end_offset = effect.base_offset, effect.end_offset
            return
        if was != ("asked" if kind is raft.AppendRefused else "accepted"):
            self._wrong(operation, f"was {was} already, then {effect!r}")
        self._at.get(process, set()).discard(operation.number)
        if kind is raft.AppendCommitted:
            operation.outcome = "committed"
            committed = self.world.committed
            if effect.end_offset > committed.end or operation.end_offset > committed.end:
                self._wrong(operation, f"is acknowledged, committed is {committed.end}")
            if operation.end_offset < operation.end_at_request:
                self._wrong(operation, f"misses what was acknowledged before, to {operation.end_at_request}")
            self.acknowledged_end = max(self.acknowledged_end, operation.end_offset)
            self.acknowledged += 1
        else:
            operation.outcome = "refused" if kind is raft.AppendRefused else "aborted"

    def _wrong(self, operation: Operation, text: str) -> None:
        self.world.checks.fail("C2", f"{operation!r} {text}")

    def process_ended(self, process: Process) -> None:
        for number in self._at.pop(process, ()):
            self.operations[number].outcome = "unknown"

    @property
    def under_way(self) -> list[Operation]:
        return [one for one in self.operations.values() if one.outcome in ("asked", "accepted")]

    # --- requests ---

    def _call(
        self,
        process: Process,
        kind: str,
        message: Message,
        version: int,
        then: Callable[[Any], None] | None = None,
    ) -> None:
        self._number += 1
        call = Call(self._number, kind, message, then)
        process.deliver(RequestReceived(call, message, version, LISTENER))

    def answered(self, process: Process, call: Call, message: Any) -> None:
        if call.then is not None:
            call.then(message)

    def lost(self, process: Process, call: Call) -> None:
        """Note that the connection was closed: the outcome is unknown."""

    def _client_fetch(self) -> bool:
        """A broker, or a client without an id, reads the metadata log."""
        process = self._any_process()
        if process is None:
            return False
        core, rng = process.core, self.rng
        end = core.log_end_offset
        offset = rng.choice((end, end, max(0, end - 1), rng.below(end + 1)))
        last_epoch = process.host.mirror.epoch_before(offset)
        if last_epoch is None or offset == 0:
            last_epoch = 0
        mark = rng.choice((-1, core.high_watermark, core.high_watermark, MAX_MARK))
        partition = FetchPartition(0, core.epoch, offset, last_epoch, high_watermark=mark)
        message = FetchRequest(
            cluster_id=CLUSTER_ID,
            replica_state=ReplicaState(rng.choice((-1, 1001, 1002))),
            max_wait_ms=rng.choice((0, 20, 500, 500)),
            max_bytes=rng.choice((0, 100, 1 << 20)),
            topics=[FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
        )
        self._call(process, "client fetch", message, rng.choice((17, 18, 18)))
        return True

    def _add_voter(self) -> bool:
        leader = self.cluster.leader()
        if leader is None:
            return False
        hosts = self.cluster.hosts
        others = [host for host in hosts.values() if leader.core.voters.get(host.id) is None]
        if not others:
            return False
        host = self.rng.choice(others)
        listeners = [Listener(host.endpoint.listener, host.endpoint.host, host.endpoint.port)]
        message = AddRaftVoterRequest(
            CLUSTER_ID, 1_000, host.id, host.directory_id, listeners, ack_when_committed=self.rng.chance(0.5)
        )
        self.joining.add(host.id)
        self.world.schedule.after(20_000_000, self.joining.discard, host.id)
        host.has_voted = True
        self._call(leader, "add voter", message, 1, self._count("voter added"))
        return True

    def _remove_voter(self) -> bool:
        """Remove a voter, but never one whose removal would leave a majority of lost directories."""
        cluster = self.cluster
        leader = cluster.leader()
        if leader is None or len(leader.core.voters) < 2:
            return False
        voters = list(leader.core.voters)
        lost = [voter for voter in voters if voter.key in cluster.lost]
        voter = self.rng.choice(lost or voters)
        left = leader.core.voters.without(voter.key)
        if left is None or not cluster.is_intact(left):
            return False
        message = RemoveRaftVoterRequest(CLUSTER_ID, voter.key.id, voter.key.directory_id or bytes(16))
        self._call(leader, "remove voter", message, 0, self._count("voter removed"))
        return True

    def _count(self, what: str) -> Callable[[Any], None]:
        def then(response: Any) -> None:
            if not response.error_code:
                self.world.trace.kinds[what] += 1

        return then

    def _describe(self) -> bool:
        process = self._any_process()
        if process is None:
            return False
        topics = [DescribeTopic(METADATA_TOPIC, [DescribePartition(0)])]
        self._call(process, "describe", DescribeQuorumRequest(topics), 2)
        return True

    def _send_foreign_request(self) -> bool:
        """Send a request of another cluster, for another voter, or of an old epoch: it may change nothing
        (S17).
        """
        process = self._any_process()
        if process is None:
            return False
        core = process.core
        before = core.epoch, core.leader_id, core.state, process.next_offset, core.voters
        message, version = foreign_request(self.rng, process)
        self._call(process, "stranger", message, version)
        after = core.epoch, core.leader_id, core.state, process.next_offset, core.voters
        if process.host.process is process and process.host.paused_until_us <= self.world.schedule.now_us:
            self.world.checks.expect(
                before == after, "S17", f"{process!r} was {before} before {message!r}, is {after}"
            )
        return True

    # --- the rest ---

    def _snapshot(self) -> bool:
        alive = self.cluster.alive()
        if not alive:
            return False
        process = self.rng.choice(alive).process
        if process is None or process.host.paused_until_us > self.world.schedule.now_us:
            return False
        return process.request_snapshot()

    def _resign(self) -> bool:
        leader = self.cluster.leader()
        if leader is None or not self.rng.chance(0.3):
            return False
        leader.deliver(ResignRequested(leader.core.epoch))
        return True

    def send_to_controller(self, process: Any, effect: Any) -> None:
        """Do nothing: only whole controllers send these."""
        raise NotImplementedError

    def end(self) -> None:
        """Check the rest, after all activity has ended."""

    def __repr__(self) -> str:
        return f"<Workload {self.acknowledged} of {len(self.operations)} operations acknowledged>"
