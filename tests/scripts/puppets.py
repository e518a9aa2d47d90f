"""Commands of scenario scripts that play a replica. A request to a puppet is printed at once; the script
says what the puppet answers, and when.

puppet 2 3                                 2 and 3 are played from here on; one that ran runs no more
lead 1 with 2                              1 is elected with 2's votes, and 2 fetches what that wrote
answer 1 as 2 [KIND] [late] ANSWER         what 1 asked 2 last (late: longest ago), of that KIND
    of a Fetch: [hw=N] [epoch=E] [leader=L] [error=NAME] [refused=NAME] [diverging=3@1] [snapshot=6@1]
                [records=BATCHES] [at=BASE]

BATCHES are divided by |, records of a batch by commas: a,b|c@2 is one of two records and one of epoch 2.  A
batch `c!` is damaged, `c~` is cut short; `noise` is none at all.
`epoch` and `leader` are those of the answer, `error` is the partition's, `refused` the whole answer's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraftd.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraftd.messages.vote_request import VoteRequest
from kraftd.raft.transitions import State
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import build_batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from tests.raft.lone import fetch, fetch_answer
from tests.raft.world import Source, World, version_of
from tests.scripts.stage import Stage

DEFAULT_BYTES = 1024 * 1024


class PuppetCommands(Stage):
    """Other modules add an `answer_<kind>(puppet, request, flags, options)` for each kind of request that
    they have puppets answer, and words of their own to `tell_request`."""

    def enter(self, world: World) -> None:
        super().enter(world)
        self.waiting: dict[int, list[tuple[Source, Message]]] = {}  # by puppet, what is not answered yet

    def do_puppet(self, ids: list[str], options: dict[str, str]) -> None:
        for one in map(int, ids):
            if self.world.nodes[one].core is not None:
                self.world.crash(one, silent=True)
            self.waiting[one] = []
            self.world.puppets[one] = self._asked_by(one)

    def _asked_by(self, puppet: int) -> Callable[[Source, Message], None]:
        def asked(source: Source, message: Message) -> None:
            self.waiting[puppet].append((source, message))
            self.tell(self.tell_request(source[0], puppet, message))

        return asked

    def tell_request(self, asker: int, puppet: int, message: Message) -> str:
        """What a puppet is asked, in a line."""
        told = kind_of(message)
        match message:
            case FetchRequest():
                asked = message.topics[0].partitions[0]
                known = {-1: "unknown", (1 << 63) - 1: "any"}  # any: the version has no place for it
                mark = known.get(asked.high_watermark, asked.high_watermark)
                at = f"{asked.fetch_offset}@{asked.last_fetched_epoch}"
                told += f" epoch={asked.current_leader_epoch} offset={at} hw={mark}{_limit(message)}"
            case FetchSnapshotRequest():
                of = message.topics[0].partitions[0]
                at = f"{of.snapshot_id.end_offset}@{of.snapshot_id.epoch}"
                told += f" epoch={of.current_leader_epoch} {at} position={of.position}{_limit(message)}"
            case VoteRequest():
                vote = message.topics[0].partitions[0]
                told = "PreVote" if vote.pre_vote else "Vote"
                told += f" epoch={vote.replica_epoch} last={vote.last_offset}@{vote.last_offset_epoch}"
            case BeginQuorumEpochRequest():
                told += f" epoch={message.topics[0].partitions[0].leader_epoch}"
            case EndQuorumEpochRequest():
                ended = message.topics[0].partitions[0]
                successors = ",".join(str(one.candidate_id) for one in ended.preferred_candidates)
                told += f" epoch={ended.leader_epoch} successors={successors}"
        return f"{asker} asks {puppet}: {told}"

    def do_answer(self, words: list[str], options: dict[str, str]) -> None:
        asker, _, puppet, *rest = words
        late = "late" in rest
        kinds = [word for word in rest if word[0].isupper()]
        found = [
            one
            for one in self.waiting[int(puppet)]
            if one[0][0] == int(asker) and kind_of(one[1]) in (kinds or [kind_of(one[1])])
        ]
        if not found:
            self.tell(f"{asker} has not asked {puppet}")
            return
        source, request = found[0 if late else -1]
        self.waiting[int(puppet)] = [one for one in self.waiting[int(puppet)] if one[0] != source]
        flags = [word for word in rest if word != "late" and word not in kinds]
        make: Callable[..., Message] = getattr(self, f"answer_{kind_of(request).lower()}")
        answer = make(int(puppet), request, flags, options)
        self.world.answer(source, int(puppet), answer, version_of(answer))
        self.world.run(2)  # it arrives, and what it brought is synced

    def do_lead(self, words: list[str], options: dict[str, str]) -> None:
        leader, _, puppet = words
        core = self.world.core(int(leader))
        self.world.run(60_000, until=lambda: core.state is State.PROSPECTIVE)
        for _ in ("its pre-vote", "its vote"):
            self.do_answer([leader, "as", puppet, "Vote", "granted"], {})
        disk, end = self.world.nodes[int(puppet)].disk, core.log_end_offset
        disk.copy(self.world.nodes[int(leader)].disk, end)
        self.ask(puppet, int(leader), fetch(int(puppet), core.epoch, end, core.epoch))
        self.lines = [line for line in self.lines if "leads epoch" in line]

    def answer_fetch(
        self, puppet: int, request: FetchRequest, flags: list[str], options: dict[str, str]
    ) -> Message:
        asked = request.topics[0].partitions[0]
        epoch = int(options.get("epoch", asked.current_leader_epoch))
        base_offset = int(options.get("at", asked.fetch_offset))
        diverging, snapshot = options.get("diverging"), options.get("snapshot")
        answer = fetch_answer(
            epoch,
            leader=int(options.get("leader", puppet)),
            high_watermark=int(options.get("hw", -1)),
            records=batches(options.get("records", ""), base_offset, epoch),
            error=ErrorCode[options.get("error", "NONE")],
            diverging=position(diverging) if diverging else None,
            snapshot=position(snapshot) if snapshot else None,
        )
        return refuse(answer, options)


def refuse(answer: Any, options: dict[str, str]) -> Message:
    """That answer, or what `refused` says instead of all of it."""
    if "refused" in options:
        name = "responses" if hasattr(answer, "responses") else "topics"
        setattr(answer, name, [])
        answer.error_code = ErrorCode[options["refused"]]
    message: Message = answer
    return message


def position(text: str) -> OffsetAndEpoch:
    """`6@1`: an offset and an epoch."""
    offset, _, epoch = text.partition("@")
    return OffsetAndEpoch(int(offset), int(epoch))


def batches(text: str, base_offset: int, epoch: int) -> bytes:
    """The bytes of `a,b|c@2`, the first batch at `base_offset` and those without one of `epoch`."""
    found = b""
    for batch in filter(None, text.split("|")):
        if batch == "noise":
            found += b"no batch at all, but long enough to look like the header of one, and more"
            continue
        records, _, of_epoch = batch.rstrip("!~").partition("@")
        values = [one.encode() for one in records.split(",")]
        data = bytearray(build_batch(values, base_offset, int(of_epoch or epoch), 0))
        if batch.endswith("!"):
            data[-1] ^= 0xFF
        found += data[:-3] if batch.endswith("~") else data
        base_offset += len(values)
    return found


def kind_of(message: Message) -> str:
    """Vote, Fetch, ..."""
    return type(message).__name__.removesuffix("Request")


def _limit(message: FetchRequest | FetchSnapshotRequest) -> str:
    return "" if message.max_bytes == DEFAULT_BYTES else f" max_bytes={message.max_bytes}"
