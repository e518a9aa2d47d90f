"""Commands of scenario scripts that fetch.

fetch 9 from 1 [offset=end|N] [last=E] [hw=known|unknown|N] [epoch=E] [wait=MS] [max_bytes=N] [version=V]
               [cluster=ID|null|empty] [topic=other|none] [partition=N]

A fetch of a puppet carries its directory id; -1 is a client without a replica id. `show batches` prints the
offsets and the size of each batch in an answer.
"""

from __future__ import annotations

from kraftd.messages.fetch_response import FetchResponse
from kraftd.raft.effects import Respond, RespondRecords
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from tests.raft.lone import broker_fetch
from tests.raft.world import directory_id
from tests.scripts.stage import Stage, cluster_id

UNKNOWN = (1 << 63) - 1


class FetchCommands(Stage):
    def do_fetch(self, words: list[str], options: dict[str, str]) -> None:
        client, _, leader = words
        core = self.world.core(int(leader))
        offset = core.log_end_offset if options.get("offset", "end") == "end" else int(options["offset"])
        version = int(options.get("version", "18"))
        marks = {"known": core.high_watermark, "unknown": -1, "any": UNKNOWN}
        mark = options.get("hw", "any" if version < 18 else "known")
        fetch = broker_fetch(
            int(client),
            int(options.get("epoch", core.epoch)),
            offset,
            int(options.get("last", core.log.last_epoch if offset else 0)),
            marks[mark] if mark in marks else int(mark),
            int(options.get("wait", "500")),
        )
        partition = fetch.topics[0].partitions[0]
        if int(client) in self.world.puppets:  # it has synced all below its fetch offset
            self.world.nodes[int(client)].disk.copy(self.world.nodes[int(leader)].disk, offset)
            partition.replica_directory_id = directory_id(int(client))
        fetch.max_bytes = int(options.get("max_bytes", fetch.max_bytes))
        fetch.cluster_id = cluster_id(options)
        partition.partition = int(options.get("partition", 0))
        if options.get("topic") == "none":
            fetch.topics = []
        elif "topic" in options:
            fetch.topics[0].topic_id = options["topic"].encode().ljust(16)
        if version < 15:
            fetch.replica_id, fetch.replica_state.replica_id = int(client), -1
        if not self.ask(client, int(leader), fetch, version):
            self.write(f"fetch of {client} is parked")

    def fetch_text(self, answer: FetchResponse, effect: Respond | RespondRecords) -> str:
        if answer.error_code:
            return ErrorCode(answer.error_code).name
        partition = answer.responses[0].partitions[0]
        leader = partition.current_leader
        if partition.error_code:
            at = "".join(f" at {one.host}:{one.port}" for one in answer.node_endpoints)
            error = ErrorCode(partition.error_code).name
            return f"{error}, leader {leader.leader_id}{at}, epoch {leader.leader_epoch}"
        if partition.diverging_epoch.epoch >= 0:
            content = f"diverging at {partition.diverging_epoch.end_offset}@{partition.diverging_epoch.epoch}"
        elif partition.snapshot_id.epoch >= 0:
            content = f"snapshot {partition.snapshot_id.end_offset}@{partition.snapshot_id.epoch}"
        elif isinstance(effect, RespondRecords) and "batches" in self.shown:
            found = [one.header for one in iter_batches(partition.records or b"")]
            content = "batches " + ", ".join(
                f"{one.base_offset}..{one.next_offset} of {one.size_bytes} bytes" for one in found
            )
        elif isinstance(effect, RespondRecords):
            content = f"records from {effect.offset}"
        else:
            content = "no records"
        return f"hw={partition.high_watermark}, {content}"
