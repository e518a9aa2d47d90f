"""Reads the metadata of a cluster, and asks the listeners that its brokers advertise."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from kraftd.cli.doctor import peer_probe
from kraftd.cli.doctor.directory_probe import describe_directories, judge_described, offline_directories
from kraftd.cli.doctor.findings import Finding, note
from kraftd.cli.doctor.judge_cluster import (
    judge_directories,
    judge_endpoint,
    judge_partitions,
    judge_reassignments,
    judge_registered,
)
from kraftd.cli.doctor.judge_leaderless import brokers_with_lost_disk, judge_leaderless
from kraftd.cli.doctor.judge_replicas import judge_replicas
from kraftd.cli.doctor.judge_throttles import judge_throttles
from kraftd.cli.doctor.replica_probe import LOOPBACK, find_behind, look_at
from kraftd.cli.failures import CommandFailure
from kraftd.client.failures import ClientFailure
from kraftd.log.errors import StorageError

if TYPE_CHECKING:
    from kraftd.metadata.image import Image
    from kraftd.metadata.state import BrokerState
    from kraftd.metrics.state.survey import Survey
    from kraftd.types import Endpoint

MAX_BROKERS = 50  # whose listeners are asked


async def probe_brokers(
    bootstrap: str, timeout_s: float, own_id: int | None, full: Collection[str] = ()
) -> list[Finding]:
    """All findings about brokers and partitions. own_id: that of this machine's node. full: log directories
    that are known to be, as paths of this node, or behind `node ID ` as those of others.
    """
    from kraftd.cli.cluster_options import opened_source
    from kraftd.cli.metadata.replaying import load
    from kraftd.cli.quorum.leader import parse_addresses
    from kraftd.cli.sources.source import Limit

    try:
        async with opened_source(bootstrap, None, timeout_s) as source:
            image = (await load(source, Limit())).image
            surveyed = _surveyed(image)
            behind = await find_behind(source, image, surveyed)
    except (CommandFailure, ClientFailure, StorageError) as failure:
        text = " ".join(str(failure).split())
        return [note("brokers", "cluster", f"the metadata was not read: {text}")]
    near = any(host in LOOPBACK for host, _ in parse_addresses(bootstrap))
    seen = await look_at(image, behind, near, timeout_s)
    running, lost = _running(image), brokers_with_lost_disk(image)
    described, listeners = await asyncio.gather(
        describe_directories(image, [*running, *lost], near, timeout_s),
        _probe_listeners(image, timeout_s, own_id, near),
    )
    offline = {one: offline_directories(described[one]) for one in lost if one in described}
    return [
        *judge_registered(image),
        *judge_directories(image),
        *judge_leaderless(image, offline),
        *judge_partitions(surveyed),
        *judge_reassignments(image),
        *judge_replicas(image, behind, seen),
        *judge_throttles(image, surveyed),
        *(
            found
            for one in running
            if one in described
            for found in judge_described(one, described[one], is_own=one == own_id, full=full)
        ),
        *listeners,
    ]


def _running(image: Image) -> list[int]:
    """The brokers that run, the first ones of many."""
    return sorted(one.id for one in image.brokers.values() if not one.fenced)[:MAX_BROKERS]


def _surveyed(image: Image) -> Survey:
    from kraftd.metrics.state.survey import survey

    steps = survey(image)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Survey = end.value
            return found


async def _probe_listeners(image: Image, timeout_s: float, own_id: int | None, near: bool) -> list[Finding]:
    asked = list(_listeners(image, own_id, near))
    addresses = [(one.host, one.port) for _, one in asked]
    answers = await peer_probe.probe_all(addresses, timeout_s)
    return [
        judge_endpoint(one.id, endpoint, answer, is_fenced=one.fenced, is_own=one.id == own_id)
        for (one, endpoint), answer in zip(asked, answers, strict=True)
    ]


def _listeners(image: Image, own_id: int | None, near: bool) -> Iterator[tuple[BrokerState, Endpoint]]:
    """The listeners of brokers that are not shut down.

    A loopback address is asked if it may lead to the broker: of this machine's, or if `near`.
    """
    for one in sorted(image.brokers.values(), key=lambda one: one.id)[:MAX_BROKERS]:
        for endpoint in one.listeners:
            is_down = one.fenced and one.in_controlled_shutdown
            if not is_down and (near or one.id == own_id or endpoint.host not in LOOPBACK):
                yield one, endpoint
