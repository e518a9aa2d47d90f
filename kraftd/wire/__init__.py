"""The wire: messages, frames and record batches as bytes and back, bounded by their input. No IO.

    parts = encode(message, version); message = decode(cls, version, view)     # codec: API messages
    data = build_batch([encode_record(record)], base_offset, epoch, now_ms)    # batch, record_frame: the log
    for batch in iter_batches(data): messages = decode_batch(batch)

Public: `codec`, `frames`, `batch`, `record_frame`, `compression`, `api` (keys and versions), `error_code` and
`errors`. `engine` chooses the C engine or the one in Python, which give equal results; docs/codecs.md has the
map. The classes of messages are generated, in `kraftd.messages`.
"""
