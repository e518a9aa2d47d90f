"""``kraftd dump --verify`` and a start agree on directories with random damage."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from kraftd.config import load
from kraftd.fetch.purgatory import Purgatory
from kraftd.host.storage import open_storage
from kraftd.log.disk import RealDisk
from kraftd.log.errors import StorageError
from kraftd.messages.quorum_state_data import QuorumStateData
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.metadata_dir.files.quorum_state import QuorumStateFile
from kraftd.raft.config import RaftConfig
from kraftd.raft.core import RaftCore
from kraftd.raft.events import Started
from kraftd.raft.replica import ConsensusBroken
from kraftd.wire.batch import build_batch
from tests.cli.run import run, write_config
from tests.cli.sample_history import encoded, write_history
from tests.raft.world import SeededRandomness

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
DAMAGES = 60


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A formatted directory with a log and a vote."""
    home = tmp_path_factory.mktemp("sound")
    assert run("format", "-c", write_config(home, 9093), "-t", CLUSTER_ID, "--standalone").code == 0
    write_history(home / "data")
    partition = f"{home}/data/__cluster_metadata-0"
    QuorumStateFile(RealDisk(), partition).write(QuorumStateData(leader_id=-1, leader_epoch=9), 1)
    return home


def starts(home: Path) -> bool:
    """Return whether a controller opens the directory and its core starts."""
    config = load(home / "controller.properties")
    try:
        storage = open_storage(RealDisk(), config, 0, lambda: b"i" * 16)
        try:
            raft = RaftConfig(1, storage.directory.directory_id, storage.directory.cluster_id, ())
            core = RaftCore(raft, storage.durable_state(), SeededRandomness(1), Purgatory(), Purgatory())
            core.step(Started(), 0)
        finally:
            storage.close()
    except (StorageError, ConsensusBroken):
        return False
    return True


def damage(data: Path, rng: random.Random) -> str:
    """Harm one file; returns what was done."""
    files = sorted(path for path in data.rglob("*") if path.is_file() and path.name != ".lock")
    path = rng.choice(files)
    content = bytearray(path.read_bytes())
    at = rng.randrange(len(content) + 1)
    kind = rng.choice(("remove", "cut", "flip", "insert", "drop", "repeat", "swap"))
    if kind == "remove":
        path.unlink()
        return f"{path.name}: removed"
    end = min(len(content), at + rng.randrange(1, 200))
    if kind == "cut":
        del content[at:]
    elif kind == "flip" and content:
        content[at % len(content)] ^= 1 << rng.randrange(8)
    elif kind == "insert":
        content[at:at] = rng.randbytes(rng.randrange(1, 80))
    elif kind == "drop":
        del content[at:end]
    elif kind == "repeat":
        content[at:at] = content[at:end]
    else:
        content[:] = rng.choice(files).read_bytes()
    path.write_bytes(content)
    return f"{path.name}: {kind} at {at}"


@pytest.mark.parametrize("part", range(3))
def test_verify_refuses_exactly_what_a_start_refuses(sound: Path, tmp_path: Path, part: int) -> None:
    outcomes = set()
    for seed in range(part * DAMAGES // 3, (part + 1) * DAMAGES // 3):
        home = tmp_path / str(seed)
        home.mkdir()
        write_config(home, 9093)
        shutil.copytree(sound / "data", home / "data")
        rng = random.Random(seed)
        done = [damage(home / "data", rng) for _ in range(rng.choice((1, 1, 2)))]
        rows = [json.loads(line) for line in run("dump", "--verify", home / "data").out.splitlines()]
        refused = any(row.get("refuses_start") for row in rows)
        outcomes.add(refused)
        assert refused == (not starts(home)), (seed, done, rows)
    assert outcomes == {True, False}


def test_verify_fails_for_sound_batches_whose_records_contradict_the_log(sound: Path, tmp_path: Path) -> None:
    write_config(tmp_path, 9093)
    shutil.copytree(sound / "data", tmp_path / "data")
    log = tmp_path / "data/__cluster_metadata-0/00000000000000000000.log"
    records = encoded([RemoveTopicRecord(b"never was there!")])
    log.write_bytes(log.read_bytes() + build_batch(records, 11, 9, 1_700_000_900_000))
    done = run("dump", "--verify", tmp_path / "data")
    (row,) = (json.loads(line) for line in done.out.splitlines())
    assert (done.code, row["refuses_start"], row["offset"]) == (3, True, 11), row
