"""Commands of scenario scripts that play a replica. A request to a puppet is printed at once; the script
gives the puppet's answer and its time.

puppet 2 3                                 the script plays 2 and 3 from here on; a running replica is killed
lead 1 with 2                              1 is elected with 2's votes, and 2 fetches the records of 1
answer 1 as 2 [KIND] [late] ANSWER         2 answers 1's last request (late: the oldest), of that KIND
    of a Fetch: [hw=N] [epoch=E] [leader=L] [error=NAME] [refused=NAME] [diverging=3@1] [snapshot=6@1]
                [records=BATCHES] [at=BASE]

BATCHES are divided by |, the records of a batch by commas: a,b|c@2 is a batch of two records and a batch of
epoch 2. A batch `c!` is damaged, `c~` is cut short; `noise` is not a batch.
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
    their puppets answer, and extend `request_text`."""

    def enter(self, world: World) -> None:
        super().enter(world)
        self.unanswered: dict[int, list[tuple[Source, Message]]] = {}  # by puppet

    def do_puppet(self, ids: list[str], options: dict[str, str]) -> None:
        for one in map(int, ids):
            if self.world.nodes[one].core is not None:
                self.world.crash(one, silent=True)
            self.unanswered[one] = []
            self.world.puppets[one] = self._receiver_of(one)

    def _receiver_of(self, puppet: int) -> Callable[[Source, Message], None]:
        def receive(source: Source, message: Message) -> None:
            self.unanswered[puppet].append((source, message))
            self.write(self.request_text(source[0], puppet, message))

        return receive

    def request_text(self, requester: int, puppet: int, message: Message) -> str:
        """The request to a puppet as one line."""
        text = kind_of(message)
        match message:
            case FetchRequest():
                fetch = message.topics[0].partitions[0]
                known = {-1: "unknown", (1 << 63) - 1: "any"}  # any: the version has no place for it
                mark = known.get(fetch.high_watermark, fetch.high_watermark)
                at = f"{fetch.fetch_offset}@{fetch.last_fetched_epoch}"
                text += f" epoch={fetch.current_leader_epoch} offset={at} hw={mark}{_limit(message)}"
            case FetchSnapshotRequest():
                piece = message.topics[0].partitions[0]
                at = f"{piece.snapshot_id.end_offset}@{piece.snapshot_id.epoch}"
                text += f" epoch={piece.current_leader_epoch} {at} position={piece.position}{_limit(message)}"
            case VoteRequest():
                vote = message.topics[0].partitions[0]
                text = "PreVote" if vote.pre_vote else "Vote"
                text += f" epoch={vote.replica_epoch} last={vote.last_offset}@{vote.last_offset_epoch}"
            case BeginQuorumEpochRequest():
                text += f" epoch={message.topics[0].partitions[0].leader_epoch}"
            case EndQuorumEpochRequest():
                end = message.topics[0].partitions[0]
                successors = ",".join(str(one.candidate_id) for one in end.preferred_candidates)
                text += f" epoch={end.leader_epoch} successors={successors}"
        return f"{requester} asks {puppet}: {text}"

    def do_answer(self, words: list[str], options: dict[str, str]) -> None:
        requester, _, puppet, *rest = words
        late = "late" in rest
        kinds = [word for word in rest if word[0].isupper()]
        found = [
            one
            for one in self.unanswered[int(puppet)]
            if one[0][0] == int(requester) and kind_of(one[1]) in (kinds or [kind_of(one[1])])
        ]
        if not found:
            self.write(f"{requester} has not asked {puppet}")
            return
        source, request = found[0 if late else -1]
        self.unanswered[int(puppet)] = [one for one in self.unanswered[int(puppet)] if one[0] != source]
        flags = [word for word in rest if word != "late" and word not in kinds]
        make: Callable[..., Message] = getattr(self, f"answer_{kind_of(request).lower()}")
        answer = make(int(puppet), request, flags, options)
        self.world.answer(source, int(puppet), answer, version_of(answer))
        self.world.run(2)  # the answer arrives, and its records are synced

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
        partition = request.topics[0].partitions[0]
        epoch = int(options.get("epoch", partition.current_leader_epoch))
        base_offset = int(options.get("at", partition.fetch_offset))
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
    """The answer, or one with the error `refused` and without topics."""
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
    """The bytes of `a,b|c@2` from `base_offset` on; a batch without an epoch of its own is of `epoch`."""
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
    """The API's name: Vote, Fetch."""
    return type(message).__name__.removesuffix("Request")


def _limit(message: FetchRequest | FetchSnapshotRequest) -> str:
    return "" if message.max_bytes == DEFAULT_BYTES else f" max_bytes={message.max_bytes}"
