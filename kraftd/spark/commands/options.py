"""Options of several commands, and their evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import click
from pyspark.sql import SparkSession

from kraftd.control_characters import visible
from kraftd.history.points import Point, parse_point
from kraftd.spark.inputs.input_log import find_log
from kraftd.spark.inputs.layout import Replica
from kraftd.spark.inputs.replicas import CommittedLog
from kraftd.spark.registration import register


def input_options(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--input, --mode, --high-watermark, --master, --conf and --scratch."""
    decorators = (
        click.option(
            "--input",
            "inputs",
            multiple=True,
            required=required,
            metavar="DIR",
            help="A controller's metadata.log.dir, or a copy of it: a path, or a URI of a file system that "
            "Spark's settings name (hdfs://, s3a://). Repeat it for each replica: several replicas prove "
            "which records are committed.",
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
        click.option(
            "--conf",
            "settings",
            type=Setting(),
            multiple=True,
            help="A setting of Spark, as for spark-submit: spark.hadoop.fs.s3a.endpoint=HOST. Repeat it.",
        ),
        click.option(
            "--scratch",
            metavar="DIR",
            help="A directory for copies of inputs that are URIs, and for a report's decoded log; on a "
            "cluster, one that all workers share.",
        ),
    )

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return decorated


def find_input(
    inputs: Sequence[str],
    mode: str,
    high_watermark: int | None,
    start: Callable[[], SparkSession],
    scratch: str | None,
) -> tuple[list[Replica], CommittedLog]:
    """The replicas and their committed log; notes for the user go to stderr. start makes the session that
    inputs need that are URIs."""

    def registered() -> SparkSession:
        session = start()
        register(session)
        return session

    return find_log(inputs, mode, high_watermark, print_note, registered, scratch)


class Setting(click.ParamType[tuple[str, str]]):
    """The type of `--conf`."""

    name = "KEY=VALUE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.startswith("spark."):
            self.fail(f"{value}: spark.KEY=VALUE is expected", param, ctx)
        return key, text


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


def print_note(text: str) -> None:
    """A line on stderr."""
    click.echo(f"kraftd-spark: {visible(text)}", err=True)


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
