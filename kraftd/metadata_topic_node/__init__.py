"""Serves the metadata log as a topic to ordinary clients, and the cluster's metadata.

    node = MetadataTopicNode(view, settings, client_registry, new_session_id)
    effects = node.step(FramesReceived(...), now_ms)   # answers, reads, requests to other nodes
    effects = node.step(MetadataMoved(), now_ms)       # after anything that `view` shows has changed
    node.deadline_ms()                                 # when DeadlineReached is due

It knows the cluster only through a `ClusterView`, so it serves on a voter and on an observer of any quorum.
"""
