"""The check for circles of imports finds imports anywhere in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.circles import circles, import_graph, main


def package(root: Path, **files: str) -> Path:
    """Write a package `p` of modules by name; `sub__name` is a module of the package `p.sub`."""
    for name, text in {"__init__": "", **files}.items():
        path = root / "p" / f"{name.replace('__', '/') if name != '__init__' else name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "p"


@pytest.mark.parametrize(
    "back",
    [
        "from p.a import A",
        "from p import a",
        "import p.a",
        "from . import a",
        "from .a import A",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import A",
        "def later():\n    from p.a import A",
        "import_module('p.a')",
        "routes_of('decide p.a:rule')",
        "HERE = 'p'\nroutes_of(f'{HERE}.a')",
    ],
)
def test_a_circle_is_found_at_any_place_of_the_import(tmp_path: Path, back: str) -> None:
    directory = package(tmp_path, a="from p.b import B", b=back, c="from p.a import A")
    assert circles(import_graph(directory)) == [["p.a", "p.b"]]


def test_a_circle_of_many_modules_is_found_whole(tmp_path: Path) -> None:
    directory = package(
        tmp_path, a="import p.b", b="import p.sub.c", sub__c="from .. import a", d="import p.a"
    )
    assert circles(import_graph(directory)) == [["p.a", "p.b", "p.sub.c"]]


def test_modules_that_only_share_others_make_no_circle(tmp_path: Path) -> None:
    directory = package(tmp_path, a="import p.b, p.c", b="import p.c\nimport os", c="from p import VERSION")
    assert circles(import_graph(directory)) == []


def test_the_command_names_the_members_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = package(tmp_path, a="import p.b", b="import p.a")
    assert main([str(directory)]) == 1
    assert capsys.readouterr().out == "a circle of imports: p.a, p.b\n"
    (directory / "b.py").write_text("")
    assert main([str(directory)]) == 0
