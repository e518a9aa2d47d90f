"""One connection to another node, as the loop's protocol."""

from __future__ import annotations

from typing import Any, Protocol

from kraftd.net.frame_receiver import FrameReceiver
from kraftd.net.splitter import FrameError
from kraftd.net.traffic import Traffic
from kraftd.net.transport import Transport
from kraftd.wire.errors import ProtocolError

MAX_RESPONSE_BYTES = 104_857_600
CLOSED = "closed by the other side"


class Channel(Protocol):
    """What a connection is for."""

    @property
    def traffic(self) -> Traffic: ...

    def opened(self) -> None:
        """It is there."""

    def follow(self, frame: memoryview) -> bool:
        """Take the next answer as it came, and keep no view of it; return whether it is taken."""

    def frame_received(self, frame: memoryview) -> None:
        """Handle the next answer. Raises ProtocolError."""

    def link_ended(self, reason: str) -> None:
        """It was refused, lost, or is unusable."""


class Link:
    """One connection of a channel, as the loop's protocol; silent after the channel has dropped it."""

    def __init__(self, channel: Channel) -> None:
        self._channel: Channel | None = channel
        self._traffic = channel.traffic
        self._receiver = FrameReceiver(MAX_RESPONSE_BYTES)
        self.get_buffer = self._receiver.buffer  # the loop calls it before each read
        self._transport: Transport | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the other side has accepted the connection."""
        return self._transport is not None

    def write(self, parts: list[Any]) -> None:
        if self._transport is not None:
            self._traffic.requests += 1
            self._traffic.out_bytes += sum(map(len, parts))
            self._transport.writelines(parts)

    def close(self) -> None:
        """Close it, or stop opening it; it never calls the channel again."""
        self._channel = None
        if self._transport is not None:
            self._transport.close()

    def not_opened(self, reason: str) -> None:
        """Handle that the other side refused, or could not be found."""
        if self._channel is not None:
            self._channel.link_ended(reason)

    # -- called by the loop

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._traffic.opened += 1
        if self._channel is None:
            transport.close()
        else:
            self._channel.opened()

    def buffer_updated(self, size_bytes: int) -> None:
        channel = self._channel
        self._traffic.in_bytes += size_bytes
        if channel is None:
            return
        try:
            whole = self._receiver.whole_frame(size_bytes)
            if whole is not None and channel.follow(whole):
                self._traffic.responses += 1
                return
            for frame in self._receiver.received(size_bytes):
                self._traffic.responses += 1
                if whole is not None or not channel.follow(frame):
                    channel.frame_received(frame)
                if self._channel is None:
                    return
        except (FrameError, ProtocolError) as error:
            channel.link_ended(f"its answer cannot be read: {error}")

    def eof_received(self) -> None:
        """The other side has finished; the transport then closes itself."""

    def connection_lost(self, error: Exception | None) -> None:
        self._traffic.closed += 1
        if self._channel is not None:
            self._channel.link_ended(CLOSED if error is None else str(error))

    def pause_writing(self) -> None:
        """Do nothing: with few requests at a time there is nothing to hold back."""

    def resume_writing(self) -> None: ...
