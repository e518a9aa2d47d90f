"""Kafka's metrics of a controller that kraftd does not have, and why.

A pattern is matched with the whole of `domain:type=TYPE,name=NAME`, or `domain:type=TYPE attribute`.
"""

from __future__ import annotations

import re

_CLIENTS = r"kafka\.server:type=(raft-channel-metrics|registration-metrics|socket-server-metrics)"

ABSENT: tuple[tuple[str, str], ...] = (
    (
        r"kafka\.server:type=BrokerTopicMetrics,name=.*",
        "of a broker's data: Kafka's controller has them too, and they stay 0",
    ),
    (
        r"kafka\.server:type=(Fetch|Produce|Request|ControllerMutation) .*",
        "of quotas: a controller has none, and none are enforced",
    ),
    (
        r"kafka\.server:type=DelayedOperationPurgatory,name=.*",
        "of changes of ACLs that wait for an authorizer: decisions like all others; what waits is in "
        "kraftd_parked_answers",
    ),
    (
        rf"{_CLIENTS} .*authentication.*",
        "of logins: kraftd_logins counts those of both ways",
    ),
    (
        rf"{_CLIENTS} .*-rate",
        "a rate that Prometheus makes of a counter: rate() of the metric of the same name with -total",
    ),
    (
        rf"{_CLIENTS} (io-.*|select-.*)",
        "of Java's selector: one event loop does all of it, see poll-idle-ratio-avg",
    ),
    (
        rf"{_CLIENTS} request-size-(avg|max)",
        "on average outgoing-byte-total over request-total; the other side tells all sizes, in RequestBytes",
    ),
    (
        r"kafka\.server:type=socket-server-metrics "
        r"(request|response|network-io|incoming-byte|outgoing-byte)-total",
        "requests and their sizes are counted by API: RequestsPerSec and RequestBytes of RequestMetrics",
    ),
    (
        r"kafka\.server:type=socket-server-metrics (connections|.*throttle.*|expired-connections-killed-count"
        r"|MemoryPool.*|slow-.*)",
        "connections are neither throttled nor told apart by client software; connection-count has them all",
    ),
    (
        r"kafka\.server:type=(app-info|kafka-metrics-count) .*|kafka\.server:type=ControllerServer,"
        r"name=yammer-metrics-count",
        "of Kafka itself: kraftd_info and process_start_time_seconds say as much of kraftd",
    ),
    (
        r"kafka\.log:type=Log,name=RetentionSizeInPercent",
        "of topics with retention.bytes: the metadata log is bounded by snapshots, and Kafka's says 0",
    ),
    (
        r"kafka\.network:type=(Acceptor|Processor),name=.*",
        "of threads of the network: there is one event loop, see NetworkProcessorAvgIdlePercent",
    ),
    (
        r"kafka\.network:type=RequestChannel,name=ResponseQueueSize",
        "of a queue that there is not: an answer is written in the turn in which it is made",
    ),
    (
        r"kafka\.network:type=RequestMetrics,name=(RequestQueueTimeMs|ResponseQueueTimeMs|ResponseSendTimeMs)",
        "of queues between threads: a request is handled and answered in one turn of the event loop; "
        "what a turn has to wait is in EventQueueTimeMs",
    ),
    (
        r"kafka\.network:type=RequestMetrics,name="
        r"(ThrottleTimeMs|TemporaryMemoryBytes|MessageConversionsTimeMs)",
        "of quotas and of converted records: there are neither",
    ),
    (
        r"kafka\.server:type=plugins .*",
        "of plugins, the authorizer among them: kraftd_authorizations_denied counts its denials",
    ),
    (
        r"kafka\.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
        "of SASL sessions that expire: kraftd_logins counts them",
    ),
)


def why_absent(bean: str) -> str | None:
    """Why there is no metric of that name here; None for one that there should be."""
    return next((why for pattern, why in ABSENT if re.fullmatch(pattern, bean)), None)
