"""Options of several commands, and their evaluation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from kraftd.history.points import Point, parse_point
from kraftd.metadata_dir.directory import PARTITION_DIRECTORY
from kraftd.spark.errors import InputError
from kraftd.spark.input_log import find_log
from kraftd.spark.layout import Replica
from kraftd.spark.replicas import CommittedLog
from kraftd.spark.storage import absolute, join, kind_of, split_name


def input_options(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--input, --mode, --high-watermark and --master."""
    decorators = (
        click.option(
            "--input",
            "inputs",
            multiple=True,
            required=required,
            metavar="DIR",
            help="A controller's metadata.log.dir, or a copy of it, here or on object storage. Repeat it "
            "for each replica: several replicas prove which records are committed.",
        ),
        click.option(
            "--mode",
            type=click.Choice(["failfast", "permissive"], case_sensitive=False),
            default="failfast",
            show_default=True,
            help="On damage: stop, or write what cannot be decoded to the table `damaged`.",
        ),
        click.option(
            "--high-watermark",
            type=click.IntRange(0),
            metavar="OFFSET",
            help="The first offset that is not committed, if you know it.",
        ),
        click.option("--master", metavar="URL", help="The URL of Spark's master.  [default: local[*]]"),
    )

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return decorated


def find_input(
    inputs: Sequence[str], mode: str, high_watermark: int | None
) -> tuple[list[Replica], CommittedLog]:
    """The replicas and their committed log; notes for the user go to stderr."""
    return find_log(inputs, mode, high_watermark, print_note)


class AsOf(click.ParamType[Point]):
    """The type of `--as-of`: refused before Spark starts if it is neither an offset nor a time."""

    name = "OFFSET|TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Point:
        if isinstance(value, Point):
            return value
        try:
            return parse_point(str(value), time.time())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def refuse_output_in_input(inputs: Sequence[str], output: str, replaced: Sequence[str] = ()) -> None:
    """Raises InputError if an output lies in an input's directory, or would replace an input."""
    target = _real(output)
    for each in inputs:
        source = _real(each)
        home = split_name(source)[0] if kind_of(source) == "file" else source
        directory, name = split_name(home)
        if name == PARTITION_DIRECTORY:
            source = directory
        if target == source or target.startswith(f"{source}/"):
            raise InputError(f"--output {output} lies in the input {each}, which is never written to")
        for place in replaced:
            if f"{_real(each)}/".startswith(f"{join(target, place)}/"):
                raise InputError(f"--output {output} would replace {join(target, place)}, which holds {each}")


def _real(path: str) -> str:
    """A path without links, so that two of them can be compared."""
    found = absolute(path)
    return found if "://" in found else os.path.realpath(found)


def print_note(text: str) -> None:
    """A line on stderr."""
    click.echo(f"kraftd-spark: {text}", err=True)


class Progress:
    """Reports the duration of each step."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._since = time.monotonic()

    def step(self, name: str) -> None:
        """One more step is done."""
        now = time.monotonic()
        self._done += 1
        print_note(f"[{self._done}/{self._steps}] {name} ({now - self._since:.1f} s)")
        self._since = now
