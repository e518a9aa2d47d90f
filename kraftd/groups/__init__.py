"""Coordinators of groups, without IO: classic groups and committed offsets in ``__consumer_offsets``.

    coordinator = GroupCoordinator(GroupConfig(), topics, new_uuid)
    coordinator.partition_count = 50
    perform(coordinator.step(PartitionElected(7, leader_epoch, log_start, log_end), now_ms))
    perform(coordinator.handle(Call(token, version, client_id, client_host), request, now_ms))
    perform(coordinator.flush(now_ms))  # once an event loop callback: what was written goes out as a batch
    perform(coordinator.step(RecordsAppended(7, batch_id), now_ms))
    perform(coordinator.step(HighWatermarkAdvanced(7, offset), now_ms))
    perform(coordinator.tick(now_ms))  # at coordinator.deadline_ms()

`perform` does what `kraftd.groups.effects` says, in order. An answer is Respond with the call's token.
"""
