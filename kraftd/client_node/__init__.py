"""What ordinary clients ask of a kraftd node: the cluster's metadata, and the metadata log as a topic.

    node = ClientNode(view, settings, new_session_id)
    effects = node.step(FramesReceived(...), now_ms)   # answers, reads, requests to other nodes
    effects = node.step(MetadataMoved(), now_ms)       # after anything that `view` shows has changed
    node.deadline_ms()                                 # when DeadlineReached is due

Knows the cluster by a `ClusterView` alone, so that it serves on a voter as on an observer of any quorum.
"""
