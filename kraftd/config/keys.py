"""The keys that kraftd reads, what for, and its own; any other key of Kafka's is accepted and without
effect.
"""

from __future__ import annotations

from kraftd.configdef import facts
from kraftd.configdef.definition import ConfigDef

OWN_PREFIX = "kraftd."

# Keys of kraftd's own, as rows of a definition.
OWN_ROWS: tuple[facts.Row, ...] = (
    ("kraftd.log.format", "string", "auto", ("in", ("auto", "console", "json")), ""),
    ("kraftd.log.level", "string", "info", ("in", ("debug", "info", "warning", "error")), ""),
    ("kraftd.metrics.listener", "string", "", None, ""),
    ("kraftd.shutdown.timeout.ms", "int", "10000", ("range", 0, None), ""),
    ("kraftd.metadata.snapshot.min.changed.records.ratio", "double", "0.0", ("range", 0, 1), ""),
    ("kraftd.metadata.snapshot.timeout.ms", "int", "600000", ("range", 1, None), ""),
    ("kraftd.scrub.interval.ms", "long", "86400000", ("range", 0, None), ""),
)
OWN = ConfigDef(OWN_ROWS)

# Key -> what kraftd does with it.
USED: dict[str, str] = {
    "process.roles": "must be controller",
    "node.id": "this node's id in the cluster",
    "broker.id": "another name of node.id",
    "listeners": "where the daemon listens, name://host:port; an empty host is every interface",
    "advertised.listeners": "how others reach those listeners",
    "controller.listener.names": "which listeners are the controllers'; the quorum talks through the first",
    "listener.security.protocol.map": "the security protocol of each listener; only PLAINTEXT is served",
    "controller.quorum.voters": "the voters of a static quorum, id@host:port",
    "controller.quorum.bootstrap.servers": "where a dynamic quorum is found, host:port",
    "controller.quorum.auto.join.enable": "whether a controller that is no voter asks to become one",
    "controller.quorum.election.timeout.ms": "how long a vote may take before another round",
    "controller.quorum.election.backoff.max.ms": "the longest pause between two rounds of voting",
    "controller.quorum.fetch.timeout.ms": "without the leader, or a majority, for so long: a new election",
    "controller.quorum.request.timeout.ms": "how long another controller may take to answer",
    "controller.quorum.retry.backoff.ms": "the pause before a failed request is sent again",
    "controller.quorum.append.linger.ms": "no write waits for a timer, all go out with the next fsync",
    "controller.quorum.fetch.max.bytes": "the most that a follower asks for in one Fetch",
    "controller.quorum.fetch.snapshot.max.bytes": "the most that it asks for in one FetchSnapshot",
    "log.dir": "the data directory, when log.dirs is not set",
    "log.dirs": "the data directories; the first holds the metadata log unless metadata.log.dir is set",
    "metadata.log.dir": "the directory of the metadata log",
    "metadata.log.segment.bytes": "size at which a new segment is begun",
    "internal.metadata.log.segment.bytes": "the same, below its least value, for tests",
    "metadata.log.segment.ms": "age at which a new segment is begun",
    "metadata.log.max.record.bytes.between.snapshots": "so many bytes of records make a snapshot due",
    "metadata.log.max.snapshot.interval.ms": "so much time makes a snapshot due; 0 is never",
    "metadata.max.retention.bytes": "how much log and snapshots are kept",
    "metadata.max.retention.ms": "how long log and snapshots are kept",
    "metadata.max.idle.interval.ms": "how often an idle leader writes a NoOpRecord; 0 is never",
    "internal.metadata.max.batch.size.in.bytes": "the most bytes in one batch of records",
    "internal.metadata.delete.delay.millis": "how long a segment that is no longer needed stays on disk",
    "broker.session.timeout.ms": "a broker that is silent for so long is fenced",
    "broker.heartbeat.interval.ms": "only compared with broker.session.timeout.ms",
    "num.partitions": "partitions of a new topic whose creator names no number",
    "default.replication.factor": "replicas of a new topic whose creator names no number",
    "delete.topic.enable": "whether topics may be deleted",
    "auto.leader.rebalance.enable": "whether leadership goes back to preferred replicas by itself",
    "leader.imbalance.check.interval.seconds": "how often that is looked at",
    "unclean.leader.election.interval.ms": "how often an unclean election is looked for",
    "remote.log.storage.system.enable": "whether topics may have remote.storage.enable=true",
    "socket.request.max.bytes": "the largest request",
    "socket.listen.backlog.size": "connections that may wait to be accepted",
    "max.connections": "connections at once",
    "max.connections.per.ip": "connections at once from one address",
    "max.connections.per.ip.overrides": "the same for single addresses, host:number",
    "connections.max.idle.ms": "a connection that is silent for so long is closed",
    "queued.max.requests": "requests of one connection that may be in work",
    "queued.max.request.bytes": "bytes of requests that may be held at once; -1 is kraftd's own limit",
    "unstable.api.versions.enable": "whether unstable versions of APIs are served",
    "unstable.feature.versions.enable": "whether unstable feature levels may be set",
    "inter.broker.listener.name": "only checked: it is no controller listener",
    "security.inter.broker.protocol": "only checked against inter.broker.listener.name",
    "early.start.listeners": "only checked: they must be listeners",
    "kraftd.log.format": "console, json, or auto: console on a terminal, json elsewhere",
    "kraftd.log.level": "debug, info, warning or error",
    "kraftd.metadata.snapshot.min.changed.records.ratio": (
        "the part of the last snapshot's records that must have changed before bytes make another due; "
        "0 is none"
    ),
    "kraftd.metadata.snapshot.timeout.ms": (
        "how long the process that makes a snapshot may take before it is killed"
    ),
    "kraftd.metrics.listener": (
        "where /metrics, /healthz and /readyz are served over HTTP, host:port; an empty host is every "
        "interface; nowhere when not set"
    ),
    "kraftd.scrub.interval.ms": "how often everything on disk is read and checked; 0 is never",
    "kraftd.shutdown.timeout.ms": "how long a stop may wait for requests in work",
}

# Kafka's keys that would change who may do what: kraftd does not start with a promise that it does not keep.
UNSUPPORTED: dict[str, str] = {
    "authorizer.class.name": "kraftd checks no authorization; remove the key to let the network protect it",
    "config.providers": "kraftd resolves no variables; write the values themselves",
    "create.topic.policy.class.name": "kraftd runs no Java classes; remove the key to do without the policy",
    "alter.config.policy.class.name": "kraftd runs no Java classes; remove the key to do without the policy",
}


TOPIC_SOURCES = frozenset(server for servers in facts.TOPIC_SYNONYMS.values() for server, _ in servers)
GROUP_KINDS = ("group.consumer.", "group.share.", "group.streams.")


def is_source_of_resource_configs(name: str) -> bool:
    """Whether a server key gives topics or groups a default, or limits them: kraftd reads those too."""
    return name in TOPIC_SOURCES or name.startswith(GROUP_KINDS)
