"""Share groups of one kraftd process, as Kafka's tools and kraftd's own commands see them (KIP-932)."""

from __future__ import annotations

import json

import pytest

from tests.cli.run import run_apart
from tests.kafka.one_broker.test_whole_kafka import WholeKafka, kafka, numbers

__all__ = ["kafka"]

pytestmark = pytest.mark.kafka


def offsets(kafka: WholeKafka, group: str) -> dict[str, tuple[int, int]]:
    """Where a group begins, and what it lacks, of each partition."""
    out = kafka.tool("share-groups", "--describe", "--group", group, "--offsets").out
    rows = [row.split() for row in out.splitlines() if row.startswith(group)]
    return {f"{row[1]}-{row[2]}": (int(row[3]), int(row[4])) for row in rows}


def test_share_groups_are_reset_read_and_deleted_by_tools(kafka: WholeKafka) -> None:
    kafka.tool("topics", "--create", "--topic", "work", "--partitions", 1, "--replication-factor", 1)
    kafka.produce("work", *numbers(0, 20))
    chosen = "--group", "crew", "--topic", "work"
    kafka.tool("share-groups", "--reset-offsets", *chosen, "--to-earliest", "--execute")
    assert offsets(kafka, "crew") == {"work-0": (0, 20)}
    assert "Share" in kafka.tool("groups", "--list").out
    done = run_apart(
        "groups", "reset", "crew", "--by-shift", 5, "--execute", "--json", "--bootstrap", kafka.bootstrap
    )
    assert done.code == 0, done
    assert offsets(kafka, "crew") == {"work-0": (5, 15)}
    shown = run_apart("groups", "describe", "crew", "--json", "--bootstrap", kafka.bootstrap)
    assert json.loads(shown.out)["type"] == "share"
    limits = "--max-messages", 15, "--timeout-ms", 20_000
    done_by_members = kafka.tool("console-share-consumer", "--topic", "work", "--group", "crew", *limits)
    assert done_by_members.out.split() == numbers(5, 20)
    assert offsets(kafka, "crew")["work-0"][1] == 0
    shown = run_apart("groups", "describe", "crew", "--json", "--bootstrap", kafka.bootstrap)
    assert json.loads(shown.out)["lag"] == 0, "records behind the offset are done"
    assert "Successful" in kafka.tool("share-groups", "--delete-offsets", *chosen).out
    assert offsets(kafka, "crew") == {}
    assert "successful" in kafka.tool("share-groups", "--delete", "--group", "crew").out
    assert "crew" not in kafka.tool("share-groups", "--list").out
