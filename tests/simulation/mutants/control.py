"""Defects of controllers: of the image, of decisions and of their answers."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from kraftd.controller.activation import activate
from kraftd.controller.brokers import producer_ids
from kraftd.controller.brokers import registration as brokers
from kraftd.controller.brokers import states as broker_states
from kraftd.controller.partitions import change as partition_change
from kraftd.controller.partitions import edits as partition_edits
from kraftd.controller.partitions import isr
from kraftd.controller.scram import alter as scram_alter
from kraftd.controller.tokens import change as tokens_change
from kraftd.controller.topics import assignment
from kraftd.controller_node.deciding import activation as server_activation
from kraftd.controller_node.deciding.appending import Appends
from kraftd.controller_node.deciding.parked_answers import ParkedAnswers
from kraftd.host.executors.core_executor import EffectExecutor
from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.metadata.image import Image
from kraftd.metadata.state import BrokerState, PartitionState
from kraftd.security.authorizer import StandardAuthorizer
from kraftd.simulation.processes.controller_process import ControllerProcess
from kraftd.simulation.processes.ports import VirtualTimer
from tests.simulation.mutants.planted import Planted


def answer_before_commit(patch: Any) -> None:
    """C2: an answer does not wait for its records."""
    patch.setattr(ParkedAnswers, "answer", lambda self, call, parts, _: self._boundary.send(call, parts))


def show_what_is_not_committed(patch: Any) -> None:
    """C2: a read does not wait for the commit of the records that it returns."""
    patch.setattr(Appends, "decided_end", property(lambda self: 0, lambda self, _: None), raising=False)


def keep_what_was_undone(patch: Any) -> None:
    """C1: a leader that loses its epoch keeps decisions that did not commit."""
    patch.setattr(Image, "undo_to", lambda self, offset: None)


def forget_to_tell_the_authorizer(patch: Any) -> None:
    """C1: an ACL that is removed stays with the authorizer."""
    change = StandardAuthorizer.change
    patch.setattr(StandardAuthorizer, "change", lambda self, removed, added: change(self, (), added))


def remove_users_in_word_only(patch: Any) -> None:
    """C2: the removal of a SCRAM user is acknowledged, but the user stays."""
    patch.setattr(scram_alter, "RemoveUserScramCredentialRecord", lambda *_: NoOpRecord())


def keep_expired_tokens(patch: Any) -> None:
    """C2: the expiry of a delegation token is acknowledged, but its record is not written."""
    patch.setattr(tokens_change, "RemoveDelegationTokenRecord", lambda _: NoOpRecord())


def hand_out_producer_ids_again(patch: Any) -> None:
    """C6: the record of a block of producer ids is not replayed."""
    from kraftd.metadata import replay

    patch.setitem(replay.REPLAY, ProducerIdsRecord, lambda image, message: None)


def skip_a_record_in_the_replay(patch: Any) -> None:
    """C1: the replay skips the records of configs."""
    apply_all = Image.apply_all

    def most(self: Image, messages: Any, *arguments: Any, **options: Any) -> None:
        others = [one for one in messages if type(one) is not ConfigRecord]
        if others:
            apply_all(self, others, *arguments, **options)

    patch.setattr(Image, "apply_all", most)


def let_stale_brokers_in(patch: Any) -> None:
    """C3: the controller ignores the broker epoch of a request."""

    check = brokers.check_broker_epoch

    def anyone(ctx: Any, broker_id: int, epoch: int) -> Any:
        broker = ctx.image.brokers.get(broker_id)
        return check(ctx, broker_id, epoch) if broker is None else broker

    for module in (broker_states, isr, producer_ids):
        if hasattr(module, "check_broker_epoch"):
            patch.setattr(module, "check_broker_epoch", anyone)


def keep_the_partition_epoch(patch: Any) -> None:
    """C4: a change of a partition does not raise its partition epoch."""
    merged = PartitionState.merged

    def same(self: PartitionState, change: Any) -> PartitionState:
        return structs.replace(merged(self, change), partition_epoch=self.partition_epoch)

    patch.setattr(PartitionState, "merged", same)


def take_the_leader_out_of_the_isr(patch: Any) -> None:
    """C4: a new partition has a leader outside its ISR."""
    apply = Image.apply

    def without(self: Image, message: Any, offset: int, epoch: int) -> None:
        if type(message) is PartitionRecord and len(message.replicas) > 1:
            others = tuple(one for one in message.replicas if one != message.leader)
            message = structs.replace(message, isr=others)
        apply(self, message, offset, epoch)

    patch.setattr(Image, "apply", without)


def take_the_fenced_for_active(patch: Any) -> None:
    """C5: fenced brokers lead partitions and join an ISR like active ones."""
    patch.setattr(BrokerState, "is_active", property(lambda self: True))


def keep_members_eligible(patch: Any) -> None:
    """C5, KIP-966: a replica that joins the ISR stays in the ELR."""
    patch.setattr(partition_change, "_eligible", lambda partition, isr, unclean: partition.replicas)


def run_out_of_topic_ids(patch: Any) -> None:
    """C7: topic ids are drawn from a few hundred, so a new topic may get the id of a deleted one."""
    create = ControllerProcess.__init__

    def with_few_ids(self: ControllerProcess, *arguments: Any) -> None:
        create(self, *arguments)
        self.node.context.rng = FewIds(self.node.context.rng)

    patch.setattr(ControllerProcess, "__init__", with_few_ids)


class FewIds:
    def __init__(self, rng: Any) -> None:
        self.below = rng.below

    def uuid(self) -> bytes:
        return bytes([7]) * 8 + (1 + int(self.below(300))).to_bytes(8, "big")


def leave_a_transaction_open(patch: Any) -> None:
    """C8: a new leader does not abort the metadata transaction that the previous leader left open."""
    patch.setattr(server_activation, "activate", lambda ctx, bootstrap: _without_abort(ctx, bootstrap))


def _without_abort(ctx: Any, bootstrap: Any) -> Any:
    decision = activate(ctx, bootstrap)
    decision.records = [one for one in decision.records if type(one.message) is not AbortTransactionRecord]
    return decision


def keep_what_was_aborted(patch: Any) -> None:
    """C8: the records of an aborted metadata transaction stay in the image."""

    def abort(self: Image) -> None:
        self.set_field("transaction_offset", None)

    patch.setattr(Image, "abort_transaction", abort)


def write_the_newest_versions(patch: Any) -> None:
    """C9: partitions are written in the newest version, whatever the metadata.version."""
    for module in (assignment, partition_edits):
        for name in ("partition_record_version", "partition_change_record_version"):
            if hasattr(module, name):
                patch.setattr(module, name, lambda level: 2)


def bootstrap_again(patch: Any) -> None:
    """C10: every leader writes the bootstrap records first."""
    patch.setattr(Image, "features_before_transaction", lambda self: {})


def keep_an_answer_back(patch: Any) -> None:
    """S19: a commit releases all waiting answers but the last, which waits for the next commit."""
    committed = ParkedAnswers.committed

    def late(self: ParkedAnswers, effect: Any) -> None:
        committed(self, structs.replace(effect, append_id=effect.append_id - 1))

    patch.setattr(ParkedAnswers, "committed", late)


def never_read_the_wall_clock_again(patch: Any) -> None:
    """T1: the wall clock is read at the start only."""
    patch.setattr(EffectExecutor, "follow_wall_clock", lambda self: None)


def measure_timeouts_by_the_wall_clock(patch: Any) -> None:
    """T2: a step of the wall clock moves the time by which timeouts are measured."""
    patch.setattr(VirtualTimer, "now_ms", _wall_ms)


def _wall_ms(self: VirtualTimer) -> int:
    clock = self._process.host.clock
    return clock.now_ms(self._schedule.now_us) + clock.wall_ahead_ms()


WITH: dict[str, Any] = {"controllers": True, "voter_count": 3, "act_gap_us": 20_000}
FAILING_OVER: dict[str, Any] = {"faults": ("kill", "isolate leader"), "fault_gap_us": 1_500_000}
JUMPING: dict[str, Any] = {"faults": ("clock jump",), "fault_gap_us": 500_000}

ALL: dict[Any, Planted] = {
    keep_what_was_undone: Planted("C1", "C2", "error", **WITH, **FAILING_OVER),
    skip_a_record_in_the_replay: Planted("C1", "S10", **WITH),
    answer_before_commit: Planted("C2", "S19", **WITH),
    show_what_is_not_committed: Planted("C2", **WITH, sync_us=(20_000, 80_000)),
    forget_to_tell_the_authorizer: Planted("C1", metadata_version=30, **WITH),
    remove_users_in_word_only: Planted("C2", metadata_version=30, **WITH),
    keep_expired_tokens: Planted("C2", metadata_version=30, **WITH),
    let_stale_brokers_in: Planted("C3", **WITH),
    keep_the_partition_epoch: Planted("C4", **WITH),
    take_the_leader_out_of_the_isr: Planted("C4", **WITH),
    take_the_fenced_for_active: Planted("C5", **WITH),
    keep_members_eligible: Planted("C5", "C4", metadata_version=30, **WITH),
    hand_out_producer_ids_again: Planted("C6", "C1", **WITH),
    run_out_of_topic_ids: Planted("C7", "error", **WITH),
    leave_a_transaction_open: Planted("C8", metadata_version=30, **WITH),
    keep_what_was_aborted: Planted("C1", "C8", "S10", "error", metadata_version=30, **WITH),
    write_the_newest_versions: Planted("C9", metadata_version=7, **WITH),
    bootstrap_again: Planted("C10", "C8", **WITH, **FAILING_OVER),
    keep_an_answer_back: Planted("S19", **WITH),
    never_read_the_wall_clock_again: Planted("T1", **WITH, **JUMPING),
    measure_timeouts_by_the_wall_clock: Planted("T2", **WITH, **JUMPING),
}
