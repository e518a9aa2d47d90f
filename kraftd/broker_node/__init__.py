"""The node of a broker, without IO: registered with the controllers, seen in Metadata, shut down in order.

    node = BrokerNode(view, settings, broker_registry, broker)
    effects = node.step(FramesReceived(...), now_ms)   # answers, and requests to controllers
    effects = node.step(MetadataMoved(), now_ms)       # after anything that `view` shows has changed
    node.deadline_ms()                                 # when DeadlineReached is due

It stands beside a replica of the metadata log, a controller's or an observer's, and knows it through a view.
"""
