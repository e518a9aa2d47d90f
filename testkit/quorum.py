"""A quorum of controllers of either kind, in any mix, with stock brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, TopicData
from kraftd.messages.describe_quorum_request import PartitionData as AskedPartition
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.cluster import Cluster, random_uuid
from testkit.java import ToolRun, tools
from testkit.logs import Entry, read_log
from testkit.node import Controller, Kind, Node
from testkit.process import HOST, free_port, wait_until

DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [AskedPartition(METADATA_PARTITION)])])


class Quorum(Cluster):
    """Controllers by id, each of either kind, in one static or dynamic quorum; brokers as in any cluster."""

    before_close: ClassVar[Callable[[Quorum], None] | None] = None  # called with each that ends

    def __init__(
        self,
        home: Path,
        kinds: Mapping[int, Kind],
        *,
        static: bool = False,
        controller_properties: Mapping[str, object] | None = None,
        broker_properties: Mapping[str, object] | None = None,
    ) -> None:
        self.home, self.cluster_id, self.static = home, random_uuid(), static
        self._broker_properties = dict(broker_properties or {})
        self._controller_properties = dict(controller_properties or {})
        self._admin = None
        self.brokers = {}
        ports = {node_id: free_port() for node_id in kinds}
        if static:
            voters = ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in ports.items())
            self._quorum = {"controller.quorum.voters": voters}
        else:
            servers = ",".join(f"{HOST}:{port}" for port in ports.values())
            self._quorum = {"controller.quorum.bootstrap.servers": servers}
        self.controllers = {
            node_id: self._controller(node_id, kind, ports[node_id]) for node_id, kind in kinds.items()
        }
        self.initial = ",".join(f"{node_id}@{HOST}:{port}:{random_uuid()}" for node_id, port in ports.items())
        self.open_clusters.append(self)

    def _controller(self, node_id: int, kind: Kind, port: int) -> Controller:
        home = self.home / f"controller-{node_id}"
        return Controller(kind, node_id, home, port, {**self._quorum, **self._controller_properties})

    def __repr__(self) -> str:
        kinds = " ".join(f"{one.node_id}:{one.kind}" for one in self.controllers.values())
        return f"<Quorum {self.cluster_id} {kinds} brokers {sorted(self.brokers)}>"

    @property
    def nodes(self) -> list[Node]:
        return [*self.controllers.values(), *self.brokers.values()]

    @property
    def controller(self) -> Controller:  # type: ignore[override]
        """The active controller, as soon as there is one."""
        return self.controllers[self.wait_for_leader()]

    # -- life

    def start_controllers(self, *ids: int) -> int:
        """Start these controllers or all, format new directories first, and return the leader's id."""
        chosen = [self.controllers[node_id] for node_id in ids or self.controllers]
        for controller in chosen:
            if not controller.data.exists():
                arguments = [] if self.static else ["--initial-controllers", self.initial]
                controller.format(self.cluster_id, *arguments)
        for controller in chosen:
            controller.start()
        for controller in chosen:
            controller.wait_ready()
        return self.wait_for_leader()

    def add_observer(self, node_id: int, kind: Kind, **properties: object) -> Controller:
        """Start one more controller, which does not vote yet."""
        controller = self.plan_observer(node_id, kind, **properties)
        controller.format(self.cluster_id, "--no-initial-controllers")
        controller.start()
        controller.wait_ready()
        return controller

    def plan_observer(self, node_id: int, kind: Kind, **properties: object) -> Controller:
        """Add a controller that has only a properties file yet."""
        controller = self._controller(node_id, kind, free_port())
        controller.properties.update(properties)
        controller.write_properties()
        self.controllers[node_id] = controller
        return controller

    def wait_until_observer_is_level(self, node_id: int) -> None:
        """Wait until the observer has fetched the whole log."""

        def level() -> bool:
            described = self.described()
            return described is not None and any(
                one.replica_id == node_id and one.log_end_offset >= described.high_watermark
                for one in described.observers
            )

        wait_until(level, f"observer {node_id} has caught up")

    def voter_ids(self) -> set[int]:
        """The ids of the voters; OSError while no controller leads."""
        described = self.described()
        if described is None:
            raise OSError("no controller leads")
        return {voter.replica_id for voter in described.current_voters}

    def heal(self) -> None:
        """Thaw frozen nodes, start those that are down or got SIGTERM, wait until no controller lags."""
        for node in self.nodes:
            node.thaw()
        for node in self.nodes:
            node.wait_for_end_after_sigterm()
        down = [node_id for node_id, one in self.controllers.items() if not one.alive]
        if down:
            self.start_controllers(*down)
        self.wait_for_voters(*self.controllers)
        brokers = [broker for broker in self.brokers.values() if not broker.alive]
        for broker in brokers:
            broker.start()
        for broker in brokers:
            broker.wait_ready()

    def make_lead(self, target: int) -> None:
        """Make that controller the leader.

        The others cannot start elections while one is frozen and one waits long. Meanwhile nothing should be
        written: a record that only the old leader has would prevent the election.
        """
        for _ in range(4):
            leader = self.wait_for_leader()
            if leader == target:
                return
            self._depose(leader, target)
        raise AssertionError(f"{target} was not elected")

    def _depose(self, leader: int, target: int) -> None:
        """Make the leader give way to the target, once the target has its last records."""
        epoch = self.epoch()
        self.wait_for_voters(*self.controllers)
        bystanders = [one for one in self.controllers.values() if one.node_id not in (leader, target)]
        for one in bystanders:
            one.freeze()
        patient = self.controllers[leader]
        patient.kill()
        patient.properties["controller.quorum.election.timeout.ms"] = 30_000
        patient.write_properties()
        patient.start()
        del patient.properties["controller.quorum.election.timeout.ms"]
        with suppress(TimeoutError):
            self.wait_for_leader(after_epoch=epoch, timeout_s=20)
        patient.write_properties()
        for one in bystanders:
            one.thaw()
        self.wait_for_voters(*self.controllers)
        if self.leader() != leader:
            patient.kill()  # without its long timeout from here on
            self.start_controllers(leader)
            self.wait_for_voters(*self.controllers)

    def become_dynamic(self) -> None:
        """Replace static voters by bootstrap servers in every controller's file, from the next start on."""
        servers = ",".join(one.address for one in self.controllers.values())
        self._quorum = {"controller.quorum.bootstrap.servers": servers}
        self.static = False
        for controller in self.controllers.values():
            del controller.properties["controller.quorum.voters"]
            controller.properties.update(self._quorum)
            controller.write_properties()

    def set_brokers_bootstrap(self, *ids: int) -> None:
        """Write these controllers as bootstrap servers into every broker's file, from the next start on."""
        servers = ",".join(self.controllers[node_id].address for node_id in ids)
        for broker in self.brokers.values():
            broker.properties["controller.quorum.bootstrap.servers"] = servers
            broker.write_properties()

    # -- queries

    def quorum_by(self, node_id: int) -> PartitionData:
        """One controller's description of the quorum.

        Nodes other than the leader answer with an error. OSError without an answer.
        """
        controller = self.controllers[node_id]
        with Client(controller.host, controller.port, timeout_s=5) as client:
            partition: PartitionData = client.call(DESCRIBE, 2).topics[0].partitions[0]
        return partition

    def described(self) -> PartitionData | None:
        """The leader's description of the quorum, if there is a leader.

        If two nodes claim to lead, it is that of the later epoch.
        """
        found = []
        for node_id, controller in list(self.controllers.items()):
            if controller.alive and not controller.frozen:
                try:
                    partition = self.quorum_by(node_id)
                except OSError:
                    continue
                if partition.error_code == ErrorCode.NONE:
                    found.append(partition)
        return max(found, key=lambda partition: partition.leader_epoch, default=None)

    def voters_addresses(self) -> set[str]:
        """The voters' addresses in the leader's voter set."""
        with Client(HOST, self.controller.port, timeout_s=5) as client:
            nodes = client.call(DESCRIBE, 2).nodes
        return {f"{listener.host}:{listener.port}" for node in nodes for listener in node.listeners}

    def leader(self) -> int | None:
        described = self.described()
        return None if described is None else described.leader_id

    def wait_for_leader(self, *, after_epoch: int = -1, timeout_s: float = 60) -> int:
        """Wait for a leader of a later epoch than that one; return its id."""
        found: list[int] = []

        def led() -> bool:
            described = self.described()
            if (
                described is not None
                and described.leader_epoch > after_epoch
                and described.high_watermark > 0
            ):
                found.append(described.leader_id)
            return bool(found)

        wait_until(led, f"a leader after epoch {after_epoch}", timeout_s, poll_s=0.01)
        return found[-1]

    def epoch(self) -> int:
        described = self.described()
        assert described is not None, "no controller leads"
        return described.leader_epoch

    def wait_for_voters(self, *ids: int) -> None:
        """Wait until these are the voters, all of them at or near the leader's log end."""

        def level() -> bool:
            described = self.described()
            return (
                described is not None
                and {voter.replica_id for voter in described.current_voters} == set(ids)
                and all(
                    voter.log_end_offset >= described.high_watermark for voter in described.current_voters
                )
            )

        wait_until(level, f"the voters are {sorted(ids)} and have caught up")

    def quorum_tool(self, *arguments: object) -> ToolRun:
        """Run Kafka's metadata-quorum tool with all running controllers as its bootstrap."""
        servers = ",".join(one.address for one in self.controllers.values() if one.alive)
        return tools().run("metadata-quorum", "--bootstrap-controller", servers, *arguments).check()

    def try_controller_tool(self, name: str, *arguments: object) -> ToolRun:
        """Run a tool of Kafka's against the leader, whatever its exit code."""
        return tools().run(name, "--bootstrap-controller", self.controller.address, *arguments)

    # -- at the end

    def close(self) -> None:
        if self.before_close is not None:
            self.before_close()
        super().close()

    def stop_all(self) -> None:
        """Stop brokers, then controllers, the leader last."""
        for broker in self.brokers.values():
            broker.kill()
        running = [one for one in self.controllers.values() if one.alive]
        leader = self.leader()
        for controller in sorted(running, key=lambda one: one.node_id == leader):
            controller.kill() if controller.kind == "apache" else controller.signal(15)
        for controller in running:
            controller.kill() if controller.kind == "apache" else controller.stop()

    def dumped(self, node_id: int) -> list[str]:
        """The records of one controller's log as Kafka's dump-log tool prints them, batch heads included."""
        folder = self.controllers[node_id].data / f"{METADATA_TOPIC}-0"
        files = ",".join(str(path) for path in sorted(folder.glob("*.log")))
        out = tools().run("dump-log", "--cluster-metadata-decoder", "--files", files).check().out
        return [line for line in out.splitlines() if line.startswith(("|", "baseOffset"))]

    def assert_equal_logs(self) -> int:
        """Check that the controllers' logs have equal batches at equal offsets; return the number of batches.

        The logs need not begin at the same offset. Kafka's leaders, and thus kraftd's, send their snapshot to
        a follower whose last epoch is older than the epoch of their oldest snapshot.
        """
        logs = [read_log(one.data) for one in self.controllers.values()]
        merged: dict[int, Entry] = {}
        for log in logs:
            for entry in log.entries:
                other = merged.setdefault(entry.base, entry)
                assert entry == other, f"{log} has {entry[:3]} where another has {other[:3]}"
        for log in logs:
            within = {base for base in merged if log.start <= base < log.end}
            assert within == {entry.base for entry in log.entries}, f"{log} has other batches"
        assert min(log.start for log in logs) == 0
        return len(merged)
