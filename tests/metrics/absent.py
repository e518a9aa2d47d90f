"""Kafka's metrics of a controller that kraftd lacks, with reasons.

A pattern is matched with the whole of `domain:type=TYPE,name=NAME`, or `domain:type=TYPE attribute`.
"""

from __future__ import annotations

import re

_CLIENTS = r"kafka\.server:type=(raft-channel-metrics|registration-metrics|socket-server-metrics)"

ABSENT: tuple[tuple[str, str], ...] = (
    (
        r"kafka\.server:type=BrokerTopicMetrics,name=.*",
        "about a broker's data; at Kafka's controller they stay 0",
    ),
    (
        r"kafka\.server:type=(Fetch|Produce|Request|ControllerMutation) .*",
        "about the rates of single clients with a quota; kraftd has no metric for each client",
    ),
    (
        r"kafka\.server:type=DelayedOperationPurgatory,name=.*",
        "about ACL changes that wait for an authorizer; kraftd_parked_answers counts them "
        "with all other decisions",
    ),
    (
        rf"{_CLIENTS} .*authentication.*",
        "about logins; kraftd_logins counts them, by TLS and by SASL",
    ),
    (
        rf"{_CLIENTS} .*-rate",
        "a rate; use rate() of the counter of the same name with -total",
    ),
    (
        rf"{_CLIENTS} (io-.*|select-.*)",
        "about Java's selector; kraftd has one event loop: poll-idle-ratio-avg",
    ),
    (
        rf"{_CLIENTS} request-size-(avg|max)",
        "the average is outgoing-byte-total divided by request-total; the receiver has RequestBytes",
    ),
    (
        r"kafka\.server:type=socket-server-metrics "
        r"(request|response|network-io|incoming-byte|outgoing-byte)-total",
        "requests and their sizes are counted for each API: RequestsPerSec and RequestBytes "
        "of RequestMetrics",
    ),
    (
        r"kafka\.server:type=socket-server-metrics (connections|.*throttle.*|expired-connections-killed-count"
        r"|MemoryPool.*|slow-.*)",
        "kraftd neither throttles connections nor counts them by client software; "
        "connection-count counts all",
    ),
    (
        r"kafka\.server:type=(app-info|kafka-metrics-count) .*|kafka\.server:type=ControllerServer,"
        r"name=yammer-metrics-count",
        "about Kafka itself; kraftd_info and process_start_time_seconds say the same about kraftd",
    ),
    (
        r"kafka\.network:type=(Acceptor|Processor),name=.*",
        "about network threads; kraftd has one event loop: NetworkProcessorAvgIdlePercent",
    ),
    (
        r"kafka\.network:type=RequestChannel,name=ResponseQueueSize",
        "about a queue that kraftd does not have; an answer is written as soon as it is made",
    ),
    (
        r"kafka\.network:type=RequestMetrics,name=(RequestQueueTimeMs|ResponseQueueTimeMs|ResponseSendTimeMs)",
        "about queues between threads, which kraftd does not have; "
        "the wait for the event loop is in EventQueueTimeMs",
    ),
    (
        r"kafka\.network:type=RequestMetrics,name="
        r"(ThrottleTimeMs|TemporaryMemoryBytes|MessageConversionsTimeMs)",
        "the answer itself says how long a client is throttled; kraftd converts no records",
    ),
    (
        r"kafka\.server:type=plugins .*",
        "about plugins such as the authorizer; kraftd_authorizations_denied counts its denials",
    ),
    (
        r"kafka\.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
        "about SASL sessions that expire; kraftd_logins counts them",
    ),
)


def why_absent(bean: str) -> str | None:
    """The reason why kraftd has no metric of that name; None if it should have one."""
    return next((why for pattern, why in ABSENT if re.fullmatch(pattern, bean)), None)
