"""Stories of a transaction coordinator: one command a line, its output in the lines below, each indented and
with an arrow.

coordinator version=2                    a coordinator of that transaction.version, with an empty log
init id as a [expecting] [unheard]       InitProducerId of producer a; expecting: with the epoch that it has;
                                         unheard: the answer is lost on its way
add a 0 1                                AddPartitionsToTxn of these partitions of a topic
end a commit|abort [id=101] [epoch=0] [api=5]  EndTxn, also of another producer id, epoch or version
epoch a 32766                            that many epochs are used up
markers held|lost|written                leaders of partitions do not answer | refuse | answer, from now on
pass 60000                               let that many ms pass
failover                                 another broker takes over, with what is in the log
show id                                  what the coordinator has in memory

Output: the answer, each record that became durable, each marker that was written.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kraftd.groups.records import decode_transaction_record
from kraftd.groups.transactions.records import transaction_of
from kraftd.groups.transactions.transaction import NO_ID, Transaction
from kraftd.wire.error_code import ErrorCode, error_name
from tests.groups.transaction_desk import TransactionDesk


class TransactionStory:
    """Plays one story."""

    def __init__(self) -> None:
        self.desk = TransactionDesk()
        self.producers: dict[str, tuple[str, int, int]] = {}  # by name: transactional id, id, epoch
        self.lines: list[str] = []
        self.told = [0, 0]  # records and markers

    def play(self, text: str) -> str:
        out: list[str] = []
        for line in text.splitlines():
            if line.startswith("    -> "):
                continue
            out.append(line)
            if line and not line.startswith("#"):
                self.lines.clear()
                words = line.split()
                getattr(self, {"pass": "wait"}.get(words[0], words[0]))(*words[1:])
                self.tell()
                out += [f"    -> {each}" for each in self.lines]
        return "\n".join(out) + "\n"

    def say(self, text: str) -> None:
        self.lines.append(text)

    def tell(self) -> None:
        """Say what became durable, and which markers were written."""
        log, markers = self.desk.logs[0], self.desk.markers
        for what, _ in log[self.told[0] :]:
            assert not isinstance(what, bool)
            record: Any = decode_transaction_record(*what)
            name = record.key.transactional_id
            gone = record.value is None
            self.say(f"log: {name} " + ("is forgotten" if gone else _shown(transaction_of(record.value))))
        for (topic, index), producer_id, epoch, is_commit in markers[self.told[1] :]:
            end = "commit" if is_commit else "abort"
            self.say(f"marker in {topic}-{index}: {end} of {producer_id} epoch {epoch}")
        self.told = [len(log), len(markers)]

    # -- commands

    def coordinator(self, version: str) -> None:
        self.desk = TransactionDesk(int(version.removeprefix("version=")))
        self.producers, self.told = {}, [0, 0]

    def init(self, id: str, _: str, name: str, *words: str) -> None:
        expected = self.producers[name][1:] if "expecting" in words else (-1, -1)
        answer = self.desk.init(id, expected)
        if answer.error_code:
            self.say(error_name(answer.error_code))
            return
        if "unheard" not in words:
            self.producers[name] = id, answer.producer_id, answer.producer_epoch
        self.say(f"producer {answer.producer_id} epoch {answer.producer_epoch}")

    def add(self, name: str, *indexes: str) -> None:
        id, *producer = self.producers[name]
        self.say(error_name(self.desk.add((producer[0], producer[1]), *map(int, indexes), id=id)))

    def end(self, name: str, end: str, *words: str) -> None:
        named = dict(word.split("=") for word in words)
        id, producer_id, epoch = self.producers[name]
        producer = int(named.get("id", producer_id)), int(named.get("epoch", epoch))
        api = int(named.get("api", 5 if self.desk.version == 2 else 4))
        answer = self.desk.end(producer, end == "commit", id, api)
        text = error_name(answer.error_code)
        if answer.producer_id != NO_ID:
            self.producers[name] = id, answer.producer_id, answer.producer_epoch
            text += f", goes on as {answer.producer_id} epoch {answer.producer_epoch}"
        self.say(text)

    def epoch(self, name: str, epoch: str) -> None:
        id, producer_id, _ = self.producers[name]
        entry = self.desk.ids()[id]
        entry.current = replace(entry.current, producer_epoch=int(epoch))
        self.producers[name] = id, producer_id, int(epoch)

    def markers(self, how: str) -> None:
        desk = self.desk
        desk.holds_markers = how == "held"
        desk.marker_error = ErrorCode.NOT_LEADER_OR_FOLLOWER if how == "lost" else ErrorCode.NONE
        if how == "written":
            desk.write_markers()

    def wait(self, ms: str) -> None:
        self.desk.wait(int(ms))

    def failover(self) -> None:
        self.desk.held.clear()
        self.desk.reload()
        self.desk.flush()

    def show(self, id: str) -> None:
        entry = self.desk.ids().get(id)
        self.say(f"{id} is unknown" if entry is None else _shown(entry.current))


def _shown(one: Transaction) -> str:
    """A state in words."""
    text = f"{one.state!r}, {one.producer_id} epoch {one.producer_epoch}"
    if one.partitions:
        text += ", " + " ".join(f"{topic}-{index}" for topic, index in sorted(one.partitions))
    if one.next_producer_id != NO_ID:
        text += f", next is {one.next_producer_id}"
    return text
