"""``kraftd``: its commands and how they end.

Modules of commands are light; what a command needs is imported when it runs, so that help and start are
quick.
"""

from __future__ import annotations

import sys

import click

from kraftd.cli.dump import dump
from kraftd.cli.failures import EXIT_CODES, explain
from kraftd.cli.format import format_command
from kraftd.cli.identity import random_uuid, version
from kraftd.cli.quorum import quorum
from kraftd.cli.simulate import sim
from kraftd.cli.snapshot import snapshot
from kraftd.cli.start import start
from kraftd.cli.voters import add_controller, remove_controller

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items())


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=EPILOG
)
def kraftd() -> None:
    """A KRaft controller for Apache Kafka brokers.

    \b
    A first controller, from nothing:
      kraftd format --config controller.properties --cluster-id "$(kraftd random-uuid)" --standalone
      kraftd start controller.properties
    """


for command in (format_command, start, snapshot, dump, quorum, sim, random_uuid, version):
    kraftd.add_command(command)
for command in (add_controller, remove_controller):
    quorum.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command and end the process with its exit code."""
    try:
        code = kraftd.main(arguments, prog_name="kraftd", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 2
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except BrokenPipeError:
        # Whoever read the output has gone: nothing is wrong. Python would complain once more on its way out.
        sys.stderr.close()
        code = 0
    except Exception as error:
        text, code = explain(error)
        click.echo(text, err=True)
    sys.exit(code if isinstance(code, int) else 0)
