"""The archive of a start's code: what is found in it, what is not, and when it is written anew."""

from __future__ import annotations

import importlib
import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from kraftd.cli.code_archive import ArchivedLoader, CodeArchive, archivable, write_archive

SOURCE = "def fail():\n    raise ValueError('as written')\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of an imported package ``archived_package`` with a module ``part``."""
    directory = tmp_path / "archived_package"
    directory.mkdir()
    (directory / "__init__.py").write_text("")
    (directory / "part.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("archived_package.part")
    yield directory
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.startswith("archived_package")]:
        del sys.modules[name]


def written(directory: Path) -> CodeArchive:
    modules = [sys.modules[name] for name in ("archived_package", "archived_package.part")]
    path = str(directory.parent / "archive")
    write_archive(path, archivable(modules))
    return CodeArchive(path)


def found(archive: CodeArchive, name: str = "archived_package.part") -> ModuleSpec | None:
    return archive.find_spec(name)


def test_a_package_and_its_module_are_run_from_the_archive(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = written(package)
    forget()
    monkeypatch.setattr(sys, "meta_path", [archive])  # nothing else finds a module
    part = importlib.import_module("archived_package.part")
    assert type(part.__spec__.loader) is ArchivedLoader
    assert (part.__file__, part.__package__) == (str(package / "part.py"), "archived_package")
    assert part.__cached__.endswith(".pyc")
    assert sys.modules["archived_package"].__path__ == [str(package)]


def test_a_traceback_shows_the_lines_of_an_archived_module(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = written(package)
    forget()
    monkeypatch.setattr(sys, "meta_path", [archive])
    part = importlib.import_module("archived_package.part")
    with pytest.raises(ValueError, match="as written") as failure:
        part.fail()
    text = "".join(traceback.format_exception(failure.value))
    assert str(package / "part.py") in text
    assert "raise ValueError('as written')" in text


def test_a_module_whose_source_has_changed_or_gone_is_not_found(package: Path) -> None:
    archive = written(package)
    spec = sys.modules["archived_package.part"].__spec__
    assert spec is not None
    assert archive.holds(spec)
    (package / "part.py").write_text(SOURCE + "\n")
    assert not archive.holds(spec)
    (package / "part.py").unlink()
    assert found(archive) is None


def test_an_archive_for_another_search_path_is_not_used(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(package)
    monkeypatch.setattr(sys, "path", [*sys.path, "/another"])
    assert found(CodeArchive(str(package.parent / "archive"))) is None


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_a_damaged_archive_finds_nothing(package: Path, kept: int) -> None:
    written(package)
    path = package.parent / "archive"
    path.write_bytes(path.read_bytes()[:kept])
    assert found(CodeArchive(str(path))) is None


def test_without_an_archive_nothing_is_found(tmp_path: Path) -> None:
    assert found(CodeArchive(str(tmp_path / "none"))) is None


def test_code_that_cannot_be_read_from_the_archive_is_read_from_its_source(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = written(package)
    spec = found(archive)
    assert spec is not None
    Path(archive.path).write_bytes(b"")  # the same file is still open
    assert isinstance(spec.loader, ArchivedLoader)
    code = spec.loader.get_code(spec.name)
    assert code is not None
    assert "fail" in code.co_names


RENEWED = """
import sys
from kraftd.cli import code_archive
code_archive.archive_path = lambda: sys.argv[1]
code_archive.use_archive()
module = __import__(sys.argv[2], fromlist=["*"])
code_archive._renew()
print(type(module.__spec__.loader).__name__)
"""


def test_a_process_writes_the_archive_that_the_next_one_loads_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    path = tmp_path / "archive"

    def run(*flags: str, module: str = "kraftd.cli.main") -> str:
        command = [sys.executable, *flags, "-c", RENEWED, str(path), module]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert run("-B") == "SourceFileLoader"
    assert not path.exists()  # -B: this Python writes no bytecode
    assert run() == "SourceFileLoader"
    inode = path.stat().st_ino
    assert run() == "ArchivedLoader"
    assert path.stat().st_ino == inode  # it had everything, so it was not written again
    assert run(module="kraftd.histogram") == "SourceFileLoader"
    assert [run(module=name) for name in ("kraftd.histogram", "kraftd.cli.main")] == ["ArchivedLoader"] * 2
    assert [each.name for each in tmp_path.iterdir()] == ["archive"]
