"""A partition as a share group reads it, without IO (KIP-932): which records members hold, and until when.

    share = SharePartition(limits, effects)
    share.load(start_offset, state_epoch, kept)
    acquired = acquire(share, read, now_ms)
    acknowledge(share, member_id, acknowledgements, now_ms, then)
    expire(share, now_ms)

`kept` is what the share coordinator has. `share.written` takes its answers to WriteState, and `expire` is due
at `share.deadline_ms`.
"""
