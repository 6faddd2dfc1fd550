"""A delivery whose transfers go to its session one by one: they may have to wait for its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.wire.v1.composites import Transfer
from harebell.wire.v1.frames import HEAD, encode_frame

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.session import Session

_SERIALS = 1 << 32


def send_in_parts(
    session: Session,
    handle: int,
    number: int,
    tag: bytes,
    payload: bytes,
    *,
    settled: bool,
    **fields: Any,
) -> None:
    """Write the transfers of a delivery to its session, which sends as many as it may.

    Args:
        session: of the link.
        handle: of the link.
        number: the delivery-id.
        tag: the delivery-tag.
        payload: the sections of the message.
        settled: whether the peer need not settle it.
        **fields: further ones of its first transfer.
    """
    room = session.connection.frame_max
    transfer = Transfer(
        handle=handle,
        delivery_id=number % _SERIALS,
        delivery_tag=tag,
        message_format=0,
        settled=settled,
        **fields,
    )
    head, at = transfer.encoded(), 0
    if HEAD + len(head) + len(payload) > room:
        transfer.more = True
        head, between = transfer.encoded(), Transfer(handle=handle, more=True).encoded()
        while at + (size := room - HEAD - len(head)) < len(payload):
            frame = encode_frame(head + payload[at : at + size], session.number)
            session.send_transfer(handle, frame)
            at += size
            head = between
        head = Transfer(handle=handle).encoded()
    session.send_transfer(handle, encode_frame(head + payload[at:], session.number))
