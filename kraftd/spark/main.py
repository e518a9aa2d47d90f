"""The entry point of `kraftd-spark`, and of `spark-submit kraftd/spark/main.py`."""

from __future__ import annotations

import sys

import click

try:
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
