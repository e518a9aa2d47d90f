"""The check of prose finds violations of the rules of CONTRIBUTING.md, and leaves out code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.prose import findings, main

LONG = " ".join(["word"] * 26) + "."
SHORT = " ".join(["word"] * 25) + "."


def written(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kraftd/a.py", f'"""{LONG}"""\n'),
        ("kraftd/a.py", f'def act() -> None:\n    """Act.\n\n    {LONG}\n    """\n'),
        ("kraftd/a.py", f"# {LONG[:60]}\n# {LONG[60:]}\n"),
        ("README.md", f"# Title\n\n{LONG}\n"),
        ("docs/deep/page.md", f"Short. {LONG} Short.\n"),
        ("CHANGELOG.md", f"- One item\n- {LONG}\n"),
        ("CONTRIBUTING.md", f"Steps\n1. {LONG[:60]}\n   {LONG[60:]}\n"),
        ("docs/page.md", f"- **Word.** Short.\n  {LONG}\n"),
    ],
)
def test_a_long_sentence_is_found_in_every_kind_of_prose(tmp_path: Path, name: str, text: str) -> None:
    ((at, _line, message),) = findings(written(tmp_path, name, text))
    assert at == name
    assert message.startswith("a sentence of 26 words: word word")
    assert findings(written(tmp_path, name, text.replace(LONG, SHORT).replace(LONG[60:], SHORT[60:]))) == []


@pytest.mark.parametrize("text", ["# Whoever asks.\n", '"""Somebody asks."""\n', "# Nobody asks.\n"])
def test_a_subject_without_a_name_is_found(tmp_path: Path, text: str) -> None:
    ((name, line, message),) = findings(written(tmp_path, "tests/test_a.py", text))
    assert (name, line) == ("tests/test_a.py", 1)
    assert message.endswith("name the actor")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Who asks is answered.\n", "'Who': name the actor"),
        ('"""Answers of who leads."""\n', "'of who': name the actor"),
        ("# The leader is told.\n", "'is told': is notified, gets an answer, in several callbacks"),
        ("# A leader hears of it.\n", "'hears of': is notified, gets an answer, in several callbacks"),
    ],
)
def test_the_subject_who_and_nonstandard_terms_are_found(tmp_path: Path, text: str, found: str) -> None:
    assert findings(written(tmp_path, "testkit/a.py", text)) == [("testkit/a.py", 1, found)]


def test_a_boolean_that_does_not_begin_with_return_whether_is_found(tmp_path: Path) -> None:
    source = 'def is_done() -> bool:\n    """{} it is done."""\n'
    written(tmp_path, "kraftd/a.py", source.format("Whether"))
    assert findings(tmp_path) == [("kraftd/a.py", 1, "begin with 'Return whether': is_done")]
    assert findings(written(tmp_path, "kraftd/a.py", source.format("Return whether"))) == []


def test_bad_names_of_tests_are_found(tmp_path: Path) -> None:
    fits, long = "test_" + "a" * 75, "test_" + "a" * 76
    written(tmp_path, "tests/test_a.py", f"def {fits}(): ...\n\n\nasync def {long}(): ...\n")
    assert findings(tmp_path) == [("tests/test_a.py", 4, f"81 characters: {long}")]
    written(tmp_path, "tests/test_a.py", "def test_that_somebody_asks(): ...\n")
    ((_name, line, message),) = findings(tmp_path)
    assert (line, message) == (1, "'somebody': name the actor: test_that_somebody_asks")
    for term in ("is_told", "tells", "hears", "knows_of", "in_turns"):
        written(tmp_path, "tests/test_a.py", f"def test_a_node_{term}(): ...\n")
        ((_name, line, message),) = findings(tmp_path)
        assert message.startswith(f"{term!r}: is reported")
    assert not findings(written(tmp_path, "tests/test_a.py", "def test_a_saying_foretells_turns(): ...\n"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", f"```\n{LONG}\n```\n"),
        ("README.md", f"| {LONG} |\n"),
        ("README.md", 'No "whoever" here.\n'),
        ("README.md", "A user who leads. Who leads?\n"),
        ("README.md", 'The answer "it is told".\n'),
        ("README.md", "The key allow.everyone.if.no.acl.found.\n"),
        ("kraftd/a.py", f"'''Commands.\n\nact     {LONG}\n'''\n"),
        ("kraftd/messages/a.py", f"# {LONG}\n"),
    ],
)
def test_code_tables_quotes_and_generated_files_are_left_out(tmp_path: Path, name: str, text: str) -> None:
    assert findings(written(tmp_path, name, text)) == []


def test_the_command_prints_each_finding_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "docs/a.md", "Short.\n\nWhoever asks.\n")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == "docs/a.md:3: 'Whoever': name the actor\n"
    written(tmp_path, "docs/a.md", "Short.\n")
    assert main([str(tmp_path)]) == 0
