"""Follows the leaders of partitions: one fetcher a leader and connection, as Kafka's ReplicaFetcherManager.

fetchers.follow(key, hosted)          # after metadata, an opened log, a truncation
fetchers.send()                       # at the end of each step: the requests that are due
effects = fetchers.append_ended(...)  # what was fetched is written
"""
