"""Becoming the active controller, with the first records of the epoch, and ceasing to be it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.activation import activate
from kraftd.server.effects import ControllerActivated
from kraftd.server.registration import register_self

if TYPE_CHECKING:
    from kraftd.server.node import Node


def become_active(node: Node, epoch: int) -> None:
    """Take decisions from now on. Everything committed before the epoch is in the image. Raises
    ActivationError.
    """
    node.active_epoch = epoch
    node.context.kraft_version = node.core.kraft_version
    node.image.mark()
    node.say(
        "info",
        "active controller",
        epoch=epoch,
        node_id=node.identity.node_id,
        next_offset=node.core.log_end_offset,
    )
    write_first_records(node)
    if node.active:
        node.periodic.activate(node.now_ms)
        node.emit(ControllerActivated(epoch))


def step_down(node: Node, new_epoch: int) -> None:
    """Take no more decisions; what was not committed is taken back, and who waited for it sent elsewhere."""
    applied_end = node.long.abandon(node)
    committed_end = max(node.core.high_watermark, 0)
    node.say(
        "warning",
        "no longer the active controller",
        epoch=node.active_epoch,
        new_epoch=new_epoch,
        undone_to=committed_end - 1,
    )
    node.active_epoch = None
    node.appends.forget()
    node.image.undo_to(committed_end - 1)
    node.finalized.forget_uncommitted()
    node.replay.next_offset = committed_end
    if applied_end is not None and applied_end < committed_end:
        node.replay.next_offset = applied_end
        node.turns.read_on(node)
    node.periodic.deactivate()
    node.sayings.forget()
    refusal = node.not_controller()
    for call, _ in node.parked.abandon():
        node.refuse(call, refusal.code, refusal.message)


def write_first_records(node: Node) -> None:
    """Bootstrap an empty log, or abort what a former leader left open. Raises ActivationError."""
    node.decide_alone(lambda ctx: activate(ctx, node.bootstrap))
    node.appends.give(node)  # a batch of their own, as Apache Kafka's are
    if node.active:
        register_self(node)
