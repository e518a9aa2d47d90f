"""Control characters in names and texts are shown, not sent to the terminal."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator

import click
import pytest

from kraftd.cli.main import main
from kraftd.cli.tables import print_lines, print_table
from kraftd.cli.visible import VisibleStream, show_control_characters
from kraftd.control_characters import visible, visible_cell

EVIL = "a\x1b]31mb\x9b2Jc\rd\x07\u202ee"
SHOWN = r"a\u001b]31mb\u009b2Jc\u000dd\u0007\u202ee"


@contextlib.contextmanager
def shown() -> Iterator[io.StringIO]:
    """Both outputs as a command has them."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        show_control_characters()
        yield out


def test_a_message_shows_control_characters_and_keeps_its_lines() -> None:
    with shown() as out:
        show_control_characters()
        assert isinstance(sys.stdout, VisibleStream) and not isinstance(sys.stdout.raw, VisibleStream)
        click.echo(f"{EVIL}\n\tsecond — ü")
        click.echo(EVIL, err=True)
    assert out.getvalue() == f"{SHOWN}\n\tsecond — ü\n{SHOWN}\n"


@pytest.mark.parametrize("wrap", [False, True])
def test_a_table_shows_control_characters_of_its_cells(wrap: bool) -> None:
    with shown() as out:
        print_table(("NAME", "TEXT"), [(EVIL, "x"), ("y\nz", "w")], wrap=wrap)
    text = out.getvalue()
    assert SHOWN in text and not set(text) & set("\x1b\x9b\r\x07\u202e")
    assert len(text.splitlines()) == 3 or wrap


def test_lines_of_json_stay_json() -> None:
    with shown() as out:
        print_lines([json.dumps({"name": EVIL}, ensure_ascii=False)])
    assert json.loads(out.getvalue()) == {"name": EVIL}
    assert not set(out.getvalue()) & set("\x9b\u202e")


def test_ordinary_text_is_not_changed() -> None:
    for text in ("", "plain", "Grüße, 日本 🙂", "tab\tand\nline"):
        assert visible(text) == text
    assert visible_cell("tab\tand\nline") == r"tab\u0009and\u000aline"


def test_a_message_that_is_piped_loses_no_character_of_a_name() -> None:
    """Click takes escape codes out of what goes to no terminal: two names would look alike."""
    with shown() as out, pytest.raises(SystemExit):
        main(["show", "/a\x1b[31mb", "-d", "/nowhere/c\x1b[31md"])
    assert r"c\u001b[31md" in out.getvalue()


def test_exactly_the_unsafe_characters_are_escaped() -> None:
    text = "".join(map(chr, range(0x3000)))
    unsafe = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    escaped = re.sub(unsafe, lambda found: f"\\u{ord(found[0]):04x}", text)
    assert visible(text) == escaped
    assert visible_cell(text) == escaped.replace("\n", r"\u000a").replace("\t", r"\u0009")
