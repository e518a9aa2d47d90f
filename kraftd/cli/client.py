"""The client of the commands: what it cannot reach is told to the user."""

from __future__ import annotations

from kraftd.cli.failures import UNREACHABLE, CommandFailure
from kraftd.net import client


class NoAnswer(CommandFailure):
    """Nothing came within the time that there was: a controller may be frozen, or its host gone."""


class Client(client.Client):
    """A connection to one controller. Raises CommandFailure(UNREACHABLE), or NoAnswer."""

    client_id = "kraftd-cli"

    def _no_answer(self) -> Exception:
        return NoAnswer(str(super()._no_answer()), UNREACHABLE)

    def _failure(self, why: str) -> Exception:
        return CommandFailure(str(super()._failure(why)), UNREACHABLE)
