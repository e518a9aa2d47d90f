"""Asks every broker, kraftd's or Apache Kafka's, for its log directories: which are offline, and how full."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from kraftd.cli.doctor.findings import Finding, note, ok, problem
from kraftd.cli.doctor.judge_disk import size_text
from kraftd.cli.doctor.judge_replicas import REPAIR_DISK, is_full
from kraftd.cli.doctor.replica_probe import connected
from kraftd.client.failures import ClientFailure
from kraftd.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kraftd.messages.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from kraftd.wire.error_code import ErrorCode, error_name

if TYPE_CHECKING:
    from kraftd.metadata.image import Image

MAKE_ROOM = "make room on that disk: the broker takes no more records there"


async def describe_directories(
    image: Image, broker_ids: Iterable[int], near: bool, timeout_s: float
) -> dict[int, DescribeLogDirsResponse]:
    """The answers of brokers, each asked once. One that is not reached has none: its listeners are judged
    elsewhere.

    `near`: the brokers may be on this machine, so that their loopback addresses lead to them.
    """
    broker_ids = list(dict.fromkeys(broker_ids))
    answers = await asyncio.gather(*(_described(image, one, near, timeout_s) for one in broker_ids))
    by_broker = zip(broker_ids, answers, strict=True)
    return {broker_id: answer for broker_id, answer in by_broker if answer is not None}


async def _described(
    image: Image, broker_id: int, near: bool, timeout_s: float
) -> DescribeLogDirsResponse | None:
    try:
        async with await connected(image, broker_id, near, timeout_s) as broker:
            return await broker.ask(DescribeLogDirsRequest([]), DescribeLogDirsResponse)
    except ClientFailure:
        return None


def offline_directories(answer: DescribeLogDirsResponse) -> tuple[str, ...]:
    """The log directories that a broker calls offline."""
    return tuple(one.log_dir for one in answer.results if one.error_code == ErrorCode.KAFKA_STORAGE_ERROR)


def judge_described(
    broker_id: int, answer: DescribeLogDirsResponse, *, is_own: bool = False, full: Collection[str] = ()
) -> Iterator[Finding]:
    """The findings of one broker's answer, but for what is known to be full (`probe_brokers`)."""
    node = f"node {broker_id}"
    if answer.error_code:
        why = error_name(answer.error_code)
        yield note("directories", node, f"it does not describe its log directories: {why}")
        return
    rooms = []
    for one in answer.results:
        if one.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            yield problem("directories", node, f"its log directory {one.log_dir} is offline", REPAIR_DISK)
        elif not one.error_code and is_full(one.total_bytes, one.usable_bytes):
            if (one.log_dir if is_own else f"{node} {one.log_dir}") not in full:
                text = f"the disk of its {one.log_dir} is full: {_room(one)}"
                yield problem("directories", node, text, MAKE_ROOM)
        elif not one.error_code:
            rooms.append(f"{one.log_dir} ({_room(one)})")
    if rooms and len(rooms) == len(answer.results):
        yield ok("directories", node, f"its log directories are online: {', '.join(rooms)}")


def _room(one: DescribeLogDirsResult) -> str:
    """An answer of before version 4 has no sizes (KIP-827)."""
    if one.usable_bytes < 0:
        return "its room is not known"
    percent = 100 * one.usable_bytes / max(1, one.total_bytes)
    return f"{size_text(one.usable_bytes)} free, {percent:.0f}%"
