"""Three replicas of one partition and a controller, without IO: what a state machine drives."""

from __future__ import annotations

from msgspec.structs import replace

from kraftd.ground.effect import Effect
from kraftd.partition.config import PartitionConfig
from kraftd.partition.effects import AppendBatches, ProposedMember, ProposeIsr
from kraftd.partition.partition import ACKS_ALL, LEADER, Partition, Produced
from kraftd.partition.reading import FetchVerdict, Isolation, judge_fetch
from kraftd.partition.replicas import NO_BROKER_EPOCH
from kraftd.partition.replication import (
    diverged,
    fetched_from_leader,
    follower_fetched,
    isr_answered,
    replicated_up_to,
    shrink_isr,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import build_records_batch
from testkit.random_batches import NOW_MS
from tests.partition.places import LOCAL, OTHER, THIRD, Place, Registered

IDS = (LOCAL, OTHER, THIRD)
LAG_MS = 1000
PRODUCER = 1000


class Cluster:
    """The controller's registration, what each replica has seen of it, and what producers were promised."""

    def __init__(self, min_isr: int = 2) -> None:
        config = PartitionConfig(min_insync_replicas=min_isr, replica_lag_time_max_ms=LAG_MS)
        self.registered = Registered(IDS, IDS, LOCAL, 1, 1)
        self.places = {each: Place(config, local_id=each) for each in IDS}
        self.proposals: list[tuple[int, ProposeIsr]] = []
        self.waiting: list[tuple[int, int, int, bytes]] = []  # leader, required offset, sequence, value
        self.promised: dict[int, bytes] = {}  # sequence -> value
        self.sequence = 0
        self.now_ms = NOW_MS
        self.marks: dict[tuple[int, int], int] = {}
        for each in IDS:
            self.learn(each)

    def partition(self, broker_id: int) -> Partition:
        return self.places[broker_id].partition

    def learn(self, broker_id: int) -> None:
        """A broker sees the newest metadata."""
        place = self.places[broker_id]
        self.settle(broker_id, place.partition.follow_metadata(self.registered, self.now_ms))

    def settle(self, broker_id: int, effects: list[Effect]) -> None:
        for effect in self.places[broker_id].settle(effects):
            if isinstance(effect, ProposeIsr):
                self.proposals.append((broker_id, effect))
        self.acknowledge()

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        for place in self.places.values():
            place.now_ms = self.now_ms

    # --- producers ---

    def produce(self, broker_id: int, *, written: bool = True, again: bool = False) -> object:
        """An idempotent producer sends its next batch, or its last one again; the disk may refuse it."""
        sequence = self.sequence - 1 if again and self.sequence else self.sequence
        value = b"v%d" % sequence
        data = build_records_batch(
            [(self.now_ms, b"k", value, [])], producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence
        )
        place = self.places[broker_id]
        found = place.partition.produce(data, 12, ACKS_ALL, self.now_ms)
        if not isinstance(found, Produced):
            return found
        if found.append is not None and not written:
            place.partition.append_failed(found.base_offset)
            return found
        if found.append is not None:
            self.settle(broker_id, [found.append])
        self.sequence = max(self.sequence, sequence + 1)
        self.waiting.append((broker_id, found.required_offset, sequence, value))
        self.acknowledge()
        return found

    def acknowledge(self) -> None:
        """Answer produces that wait; what is answered NONE must be kept for ever."""
        left = []
        for waiting in self.waiting:
            answer = self.partition(waiting[0]).acknowledged(waiting[1])
            if answer is None:
                left.append(waiting)
            elif answer is ErrorCode.NONE:
                self.promised[waiting[2]] = waiting[3]
        self.waiting = left

    # --- followers ---

    def fetch(self, broker_id: int) -> None:
        """A follower fetches once from its leader, as far as both agree on it."""
        follower = self.partition(broker_id)
        leader_id = follower.leader_id
        if follower.role is LEADER or leader_id not in IDS:
            return
        leader, place = self.partition(leader_id), self.places[broker_id]
        offset, epoch = follower.log_end_offset, follower.epochs.latest
        verdict = judge_fetch(
            leader, offset, Isolation.LOG_END, current_leader_epoch=follower.leader_epoch,
            last_fetched_epoch=-1 if epoch is None else epoch, follower_id=broker_id,
        )  # fmt: skip
        if not isinstance(verdict, FetchVerdict):
            return
        if verdict.diverging is not None:
            self.settle(broker_id, diverged(follower, verdict.diverging))
            return
        noted = follower_fetched(
            leader, broker_id, offset, follower.log_start_offset, self.now_ms,
            broker_epoch=place.brokers.epochs.get(broker_id, -1), local_broker_epoch=leader_id + 10,
        )  # fmt: skip
        if isinstance(noted, ErrorCode):
            return
        self.settle(leader_id, noted)
        batches = [each for each in self.places[leader_id].batches if each.header.last_offset >= offset]
        data = b"".join(bytes(each.view) for each in batches[:2])
        effects = fetched_from_leader(follower, data, follower.leader_epoch)
        assert isinstance(effects, list), effects
        for effect in effects:
            assert isinstance(effect, AppendBatches)
            place.write(effect)
        end = follower.next_offset
        self.settle(broker_id, replicated_up_to(follower, end, verdict.marks.high_watermark, 0, self.now_ms))

    def shrink(self, broker_id: int) -> None:
        self.settle(broker_id, shrink_isr(self.partition(broker_id), self.now_ms))

    # --- the controller ---

    def answer(self, *, refused: bool = False) -> None:
        """The controller answers the oldest proposal."""
        if not self.proposals:
            return
        broker_id, proposal = self.proposals.pop(0)
        partition, registered = self.partition(broker_id), self.registered
        error = ErrorCode.NONE
        if proposal.leader_epoch != registered.leader_epoch or broker_id != registered.leader:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif proposal.partition_epoch != registered.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif refused or not all(self.may_join(each) for each in proposal.members):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error is ErrorCode.NONE:
            self.registered = replace(
                registered, isr=proposal.isr, partition_epoch=registered.partition_epoch + 1
            )
        effects = isr_answered(
            partition, proposal.number, error, self.now_ms, leader_epoch=self.registered.leader_epoch,
            partition_epoch=self.registered.partition_epoch, isr=proposal.isr,
        )  # fmt: skip
        self.settle(broker_id, effects)

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.places[LOCAL].brokers.epochs

    def may_join(self, member: ProposedMember) -> bool:
        """Return whether a member is alive, and of its present registration (KIP-903)."""
        epoch = self.places[LOCAL].brokers.epochs.get(member.broker_id)
        return epoch is not None and member.broker_epoch in (NO_BROKER_EPOCH, epoch)

    def reboot(self, broker_id: int) -> None:
        """A broker registers anew, with an empty disk. It leaves the ISR if it is in it."""
        epoch = self.places[LOCAL].brokers.epochs[broker_id] + 100
        if broker_id in self.registered.isr:
            self.fence(broker_id)
        empty = Place(self.places[broker_id].partition.config, local_id=broker_id)
        empty.brokers.epochs = dict(self.places[LOCAL].brokers.epochs)
        self.places[broker_id] = empty
        for place in self.places.values():
            place.brokers.epochs[broker_id] = epoch
        self.learn(broker_id)

    def elect(self, broker_id: int) -> bool:
        """Elect a member of the ISR; return whether it is one."""
        registered = self.registered
        if broker_id not in registered.isr or not self.is_alive(broker_id):
            return False
        self.registered = replace(
            registered, leader=broker_id, leader_epoch=registered.leader_epoch + 1,
            partition_epoch=registered.partition_epoch + 1,
        )  # fmt: skip
        return True

    def fence(self, broker_id: int) -> None:
        """A broker is fenced: it leaves the ISR, and its leadership goes to another member."""
        registered = self.registered
        others = tuple(each for each in registered.isr if each != broker_id)
        if not self.is_alive(broker_id) or not others:
            return
        for place in self.places.values():
            del place.brokers.epochs[broker_id]
        self.registered = replace(registered, isr=others, partition_epoch=registered.partition_epoch + 1)
        if registered.leader == broker_id:
            assert self.elect(others[0])

    def unfence(self, broker_id: int) -> None:
        if not self.is_alive(broker_id):
            for place in self.places.values():
                place.brokers.epochs[broker_id] = broker_id + 10

    # --- what must hold ---

    def check(self) -> None:
        for broker_id, place in self.places.items():
            self.check_one(broker_id, place)
        leader = self.partition(self.registered.leader)
        if leader.role is LEADER and leader.leader_epoch == self.registered.leader_epoch:
            kept = {
                each.header.base_sequence: bytes(each.view) for each in self.places[leader.local_id].batches
            }
            for sequence, value in self.promised.items():
                assert sequence in kept and value in kept[sequence], f"acknowledged {value!r} is lost"
            for member in leader.isr.committed:
                end = self.partition(member).log_end_offset
                assert leader.high_watermark <= end, f"{member} of the ISR ends at {end}: {leader}"

    def check_one(self, broker_id: int, place: Place) -> None:
        partition = place.partition
        bounds = [
            partition.log_start_offset, partition.last_stable_offset, partition.high_watermark,
            partition.log_end_offset, partition.next_offset,
        ]  # fmt: skip
        assert bounds == sorted(bounds), partition
        # A follower's may go back: a new leader's high watermark may lag for a while.
        if partition.is_leader:
            before = self.marks.get((broker_id, partition.leader_epoch), 0)
            assert partition.high_watermark >= before, "the high watermark went back"
            self.marks[broker_id, partition.leader_epoch] = partition.high_watermark
        offsets = [each.header.base_offset for each in place.batches]
        assert offsets == list(range(len(offsets))), "offsets are dense"
        assert partition.log_end_offset == len(offsets)
        sequences = [each.header.base_sequence for each in place.batches]
        assert sequences == sorted(set(sequences)), f"a sequence twice: {sequences}"
        first = self.places[LOCAL]
        below = min(partition.high_watermark, first.partition.high_watermark)
        for ours, theirs in zip(place.batches[:below], first.batches[:below], strict=True):
            assert bytes(ours.view) == bytes(theirs.view), "logs differ below both high watermarks"
