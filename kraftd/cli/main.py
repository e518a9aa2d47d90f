"""``kraftd``: its commands and how they end.

The module of a command is imported when the command is named, and what it needs when it runs: so start and
each other command are quick.
"""

from __future__ import annotations

import importlib
import io
import os
import sys

import click

from kraftd.cli.failures import EXIT_CODES, explain
from kraftd.cli.identity import show_version
from kraftd.cli.visible import show_control_characters

EPILOG = "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items())

COMMANDS = {
    "format": "kraftd.cli.storage.format:format_command",
    "start": "kraftd.cli.start:start",
    "container": "kraftd.cli.container:container",
    "snapshot": "kraftd.cli.storage.snapshot:snapshot",
    "dump": "kraftd.cli.storage.dump:dump",
    "backup": "kraftd.cli.storage.backup:backup",
    "restore": "kraftd.cli.storage.restore:restore",
    "topics": "kraftd.cli.metadata.topics:topics",
    "show": "kraftd.cli.metadata.show:show",
    "diff": "kraftd.cli.metadata.diff:diff",
    "history": "kraftd.cli.metadata.history:history",
    "watch": "kraftd.cli.metadata.watch:watch",
    "produce": "kraftd.cli.brokers.produce:produce",
    "consume": "kraftd.cli.brokers.consume:consume",
    "groups": "kraftd.cli.brokers.groups:groups",
    "transactions": "kraftd.cli.brokers.transactions:transactions",
    "quorum": "kraftd.cli.quorum.commands:quorum",
    "features": "kraftd.cli.features:features",
    "doctor": "kraftd.cli.doctor.command:doctor",
    "sim": "kraftd.cli.simulate:sim",
    "random-uuid": "kraftd.cli.identity:random_uuid",
    "version": "kraftd.cli.identity:version",
}
"""Each command's module and name there."""


class Commands(click.Group):
    """The commands of `COMMANDS`, each imported when it is named; help names them all."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
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
    """Kafka's brokers and KRaft controllers: nodes that run as either or both, and tools for any cluster.

    \b
    A first node, from nothing (its file says which roles it has):
      kraftd format --config server.properties --cluster-id "$(kraftd random-uuid)" --standalone
      kraftd start server.properties

    \b
    New files are readable by this user alone. KRAFTD_UMASK (octal) changes that, for example 027.
    """


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
    with click.Context(kraftd, color=True):  # else click takes escape codes out before they are made visible
        code = _run(arguments)
    sys.exit(code if isinstance(code, int) else 0)


def _run(arguments: list[str] | None) -> object:
    try:
        limit_permissions()
        return kraftd.main(arguments, prog_name="kraftd", standalone_mode=False, color=True)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader of the output has gone: nothing is wrong. Python would complain once more on its way out.
        sys.stderr.close()
        return 0
    except Exception as error:
        text, code = explain(error)
        click.echo(text, err=True)
        return code
