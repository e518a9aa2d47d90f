"""The permissions of data, audit stream and backups."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.runtime.file_modes import set_umask, wider_files, wider_modes
from tests.runtime.daemon_process import DaemonProcess


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(path: Path) -> dict[str, int]:
    return {str(one.relative_to(path)): one.stat().st_mode & 0o777 for one in path.rglob("*")}


@pytest.mark.parametrize(("text", "of_others"), [("", 0), ("027", 0o050)])
def test_files_of_a_node_and_its_backups_are_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, of_others: int
) -> None:
    monkeypatch.setenv("KRAFTD_UMASK", text)
    daemon = DaemonProcess(tmp_path, kraftd__audit__log=str(tmp_path / "audit.log")).format()
    daemon.start()
    try:
        daemon.kraftd(
            *("backup", "--bootstrap", f"127.0.0.1:{daemon.port}"), "--output", str(tmp_path / "backup")
        )
    finally:
        daemon.stop()
    made = {**modes(tmp_path / "data"), **modes(tmp_path / "backup")}
    assert len(made) > 10
    made |= {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("audit.log", "backup", "data")}
    assert {mode & 0o077 for mode in made.values()} <= {0, of_others, of_others & 0o040}
    assert "other users have rights" not in daemon.log.read_text()


def test_an_existing_wider_mode_is_reported_with_its_remedy(tmp_path: Path) -> None:
    closed, opened, absent = (tmp_path / name for name in ("closed", "opened", "absent"))
    closed.mkdir(0o700)
    opened.mkdir()
    opened.chmod(0o755)
    set_umask(None)
    (found,) = wider_modes(map(str, (closed, opened, absent)))
    assert found == (str(opened), 0o755, f"chmod 700 {opened}")
    set_umask("022")
    assert wider_modes([str(opened)]) == []


@pytest.mark.parametrize("text", ["9", "x", "1777", "-1"])
def test_a_text_that_is_no_umask_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        set_umask(text)


def test_files_with_a_wider_mode_in_a_closed_directory_are_counted(tmp_path: Path) -> None:
    set_umask(None)
    partition, other = tmp_path / "__cluster_metadata-0", tmp_path / "A-0"
    for directory in (other, partition):
        directory.mkdir()
        for name in ("1.log", "2.log"):
            (directory / name).write_text("")
    (tmp_path / "link").symlink_to("/nowhere")  # links have no mode of their own
    assert wider_files(str(tmp_path)) is None
    for path, mode in ((other / "1.log", 0o640), (partition / "2.log", 0o604), (other, 0o750)):
        path.chmod(mode)
    found = wider_files(str(tmp_path), "__cluster_metadata-0")
    remedy = f"chmod -R g-rwx,o-rwx {tmp_path}"
    assert found == (str(tmp_path), 3, str(partition / "2.log"), "604", remedy)
    bounded = wider_files(str(tmp_path), "__cluster_metadata-0", 3)
    assert bounded is not None and bounded.files == 1
    subprocess.run(remedy, shell=True, check=True)
    assert wider_files(str(tmp_path)) is None
    assert wider_files(str(tmp_path / "absent")) is None


def test_start_doctor_and_restore_report_files_that_others_may_read(tmp_path: Path) -> None:
    daemon = DaemonProcess(tmp_path).format()
    daemon.start()
    backup = tmp_path / "backup"
    daemon.kraftd("backup", "--bootstrap", f"127.0.0.1:{daemon.port}", "--output", str(backup))
    daemon.stop()
    assert "other users have rights" not in daemon.log.read_text()
    log = next((tmp_path / "data" / "__cluster_metadata-0").glob("*.log"))
    log.chmod(0o644)
    found = daemon.kraftd("doctor", "--config", str(daemon.properties), "--json", check=False).stdout
    assert f"other users have rights to {log} in it (mode 644)" in found
    daemon.start()
    daemon.stop()
    (told,) = (one for one in daemon.log.read_text().splitlines() if "other users have rights" in one)
    assert f'"first":"{log}"' in told.replace('": "', '":"') and "chmod -R g-rwx,o-rwx" in told
    (tmp_path / "new").mkdir()
    restored = DaemonProcess(tmp_path / "new")
    restore = (
        "restore",
        "--from",
        str(backup),
        "--config",
        str(restored.properties),
        "--cluster-id",
        "other",
    )
    (backup / "backup.json").chmod(0o640)
    assert f"rights to {backup / 'backup.json'} in it (mode 640)" in restored.kraftd(*restore).stderr
