"""Parked fetches and incremental fetch sessions (KIP-227, KIP-1166).

parked = ParkedFetches(FetchSessions(source, CacheLimits(), new_id))
for fetch_id, response in parked.fetch(call, request, version, now_ms):
    ...                                     # answered at once; otherwise it waits for MinBytes
parked.changed((topic, index), now_ms)      # after an append or a moved mark: what is complete now
parked.expire(now_ms)                       # when parked.deadline_ms() is reached
"""
