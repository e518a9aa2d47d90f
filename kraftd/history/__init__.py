"""The events and the state of a cluster in words: pure, over the metadata image.

    story = Story(image)                              # an image as of some offset
    for event in story.describe(messages, offset=71, epoch=3, timestamp_ms=...):
        print(event.offset, event.text)               # "orders-0: leader moved from broker 1 to broker 2"
    find(tree_of(image), "topics/byName/orders/0")    # the state as a tree, as metadata-shell shows it
    differences(before, after)                        # what differs between two offsets

The caller reads the records: from a directory, a quorum, a file.
"""
