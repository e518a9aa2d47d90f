"""What the broker does for the share coordinator, besides `kraftd.groups.effects`."""

from __future__ import annotations

from kraftd.ground.effect import Effect


class PruneRecords(Effect, frozen=True):
    """Delete records of ``__share_group_state``, of a partition below an offset: later ones repeat them."""

    partition: int
    leader_epoch: int
    offset: int
