"""No reader's output has a secret: random credentials, tokens and configs through every view of them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.history.difference import differences
from kraftd.history.story import Story
from kraftd.history.tree import Provenance, leaves, tree_of
from kraftd.log.memory_disk import MemoryDisk
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.metadata_dir.showing.dump import dump
from kraftd.wire.batch import build_batch
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord, encode_records
from tests.cli.run import run
from tests.cli.sample_history import BEGAN_MS, append, begin
from tests.metadata.histories import replayed
from tests.redaction.secrets import records_with_secrets, shown_secrets

SEEDS = st.integers(0, 1 << 32)


def batch_of(messages: list[Message], base_offset: int = 0) -> bytes:
    values = encode_records([VersionedRecord(one, 0) for one in messages])
    return build_batch(values, base_offset, 1, 1_700_000_000_000)


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_history_tree_and_differences_show_no_secret(seed: int) -> None:
    records, secrets = records_with_secrets(Random(seed), 40)
    story = Story(Image())
    events = [event.row() for event in story.describe(records, 0, 1, 0)]
    repeated = [one for one in records if not isinstance(one, TopicRecord)]  # with the values before
    again = [event.row() for event in story.describe(repeated, len(records), 1, 0)]
    tree = tree_of(story.image, Provenance(1, 1, 1))
    found = [(path, leaf.value, leaf.text) for path, leaf in leaves("/", tree)]
    changed = list(differences(replayed(records[::2]), replayed(records[1::2])))
    output = msgspec.json.encode([events, again, found, changed])
    assert shown_secrets(output, secrets) == []


def test_the_flag_shows_them() -> None:
    records, secrets = records_with_secrets(Random(1), 40)
    image = replayed(records)
    tree = tree_of(image, Provenance(1, 1, 1), show_secrets=True)
    told = Story(Image(), show_secrets=True).describe(records, 0, 1, 0)
    for output in (
        [leaf.text for _, leaf in leaves("/", tree)],
        [event.row() for event in told],
        list(differences(Image(), image, show_secrets=True)),
    ):
        assert shown_secrets(msgspec.json.encode(output), secrets)


@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_a_dump_shows_no_secret(seed: int) -> None:
    records, secrets = records_with_secrets(Random(seed), 40)
    disk = MemoryDisk()
    path = "/d/00000000000000000000.log"
    disk.make_directory("/d")
    file = disk.open(path, create=True)
    file.write(0, batch_of(records))
    file.close()
    output = msgspec.json.encode(list(dump(disk, path)))
    assert shown_secrets(output, secrets) == []
    everything = msgspec.json.encode(list(dump(disk, path, show_secrets=True)))
    assert bool(shown_secrets(everything, secrets)) == (b"[redacted]" in output)


@pytest.mark.parametrize("form", ["--json", "--table"])
def test_the_commands_show_secrets_only_if_told_to(tmp_path: Path, form: str) -> None:
    records, secrets = records_with_secrets(Random(5), 60)
    log = begin(tmp_path)
    append(log, records, BEGAN_MS)
    log.close()
    json = ["--json"] if form == "--json" else []
    ways = {
        "dump": ["dump", tmp_path, form],
        "show": ["show", "/*/*/*", "-d", tmp_path, *json],
        "history": ["history", "-d", tmp_path, *json],
        "diff": ["diff", "--from", "0", "-d", tmp_path, *json],
        "topics": ["topics", "-d", tmp_path, *json],
    }
    for name, words in ways.items():
        done = run(*words)
        assert done.code == 0, done.err
        assert shown_secrets(done.out.encode(), secrets) == [], name
        if name != "topics":
            assert shown_secrets(run(*words, "--show-secrets").out.encode(), secrets), name
