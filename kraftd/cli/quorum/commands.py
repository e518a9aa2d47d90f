"""``kraftd quorum`` with its commands."""

from __future__ import annotations

from kraftd.cli.quorum.describe import quorum
from kraftd.cli.quorum.discard import discard
from kraftd.cli.quorum.dynamic import make_dynamic
from kraftd.cli.quorum.recover import recover
from kraftd.cli.quorum.registrations import forget_controller, list_controllers
from kraftd.cli.quorum.voters import add_controller, remove_controller

for command in (
    *(add_controller, remove_controller, make_dynamic),
    *(list_controllers, forget_controller, recover, discard),
):
    quorum.add_command(command)
