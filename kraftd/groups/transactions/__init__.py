"""Coordinators of transactions, without IO: transactional ids in ``__transaction_state``.

    coordinator = TransactionCoordinator(TransactionConfig(), topics, group_partition_for)
    coordinator.transaction_version = 2  # of the cluster
    perform(coordinator.handle(Call(token, version), request, now_ms))

Partitions are loaded, written and flushed as those of groups are (`kraftd.groups`). Besides, `perform` sends
the markers of a SendMarkers, gives each leader's answer as MarkersAnswered, and answers TakeProducerId.
"""
