"""Stories of a partition: one command a line, its output in the lines below, each indented and with an arrow.

replicas [min_isr=2] [unverified]          three replicas, led by 1 in epoch 1; unverified: no KIP-890
produce 1 [count=2] [acks=1] [producer=5 epoch=0 sequence=0] [transactional] [guarded] [unwritten]
marker 1 producer=5 epoch=1 commit|abort [version=2] [coordinator=0]
verify 1 producer=5 epoch=0 sequence=0     begin the verification of a transaction, as of version 2
fetch 2 [times=2]                          2 fetches from its leader
pass 2000                                  let that many ms pass
shrink 1                                   1 looks for members of its ISR that lag
controller [refuses]                       the controller answers the oldest proposal
elect 2 | fence 3 | unfence 3              the controller decides; brokers learn it later
reboot 3                                   3 registers anew, with an empty disk
learn 1 2                                  these brokers see the newest metadata
read 2 from 0 | read 1 from 0 committed    what a consumer may read
latest 1 [committed]                       ListOffsets of the latest offset
status                                     every replica
"""

from __future__ import annotations

from msgspec.structs import replace

from kraftd.ground.effect import Effect
from kraftd.partition.effects import AppendBatches, MarksMoved, ProposeIsr
from kraftd.partition.partition import Produced
from kraftd.partition.producers import NO_GUARD
from kraftd.partition.reading import LATEST_TIMESTAMP, FetchVerdict, Isolation, judge_fetch, list_offset
from kraftd.partition.validation import ProduceRefusal
from kraftd.wire.batch import read_batch
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import build_records_batch
from tests.partition.cluster import IDS, Cluster

TRANSACTIONAL, MARKER = 0x10, 0x30


class StoryCluster(Cluster):
    """A cluster that says what happens."""

    def __init__(self, min_isr: int) -> None:
        self.lines: list[str] = []
        super().__init__(min_isr)
        self.lines.clear()

    def settle(self, broker_id: int, effects: list[Effect]) -> None:
        before = len(self.proposals)
        done = self.places[broker_id].settle(effects)
        for effect in done:
            if isinstance(effect, ProposeIsr):
                self.proposals.append((broker_id, effect))
                self.lines.append(f"{broker_id} proposes ISR {effect.isr}")
            elif isinstance(effect, MarksMoved):
                marks = f"high watermark {effect.high_watermark}, last stable {effect.last_stable_offset}"
                self.lines.append(f"{broker_id}: {marks}")
            elif isinstance(effect, AppendBatches):
                span = f"{effect.base_offset}..{effect.end_offset - 1}"
                self.lines.append(f"{broker_id} writes {span}{''.join(map(_aborted, effect.aborted))}")
            elif type(effect).__name__ == "TruncateLog":
                self.lines.append(f"{broker_id} truncates: {effect!r}")
        assert len(self.proposals) >= before


def _aborted(completed: object) -> str:
    return f", {completed!r}".replace("CompletedTransaction", "aborted")


