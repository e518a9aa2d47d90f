"""Checks once a second whether a leader answers, and if not, why.

It logs the reasons, and ends a node that can never join. The audit stream has each leader found or lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from kraftd.ground.destination import Destination
from kraftd.ground.ticks import next_tick_ms
from kraftd.host.checks.peer_troubles import PeerTroubles
from kraftd.raft.core import RaftCore
from kraftd.requests.effects import AuditLine
from kraftd.runtime.clock import Clock

POLL_MS = 1_000
LONE_POLL_MS = 5_000  # of the only voter: no other node can be in trouble, and each wakeup costs
REJOIN_AFTER_POLLS = 3  # without a leader: the first one may be just about to be elected


class CannotJoin(Exception):
    """This node can never join the quorum in its state; the text says why and what to do."""


class QuorumLives(Exception):
    """This node's directory is new, but other voters have a log. The text says which."""


def poll_ms(core: RaftCore) -> int:
    """How often a watch of other voters looks."""
    return LONE_POLL_MS if core.is_leader and len(core.voters.ids) == 1 else POLL_MS


def until_tick_s(now_ms: int, period_ms: int) -> float:
    """How long work of that period waits, in seconds."""
    return (next_tick_ms(now_ms, period_ms) - now_ms) / 1000


class PeerWatch:
    """Drives PeerTroubles on the loop. `failed` is called with CannotJoin or QuorumLives."""

    def __init__(
        self,
        troubles: PeerTroubles,
        core: RaftCore,
        clock: Clock,
        log: Any,
        loop: asyncio.AbstractEventLoop,
        failed: Callable[[BaseException], None],
        audit: Callable[[AuditLine], None],
    ) -> None:
        self.troubles = troubles
        self._core = core
        self._clock = clock
        self._log = log
        self._loop = loop
        self._failed = failed
        self._lived_polls = 0  # in a row with a quorum that lives without this new voter
        self._audit = audit
        self._followed: int | None = None  # the leader that answered at the last check
        self._timer = loop.call_later(POLL_MS / 1000, self._report)
        troubles.poll(clock.now_ms(), leader_id=None, leader_answers=False)  # from the start on

    def _report(self) -> None:
        now_ms, core, troubles = self._clock.now_ms(), self._core, self.troubles
        self._timer = self._loop.call_later(until_tick_s(now_ms, poll_ms(core)), self._report)
        self._watch_new_voter()
        troubles.poll(now_ms, leader_id=core.leader_id, leader_answers=core.leader_answers)
        self._note_leader(core.leader_id if core.leader_answers else None)
        for finding, count in troubles.report(now_ms):
            self._log.warning(
                "no leader: a controller does not help to find one",
                at=finding.at,
                peer=finding.node_id if finding.node_id >= 0 else None,
                why=finding.text,
                remedy=finding.remedy,
                seen=count,
            )
        voters = _addresses(core.other_voters()) if troubles.node_id in core.voters.ids else None
        why = troubles.fatal(now_ms, voters, _addresses(core.leader_sources()))
        if why is not None:
            self._failed(CannotJoin(f"this node cannot join the quorum: {why}"))

    def _watch_new_voter(self) -> None:
        """Note which voters the first election waits for; end if the quorum lives."""
        core, new = self._core, self._core.new_voter
        if new is None:
            self.troubles.first_election(())
            self.troubles.volumes_lost(core.voters_without_log if core.epoch else ())
        else:
            living = new.living - core.voters_without_log
            self.troubles.first_election(() if core.epoch else new.awaited, living)
        if new is None or not new.rejoins or not (new.living or core.epoch):
            self._lived_polls = 0
            return
        self._lived_polls += 1
        leads = core.leader_id is not None and core.leader_id not in new.empty
        if leads or self._lived_polls >= REJOIN_AFTER_POLLS:
            led = "no leader is known" if core.leader_id is None else f"controller {core.leader_id} leads"
            voters = ", ".join(map(str, sorted(new.living))) or "another controller"
            self._failed(QuorumLives(f"{voters} has a log; {led} in epoch {core.epoch}"))

    def _note_leader(self, leader_id: int | None) -> None:
        before, self._followed = self._followed, leader_id
        if leader_id == before:
            return
        own_id, epoch = self.troubles.node_id, self._core.epoch
        if before not in (None, own_id):
            self._audit(AuditLine("leader lost", -1, {"leader": before, "epoch": epoch}))
        if leader_id not in (None, own_id):
            self._audit(AuditLine("leader found", -1, {"leader": leader_id, "epoch": epoch}))

    def stop(self) -> None:
        self._timer.cancel()

    def __repr__(self) -> str:
        return f"<PeerWatch {self.troubles!r}>"


def _addresses(nodes: Iterable[Destination]) -> list[str]:
    return [f"{one.host}:{one.port}" for one in nodes]
