"""The metadata image: the state that the records make, replayed in offset order.

    image = Image()
    image.apply_all(messages, offset, epoch)
    image.topic_named("orders")
    snapshot = list(image.records())

``tables`` holds the state, its indexes and the undo journal; only setters change it. ``replay`` (one function
a record), ``partition_runs`` (many new partitions at once) and ``snapshot_records`` (the state as records)
build on it. ``image`` joins them. Other packages use ``image``, ``state`` (values) and ``features``.
"""
