"""The decision on each broker or admin request: (image, request) -> (records, answer).

    decision = create_topics(ctx, request, version)  # raises Refusal if the whole request is refused
    decision.records                               # to append, in one batch if decision.atomic
    decision.answer                                # to send once they are committed
    decision.after(end_offset)                     # soft state, once they are appended, on the leader only

A package for each subject: `topics`, `partitions`, `brokers`, `configs`, `features`, `acls`, `quotas`,
`scram`, `tokens`. `context` is what a decision reads: image, time, settings, soft state, random numbers.
`slices` divides a large decision into several event loop callbacks, `record_limit` bounds its records.
`activation` has the first records of a leader. Nothing here changes an image: the replay of committed
records does.
"""
