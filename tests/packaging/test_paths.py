"""The systemd unit and the docs name the same files, and the unit lets kraftd write where the docs say."""

from __future__ import annotations

import re
from configparser import RawConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def service() -> dict[str, str]:
    unit = RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "packaging" / "kraftd.service")
    return dict(unit["Service"])


def named(pattern: str) -> set[str]:
    """What the pattern's group matches in any page."""
    return {found for page in PAGES for found in re.findall(pattern, page.read_text())}


def test_the_unit_can_write_every_path_that_the_docs_let_kraftd_write() -> None:
    unit = service()
    writable = (f"/var/lib/{unit['StateDirectory']}/", f"/var/log/{unit['LogsDirectory']}/")
    paths = named(r"(?:log\.dirs|kraftd\.audit\.log)=(/var/\S+)")
    assert len(paths) >= 2
    assert [path for path in paths if not path.startswith(writable)] == []


def test_the_docs_have_one_data_directory_and_the_unit_its_parent() -> None:
    assert named(r"log\.dirs=(/var/lib/kraftd\S*)") == {"/var/lib/kraftd/data"}
    assert service()["WorkingDirectory"] == "/var/lib/kraftd"


def test_the_docs_install_program_and_file_where_the_unit_starts_them() -> None:
    program, verb, properties = service()["ExecStart"].split()
    assert verb == "start"
    three_nodes = (ROOT / "docs" / "operations" / "three-nodes.md").read_text()
    assert f"python3 -m venv {Path(program).parents[1]} " in three_nodes
    assert f"{program} format -c {properties} " in three_nodes
    assert f"install -m 0644 {Path(program).parents[1]}/share/kraftd/kraftd.service " in three_nodes
