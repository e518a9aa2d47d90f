"""The share coordinator, without IO: how far share groups have come in each partition (KIP-932), kept in
``__share_group_state``.

    coordinator = ShareCoordinator(ShareStateConfig(), topics)
    coordinator.is_enabled = True  # the cluster has share groups
    perform(coordinator.handle(Call(token, version), request, now_ms))

Partitions are loaded, written and flushed as those of groups are (`kraftd.groups`). Besides, `perform`
deletes the records that PruneRecords names.
"""