class Story:
    """Plays one story."""

    def __init__(self) -> None:
        self.cluster = StoryCluster(2)
        self.guards: dict[int, int] = {}

    def play(self, text: str) -> str:
        out: list[str] = []
        for line in text.splitlines():
            if line.startswith("    -> "):
                continue
            out.append(line)
            if line and not line.startswith("#"):
                words = line.split()
                self.cluster.lines.clear()
                getattr(self, words[0])(*words[1:])
                out += [f"    -> {each}" for each in self.cluster.lines]
        return "\n".join(out) + "\n"

    def say(self, text: str) -> None:
        self.cluster.lines.append(text)

    def replicas(self, *words: str) -> None:
        self.cluster = StoryCluster(int(_named(words).get("min_isr", "2")))
        for place in self.cluster.places.values():
            place.partition.config = replace(
                place.partition.config, verifies_transactions="unverified" not in words
            )

    def produce(self, broker: str, *words: str) -> None:
        named, place = _named(words), self.cluster.places[int(broker)]
        count, producer = int(named.get("count", "1")), int(named.get("producer", "-1"))
        is_producer = producer >= 0
        data = build_records_batch(
            [(self.cluster.now_ms, b"k", b"v", [])] * count,
            attributes=TRANSACTIONAL if "transactional" in words else 0, producer_id=producer,
            producer_epoch=int(named.get("epoch", "0")) if is_producer else -1,
            base_sequence=int(named.get("sequence", "0")) if is_producer else -1,
        )  # fmt: skip
        guard = self.guards.get(producer, NO_GUARD) if "guarded" in words else NO_GUARD
        found = place.partition.produce(
            data, 12, int(named.get("acks", "-1")), self.cluster.now_ms, guard=guard
        )
        if isinstance(found, Produced) and found.append is not None and "unwritten" in words:
            place.partition.append_failed(found.base_offset)
            self.say(f"{broker} could not write, and is as before: next offset {place.partition.next_offset}")
            return
        self.appended(int(broker), found, waits=named.get("acks") != "1")

    def appended(self, broker: int, found: object, *, waits: bool = True) -> None:
        if isinstance(found, ProduceRefusal):
            self.say(f"{broker} refuses: {found.error.name}")
            return
        assert isinstance(found, Produced)
        if found.append is None:
            self.say(f"{broker} answers a duplicate: offset {found.base_offset}")
            return
        self.cluster.settle(broker, [found.append])
        answer = self.cluster.partition(broker).acknowledged(found.required_offset)
        if waits:
            self.say("acks=-1 waits" if answer is None else f"acks=-1: {answer.name}")

    def marker(self, broker: str, *words: str) -> None:
        named = _named(words)
        key = bytes((0, 0, 0, 1 if "commit" in words else 0))
        value = bytes(2) + int(named.get("coordinator", "0")).to_bytes(4, "big")
        data = build_records_batch(
            [(self.cluster.now_ms, key, value, [])], attributes=MARKER, producer_id=int(named["producer"]),
            producer_epoch=int(named["epoch"]),
        )  # fmt: skip
        partition = self.cluster.partition(int(broker))
        version = int(named.get("version", "2"))
        found = partition.append_own(data, -1, self.cluster.now_ms, transaction_version=version)
        self.appended(int(broker), found)

    def verify(self, broker: str, *words: str) -> None:
        named = _named(words)
        data = build_records_batch(
            [(self.cluster.now_ms, b"k", b"v", [])], attributes=TRANSACTIONAL,
            producer_id=int(named["producer"]), producer_epoch=int(named["epoch"]),
            base_sequence=int(named["sequence"]),
        )  # fmt: skip
        partition = self.cluster.partition(int(broker))
        found = partition.start_verification(
            read_batch(data).header, self.cluster.now_ms, supports_epoch_bump=True
        )
        if isinstance(found, ErrorCode):
            self.say(f"{broker} refuses: {found.name}")
            return
        self.guards[int(named["producer"])] = found
        self.say("the transaction is open here" if found == NO_GUARD else "the coordinator is asked first")

    def fetch(self, broker: str, *words: str) -> None:
        for _ in range(int(_named(words).get("times", "1"))):
            before = self.cluster.partition(int(broker)).log_end_offset
            self.cluster.fetch(int(broker))
            after = self.cluster.partition(int(broker)).log_end_offset
            if after > before:
                self.say(f"{broker} has {before}..{after - 1} now")

    def shrink(self, broker: str) -> None:
        self.cluster.shrink(int(broker))

    def controller(self, *words: str) -> None:
        number, before = len(self.cluster.proposals), self.cluster.registered.isr
        self.cluster.answer(refused="refuses" in words)
        after = self.cluster.registered.isr
        self.say(f"ISR {after}{' still' if after == before else ''}" if number else "nothing is proposed")

    def elect(self, broker: str) -> None:
        elected = self.cluster.elect(int(broker))
        self.say(f"leader epoch {self.cluster.registered.leader_epoch}" if elected else "not in the ISR")

    def fence(self, broker: str) -> None:
        self.cluster.fence(int(broker))
        self.say(f"leader {self.cluster.registered.leader}, ISR {self.cluster.registered.isr}")

    def reboot(self, broker: str) -> None:
        self.cluster.reboot(int(broker))
        self.say(f"{self.cluster.partition(int(broker))!r}, ISR {self.cluster.registered.isr}")

    def unfence(self, broker: str) -> None:
        self.cluster.unfence(int(broker))

    def learn(self, *brokers: str) -> None:
        for broker in brokers:
            self.cluster.learn(int(broker))

    def read(self, broker: str, _: str, offset: str, *words: str) -> None:
        isolation = Isolation.LAST_STABLE if "committed" in words else Isolation.HIGH_WATERMARK
        found = judge_fetch(self.cluster.partition(int(broker)), int(offset), isolation)
        if isinstance(found, FetchVerdict):
            self.say("nothing" if found.is_empty else f"{found.offset}..{found.end_offset - 1}")
        else:
            self.say(found.name)

    def latest(self, broker: str, *words: str) -> None:
        isolation = Isolation.LAST_STABLE if "committed" in words else Isolation.HIGH_WATERMARK
        found = list_offset(self.cluster.partition(int(broker)), LATEST_TIMESTAMP, 11, isolation=isolation)
        self.say(found.name if isinstance(found, ErrorCode) else repr(found))

    def status(self) -> None:
        for broker in IDS:
            self.say(repr(self.cluster.partition(broker)))


def _pass(self: Story, ms: str) -> None:
    self.cluster.advance(int(ms))


setattr(Story, "pass", _pass)  # a word of Python


def _named(words: tuple[str, ...]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)
