"""The permissions of data, audit stream and backups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.runtime.file_modes import set_umask, wider_modes
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
