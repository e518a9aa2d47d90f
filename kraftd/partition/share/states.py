"""What becomes of a record that is delivered to a share group."""

from __future__ import annotations

from enum import IntEnum


class RecordState(IntEnum):
    """Numbers are those of the share coordinator; it keeps no acquired records."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


AVAILABLE, ACQUIRED = RecordState.AVAILABLE, RecordState.ACQUIRED
ACKNOWLEDGED, ARCHIVED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED

# A record in one of these is delivered no more.
TERMINAL = frozenset((ACKNOWLEDGED, ARCHIVED))

TRANSITIONS: dict[RecordState, frozenset[RecordState]] = {
    AVAILABLE: frozenset((ACQUIRED,)),
    ACQUIRED: frozenset((AVAILABLE, ACKNOWLEDGED, ARCHIVED)),
    ACKNOWLEDGED: frozenset(),
    ARCHIVED: frozenset(),
}

# What a member acknowledges: the types of KIP-932, and of KIP-1222.
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
STATE_AFTER = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}
