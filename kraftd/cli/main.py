"""``kraftd``: its commands and how they end.

Modules of commands are light; what a command needs is imported when it runs, so that help and start are
quick.
"""

from __future__ import annotations

import io
import os
import sys

import click

from kraftd.cli.brokers.consume import consume
from kraftd.cli.brokers.groups import groups
from kraftd.cli.brokers.produce import produce
from kraftd.cli.brokers.transactions import transactions
from kraftd.cli.container import container
from kraftd.cli.doctor.command import doctor
from kraftd.cli.failures import EXIT_CODES, explain
from kraftd.cli.features import features
from kraftd.cli.identity import random_uuid, show_version, version
from kraftd.cli.metadata.diff import diff
from kraftd.cli.metadata.history import history
from kraftd.cli.metadata.show import show
from kraftd.cli.metadata.topics import topics
from kraftd.cli.metadata.watch import watch
from kraftd.cli.quorum.describe import quorum
from kraftd.cli.quorum.discard import discard
from kraftd.cli.quorum.dynamic import make_dynamic
from kraftd.cli.quorum.recover import recover
from kraftd.cli.quorum.registrations import forget_controller, list_controllers
from kraftd.cli.quorum.voters import add_controller, remove_controller
from kraftd.cli.simulate import sim
from kraftd.cli.start import start
from kraftd.cli.storage.backup import backup
from kraftd.cli.storage.dump import dump
from kraftd.cli.storage.format import format_command
from kraftd.cli.storage.restore import restore
from kraftd.cli.storage.snapshot import snapshot
from kraftd.cli.visible import show_control_characters

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items())


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=EPILOG
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Print the version, as the command version does.",
)
def kraftd() -> None:
    """A KRaft controller for Apache Kafka brokers.

    \b
    A first controller, from nothing:
      kraftd format --config controller.properties --cluster-id "$(kraftd random-uuid)" --standalone
      kraftd start controller.properties

    \b
    New files are readable by this user alone. KRAFTD_UMASK (octal) changes that, for example 027.
    """


COMMANDS = (
    *(format_command, start, container, snapshot, dump, backup, restore),
    *(topics, show, diff, history, watch),
    *(produce, consume, groups, transactions),
    *(quorum, features, doctor, sim, random_uuid, version),
)
for command in COMMANDS:
    kraftd.add_command(command)
for command in (
    *(add_controller, remove_controller, make_dynamic),
    *(list_controllers, forget_controller, recover, discard),
):
    quorum.add_command(command)


def limit_permissions() -> None:
    """Keep the files that this process makes from other users. Raises UsageError."""
    from kraftd.runtime.file_modes import UMASK_VARIABLE, set_umask

    text = os.environ.get(UMASK_VARIABLE)
    try:
        set_umask(text)
    except ValueError:
        raise click.UsageError(f"{UMASK_VARIABLE}={text}: must be an octal umask, such as 027.") from None


def main(arguments: list[str] | None = None) -> None:
    """Run a command and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show
    show_control_characters()
    try:
        limit_permissions()
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
        # The reader of the output has gone: nothing is wrong. Python would complain once more on its way out.
        sys.stderr.close()
        code = 0
    except Exception as error:
        text, code = explain(error)
        click.echo(text, err=True)
    sys.exit(code if isinstance(code, int) else 0)
