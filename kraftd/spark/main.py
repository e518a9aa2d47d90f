"""The entry point of `kraftd-spark`, and of `spark-submit kraftd/spark/main.py`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Let SIGINT end the process in one line: an import may turn a KeyboardInterrupt into another error."""
    before = signal.getsignal(signal.SIGINT)
    in_charge = threading.current_thread() is threading.main_thread() and before is signal.default_int_handler
    if in_charge:
        signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        if in_charge:
            signal.signal(signal.SIGINT, before)


def _end(_signal: int, _frame: object) -> None:
    os.write(2, b"kraftd-spark: interrupted\n")
    os._exit(130)


try:
    with _ended_by_interrupt():  # Spark and Arrow take a second
        from kraftd.spark.commands.ingest import ingest_command
        from kraftd.spark.commands.report import report_command
        from kraftd.spark.commands.tables import tables_command
        from kraftd.spark.commands.validate import validate_command
except ModuleNotFoundError as missing:
    print(
        f"kraftd-spark: {missing.name} is not installed. Install the extra: pip install 'kraftd[spark]', "
        "or make spark-setup in a checkout",
        file=sys.stderr,
    )
    sys.exit(1)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """A cluster's metadata log as tables, with Apache Spark."""


for command in (ingest_command, tables_command, validate_command, report_command):
    main.add_command(command)

if __name__ == "__main__":
    main()
