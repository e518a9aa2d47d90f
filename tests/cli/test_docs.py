"""The documentation names every command and only options that exist. Related commands share options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kraftd.cli.cluster_options import DEFAULT_BOOTSTRAP
from kraftd.cli.main import kraftd
from kraftd.history.kinds import KINDS
from tests.cli.run import commands_of, run
from tests.cli.sample_history import write_history

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_PLACEHOLDER = re.compile(r"[…|\[\]]|\.\.\.")


def commands(group: click.Group = kraftd, path: str = "kraftd") -> Iterator[tuple[str, click.Command]]:
    """Yield path and command of each command without subcommands."""
    for name, command in commands_of(group).items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_the_page_of_commands_has_every_command() -> None:
    page = (ROOT / "docs/commands.md").read_text()
    missing = [path for path, _ in commands() if not re.search(rf"`{path}\b(?!-)", page)]
    assert not missing


def test_the_page_of_commands_has_every_kind_of_event() -> None:
    page = (ROOT / "docs/commands.md").read_text()
    _, _, listed = page.partition("Kinds: ")
    assert set(re.findall(r"`([a-z-]+)`", listed.partition(".\n\n")[0])) == KINDS


def groups(group: click.Group = kraftd, path: str = "kraftd") -> Iterator[tuple[str, click.Group]]:
    yield path, group
    for name, command in commands_of(group).items():
        if isinstance(command, click.Group):
            yield from groups(command, f"{path} {name}")


@pytest.mark.parametrize(("path", "group"), list(groups()))
def test_lists_of_commands_show_whole_summaries_at_80_columns(path: str, group: click.Group) -> None:
    listed = group.get_help(
        click.Context(group, info_name=path, terminal_width=78)
    )  # click keeps two columns free
    _, _, listed = listed.partition("Commands:")
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


def test_every_command_that_asks_a_cluster_can_log_in() -> None:
    options = {path: {name for one in command.params for name in one.opts} for path, command in commands()}
    assert [
        path for path, has in options.items() if "--bootstrap" in has and "--command-config" not in has
    ] == []


def test_every_command_that_asks_a_cluster_has_the_same_default() -> None:
    asked = {path: one for path, command in commands() for one in command.params if "--bootstrap" in one.opts}
    assert {"kraftd topics", "kraftd groups list", "kraftd quorum describe", "kraftd doctor"} <= set(asked)
    for path, option in asked.items():
        assert isinstance(option, click.Option) and not option.required, path
        has_default = option.default == DEFAULT_BOOTSTRAP and option.show_default is True
        assert has_default or DEFAULT_BOOTSTRAP in (option.help or ""), path


def examples(page: Path) -> Iterator[str]:
    """Yield the command lines of kraftd in indented blocks, continued lines joined."""
    text = page.read_text().replace("\\\n", " ")
    for line in text.splitlines():
        found = re.match(r" {4,}(?:\$ )?(?:sudo )?(?:/\S*/)?(kraftd [a-z].*)", line)
        if found:
            yield found[1].split(" # ")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_use_existing_commands_and_options(page: Path) -> None:
    wrong = [line for line in examples(page) if not is_known(line)]
    assert not wrong


def is_known(line: str) -> bool:
    words = [word for word in shlex.split(_PLACEHOLDER.sub(" ", line), posix=False) if word]
    found: click.Command = kraftd
    words.pop(0)
    while isinstance(found, click.Group) and words:
        named = commands_of(found).get(words.pop(0))
        if named is None:
            return False
        found = named
    known = {name for option in found.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    return all(word.partition("=")[0] in known for word in words if word.startswith("--"))


def shown() -> Iterator[tuple[str, str]]:
    """Yield the commands of docs/commands.md that read the sample directory, each with its output.

    A command that names a running quorum is run on the directory instead, and prints the same.
    """
    page = (ROOT / "docs/commands.md").read_text()
    for line, output in re.findall(r"^    \$ (kraftd .*)\n((?: {4}(?!\$ ).*\n)*)", page, re.M):
        line = line.replace("--bootstrap 127.0.0.1:9093", "-d data")
        if "-d data" in line:
            yield line, re.sub(r"^ {4}", "", output, flags=re.M)


@pytest.mark.parametrize(("line", "output"), list(shown()))
def test_examples_print_what_the_page_shows(line: str, output: str, tmp_path: Path) -> None:
    write_history(tmp_path)
    words = [str(tmp_path) if word == "data" else word for word in shlex.split(line)[1:]]
    done = run(*words)
    assert done.code == 0
    lines = [re.escape(one.rstrip()).replace(r"\.\.\.", ".*") for one in output.splitlines()]
    printed = [one.rstrip() for one in (done.out + done.err).splitlines()]
    assert len(printed) == len(lines)
    for pattern, one in zip(lines, printed, strict=True):
        assert re.fullmatch(pattern, one)
