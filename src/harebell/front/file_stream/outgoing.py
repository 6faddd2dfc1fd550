"""Whether a consumer of files or packets may be sent something now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.limits import OUTPUT_HIGH_BYTES

if TYPE_CHECKING:
    from harebell.front.file_stream.file_stream_channel import FileStreamChannel


def may_deliver(channel: FileStreamChannel) -> bool:
    """Whether the client takes a delivery now: it wants any, and its socket has room."""
    connection = channel.connection
    if connection.congested or connection.out.size >= OUTPUT_HIGH_BYTES:
        connection.starved = True
        return False
    asked = getattr(channel, "may_deliver", None)
    return asked is None or bool(asked())
