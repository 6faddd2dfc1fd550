"""Read the header segment of a transfer that arrived in several frames.

`harebell.kernels.segments` reads those of transfers in one frame.
"""

from __future__ import annotations

from harebell.base.message import FAMILY_010, Properties
from harebell.front.amqp_0_10.errors import ILLEGAL_ARGUMENT, ExecutionError
from harebell.kernels.segments import (
    ACCEPT_EXPLICIT,
    ACCEPT_NONE,
    DISCARD_UNROUTABLE,
    IMMEDIATE,
    NOT_ACQUIRED,
    REDELIVERED,
    SYNC,
)
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.commands import MessageTransfer
from harebell.wire.v010.structs import DeliveryProperties, MessageProperties

_CARBON = "CC"


def flags_of(command: MessageTransfer, sync: bool, explicit: bool) -> int:
    """Return the flags of a transfer, in the form of `SegmentSink.transfer`.

    Args:
        command: the transfer.
        sync: whether the peer requests its completion at once.
        explicit: whether the field accept-mode was there.

    Raises:
        ExecutionError: 531 for an unknown accept-mode or acquire-mode.
    """
    for field, value in ((1, command.accept_mode), (2, command.acquire_mode)):
        if value > 1:
            raise ExecutionError(ILLEGAL_ARGUMENT, f"there is no mode {value}", field)
    flags = SYNC if sync else 0
    if explicit:
        flags |= ACCEPT_NONE if command.accept_mode else ACCEPT_EXPLICIT
    return flags | (NOT_ACQUIRED if command.acquire_mode else 0)


def read_header(raw: bytes) -> tuple[int, str, Properties]:
    """Return flags, routing key and properties of a header segment.

    Raises:
        ProtocolError: 531 if it is malformed.
    """
    flags, key, mode, priority, suspect, headers = 0, "", 0, -1, False, False
    for struct in AMQP_0_10.decode_header(raw):
        if isinstance(struct, DeliveryProperties):
            flags = DISCARD_UNROUTABLE if struct.discard_unroutable else 0
            flags |= IMMEDIATE if struct.immediate else 0
            flags |= REDELIVERED if struct.redelivered else 0
            key = struct.routing_key or ""
            mode = struct.delivery_mode or 0
            priority = -1 if struct.priority is None else struct.priority
            suspect = suspect or struct.ttl is not None or struct.expiration is not None
        elif isinstance(struct, MessageProperties):
            # "CC" is in BCC as well.
            headers = bool(struct.application_headers)
            carbon = any(_CARBON in name for name in struct.application_headers)
            addressed = struct.reply_to is not None or struct.user_id is not None
            suspect = suspect or carbon or addressed
        else:
            # fragment-properties, or a struct that only a decoded header shows.
            suspect = True
    return flags, key, Properties(raw, mode, priority, headers, suspect, FAMILY_010)
