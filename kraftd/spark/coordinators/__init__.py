"""The tables of coordinators: what brokers' directories tell of groups and transactions.

`partitions` finds the directories, `records` reads them. A partition of ``__consumer_offsets`` or
``__transaction_state`` has all that concerns its groups or transactional ids, so each is replayed alone:
`offsets`, `groups` and `transactions` make its rows, and `tables` writes those of all.
"""
