"""What share groups forget of topics that are deleted."""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.groups.outcome import Outcome
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.records import state_record
from kraftd.groups.share.state_partitions import without_topics
from kraftd.groups.state import ShardState


def remove_state_of_topics(
    state: ShardState, topic_ids: frozenset[bytes], group_ids: Iterable[str]
) -> Outcome:
    """Forget which partitions of deleted topics were read; the share coordinator forgets them by itself."""
    records = []
    for group_id in group_ids:
        group = state.groups.get(group_id)
        known = group.known() if isinstance(group, ShareGroup) else None
        if known is not None:
            mentioned = {*known.initializing, *known.initialized, *known.deleting}
            if not topic_ids.isdisjoint(mentioned):
                records.append(state_record(group_id, without_topics(known, topic_ids), state.metadata))
    return Outcome(records, atomic=False)
