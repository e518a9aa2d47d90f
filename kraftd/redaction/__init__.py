"""What readers of the metadata may see: the one place that decides it. Pure.

    shown(TOPIC, "retention.ms", "1000")      # "1000"; of a password or an unknown key "[redacted]"
    hidden_fields(message)                    # the names of a record's fields that hold a secret
    redacted(message)                         # the record without them, as it is served
    redacted_batches(data)                    # the same for whole batches, in slices
    RedactedPieces().append(piece)            # the same for batches in pieces, as snapshots are fetched
    is_blanked(message)                       # whether a record was made so

Replicas copy the log byte for byte and do not pass through here. Everything that cannot be judged is hidden:
keys of configs without a definition, types of records that are not listed, records that cannot be decoded.
"""
