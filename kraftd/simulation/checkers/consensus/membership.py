"""S13, S14: voter sets change one voter at a time, after a commit in the epoch."""

from __future__ import annotations

from kraftd.messages.voters_record import VotersRecord
from kraftd.raft import effects as raft
from kraftd.raft.quorum.voters import VoterSet, matches
from kraftd.simulation.checkers.checker import Checker, OnEffect
from kraftd.simulation.processes.process import Process
from kraftd.wire.batch import control_records, iter_batches


class MembershipChecker(Checker):
    """Checks the control batches that leaders write."""

    def effects(self) -> dict[type, OnEffect]:
        return {raft.AppendRecords: self.appending}

    def appending(self, process: Process, effect: raft.AppendRecords) -> None:
        core = process.core
        if not core.is_leader or effect.epoch != core.epoch:
            return
        world, base = self.world, effect.base_offset
        first = world.epoch_starts.setdefault(effect.epoch, base) == base
        for batch in iter_batches(effect.data, verify=False):
            if not batch.header.is_control:
                continue
            for record in control_records(batch):
                if isinstance(record.message, VotersRecord):
                    after = VoterSet.from_record(record.message)
                    self._changed(process, core.voters_at(base - 1), after, base, first=first)

    def _changed(
        self, process: Process, before: VoterSet, after: VoterSet, base: int, *, first: bool
    ) -> None:
        ids = set(before.ids) ^ set(after.ids)
        others = [
            voter.key
            for voter in after
            if (old := before.get(voter.key.id)) is not None and not matches(old.key, voter.key)
        ]
        changes = len(ids) + len(others)
        if changes > 1:
            self.fail("S13", f"{process!r} changes {changes} voters at once: {before!r} to {after!r}")
        if changes and first:
            self.fail("S13", f"{process!r} changes the voters with the first records of its epoch")
        if changes and process.core.high_watermark <= self.world.epoch_starts[process.core.epoch]:
            self.fail("S13", f"{process!r} changes the voters before a commit in its epoch")
        if changes:
            self.world.trace.kinds["voters changed"] += 1
            last = self.world.last_voters_offset.get(process.core.epoch, -1)
            if last >= process.core.high_watermark:
                self.fail("S13", f"{process!r} changes the voters, the change at {last} is not committed")
            self.world.last_voters_offset[process.core.epoch] = base
