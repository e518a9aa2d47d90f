"""Replicas that hold less than they had shown this leader: logged at once, then once a minute with a count.

A replica loses what it has synced if its directory is restored from an old copy, or if its disk loses writes.
Its epoch goes back with the directory, so it may also vote twice. The leader remembers what each replica has
shown since this process began to lead. Voters are audited and listed. An observer never counts, and an
operator who deletes a broker's metadata log lets it begin anew: for observers there is a line of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from kraftd.raft.effects import ReplicaWentBack
from kraftd.raft.quorum.voters import matches
from kraftd.raft.replica_views import ReplicaView
from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox
from kraftd.requests.repeats import MAX_PEERS, Repeats
from kraftd.types import ReplicaKey, uuid_text

SHOWN_MS = 3_600_000  # how long a replica is listed after it went back, although it has caught up
WENT_BACK = "a replica went back"
OBSERVER_WENT_BACK = "an observer holds less than it had fetched"
REMEDY = (
    "find out whether an old copy of its directory was restored or its disk lost writes, and keep the other "
    "voters running until it has caught up: before, it may elect a leader that lacks committed records"
)


class _Found(Struct):
    """The last that was seen of one voter. `older` is the epoch that it had shown, and the older one."""

    host: str
    at_ms: int
    acknowledged: int = 0
    offset: int | None = None
    older: tuple[int, int] | None = None


class WentBack:
    """Notes replicas that went back. `is_late` tells requests of connections that the replica has replaced:
    those show what it held before.
    """

    def __init__(self, outbox: Outbox, is_late: Callable[[Call, int], bool]) -> None:
        self._outbox = outbox
        self._is_late = is_late
        self._repeats = Repeats()
        self._found: dict[ReplicaKey, _Found] = {}

    def note(self, effect: ReplicaWentBack, now_ms: int) -> None:
        call: Call = effect.request_id  # type: ignore[assignment]
        if self._is_late(call, effect.key.id):
            return
        if effect.is_voter:
            self._keep(effect, call.host, now_ms)
            self._log(effect, call, (effect.key, effect.offset is None))
        else:
            self._log(effect, call, effect.key)

    def _keep(self, effect: ReplicaWentBack, host: str, now_ms: int) -> None:
        one = self._found.pop(effect.key, None)
        if one is None:
            one = _Found(host, now_ms)
            if len(self._found) >= MAX_PEERS:
                del self._found[next(iter(self._found))]
        self._found[effect.key] = one
        one.host, one.at_ms = host, now_ms
        if effect.offset is None:
            one.older = effect.leader_epoch, effect.epoch
        else:
            one.acknowledged, one.offset = effect.acknowledged, effect.offset

    def _log(self, effect: ReplicaWentBack, call: Call, what: object) -> None:
        count = self._repeats.due(what, call.arrived_ns)
        if not count:
            return
        key = effect.key
        fields = {
            "from_node": key.id,
            "directory_id": None if key.directory_id is None else uuid_text(key.directory_id),
            "host": call.host,
            "client_id": call.client_id,
            "principal": str(call.principal),
            "acknowledged": effect.acknowledged,
            "its_log_end": effect.offset,
            "leader_epoch": effect.leader_epoch,
            "its_epoch": effect.epoch,
        }
        if not effect.is_voter:
            self._outbox.log("info", OBSERVER_WENT_BACK, **fields, seen=count)
            return
        fields |= {"remedy": REMEDY, "seen": count}
        self._outbox.log("warning", WENT_BACK, **fields)
        self._outbox.emit(AuditLine(WENT_BACK.removeprefix("a "), -1, fields))

    def lines(self, views: Iterable[ReplicaView], now_ms: int) -> list[str]:
        """One line for each voter that went back within SHOWN_MS or lacks records still: the fault, and what
        to do. A voter that was removed is not listed.
        """
        voters = [one for one in views if one.is_voter]
        lines = []
        for key, found in list(self._found.items()):
            # The voters of a static quorum have no directory ids, and their fetches do.
            view = next((one for one in voters if matches(one.key, key)), None)
            is_short = view is not None and view.is_short
            if not is_short and now_ms - found.at_ms >= SHOWN_MS:
                del self._found[key]
            elif view is not None:
                lines.append(_line(key, found, is_short=is_short))
        return lines

    def __repr__(self) -> str:
        return f"<WentBack {len(self._found)}>"


def _line(key: ReplicaKey, found: _Found, *, is_short: bool) -> str:
    lost = []
    if found.offset is not None:
        is_shorter = found.offset < found.acknowledged
        now = f"its log ended at {found.offset}" if is_shorter else "then it had another log"
        lost.append(f"it had acknowledged the records before offset {found.acknowledged}, and {now}")
    if found.older is not None:
        lost.append(f"its epoch was {found.older[0]}, and then {found.older[1]}")
    if is_short:
        counts = "it does not count towards commits until it has caught up"
    else:
        counts = "it has caught up and counts again"
    return f"node {key.id} at {found.host} went back: {', and '.join(lost)}; {counts}; {REMEDY}"
