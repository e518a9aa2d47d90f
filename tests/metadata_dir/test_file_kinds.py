"""A directory, a pipe or a broken link in place of a node's file is reported before it is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftd.log.disk import RealDisk
from kraftd.log.errors import DirectoryProblem
from kraftd.metadata_dir.rehearsal import rehearse
from testkit.process import free_port
from tests.cli.run import run, run_apart, write_config

PARTITION = "__cluster_metadata-0"
NAMES = (
    "meta.properties",
    "meta.properties.tmp",
    "bootstrap.checkpoint",
    ".lock",
    f"{PARTITION}/quorum-state",
    f"{PARTITION}/quorum-state.tmp",
    f"{PARTITION}/leader-epoch-checkpoint",
    f"{PARTITION}/partition.metadata",
    f"{PARTITION}/00000000000000000000.log",
    f"{PARTITION}/00000000000000000000.index",
    f"{PARTITION}/00000000000000000000.timeindex",
    f"{PARTITION}/00000000000000099999-0000000001.checkpoint",
)
LINK = "a symbolic link that leads to no file"
KINDS: dict[str, Callable[[Path], None]] = {
    "a directory": Path.mkdir,
    "a pipe": os.mkfifo,
    LINK: lambda path: path.symlink_to("/nowhere/at/all"),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = write_config(folder := tmp_path_factory.mktemp("kinds"))
    assert run("format", "-c", config, "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-s").code == 0
    return folder / "data"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_path_that_is_no_regular_file_is_refused_with_its_kind(sound: Path, name: str, kind: str) -> None:
    path = sound / name
    path.parent.mkdir(exist_ok=True)
    content = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    KINDS[kind](path)
    try:
        (refusal, *_) = rehearse(RealDisk(), str(sound)).refusals
        assert refusal.reason.startswith(f"{path} is {kind}")
    finally:
        path.rmdir() if path.is_dir() else path.unlink()
        if content is not None:
            path.write_bytes(content)


@pytest.mark.parametrize("action", ["open", "read_bytes", "remove"])
def test_a_directory_in_place_of_a_file_is_not_reported_as_a_disk_error(tmp_path: Path, action: str) -> None:
    with pytest.raises(DirectoryProblem, match="Move the directory away"):
        getattr(RealDisk(), action)(str(tmp_path))


def test_a_path_through_a_file_is_not_reported_as_a_disk_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DirectoryProblem, match="No directory can be made there; choose another place"):
        RealDisk().make_directory("/proc/nowhere/data")
    with pytest.raises(DirectoryProblem, match="A part of that path is a file"):
        RealDisk().list_names(f"{tmp_path}/file")


@pytest.mark.parametrize(("name", "code"), [("quorum-state.tmp", 3), ("quorum-state", 3)])
def test_a_start_ends_with_the_exit_code_of_a_bad_directory(
    sound: Path, tmp_path: Path, name: str, code: int
) -> None:
    config = write_config(tmp_path, free_port(), log__dirs=str(sound))
    path = sound / PARTITION / name
    path.parent.mkdir(exist_ok=True)
    content = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    path.mkdir()
    try:
        ended = run_apart("start", config)
    finally:
        path.rmdir()
        if content is not None:
            path.write_bytes(content)
    assert ended.code == code
    assert f"{path} is a directory, and must be a file" in ended.err
    assert "listening" not in ended.err


def test_an_audit_file_that_cannot_be_opened_is_a_wrong_configuration(sound: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path, free_port(), log__dirs=str(sound), **{"kraftd.audit.log": str(tmp_path)})
    ended = run_apart("start", config)
    assert ended.code == 2
    assert f"kraftd.audit.log={tmp_path}: it cannot be opened: Is a directory" in ended.err
