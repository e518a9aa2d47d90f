"""Commands of scenario scripts that look at a replica as operators do.

describe 1 [topic=NAME] [partition=N] [version=V]   DescribeQuorum: each replica's log end and last fetch
metrics 1 [NAME ...]                                1's metrics by Kafka's names: these, or all

Replicas are printed with their directory id, `2:dir-2`, if it is known; `2:dir-2.1` is a later one.
"""

from __future__ import annotations

from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.messages.describe_quorum_response import DescribeQuorumResponse, ReplicaState
from kraftd.types import METADATA_TOPIC, ZERO_UUID, uuid_text
from kraftd.wire.error_code import ErrorCode
from tests.raft.world import directory_id
from tests.scripts.stage import Stage

GENERATIONS = 10


class DescribingCommands(Stage):
    def do_describe(self, words: list[str], options: dict[str, str]) -> None:
        partition = PartitionData(int(options.get("partition", 0)))
        request = DescribeQuorumRequest([TopicData(options.get("topic", METADATA_TOPIC), [partition])])
        self.ask("admin", int(words[0]), request, int(options.get("version", 2)))

    def write_quorum(self, node_id: int, answer: DescribeQuorumResponse) -> None:
        partition = answer.topics[0].partitions[0]
        if partition.error_code:
            self.write(f"{node_id} answers admin: {ErrorCode(partition.error_code).name}")
            return
        leader = f"leader {partition.leader_id}, epoch {partition.leader_epoch}"
        self.write(f"{node_id} answers admin: {leader}, hw {partition.high_watermark}")
        for kind, replicas in (("voter", partition.current_voters), ("observer", partition.observers)):
            for one in replicas:
                name = _name(one.replica_id, one.replica_directory_id)
                self.write(f"{kind} {name}: {self._progress_text(one)}")

    def _progress_text(self, state: ReplicaState) -> str:
        if state.last_fetch_timestamp < 0:
            return f"end {state.log_end_offset}, never fetched"
        fetched, caught_up = map(self._ago, (state.last_fetch_timestamp, state.last_caught_up_timestamp))
        return f"end {state.log_end_offset}, fetched {fetched}, caught up {caught_up}"

    def _ago(self, time_ms: int) -> str:
        ago_ms = self.world.now_ms - time_ms
        return "never" if time_ms < 0 else f"{ago_ms} ms ago" if ago_ms else "now"

    def do_metrics(self, words: list[str], options: dict[str, str]) -> None:
        names = {f"dir-{one}": uuid_text(directory_id(one)) for one in self.world.nodes}
        found = self.world.core(int(words[0])).metrics(self.world.now_ms).by_name()
        for name in words[1:] or found:
            value = found.get(name, "is only a leader's")
            shown = f"{value:.3f}" if isinstance(value, float) else str(value)
            shown = next((known for known, uuid in names.items() if uuid == shown), shown)
            self.write(f"{name} {shown}")


def _name(node_id: int, directory: bytes) -> str:
    if directory == ZERO_UUID:
        return str(node_id)
    known = [one for one in range(GENERATIONS) if directory_id(node_id, one) == directory]
    return f"{node_id}:dir-{node_id}" + "".join(f".{one}" for one in known if one)
