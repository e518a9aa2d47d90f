"""Members, simple consumers, producers and operators that use a coordinator in any order, with failures."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kraftd.groups.batches import Producer
from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.config import GroupConfig
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.sync_group_request import SyncGroupRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.desk import Desk
from tests.groups.model import Owners, Place, check_group, check_replay
from tests.groups.requests import (
    BEAT,
    COMMIT,
    FETCH,
    JOIN,
    LEAVE,
    SYNC,
    beat,
    commit,
    fetch,
    join,
    leave,
    sync,
    txn_commit,
)

GROUPS = ("g", "h")
PARTITIONS = bytes(range(6))
groups = st.sampled_from(GROUPS)
indexes = st.integers(0, 7)
partitions = st.integers(0, 3)
FAILURES = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)


class GroupMachine(RuleBasedStateMachine):
    """Each step asks, then the answers are taken in; invariants are checked in between."""

    def __init__(self) -> None:
        super().__init__()
        config = GroupConfig(group_initial_rebalance_delay_ms=100, group_max_size=4)
        self.desk = Desk(config, 2)
        self.ids: dict[str, list[str]] = {name: [] for name in GROUPS}
        self.instances: dict[str, str] = {}
        self.joins: dict[int, str] = {}
        self.syncs: dict[int, tuple[str, int, str]] = {}
        self.commits: dict[int, tuple[str, Place, int, int]] = {}
        self.offsets: dict[str, dict[Place, int]] = {name: {} for name in GROUPS}
        self.pending: dict[int, dict[tuple[str, Place], int]] = {}
        self.owners = Owners()
        self.taken: set[int] = set()
        self.has_failed = False  # since then, a group may be further than its record, as at Apache Kafka

    # What is there

    def group(self, name: str) -> ClassicGroup | None:
        for shard in self.desk.coordinator.shards.values():
            group = shard.state.classic_group(name)
            if group is not None:
                return group
        return None

    def member(self, name: str, index: int) -> str:
        known = self.ids[name]
        return known[index % len(known)] if known else "stranger"

    def generation(self, name: str) -> int:
        group = self.group(name)
        return 0 if group is None else group.generation

    # Members

    @rule(name=groups, version=st.sampled_from([3, JOIN]))
    def join_new(self, name: str, version: int) -> None:
        self.joins[self.desk.send(join(name), version)] = name

    @rule(name=groups, instance=st.sampled_from(["i0", "i1"]))
    def join_static(self, name: str, instance: str) -> None:
        self.joins[self.desk.send(join(name, instance=instance), JOIN)] = name

    @rule(name=groups, index=indexes, both=st.booleans())
    def join_again(self, name: str, index: int, both: bool) -> None:
        member = self.member(name, index)
        protocols = ("range", "sticky") if both else ("range",)
        group = self.group(name)
        known = None if group is None else group.members.get(member)
        instance = None if known is None else known.instance_id
        self.joins[self.desk.send(join(name, member, instance, protocols=protocols), JOIN)] = name

    @rule(name=groups, index=indexes, stale=st.booleans())
    def sync(self, name: str, index: int, stale: bool) -> None:
        member = self.member(name, index)
        generation = self.generation(name) - int(stale)
        request = self.request_of(name, member, generation)
        self.syncs[self.desk.send(request, SYNC)] = (name, generation, member)

    def request_of(self, name: str, member: str, generation: int) -> SyncGroupRequest:
        """A SyncGroup that gives each member its share."""
        group = self.group(name)
        names = sorted(group.members) if group else []
        shares = {one: PARTITIONS[number :: len(names)] for number, one in enumerate(names)}
        return sync(generation, member, shares, name)

    @rule(name=groups, index=indexes)
    def beat(self, name: str, index: int) -> None:
        group, member = self.group(name), self.member(name, index)
        error = self.desk.answers.get(self.desk.send(beat(self.generation(name), member, group=name), BEAT))
        if group is None or member not in group.members:
            assert error is None or error.error_code != 0  # type: ignore[attr-defined]

    @rule(name=groups, index=indexes)
    def leave(self, name: str, index: int) -> None:
        self.desk.send(leave((self.member(name, index), None), group=name), LEAVE)

    @precondition(lambda self: not self.desk.is_held and self.desk.failure is None)
    @rule(name=groups, newcomers=st.integers(0, 2))
    def rally(self, name: str, newcomers: int) -> None:
        """Members rejoin, others come, all get their partitions."""
        for _ in range(newcomers):
            self.joins[self.desk.send(join(name), 3)] = name
        group = self.group(name)
        if group is None:
            return
        for member in list(group.members.values()):
            if member.awaiting_join is None:
                request = join(name, member.member_id, member.instance_id)
                self.joins[self.desk.send(request, JOIN)] = name
        self.desk.wait(200)
        self.take_answers()
        for member_id in sorted(group.members, key=group.is_leader):
            self.syncs[self.desk.send(self.request_of(name, member_id, group.generation), SYNC)] = (
                name,
                group.generation,
                member_id,
            )
        self.take_answers()

    # Offsets

    @rule(name=groups, index=indexes, partition=partitions, offset=st.integers(0, 99), simple=st.booleans())
    def commit(self, name: str, index: int, partition: int, offset: int, simple: bool) -> None:
        who = (-1, "") if simple else (self.generation(name), self.member(name, index))
        call = self.desk.send(commit(offset, *who, partition=partition, group=name), COMMIT)
        self.commits[call] = (name, ("orders", partition), offset, -1)
        self.take_commits()

    @rule(name=groups, producer=st.integers(1, 2), partition=partitions, offset=st.integers(100, 199))
    def commit_in_transaction(self, name: str, producer: int, partition: int, offset: int) -> None:
        call = self.desk.send(txn_commit(offset, producer, partition=partition, group=name), 3)
        self.commits[call] = (name, ("orders", partition), offset, producer)
        self.take_commits()

    @precondition(lambda self: not self.desk.is_held and self.desk.failure is None)
    @rule(producer=st.integers(1, 2), is_commit=st.booleans())
    def end_transaction(self, producer: int, is_commit: bool) -> None:
        ends: list[ErrorCode] = []
        for number in self.desk.logs:
            place = (number, Producer(producer, 0), 0, is_commit, 0, ends.append, self.desk.now_ms)
            self.desk.perform(self.desk.coordinator.end_transaction(*place))
        self.desk.flush()
        assert ends == [ErrorCode.NONE] * len(self.desk.logs)
        for (name, place_), offset in self.pending.pop(producer, {}).items():
            if is_commit:
                self.offsets[name][place_] = offset

    @precondition(lambda self: not self.desk.is_held and self.desk.failure is None)
    @rule(name=groups, producer=st.integers(1, 2), offset=st.integers(200, 299), is_commit=st.booleans())
    def transaction(self, name: str, producer: int, offset: int, is_commit: bool) -> None:
        """A whole transaction, then a look at the offsets."""
        self.commit_in_transaction(name, producer, 0, offset)
        self.end_transaction(producer, is_commit)
        self.fetch(name, True)

    @precondition(lambda self: not self.desk.is_held)
    @rule(name=groups)
    def delete_group(self, name: str) -> None:
        answer = self.desk.ask(DeleteGroupsRequest((name,)), 2)
        if answer.results[0].error_code == 0:
            self.offsets[name].clear()
            for rows in self.pending.values():
                for key in [key for key in rows if key[0] == name]:
                    del rows[key]

    @precondition(lambda self: not self.desk.is_held)
    @rule(name=groups, stable=st.booleans())
    def fetch(self, name: str, stable: bool) -> None:
        answer = self.desk.ask(fetch(name, topic=None, stable=stable), FETCH).groups[0]
        seen = {
            (topic.name, row.partition_index): row.committed_offset
            for topic in answer.topics
            for row in topic.partitions
            if row.error_code == 0
        }
        expected = dict(self.offsets[name])
        if stable:
            for rows in self.pending.values():
                for open_name, place in rows:
                    if open_name == name:
                        expected.pop(place, None)
        assert seen == expected

    # Time, failures, other brokers

    @rule(time_ms=st.sampled_from([1, 100, 5_000, 10_001, 60_000]))
    def wait(self, time_ms: int) -> None:
        """Let time pass; a high watermark that stood still for seconds would have other answers."""
        if time_ms > 1:
            self.desk.release()
        self.desk.wait(time_ms)

    @precondition(lambda self: self.desk.failure is None)
    @rule(error=st.sampled_from(FAILURES))
    def fail(self, error: ErrorCode) -> None:
        self.desk.release()
        self.desk.failure = error
        self.has_failed = True

    @rule()
    def heal(self) -> None:
        self.desk.failure = None

    @precondition(lambda self: self.desk.failure is None)
    @rule()
    def hold(self) -> None:
        self.desk.is_held = True

    @rule()
    def release(self) -> None:
        self.desk.release()

    @precondition(lambda self: not self.desk.is_held and self.desk.failure is None)
    @rule()
    def move(self) -> None:
        """Another broker takes the partitions over."""
        self.desk.reload()
        self.has_failed = False

    # What follows from answers

    def answer(self, call: int) -> Any:
        found = self.desk.answers.get(call)
        if found is not None:
            self.taken.add(call)
        return found

    def take_commits(self) -> None:
        for call, (name, place, offset, producer) in list(self.commits.items()):
            answer = self.desk.answers.get(call)
            if answer is None:
                # Whether it will be committed is decided already: appends here fail at once or never.
                is_there = self.desk.is_held
            else:
                is_there = answer.topics[0].partitions[0].error_code == 0  # type: ignore[attr-defined]
            del self.commits[call]
            if not is_there:
                continue
            if producer == -1:
                self.offsets[name][place] = offset
                self.later(name, place)
            else:
                self.pending.setdefault(producer, {})[name, place] = offset

    def later(self, name: str, place: Place) -> None:
        """A plain commit is later than those that transactions have sent before: it will outlive them."""
        for producer, rows in self.pending.items():
            if (name, place) in rows:
                rows[name, place] = self.offsets[name][place]
                self.pending[producer] = rows

    def take_answers(self) -> None:
        for call, name in list(self.joins.items()):
            answer = self.answer(call)
            if answer is None:
                continue
            del self.joins[call]
            if (
                answer.error_code in (0, ErrorCode.MEMBER_ID_REQUIRED)
                and answer.member_id not in self.ids[name]
            ):
                self.ids[name].append(answer.member_id)
        for name in GROUPS:
            group = self.group(name)
            for instance, member in (group.static_members if group else {}).items():
                old = self.instances.get(f"{name}/{instance}")
                if old is not None and old != member:
                    self.owners.successor[old] = member
                self.instances[f"{name}/{instance}"] = member
                if member not in self.ids[name]:
                    self.ids[name].append(member)
        for call, (name, generation, member) in list(self.syncs.items()):
            answer = self.answer(call)
            if answer is not None:
                del self.syncs[call]
                if answer.error_code == 0:
                    self.owners.give(name, generation, answer.assignment, member)

    @invariant()
    def groups_fit_their_members(self) -> None:
        self.take_answers()
        for name in GROUPS:
            group = self.group(name)
            if group is not None:
                check_group(group)

    @invariant()
    def a_loaded_coordinator_knows_the_same(self) -> None:
        if not self.desk.is_held:
            check_replay(self.desk, with_groups=not self.has_failed)

    @invariant()
    def memory_is_that_of_members(self) -> None:
        total = sum(
            sum(member.size_bytes() for member in group.members.values()) + 1024 * len(group.pending_join)
            for shard in self.desk.coordinator.shards.values()
            for group in shard.state.groups.values()
            if isinstance(group, ClassicGroup) and group.memory is self.desk.coordinator.memory
        )
        assert self.desk.coordinator.memory.used_bytes == total
